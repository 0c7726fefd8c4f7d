#include "tsdb/block/block_verify.h"

#include <inttypes.h>
#include <stdlib.h>

/*
 * Decodes chunks and rollups, and makes each rollup again: rollups of the same rows have the same
 * bytes, however they were joined, if missed scrapes count in both or in none of them. A record
 * says that of its hour; in a day there may be hours of both kinds, and so it is made from its
 * hours.
 */

enum err_code verify_rows_open(struct verify *v, struct err *err)
{
	enum err_code rc;

	v->chunk = chunk_open();
	v->view = rollup_view_open();
	v->columns = calloc(v->b->meta.series + 1, sizeof(*v->columns));
	if (!v->chunk || !v->view || !v->columns)
		return err_nomem(err, "verify");
	if (v->b->rows &&
		((rc = block_chunks_open(v->b, true, &v->chunks, err)) ||
			(rc = block_links_open(v->b, true, &v->links, err))))
		return rc;
	if ((rc = block_rollups_open(v->b, true, &v->rollups, err)))
		return rc;
	return block_rollups_open(v->b, true, &v->parts, err);
}

void verify_rows_close(struct verify *v)
{
	rollup_builder_close(v->builder);
	partition_close(v->partition);
	block_chunks_close(v->chunks);
	block_chunks_close(v->links);
	links_unpacked_release(&v->unpacked);
	block_rollups_close(v->rollups);
	block_rollups_close(v->parts);
	rollup_view_close(v->view);
	chunk_close(v->chunk);
	buf_release(&v->made);
	free(v->columns);
}

/* The partition of a slot, its symbols loaded from this block alone. */
static enum err_code block_enter_slot(struct verify *v, uint32_t slot, struct err *err)
{
	static const struct symbol_limits all = { UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT64_MAX };
	const struct block_slot *s = &v->b->slots[slot];
	struct err why = { 0 };
	uint64_t lost = 0;
	enum err_code rc;

	if (v->slot == slot)
		return ERR_OK;
	rollup_builder_close(v->builder);
	partition_close(v->partition);
	v->builder = NULL;
	v->partition = NULL;
	v->slot = SYM_NONE;
	if ((rc = partition_open(s->p.name, s->p.id, 0, &all, &v->partition, err)) ||
		(rc = rollup_builder_open(v->partition, &v->builder, err)))
		return rc;
	v->slot = slot;
	for (int stage = BLOCK_NAMES; stage <= BLOCK_STACKS; stage++) {
		mutex_lock(&v->partition->lock);
		rc = block_load_symbols(v->b, slot, v->partition, stage, &lost, &why);
		mutex_unlock(&v->partition->lock);
		if (rc && (rc = verify_error(v, rc, &why, err)))
			return rc;
		if (lost)
			verify_find(v, "%" PRIu64 " symbols are lost: %s", lost, why.msg);
	}
	v->counted.nodes += v->partition->vec[SYM_NODE].used - 1u; /* without the empty ones */
	v->counted.strings += v->partition->vec[SYM_STRING].used - 1u;
	return ERR_OK;
}

/* ---- chunks ---- */

static bool block_ids_exist(const struct partition *p, enum sym_kind kind, const struct bits *bits)
{
	for (size_t w = 0; w < bits->words; w++)
		for (uint64_t left = bits->w[w]; left; left &= left - 1)
			if (!sym_exists(p, kind, (uint32_t)(w * 64 + (size_t)__builtin_ctzll(left))))
				return false;
	return true;
}

static bool block_has_header(const struct block_series *s, uint32_t header)
{
	for (uint32_t i = 0; i < s->headers_n; i++)
		if (s->headers[i] == header)
			return true;
	return false;
}

struct seen { /* of one series */
	uint64_t rows, samples, columns; /* columns: of all rows together */
	int64_t first_ns, last_ns;
	bool sound; /* its chunks can be added up */
};

