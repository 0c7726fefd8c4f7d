#include <assert.h>

#include "tsdb/read/sum_internal.h"

/*
 * Adds chunks and rollup records of a block to a sum. Rows of chunks are refused for the same
 * reasons as rows of windows. If all ids of a chunk exist, its columns are added as they are; else
 * its rows are added one by one.
 */

/* Repeats an addition that failed halfway, into a fresh accumulator; that part is then subtracted
 * from acc. */
typedef enum err_code (*again_fn)(void *ctx, struct accum *acc);

static enum err_code sum_chunk_take_back(
	struct summing *s, again_fn again, void *ctx, struct err *err)
{
	const __int128 half = (__int128)1 << 62;
	struct accum_cell cell;
	struct accum *part;
	enum err_code rc;
	size_t at = 0;

	if ((rc = accum_open(s->p, ACCUM_BY_LABELS | ACCUM_WEIGHTED, &part, err)))
		return rc;
	rc = again(ctx, part);
	rc = rc == ERR_CORRUPT ? accum_seal(part, err) :
							 err_set(err, rc ? rc : ERR_CORRUPT, "sum: damaged bytes");
	while (!rc && accum_next(part, &at, &cell)) {
		__int128 left = cell.value / half;
		int64_t v = -(int64_t)(cell.value % half);

		rc = accum_add(s->acc, &cell.stack, &cell.label_set, &v, 1, 1, err);
		for (; !rc && left; left += v) {
			v = left > INT64_MAX ? -INT64_MAX : left < -INT64_MAX ? INT64_MAX : -(int64_t)left;
			rc = accum_add(s->acc, &cell.stack, &cell.label_set, &v, 1, (int64_t)half, err);
		}
	}
	accum_close(part);
	return rc;
}

static enum err_code sum_chunk_missing(const struct summing *s, const char *what, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "%s of job \"" STR_FMT "\" uses symbols that are missing",
		what, STR_ARG(s->p->name));
}

