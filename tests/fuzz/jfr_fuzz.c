/*
 * fuzz: proto/jfr
 * Recordings, each behind the labels of its contexts: a u16 (big-endian) of their length, the
 * labels, the recording. What is accepted must be sound, must encode and decode again, and must
 * have as much in it as it says.
 */
#include "proto/jfr/jfr.h"
#include "tests/fuzz/fuzz.h"

#define ARENA_BYTES (64u << 20)

static void check_profile(struct arena *a, const struct jfr_profile *f)
{
	const struct pprof *p = f->pprof;
	struct buf body = { 0 };
	struct pprof *q;
	struct err err;

	require(p->types_n > 0 && p->types_n <= 12);
	for (uint32_t i = 0; i < p->types_n; i++)
		require(f->kinds[i] == KIND_DELTA || f->kinds[i] == KIND_GAUGE);
	require(p->samples_n && p->samples_n <= f->events);
	require(f->truncated <= f->events && f->without_stack <= f->events);
	for (uint32_t i = 0; i < p->samples_n; i++)
		require(p->samples[i].location_n > 0);
	for (uint64_t i = 0; i < (uint64_t)p->samples_n * p->types_n; i++)
		require(p->values[i] >= 0);
	require(!pprof_encode(p, &body, &err));
	require(!pprof_decode(a, buf_str(&body), &pprof_limits_default, &q, &err));
	require(q->samples_n == p->samples_n && q->location_ids_n == p->location_ids_n);
	require(q->labels_n == p->labels_n && q->functions_n == p->functions_n);
	buf_release(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jfr_limits limits = jfr_limits_default;
	struct jfr_options options = { .limits = &limits, .sample_rate_hz = 100, .with_spans = true };
	struct jfr_file *f;
	uint64_t events = 0;
	struct err err = { 0 };
	struct arena a;
	size_t labels;

	if (size < 2)
		return 0;
	labels = (size_t)data[0] << 8 | data[1];
	if (labels > size - 2)
		labels = size - 2;
	options.labels = (struct str){ (const char *)data + 2, labels };
	limits.arena_bytes_max = ARENA_BYTES;
	limits.stack_depth_max = 256;
	arena_init(&a, ARENA_BYTES);
	if (!jfr_decode(&a, (struct str){ (const char *)data + 2 + labels, size - 2 - labels },
			&options, &f, &err)) {
		for (uint32_t i = 0; i < f->profiles_n; i++) {
			check_profile(&a, &f->profiles[i]);
			events += f->profiles[i].events;
		}
		require(events <= 2 * f->events_n); /* an ExecutionSample may be cpu and wall */
		require(f->chunks_n > 0);
	} else {
		require(err.msg[0] != '\0');
	}
	arena_release(&a);
	return 0;
}
