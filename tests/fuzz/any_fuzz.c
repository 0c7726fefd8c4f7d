/*
 * fuzz: proto/any
 * A file of any bytes: what is read are profiles with types, each column with a kind, whose samples
 * stay within their tables. An error has words, and says nothing was read.
 */
#include "proto/any/any.h"
#include "tests/fuzz/fuzz.h"

#define ARENA_BYTES (256u << 20)

static void check(const struct any_profile *p)
{
	const struct pprof *f = p->pprof;

	require(p->name.len && f->types_n && p->kinds);
	for (uint32_t i = 0; i < f->types_n; i++) {
		require(p->kinds[i] <= KIND_CUMULATIVE);
		require(f->types[i].type < f->strings_n && f->types[i].unit < f->strings_n);
	}
	require(f->period_type.type < f->strings_n && f->period_type.unit < f->strings_n);
	require(f->default_sample_type < f->strings_n);
	for (uint32_t i = 0; i < f->samples_n; i++) {
		const struct pprof_sample *s = &f->samples[i];

		require(s->location_first <= f->location_ids_n &&
			s->location_n <= f->location_ids_n - s->location_first);
		require(s->label_first <= f->labels_n && s->label_n <= f->labels_n - s->label_first);
		for (uint32_t k = 0; k < s->location_n; k++)
			require(f->location_ids[s->location_first + k] < f->locations_n);
	}
	for (uint32_t i = 0; i < f->labels_n; i++)
		require(f->labels[i].key < f->strings_n && f->labels[i].str < f->strings_n);
	for (uint32_t i = 0; i < f->locations_n; i++)
		require(f->locations[i].line_first <= f->lines_n &&
			f->locations[i].line_n <= f->lines_n - f->locations[i].line_first);
	for (uint32_t i = 0; i < f->lines_n; i++)
		require(f->lines[i].function < f->functions_n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct any_file file;
	struct err err = { 0 };
	struct arena a;

	arena_init(&a, ARENA_BYTES);
	if (any_decode(&a, (struct str){ (const char *)data, size }, STR("x"), &file, &err)) {
		require(err.msg[0]);
	} else {
		require(file.n && file.format < ANY_FORMATS);
		for (uint32_t i = 0; i < file.n; i++)
			check(&file.v[i]);
		check(any_default(&file));
	}
	arena_release(&a);
	return 0;
}
