#include "scrape/exclusive.h"
#include "tests/check.h"

static int turns[3];

static void on_turn(void *ctx)
{
	turns[(size_t)(uintptr_t)ctx]++;
}

TEST(users_take_turns_in_the_order_they_came)
{
	struct exclusive *e = exclusive_open();
	struct exclusive_user u[3];

	REQUIRE(e);
	for (size_t i = 0; i < 3; i++)
		u[i] = (struct exclusive_user){ .turn = on_turn, .ctx = (void *)(uintptr_t)i };
	CHECK(exclusive_holder(e, STR("a")) == NULL);
	CHECK_INT(exclusive_enter(e, STR("a"), &u[0]), EXCLUSIVE_HOLDS);
	CHECK_INT(exclusive_enter(e, STR("a"), &u[1]), EXCLUSIVE_WAITS);
	CHECK_INT(exclusive_enter(e, STR("a"), &u[2]), EXCLUSIVE_WAITS);
	CHECK(exclusive_holder(e, STR("a")) == &u[0]);
	exclusive_leave(e, &u[0]);
	CHECK(turns[1] == 1 && turns[2] == 0);
	CHECK(exclusive_holder(e, STR("a")) == &u[1]);
	CHECK_INT(exclusive_enter(e, STR("a"), &u[0]), EXCLUSIVE_WAITS);
	exclusive_leave(e, &u[2]); /* gives up its place */
	exclusive_leave(e, &u[1]);
	CHECK(turns[0] == 1 && turns[2] == 0);
	exclusive_leave(e, &u[0]);
	exclusive_leave(e, &u[0]);
	CHECK(exclusive_holder(e, STR("a")) == NULL);

	CHECK_INT(exclusive_enter(e, STR("a"), &u[0]), EXCLUSIVE_HOLDS);
	CHECK_INT(exclusive_enter(e, STR("b"), &u[1]), EXCLUSIVE_HOLDS);
	exclusive_leave(e, &u[0]);
	exclusive_leave(e, &u[1]);
	exclusive_close(e);
}
