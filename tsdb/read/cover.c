#include "tsdb/read/cover.h"

#include <assert.h>

#include "base/array.h"
#include "base/clock.h"

#define FAR_NS (INT64_MAX / 2) /* in 2116; sums and differences of nearer times do not overflow */

/* ---- windows ---- */

static int64_t cover_down(int64_t ts_ns, int64_t step_ns)
{
	int64_t rest = ts_ns % step_ns;

	return ts_ns - (rest < 0 ? rest + step_ns : rest);
}

static int64_t cover_up(int64_t ts_ns, int64_t step_ns)
{
	return cover_down(ts_ns + step_ns - 1, step_ns);
}

/* Narrows (*from, *to] to whole steps; without any, both become equal. */
static void cover_whole_steps(int64_t *from_ns, int64_t *to_ns, int64_t step_ns)
{
	*from_ns = cover_up(*from_ns, step_ns);
	*to_ns = cover_down(*to_ns, step_ns);
	if (*from_ns > *to_ns)
		*to_ns = *from_ns;
}

struct cover_window cover_window_of(int64_t min_ns, int64_t max_ns)
{
	struct cover_window w = { .min_ns = min_ns, .max_ns = max_ns };

	if (min_ns < -FAR_NS)
		min_ns = cover_up(-FAR_NS, NS_PER_DAY);
	if (max_ns > FAR_NS)
		max_ns = cover_down(FAR_NS, NS_PER_DAY);
	if (max_ns - min_ns < NS_PER_HOUR)
		return w;
	w.hours_min_ns = min_ns % NS_PER_HOUR ? min_ns + COVER_PIECE_NS : min_ns;
	w.hours_max_ns = max_ns % NS_PER_HOUR ? max_ns - COVER_PIECE_NS : max_ns;
	cover_whole_steps(&w.hours_min_ns, &w.hours_max_ns, NS_PER_HOUR);
	w.days_min_ns = w.hours_min_ns;
	w.days_max_ns = w.hours_max_ns;
	cover_whole_steps(&w.days_min_ns, &w.days_max_ns, NS_PER_DAY);
	return w;
}

/* ---- adding ---- */

enum err_code cover_add_span(
	struct cover *c, struct cover_span add, struct arena *a, struct err *err)
{
	size_t n = c->spans_n, first = n, end;

	if (add.from_ns >= add.to_ns)
		return ERR_OK;
	/* Nearly always the new span touches the last one, or follows it. */
	while (first > 0 && c->spans[first - 1].to_ns >= add.from_ns)
		first--;
	for (end = first; end < n && c->spans[end].from_ns <= add.to_ns; end++) {
		if (c->spans[end].from_ns < add.from_ns)
			add.from_ns = c->spans[end].from_ns;
		if (c->spans[end].to_ns > add.to_ns)
			add.to_ns = c->spans[end].to_ns;
	}
	if (end == first && !arena_array_room(a, &c->spans, n, 1, &c->spans_cap))
		return arena_fail(a, "counted time", err);
	if (end != first + 1)
		memmove(c->spans + first + 1, c->spans + end, (n - end) * sizeof(*c->spans));
	c->spans_n = n + 1 - (end - first);
	c->spans[first] = add;
	return ERR_OK;
}

static void cover_join_step(struct cover_step *into, const struct cover_step *from)
{
	if (from->start_ns < into->start_ns)
		into->start_ns = from->start_ns;
	if (from->end_ns > into->end_ns)
		into->end_ns = from->end_ns;
	into->counted_ns = (__int128)((unsigned __int128)into->counted_ns +
		(unsigned __int128)from->counted_ns); /* may wrap: a damaged record can hold any number */
	if (__builtin_add_overflow(into->rows, from->rows, &into->rows))
		into->rows = UINT64_MAX;
}

