#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tsdb/head/epochs.h"
#include "tsdb/read/sum_internal.h"
#include "tsdb/rollup/cascade.h"

/*
 * Sums over a block. Whole steps come from rollups, coarsest first; the edges come from the next
 * finer level, and at last from chunks. Whole groups come from the group's records, if nothing of
 * the group was deleted in the step. If a record cannot be read, the finer level is read instead.
 *
 * If costs of functions are enough, whole groups use totals of functions instead of records with
 * cells. Symbols of stacks are loaded only when the first cell is to be added.
 */

/* Series that are summed together: all series of a group, or one series. */
struct sum_block_unit {
	uint32_t first, n, group;
	bool whole; /* all of the group */
};

struct summed {
	struct summing *t;
	struct querier_source *s;
	int64_t min_ns, max_ns; /* what the block covers */
	unsigned levels;
	bool raw;
	uint32_t slot; /* of the partition */
	bool no_stacks; /* the block's stacks cannot be used */
};

/* Clips the begin or end of a step to the block's time. */
static int64_t summed_covered(const struct summed *b, int64_t step_ns)
{
	return step_ns < b->min_ns ? b->min_ns : step_ns > b->max_ns ? b->max_ns : step_ns;
}

/* ---- what the block says of its series ---- */

static enum err_code sum_block_read_place(struct summing *summing, struct querier_source *s,
	uint32_t id, struct sum_place *places, struct err *err)
{
	uint64_t series = block_meta(s->b->block)->series;
	struct block_series rec = { 0 };
	uint32_t first = id, n = 1;
	enum err_code rc;

	arena_reset(&summing->x->arena);
	if ((rc = block_series(s->b->block, id, &summing->x->arena, &rec, err)) ||
		(rc = block_group(s->b->block, rec.group, &first, &n, err)))
		return rc;
	if (id < first || id - first >= n || (uint64_t)first + n > series)
		return err_set(err, ERR_CORRUPT, "block %s: series %" PRIu32 " is not in its group",
			block_dir(s->b->block), id);
	for (struct sum_place *p = places + first; p < places + first + n; p++) {
		p->slot = rec.slot; /* not all fields: a series with a damaged record may have heads */
		p->group = rec.group;
		p->group_first = first;
		p->group_n = n;
	}
	return ERR_OK;
}

/* Finds the place of the series in the block, and reads it once; *out NULL: its record cannot be
 * read. */
static enum err_code sum_block_place_of(struct summing *summing, struct querier_source *s,
	uint32_t id, const struct sum_place **out, struct err *err)
{
	struct sum_place **places = &summing->x->places[s - summing->q->sources];
	uint64_t series = block_meta(s->b->block)->series;
	enum err_code rc = ERR_OK;
	struct err why;

	*out = NULL;
	if (id >= series)
		return ERR_OK;
	if (!*places && !(*places = calloc(series, sizeof(**places))))
		return err_nomem(err, "sum");
	if (!(*places)[id].group_n && (rc = sum_block_read_place(summing, s, id, *places, &why))) {
		if (rc == ERR_CORRUPT && !summing->expect)
			querier_warn(summing->q, s, &why);
		return rc == ERR_CORRUPT ? ERR_OK : err_copy(err, &why);
	}
	*out = &(*places)[id];
	return ERR_OK;
}

/* Loads the stacks before cells are added. *usable false: they cannot be loaded. */
static enum err_code summed_need_stacks(struct summed *b, bool *usable, struct err *err)
{
	struct partition *p;
	enum err_code rc;

	*usable = !b->no_stacks;
	if (b->no_stacks || !b->t->acc)
		return ERR_OK;
	rc = querier_partition(b->t->q, b->s, b->slot, true, &p, err);
	if (rc != ERR_CORRUPT && rc != ERR_EXISTS)
		return rc;
	*usable = false; /* there is a warning */
	b->no_stacks = true;
	return ERR_OK;
}

/* ---- chunks ---- */

