/*
 * The probe puts an object with a name of its own, reads and lists it, and tries puts that their
 * conditions must refuse. A store that ignores a condition would let two servers own one thing.
 */
#include <stdio.h>

#include "base/clock.h"
#include "tsdb/bucket/internal.h"

#define PROBE_PREFIX "probe/"
#define FIRST "first"
#define SECOND "second"
#define WRONG_ETAG "\"00000000000000000000000000000000\""

struct probe {
	struct bucket *b;
	struct str key;
	char etag[BUCKET_ETAG_BYTES_MAX];
	bool listed;
};

/* Must be refused. */
static enum err_code probe_check_refused(struct probe *p, const char *bytes,
	enum bucket_condition condition, const char *if_etag, const char *header, struct err *err)
{
	enum err_code rc = bucket_put(p->b, p->key, str_of(bytes), condition, if_etag, NULL, err);

	if (rc == ERR_EXISTS)
		return ERR_OK;
	if (!rc)
		rc = err_set(err, ERR_UNSUPPORTED,
			"the store ignores %s on puts: several servers must not share this bucket", header);
	return rc;
}

static enum err_code probe_check_writes(struct probe *p, struct err *err)
{
	enum err_code rc;

	if ((rc = bucket_put(p->b, p->key, STR(FIRST), BUCKET_IF_ABSENT, NULL, p->etag, err)))
		return rc;
	if (!p->etag[0])
		return err_set(err, ERR_UNSUPPORTED, "the store gives no ETag for a put");
	if ((rc = probe_check_refused(p, SECOND, BUCKET_IF_ABSENT, NULL, "If-None-Match", err)) ||
		(rc = probe_check_refused(p, SECOND, BUCKET_IF_ETAG, WRONG_ETAG, "If-Match", err)))
		return rc;
	rc = bucket_put(p->b, p->key, STR(SECOND), BUCKET_IF_ETAG, p->etag, p->etag, err);
	if (rc == ERR_EXISTS)
		rc = err_set(err, ERR_UNSUPPORTED,
			"the store refuses a put with If-Match and the ETag that it gave");
	return rc;
}

static enum err_code probe_check_read(
	struct probe *p, uint64_t offset, uint64_t len, const char *want, struct err *err)
{
	struct bucket_info info;
	struct buf got = { 0 };
	enum err_code rc = bucket_get(p->b, p->key, offset, len, &got, &info, err);

	if (!rc &&
		(!str_is(buf_str(&got), want) || strcmp(info.etag, p->etag) != 0 ||
			info.bytes != strlen(SECOND)))
		rc = err_set(err, ERR_CORRUPT, "the store gives other bytes than were put");
	buf_release(&got);
	return rc;
}

static enum err_code probe_on_object(void *ctx, const struct bucket_object *o, struct err *err)
{
	struct probe *p = ctx;

	p->listed |= !o->is_prefix && str_eq(o->key, p->key) && strcmp(o->info.etag, p->etag) == 0 &&
		o->info.bytes == strlen(SECOND);
	return ERR_OK;
}

static enum err_code probe_check_reads(struct probe *p, struct err *err)
{
	struct bucket_info info;
	enum err_code rc;

	if ((rc = probe_check_read(p, 0, BUCKET_TO_END, SECOND, err)) ||
		(rc = probe_check_read(p, 1, 3, "eco", err)) ||
		(rc = probe_check_read(p, 4, 100, "nd", err)) ||
		(rc = bucket_head(p->b, p->key, &info, err)) ||
		(rc = bucket_list(p->b, p->key, STR(""), STR(""), probe_on_object, p, err)))
		return rc;
	if (!p->listed)
		return err_set(err, ERR_UNSUPPORTED, "the store does not list an object that was put");
	return ERR_OK;
}

static enum err_code probe_check_deleted(struct probe *p, struct err *err)
{
	struct bucket_info info;
	enum err_code rc = bucket_delete(p->b, p->key, err);

	if (rc)
		return rc;
	rc = bucket_head(p->b, p->key, &info, err);
	if (rc == ERR_NOT_FOUND)
		return ERR_OK;
	return rc ? rc : err_set(err, ERR_UNSUPPORTED, "the store shows an object that was deleted");
}

/* Compares the store's Date with our time before and after the request. */
static enum err_code probe_check_clock(struct probe *p, struct err *err)
{
	struct bucket_call c = { .operation = "list", .right = "s3:ListBucket", .method = "GET" };
	int64_t before_ns = clock_system_ns(), after_ns, theirs_ns, off_ns = 0;
	struct buf text = { 0 };
	enum err_code rc;

	call_query(&c, "list-type", STR("2"));
	call_query(&c, "max-keys", STR("1"));
	rc = bucket_call(p->b, &c, err);
	after_ns = clock_system_ns();
	if (!rc && answer_date_ns(&c.answer, &theirs_ns)) {
		if (theirs_ns + NS_PER_S < before_ns) /* a Date has whole seconds */
			off_ns = before_ns - theirs_ns - NS_PER_S;
		else if (theirs_ns > after_ns)
			off_ns = after_ns - theirs_ns;
	}
	answer_release(&c.answer);
	if (off_ns <= BUCKET_SKEW_MAX_NS && off_ns >= -BUCKET_SKEW_MAX_NS)
		return rc;
	duration_print(&text, off_ns < 0 ? -off_ns : off_ns);
	rc = err_set(err, ERR_UNAVAILABLE, "our clock is %s by " STR_FMT " against the store's",
		off_ns < 0 ? "slow" : "fast", STR_ARG(buf_str(&text)));
	buf_release(&text);
	return rc;
}

enum err_code bucket_probe(struct bucket *b, struct err *err)
{
	char key[sizeof(PROBE_PREFIX) + PUT_NAME_LEN], name[PUT_NAME_LEN + 1];
	struct probe p = { .b = b };
	enum err_code rc;

	put_name(name);
	snprintf(key, sizeof(key), "%s%s", PROBE_PREFIX, name);
	p.key = str_of(key);
	if (!(rc = probe_check_clock(&p, err)) && !(rc = probe_check_writes(&p, err)) &&
		!(rc = probe_check_reads(&p, err)) && !(rc = probe_check_deleted(&p, err)))
		return ERR_OK;
	if (p.etag[0] && bucket_delete(b, p.key, NULL))
		p.etag[0] = '\0'; /* the object stays, under a name of its own; the error says why */
	return err_wrap(err, rc, "probe of " STR_FMT, STR_ARG(b->name));
}