static int cover_step_cmp(const struct cover_step *a, const struct cover_step *b)
{
	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns ? -1 : 1;
	return (a->length_ns > b->length_ns) - (a->length_ns < b->length_ns);
}

static enum err_code cover_add_step(
	struct cover *c, const struct cover_step *add, struct arena *a, struct err *err)
{
	size_t from = 0, to = c->steps_n;

	if (to && cover_step_cmp(&c->steps[to - 1], add) <= 0) /* rows ascend, mostly */
		from = to - 1;
	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (cover_step_cmp(&c->steps[mid], add) < 0)
			from = mid + 1;
		else
			to = mid;
	}
	if (from < c->steps_n && cover_step_cmp(&c->steps[from], add) == 0) {
		cover_join_step(&c->steps[from], add);
		return ERR_OK;
	}
	if (!arena_array_room(a, &c->steps, c->steps_n, 1, &c->steps_cap))
		return arena_fail(a, "counted time", err);
	memmove(c->steps + from + 1, c->steps + from, (c->steps_n++ - from) * sizeof(*c->steps));
	c->steps[from] = *add;
	return ERR_OK;
}

enum err_code cover_add_rows(struct cover *c, const struct cover_window *w, struct cover_step add,
	struct arena *a, struct err *err)
{
	bool day = add.end_ns > w->days_min_ns && add.end_ns <= w->days_max_ns;
	int64_t length_ns = day ? NS_PER_DAY : NS_PER_HOUR;

	if (add.end_ns > FAR_NS || add.end_ns < -FAR_NS) /* only from a damaged record */
		add.end_ns = add.end_ns < 0 ? -FAR_NS : FAR_NS;
	if (add.length_ns < length_ns)
		add.length_ns = length_ns;
	add.begin_ns = cover_down(add.end_ns - 1, add.length_ns);
	return cover_add_step(c, &add, a, err);
}

enum err_code cover_merge(
	struct cover *into, const struct cover *from, struct arena *a, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < from->spans_n && !rc; i++)
		rc = cover_add_span(into, from->spans[i], a, err);
	for (size_t i = 0; i < from->steps_n && !rc; i++)
		rc = cover_add_step(into, &from->steps[i], a, err);
	return rc;
}

/* ---- the sum ---- */

/*
 * The time of a step in which there were scrapes. If the next scrape is only due after the end of
 * the step, the last one counts up to the end. The step's first scrape counts about as much time
 * before the begin.
 */
static struct cover_span cover_of_step(const struct cover_step *s)
{
	struct cover_span v = { s->start_ns, s->end_ns };
	int64_t end_ns = s->begin_ns + s->length_ns;
	__int128 each_ns = s->counted_ns / (__int128)s->rows;

	assert(s->rows && v.to_ns > s->begin_ns && v.to_ns <= end_ns);
	if (v.from_ns < s->begin_ns || v.from_ns - s->begin_ns <= each_ns / 10)
		v.from_ns = s->begin_ns;
	if (end_ns - v.to_ns <= each_ns + each_ns / 10)
		v.to_ns = end_ns;
	if (v.from_ns < v.to_ns && s->counted_ns < v.to_ns - v.from_ns)
		v.from_ns = v.to_ns - (int64_t)s->counted_ns;
	return v;
}

int64_t cover_length_ns(const struct cover *c)
{
	int64_t sum_ns = 0, until_ns = INT64_MIN;
	size_t i = 0, k = 0;

	while (i < c->spans_n || k < c->steps_n) {
		struct cover_span v = k < c->steps_n ? cover_of_step(&c->steps[k]) : c->spans[i];

		if (i < c->spans_n && c->spans[i].from_ns <= v.from_ns)
			v = c->spans[i++];
		else
			k++;
		if (v.from_ns < until_ns)
			v.from_ns = until_ns;
		if (v.to_ns > v.from_ns) {
			sum_ns += v.to_ns - v.from_ns;
			until_ns = v.to_ns;
		}
	}
	return sum_ns;
}
