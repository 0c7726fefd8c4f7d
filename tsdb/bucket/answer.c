/* What an answer means: a code for programs, words for people, and whether to try again. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/xml/xml.h"
#include "tsdb/bucket/internal.h"

#define PAUSE_ASKED_MAX_NS (30 * NS_PER_S)
#define MESSAGE_BYTES_MAX 200

enum kind { FINAL, AGAIN, CREDENTIALS };

/* clang-format off */
static const struct meaning {
	const char *code;
	enum err_code rc;
	enum kind kind;
	const char *words; /* NULL: those of the store */
} meanings[] = {
	{ "NoSuchKey", ERR_NOT_FOUND, FINAL, "no such object" },
	{ "NoSuchBucket", ERR_UNAVAILABLE, FINAL, "the bucket does not exist" },
	{ "NoSuchUpload", ERR_UNAVAILABLE, FINAL, "the upload in parts is gone" },
	{ "PreconditionFailed", ERR_EXISTS, FINAL, "the condition does not hold" },
	{ "ConditionalRequestConflict", ERR_UNAVAILABLE, AGAIN, NULL },
	{ "OperationAborted", ERR_UNAVAILABLE, AGAIN, NULL },
	{ "InvalidRange", ERR_INVALID, FINAL, "the range begins behind the object's end" },
	{ "SignatureDoesNotMatch", ERR_UNAVAILABLE, FINAL,
		"the signature does not match: the secret key is wrong, or a proxy changes requests" },
	{ "InvalidAccessKeyId", ERR_UNAVAILABLE, CREDENTIALS,
		"the store does not know the access key" },
	{ "ExpiredToken", ERR_UNAVAILABLE, CREDENTIALS, "the credentials have expired" },
	{ "ExpiredTokenException", ERR_UNAVAILABLE, CREDENTIALS, "the credentials have expired" },
	{ "TokenRefreshRequired", ERR_UNAVAILABLE, CREDENTIALS, "the credentials have expired" },
	{ "InvalidToken", ERR_UNAVAILABLE, CREDENTIALS, "the session token is not valid" },
	{ "InvalidClientTokenId", ERR_UNAVAILABLE, CREDENTIALS, "the session token is not valid" },
	{ "QuotaExceeded", ERR_LIMIT, FINAL, "the bucket is full: a quota is exceeded" },
	{ "InsufficientCapacity", ERR_LIMIT, FINAL, "the store is full" },
	{ "XMinioStorageFull", ERR_LIMIT, FINAL, "the store is full" },
	{ "EntityTooLarge", ERR_LIMIT, FINAL, "the object is larger than the store takes" },
	{ "NotImplemented", ERR_UNSUPPORTED, FINAL, NULL },
	{ "MethodNotAllowed", ERR_UNSUPPORTED, FINAL, NULL },
	{ "SlowDown", ERR_UNAVAILABLE, AGAIN, "the store is busy (SlowDown)" },
	{ "RequestTimeout", ERR_UNAVAILABLE, AGAIN, NULL }, /* with 400 */
	{ "BadDigest", ERR_CORRUPT, AGAIN, "the body was changed on its way to the store" },
	{ "XAmzContentSHA256Mismatch", ERR_CORRUPT, AGAIN,
		"the body was changed on its way to the store" },
	{ "IncompleteBody", ERR_UNAVAILABLE, AGAIN, NULL },
};
/* clang-format on */

/* ---- times ---- */

bool answer_time_ns(struct str s, int64_t *out)
{
	char text[64];
	struct tm tm = { 0 };
	const char *end;

	if (!s.len || s.len >= sizeof(text))
		return false;
	memcpy(text, s.ptr, s.len);
	text[s.len] = '\0';
	end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm);
	if (!end || *end || tm.tm_year < 70 || tm.tm_year > 1000)
		return false;
	*out = (int64_t)timegm(&tm) * NS_PER_S;
	return true;
}

bool answer_date_ns(const struct bucket_answer *a, int64_t *out)
{
	return answer_time_ns(answer_header(a, "date"), out);
}

static int64_t bucket_answer_asked_pause(const struct bucket_answer *a)
{
	uint64_t seconds;

	if (!str_to_u64(answer_header(a, "retry-after"), &seconds))
		return 0;
	return seconds > PAUSE_ASKED_MAX_NS / NS_PER_S ? PAUSE_ASKED_MAX_NS :
													 (int64_t)seconds * NS_PER_S;
}

/* ---- words ---- */

/* The store's text as one short line: it may hold anything. */
static void bucket_answer_print_safe(struct buf *out, struct str s)
{
	for (size_t i = 0; i < s.len && i < MESSAGE_BYTES_MAX; i++) {
		unsigned char c = (unsigned char)s.ptr[i];

		buf_add_char(out, c < ' ' || c > '~' ? '?' : (char)c);
	}
	if (s.len > MESSAGE_BYTES_MAX)
		buf_add_cstr(out, "...");
}

static void bucket_answer_print_skew(struct buf *out, const struct bucket_answer *a)
{
	int64_t ours = clock_system_ns() / NS_PER_S * NS_PER_S, theirs;

	buf_add_cstr(out, "the clocks differ too much: ours says ");
	time_print_rfc3339(out, ours);
	if (!answer_date_ns(a, &theirs))
		return;
	buf_add_cstr(out, ", the store's ");
	time_print_rfc3339(out, theirs);
	buf_add_cstr(out, ours > theirs ? ", ours is fast by " : ", ours is slow by ");
	duration_print(out, ours > theirs ? ours - theirs : theirs - ours);
}

static const char *const region_codes[] = { "AuthorizationHeaderMalformed", "PermanentRedirect",
	"TemporaryRedirect", "IllegalLocationConstraintException", NULL };