static void summed_expect_stacks(struct summed *b)
{
	const struct querier_source *s = b->s;

	if (b->t->wish == SUM_TOTALS || b->no_stacks || !s->need || !s->need[b->slot] ||
		partition_has_block(s->need[b->slot], s->b, BLOCK_STACKS))
		return;
	block_symbols_expect(s->b->block, b->slot, BLOCK_STACKS);
	b->no_stacks = true; /* announced; not again */
}

static enum err_code summed_expect_raw(
	struct summed *b, const struct sum_block_unit *u, int64_t min_ns, int64_t max_ns)
{
	if (b->raw && b->t->expect == SUM_STACKS)
		summed_expect_stacks(b);
	if (b->raw && b->t->expect == SUM_ROWS)
		block_chunks_expect(b->s->b->block, u->first, u->n, min_ns, max_ns);
	return ERR_OK;
}

static enum err_code summed_add_raw(struct summed *b, const struct sum_block_unit *u,
	int64_t min_ns, int64_t max_ns, struct err *err)
{
	if (b->t->expect)
		return summed_expect_raw(b, u, min_ns, max_ns);

	bool usable = true;
	enum err_code rc = b->raw ? summed_need_stacks(b, &usable, err) : ERR_OK;

	if (b->raw && usable && !rc)
		sum_heads_expect(b->t, b->s, u->first, u->n, min_ns, max_ns);
	for (uint32_t i = 0; i < u->n && b->raw && usable && !rc; i++)
		rc = sum_heads_series(b->t, b->s, u->first + i, min_ns, max_ns, err);
	return rc;
}

/* ---- records ---- */

static enum err_code summed_add_range(struct summed *b, const struct sum_block_unit *u, int level,
	int64_t min_ns, int64_t max_ns, struct err *err);

static enum err_code summed_add_finer(struct summed *b, const struct sum_block_unit *u, int level,
	int64_t from_ns, int64_t to_ns, struct err *err)
{
	return summed_add_range(
		b, u, level - 1, summed_covered(b, from_ns), summed_covered(b, to_ns), err);
}

static void sum_block_unit_seek(const struct sum_block_unit *u, struct block_rollups *it, int level,
	int64_t from_ns, int64_t to_ns)
{
	bool group = u->n > 1;

	block_rollups_seek(it, group ? ROLLUP_GROUP : ROLLUP_SERIES, group ? u->group : u->first,
		(uint32_t)level, from_ns, to_ns);
}

/* Adds the records of steps that start in [from, to). No row in these steps is deleted. */
static enum err_code summed_add_records(struct summed *b, const struct sum_block_unit *u, int level,
	int64_t from_ns, int64_t to_ns, struct err *err)
{
	int64_t len = rollup_step_ns[level], step;
	struct summing *t = b->t;
	struct block_rollups *it;
	enum err_code rc = ERR_OK;
	bool lost = false, bad, usable;
	struct str bytes;
	struct err why;

	if (from_ns >= to_ns)
		return ERR_OK;
	if ((rc = summed_need_stacks(b, &usable, err)) || !usable)
		return rc;
	if (!(it = querier_rollups(b->s, err)))
		return err_nomem(err, "sum");
	for (sum_block_unit_seek(u, it, level, from_ns, to_ns);;) {
		if ((rc = block_rollups_next(it, &bytes, &step, &why)) == ERR_NOT_FOUND)
			break;
		if (rc == ERR_CORRUPT) { /* any step before the next record may be lost */
			querier_warn(t->q, b->s, &why);
			lost = true;
			continue;
		}
		if (!rc && !(rc = sum_canceled(t, &why)))
			rc = sum_record(t, bytes, len, &why);
		bad = rc == ERR_CORRUPT;
		if (rc && !bad)
			return err_copy(err, &why);
		if (bad)
			querier_warn(t->q, b->s, &why);
		if (lost || bad) {
			if ((rc = summed_add_finer(
					 b, u, level, lost ? from_ns : step, bad ? step + len : step, err)))
				return rc;
			sum_block_unit_seek(u, it, level, step + len, to_ns);
			lost = false;
		}
		from_ns = step + len;
	}
	return lost ? summed_add_finer(b, u, level, from_ns, to_ns, err) : ERR_OK;
}

