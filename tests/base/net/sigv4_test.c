/* Signatures: the worked examples of AWS's documents, then drawn requests against Python and curl.
 */
#include "base/net/sigv4.h"

#include "base/clock.h"
#include "tests/base/net/http_pair.h"
#include "tests/check.h"
#include "tests/oracle.h"

#define EMPTY_HASH "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define MAY_2013_S 1369353600 /* 20130524T000000Z */
#define AUGUST_2015_S 1440938160 /* 20150830T123600Z */

static const struct sigv4_credentials s3_example = {
	STR("AKIAIOSFODNN7EXAMPLE"), STR("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), STR("") };
static const struct sigv4_credentials iam_example = {
	STR("AKIDEXAMPLE"), STR("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"), STR("") };

static struct arena arena;
static struct err err;

/* ---- the documents' examples ---- */

struct example {
	const char *method, *path;
	struct label query[3], headers[4];
	const char *body, *names, *signature;
};

/* clang-format off */
static const struct example s3_examples[] = {
	{ "GET", "/test.txt", { { { NULL, 0 }, { NULL, 0 } } },
		{ { STR("Host"), STR("examplebucket.s3.amazonaws.com") },
			{ STR("Range"), STR("bytes=0-9") } },
		"", "host;range;x-amz-content-sha256;x-amz-date",
		"f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41" },
	{ "PUT", "/test$file.text", { { { NULL, 0 }, { NULL, 0 } } },
		{ { STR("Date"), STR("Fri, 24 May 2013 00:00:00 GMT") },
			{ STR("Host"), STR("examplebucket.s3.amazonaws.com") },
			{ STR("x-amz-storage-class"), STR("REDUCED_REDUNDANCY") } },
		"Welcome to Amazon S3.",
		"date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
		"98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd" },
	{ "GET", "/", { { STR("lifecycle"), STR("") } },
		{ { STR("Host"), STR("examplebucket.s3.amazonaws.com") } },
		"", "host;x-amz-content-sha256;x-amz-date",
		"fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543" },
	{ "GET", "/", { { STR("prefix"), STR("J") }, { STR("max-keys"), STR("2") } },
		{ { STR("Host"), STR("examplebucket.s3.amazonaws.com") } },
		"", "host;x-amz-content-sha256;x-amz-date",
		"34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7" },
};
/* clang-format on */

static size_t count(const struct label *v, size_t max)
{
	size_t n = 0;

	while (n < max && v[n].name.len)
		n++;
	return n;
}

TEST(s3_documents_examples)
{
	const struct sigv4_scope scope = { STR("us-east-1"), STR("s3"), MAY_2013_S };

	for (size_t i = 0; i < sizeof(s3_examples) / sizeof(s3_examples[0]); i++) {
		const struct example *e = &s3_examples[i];
		char hash[SIGV4_HASH_LEN + 1], want[512];
		struct sigv4_request r = { .method = e->method,
			.path = str_of(e->path),
			.query = { e->query, count(e->query, 3) },
			.headers = { e->headers, count(e->headers, 4) },
			.payload_hash = { hash, SIGV4_HASH_LEN },
			.hash_header = true };
		struct labels made;

		sigv4_hash(str_of(e->body), hash);
		arena_init(&arena, 0);
		REQUIRE_OK(sigv4_sign(&arena, &s3_example, &scope, &r, &made, &err), &err);
		REQUIRE(made.n == 3);
		CHECK_STR(made.v[0].name, "x-amz-date");
		CHECK_STR(made.v[0].value, "20130524T000000Z");
		CHECK_STR(made.v[1].name, "x-amz-content-sha256");
		CHECK_STR(made.v[1].value, hash);
		snprintf(want, sizeof(want),
			"AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
			"SignedHeaders=%s, Signature=%s",
			e->names, e->signature);
		CHECK_STR(made.v[2].value, want);
		arena_release(&arena);
	}
}

TEST(iam_documents_example_step_by_step)
{
	static const struct label headers[] = { { STR("Host"), STR("iam.amazonaws.com") },
		{ STR("Content-Type"), STR("application/x-www-form-urlencoded; charset=utf-8") },
			{ STR("X-Amz-Date"), STR("20150830T123600Z") } };
	static const struct label query[] = {
		{ STR("Version"), STR("2010-05-08") }, { STR("Action"), STR("ListUsers") } };
	const struct sigv4_scope scope = { STR("us-east-1"), STR("iam"), AUGUST_2015_S };
	const struct sigv4_request r = {
		"GET", STR("/"), { query, 2 }, { headers, 3 }, STR(EMPTY_HASH), false };
	struct buf canonical = { 0 }, names = { 0 }, text = { 0 };
	char signature[SIGV4_HASH_LEN + 1];

	REQUIRE_OK(sigv4_canonical_request(&canonical, &names, &r, &err), &err);
	CHECK_STR(buf_str(&names), "content-type;host;x-amz-date");
	CHECK_STR(buf_str(&canonical),
		"GET\n/\nAction=ListUsers&Version=2010-05-08\n"
		"content-type:application/x-www-form-urlencoded; charset=utf-8\n"
		"host:iam.amazonaws.com\nx-amz-date:20150830T123600Z\n\n"
		"content-type;host;x-amz-date\n" EMPTY_HASH);
	REQUIRE_OK(sigv4_string_to_sign(&text, &scope, buf_str(&canonical), &err), &err);
	CHECK_STR(buf_str(&text),
		"AWS4-HMAC-SHA256\n20150830T123600Z\n20150830/us-east-1/iam/aws4_request\n"
		"f536975d06c0309214f805bb90ccff089219ecd68b2577efef23edd43b7e1a59");
	sigv4_signature(iam_example.secret_key, &scope, buf_str(&text), signature);
	CHECK_STR(
		str_of(signature), "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7");
	buf_release(&canonical);
	buf_release(&names);
	buf_release(&text);
}

/* ---- forms ---- */

static void check_canonical(const struct sigv4_request *r, const char *want)
{
	struct buf canonical = { 0 }, names = { 0 };

	CHECK_OK(sigv4_canonical_request(&canonical, &names, r, &err), &err);
	CHECK_STR(buf_str(&canonical), want);
	buf_release(&canonical);
	buf_release(&names);
}

TEST(headers_are_sorted_trimmed_and_joined)
{
	static const struct label headers[] = { { STR("My-Header2"), STR("  \"a   b   c\"  ") },
		{ STR("Zoo"), STR("z") },
			{ STR("HOST"), STR("h") },
				{ STR("zoo"), STR("p") },
					{ STR("my-header"), STR("") }, { STR("Zoo"), STR(" a  ") } };
	const struct sigv4_request r = {
		"GET", STR("/"), { NULL, 0 }, { headers, 6 }, STR(SIGV4_UNSIGNED_PAYLOAD), false };

	check_canonical(&r,
		"GET\n/\n\nhost:h\nmy-header:\nmy-header2:\"a b c\"\nzoo:z,p,a\n\n"
		"host;my-header;my-header2;zoo\nUNSIGNED-PAYLOAD");
}

TEST(path_is_encoded_once_and_keeps_its_dots_and_slashes)
{
	static const struct label headers[] = { { STR("host"), STR("h") } };
	static const struct label query[] = { { STR("b"), STR("2") },
		{ STR("a"), STR("b c") },
			{ STR("a"), STR("+/=") }, { STR("a0"), STR("") }, { STR("a+"), STR("\xc3\xa9") } };
	const struct sigv4_request r = { "GET",
		STR("/a//b/../\xe1\x88\xb4 %41(x)/"), { query, 5 }, { headers, 1 }, STR("-"), false };
	struct buf target = { 0 };

	check_canonical(&r,
		"GET\n/a//b/../%E1%88%B4%20%2541%28x%29/\n"
		"a=%2B%2F%3D&a=b%20c&a%2B=%C3%A9&a0=&b=2\nhost:h\n\nhost\n-");
	CHECK_OK(sigv4_print_target(&target, r.path, r.query, &err), &err);
	CHECK_STR(buf_str(&target),
		"/a//b/../%E1%88%B4%20%2541%28x%29/?a=%2B%2F%3D&a=b%20c&a%2B=%C3%A9&a0=&b=2");
	buf_release(&target);
}

TEST(session_token_is_signed)
{
	static const struct label headers[] = { { STR("host"), STR("h") } };
	const struct sigv4_scope scope = { STR("r"), STR("s3"), AUGUST_2015_S };
	struct sigv4_credentials c = iam_example;
	const struct sigv4_request r = {
		"GET", STR("/"), { NULL, 0 }, { headers, 1 }, STR(SIGV4_UNSIGNED_PAYLOAD), true };
	struct labels made;

	c.session_token = STR("TOKEN");
	arena_init(&arena, 0);
	REQUIRE_OK(sigv4_sign(&arena, &c, &scope, &r, &made, &err), &err);
	REQUIRE(made.n == 4);
	CHECK_STR(made.v[2].name, "x-amz-security-token");
	CHECK_STR(made.v[2].value, "TOKEN");
	CHECK(str_find(made.v[3].value,
		STR("SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,")) > 0);
	arena_release(&arena);
}

TEST(what_cannot_be_signed)
{
	const struct sigv4_scope early = { STR("r"), STR("s3"), -1 };
	struct sigv4_request r = { "GET", STR("/"), { NULL, 0 }, { NULL, 0 }, STR("-"), false };
	struct labels made;

	arena_init(&arena, 0);
	CHECK_ERR(sigv4_sign(&arena, &iam_example, &early, &r, &made, &err), &err, ERR_INVALID,
		"the time of a signature is out of range");
	r.path = STR("a");
	CHECK_ERR(
		sigv4_sign(&arena, &iam_example, &(struct sigv4_scope){ .time_s = 1 }, &r, &made, &err),
		&err, ERR_INVALID, "the path of a signed request does not begin with \"/\"");
	arena_release(&arena);
}

/* ---- drawn requests, against Python ---- */

#define DRAWN 400

struct random {
	uint64_t state;
};

static uint32_t random_below(struct random *d, uint32_t below)
{
	d->state = d->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(d->state >> 33) % below;
}

/* bytes: any; else letters, digits and what is special in URLs and headers */
static struct str random_text(struct random *d, bool bytes, uint32_t max)
{
	static const char set[] = "abcxyzABCXYZ019-_.~ /%+=&?:;,@$!*'()\"<>[]{}|^`#";
	size_t n = random_below(d, max + 1);
	char *p = arena_alloc(&arena, n + 1);

	for (size_t i = 0; p && i < n; i++)
		p[i] = bytes ? (char)(1 + random_below(d, 255)) : set[random_below(d, sizeof(set) - 1)];
	return (struct str){ p, n };
}

static void add_hex(struct buf *out, struct str s)
{
	buf_add_char(out, '"');
	for (size_t i = 0; i < s.len; i++)
		buf_printf(out, "%02x", (unsigned char)s.ptr[i]);
	buf_add_char(out, '"');
}

static void add_pairs(struct buf *out, struct labels v)
{
	buf_add_char(out, '[');
	for (size_t i = 0; i < v.n; i++) {
		buf_add_cstr(out, i ? ",[" : "[");
		add_hex(out, v.v[i].name);
		buf_add_char(out, ',');
		add_hex(out, v.v[i].value);
		buf_add_char(out, ']');
	}
	buf_add_char(out, ']');
}

static struct labels random_pairs(struct random *d, bool headers)
{
	static const char *const names[] = { "Host", "x-amz-meta-a", "X-Amz-Meta-B", "Range", "range",
		"If-None-Match", "content-type" };
	size_t n = random_below(d, 6);
	struct label *v = arena_array(&arena, struct label, n + 1);

	for (size_t i = 0; v && i < n; i++) {
		v[i].name = headers ? str_of(names[random_below(d, 7)]) : random_text(d, true, 8);
		v[i].value = random_text(d, !headers, 12);
	}
	return (struct labels){ v, n };
}

/* One request: its line for Python, and the line that Python should print. */
static void draw_one(struct random *d, struct buf *in, struct buf *want)
{
	static const char *const methods[] = { "GET", "PUT", "POST", "HEAD", "DELETE" };
	struct sigv4_credentials c = { random_text(d, false, 20), random_text(d, true, 90), STR("") };
	struct sigv4_scope scope = { STR("eu-central-1"), STR("s3"), random_below(d, 2000000000) };
	struct sigv4_request r = { .method = methods[random_below(d, 5)],
		.query = random_pairs(d, false),
		.headers = random_pairs(d, true),
		.hash_header = true };
	char hash[SIGV4_HASH_LEN + 1], *path;
	struct str tail = random_text(d, true, 40);
	struct labels made;
	struct label *all;

	sigv4_hash(random_text(d, true, 100), hash);
	r.payload_hash = random_below(d, 2) ? str_of(hash) : STR(SIGV4_UNSIGNED_PAYLOAD);
	path = arena_printf(&arena, "/" STR_FMT, STR_ARG(tail));
	r.path = (struct str){ path, tail.len + 1 };
	REQUIRE_OK(sigv4_sign(&arena, &c, &scope, &r, &made, &err), &err);
	all = arena_array(&arena, struct label, r.headers.n + made.n);
	for (size_t i = 0; i < r.headers.n; i++)
		all[i] = r.headers.v[i];
	for (size_t i = 0; i + 1 < made.n; i++)
		all[r.headers.n + i] = made.v[i];
	buf_printf(in, "[\"%s\",", r.method);
	add_hex(in, r.path);
	buf_add_char(in, ',');
	add_pairs(in, r.query);
	buf_add_char(in, ',');
	add_pairs(in, (struct labels){ all, r.headers.n + made.n - 1 });
	buf_printf(in, ",\"" STR_FMT "\",\"" STR_FMT "\",\"eu-central-1\",\"s3\",",
		STR_ARG(r.payload_hash), STR_ARG(made.v[0].value));
	add_hex(in, c.access_key);
	buf_add_char(in, ',');
	add_hex(in, c.secret_key);
	buf_add_cstr(in, "]\n");
	REQUIRE_OK(sigv4_print_target(want, r.path, r.query, &err), &err);
	buf_printf(want, " " STR_FMT "\n", STR_ARG(made.v[made.n - 1].value));
}

TEST(drawn_requests_as_python_signs_them)
{
	struct buf in = { 0 }, want = { 0 }, got = { 0 };
	struct random d = { 1 };
	const char *dir = oracle_dir();

	REQUIRE(dir);
	arena_init(&arena, 0);
	for (int i = 0; i < DRAWN; i++)
		draw_one(&d, &in, &want);
	REQUIRE(oracle_write(buf_str(&in), dir, "requests"));
	REQUIRE(oracle_run(
		&got, "PYTHONUTF8=1 python3 tests/base/net/sigv4_oracle.py <'%s/requests' 2>&1", dir));
	CHECK(str_eq(buf_str(&got), buf_str(&want)));
	for (size_t a = 0, i = 0; i < got.len && i < want.len; i++) {
		if (got.ptr[i] != want.ptr[i]) {
			CHECK_FAIL("first difference:\n%.*s\n%.*s",
				(int)(got.len - a < 900 ? got.len - a : 900), got.ptr + a,
				(int)(want.len - a < 900 ? want.len - a : 900), want.ptr + a);
			break;
		}
		if (got.ptr[i] == '\n')
			a = i + 1;
	}
	arena_release(&arena);
	buf_release(&in);
	buf_release(&want);
	buf_release(&got);
}

/* ---- curl ---- */

static struct str header_of(struct str head, const char *name, char *to, size_t size)
{
	ptrdiff_t at = str_find(head, str_of(name));
	size_t n = 0;

	if (at >= 0)
		for (head.ptr += at + strlen(name); head.ptr[n] != '\r' && n + 1 < size; n++)
			to[n] = head.ptr[n];
	to[n] = '\0';
	return (struct str){ to, n };
}

static int64_t time_of(struct str s) /* 20130524T000000Z */
{
	struct tm tm = { 0 };

	strptime(s.ptr, "%Y%m%dT%H%M%SZ", &tm);
	return timegm(&tm);
}

TEST(as_curl_signs_it)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
	char host[64], date[32], authorization[512];
	const struct sigv4_credentials c = { STR("AK"), STR("SECRET"), STR("") };
	struct sigv4_scope scope = { STR("r-1"), STR("s3"), 0 };
	struct label headers[1] = { { STR("host"), STR("") } };
	const struct label query[] = { { STR("prefix"), STR("a.b") }, { STR("list-type"), STR("2") } };
	struct sigv4_request r = {
		"GET", STR("/bucket/key"), { query, 2 }, { headers, 1 }, STR(EMPTY_HASH), true };
	struct buf out = { 0 }, sent = { 0 };
	struct labels made;

	REQUIRE(http_server_start(&server, script_answers, (void *)(uintptr_t)answer, NULL));
	REQUIRE(oracle_run(&out,
		"curl -s --noproxy '*' --aws-sigv4 aws:amz:r-1:s3 --user AK:SECRET -H "
		"'x-amz-content-sha256: " EMPTY_HASH
		"' 'http://127.0.0.1:%u/bucket/key?list-type=2&prefix=a.b' 2>&1",
		server.port));
	http_server_last(&server, &sent);
	arena_init(&arena, 0);
	headers[0].value = header_of(buf_str(&sent), "\r\nHost: ", host, sizeof(host));
	scope.time_s = time_of(header_of(buf_str(&sent), "\r\nX-Amz-Date: ", date, sizeof(date)));
	CHECK(scope.time_s > MAY_2013_S);
	REQUIRE_OK(sigv4_sign(&arena, &c, &scope, &r, &made, &err), &err);
	CHECK_STR(
		header_of(buf_str(&sent), "\r\nAuthorization: ", authorization, sizeof(authorization)),
		made.v[2].value.ptr);
	arena_release(&arena);
	buf_release(&out);
	buf_release(&sent);
	http_server_stop(&server);
}
