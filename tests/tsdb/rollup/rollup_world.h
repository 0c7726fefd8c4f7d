/*
 * A partition for the tests of rollups: its tree has recursion, inlining, frames without names and
 * names of several functions; rows drawn in it are of several lists of types.
 */
#ifndef TESTS_TSDB_ROLLUP_WORLD_H
#define TESTS_TSDB_ROLLUP_WORLD_H

#include "base/map.h"
#include "tests/check.h"
#include "tsdb/rollup/rollup_internal.h"

static uint64_t state = 1;

static inline uint64_t draw(uint64_t below)
{
	state += UINT64_C(0x9e3779b97f4a7c15);
	return map_hash_u64(state) % below;
}

#define NODES 300u
#define SETS 4u
#define HEADERS 5u
#define ROWS 40u
#define ENTRIES 60u
#define TYPES 6u
#define HOUR INT64_C(3600000000000)

struct world {
	struct partition *p;
	uint32_t headers[HEADERS];
	uint32_t types_n[HEADERS], type[HEADERS][4]; /* of each column: which of TYPES */
};

static const struct {
	const char *type, *unit;
	enum value_kind kind;
} types[TYPES] = {
	{ "samples", "count", KIND_DELTA },
	{ "cpu", "nanoseconds", KIND_DELTA },
	{ "inuse_objects", "count", KIND_GAUGE },
	{ "inuse_space", "bytes", KIND_GAUGE },
	{ "alloc_space", "bytes", KIND_DELTA },
	{ "samples", "count", KIND_GAUGE },
};

static inline uint32_t string_id(struct partition *p, const char *s)
{
	uint32_t id = 0;

	CHECK(!sym_intern_string(p, str_of(s), &id, NULL));
	return id;
}

static inline uint32_t header_of(struct world *w, uint32_t i, const char *drop)
{
	static const uint32_t lists[HEADERS][5] = { { 2, 0, 1 }, { 2, 0, 1 }, { 3, 2, 3, 4 },
		{ 4, 1, 0, 1, 5 }, { 2, 3, 0 } };
	struct sym_type v[4];
	uint32_t id = 0, comment = string_id(w->p, i ? "b" : "a");

	w->types_n[i] = lists[i][0];
	for (uint32_t c = 0; c < w->types_n[i]; c++) {
		w->type[i][c] = lists[i][c + 1];
		v[c] = (struct sym_type){ string_id(w->p, types[lists[i][c + 1]].type),
			string_id(w->p, types[lists[i][c + 1]].unit), (uint8_t)types[lists[i][c + 1]].kind,
			false };
	}
	CHECK(!sym_intern_header(w->p,
		&(struct sym_header){ .types = v,
			.types_n = w->types_n[i],
			.drop_frames = string_id(w->p, drop),
			.comments = &comment,
			.comments_n = 1 },
		&id, NULL));
	return id;
}

static inline void add_tree(struct world *w, const char *const *names, uint32_t names_n,
	const char *const *files, uint32_t files_n)
{
	uint32_t functions[24], mappings[8], locations[60], node;
	struct sym_line lines[3];

	for (uint32_t i = 0; i < 24; i++) {
		uint32_t name = string_id(w->p, names[draw(names_n)]);

		CHECK(!sym_intern_function(w->p,
			&(struct sym_function){ .name = name, .system_name = name, .start_line = i },
			&functions[i], NULL));
	}
	for (uint32_t i = 0; i < files_n; i++)
		CHECK(!sym_intern_mapping(w->p,
			&(struct sym_mapping){ .size = i + 1, .filename = string_id(w->p, files[i]) },
			&mappings[i], NULL));
	for (uint32_t i = 0; i < 60; i++) {
		uint32_t n = (uint32_t)draw(4), mapping = (uint32_t)draw(files_n + 1);

		for (uint32_t k = 0; k < n; k++)
			lines[k] = (struct sym_line){ functions[draw(24)], (int64_t)draw(9), 0 };
		CHECK(!sym_intern_location(w->p,
			&(struct sym_location){ .address = i,
				.mapping = mapping == files_n ? SYM_NONE : mappings[mapping],
				.lines_n = n,
				.lines = lines },
			&locations[i], NULL));
	}
	while ((node = sym_nodes_n(w->p)) < NODES)
		CHECK(!sym_intern_node(w->p,
			draw(3)  ? (uint32_t)draw(node ? node : 1) :
				node ? node - 1 :
					   0,
			locations[draw(60)], &node, NULL));
	for (uint32_t i = 1; i < SETS; i++) {
		struct sym_label label = { .key = string_id(w->p, "k"), .num = i };
		bool overflow;

		CHECK(!sym_intern_label_set(
			w->p, &(struct sym_label_set){ &label, 1 }, &node, &overflow, NULL));
	}
}

