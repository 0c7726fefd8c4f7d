#include "base/waiting.h"

#include <stdio.h>

#include "base/clock.h"
#include "tests/check.h"

static void check(struct waiting *w, const char *want)
{
	struct buf b = { 0 };

	waiting_print(w, &b);
	CHECK_STR(buf_str(&b), want);
	buf_release(&b);
}

TEST(the_last_text_counts)
{
	struct waiting w;
	struct err why;

	waiting_init(&w);
	check(&w, "the server is starting");
	waiting_say(&w, "restores block %u of %u", 2u, 60u);
	check(&w, "restores block 2 of 60");
	err_set(&why, ERR_UNAVAILABLE, "bucket b: connection refused");
	waiting_say_why(&w, &why);
	check(&w, "restores block 2 of 60; bucket b: connection refused");
	waiting_say(&w, "restores block %u of %u", 2u, 60u); /* it is the same one */
	check(&w, "restores block 2 of 60; bucket b: connection refused");
	waiting_say_why(&w, NULL);
	check(&w, "restores block 2 of 60");
	waiting_say_why(&w, &why);
	waiting_say(&w, "opens the data directory");
	check(&w, "opens the data directory");
	waiting_release(&w);
}

TEST(how_much_of_a_time_is_over)
{
	struct buf b = { 0 };
	struct waiting w;
	int over = 0;

	waiting_init(&w);
	waiting_say_time(&w, 90 * NS_PER_S, "waiting for the lease of %s", "a");
	w.since_ns -= 45 * NS_PER_S; /* as if it were later */
	waiting_say_time(&w, 90 * NS_PER_S, "waiting for the lease of %s", "a");
	waiting_print(&w, &b);
	buf_add_char(&b, '\0');
	CHECK_INT(sscanf(b.ptr, "waiting for the lease of a: %d s of 90 s", &over), 1);
	CHECK(over >= 45);
	buf_release(&b);
	w.since_ns -= 100 * NS_PER_S;
	check(&w, "waiting for the lease of a: 90 s of 90 s");
	waiting_release(&w);
}

TEST(long_texts_are_cut)
{
	char text[2 * WAITING_BYTES_MAX];
	struct buf b = { 0 };
	struct waiting w;
	struct err why;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	waiting_init(&w);
	waiting_say(&w, "%s", text);
	err_set(&why, ERR_IO, "%s", text);
	waiting_say_why(&w, &why);
	waiting_print(&w, &b);
	CHECK_INT(b.len, 2 * (WAITING_BYTES_MAX - 1) + 2);
	buf_release(&b);
	waiting_release(&w);
}

TEST(nobody_asks)
{
	waiting_say(NULL, "x");
	waiting_say_time(NULL, NS_PER_S, "x");
	waiting_say_why(NULL, NULL);
	check(NULL, "");
}
