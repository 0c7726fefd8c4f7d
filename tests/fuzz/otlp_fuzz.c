/*
 * fuzz: proto/otlp
 * Requests in both forms: JSON if they begin with "{". What is accepted must be sound: every index
 * within its array, and each profile a body that pprof's own decoder reads. Some attributes are
 * dropped.
 */
#include "proto/otlp/otlp.h"
#include "tests/fuzz/fuzz.h"
#include "tests/proto/otlp/show.c"

#define ARENA_BYTES (256u << 20)

static void check_encoding(struct arena *a, const struct pprof *p)
{
	struct buf wire = { 0 };
	struct pprof *again;
	struct err err;

	require(!pprof_encode(p, &wire, &err));
	require(!pprof_decode(a, buf_str(&wire), &pprof_limits_default, &again, &err));
	require(again->samples_n == p->samples_n && again->labels_n == p->labels_n &&
		again->location_ids_n == p->location_ids_n && again->lines_n == p->lines_n);
	for (uint64_t i = 0; i < (uint64_t)p->samples_n * p->types_n; i++)
		require(again->values[i] == p->values[i]);
	buf_release(&wire);
}

static bool keep_most(void *ctx, struct str *key)
{
	(void)ctx;
	return !str_is(*key, "thread.id") && !str_is(*key, "k");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct otlp_options options = { &otlp_limits_default, keep_most, NULL };
	struct str raw = { (const char *)data, size };
	struct buf text = { 0 };
	struct otlp_request *r;
	struct err err = { 0 };
	enum err_code rc;
	struct arena a;

	arena_init(&a, ARENA_BYTES);
	if (size && data[0] == '{')
		rc = otlp_decode_json(&a, raw, &options, &r, &err);
	else
		rc = otlp_decode(&a, raw, &options, &r, &err);
	if (rc) {
		require(err.msg[0] != '\0' && err.code == rc);
	} else {
		check_request(r);
		for (uint32_t i = 0; i < r->profiles_n; i++)
			check_encoding(&a, r->profiles[i].pprof);
		show_request(&a, r, &text);
		otlp_add_response(&text, OTLP_JSON, r->rejected_n, str_of(r->rejected.msg));
	}
	buf_release(&text);
	arena_release(&a);
	return 0;
}