/* As summed_add_records, with totals of functions; a step without totals is added from its
 * cells. */
static enum err_code summed_add_functions(struct summed *b, const struct sum_block_unit *u,
	int level, int64_t from_ns, int64_t to_ns, struct err *err)
{
	int64_t len = rollup_step_ns[level], step, end;
	struct summing *t = b->t;
	struct block_rollups *it;
	struct str bytes;
	enum err_code rc;
	struct err why;
	bool usable;

	if (from_ns >= to_ns)
		return ERR_OK;
	if (!(it = querier_rollups(b->s, err)))
		return err_nomem(err, "sum");
	block_rollups_seek(it, ROLLUP_FUNCTIONS, u->group, (uint32_t)level, from_ns, to_ns);
	while ((rc = block_rollups_next(it, &bytes, &step, &why)) != ERR_NOT_FOUND) {
		if (rc == ERR_CORRUPT) { /* treated as missing: cells are read instead */
			querier_warn(t->q, b->s, &why);
			continue;
		}
		if (!rc && !(rc = sum_canceled(t, &why)))
			rc = sum_function_record(t, bytes, &usable, &why);
		if (rc && rc != ERR_CORRUPT)
			return err_copy(err, &why);
		if (rc)
			querier_warn(t->q, b->s, &why);
		end = rc || !usable ? step + len : step;
		if (from_ns < end) {
			if ((rc = summed_add_records(b, u, level, from_ns, end, err)))
				return rc;
			block_rollups_seek(it, ROLLUP_FUNCTIONS, u->group, (uint32_t)level, step + len, to_ns);
		}
		from_ns = step + len;
	}
	return summed_add_records(b, u, level, from_ns, to_ns, err);
}

static enum err_code summed_expect_whole(
	struct summed *b, const struct sum_block_unit *u, int level, int64_t from_ns, int64_t to_ns)
{
	bool functions = b->t->wish == SUM_FUNCTIONS && u->whole;
	enum rollup_kind kind = functions ? ROLLUP_FUNCTIONS : u->n > 1 ? ROLLUP_GROUP : ROLLUP_SERIES;

	if (b->t->expect == SUM_STACKS && !functions)
		summed_expect_stacks(b);
	if (b->t->expect == SUM_RECORDS)
		block_rollups_expect(b->s->b->block, kind, kind == ROLLUP_SERIES ? u->first : u->group,
			(uint32_t)level, from_ns, to_ns);
	return ERR_OK;
}

static enum err_code summed_add_whole(struct summed *b, const struct sum_block_unit *u, int level,
	int64_t from_ns, int64_t to_ns, struct err *err)
{
	if (b->t->expect)
		return summed_expect_whole(b, u, level, from_ns, to_ns);
	return b->t->functions && u->whole ? summed_add_functions(b, u, level, from_ns, to_ns, err) :
										 summed_add_records(b, u, level, from_ns, to_ns, err);
}

static bool summed_touched(
	const struct summed *b, const struct sum_block_unit *u, int64_t from_ns, int64_t to_ns)
{
	const struct deleted d = { b->s->deleted, b->s->deleted_n };
	const struct deleted_range *v;

	for (uint32_t i = 0; i < u->n && d.n; i++) {
		size_t n = deleted_of(d, u->first + i, &v);

		if (n && deleted_touches(v, n, summed_covered(b, from_ns), summed_covered(b, to_ns)))
			return true;
	}
	return false;
}

/* Nothing finer than the level is kept. */
static bool summed_is_finest(const struct summed *b, int level)
{
	return !b->raw && !(b->levels & ((1u << level) - 1));
}

/* *out: whether some rows of one series' record are deleted. DELETED_NONE if the record cannot be
 * read. */
