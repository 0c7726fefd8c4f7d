#include "base/self/starting.h"

#include <stdio.h>

#include "base/clock.h"
#include "tests/check.h"

static void check(struct starting *w, const char *want)
{
	struct buf b = { 0 };

	starting_print(w, &b);
	CHECK_STR(buf_str(&b), want);
	buf_release(&b);
}

TEST(the_last_text_counts)
{
	struct starting w;
	struct err why;

	starting_init(&w);
	check(&w, "the server is starting");
	starting_say(&w, "restores block %u of %u", 2u, 60u);
	check(&w, "restores block 2 of 60");
	err_set(&why, ERR_UNAVAILABLE, "bucket b: connection refused");
	starting_say_why(&w, &why);
	check(&w, "restores block 2 of 60; bucket b: connection refused");
	starting_say(&w, "restores block %u of %u", 2u, 60u); /* it is the same one */
	check(&w, "restores block 2 of 60; bucket b: connection refused");
	starting_say_why(&w, NULL);
	check(&w, "restores block 2 of 60");
	starting_say_why(&w, &why);
	starting_say(&w, "opens the data directory");
	check(&w, "opens the data directory");
	starting_release(&w);
}

TEST(how_much_of_a_time_is_over)
{
	struct buf b = { 0 };
	struct starting w;
	int over = 0;

	starting_init(&w);
	starting_say_time(&w, 90 * NS_PER_S, "waiting for the lease of %s", "a");
	w.since_ns -= 45 * NS_PER_S; /* as if it were later */
	starting_say_time(&w, 90 * NS_PER_S, "waiting for the lease of %s", "a");
	starting_print(&w, &b);
	buf_add_char(&b, '\0');
	CHECK_INT(sscanf(b.ptr, "waiting for the lease of a: %d s of 90 s", &over), 1);
	CHECK(over >= 45);
	buf_release(&b);
	w.since_ns -= 100 * NS_PER_S;
	check(&w, "waiting for the lease of a: 90 s of 90 s");
	starting_release(&w);
}

TEST(long_texts_are_cut)
{
	char text[2 * STARTING_BYTES_MAX];
	struct buf b = { 0 };
	struct starting w;
	struct err why;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	starting_init(&w);
	starting_say(&w, "%s", text);
	err_set(&why, ERR_IO, "%s", text);
	starting_say_why(&w, &why);
	starting_print(&w, &b);
	CHECK_INT(b.len, 2 * (STARTING_BYTES_MAX - 1) + 2);
	buf_release(&b);
	starting_release(&w);
}

TEST(nobody_asks)
{
	starting_say(NULL, "x");
	starting_say_time(NULL, NS_PER_S, "x");
	starting_say_why(NULL, NULL);
	check(NULL, "");
}
