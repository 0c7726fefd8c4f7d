/*
 * fuzz: web/annotations
 * A mark as JSON of any bytes: what is taken keeps the limits, and becomes a profile.
 */
#include "base/clock.h"
#include "proto/annotation.h"
#include "scrape/receive/receive.h"
#include "tests/fuzz/fuzz.h"
#include "web/annotations/annotation_request.h"

#define NOW_NS (INT64_C(1700000000) * NS_PER_S)

static void check_request(const struct annotation_request *r)
{
	require(r->text.len && r->text.len <= ANNOTATION_TEXT_BYTES_MAX && str_is_utf8(r->text));
	require(r->time_ns >= 0 && r->time_ns < TIME_MAX_NS);
	require(!r->end_ns || r->end_ns >= (r->time_ns ? r->time_ns : NOW_NS));
	require(r->labels.n < RECEIVE_LABELS_MAX && labels_are_set(r->labels));
	for (size_t i = 0; i < r->labels.n; i++) {
		require(label_name_valid(r->labels.v[i].name));
		require(!str_has_prefix(r->labels.v[i].name, STR("__")));
		require(label_value_valid(r->labels.v[i].value));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct annotation_request r;
	struct err err = { 0 };
	struct pprof *p;
	struct arena a;

	if (size > ANNOTATION_BODY_BYTES_MAX)
		return 0;
	arena_init(&a, 64u << 20);
	if (annotation_request_of_json(
			(struct str){ (const char *)data, size }, NOW_NS, &a, &r, &err)) {
		require(err.msg[0]);
	} else {
		check_request(&r);
		require(
			!annotation_profile(&a, r.text, r.time_ns, r.end_ns ? r.end_ns : r.time_ns, &p, &err));
		require(p->samples_n == 1 && str_eq(p->strings[p->functions[0].name], r.text));
	}
	arena_release(&a);
	return 0;
}