static enum err_code summed_look_at_record(struct summed *b, const struct sum_block_unit *u,
	int level, int64_t step_ns, enum deleted_part *out, struct err *err)
{
	struct sum_scratch *x = b->t->x;
	const struct deleted_range *v;
	struct block_rollups *it;
	enum err_code rc;
	struct str bytes;
	struct err why;
	int64_t at;
	size_t n = deleted_of((struct deleted){ b->s->deleted, b->s->deleted_n }, u->first, &v);

	*out = DELETED_NONE;
	if (!(it = querier_rollups(b->s, err)) || (!x->rollup && !(x->rollup = rollup_view_open())))
		return err_nomem(err, "sum");
	sum_block_unit_seek(u, it, level, step_ns, step_ns + rollup_step_ns[level]);
	if (!(rc = block_rollups_next(it, &bytes, &at, &why)) &&
		!(rc = rollup_parse(x->rollup, bytes, &why)))
		*out = deleted_of_record(v, n, x->rollup);
	if (!rc || rc == ERR_NOT_FOUND || rc == ERR_CORRUPT) /* the sum will warn */
		return ERR_OK;
	return err_copy(err, &why);
}

/* Adds a step of one series that has deletions. If nothing finer than the step's record is kept,
 * the record is used only if none of its rows is deleted. Joining blocks does the same. */
static enum err_code summed_add_touched(
	struct summed *b, const struct sum_block_unit *u, int level, int64_t step_ns, struct err *err)
{
	int64_t end_ns = step_ns + rollup_step_ns[level];
	enum deleted_part part;
	struct buf step = { 0 };
	enum err_code rc;

	if (!summed_is_finest(b, level))
		return summed_add_finer(b, u, level, step_ns, end_ns, err);
	if (b->t->expect)
		return ERR_OK;
	if ((rc = summed_look_at_record(b, u, level, step_ns, &part, err)))
		return rc;
	if (part == DELETED_NONE)
		return summed_add_records(b, u, level, step_ns, end_ns, err);
	if (part == DELETED_ALL)
		return ERR_OK;
	duration_print(&step, rollup_step_ns[level]);
	querier_info(b->t->q,
		"some profiles stored only in rollups of " STR_FMT
		" steps were deleted: the answer lacks their steps",
		STR_ARG(buf_str(&step)));
	buf_release(&step);
	return ERR_OK;
}

/* Adds steps that start in [from, to). A step with deletions is added series by series, and from
 * finer sums. */
static enum err_code summed_add_steps(struct summed *b, const struct sum_block_unit *u, int level,
	int64_t from_ns, int64_t to_ns, struct err *err)
{
	int64_t len = rollup_step_ns[level], whole = from_ns;
	enum err_code rc = ERR_OK;

	if (!summed_touched(b, u, from_ns, to_ns))
		return summed_add_whole(b, u, level, from_ns, to_ns, err);
	for (int64_t step = from_ns; step < to_ns && !rc; step += len) {
		if (!summed_touched(b, u, step, step + len))
			continue;
		rc = summed_add_whole(b, u, level, whole, step, err);
		whole = step + len;
		if (!rc && u->n == 1)
			rc = summed_add_touched(b, u, level, step, err);
		for (uint32_t i = 0; i < u->n && u->n > 1 && !rc; i++)
			rc = summed_add_steps(b, &(struct sum_block_unit){ u->first + i, 1, u->group, false },
				level, step, whole, err);
	}
	return rc ? rc : summed_add_whole(b, u, level, whole, to_ns, err);
}

/* ---- ranges ---- */