static bool sum_chunk_all_exist(
	const struct partition *p, enum sym_kind kind, const struct bits *ids)
{
	for (size_t w = 0; w < ids->words; w++)
		for (uint64_t rest = ids->w[w]; rest; rest &= rest - 1)
			if (!sym_exists(p, kind, (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(rest)))
				return false;
	return true;
}

static void sum_chunk_clear(struct bits *b)
{
	if (b->words)
		memset(b->w, 0, b->words * sizeof(*b->w));
}

static bool sum_chunk_is_damaged(const struct summing *s)
{
	return atomic_load_explicit(&s->p->damaged, memory_order_relaxed);
}

/* ---- chunks ---- */

struct sum_chunk_part {
	struct summing *t;
	struct chunk *c;
	const struct sum_chunk_heads *heads; /* kept heads, if totals are enough; NULL: c is used */
	const struct chunk_row *rows;
	uint32_t from, to; /* rows to look at */
	uint32_t columns_n;
	int64_t interval_ns;
	const struct deleted_range *del;
	size_t del_n;
	int64_t min_ns, max_ns;
	const struct row *unpacked; /* rows one by one; NULL: columns */
	const int64_t *ends; /* row i weighs ends[i + 1] - ends[i]; NULL: all weigh the same */
	int64_t weight; /* the weight of each, if ends is NULL */
	uint64_t entries, samples;
	uint32_t source, series;
	bool bad; /* some row was left out; `why` has the reason */
	struct err why;
};

/* In the order of chunk_add. */
struct sum_chunk_adding {
	struct chunk *c;
	uint32_t column, from, to;
	int64_t weight;
	const int64_t *ends; /* as in the part */
};

static enum err_code sum_chunk_add_column(
	const struct sum_chunk_adding *a, struct accum *acc, struct err *err)
{
	return a->ends ? chunk_add_spans(a->c, a->column, a->from, a->to, a->ends, acc, err) :
					 chunk_add(a->c, a->column, a->from, a->to, a->weight, acc, err);
}

/* Finds the kept sums of the end of a chunk, whose first part an earlier window has read. */
static bool sum_chunk_part_find_edge(
	const struct sum_chunk_part *p, const struct sum_chunk_adding *a, struct chunk_tail *out)
{
	struct sum_edge_key key = { p->source, p->series, a->column, a->from, p->rows[0].ts_ns };

	return p->t->q->adjoin && !a->ends && a->from > 0 && a->to == chunk_rows_n(p->c) &&
		sum_edges_find(p->t->x->edges, &key, out);
}

static enum err_code sum_chunk_part_add_rows(
	const struct sum_chunk_part *p, const struct sum_chunk_adding *a, struct err *err)
{
	struct sum_edge_key key = { p->source, p->series, a->column, a->to, p->rows[0].ts_ns };
	struct accum *acc = p->t->acc;
	struct chunk_tail tail;
	enum err_code rc;

	if (sum_chunk_part_find_edge(p, a, &tail))
		return accum_add(acc, tail.stacks, tail.label_sets, tail.values, tail.n, a->weight, err);
	if (!p->t->q->adjoin || a->ends || a->from > 0 || a->to == chunk_rows_n(p->c) ||
		!sum_edges_want(&p->t->x->edges, &key))
		return sum_chunk_add_column(a, acc, err);
	if (!(rc = chunk_add_head(p->c, a->column, a->to, a->weight, acc, &tail, err)))
		sum_edges_keep(p->t->x->edges, &key, p->rows[a->to].ts_ns, p->t->window_ns, &tail);
	return rc;
}

static enum err_code sum_chunk_add_again(void *ctx, struct accum *acc)
{
	return sum_chunk_add_column(ctx, acc, NULL);
}

static int64_t sum_chunk_part_weight(const struct sum_chunk_part *p, uint32_t i)
{
	return p->ends ? (int64_t)((uint64_t)p->ends[i + 1] - (uint64_t)p->ends[i]) : p->weight;
}

static enum err_code sum_chunk_part_note_rows(
	struct sum_chunk_part *p, uint32_t column, uint32_t from, uint32_t to, struct err *err)
{
	const int64_t *totals = p->heads ? p->heads->totals + (size_t)column * p->heads->rows_n :
									   chunk_totals(p->c, column);
	enum err_code rc = ERR_OK;

	for (uint32_t i = from; i < to && !rc; i++) {
		const struct chunk_row *r = &p->rows[i];

		rc = sum_note_row(p->t,
			&(struct sum_row){ r->ts_ns, p->interval_ns, r->time_nanos, r->duration_nanos,
				r->period, r->n, totals[i] },
			sum_chunk_part_weight(p, i), err);
	}
	return rc;
}

/* ERR_CORRUPT: nothing was added. */
static enum err_code sum_chunk_part_add_columns(
	struct sum_chunk_part *p, uint32_t column, uint32_t from, uint32_t to, struct err *err)
{
	struct sum_chunk_adding a = { p->c, column, from, to, p->weight, p->ends };
	enum err_code rc = sum_chunk_part_add_rows(p, &a, err), back;

	p->t->stats->read += from == 0 && to == chunk_rows_n(p->c) ? p->entries : p->samples;
	if (rc == ERR_CORRUPT && (back = sum_chunk_take_back(p->t, sum_chunk_add_again, &a, err)))
		return back == ERR_CORRUPT ? ERR_LIMIT : back; /* acc is unusable now */
	return rc;
}

static enum err_code sum_chunk_part_add_unpacked(
	struct sum_chunk_part *p, uint32_t column, uint32_t i, struct err *err)
{
	const struct row *r = &p->unpacked[i];
	struct row_view *v = &p->t->x->view;
	const uint32_t *sets = r->label_sets ? r->label_sets : sum_zeros(p->t->x, r->n);
	enum err_code rc;

	if (!sets)
		return err_nomem(err, "sum");
	v->header = r->header;
	v->columns_n = r->columns_n;
	v->n = r->n;
	if ((rc = row_check_ids(p->t->p, v, r->stacks, sets, err)))
		return rc;
	p->t->stats->read += r->n;
	return accum_add(p->t->acc, r->stacks, r->label_sets ? sets : NULL,
		r->values + (size_t)column * r->n, r->n, sum_chunk_part_weight(p, i), err);
}

/* Rows [from, to), which have the type in this column. *any: some were added. */
static enum err_code sum_chunk_part_add_run(struct sum_chunk_part *p, uint32_t column,
	uint32_t from, uint32_t to, bool *any, struct err *err)
{
	struct summing *t = p->t;
	enum err_code rc = ERR_OK;

	for (uint32_t i = from, end; i < to; i = end) {
		end = p->unpacked ? i + 1 : to;
		if (t->acc)
			rc = p->unpacked ? sum_chunk_part_add_unpacked(p, column, i, &p->why) :
							   sum_chunk_part_add_columns(p, column, i, end, &p->why);
		if (rc == ERR_CORRUPT) {
			p->bad = true;
			continue;
		}
		if (rc)
			return err_copy(err, &p->why);
		for (uint32_t k = i; k < end; k++)
			if ((k == i || p->rows[k].header != p->rows[k - 1].header) &&
				(rc = sum_note_header(t, p->rows[k].header, err)))
				return rc;
		if ((rc = sum_chunk_part_note_rows(p, column, i, end, err)))
			return rc;
		*any = true;
	}
	return ERR_OK;
}

static bool sum_chunk_part_has(const struct sum_chunk_part *p, uint32_t i)
{
	int64_t ts = p->rows[i].ts_ns;

	return ts > p->min_ns && ts <= p->max_ns && !deleted_has(p->del, p->del_n, ts);
}

/* Computes the weights of the rows. */
static void sum_chunk_part_weigh(struct sum_chunk_part *p)
{
	int64_t *ends = p->t->x->ends, weight;
	bool same = true;

	p->ends = NULL;
	p->weight = sum_is_weighted(p->t) ? p->interval_ns : 1;
	ends[p->from] = 0;
	for (uint32_t i = p->from; i < p->to && sum_is_weighted(p->t); i++) {
		weight = 0;
		if (sum_chunk_part_has(p, i)) {
			weight = sum_weight(p->t, p->rows[i].ts_ns, p->interval_ns);
			same &= weight == p->interval_ns;
		}
		/* may wrap if all weights are equal; then ends is not used */
		ends[i + 1] = (int64_t)((uint64_t)ends[i] + (uint64_t)weight);
	}
	if (!same)
		p->ends = ends;
}

/* The column of the type in this row; -1: the row lacks the type or is not to be added. */
static int sum_chunk_part_column_of(struct sum_chunk_part *p, uint32_t i)
{
	const struct chunk_row *r = &p->rows[i];

	if (!sum_chunk_part_has(p, i))
		return -1;
	if (sum_header(p->t, r->header, p->columns_n, &p->why)) {
		p->bad = true;
		return -1;
	}
	return p->t->column;
}

static enum err_code sum_chunk_part_ids_exist(struct sum_chunk_part *p, bool *all, struct err *err)
{
	struct sum_scratch *x = p->t->x;
	const struct partition *sym = p->t->p;
	enum err_code rc;

	*all = (!chunk_stack_max(p->c) || chunk_stack_max(p->c) < sym_nodes_n(sym)) &&
		(!chunk_label_set_max(p->c) || chunk_label_set_max(p->c) < sym_label_sets_n(sym));
	if (!*all || !sum_chunk_is_damaged(p->t))
		return ERR_OK;
	sum_chunk_clear(&x->stacks);
	sum_chunk_clear(&x->sets);
	if ((rc = chunk_mark_ids(p->c, &x->stacks, &x->sets, err)))
		return rc;
	*all = sum_chunk_all_exist(sym, SYM_NODE, &x->stacks) &&
		sum_chunk_all_exist(sym, SYM_LABEL_SET, &x->sets);
	return ERR_OK;
}

static void sum_chunk_part_begin(struct sum_chunk_part *p, struct summing *summing,
	const struct querier_source *s, uint32_t id, int64_t min_ns, int64_t max_ns)
{
	p->t = summing;
	p->c = summing->x->chunk;
	p->heads = NULL;
	p->unpacked = NULL;
	p->bad = false;
	p->min_ns = min_ns;
	p->max_ns = max_ns;
	p->source = (uint32_t)(s - summing->q->sources);
	p->series = id;
	p->del_n = deleted_of((struct deleted){ s->deleted, s->deleted_n }, id, &p->del);
}

static void sum_chunk_part_of_chunk(struct sum_chunk_part *p)
{
	p->rows = chunk_rows(p->c);
	p->from = 0;
	p->to = chunk_rows_n(p->c);
	p->columns_n = chunk_columns_n(p->c);
	p->interval_ns = chunk_interval_ns(p->c);
}

static enum err_code sum_chunk_part_open(
	struct sum_chunk_part *p, struct str bytes, struct err *err)
{
	struct chunk_sizes sizes;
	enum err_code rc;
	bool all = true;

	if (!p->c && !(p->c = p->t->x->chunk = chunk_open()))
		return err_nomem(err, "sum");
	if ((rc = chunk_parse(p->c, bytes, err)))
		return rc;
	sum_chunk_part_of_chunk(p);
	if (!p->t->acc)
		return ERR_OK;
	if ((rc = chunk_measure(p->c, &sizes, err)) || (rc = sum_chunk_part_ids_exist(p, &all, err)))
		return rc;
	p->entries = sizes.entries;
	p->samples = sizes.samples;
	return all ? ERR_OK : chunk_unpack(p->c, &p->unpacked, err);
}

/* Narrows [from, to) to rows in the window; rows ascend. */
static void sum_chunk_part_narrow(struct sum_chunk_part *p)
{
	uint32_t lo = p->from, hi = p->to, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (p->rows[mid].ts_ns <= p->min_ns)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (p->from = lo; hi < p->to && p->rows[hi].ts_ns <= p->max_ns;)
		hi++;
	p->to = hi;
}

static enum err_code sum_chunk_part_close(const struct sum_chunk_part *p, struct err *err)
{
	if (!p->bad)
		return ERR_OK;
	err_copy(err, &p->why);
	return ERR_CORRUPT;
}

/* Adds the rows, in runs that have the type in the same column. */
static enum err_code sum_chunk_part_add(struct sum_chunk_part *p, struct err *err)
{
	uint32_t i = p->from, end;
	enum err_code rc;
	int column, next;
	bool any;

	sum_chunk_part_weigh(p);
	for (next = i < p->to ? sum_chunk_part_column_of(p, i) : -1; i < p->to; i = end) {
		column = next;
		for (end = i + 1; end < p->to; end++)
			if ((next = sum_chunk_part_column_of(p, end)) != column)
				break;
		if (column >= 0 && (rc = sum_chunk_part_add_run(p, (uint32_t)column, i, end, &any, err)))
			return rc;
	}
	return sum_chunk_part_close(p, err);
}

enum err_code sum_chunk(struct summing *summing, struct querier_source *s, uint32_t id,
	struct str bytes, int64_t min_ns, int64_t max_ns, struct err *err)
{
	struct sum_chunk_part p;
	enum err_code rc;

	sum_chunk_part_begin(&p, summing, s, id, min_ns, max_ns);
	if ((rc = sum_chunk_part_open(&p, bytes, err)))
		return rc;
	return sum_chunk_part_add(&p, err);
}

enum err_code sum_chunk_heads(struct summing *summing, struct querier_source *s, uint32_t id,
	const struct sum_chunk_heads *heads, int64_t min_ns, int64_t max_ns, struct err *err)
{
	struct sum_chunk_part p;

	assert(!summing->acc);
	sum_chunk_part_begin(&p, summing, s, id, min_ns, max_ns);
	if ((p.heads = heads)) {
		p.rows = heads->rows;
		p.from = 0;
		p.to = heads->rows_n;
		p.columns_n = heads->columns_n;
		p.interval_ns = heads->interval_ns;
	} else {
		sum_chunk_part_of_chunk(&p);
	}
	sum_chunk_part_narrow(&p);
	return sum_chunk_part_add(&p, err);
}

enum err_code sum_chunk_last(struct summing *summing, struct querier_source *s, uint32_t id,
	struct str bytes, int64_t min_ns, int64_t max_ns, bool *found, struct err *err)
{
	struct sum_chunk_part p;
	enum err_code rc;
	int column;

	sum_chunk_part_begin(&p, summing, s, id, min_ns, max_ns);
	if ((rc = sum_chunk_part_open(&p, bytes, err)))
		return rc;
	sum_chunk_part_weigh(&p);
	for (uint32_t i = p.to; i-- > 0 && !*found;)
		if ((column = sum_chunk_part_column_of(&p, i)) >= 0 &&
			(rc = sum_chunk_part_add_run(&p, (uint32_t)column, i, i + 1, found, err)))
			return rc;
	return sum_chunk_part_close(&p, err);
}

/* ---- records ---- */

enum err_code sum_find_column(struct summing *s, const struct rollup_view *v,
	const struct rollup_column **out, uint32_t *at, struct err *err)
{
	*out = NULL;
	for (uint32_t i = 0; i < rollup_columns_n(v) && !*out; i++) {
		const struct rollup_column *c = rollup_column(v, i);

		if (!sym_exists(s->p, SYM_HEADER, c->header))
			return sum_chunk_missing(s, "a sum", err);
		if (header_column(s->p, c->header, s->type) == (int)c->column) {
			*out = c;
			*at = i;
		}
	}
	for (uint32_t i = 0; *out && i < (*out)->headers_n; i++)
		if (!sym_exists(s->p, SYM_HEADER, (*out)->headers[i]))
			return sum_chunk_missing(s, "a sum", err);
	return ERR_OK;
}

static enum err_code sum_chunk_check_record(
	struct summing *s, struct rollup_view *v, struct err *err)
{
	struct sum_scratch *x = s->x;
	uint32_t max = rollup_stack_max(v, err);
	enum err_code rc;

	if (max == UINT32_MAX)
		return ERR_CORRUPT;
	if (max && max >= sym_nodes_n(s->p))
		return sum_chunk_missing(s, "a sum", err);
	if (!sum_chunk_is_damaged(s))
		return ERR_OK;
	sum_chunk_clear(&x->stacks);
	sum_chunk_clear(&x->sets);
	if ((rc = rollup_mark_ids(v, &x->stacks, &x->sets, err)))
		return rc;
	if (!sum_chunk_all_exist(s->p, SYM_NODE, &x->stacks) ||
		!sum_chunk_all_exist(s->p, SYM_LABEL_SET, &x->sets))
		return sum_chunk_missing(s, "a sum", err);
	return ERR_OK;
}

struct adding_record {
	struct rollup_view *v;
	uint32_t column;
};

static enum err_code sum_chunk_add_record_again(void *ctx, struct accum *acc)
{
	struct adding_record *a = ctx;

	return rollup_add(a->v, a->column, acc, NULL);
}

enum err_code sum_note_record(
	struct summing *s, const struct rollup_column *c, int64_t step_ns, struct err *err)
{
	struct cover_step step = { .length_ns = step_ns,
		.start_ns = c->start_ns,
		.end_ns = c->end_ns,
		.counted_ns = c->elapsed_ns,
		.rows = c->rows };
	struct sum_stats *st = s->stats;
	enum err_code rc;

	for (uint32_t i = 0; i < c->headers_n; i++)
		if ((rc = sum_note_header(s, c->headers[i], err)))
			return rc;
	if (!st->rows || c->start_ns < st->start_ns)
		st->start_ns = c->start_ns;
	if (!st->rows || c->end_ns > st->end_ns)
		st->end_ns = c->end_ns;
	sum_note_totals(st, (struct row_total){ c->min.total, c->min.ts_ns },
		(struct row_total){ c->max.total, c->max.ts_ns });
	st->elapsed_ns += c->elapsed_ns;
	st->profiled_ns += c->profiled_ns;
	st->rows += c->rows;
	st->samples += c->samples;
	if (c->time_nanos && (!st->time_nanos || c->time_nanos < st->time_nanos))
		st->time_nanos = c->time_nanos;
	if (__builtin_add_overflow(st->duration_ns, c->duration_ns, &st->duration_ns))
		st->duration_ns = c->duration_ns > 0 ? INT64_MAX : INT64_MIN;
	if (c->period > st->period)
		st->period = c->period;
	st->total += c->total;
	return s->levels ? cover_add_rows(&st->counted, &s->window, step, s->a, err) : ERR_OK;
}

enum err_code sum_record(struct summing *s, struct str bytes, int64_t step_ns, struct err *err)
{
	const struct rollup_column *c;
	struct adding_record a = { 0 };
	struct rollup_view *v;
	enum err_code rc, back;

	if (!s->x->rollup && !(s->x->rollup = rollup_view_open()))
		return err_nomem(err, "sum");
	a.v = v = s->x->rollup;
	if ((rc = rollup_parse(v, bytes, err)) || (rc = sum_find_column(s, v, &c, &a.column, err)))
		return rc;
	if (!c || !c->rows)
		return ERR_OK;
	if (s->acc) {
		if ((rc = sum_chunk_check_record(s, v, err)))
			return rc;
		s->stats->read += rollup_cells(v);
		rc = rollup_add(v, a.column, s->acc, err);
		if (rc == ERR_CORRUPT &&
			(back = sum_chunk_take_back(s, sum_chunk_add_record_again, &a, err)))
			return back == ERR_CORRUPT ? ERR_LIMIT : back; /* acc is unusable now */
		if (rc)
			return rc;
	}
	return sum_note_record(s, c, step_ns, err);
}
