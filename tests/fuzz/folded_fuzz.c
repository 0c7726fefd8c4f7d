/*
 * fuzz: proto/folded
 * Stacks by name: the first byte is the format, or says that the rest are parameters. Profiles
 * that are read must be sound and must come back from their encoding.
 */
#include "proto/folded/folded.h"
#include "proto/folded/ingest.h"
#include "tests/fuzz/fuzz.h"

#define ARENA_BYTES (64u << 20)

static const struct folded_meaning meaning = {
	.type = { "samples", 7 }, .unit = { "count", 5 }, .scale = 3
};

static int64_t check(const struct pprof *p)
{
	int64_t sum = 0;

	require(p->types_n == 1 && !p->mappings_n && !p->labels_n);
	for (uint32_t i = 0; i < p->samples_n; i++) {
		const struct pprof_sample *s = &p->samples[i];

		require(s->location_first <= p->location_ids_n &&
			s->location_n <= p->location_ids_n - s->location_first);
		require(p->values[i] > 0 && !__builtin_add_overflow(sum, p->values[i], &sum));
	}
	for (uint32_t i = 0; i < p->location_ids_n; i++)
		require(p->location_ids[i] < p->locations_n);
	for (uint32_t i = 0; i < p->locations_n; i++)
		require(p->locations[i].line_n == 1 &&
			p->lines[p->locations[i].line_first].function < p->functions_n);
	return sum;
}

static void check_encoding(struct arena *a, const struct pprof *p)
{
	struct buf wire = { 0 };
	struct pprof *again;
	struct err err;

	require(!pprof_encode(p, &wire, &err));
	require(!pprof_decode(a, buf_str(&wire), &pprof_limits_default, &again, &err));
	require(again->samples_n == p->samples_n && again->location_ids_n == p->location_ids_n);
	buf_release(&wire);
}

static void check_params(struct arena *a, struct str body)
{
	struct ingest_sample_type *types = NULL;
	struct ingest_name name = { 0 };
	struct err err = { 0 };
	int64_t ns = -1;
	uint32_t n = 0;

	if (ingest_name_parse(a, body, &name, &err))
		require(err.msg[0] && !name.app.ptr);
	else
		require(name.app.len && labels_are_set(name.labels));
	err.msg[0] = '\0';
	require(ingest_time_parse(body, &ns, &err) ? err.msg[0] && ns == -1 : ns >= 0);
	err.msg[0] = '\0';
	if (ingest_sample_types_parse(a, body, &types, &n, &err))
		require(err.msg[0] && !types && !n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct folded_profile *v = NULL;
	struct err err = { 0 };
	struct arena a;
	struct str body;
	uint32_t n = 0;

	if (!size)
		return 0;
	body = (struct str){ (const char *)data + 1, size - 1 };
	arena_init(&a, ARENA_BYTES);
	if (data[0] % 6 == 5)
		check_params(&a, body);
	else if (folded_decode(&a, (enum folded_format)(data[0] % 6), body, &meaning,
				 &pprof_limits_default, &v, &n, &err))
		require(err.msg[0] && !v && !n);
	for (uint32_t i = 0; i < n; i++) {
		/* Bytes and times of speedscope are not scaled. */
		require(check(v[i].profile) % meaning.scale == 0 || data[0] % 6 == FOLDED_SPEEDSCOPE);
		check_encoding(&a, v[i].profile);
	}
	arena_release(&a);
	return 0;
}
