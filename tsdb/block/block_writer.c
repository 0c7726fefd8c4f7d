#include "tsdb/block/block_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"

/*
 * Writes a block: chunks and rollups as they come; then the small records, which are kept until all
 * is known (a series' is about the size of its labels); then the symbols that were used (packed
 * when the series of their partition are done, and kept in a file); then `spare`, then meta.json.
 */

enum err_code block_writer_open(
	const struct block_write_options *o, struct block_writer **out, struct err *err)
{
	struct block_writer *w = calloc(1, sizeof(*w));
	char *rows, *rollups, *spill;
	enum err_code rc = ERR_OK;

	assert(o->levels >> ROLLUP_LEVELS == 0);
	if (!w)
		return err_nomem(err, "write block");
	w->o = *o;
	spill_init(&w->symbols, NULL, NULL);
	for (size_t i = 0; i < 2; i++)
		arena_init(&w->labels_arena[i], 0);
	arena_init(&w->arena, 0);
	w->dir = arena_strndup(&w->arena, o->dir, strlen(o->dir));
	rows = block_path(&w->arena, o->dir, "rows.ldb");
	rollups = block_path(&w->arena, o->dir, "rollups.ldb");
	spill = block_path(&w->arena, o->dir, "symbols");
	w->chunk = chunk_open();
	w->view = rollup_view_open();
	w->postings = postings_open();
	if (!w->dir || !rows || !rollups || !spill || !w->chunk || !w->view || !w->postings)
		rc = err_nomem(err, "write block");
	else
		spill_init(&w->symbols, o->fs, spill);
	while (w->stats_level + 1 < ROLLUP_LEVELS && !(o->levels >> w->stats_level & 1))
		w->stats_level++;
	if (!rc && o->min_ns < 0)
		rc = err_set(err, ERR_INVALID, "write block: it begins before 1970");
	if (!rc)
		rc = o->fs->ops->mkdir(o->fs, o->dir, err);
	if (!rc && o->raw)
		rc = table_writer_open(o->fs, rows, &w->rows, err);
	if (!rc && w->rows)
		rc = block_identity_put(w->rows, &o->ulid, "rows.ldb", err);
	if (!rc)
		rc = table_writer_open(o->fs, rollups, &w->rollups, err);
	if (!rc)
		rc = block_identity_put(w->rollups, &o->ulid, "rollups.ldb", err);
	if (rc)
		block_writer_close(w);
	else
		*out = w;
	return rc;
}

void block_writer_close(struct block_writer *w)
{
	if (!w)
		return;
	table_writer_close(w->rows);
	table_writer_close(w->rollups);
	for (uint32_t i = 0; i < w->slots_n; i++) {
		buf_release(&w->slots[i].record);
		for (int k = 0; k < SYM_KINDS; k++)
			bits_release(&w->slots[i].bits[k]);
	}
	free(w->slots);
	spill_release(&w->symbols);
	buf_release(&w->series);
	buf_release(&w->numbers);
	free(w->series_at.at);
	free(w->groups);
	postings_close(w->postings);
	chunk_close(w->chunk);
	rollup_view_close(w->view);
	for (size_t i = 0; i < 2; i++)
		arena_release(&w->labels_arena[i]);
	free(w->headers);
	arena_release(&w->arena);
	free(w);
}

enum err_code block_writer_partition(
	struct block_writer *w, struct partition *p, uint32_t *slot, struct err *err)
{
	struct writer_slot *last = w->slots_n ? &w->slots[w->slots_n - 1] : NULL;
	enum err_code rc;

	if (last && last->p == p) {
		*slot = w->slots_n - 1;
		return ERR_OK;
	}
	if (last && last->id > p->id)
		return err_set(err, ERR_INVALID, "write block: partition %" PRIu32 " comes after %" PRIu32,
			p->id, last->id);
	if (w->slots_n == BLOCK_PARTITIONS_MAX)
		return err_set(
			err, ERR_LIMIT, "write block: more than %u partitions", BLOCK_PARTITIONS_MAX);
	if ((rc = block_writer_end_series(w, err)) || (rc = block_writer_seal(w, err)))
		return rc;
	if (!array_room(&w->slots, w->slots_n, 1, &w->slots_cap))
		return err_nomem(err, "write block");
	*slot = w->slots_n++;
	w->slots[*slot] = (struct writer_slot){ .p = p, .id = p->id, .first = w->series_at.n };
	return ERR_OK;
}

/* ---- series ---- */

enum err_code block_writer_end_series(struct block_writer *w, struct err *err)
{
	struct block_series *s = &w->now;
	struct block_meta *m = &w->meta;

