#include "tests/promql/levels/model.h"

#include <math.h>
#include <stdlib.h>

#define SERIES_MAX 128

/* ---- series ---- */

void levels_add(struct levels_series *s, struct levels_row row)
{
	if (s->n == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 64;
		if (!(s->rows = realloc(s->rows, s->cap * sizeof(*s->rows))))
			abort();
	}
	s->rows[s->n++] = row;
}

void levels_release(struct levels_series *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].rows);
		v[i] = (struct levels_series){ 0 };
	}
}

/* The first row after a time. */
static size_t levels_after(const struct levels_series *s, int64_t t_ns)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->rows[mid].ts_ns <= t_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* ---- time that is covered ---- */

struct cover {
	struct cover_span {
		int64_t begin_ns, end_ns;
	} * v;
	size_t n, cap;
};

static void cover_add(struct cover *c, int64_t begin_ns, int64_t end_ns)
{
	if (c->n == c->cap) {
		c->cap = c->cap ? 2 * c->cap : 1024;
		if (!(c->v = realloc(c->v, c->cap * sizeof(*c->v))))
			abort();
	}
	c->v[c->n++] = (struct cover_span){ begin_ns, end_ns };
}

static int cover_cmp(const void *a, const void *b)
{
	const struct cover_span *x = a, *y = b;

	return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

/* Its length; frees it. */
static int64_t cover_close(struct cover *c)
{
	int64_t length_ns = 0, to_ns = INT64_MIN;

	if (c->n)
		qsort(c->v, c->n, sizeof(*c->v), cover_cmp);
	for (size_t i = 0; i < c->n; i++) {
		int64_t begin_ns = c->v[i].begin_ns > to_ns ? c->v[i].begin_ns : to_ns;

		if (c->v[i].end_ns > begin_ns) {
			length_ns += c->v[i].end_ns - begin_ns;
			to_ns = c->v[i].end_ns;
		}
	}
	free(c->v);
	return length_ns;
}

/* ---- how long a row counts ---- */

struct summing {
	const struct levels_series *v;
	size_t n;
	struct levels_window window;
	struct levels_sum *sums;
	struct cover cover;
};

static void count_row(struct levels_sum *sum, const struct levels_row *r, int64_t counted_ns)
{
	sum->value_ns += (__int128)r->value * counted_ns;
	sum->counted_ns += counted_ns;
	sum->rows++;
}

/* Not `tenths` of an interval apart, or less. */
static bool is_within(int64_t gap_ns, int64_t interval_ns, int tenths)
{
	return 10 * gap_ns <= tenths * interval_ns;
}

/* Of a piece: back to its begin, or to the row before. */
static int64_t piece_back(const struct levels_series *s, size_t i, size_t first, int64_t begin_ns)
{
	const struct levels_row *r = &s->rows[i];
	int64_t gap_ns = r->ts_ns - (i == first ? begin_ns : s->rows[i - 1].ts_ns);

	return is_within(gap_ns, r->interval_ns, i == first ? 11 : 21) ? gap_ns : r->interval_ns;
}

static int64_t piece_tail(const struct levels_row *last, int64_t end_ns)
{
	int64_t left_ns = end_ns - last->ts_ns;

	if (is_within(left_ns, last->interval_ns, 11))
		return left_ns;
	if (is_within(left_ns, last->interval_ns, 21))
		return last->interval_ns / 10 * 11;
	return 0;
}

/* Part of a window, by the rows in it alone. */
static void sum_piece(struct summing *x, int64_t begin_ns, int64_t end_ns)
{
	for (size_t k = 0; k < x->n; k++) {
		const struct levels_series *s = &x->v[k];
		size_t first = levels_after(s, begin_ns), end = levels_after(s, end_ns);

		for (size_t i = first; i < end; i++) {
			const struct levels_row *r = &s->rows[i];
			int64_t back_ns = piece_back(s, i, first, begin_ns);
			int64_t tail_ns = i + 1 == end ? piece_tail(r, end_ns) : 0;

			count_row(&x->sums[k], r, back_ns + tail_ns);
			cover_add(&x->cover, r->ts_ns - back_ns, r->ts_ns + tail_ns);
		}
	}
}

/* ---- whole hours ---- */

static bool is_hour(int64_t t_ns)
{
	return t_ns % LEVELS_HOUR == 0;
}

static int64_t hour_after(int64_t t_ns) /* at it, or after */
{
	return (t_ns + LEVELS_HOUR - 1) / LEVELS_HOUR * LEVELS_HOUR;
}

static int64_t hour_before(int64_t t_ns)
{
	return t_ns / LEVELS_HOUR * LEVELS_HOUR;
}

/* Row i in its hour. Of the gaps before, in the hour, three in four must be those of no missing
 * row; there must be two. */
static int64_t whole_counted(const struct summing *x, const struct levels_series *s, size_t i)
{
	const struct levels_row *r = &s->rows[i];
	size_t first = levels_after(s, hour_after(r->ts_ns) - LEVELS_HOUR), in_time = 0;
	int64_t gap_ns;

	if (!x->window.doubles || i < first + 3)
		return r->interval_ns;
	gap_ns = r->ts_ns - s->rows[i - 1].ts_ns;
	for (size_t k = first + 1; k < i; k++)
		in_time += is_within(s->rows[k].ts_ns - s->rows[k - 1].ts_ns, s->rows[k].interval_ns, 15);
	if (!is_within(gap_ns, r->interval_ns, 15) && is_within(gap_ns, r->interval_ns, 21) &&
		4 * in_time >= 3 * (i - first - 1))
		return 2 * r->interval_ns;
	return r->interval_ns;
}

struct step {
	int64_t begin_ns, end_ns;
	int64_t first_ns, last_ns; /* begin of the earliest row, end of the latest */
	int64_t counted_ns, rows;
};

static void step_cover(const struct step *p, struct cover *c)
{
	int64_t begin_ns = p->first_ns, end_ns = p->last_ns;

	if (p->rows == 0)
		return;
	if (begin_ns < p->begin_ns ||
		(__int128)10 * (begin_ns - p->begin_ns) * p->rows <= p->counted_ns)
		begin_ns = p->begin_ns;
	if ((__int128)10 * (p->end_ns - end_ns) * p->rows <= (__int128)11 * p->counted_ns)
		end_ns = p->end_ns;
	if (end_ns - begin_ns > p->counted_ns)
		begin_ns = end_ns - p->counted_ns;
	cover_add(c, begin_ns, end_ns);
}

/* A whole hour or day. */
static void sum_step(struct summing *x, int64_t begin_ns, int64_t end_ns)
{
	struct step p = { begin_ns, end_ns, INT64_MAX, INT64_MIN, 0, 0 };

	for (size_t k = 0; k < x->n; k++) {
		const struct levels_series *s = &x->v[k];
		size_t end = levels_after(s, end_ns);

		for (size_t i = levels_after(s, begin_ns); i < end; i++) {
			const struct levels_row *r = &s->rows[i];
			int64_t counted_ns = whole_counted(x, s, i);

			count_row(&x->sums[k], r, counted_ns);
			p.counted_ns += counted_ns;
			p.rows++;
			if (r->ts_ns - r->interval_ns < p.first_ns)
				p.first_ns = r->ts_ns - r->interval_ns;
			if (r->ts_ns > p.last_ns)
				p.last_ns = r->ts_ns;
		}
	}
	step_cover(&p, &x->cover);
}

static void sum_whole(struct summing *x, int64_t begin_ns, int64_t end_ns)
{
	for (int64_t at_ns = begin_ns, step_ns; at_ns < end_ns; at_ns += step_ns) {
		bool is_day = at_ns % LEVELS_DAY == 0 && at_ns + LEVELS_DAY <= end_ns;

		step_ns = is_day ? LEVELS_DAY : LEVELS_HOUR;
		sum_step(x, at_ns, at_ns + step_ns);
	}
}

static void sum_served(struct summing *x)
{
	int64_t min_ns = x->window.min_ns, max_ns = x->window.max_ns;
	int64_t from_ns = is_hour(min_ns) ? min_ns : hour_after(min_ns + 5 * LEVELS_MINUTE);
	int64_t to_ns = is_hour(max_ns) ? max_ns : hour_before(max_ns - 5 * LEVELS_MINUTE);

	if (max_ns - min_ns < LEVELS_HOUR || from_ns >= to_ns) {
		sum_piece(x, min_ns, max_ns);
		return;
	}
	sum_piece(x, min_ns, from_ns);
	sum_whole(x, from_ns, to_ns);
	sum_piece(x, to_ns, max_ns);
}

/* ---- rules to compare with ---- */

static void sum_hull(struct summing *x)
{
	int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;

	for (size_t k = 0; k < x->n; k++) {
		const struct levels_series *s = &x->v[k];
		size_t end = levels_after(s, x->window.max_ns);

		for (size_t i = levels_after(s, x->window.min_ns); i < end; i++) {
			const struct levels_row *r = &s->rows[i];

			count_row(&x->sums[k], r, r->interval_ns);
			first_ns = r->ts_ns - r->interval_ns < first_ns ? r->ts_ns - r->interval_ns : first_ns;
			last_ns = r->ts_ns > last_ns ? r->ts_ns : last_ns;
		}
	}
	if (first_ns < last_ns)
		cover_add(&x->cover, first_ns, last_ns);
}

static int64_t backward_counted(const struct levels_series *s, size_t i)
{
	const struct levels_row *r = &s->rows[i];
	int64_t most_ns = r->interval_ns / 10 * 21;
	int64_t gap_ns = i > 0 ? r->ts_ns - s->rows[i - 1].ts_ns : r->interval_ns;

	return gap_ns < most_ns ? gap_ns : most_ns;
}

static void sum_backward(struct summing *x)
{
	for (size_t k = 0; k < x->n; k++) {
		const struct levels_series *s = &x->v[k];
		size_t end = levels_after(s, x->window.max_ns);

		for (size_t i = levels_after(s, x->window.min_ns); i < end; i++) {
			const struct levels_row *r = &s->rows[i];
			int64_t left_ns = x->window.max_ns - r->ts_ns, back_ns = backward_counted(s, i);
			bool counts_on = i + 1 == end && is_within(left_ns, r->interval_ns, 11);

			if (r->ts_ns - back_ns < x->window.min_ns)
				back_ns = r->ts_ns - x->window.min_ns;
			count_row(&x->sums[k], r, back_ns + (counts_on ? left_ns : 0));
			cover_add(&x->cover, r->ts_ns - back_ns, r->ts_ns + (counts_on ? left_ns : 0));
		}
	}
}

/* ---- sums ---- */

int64_t levels_sum(
	const struct levels_series *v, size_t n, struct levels_window w, struct levels_sum *sums)
{
	struct summing x = { .v = v, .n = n, .window = w, .sums = sums };

	for (size_t i = 0; i < n; i++)
		sums[i] = (struct levels_sum){ 0 };
	switch (w.rule) {
	case RULE_SERVED:
		sum_served(&x);
		break;
	case RULE_HULL:
		sum_hull(&x);
		break;
	case RULE_BACKWARD:
		sum_backward(&x);
		break;
	}
	return cover_close(&x.cover);
}

long double levels_mean(
	const struct levels_series *v, size_t n, struct levels_window w, size_t *rows)
{
	struct levels_sum sums[SERIES_MAX];
	int64_t divisor;
	__int128 all = 0;

	if (n > SERIES_MAX)
		abort();
	divisor = levels_sum(v, n, w, sums);
	*rows = 0;
	for (size_t i = 0; i < n; i++) {
		all += sums[i].value_ns;
		*rows += sums[i].rows;
	}
	return *rows ? (long double)all / (long double)divisor : (long double)NAN;
}