static bool bucket_answer_is_one_of(const char *code, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(code, *list) == 0)
			return true;
	return false;
}

static void bucket_answer_print_region(struct buf *out, const struct bucket *b,
	const struct bucket_answer *a, const struct xml_node *error)
{
	struct str region = xml_text(error, "Region"), endpoint = xml_text(error, "Endpoint");

	if (!region.len)
		region = answer_header(a, "x-amz-bucket-region");
	buf_printf(out, "the bucket is elsewhere: asked in region " STR_FMT, STR_ARG(b->c.region));
	if (region.len) {
		buf_add_cstr(out, ", it is in ");
		bucket_answer_print_safe(out, region);
	}
	if (endpoint.len) {
		buf_add_cstr(out, ", endpoint ");
		bucket_answer_print_safe(out, endpoint);
	}
}

/* A token service may repeat the token, so its message is left out. */
static void bucket_answer_print_store(
	struct buf *out, const struct bucket_call *c, const struct xml_node *error)
{
	struct str message = xml_text(error, "Message");

	if (strcmp(c->operation, "assume_role") == 0)
		message = STR("");
	buf_printf(out, "the store answers %d", c->answer.status);
	if (c->code[0])
		buf_printf(out, " %s", c->code);
	if (message.len) {
		buf_add_cstr(out, ": ");
		bucket_answer_print_safe(out, message);
	}
}

/* ---- codes ---- */

/* Only what a code may hold, so that it can be printed and compared. */
static void bucket_answer_set_code(struct bucket_call *c, struct str code)
{
	size_t n = code.len < sizeof(c->code) - 1 ? code.len : 0;

	for (size_t i = 0; i < n; i++)
		if (!((code.ptr[i] | 0x20) >= 'a' && (code.ptr[i] | 0x20) <= 'z') &&
			!(code.ptr[i] >= '0' && code.ptr[i] <= '9'))
			n = 0;
	memcpy(c->code, code.len ? code.ptr : "", n);
	c->code[n] = '\0';
}

/* Answers without a body (HEAD), and those of proxies. */
static const char *bucket_answer_code_of_status(int status)
{
	switch (status) {
	case 403:
		return "AccessDenied";
	case 404:
		return "NoSuchKey";
	case 412:
		return "PreconditionFailed";
	case 416:
		return "InvalidRange";
	case 429:
	case 503:
		return "SlowDown";
	case 507:
		return "InsufficientCapacity";
	default:
		return "";
	}
}

static const struct meaning *bucket_answer_meaning_of(const char *code)
{
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (strcmp(meanings[i].code, code) == 0)
			return &meanings[i];
	return NULL;
}

static struct bucket_verdict bucket_judge(
	struct bucket *b, struct bucket_call *c, const struct xml_node *error, struct err *err)
{
	const struct bucket_answer *a = &c->answer;
	struct bucket_verdict v = { .rc = ERR_UNAVAILABLE };
	const struct meaning *m;
	struct buf words = { 0 };

	bucket_answer_set_code(c, xml_text(error, "Code"));
	if (!c->code[0])
		snprintf(c->code, sizeof(c->code), "%s", bucket_answer_code_of_status(a->status));
	m = bucket_answer_meaning_of(c->code);
	if (m) {
		v.rc = m->rc;
		v.again = m->kind == AGAIN;
		v.credentials = m->kind == CREDENTIALS;
	}
	if (a->status >= 500 && a->status != 501 && a->status != 505 && a->status != 507)
		v.again = true;
	if (a->status == 408 || a->status == 429)
		v.again = true;
	if (v.again)
		v.pause_ns = bucket_answer_asked_pause(a);
	if (m && m->words) {
		buf_add_cstr(&words, m->words);
	} else if (strcmp(c->code, "RequestTimeTooSkewed") == 0) {
		bucket_answer_print_skew(&words, a);
	} else if (strcmp(c->code, "AccessDenied") == 0) {
		buf_printf(&words, "access denied: the credentials do not allow %s", c->right);
	} else if (bucket_answer_is_one_of(c->code, region_codes) || a->status == 301 ||
		a->status == 307) {
		bucket_answer_print_region(&words, b, a, error);
	} else {
		bucket_answer_print_store(&words, c, error);
	}
	if (buf_failed(&words))
		v.rc = err_nomem(err, "answer");
	else
		err_set(err, v.rc, STR_FMT, STR_ARG(buf_str(&words)));
	buf_release(&words);
	return v;
}

struct bucket_verdict answer_judge_error(
	struct bucket *b, struct bucket_call *c, struct str body, struct err *err)
{
	struct xml_node *root = NULL;
	struct bucket_verdict v;
	struct arena arena;

	arena_init(&arena, 0);
	if (body.len && xml_parse(&arena, body, &root, NULL))
		root = NULL; /* a page of a proxy */
	if (root && str_is(root->name, "ErrorResponse")) /* of a token service */
		v = bucket_judge(b, c, xml_child(root, "Error"), err);
	else
		v = bucket_judge(b, c, root && str_is(root->name, "Error") ? root : NULL, err);
	arena_release(&arena);
	return v;
}

struct bucket_verdict answer_judge(struct bucket *b, struct bucket_call *c, struct err *err)
{
	struct bucket_answer *a = &c->answer;

	c->code[0] = '\0';
	if (a->rc) {
		err_copy(err, &a->err);
		return (struct bucket_verdict){ .rc = a->rc,
			.again = a->rc == ERR_TIMEOUT || a->rc == ERR_UNAVAILABLE };
	}
	if (a->status / 100 == 2)
		return (struct bucket_verdict){ ERR_OK };
	return answer_judge_error(b, c, buf_str(&a->body), err);
}
