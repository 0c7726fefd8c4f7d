/*
 * Windows of rates. Scrapes come a little early or late. So a window of ten intervals has nine, ten
 * or eleven scrapes of a series, and a window of one interval has none, one or two. Drawn step by
 * step that is a saw.
 *
 * So the beginning of the window moves if a scrape is near the end, since then another scrape is
 * near the beginning. If the last scrape came just before the end, the window begins behind the
 * scrape near the beginning. If the next one came just behind the end, it begins before it. Then
 * each step has as many scrapes as the window has intervals. A window shorter than the interval
 * becomes as long as the interval. Nothing moves if no next scrape came: the series ended, and what
 * is in the window counts.
 *
 * In a window of a hundred intervals one scrape counts a hundredth, and sums of many series over
 * whole hours can be read as one only if all have the same window. So long windows stay as they
 * are.
 */
#include "promql/over_time.h"
#include "promql/supply.h"

#include <assert.h>

#include "base/clock.h"

#define NEAR_PARTS 10 /* of an interval: how early or late a scrape may come */
#define LONG_INTERVALS 100
#define LONG_NS NS_PER_HOUR /* from here on there are sums of whole steps */
#define LOOK_BACK_NS (5 * NS_PER_MIN) /* for the last scrape, if the window is shorter */
#define LOOK_AHEAD_NS NS_PER_MIN /* for the one that comes late */

/* The interval at which a series was scraped lately, and its last scrape. */
struct rate_window_pace {
	int64_t interval_ns; /* 0: not at all */
	int64_t first_ns; /* the beginning of its first scrape */
	int64_t last_ns;
};

/* Reads the statistics of all epochs of a series. */
static enum err_code rate_window_read_stats(struct work *work, struct supply *supply,
	const struct chosen *c, size_t n, int64_t min_ns, int64_t max_ns, struct sum_stats *out,
	struct err *err)
{
	enum err_code rc = work_check(work, err);
	struct arena scratch; /* of what is read, times alone are wanted */

	*out = (struct sum_stats){ 0 };
	arena_init_shared(&scratch, work->budget);
	for (size_t i = 0; i < n && !rc; i++)
		rc = db_sum(supply->querier, &c[i].series, 1, &c[i].type, min_ns, max_ns, SUM_FACTS, NULL,
			&scratch, out, err);
	out->headers = NULL;
	out->headers_n = 0;
	arena_release(&scratch);
	return rc;
}

static enum err_code rate_window_read_pace(struct work *work, struct supply *supply,
	const struct time_window *w, const struct chosen *c, size_t n, struct rate_window_pace *out,
	struct err *err)
{
	int64_t back_ns = w->max_ns - w->min_ns;
	struct sum_stats stats;
	enum err_code rc;

	*out = (struct rate_window_pace){ 0 };
	if (back_ns < LOOK_BACK_NS)
		back_ns = LOOK_BACK_NS;
	rc = rate_window_read_stats(work, supply, c, n, w->max_ns - back_ns, w->max_ns, &stats, err);
	if (!rc && stats.rows && stats.elapsed_ns / stats.rows < INT64_MAX / 4) {
		out->interval_ns = (int64_t)(stats.elapsed_ns / stats.rows);
		out->first_ns = stats.start_ns;
		out->last_ns = stats.end_ns;
	}
	return rc;
}

/* The scrape that should have come by the end of the window did so a little later, or still may. */
static enum err_code rate_window_is_late(struct work *work, struct supply *supply,
	const struct time_window *w, const struct chosen *c, size_t n, int64_t near_ns, bool *out,
	struct err *err)
{
	int64_t ahead_ns = 2 * near_ns < LOOK_AHEAD_NS ? 2 * near_ns : LOOK_AHEAD_NS;
	int64_t end_ns = w->max_ns + ahead_ns;
	struct sum_stats stats;
	enum err_code rc = rate_window_read_stats(work, supply, c, n, w->max_ns, end_ns, &stats, err);

	*out = stats.rows || end_ns > clock_now_ns();
	return rc;
}

