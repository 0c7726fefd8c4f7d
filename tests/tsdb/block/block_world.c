#include "tests/tsdb/block/block_world.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "tests/scratch.h"

uint64_t world_draw(struct world *w, uint64_t below)
{
	w->state += UINT64_C(0x9e3779b97f4a7c15);
	return map_hash_u64(w->state) % below;
}

static void must(enum err_code rc)
{
	if (rc)
		abort();
}

static uint32_t string_of(struct world *w, struct partition *p, const char *what, uint64_t n)
{
	char text[64];
	uint32_t id = 0;

	snprintf(text, sizeof(text), "%s%llu", what, (unsigned long long)world_draw(w, n));
	must(sym_intern_string(p, str_of(text), &id, NULL));
	return id;
}

static void add_code(struct world *w, struct partition *p)
{
	uint32_t functions[20], mappings[3], locations[40], node;
	struct sym_line lines[3];

	for (uint32_t i = 0; i < 20; i++) {
		struct sym_function f = { .name = string_of(w, p, "main.function", 30),
			.filename = string_of(w, p, "file", 5),
			.start_line = (int64_t)world_draw(w, 500) };

		f.system_name = world_draw(w, 3) ? f.name : string_of(w, p, "_Z", 9);
		must(sym_intern_function(p, &f, &functions[i], NULL));
	}
	for (uint32_t i = 0; i < 3; i++)
		must(sym_intern_mapping(p,
			&(struct sym_mapping){ .size = i + 4096,
				.offset = world_draw(w, 3) * 4096,
				.filename = string_of(w, p, "/bin/", 4),
				.build_id = string_of(w, p, "id", 4),
				.has_functions = true,
				.has_inline_frames = world_draw(w, 2) },
			&mappings[i], NULL));
	for (uint32_t i = 0; i < 40; i++) {
		uint32_t n = (uint32_t)world_draw(w, 3) + (i % 7 != 0), mapping = world_draw(w, 4);

		for (uint32_t k = 0; k < n; k++)
			lines[k] = (struct sym_line){ functions[world_draw(w, 20)], (int64_t)world_draw(w, 90),
				(int64_t)world_draw(w, 2) };
		must(sym_intern_location(p,
			&(struct sym_location){ .address = world_draw(w, 5) ? i * 16 : UINT64_MAX - i,
				.mapping = mapping == 3 ? SYM_NONE : mappings[mapping],
				.lines_n = n,
				.lines = lines,
				.is_folded = world_draw(w, 9) == 0 },
			&locations[i], NULL));
	}
	while ((node = sym_nodes_n(p)) < w->nodes)
		must(sym_intern_node(p, (uint32_t)(world_draw(w, 3) ? world_draw(w, node) : node - 1),
			locations[world_draw(w, 40)], &node, NULL));
}

static void add_rest(struct world *w, uint32_t slot)
{
	static const char *const types[] = { "samples", "cpu", "inuse_space" };
	struct partition *p = w->partitions[slot];
	uint32_t id;
	bool overflow = false;

	for (uint32_t i = 1; i < w->sets; i++) {
		struct sym_label v[2] = {
			{ .key = string_of(w, p, slot == 1 ? "instance" : "key", 2), .num = -(int64_t)i },
			{ .key = string_of(w, p, "other", 3), .str = string_of(w, p, "v", 50) },
		};
		struct sym_label_set set = { v, 1 + (uint32_t)world_draw(w, 2) };

		sym_label_set_sort(v, set.n);
		must(sym_intern_label_set(p, &set, &id, &overflow, NULL));
	}
	w->headers_n[slot] = 0;
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t comment = string_of(w, p, "comment", 99), mappings[] = { 0, 2, 1 };
		uint64_t starts[] = { 4096, UINT64_MAX, world_draw(w, 1 << 30) };
		struct sym_type v[3];

		for (uint32_t c = 0; c < 3; c++) {
			v[c] = (struct sym_type){ .kind = c == 2 ? KIND_GAUGE : KIND_DELTA };
			must(sym_intern_string(p, str_of(types[c]), &v[c].type, NULL));
			v[c].unit = string_of(w, p, "unit", 1);
		}
		must(sym_intern_header(p,
			&(struct sym_header){ .types = v,
				.types_n = i == 3 ? 2 : 3,
				.period_type = v[1].type,
				.period_unit = v[1].unit,
				.comments = &comment,
				.comments_n = i & 1,
				.mappings = mappings,
				.mapping_start = starts,
				.mappings_n = i },
			&id, NULL));
		w->headers_n[slot] = id + 1;
	}
}

