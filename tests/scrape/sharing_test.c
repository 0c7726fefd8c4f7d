/*
 * Scrapers that do not know of each other and one profiler, step by step in a time of their own:
 * how much of the time each has, and how long it has nothing.
 */
#include "scrape/sharing.h"

#include "base/clock.h"
#include "tests/check.h"

#define STEP_NS (4 * NS_PER_MS)
#define PHASES (check_is_short() ? 5 : 20)
#define GAP_NS (12 * NS_PER_MS) /* from an answer to the next request */
#define S NS_PER_S

struct actor {
	bool fixed; /* asks once an interval, and at once where it is late, as others do */
	bool off;
	int64_t interval_ns, seconds, next_ns;
	struct sharing sharing;
	/* the profile that is under way */
	bool holds;
	int64_t began_ns, end_ns, answer_ns, pause_until_ns;
	int64_t late_ns; /* on a busy machine: so much later, at most, it asks and has answers */
	/* what it has had */
	int64_t had_ns, last_ns, longest_without_ns;
	unsigned profiles, given_up;
};

struct process {
	struct actor *holder;
	int64_t now_ns;
	uint64_t seed;
};

static int64_t lateness(struct process *p, const struct actor *a)
{
	p->seed = p->seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return a->late_ns ? (int64_t)(p->seed >> 16) % a->late_ns : 0;
}

static void end_profile(struct process *p, struct actor *a)
{
	int64_t at;

	a->holds = false;
	if (p->holder == a)
		p->holder = NULL;
	a->had_ns += a->end_ns - a->began_ns;
	a->last_ns = p->now_ns;
	a->profiles++;
	if (a->fixed) {
		if (a->next_ns <= p->now_ns) { /* turns that were missed are one */
			while (a->next_ns + a->interval_ns < p->now_ns)
				a->next_ns += a->interval_ns;
			a->pause_until_ns = p->now_ns + GAP_NS;
		}
		return;
	}
	at = sharing_ended(&a->sharing, a->interval_ns, a->began_ns, p->now_ns);
	if (at > 0)
		a->next_ns = at + lateness(p, a);
	else
		a->next_ns -= at;
}

static void ask(struct process *p, struct actor *a)
{
	int64_t seconds = a->fixed ? a->seconds :
								 sharing_seconds(&a->sharing, a->interval_ns, a->seconds);

	if (p->holder) {
		if (a->fixed) {
			a->next_ns += a->interval_ns;
		} else if (sharing_is_starved(&a->sharing, a->interval_ns, p->now_ns)) {
			sharing_gave_up(&a->sharing);
			a->given_up++;
			a->next_ns += a->interval_ns;
		} else {
			a->next_ns = p->now_ns + lateness(p, a) +
				sharing_refused(&a->sharing, a->interval_ns, p->now_ns);
		}
		return;
	}
	p->holder = a;
	a->holds = true;
	a->began_ns = p->now_ns;
	a->end_ns = p->now_ns + seconds * S;
	a->answer_ns = a->end_ns + lateness(p, a);
	a->next_ns += a->interval_ns;
}

static void act(struct process *p, struct actor *a)
{
	if (p->holder == a && p->now_ns >= a->end_ns)
		p->holder = NULL;
	if (a->holds && p->now_ns >= a->answer_ns)
		end_profile(p, a);
	if (!a->off && !a->holds && p->now_ns >= a->next_ns && p->now_ns >= a->pause_until_ns)
		ask(p, a);
	if (p->now_ns - a->last_ns > a->longest_without_ns)
		a->longest_without_ns = p->now_ns - a->last_ns;
}

static void run(struct process *p, struct actor *v, size_t n, int64_t for_ns)
{
	int64_t until = p->now_ns + for_ns;

	for (size_t i = 0; i < n; i++) {
		v[i].had_ns = v[i].longest_without_ns = 0;
		v[i].last_ns = p->now_ns;
		v[i].profiles = v[i].given_up = 0;
	}
	for (; p->now_ns < until; p->now_ns += STEP_NS)
		for (size_t i = 0; i < n; i++)
			act(p, &v[i]);
}

static double share(const struct actor *a, int64_t of_ns)
{
	return (double)a->had_ns / (double)of_ns;
}

static struct actor actor(int64_t interval_s, int64_t seconds, int64_t phase_ns, bool fixed)
{
	return (struct actor){
		.fixed = fixed, .interval_ns = interval_s * S, .seconds = seconds, .next_ns = phase_ns
	};
}

TEST(alone_it_loses_one_turn_an_hour)
{
	struct process p = { 0 };
	struct actor a = actor(10, 9, 3 * S, false);

	run(&p, &a, 1, 10 * NS_PER_HOUR);
	CHECK_INT(a.profiles, 3600 - 11); /* and the last is under way */
	CHECK_INT(a.sharing.mode, SHARING_ALONE);
	CHECK_INT(a.next_ns % (10 * S), 3 * S);
}

/* A pair of servers, whatever their offsets: after a minute each has nearly half. */
TEST(a_pair_shares)
{
	static const int64_t intervals[] = { 10, 15, 30, 60 };

	for (size_t i = 0; i < sizeof(intervals) / sizeof(intervals[0]); i++)
		for (int64_t phase = 0; phase < PHASES; phase++) {
			int64_t interval = intervals[i], apart = interval * S * phase / PHASES;
			struct process p = { 0 };
			struct actor v[2] = { actor(interval, interval - 1, 0, false),
				actor(interval, interval - 1, apart, false) };

			/* At worst they meet while they look. */
			run(&p, v, 2, 12 * interval * S);
			run(&p, v, 2, NS_PER_HOUR);
			for (int k = 0; k < 2; k++) {
				if (share(&v[k], NS_PER_HOUR) < 0.45)
					CHECK_FAIL("%d of a pair at %d s, %d ms apart: %.3f", k, (int)interval,
						(int)(apart / NS_PER_MS), share(&v[k], NS_PER_HOUR));
				CHECK(v[k].longest_without_ns <= 60 * S || interval > 15);
				CHECK(v[k].longest_without_ns <= 3 * interval * S);
				CHECK_INT(v[k].given_up, 0);
			}
		}
}

