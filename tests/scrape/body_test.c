#include "base/gzip/gzip.h"
#include "scrape/body.h"
#include "tests/check.h"
#include "tests/scrape/http_target.h"

struct bodies {
	struct arena arena;
	struct buf wire, gzip, twice;
};

static void bodies_init(struct bodies *b)
{
	struct err err;

	*b = (struct bodies){ 0 };
	arena_init(&b->arena, 0);
	http_target_profile(&b->wire, 3, false);
	CHECK_OK(gzip_compress(buf_str(&b->wire), 6, &b->gzip, &err), &err);
	CHECK_OK(gzip_compress(buf_str(&b->gzip), 6, &b->twice, &err), &err);
}

static void bodies_release(struct bodies *b)
{
	buf_release(&b->wire);
	buf_release(&b->gzip);
	buf_release(&b->twice);
	arena_release(&b->arena);
}

static enum err_code decode(
	struct bodies *b, struct str body, const char *encoding, size_t raw_max, struct err *err)
{
	struct pprof_limits limits = pprof_limits_default;
	struct body decoded;
	enum err_code rc;

	limits.raw_bytes_max = raw_max;
	rc = body_decode(
		&b->arena, body, STR("application/octet-stream"), str_of(encoding), &limits, &decoded, err);
	if (!rc)
		CHECK_INT(decoded.any.profile->samples_n, 3);
	return rc;
}

TEST(gzip_of_the_transport_and_of_pprof)
{
	struct bodies b;
	struct buf two = { 0 };
	struct err err;
	struct str half;

	bodies_init(&b);
	CHECK_OK(decode(&b, buf_str(&b.wire), "", 1 << 20, &err), &err);
	CHECK_OK(decode(&b, buf_str(&b.gzip), "", 1 << 20, &err), &err);
	CHECK_OK(decode(&b, buf_str(&b.gzip), "identity", 1 << 20, &err), &err);
	CHECK_OK(decode(&b, buf_str(&b.gzip), "GZIP", 1 << 20, &err), &err);
	CHECK_OK(decode(&b, buf_str(&b.twice), "x-gzip", 1 << 20, &err), &err);
	CHECK_OK(decode(&b, buf_str(&b.gzip), "gzip", b.wire.len, &err), &err);
	half = (struct str){ b.wire.ptr, b.wire.len / 2 };
	CHECK_OK(gzip_compress(half, 6, &two, &err), &err);
	half = (struct str){ b.wire.ptr + half.len, b.wire.len - half.len };
	CHECK_OK(gzip_compress(half, 6, &two, &err), &err);
	CHECK_OK(decode(&b, buf_str(&two), "gzip", 1 << 20, &err), &err); /* two members */
	buf_release(&two);

	CHECK_ERR(decode(&b, buf_str(&b.gzip), "gzip", b.wire.len - 1, &err), &err, ERR_LIMIT,
		arena_printf(
			&b.arena, "profile inflates to more than its limit of %zu bytes", b.wire.len - 1));
	CHECK_ERR(decode(&b, (struct str){ b.gzip.ptr, b.gzip.len - 9 }, "gzip", 1 << 20, &err), &err,
		ERR_INVALID, "Content-Encoding gzip: the body is cut short");
	CHECK_ERR(decode(&b, buf_str(&b.wire), "gzip", 1 << 20, &err), &err, ERR_INVALID,
		"Content-Encoding gzip: incorrect header check");
	CHECK_ERR(decode(&b, STR(""), "gzip", 1 << 20, &err), &err, ERR_INVALID,
		"Content-Encoding gzip: the body is cut short");
	CHECK_ERR(decode(&b, buf_str(&b.gzip), "br", 1 << 20, &err), &err, ERR_UNSUPPORTED,
		"Content-Encoding \"br\" is not supported");
	bodies_release(&b);
}

TEST(what_is_no_profile)
{
	static const struct {
		const char *type, *body, *want;
		size_t n;
	} rows[] = {
		{ "", "<!DOCTYPE html><p>",
			"target answers a web page (Content-Type \"\"), not a profile: a login or error page "
			"may have answered; check the "
			"address and the credentials",
			0 },
		{ "text/plain", "--- contentionz\n", "contention profile (text): its first line is damaged",
			0 },
		{ "text/html", "heap_v2/x\n", "heap profile of jemalloc (text): its first line is damaged",
			0 },
		{ "", "--- heapz 1 ---\nformat = java\n",
			"a legacy heap profile of Java (text) is not supported", 0 },
		{ "", "\0\0\0\0\3\0\0\0\0\0\0\0\x10\x27\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
			"CPU profile of gperftools: sample[1] is cut off", 32 },
		{ "text/html", "hello",
			"target answers a web page (Content-Type \"text/html\"), not a profile", 0 },
		{ "x/y", "go 1.22 trace\0\0\0",
			"target answers a Go execution trace (Content-Type \"x/y\"), not a profile: use go "
			"tool trace; a CPU profile is at /debug/pprof/profile",
			16 },
		{ "text/plain", "hello", "target answers \"text/plain\", not a profile: hello", 0 },
	};
	struct arena a;
	struct body p;
	struct err err;

	arena_init(&a, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct str body = { rows[i].body, rows[i].n ? rows[i].n : strlen(rows[i].body) };

		CHECK(
			body_decode(&a, body, str_of(rows[i].type), STR(""), &pprof_limits_default, &p, &err));
		CHECK_STR(str_of(err.msg), rows[i].want);
	}
	arena_release(&a);
}
