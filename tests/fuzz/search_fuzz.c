/*
 * fuzz: web/render
 * A line with an expression, and a profile in any format: a search for it counts no more than the
 * profile has, and each path that it finds ends in a match, the heaviest first. An expression that
 * cannot be is refused with words.
 */
#include <string.h>

#include "proto/any/any.h"
#include "tests/fuzz/fuzz.h"
#include "tsdb/symbols/partition.h"
#include "web/render/heaviest.h"
#include "web/render/search.h"

#define ARENA_BYTES (256u << 20)

static bool read_profile(
	struct arena *a, struct partition *partition, const struct pprof *p, struct profile_value *out)
{
	enum value_kind *kinds = arena_array(a, enum value_kind, p->types_n);
	struct part *part = arena_new(a, struct part);
	uint32_t *header = arena_new(a, uint32_t);
	struct interned in;
	struct err err;

	if (!kinds || !part || !header || sym_intern_profile(partition, p, kinds, a, &in, &err) ||
		!(part->cells = arena_array(a, struct cell, in.n + 1)))
		return false;
	*header = in.header;
	part->partition = partition;
	part->headers = header;
	part->headers_n = 1;
	for (uint32_t i = 0; i < in.n; i++)
		part->cells[part->n++] = (struct cell){ .stack = (uint32_t)(in.keys[i] >> 32),
			.label_set = (uint32_t)in.keys[i],
			.value = p->values[(size_t)in.samples[i] * p->types_n] % (INT64_C(1) << 40) };
	*out = (struct profile_value){ .parts = part, .parts_n = 1 };
	return true;
}

static void check_found(const struct profile_value *p, const struct regex *re, struct arena *a)
{
	struct search_found found;
	int64_t total = 0, last = INT64_MAX;
	struct err err;

	if (search_profile(p, re, NULL, a, &found, &err)) {
		require(err.msg[0]);
		return;
	}
	for (size_t i = 0; i < p->parts[0].n; i++)
		total += p->parts[0].cells[i].value;
	require(found.stacks <= p->parts[0].n && found.paths_n <= SEARCH_PATHS_MAX);
	require(!heaviest_can(p) || (found.total[0] >= 0 && found.total[0] <= total));
	for (size_t i = 0; i < found.paths_n; i++) {
		const struct search_path *path = &found.paths[i];

		require(path->n > 0 && path->total[0] > 0 && path->total[0] <= last);
		require(!heaviest_can(p) || path->total[0] <= found.total[0]);
		for (size_t k = 0; k < path->n; k++)
			require(path->frames[k] < found.names_n);
		require(regex_match(re, found.names[path->frames[path->n - 1]]));
		last = path->total[0];
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct symbol_limits limits = { 1u << 20, 1u << 20, 65536, (uint64_t)1 << 30 };
	const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
	size_t text_n = end ? (size_t)(end - data) : size;
	struct partition *partition = NULL;
	struct profile_value p;
	struct regex *re = NULL;
	struct any_file file;
	struct arena a;
	struct err err = { 0 };

	if (search_compile((struct str){ (const char *)data, text_n }, &re, &err)) {
		require(err.msg[0] && !re);
		return 0;
	}
	arena_init(&a, ARENA_BYTES);
	require(!partition_open(STR("a"), 0, 0, &limits, &partition, &err));
	if (end &&
		!any_decode(&a, (struct str){ (const char *)end + 1, size - text_n - 1 },
			STR("x"), &file, &err) && read_profile(&a, partition, file.v[0].pprof, &p))
		check_found(&p, re, &a);
	partition_close(partition);
	arena_release(&a);
	regex_free(re);
	return 0;
}