static enum err_code block_check_ids(struct verify *v, bool chunk, bool *ok, struct err *err)
{
	struct bits stacks = { 0 }, sets = { 0 };
	enum err_code rc = chunk ? chunk_mark_ids(v->chunk, &stacks, &sets, err) :
							   rollup_mark_ids(v->view, &stacks, &sets, err);

	*ok = !rc && block_ids_exist(v->partition, SYM_NODE, &stacks) &&
		block_ids_exist(v->partition, SYM_LABEL_SET, &sets);
	bits_release(&stacks);
	bits_release(&sets);
	return rc;
}

static enum err_code block_check_chunk(struct verify *v, const struct block_series *s,
	struct str bytes, int64_t first_ns, struct seen *seen, struct err *err)
{
	const struct chunk_row *rows;
	const struct row *unpacked;
	enum err_code rc;
	uint32_t n;
	bool ok;

	if ((rc = chunk_parse(v->chunk, bytes, err)) || (rc = chunk_unpack(v->chunk, &unpacked, err)) ||
		(rc = block_check_ids(v, true, &ok, err)))
		return rc;
	rows = chunk_rows(v->chunk);
	n = chunk_rows_n(v->chunk);
	for (uint32_t i = 0; i < n; i++) {
		const struct sym_header *h = sym_header(v->partition, rows[i].header);

		ok = ok && sym_exists(v->partition, SYM_HEADER, rows[i].header) &&
			h->types_n == chunk_columns_n(v->chunk);
		if (!block_has_header(s, rows[i].header))
			return err_set(err, ERR_CORRUPT, "a header is not in the series' record");
		seen->samples += rows[i].n;
	}
	if (!ok)
		return err_set(err, ERR_CORRUPT, "symbols are missing");
	if (!n || rows[0].ts_ns != first_ns || rows[0].ts_ns <= v->b->meta.min_ns ||
		rows[n - 1].ts_ns > v->b->meta.max_ns || (seen->rows && rows[0].ts_ns <= seen->last_ns))
		return err_set(err, ERR_CORRUPT, "its time is wrong");
	if (!seen->rows)
		seen->first_ns = first_ns;
	seen->last_ns = rows[n - 1].ts_ns;
	seen->rows += n;
	seen->columns += (uint64_t)n * chunk_columns_n(v->chunk);
	return ERR_OK;
}

static enum err_code block_check_chunks(
	struct verify *v, uint32_t id, const struct block_series *s, struct seen *seen, struct err *err)
{
	struct str bytes;
	int64_t first_ns;
	struct err why;
	enum err_code rc;

	block_chunks_seek(v->chunks, id, INT64_MIN, INT64_MAX);
	while ((rc = block_chunks_next(v->chunks, &bytes, &first_ns, &why)) != ERR_NOT_FOUND) {
		if (!rc && !(rc = block_check_chunk(v, s, bytes, first_ns, seen, &why)))
			continue;
		seen->sound = false;
		err_wrap(&why, rc, "series %" PRIu32, id);
		if ((rc = verify_error(v, rc, &why, err)))
			return rc;
	}
	if (seen->sound &&
		(seen->rows != s->rows || seen->samples != s->samples ||
			(s->rows && (seen->first_ns != s->first_ns || seen->last_ns != s->last_ns))))
		verify_find(v, "series %" PRIu32 ": its record is not about its chunks", id);
	return ERR_OK;
}

/* ---- rollups ---- */

/* Rows of the step, from chunks. */
static enum err_code block_add_rows(
	struct verify *v, uint32_t id, int64_t from_ns, int64_t to_ns, bool missed, struct err *err)
{
	struct str bytes;
	int64_t first_ns;
	enum err_code rc;

