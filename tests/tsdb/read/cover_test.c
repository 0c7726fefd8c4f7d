/* The time that scrapes of levels count (cover.h), against a count second by second. */
#include "tsdb/read/cover.h"

#include <stdlib.h>

#include "base/clock.h"
#include "tests/check.h"
#include "tests/draw.h"

#define HOUR NS_PER_HOUR
#define DAY NS_PER_DAY
#define T0 (20000 * DAY)

/* ---- windows ---- */

TEST(windows_and_their_whole_hours)
{
	static const struct {
		/* minutes behind T0; -1: none */
		int64_t min, max, hours_min, hours_max, days_min, days_max;
	} cases[] = {
		{ 0, 59, -1, -1, -1, -1 },
		{ 0, 60, 0, 60, -1, -1 },
		{ 1, 61, -1, -1, -1, -1 },
		{ 1, 120, 60, 120, -1, -1 },
		{ 1, 121, -1, -1, -1, -1 }, /* a minute behind 120 is too short a piece */
		{ 1, 125, 60, 120, -1, -1 },
		{ 56, 180, 120, 180, -1, -1 },
		{ 55, 180, 60, 180, -1, -1 },
		{ 0, 1440, 0, 1440, 0, 1440 },
		{ 1, 2880, 60, 2880, 1440, 2880 },
		{ -30, 1470, 0, 1440, 0, 1440 },
		{ 60, 2820, 60, 2820, -1, -1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct cover_window w = cover_window_of(
			T0 + cases[i].min * NS_PER_MIN, T0 + cases[i].max * NS_PER_MIN);

		CHECK_INT(w.hours_min_ns < w.hours_max_ns, cases[i].hours_min >= 0);
		CHECK_INT(w.days_min_ns < w.days_max_ns, cases[i].days_min >= 0);
		if (cases[i].hours_min >= 0) {
			CHECK_INT((w.hours_min_ns - T0) / NS_PER_MIN, cases[i].hours_min);
			CHECK_INT((w.hours_max_ns - T0) / NS_PER_MIN, cases[i].hours_max);
		}
		if (cases[i].days_min >= 0) {
			CHECK_INT((w.days_min_ns - T0) / NS_PER_MIN, cases[i].days_min);
			CHECK_INT((w.days_max_ns - T0) / NS_PER_MIN, cases[i].days_max);
		}
	}
}

TEST(windows_without_an_end)
{
	const struct cover_window w = cover_window_of(INT64_MIN, INT64_MAX);

	CHECK(w.hours_min_ns < -100 * 365 * DAY && w.hours_max_ns > 140 * 365 * DAY);
	CHECK_INT(w.hours_min_ns % HOUR, 0);
	CHECK_INT(w.days_max_ns % DAY, 0);
}

/* ---- spans ---- */

TEST(spans_count_once)
{
	struct draw d = { 7 };
	struct err err;

	for (int turn = 0; turn < 300; turn++) {
		const uint32_t seconds = 200;
		bool counted[200] = { false };
		struct cover c = { 0 }, other = { 0 };
		struct arena a;
		int64_t want = 0;

		arena_init(&a, 0);
		for (uint32_t i = (uint32_t)draw(&d, 40); i > 0; i--) {
			uint32_t from = (uint32_t)draw(&d, seconds);
			uint32_t to = from + (uint32_t)draw(&d, i % 3 ? 9 : seconds - from);
			const struct cover_span span = { from, to < seconds ? to : seconds };

			for (uint32_t k = from; k < to && k < seconds; k++)
				counted[k] = true;
			CHECK_OK(cover_add_span(i % 2 ? &c : &other, span, &a, &err), &err);
		}
		CHECK_OK(cover_merge(&c, &other, &a, &err), &err);
		for (uint32_t k = 0; k < seconds; k++)
			want += counted[k];
		CHECK_INT(cover_length_ns(&c), want);
		for (size_t i = 1; i < c.spans_n; i++)
			CHECK(c.spans[i - 1].to_ns < c.spans[i].from_ns);
		arena_release(&a);
	}
}

/* ---- steps ---- */

static int64_t length_of(const struct cover_window *w, const struct cover_step *steps, size_t n)
{
	struct cover c = { 0 };
	struct arena a;
	struct err err;
	int64_t ns;

	arena_init(&a, 0);
	for (size_t i = 0; i < n; i++)
		CHECK_OK(cover_add_rows(&c, w, steps[i], &a, &err), &err);
	ns = cover_length_ns(&c);
	arena_release(&a);
	return ns;
}

/* Minutes behind T0: first time minus interval, last time; how many scrapes, what they count. */
static struct cover_step rows_of(int64_t start, int64_t end, uint64_t rows, int64_t counted)
{
	return (struct cover_step){ .start_ns = T0 + start * NS_PER_MIN,
		.end_ns = T0 + end * NS_PER_MIN,
		.counted_ns = (__int128)counted * NS_PER_MIN,
		.rows = rows };
}

TEST(steps_are_hours_and_whole_days)
{
	const struct cover_window day = cover_window_of(T0, T0 + DAY);
	const struct cover_window hours = cover_window_of(T0, T0 + 23 * HOUR);
	const struct cover_step two[] = { rows_of(0, 60, 60, 60), rows_of(120, 180, 60, 60) };
	const struct cover_step many[] = { rows_of(0, 60, 120, 120), rows_of(120, 180, 120, 120) };

	/* one series: an outage is seen wherever it is */
	CHECK_INT(length_of(&hours, two, 2) / NS_PER_MIN, 120);
	CHECK_INT(length_of(&day, two, 2) / NS_PER_MIN, 120);
	/* two series: it is not seen inside a step, as they count more than what passed */
	CHECK_INT(length_of(&hours, many, 2) / NS_PER_MIN, 120);
	CHECK_INT(length_of(&day, many, 2) / NS_PER_MIN, 180);
}

TEST(a_step_reaches_where_a_scrape_is_to_be_expected)
{
	const struct cover_window w = cover_window_of(T0, T0 + 2 * HOUR);

	/* two pods every 10 min, at minutes 3 and 8: counted from before the hour, expected behind */
	CHECK_INT(length_of(&w, (struct cover_step[]){ rows_of(-7, 58, 12, 120) }, 1) / NS_PER_MIN, 60);
	/* they came at 33 and 38 */
	CHECK_INT(length_of(&w, (struct cover_step[]){ rows_of(23, 58, 6, 60) }, 1) / NS_PER_MIN, 37);
	/* they ended at 43 and 48, 12 min before the hour did */
	CHECK_INT(length_of(&w, (struct cover_step[]){ rows_of(-7, 48, 10, 100) }, 1) / NS_PER_MIN, 48);
}

/* As a damaged record might say. */
TEST(steps_of_any_numbers)
{
	const struct cover_window w = cover_window_of(T0, T0 + 2 * DAY);
	const struct cover_step steps[] = {
		{ 0, 0, INT64_MAX, T0 + 5, 5, 1 },
		{ 0, 0, INT64_MIN, T0 + 2 * HOUR, -5, 1 },
		{ 0, 0, INT64_MIN, T0 + 3 * HOUR, (__int128)1 << 120, 1 },
		{ 0, DAY, T0, T0 + 4 * HOUR, 1, UINT64_MAX },
		{ 0, DAY, T0, T0 + 4 * HOUR, -((__int128)1 << 126), 1 },
	};
	struct cover c = { 0 };
	struct cover_step far = { .end_ns = INT64_MAX, .rows = 1 };
	struct arena a;
	struct err err;

	CHECK(length_of(&w, steps, 5) >= 0);
	CHECK(length_of(&w, steps, 5) <= 2 * DAY);
	arena_init(&a, 0);
	CHECK_OK(cover_add_rows(&c, &w, far, &a, &err), &err);
	far.end_ns = INT64_MIN;
	CHECK_OK(cover_add_rows(&c, &w, far, &a, &err), &err);
	CHECK(cover_length_ns(&c) >= 0 && cover_length_ns(&c) <= 2 * HOUR);
	arena_release(&a);
}