/* ---- series ---- */

static struct labels labels_with(struct world *w, struct labels base, const char *name, int n)
{
	struct labels_builder b;
	struct labels out;
	char *value = arena_printf(&w->arena, "%s%d", n % 5 == 4 ? "\xc3\xa9" : "v", n);

	labels_builder_init(&b, &w->arena, base);
	labels_builder_set(&b, str_of(name), str_of(value));
	must(labels_builder_build(&b, &out, NULL));
	return out;
}

#define ENTRIES 30u

static void make_chunk(struct world *w, struct world_series *s, int64_t *ts, bool few_columns)
{
	struct world_chunk *c = &s->chunks[s->chunks_n++];
	static const enum value_kind kinds[] = { KIND_DELTA, KIND_DELTA, KIND_GAUGE };
	uint32_t n = 1 + (uint32_t)world_draw(w, WORLD_ROWS), columns = few_columns ? 2 : 3;
	static uint32_t stacks[WORLD_ROWS][ENTRIES], sets[WORLD_ROWS][ENTRIES];
	static int64_t values[WORLD_ROWS][ENTRIES * 3];
	struct row rows[WORLD_ROWS];
	int64_t times[WORLD_ROWS];
	struct buf out = { 0 };

	*c = (struct world_chunk){ .rows_n = n };
	for (uint32_t i = 0; i < n; i++) {
		uint32_t entries = (uint32_t)world_draw(w, ENTRIES), stack = 0;
		int64_t gap_s = (int64_t)(1 + world_draw(w, 600));

		*ts += (gap_s % 8 ? gap_s : 1200) * 1000000000; /* of 1200 s: one scrape is missing */
		times[i] = *ts;
		for (uint32_t k = 0; k < entries; k++) {
			uint32_t next = stack + (uint32_t)world_draw(w, w->nodes / ENTRIES);

			sets[i][k] = world_draw(w, 4) ? 0 : (uint32_t)world_draw(w, w->sets);
			if (k && next == stack && sets[i][k] < sets[i][k - 1])
				sets[i][k] = sets[i][k - 1];
			stacks[i][k] = stack = next;
		}
		for (uint32_t k = 0; k < entries * columns; k++)
			values[i][k] = (int64_t)world_draw(w, 5) * (k < entries ? 1 : 10000000);
		rows[i] = (struct row){ .header = few_columns ? 3 : (uint32_t)world_draw(w, 3),
			.interval_ns = INT64_C(600) * 1000000000,
			.time_nanos = *ts - 5,
			.duration_nanos = 9000000000,
			.period = 10000000,
			.n = entries,
			.columns_n = columns,
			.stacks = stacks[i],
			.label_sets = sets[i],
			.values = values[i] };
		c->samples += entries;
		uint32_t at = 0;
		while (at < s->headers_n && s->headers[at] < rows[i].header)
			at++;
		if (at == s->headers_n || s->headers[at] != rows[i].header) {
			memmove(
				s->headers + at + 1, s->headers + at, (s->headers_n - at) * sizeof(*s->headers));
			s->headers[at] = rows[i].header;
			s->headers_n++;
		}
	}
	c->first_ns = times[0];
	c->last_ns = times[n - 1];
	must(chunk_encode(times, rows, n, kinds, &out, NULL));
	c->bytes = str_dup(&w->arena, buf_str(&out));
	buf_release(&out);
}

static int by_place(const void *a, const void *b)
{
	const struct world_series *x = a, *y = b;
	int order = x->slot < y->slot ? -1 : x->slot > y->slot;

	order = order ? order : labels_cmp(x->group_labels, y->group_labels);
	return order ? order : labels_cmp(x->labels, y->labels);
}