	block_chunks_seek(v->chunks, id, from_ns, to_ns);
	while (!(rc = block_chunks_next(v->chunks, &bytes, &first_ns, err))) {
		const struct chunk_row *rows;
		uint32_t from = 0, to;

		if ((rc = chunk_parse(v->chunk, bytes, err)))
			return rc;
		rows = chunk_rows(v->chunk);
		to = chunk_rows_n(v->chunk);
		while (from < to && rows[from].ts_ns <= from_ns)
			from++;
		while (from < to && rows[to - 1].ts_ns > to_ns)
			to--;
		if (from < to &&
			(rc = rollup_builder_add_chunk(v->builder, v->chunk, from, to, missed, err)))
			return rc;
	}
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

/* Rollups of a series, of a finer level or of the same. */
static enum err_code block_add_rollups(
	struct verify *v, uint32_t id, uint32_t level, int64_t from_ns, int64_t to_ns, struct err *err)
{
	struct str bytes;
	int64_t step_ns;
	enum err_code rc;
	bool ok;

	block_rollups_seek(v->parts, ROLLUP_SERIES, id, level, from_ns, to_ns);
	while (!(rc = block_rollups_next(v->parts, &bytes, &step_ns, err)))
		if ((rc = rollup_parse(v->view, bytes, err)) ||
			(rc = block_check_ids(v, false, &ok, err)) ||
			(rc = ok ? ERR_OK : err_set(err, ERR_CORRUPT, "symbols are missing")) ||
			(rc = rollup_builder_add(v->builder, v->view, err)))
			return rc;
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

static enum err_code block_same_rollup(
	struct verify *v, struct str bytes, bool functions, struct err *err)
{
	bool any = true, same = false;
	enum err_code rc = ERR_OK;

	/* Function totals of older programs do not have names that are alike. */
	for (int alike = functions; alike >= 0 && any && !same && !rc; alike--) {
		buf_clear(&v->made);
		rc = alike    ? rollup_builder_encode_functions(v->builder, &v->made, &any, err) :
			functions ? rollup_builder_encode_functions_apart(v->builder, &v->made, &any, err) :
						rollup_builder_encode(v->builder, &v->made, err);
		same = !rc && any && !buf_failed(&v->made) && str_eq(buf_str(&v->made), bytes);
	}
	if (!rc && !same)
		rc = err_set(err, ERR_CORRUPT, "a rollup is not the sum of what it is about");
	return rc;
}

static uint64_t block_columns_of(const struct rollup_view *view)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < rollup_columns_n(view); i++)
		n += rollup_column(view, i)->rows;
	return n;
}

static enum err_code block_check_rollup(struct verify *v, uint32_t id, uint32_t level,
	int64_t step_ns, struct str bytes, struct err *err)
{
	int64_t end_ns = step_ns + rollup_step_ns[level];
	bool finer = level && (v->b->meta.levels >> (level - 1) & 1), missed, ok;
	enum err_code rc;

	if ((rc = rollup_parse(v->view, bytes, err)) || (rc = block_check_ids(v, false, &ok, err)))
		return rc;
	v->columns[id][level] += block_columns_of(v->view);
	if (!ok)
		return err_set(err, ERR_CORRUPT, "symbols are missing");
	if (step_ns % rollup_step_ns[level])
		return err_set(err, ERR_CORRUPT, "a rollup's step is wrong");
	missed = rollup_counts_missed(v->view);
	rollup_builder_clear(v->builder);
	if (v->chunks && !(finer && missed))
		rc = block_add_rows(v, id, step_ns, end_ns, missed, err);
	else if (finer)
		rc = block_add_rollups(v, id, level - 1, step_ns, end_ns, err);
	else
		return ERR_OK;
	return rc ? rc : block_same_rollup(v, bytes, false, err);
}

enum err_code verify_series_rows(
	struct verify *v, uint32_t id, const struct block_series *s, struct err *err)
{
	struct seen seen = { .sound = true };
	enum err_code rc;
	struct err why;

