/* Blocks are joined into longer ones, and nothing of what they say changes. */
#include "tests/tsdb/town.h"

#include "base/map.h"
#include "tests/check.h"

TEST(four_windows_become_one_block_and_three_of_those_another)
{
	struct town w;

	REQUIRE(town_open(&w));
	town_fill(&w, 2, 3, T0, T0 + 60, 1);
	town_compact(&w);
	CHECK_LAYOUT(&w, "1 1 1 head head head");
	town_fill(&w, 2, 3, T0 + 60, T0 + 80, 1);
	town_compact(&w);
	CHECK_LAYOUT(&w, "2 1 head head head");
	TOWN_CHECK(&w, "joined once");
	REQUIRE(fixture_reopen(&w.f));
	TOWN_CHECK(&w, "reopened");
	town_fill(&w, 2, 3, T0 + 80, T0 + 150, 1);
	town_compact(&w);
	CHECK_LAYOUT(&w, "3 head head head");
	TOWN_CHECK(&w, "joined twice");
	TOWN_END(&w);
}

TEST(rows_of_an_hour_are_cut_anew_and_hours_add_up)
{
	struct town w;

	REQUIRE(town_open(&w));
	w.f.o.window_ns = 600 * SEC;
	w.f.o.too_old_ns = 0;
	REQUIRE(fixture_reopen(&w.f));
	town_fill(&w, 1, 2, T0, T0 + 7300, 20);
	town_compact(&w);
	CHECK_LAYOUT(&w, "3 head");
	TOWN_CHECK(&w, "joined");
	TOWN_END(&w);
}

TEST(gaps_and_late_rows)
{
	struct town w;

	REQUIRE(town_open(&w));
	town_fill(&w, 1, 2, T0, T0 + 7, 1);
	town_fill(&w, 1, 2, T0 + 30, T0 + 40, 1);
	town_append(&w, town_labels(&w, "job0", "late"), T0 + 15);
	town_append(&w, town_labels(&w, "job0", "later"), T0 + 25);
	town_fill(&w, 1, 2, T0 + 200, T0 + 207, 1);
	TOWN_CHECK(&w, "in the head");
	town_compact(&w);
	CHECK_LAYOUT(&w, "2 head");
	TOWN_CHECK(&w, "joined over a gap");
	town_fill(&w, 1, 2, T0 + 330, T0 + 337, 1);
	town_compact(&w);
	TOWN_CHECK(&w, "one more");
	TOWN_END(&w);
}

TEST(deleted_rows_are_gone_and_leave_the_rest)
{
	struct town w;

	REQUIRE(town_open(&w));
	town_fill(&w, 2, 3, T0, T0 + 40, 1);
	town_fill(&w, 2, 3, T0 + 60, T0 + 69, 1);
	town_compact(&w);
	CHECK_LAYOUT(&w, "2 head");
	town_fill(&w, 2, 3, T0 + 69, T0 + 79, 1);
	town_delete(&w, "job0", "i1", T0 + 5, T0 + 25);
	TOWN_CHECK(&w, "deleted in a block");
	REQUIRE(fixture_reopen(&w.f));
	TOWN_CHECK(&w, "reopened");
	town_fill(&w, 2, 3, T0 + 79, T0 + 200, 1);
	town_compact(&w);
	TOWN_CHECK(&w, "joined");
	town_delete(&w, "job1", NULL, T0, T0 + 150);
	TOWN_CHECK(&w, "a job");
	town_fill(&w, 1, 3, T0 + 200, T0 + 400, 1);
	town_compact(&w);
	TOWN_CHECK(&w, "joined without it");
	TOWN_END(&w);
}

TEST(groups_follow_the_instance_labels)
{
	static const struct str none[] = { { "pod", 3 } };
	const struct db_job_labels rules = { STR("job0"), none, 1 };
	struct town w;

	REQUIRE(town_open(&w));
	town_fill(&w, 2, 3, T0, T0 + 60, 1);
	town_compact(&w);
	REQUIRE_OK(db_set_instance_labels(w.f.db, &rules, 1, &w.f.err), &w.f.err);
	town_fill(&w, 2, 3, T0 + 60, T0 + 90, 1);
	town_compact(&w);
	CHECK_LAYOUT(&w, "2 1 1 head head head");
	TOWN_CHECK(&w, "split");
	REQUIRE_OK(db_set_instance_labels(w.f.db, NULL, 0, &w.f.err), &w.f.err);
	town_fill(&w, 2, 3, T0 + 90, T0 + 150, 1);
	town_compact(&w);
	CHECK_LAYOUT(&w, "3 head head head");
	TOWN_CHECK(&w, "joined");
	TOWN_END(&w);
}

/* ---- anything in any order ---- */

static uint64_t draw(uint64_t *state, uint64_t below)
{
	*state += UINT64_C(0x9e3779b97f4a7c15);
	return map_hash_u64(*state) % below;
}

static void change_groups(struct town *w, uint64_t which)
{
	static const struct str pod[] = { { "pod", 3 } };
	const struct db_job_labels rules = { which & 1 ? STR("job0") : STR("job1"), pod, 1 };

	if (db_set_instance_labels(w->f.db, &rules, which ? 1 : 0, &w->f.err))
		town_failed("instance labels: %s", w->f.err.msg);
}

static void delete_some(struct town *w, uint64_t *state, int64_t now)
{
	int64_t from = T0 + (int64_t)draw(state, (uint64_t)(now - T0) + 1),
			to = from + 1 + (int64_t)draw(state, 60);
	char job[20], instance[20];

	snprintf(job, sizeof(job), "job%d", (int)draw(state, 2));
	snprintf(instance, sizeof(instance), "i%d", (int)draw(state, 3));
	town_delete(w, job, draw(state, 3) ? instance : NULL, from, to < now ? to : now);
}

static void anything(uint64_t seed)
{
	uint64_t state = seed;
	int64_t now = T0 + 5;
	struct town w;

	if (!town_open(&w))
		abort();
	w.f.o.window_ns = (int64_t)(draw(&state, 3) ? 10 : 1200) * SEC;
	if (!fixture_reopen(&w.f))
		abort();
	for (int step = 0; step < 25 && !town_failures; step++) {
		int64_t more = 1 + (int64_t)draw(&state, (uint64_t)(4 * w.f.o.window_ns / SEC));
		int every = (int)(w.f.o.window_ns / SEC / 10) + (int)draw(&state, 5);

		switch (draw(&state, 8)) {
		case 0:
			if (!fixture_reopen(&w.f))
				abort();
			break;
		case 1:
			delete_some(&w, &state, now);
			break;
		case 2:
			change_groups(&w, draw(&state, 3));
			break;
		case 3:
			now += more; /* a gap */
			break;
		default:
			town_fill(
				&w, 1 + (int)draw(&state, 2), 1 + (int)draw(&state, 3), now, now + more, every);
			now += more;
			break;
		}
		if (draw(&state, 2))
			town_compact(&w);
		town_check(&w, "anything", (int)seed * 100 + step);
	}
	town_close(&w);
}

TEST(anything_in_any_order)
{
	for (uint64_t seed = 1; seed <= 12 && !town_failures; seed += CHECK_STEP)
		anything(seed);
	CHECK_INT(town_failures, 0);
	town_failures = 0;
}