static void summed_tell_whole_steps(struct summed *b, int level)
{
	struct db_querier *q = b->t->q;
	struct buf until = { 0 }, step = { 0 };
	int64_t max_ns = b->max_ns;

	if (b->t->expect)
		return;
	for (size_t i = 0; i < q->sources_n; i++)
		if (q->sources[i].b && !block_has_raw(q->sources[i].b->block) &&
			q->sources[i].max_ns > max_ns)
			max_ns = q->sources[i].max_ns;
	time_print_rfc3339(&until, max_ns);
	duration_print(&step, rollup_step_ns[level]);
	querier_info(q,
		"profiles before " STR_FMT " are stored only in rollups of " STR_FMT
		" steps: the window is rounded to whole steps",
		STR_ARG(buf_str(&until)), STR_ARG(buf_str(&step)));
	buf_release(&until);
	buf_release(&step);
}

/* For gauges, keeps only days that are in the region of whole hours as a whole; of other days,
 * hours are read (cover.h). */
static void summed_keep_whole_days(const struct summed *b, int64_t *from_ns, int64_t *to_ns)
{
	const struct cover_window *w = &b->t->window;

	if (*from_ns < w->days_min_ns)
		*from_ns = w->days_min_ns;
	if (*to_ns > w->days_max_ns)
		*to_ns = w->days_max_ns;
}

static enum err_code summed_add_range(struct summed *b, const struct sum_block_unit *u, int level,
	int64_t min_ns, int64_t max_ns, struct err *err)
{
	int64_t len, from, to;
	enum err_code rc;
	bool last;

	while (level >= 0 && !(b->levels >> level & 1))
		level--;
	if (min_ns >= max_ns)
		return ERR_OK;
	if (level < 0)
		return summed_add_raw(b, u, min_ns, max_ns, err);
	len = rollup_step_ns[level];
	/* If nothing finer is kept, a step belongs to the window that has its end. */
	last = summed_is_finest(b, level);
	from = cascade_step_of((unsigned)level, min_ns + 1);
	to = cascade_step_of((unsigned)level, max_ns);
	if (last && summed_covered(b, from) < min_ns)
		summed_tell_whole_steps(b, level);
	else if (summed_covered(b, from) < min_ns)
		from += len;
	if (summed_covered(b, to + len) <= max_ns)
		to += len;
	else if (last)
		summed_tell_whole_steps(b, level);
	if (!last && b->t->levels && len > NS_PER_HOUR)
		summed_keep_whole_days(b, &from, &to);
	if (last)
		return summed_add_steps(b, u, level, from, to, err);
	if (from >= to)
		return summed_add_range(b, u, level - 1, min_ns, max_ns, err);
	if ((rc = summed_add_range(b, u, level - 1, min_ns, summed_covered(b, from), err)) ||
		(rc = summed_add_steps(b, u, level, from, to, err)))
		return rc;
	return summed_add_range(b, u, level - 1, summed_covered(b, to), max_ns, err);
}

/* ---- blocks ---- */

/* Loads the partition of the series. *found false: the block's symbols cannot be used. */
static enum err_code summed_open_block(struct summed *b, struct summing *summing,
	struct querier_source *s, const uint32_t *ids, size_t n, bool *found, struct err *err)
{
	const struct sum_place *place = NULL;
	enum err_code rc;

	*found = false;
	*b = (struct summed){ summing, s, s->min_ns, s->max_ns, block_levels(s->b->block),
		block_has_raw(s->b->block), 0, false };
	for (size_t i = 0; i < n && !place; i++)
		if ((rc = sum_block_place_of(summing, s, ids[i], &place, err)))
			return rc;
	if (!place)
		return ERR_OK;
	b->slot = place->slot;
	if ((*found = summing->expect != SUM_NO_PART))
		return ERR_OK;
	rc = querier_partition(
		summing->q, s, place->slot, summing->acc != NULL && !summing->functions, &summing->p, err);
	*found = rc == ERR_OK;
	return rc == ERR_CORRUPT || rc == ERR_EXISTS ? ERR_OK : rc;
}