static const char *const plain_names[] = { "a", "b", "c", "d", "e", "f", "", "[g]" };
static const char *const plain_files[] = { "/bin/a", "/lib/b.so", "", "/" };

static inline bool world_open(struct world *w, const char *const *names, uint32_t names_n,
	const char *const *files, uint32_t files_n, const char *drop)
{
	const struct symbol_limits limits = { 100000, 100000, 100000, 1 << 26 };
	struct err err;

	*w = (struct world){ 0 };
	if (partition_open(STR("job"), 0, 0, &limits, &w->p, &err))
		return false;
	add_tree(w, names, names_n, files, files_n);
	for (uint32_t i = 0; i < HEADERS; i++)
		w->headers[i] = header_of(w, i, i == HEADERS - 1 ? drop : "");
	return true;
}

static inline bool world_plain(struct world *w)
{
	return world_open(w, plain_names, 8, plain_files, 4, "");
}

struct one_row {
	struct row row;
	int64_t ts_ns;
	uint32_t kind; /* index of its header */
	uint32_t stacks[ENTRIES], sets[ENTRIES];
	int64_t values[ENTRIES * 4];
};

static inline int64_t small_value(uint32_t type)
{
	if (type == 4 && draw(4))
		return 0;
	return type == 1 ? (int64_t)draw(5) * 10000000 : (int64_t)draw(1000) - (draw(9) ? 0 : 1500);
}

static inline void draw_row(const struct world *w, struct one_row *r, uint32_t kinds, bool labels,
	int64_t (*value)(uint32_t type))
{
	uint32_t n = (uint32_t)draw(ENTRIES), key = 0;

	r->kind = (uint32_t)draw(kinds);
	r->ts_ns = (int64_t)draw(20) * HOUR / 20 + HOUR;
	for (uint32_t i = 0; i < n; i++) {
		key += (uint32_t)draw(NODES * SETS / ENTRIES);
		r->stacks[i] = key / SETS;
		r->sets[i] = labels ? key % SETS : 0;
	}
	for (uint32_t c = 0; c < w->types_n[r->kind]; c++)
		for (uint32_t i = 0; i < n; i++)
			r->values[c * n + i] = value(w->type[r->kind][c]);
	r->row = (struct row){ .header = w->headers[r->kind],
		.interval_ns = (int64_t)(1 + draw(3)) * 5000000000,
		.time_nanos = draw(3) ? r->ts_ns - (int64_t)draw(1000000) : 0,
		.duration_nanos = (int64_t)draw(9000000000),
		.period = (int64_t)draw(3) * 100,
		.n = n,
		.columns_n = w->types_n[r->kind],
		.stacks = r->stacks,
		.label_sets = labels ? r->sets : NULL,
		.values = r->values };
}

/* Adds the row by way of a chunk. */
static inline enum err_code add_row(const struct world *w, struct rollup_builder *b, int64_t ts_ns,
	const struct row *row, struct err *err)
{
	struct chunk *c = chunk_open();
	enum value_kind kinds[4];
	struct buf bytes = { 0 };
	enum err_code rc;

	for (uint32_t i = 0; i < row->columns_n; i++)
		kinds[i] = (enum value_kind)sym_header(w->p, row->header)->types[i].kind;
	rc = chunk_encode(&ts_ns, row, 1, kinds, &bytes, err);
	if (!rc)
		rc = chunk_parse(c, buf_str(&bytes), err);
	if (!rc)
		rc = rollup_builder_add_chunk(b, c, 0, 1, false, err);
	buf_release(&bytes);
	chunk_close(c);
	return rc;
}

#endif