/* Requests and answers come late by up to so much. */
TEST(a_pair_shares_on_a_busy_machine)
{
	static const struct {
		int64_t late_ms;
		double least;
	} rows[] = { { 100, 0.48 }, { 200, 0.48 }, { 400, 0.45 }, { 800, 0.40 }, { 1600, 0.35 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int64_t phase = 0; phase < PHASES; phase++) {
			struct process p = { .seed = (uint64_t)(rows[i].late_ms + phase) };
			struct actor v[2] = { actor(10, 9, 0, false),
				actor(10, 9, 10 * S * phase / PHASES, false) };

			v[0].late_ns = v[1].late_ns = rows[i].late_ms * NS_PER_MS;
			run(&p, v, 2, 2 * NS_PER_MIN);
			run(&p, v, 2, NS_PER_HOUR);
			for (int k = 0; k < 2; k++) {
				if (share(&v[k], NS_PER_HOUR) < rows[i].least)
					CHECK_FAIL("%d of a pair, %d ms late: %.3f", k, (int)rows[i].late_ms,
						share(&v[k], NS_PER_HOUR));
				CHECK(v[k].longest_without_ns <= 60 * S);
			}
		}
}

/* One that asks at its times only: with gaps of a second, and with one that is hardly there. */
TEST(one_that_does_not_ask_again_has_its_share)
{
	for (int64_t taken = 8; taken <= 10; taken++)
		for (int64_t phase = 0; phase < PHASES; phase++) {
			struct process p = { 0 };
			struct actor v[2] = { actor(10, 9, 0, false),
				actor(10, taken, 10 * S * phase / PHASES, true) };

			run(&p, v, 2, 2 * NS_PER_MIN);
			run(&p, v, 2, NS_PER_HOUR);
			for (int k = 0; k < 2; k++) {
				if (share(&v[k], NS_PER_HOUR) < (k                 ? 0.049 * (double)taken :
														taken < 10 ? 0.44 :
																	 0.29))
					CHECK_FAIL("%s, %d s, %d ms apart: %.3f", k ? "fixed" : "ours", (int)taken,
						(int)(phase * 500), share(&v[k], NS_PER_HOUR));
				CHECK(v[k].longest_without_ns <= 60 * S);
			}
		}
}

TEST(three_share)
{
	for (int64_t phase = 0; phase < PHASES; phase++) {
		struct process p = { 0 };
		struct actor v[3] = { actor(10, 9, 0, false), actor(10, 9, 10 * S * phase / PHASES, false),
			actor(15, 14, 10 * S * phase / 31, false) };

		run(&p, v, 3, 5 * NS_PER_MIN);
		run(&p, v, 3, NS_PER_HOUR);
		for (int k = 0; k < 3; k++) {
			if (share(&v[k], NS_PER_HOUR) < 0.2)
				CHECK_FAIL(
					"%d of three, %d ms: %.3f", k, (int)(phase * 500), share(&v[k], NS_PER_HOUR));
			CHECK(v[k].longest_without_ns <= 60 * S);
		}
	}
}

TEST(who_is_left_alone_takes_whole_profiles_again)
{
	for (int k = 0; k < 2; k++) {
		struct process p = { 0 };
		struct actor v[2] = { actor(10, 9, 0, false), actor(10, 9, 4 * S, k != 0) };

		run(&p, v, 2, 10 * NS_PER_MIN);
		CHECK(v[0].sharing.mode != SHARING_ALONE);
		v[1].off = true;
		run(&p, v, 2, NS_PER_MIN);
		CHECK_INT(v[0].sharing.mode, SHARING_ALONE);
		run(&p, v, 2, NS_PER_HOUR);
		CHECK(share(&v[0], NS_PER_HOUR) > 0.89);
		v[1].off = false; /* and shares when the other is back */
		v[1].next_ns = p.now_ns;
		run(&p, v, 2, NS_PER_HOUR);
		run(&p, v, 2, NS_PER_HOUR);
		CHECK(share(&v[0], NS_PER_HOUR) > 0.44 && share(&v[1], NS_PER_HOUR) > 0.44);
	}
}

/* Somebody else holds it for good: that is an error in the end, and the turns go on. */
TEST(who_gets_nothing_says_so)
{
	struct sharing s = { 0 };
	int64_t now = S;

	CHECK(!sharing_is_starved(&s, 10 * S, now));
	for (; !sharing_is_starved(&s, 10 * S, now); now += 200 * NS_PER_MS)
		CHECK_INT(
			sharing_refused(&s, 10 * S, now), now <= 11 * S ? 100 * NS_PER_MS : 20 * NS_PER_MS);
	CHECK(now > 61 * S && now < 62 * S);
	sharing_gave_up(&s);
	CHECK(!sharing_is_starved(&s, 10 * S, now));
	CHECK_INT(s.mode, SHARING_HALVES);
	CHECK_INT(sharing_seconds(&s, 10 * S, 9), 5);
	CHECK_INT(sharing_seconds(&s, 10 * S, 2), 2);
	CHECK_INT(sharing_seconds(&s, S, 1), 1);
}