	if (!w->open)
		return ERR_OK;
	s->headers = w->headers;
	s->headers_n = w->headers_n;
	if (!array_room(&w->series_at.at, w->series_at.n, 1, &w->series_at.cap))
		return err_nomem(err, "write block");
	block_series_encode(&w->series, s);
	if (buf_failed(&w->series) || !postings_add(w->postings, w->series_at.n, s->labels))
		return err_nomem(err, "write block");
	w->series_at.at[w->series_at.n++] = w->series.len;
	if (s->slot == BLOCK_NUMERIC) {
		m->numbers += s->rows;
	} else {
		w->slots[s->slot].n++;
		m->rows += s->rows;
	}
	m->samples += s->samples;
	if (s->rows) {
		if (!m->first_ns || s->first_ns < m->first_ns)
			m->first_ns = s->first_ns;
		if (s->last_ns > m->last_ns)
			m->last_ns = s->last_ns;
	}
	w->open = false;
	return ERR_OK;
}

static enum err_code block_writer_check_order(struct block_writer *w, uint32_t slot,
	struct labels labels, struct labels group_labels, bool *new_group, struct err *err)
{
	int order;

	if (w->grouping || slot >= w->slots_n || (w->groups_n && slot < w->now.slot))
		goto wrong;
	*new_group = true;
	if (!w->groups_n || slot > w->now.slot)
		return ERR_OK;
	order = labels_cmp(w->group_labels, group_labels);
	*new_group = order != 0;
	if (order < 0 || (order == 0 && labels_cmp(w->now.labels, labels) < 0))
		return ERR_OK;
wrong:
	return err_set(err, ERR_INVALID, "write block: a series comes out of order");
}

enum err_code block_writer_series(struct block_writer *w, uint32_t slot, struct labels labels,
	struct labels group_labels, uint32_t *id, uint32_t *group, struct err *err)
{
	struct arena *arena = &w->labels_arena[1];
	struct labels own, own_group;
	struct arena swap;
	bool new_group = true;
	enum err_code rc;

	if ((rc = block_writer_check_order(w, slot, labels, group_labels, &new_group, err)) ||
		(rc = block_writer_end_series(w, err)))
		return rc;
	if (w->series_at.n == SYM_NONE - 1)
		return err_set(err, ERR_LIMIT, "write block: too many series");
	arena_reset(arena);
	own = labels_dup(arena, labels);
	own_group = labels_dup(arena, group_labels);
	if ((labels.n && !own.v) || (group_labels.n && !own_group.v))
		return err_nomem(err, "write block");
	if (new_group) {
		if (!array_room(&w->groups, w->groups_n, 1, &w->groups_cap))
			return err_nomem(err, "write block");
		w->groups[w->groups_n++] = w->series_at.n;
	}
	swap = w->labels_arena[0];
	w->labels_arena[0] = *arena;
	*arena = swap;
	w->group_labels = own_group;
	w->now = (struct block_series){ .labels = own, .slot = slot, .group = w->groups_n - 1 };
	w->headers_n = 0;
	w->open = true;
	*id = w->series_at.n;
	*group = w->groups_n - 1;
	return ERR_OK;
}

/* Adds a header to the series and to the partition. */
static enum err_code block_writer_add_header(
	struct block_writer *w, uint32_t header, struct err *err)
{
	struct bits *bits = &w->slots[w->now.slot].bits[SYM_HEADER];
	uint32_t at = w->headers_n, *v;

	while (at && w->headers[at - 1] > header)
		at--;
	if (at && w->headers[at - 1] == header)
		return ERR_OK;
	if (!array_room(&w->headers, w->headers_n, 1, &w->headers_cap) || !bits_reserve(bits, header))
		return err_nomem(err, "write block");
	v = w->headers;
	memmove(v + at + 1, v + at, (w->headers_n - at) * sizeof(*v));
	v[at] = header;
	w->headers_n++;
	bits_set(bits, header);
	return ERR_OK;
}

static enum err_code block_missing_symbols(
	const struct partition *p, const char *what, struct err *err)
{
	return err_set(err, ERR_CORRUPT,
		"write block: a %s of job \"" STR_FMT "\" uses symbols that are missing", what,
		STR_ARG(p->name));
}

/* If symbols were lost, each id is looked up; else the largest one is enough. */
static enum err_code block_check_marks(const struct partition *p, const struct bits *bits,
	enum sym_kind kind, const char *what, struct err *err)
{
	for (size_t i = 0; i < bits->words; i++)
		for (uint64_t left = bits->w[i]; left; left &= left - 1)
			if (!sym_exists(p, kind, (uint32_t)(i * 64 + (size_t)__builtin_ctzll(left))))
				return block_missing_symbols(p, what, err);
	return ERR_OK;
}