static void add_group(struct world *w, uint32_t slot, int group)
{
	struct labels base = { 0 };
	uint32_t n = group % 3 == 0 ? 1 : 1 + (uint32_t)world_draw(w, 4);

	base = labels_with(w, base, "job", (int)slot);
	if (group % 4)
		base = labels_with(w, base, "handler", group);
	base = labels_with(w, base, LABEL_NAME, group);
	if (world_draw(w, 2))
		base = labels_with(w, base, "service_name", (int)world_draw(w, 3));
	for (uint32_t i = 0; i < n && w->series_n < WORLD_SERIES_MAX; i++) {
		struct world_series *s = &w->series[w->series_n++];
		int64_t ts = WORLD_MIN_NS + (int64_t)world_draw(w, 3600) * 1000000000;
		uint32_t chunks = 1 + (uint32_t)world_draw(w, WORLD_CHUNKS);

		*s = (struct world_series){ .slot = slot, .group_labels = base };
		s->labels = labels_with(w, base, i & 1 ? "pod" : "instance", (int)i);
		while (s->chunks_n < chunks && ts < WORLD_MAX_NS - INT64_C(7200) * 1000000000)
			make_chunk(w, s, &ts, s->chunks_n == 2);
	}
}

bool world_open(struct world *w, uint64_t seed, uint32_t partitions_n, uint32_t groups_n)
{
	static const struct symbol_limits limits = { 1 << 20, 1 << 20, 1 << 20, 1 << 28 };
	static const char *const names[WORLD_PARTITIONS] = { "api", "web \"x\"", "" };

	*w = (struct world){ .state = seed,
		.partitions_n = partitions_n,
		.nodes = 300,
		.sets = 6,
		.missed_from_ns = INT64_MAX };
	snprintf(w->dir, sizeof(w->dir), SCRATCH "epimetheus-block-XXXXXX");
	if (!scratch_dir(w->dir))
		return false;
	snprintf(w->block, sizeof(w->block), "%s/b", w->dir);
	arena_init(&w->arena, 0);
	for (uint32_t i = 0; i < partitions_n; i++) {
		must(partition_open(str_of(names[i]), i * 7 + 1, i, &limits, &w->partitions[i], NULL));
		add_code(w, w->partitions[i]);
		add_rest(w, i);
		for (uint32_t g = 0; g < groups_n; g++)
			add_group(w, i, (int)g);
	}
	qsort(w->series, w->series_n, sizeof(*w->series), by_place);
	for (uint32_t i = 0, group = 0; i < w->series_n; i++) {
		if (i &&
			(w->series[i].slot != w->series[i - 1].slot ||
				!labels_eq(w->series[i].group_labels, w->series[i - 1].group_labels)))
			group++;
		w->series[i].group = group;
	}
	return true;
}

void world_close(struct world *w)
{
	for (uint32_t i = 0; i < w->partitions_n; i++)
		partition_close(w->partitions[i]);
	(void)!fs_remove_tree(&fs_posix, w->dir, NULL);
	arena_release(&w->arena);
}

/* ---- writing ---- */

/* An hour of a series; false: it has no rows. */
static bool rollup_of_hour(struct world *w, const struct world_series *s, int64_t hour_ns,
	struct rollup_builder *b, struct chunk *c, struct buf *out)
{
	rollup_builder_clear(b);
	for (uint32_t k = 0; k < s->chunks_n; k++) {
		const struct chunk_row *rows;
		uint32_t from = 0, to;

		must(chunk_parse(c, s->chunks[k].bytes, NULL));
		rows = chunk_rows(c);
		to = chunk_rows_n(c);
		while (from < to && rows[from].ts_ns <= hour_ns)
			from++;
		while (from < to && rows[to - 1].ts_ns > hour_ns + rollup_step_ns[0])
			to--;
		if (from < to)
			must(rollup_builder_add_chunk(b, c, from, to, hour_ns >= w->missed_from_ns, NULL));
	}
	buf_clear(out);
	if (rollup_builder_empty(b))
		return false;
	must(rollup_builder_encode(b, out, NULL));
	return true;
}