	if ((rc = block_enter_slot(v, s->slot, err)))
		return rc;
	if (v->chunks &&
		((rc = block_check_chunks(v, id, s, &seen, err)) ||
			(rc = verify_series_links(v, id, s, err))))
		return rc;
	for (uint32_t level = 0; level < ROLLUP_LEVELS && seen.sound; level++) {
		struct str bytes;
		int64_t step_ns;

		block_rollups_seek(v->rollups, ROLLUP_SERIES, id, level, 0, INT64_MAX);
		while ((rc = block_rollups_next(v->rollups, &bytes, &step_ns, &why)) != ERR_NOT_FOUND) {
			if (!rc && !(rc = block_check_rollup(v, id, level, step_ns, bytes, &why)))
				continue;
			err_wrap(&why, rc, "series %" PRIu32 ", level %" PRIu32, id, level);
			if ((rc = verify_error(v, rc, &why, err)))
				return rc;
		}
		if (!(v->b->meta.levels >> level & 1))
			continue;
		if (!v->chunks && !seen.columns)
			seen.columns = v->columns[id][level];
		if (v->columns[id][level] != seen.columns)
			verify_find(v,
				"series %" PRIu32 ", level %" PRIu32 ": its rollups are not about all rows", id,
				level);
	}
	return ERR_OK;
}

/* ---- groups ---- */

static enum err_code block_check_group(
	struct verify *v, uint32_t group, enum rollup_kind kind, uint32_t level, struct err *err)
{
	uint64_t columns = 0;
	uint32_t first, n;
	struct str bytes;
	int64_t step_ns;
	struct err why;
	enum err_code rc = block_group(v->b, group, &first, &n, &why);

	if (rc)
		return ERR_OK; /* reported with its series */
	if (kind == ROLLUP_GROUP && n == 1)
		return ERR_OK; /* it shows its series' records, which were verified */
	block_rollups_seek(v->rollups, kind, group, level, 0, INT64_MAX);
	while ((rc = block_rollups_next(v->rollups, &bytes, &step_ns, &why)) != ERR_NOT_FOUND) {
		if (!rc) {
			rollup_builder_clear(v->builder);
			for (uint32_t i = first; i < first + n && !rc; i++)
				rc = block_add_rollups(v, i, level, step_ns, step_ns + 1, &why);
			if (!rc && kind == ROLLUP_GROUP && !(rc = rollup_parse(v->view, bytes, &why)))
				columns += block_columns_of(v->view);
			if (!rc && !(rc = block_same_rollup(v, bytes, kind == ROLLUP_FUNCTIONS, &why)))
				continue;
		}
		err_wrap(&why, rc, "group %" PRIu32 ", level %" PRIu32, group, level);
		if ((rc = verify_error(v, rc, &why, err)))
			return rc;
	}
	for (uint32_t i = first; i < first + n; i++)
		columns -= v->columns[i][level];
	if (kind == ROLLUP_GROUP && columns)
		verify_find(
			v, "group %" PRIu32 ", level %" PRIu32 ": not all rollups are there", group, level);
	return ERR_OK;
}

enum err_code verify_groups(struct verify *v, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (uint32_t g = 0; g < v->b->meta.groups && !rc; g++) {
		struct block_series s = { 0 };
		uint32_t first, n;

		arena_reset(&v->arena);
		if (block_group(v->b, g, &first, &n, NULL) ||
			block_series(v->b, first, &v->arena, &s, NULL))
			continue;
		if (v->slot != s.slot && v->counted.nodes) {
			uint64_t nodes = v->counted.nodes, strings = v->counted.strings;

			rc = block_enter_slot(v, s.slot, err); /* counted before */
			v->counted.nodes = nodes;
			v->counted.strings = strings;
		}
		for (uint32_t level = 0; level < ROLLUP_LEVELS && !rc; level++)
			if (!(rc = block_check_group(v, g, ROLLUP_GROUP, level, err)))
				rc = block_check_group(v, g, ROLLUP_FUNCTIONS, level, err);
	}
	return rc;
}
