/* What became too old at once waits for CLOCK_HOLD_NS. */
#include "tsdb/catalog/overdue.h"

#include "tests/check.h"
#include "tests/clock_steps.h"

#define START (INT64_C(20000) * NS_PER_DAY)

TEST(more_than_an_hour_is_overdue)
{
	CHECK(overdue_is(START - NS_PER_HOUR, START));
	CHECK(!overdue_is(START - NS_PER_HOUR + 1, START));
}

TEST(rows_are_counted_up_to_the_last)
{
	struct overdue o = { 0 };

	overdue_add(&o, START);
	overdue_add(&o, START + 2);
	overdue_add(&o, START + 1);
	CHECK_INT(o.n, 3);
	CHECK_INT(o.until_ns, START + 2);
}

TEST(it_waits_for_five_minutes)
{
	static const struct overdue nothing = { 0 }, some = { 2, START - NS_PER_DAY };
	struct overdue_wait w = { 0 };

	clock_begin(START);
	CHECK(!overdue_hold(&w, &nothing));
	CHECK(!overdue_waits(&w));
	CHECK(overdue_hold(&w, &some)); /* said once */
	clock_pass(CLOCK_HOLD_NS - NS_PER_S, NULL, NULL);
	clock_step(NS_PER_DAY); /* a step of the clock does not end it */
	CHECK(!overdue_hold(&w, &some));
	CHECK(overdue_waits(&w));
	CHECK_INT(overdue_since_ns(&w), START);
	clock_pass(NS_PER_S, NULL, NULL);
	CHECK(!overdue_hold(&w, &some));
	CHECK(!overdue_waits(&w));

	/* The clock is right again: what waited is not dropped, and waits as long the next time. */
	CHECK(overdue_hold(&w, &some));
	clock_pass(NS_PER_MIN, NULL, NULL);
	CHECK(!overdue_hold(&w, &nothing));
	CHECK(!overdue_waits(&w));
	clock_pass(CLOCK_HOLD_NS, NULL, NULL);
	CHECK(overdue_hold(&w, &some));
	CHECK(overdue_waits(&w));
	clock_use(NULL);
}