typedef enum err_code (*mark_fn)(
	struct block_writer *w, struct bits *stacks, struct bits *sets, struct err *err);

static enum err_code block_writer_mark_chunk(
	struct block_writer *w, struct bits *stacks, struct bits *sets, struct err *err)
{
	return chunk_mark_ids(w->chunk, stacks, sets, err);
}

static enum err_code block_writer_mark_rollup(
	struct block_writer *w, struct bits *stacks, struct bits *sets, struct err *err)
{
	return rollup_mark_ids(w->view, stacks, sets, err);
}

static enum err_code block_writer_mark_ids(
	struct block_writer *w, mark_fn fn, const char *what, struct err *err)
{
	struct writer_slot *slot = &w->slots[w->now.slot];
	struct bits stacks = { 0 }, sets = { 0 };
	enum err_code rc;

	if (atomic_load_explicit(&slot->p->damaged, memory_order_relaxed)) {
		if (!(rc = fn(w, &stacks, &sets, err)) &&
			!(rc = block_check_marks(slot->p, &stacks, SYM_NODE, what, err)))
			rc = block_check_marks(slot->p, &sets, SYM_LABEL_SET, what, err);
		bits_release(&stacks);
		bits_release(&sets);
		if (rc)
			return rc;
	}
	rc = fn(w, &slot->bits[SYM_NODE], &slot->bits[SYM_LABEL_SET], err);
	if (rc)
		slot->tainted = true;
	return rc;
}

/* ---- chunks ---- */

enum err_code block_writer_chunk(struct block_writer *w, struct str bytes, struct err *err)
{
	const struct partition *p;
	const struct chunk_row *rows;
	struct block_series *s = &w->now;
	struct block_key key;
	int64_t first, last;
	enum err_code rc;
	uint32_t n;

	if (!w->open || w->now.slot == BLOCK_NUMERIC || !w->rows)
		return err_set(
			err, ERR_INVALID, "write block: a chunk without %s", !w->rows ? "rows.ldb" : "series");
	if ((rc = chunk_parse(w->chunk, bytes, err)))
		return rc;
	w->meta.streams |= chunk_has_streams(w->chunk);
	p = w->slots[s->slot].p;
	rows = chunk_rows(w->chunk);
	n = chunk_rows_n(w->chunk);
	first = n ? rows[0].ts_ns : 0;
	last = n ? rows[n - 1].ts_ns : 0;
	if (!n || first <= w->o.min_ns || last > w->o.max_ns)
		return err_set(err, ERR_INVALID, "write block: a chunk outside of the block's time");
	if (s->rows && first <= s->last_ns)
		return err_set(err, ERR_INVALID, "write block: a chunk comes out of order");
	for (uint32_t i = 0; i < n; i++)
		if (!sym_exists(p, SYM_HEADER, rows[i].header))
			return block_missing_symbols(p, "chunk", err);
	if (chunk_stack_max(w->chunk) >= sym_nodes_n(p) ||
		chunk_label_set_max(w->chunk) >= sym_label_sets_n(p))
		return block_missing_symbols(p, "chunk", err);
	if ((rc = block_writer_mark_ids(w, block_writer_mark_chunk, "chunk", err)))
		return rc;
	for (uint32_t i = 0; i < n && !rc; i++)
		rc = i && rows[i].header == rows[i - 1].header ?
			ERR_OK :
			block_writer_add_header(w, rows[i].header, err);
	key = block_key_rows(w->series_at.n, last, first);
	if (rc || (rc = table_writer_put(w->rows, block_key_str(&key), bytes, err)))
		return rc;
	if (!s->rows)
		s->first_ns = first;
	s->last_ns = last;
	s->rows += n;
	for (uint32_t i = 0; i < n; i++)
		s->samples += rows[i].n;
	w->meta.chunks++;
	return ERR_OK;
}

enum err_code block_writer_links(
	struct block_writer *w, uint32_t series, int64_t ts_ns, struct str bytes, struct err *err)
{
	struct block_key key = block_key_links(series, ts_ns);
	enum err_code rc;

	if ((rc = block_writer_end_series(w, err)))
		return rc;
	if (!w->rows || series >= w->series_at.n || ts_ns <= w->o.min_ns || ts_ns > w->o.max_ns)
		return err_set(err, ERR_INVALID, "write block: links without a row");
	w->grouping = true;
	w->meta.links++;
	return table_writer_put(w->rows, block_key_str(&key), bytes, err);
}

/* ---- rollups ---- */