enum err_code sum_block(struct summing *summing, struct querier_source *s, const uint32_t *ids,
	size_t n, int64_t min_ns, int64_t max_ns, struct err *err)
{
	const struct sum_place *place;
	struct summed b;
	enum err_code rc;
	bool found;

	if ((rc = summed_open_block(&b, summing, s, ids, n, &found, err)) || !found)
		return rc;
	min_ns = summed_covered(&b, min_ns);
	max_ns = summed_covered(&b, max_ns);
	for (size_t i = 0; i < n && !rc;) {
		struct sum_block_unit u = { ids[i], 1, 0, false };

		if ((rc = sum_block_place_of(summing, s, ids[i], &place, err)))
			return rc;
		/* Ids ascend without duplicates: the group is complete if its last id is at the expected
		 * place. */
		if (place && place->group_first == ids[i] && place->group_n <= n - i &&
			ids[i + place->group_n - 1] == ids[i] + place->group_n - 1)
			u = (struct sum_block_unit){ ids[i], place->group_n, place->group, true };
		rc = summed_add_range(&b, &u, ROLLUP_LEVELS - 1, min_ns, max_ns, err);
		i += u.n;
	}
	return rc;
}

enum err_code sum_block_piece(struct summing *summing, struct querier_source *s, uint32_t id,
	int64_t min_ns, int64_t max_ns, struct err *err)
{
	bool found, usable = false;
	struct summed b;
	enum err_code rc = summed_open_block(&b, summing, s, &id, 1, &found, err);

	if (!rc && found && b.raw)
		rc = summed_need_stacks(&b, &usable, err);
	return rc || !usable ? rc : sum_heads_series(summing, s, id, min_ns, max_ns, err);
}

/* ---- the latest row ---- */

/* Tries the chunks with rows in (min, max], the last one first. */
static enum err_code summed_last_in_range(
	struct summed *b, uint32_t id, int64_t min_ns, int64_t max_ns, bool *found, struct err *err)
{
	struct block_chunks *it = querier_chunks(b->s, err);
	struct summing *t = b->t;
	size_t n = SIZE_MAX, at;
	enum err_code rc = ERR_OK;
	struct str bytes;
	int64_t first;
	struct err why;

	if (!it)
		return err_nomem(err, "sum");
	while (n && !rc && !*found) {
		block_chunks_seek(it, id, min_ns, max_ns);
		for (at = 0; at < n; at++) {
			while ((rc = block_chunks_next(it, &bytes, &first, &why)) == ERR_CORRUPT)
				querier_warn(t->q, b->s, &why);
			if (rc)
				break;
		}
		if (rc == ERR_NOT_FOUND) { /* all are counted: now read the last one */
			n = at;
			rc = ERR_OK;
			continue;
		}
		if (!rc && !(rc = sum_canceled(t, &why)))
			rc = sum_chunk_last(t, b->s, id, bytes, min_ns, max_ns, found, &why);
		if (rc == ERR_CORRUPT) {
			querier_warn(t->q, b->s, &why);
			rc = ERR_OK;
		}
		n--;
	}
	return rc ? err_copy(err, &why) : ERR_OK;
}

enum err_code sum_block_last(struct summing *summing, struct querier_source *s, uint32_t id,
	int64_t min_ns, int64_t max_ns, bool *found, struct err *err)
{
	int64_t span = NS_PER_HOUR, from;
	struct summed b;
	enum err_code rc;
	bool there;

	if ((rc = summed_open_block(&b, summing, s, &id, 1, &there, err)) || !there)
		return rc;
	if (!b.raw) {
		querier_info(
			summing->q, "the latest profile is unknown: profiles are stored only in rollups");
		return ERR_OK;
	}
	summing->header = SYM_NONE;
	min_ns = summed_covered(&b, min_ns);
	max_ns = summed_covered(&b, max_ns);
	/* Chunks can only be walked forwards. So a short range at the end is tried first, then longer
	 * ones before it. */
	for (; max_ns > min_ns && !*found && !rc; max_ns = from, span *= 4) {
		from = max_ns - min_ns > span ? max_ns - span : min_ns;
		rc = summed_last_in_range(&b, id, from, max_ns, found, err);
		if (span > NS_PER_DAY * 365)
			span = NS_PER_DAY * 365;
	}
	return rc;
}