static enum err_code rate_window_place(struct work *work, struct supply *supply,
	const struct time_window *w, struct chosen *c, size_t n, const struct rate_window_pace *p,
	struct err *err)
{
	int64_t window_ns = w->max_ns - w->min_ns, near_ns = p->interval_ns / NEAR_PARTS;
	int64_t since_ns = w->max_ns - p->last_ns, min_ns = w->min_ns;
	enum err_code rc = ERR_OK;
	bool late = false;

	assert(n > 0 && p->interval_ns > 0);
	if (window_ns / p->interval_ns >= LONG_INTERVALS)
		return ERR_OK;
	if (window_ns < p->interval_ns) {
		window_ns = p->interval_ns;
		min_ns = w->max_ns - window_ns;
	}
	if (since_ns < near_ns)
		min_ns += 2 * near_ns;
	else if (since_ns > p->interval_ns - near_ns && since_ns <= p->interval_ns + near_ns)
		rc = rate_window_is_late(work, supply, w, c, n, near_ns, &late, err);
	if (late)
		min_ns -= 2 * near_ns;
	for (size_t i = 0; i < n && min_ns != w->min_ns; i++) {
		c[i].min_ns = min_ns;
		c[i].window_ns = window_ns;
	}
	return rc;
}

void rate_span(const struct selector *s, struct time_window *first, struct time_window *last)
{
	if (!s->rated || s->window_ns >= LONG_NS)
		return;
	if (first->min_ns > INT64_MIN + LOOK_BACK_NS)
		first->min_ns -= LOOK_BACK_NS;
	if (last->max_ns < INT64_MAX - LOOK_AHEAD_NS)
		last->max_ns += LOOK_AHEAD_NS;
}

/*
 * The window of a program or a server that began lately is longer than the time with profiles. The
 * costs are divided by all of it, as a mean over the window is. Steps show the beginning
 * themselves.
 */
static enum err_code rate_window_note_begin(struct work *work, const struct time_window *w,
	const struct rate_window_pace *p, struct err *err)
{
	struct buf text = { 0 };
	enum err_code rc;

	if (work->steps || !p->interval_ns || p->first_ns - w->min_ns < p->interval_ns)
		return ERR_OK;
	buf_add_cstr(&text, "rate(): profiles begin at ");
	time_print_rfc3339(&text, p->first_ns);
	buf_add_cstr(&text, ", within the window; costs are divided by the whole window of ");
	duration_print(&text, w->max_ns - w->min_ns);
	rc = buf_failed(&text) ? err_nomem(err, "query") :
							 work_info(work, err, STR_FMT, STR_ARG(buf_str(&text)));
	buf_release(&text);
	return rc;
}

enum err_code rate_windows(
	struct work *work, struct supply *supply, struct selection *s, struct err *err)
{
	struct chosen *chosen;
	enum err_code rc = ERR_OK;
	struct rate_window_pace pace, earliest = { 0 };
	size_t end;

	if (s->over != OVER_RATE || s->window.max_ns - s->window.min_ns >= LONG_NS)
		return ERR_OK;
	if (!(chosen = arena_array(work->arena, struct chosen, s->n + 1)))
		return work_nomem(work, err);
	for (size_t i = 0; i < s->n && !rc; i = end) {
		for (end = i; end < s->n &&
			 choose_is_same_series(
				 s->v[end].series, &s->v[end].type, s->v[i].series, &s->v[i].type);
			 end++)
			chosen[end] = s->v[end];
		rc = rate_window_read_pace(work, supply, &s->window, &chosen[i], end - i, &pace, err);
		if (!rc && pace.interval_ns)
			rc = rate_window_place(work, supply, &s->window, &chosen[i], end - i, &pace, err);
		if (pace.interval_ns && (!earliest.interval_ns || pace.first_ns < earliest.first_ns))
			earliest = pace;
	}
	s->v = chosen;
	return rc ? rc : rate_window_note_begin(work, &s->window, &earliest, err);
}