static enum err_code block_writer_put_rollup(
	struct block_writer *w, const struct block_key *key, struct str bytes, struct err *err)
{
	return table_writer_put(w->rollups, block_key_str(key), bytes, err);
}

static enum err_code block_writer_check_step(
	struct block_writer *w, uint32_t level, int64_t step_ns, struct err *err)
{
	if (level >= ROLLUP_LEVELS || !(w->o.levels >> level & 1))
		return err_set(err, ERR_INVALID,
			"write block: a rollup of level %" PRIu32 ", which it does not have", level);
	if (step_ns < 0 || step_ns % rollup_step_ns[level] || step_ns >= w->o.max_ns ||
		step_ns + rollup_step_ns[level] <= w->o.min_ns)
		return err_set(err, ERR_INVALID, "write block: a rollup outside of the block's time");
	return ERR_OK;
}

/* Without raw rows the finest rollups have the number of rows. A row counts in each of its columns,
 * so the number of the fullest column is certain. */
static void block_writer_count_rollup(struct block_writer *w)
{
	struct block_series *s = &w->now;
	uint64_t rows = 0, samples = 0;
	int64_t first;

	for (uint32_t i = 0; i < rollup_columns_n(w->view); i++) {
		const struct rollup_column *c = rollup_column(w->view, i);

		first = c->start_ns < w->o.min_ns ? w->o.min_ns + 1 : c->start_ns + 1;
		if ((!s->rows && !rows) || first < s->first_ns)
			s->first_ns = first;
		if ((!s->rows && !rows) || c->end_ns > s->last_ns)
			s->last_ns = c->end_ns;
		rows = c->rows > rows ? c->rows : rows;
		samples = c->samples > samples ? c->samples : samples;
	}
	s->rows += rows;
	s->samples += samples;
}

enum err_code block_writer_rollup(
	struct block_writer *w, uint32_t level, int64_t step_ns, struct str bytes, struct err *err)
{
	struct block_key key = block_key_rollup(KEY_ROLLUP_SERIES, w->series_at.n, level, step_ns);
	const struct partition *p;
	enum err_code rc;

	if (!w->open || w->now.slot == BLOCK_NUMERIC)
		return err_set(err, ERR_INVALID, "write block: a rollup without series");
	if ((rc = block_writer_check_step(w, level, step_ns, err)) ||
		(rc = rollup_parse(w->view, bytes, err)))
		return rc;
	p = w->slots[w->now.slot].p;
	for (uint32_t i = 0; i < rollup_columns_n(w->view); i++) {
		const struct rollup_column *c = rollup_column(w->view, i);

		for (uint32_t k = 0; k < c->headers_n; k++)
			if (!sym_exists(p, SYM_HEADER, c->headers[k]))
				return block_missing_symbols(p, "rollup", err);
	}
	if ((rc = block_writer_mark_ids(w, block_writer_mark_rollup, "rollup", err)))
		return rc;
	for (uint32_t i = 0; i < rollup_columns_n(w->view); i++) {
		const struct rollup_column *c = rollup_column(w->view, i);

		for (uint32_t k = 0; k < c->headers_n; k++)
			if ((rc = block_writer_add_header(w, c->headers[k], err)))
				return rc;
	}
	if (!w->rows && level == w->stats_level)
		block_writer_count_rollup(w);
	return block_writer_put_rollup(w, &key, bytes, err);
}

enum err_code block_writer_group_rollup(struct block_writer *w, enum rollup_kind kind,
	uint32_t group, uint32_t level, int64_t step_ns, struct str bytes, struct err *err)
{
	struct block_key key = block_key_rollup(
		kind == ROLLUP_GROUP ? KEY_ROLLUP_GROUP : KEY_FUNCTIONS, group, level, step_ns);
	enum err_code rc;
	uint32_t n;

	if ((rc = block_writer_end_series(w, err)) ||
		(rc = block_writer_check_step(w, level, step_ns, err)))
		return rc;
	if (kind == ROLLUP_SERIES || group >= w->groups_n)
		return err_set(err, ERR_INVALID, "write block: a rollup of a group that is not there");
	n = (group + 1 < w->groups_n ? w->groups[group + 1] : w->series_at.n) - w->groups[group];
	if (kind == ROLLUP_GROUP && n == 1)
		return err_set(err, ERR_INVALID, "write block: a group of one series is that series");
	w->grouping = true;
	rc = kind == ROLLUP_GROUP ? rollup_parse(w->view, bytes, err) :
								rollup_functions_parse(w->view, bytes, err);
	return rc ? rc : block_writer_put_rollup(w, &key, bytes, err);
}