enum err_code world_rollup(struct world *w, uint32_t first, uint32_t n, uint32_t level,
	int64_t step_ns, bool functions, struct buf *out, struct err *err)
{
	struct rollup_builder *b = NULL, *hour = NULL;
	struct partition *p = w->partitions[w->series[first].slot];
	struct rollup_view *v = rollup_view_open();
	struct chunk *c = chunk_open();
	enum err_code rc = ERR_OK;
	bool any = true;

	must(rollup_builder_open(p, &b, NULL));
	must(rollup_builder_open(p, &hour, NULL));
	for (uint32_t i = first; i < first + n; i++)
		for (int64_t at = step_ns; at < step_ns + rollup_step_ns[level]; at += rollup_step_ns[0])
			if (rollup_of_hour(w, &w->series[i], at, hour, c, out)) {
				must(rollup_parse(v, buf_str(out), NULL));
				must(rollup_builder_add(b, v, NULL));
			}
	buf_clear(out);
	if (!rollup_builder_empty(b))
		rc = functions ? rollup_builder_encode_functions(b, out, &any, err) :
						 rollup_builder_encode(b, out, err);
	rollup_builder_close(b);
	rollup_builder_close(hour);
	rollup_view_close(v);
	chunk_close(c);
	return rc;
}

static enum err_code write_series(struct world *w, uint32_t i, const struct world_options *o,
	struct block_writer *to, struct err *err)
{
	struct world_series *s = &w->series[i];
	uint32_t slot, id, group;
	struct buf out = { 0 };
	enum err_code rc;

	if ((rc = block_writer_partition(to, w->partitions[s->slot], &slot, err)) ||
		(rc = block_writer_series(to, slot, s->labels, s->group_labels, &id, &group, err)))
		return rc;
	if (slot != s->slot || id != i || group != s->group)
		abort();
	for (uint32_t k = 0; k < s->chunks_n && o->raw && !rc; k++)
		rc = block_writer_chunk(to, s->chunks[k].bytes, err);
	for (uint32_t level = 0; level < ROLLUP_LEVELS && !rc; level++) {
		int64_t step = rollup_step_ns[level], at = WORLD_MIN_NS / step * step;

		for (; at < WORLD_MAX_NS && (o->levels >> level & 1) && !rc; at += step)
			if (!(rc = world_rollup(w, i, 1, level, at, false, &out, err)) && out.len)
				rc = block_writer_rollup(to, level, at, buf_str(&out), err);
	}
	buf_release(&out);
	return rc;
}

static enum err_code write_group(struct world *w, uint32_t first, uint32_t n, bool functions,
	const struct world_options *o, struct block_writer *to, struct err *err)
{
	struct buf out = { 0 };
	enum err_code rc = ERR_OK;

	for (uint32_t level = 0; level < ROLLUP_LEVELS && !rc; level++) {
		int64_t step = rollup_step_ns[level], at = WORLD_MIN_NS / step * step;

		for (; at < WORLD_MAX_NS && (o->levels >> level & 1) && !rc; at += step)
			if (!(rc = world_rollup(w, first, n, level, at, functions, &out, err)) && out.len)
				rc = block_writer_group_rollup(to, functions ? ROLLUP_FUNCTIONS : ROLLUP_GROUP,
					w->series[first].group, level, at, buf_str(&out), err);
	}
	buf_release(&out);
	return rc;
}

enum err_code world_write(
	struct world *w, const struct world_options *o, struct block_meta *meta, struct err *err)
{
	const struct block_write_options options = { .fs = o->fs,
		.dir = w->block,
		.ulid = ulid_new(WORLD_MAX_NS),
		.min_ns = WORLD_MIN_NS,
		.max_ns = WORLD_MAX_NS,
		.levels = o->levels,
		.raw = o->raw };
	static int64_t heads[] = { WORLD_MIN_NS, WORLD_START_NS };
	static struct ulid sources[2];
	struct block_writer *to = NULL;
	enum err_code rc;

	sources[0] = ulid_new(1);
	sources[1] = ulid_new(1);
	*meta = (struct block_meta){
		.level = 2, .sources = sources, .sources_n = 2, .heads = heads, .heads_n = 2
	};
	if ((rc = block_writer_open(&options, &to, err)))
		return rc;
	for (uint32_t i = 0; i < w->series_n && !rc; i++)
		rc = write_series(w, i, o, to, err);
	for (int functions = 0; functions < 2 && !rc; functions++)
		for (uint32_t i = 0, n; i < w->series_n && !rc; i += n) {
			n = 1;
			while (i + n < w->series_n && w->series[i + n].group == w->series[i].group)
				n++;
			if (n > 1 || functions)
				rc = write_group(w, i, n, functions, o, to, err);
		}
	if (!rc)
		rc = block_writer_finish(to, meta, err);
	block_writer_close(to);
	return rc;
}
