/* The kept time of day, with a system's clock that steps. */
#include "tests/check.h"
#include "tests/clock_steps.h"

#define START (INT64_C(20000) * NS_PER_DAY)

TEST(a_step_is_taken_over_once_it_held)
{
	static const int64_t steps[] = { 2 * NS_PER_S, -2 * NS_PER_S, NS_PER_HOUR, -26 * NS_PER_HOUR,
		16 * NS_PER_DAY, -400 * NS_PER_DAY };

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		clock_begin(START);
		clock_pass(10 * NS_PER_S, NULL, NULL);
		CHECK_INT(clock_now_ns(), START + 10 * NS_PER_S);
		clock_step(steps[i]);
		CHECK_INT(clock_now_ns(), START + 10 * NS_PER_S);
		clock_pass(CLOCK_HOLD_NS, NULL, NULL);
		CHECK_INT(clock_now_ns(), START + 10 * NS_PER_S + CLOCK_HOLD_NS);
		CHECK_INT(clock_step_ns(), steps[i]);
		CHECK_INT(clock_step_since_ns(), START + 11 * NS_PER_S); /* the first look */
		clock_pass(NS_PER_S, NULL, NULL);
		CHECK_INT(clock_now_ns(), START + 11 * NS_PER_S + CLOCK_HOLD_NS + steps[i]);
		CHECK_INT(clock_step_ns(), 0);
	}
	clock_use(NULL);
}

TEST(a_step_that_goes_back_is_forgotten)
{
	clock_begin(START);
	clock_pass(NS_PER_S, NULL, NULL);
	for (int i = 0; i < 20; i++) { /* five minutes and more, all in all */
		clock_step(16 * NS_PER_DAY);
		clock_pass(30 * NS_PER_S, NULL, NULL);
		clock_step(-16 * NS_PER_DAY);
		clock_pass(NS_PER_S, NULL, NULL);
		CHECK_INT(clock_step_ns(), 0);
	}
	CHECK_INT(clock_now_ns(), START + 621 * NS_PER_S);
	/* Each further step waits for itself. */
	for (int i = 0; i < 20; i++) {
		clock_step(NS_PER_HOUR);
		clock_pass(30 * NS_PER_S, NULL, NULL);
	}
	CHECK_INT(clock_now_ns(), START + 1221 * NS_PER_S);
	CHECK_INT(clock_step_ns(), 20 * NS_PER_HOUR);
	clock_use(NULL);
}

TEST(less_than_a_second_is_no_step)
{
	clock_begin(START);
	clock_pass(NS_PER_S, NULL, NULL);
	for (int i = 0; i < 50; i++) {
		clock_step(i % 3 ? 900 * NS_PER_MS : -NS_PER_S);
		clock_pass(NS_PER_S, NULL, NULL);
		CHECK_INT(clock_now_ns(), clock_system_ns());
	}
	clock_use(NULL);
}

TEST(without_a_look_the_first_time_goes_on)
{
	clock_begin(START);
	CHECK_INT(clock_now_ns(), START);
	clock_step(NS_PER_DAY);
	clock_wait(NS_PER_S);
	CHECK_INT(clock_now_ns(), START + NS_PER_S);
	clock_use(NULL);
}

struct sealed {
	int64_t min_ns, max_ns;
};

static int64_t free_after(void *ctx, int64_t ts_ns)
{
	const struct sealed *s = ctx;

	return ts_ns > s->min_ns && ts_ns <= s->max_ns ? s->max_ns + 1 : ts_ns;
}

TEST(time_that_is_sealed_is_passed_over)
{
	struct sealed s = { START - 2 * NS_PER_DAY, START };

	/* At a start. */
	clock_begin(START);
	clock_step(-NS_PER_DAY);
	clock_look(free_after, &s);
	CHECK_INT(clock_now_ns(), START + 1);
	CHECK_INT(clock_step_ns(), -NS_PER_DAY - 1);
	clock_pass(NS_PER_HOUR, free_after, &s);
	CHECK_INT(clock_now_ns(), START + 1 + NS_PER_HOUR);
	/* What is stored meanwhile is not passed over again: the time goes on. */
	s.max_ns += NS_PER_HOUR / 2;
	clock_pass(NS_PER_HOUR, free_after, &s);
	CHECK_INT(clock_now_ns(), START + 1 + 2 * NS_PER_HOUR);
	/* The clock is set right. */
	clock_step(NS_PER_DAY);
	clock_pass(CLOCK_HOLD_NS + NS_PER_S, free_after, &s);
	CHECK_INT(clock_now_ns(), clock_system_ns());

	/* A step back while it runs, into what is sealed, and out of it. */
	clock_begin(START);
	s = (struct sealed){ START - 2 * NS_PER_DAY, START - NS_PER_HOUR };
	clock_pass(NS_PER_S, free_after, &s);
	clock_step(-NS_PER_DAY);
	clock_pass(NS_PER_HOUR, free_after, &s);
	CHECK_INT(clock_now_ns(), START + NS_PER_S + NS_PER_HOUR);
	clock_step(-3 * NS_PER_DAY);
	clock_pass(CLOCK_HOLD_NS + NS_PER_S, free_after, &s);
	CHECK_INT(clock_now_ns(), clock_system_ns());
	/* The clock that agrees runs into what is sealed. */
	s = (struct sealed){ clock_system_ns() + NS_PER_MIN, clock_system_ns() + 10 * NS_PER_MIN };
	clock_pass(2 * NS_PER_MIN, free_after, &s);
	CHECK_INT(clock_now_ns(), s.max_ns + 1 + NS_PER_MIN + NS_PER_S); /* two seconds before */
	clock_pass(9 * NS_PER_MIN, free_after, &s);
	CHECK_INT(clock_now_ns(), clock_system_ns());
	clock_use(NULL);
}
