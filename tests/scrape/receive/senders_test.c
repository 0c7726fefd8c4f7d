/* Who is on the list of senders, what it says of each, and which refusals the log has. */
#include "scrape/receive/senders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "tests/check.h"

#define START (INT64_C(1700000000) * NS_PER_S)

static int64_t at(int64_t s)
{
	return START + s * NS_PER_S;
}

static struct sender_name sender(const char *address, const char *job)
{
	return (struct sender_name){ str_of(address), STR(""), STR("/p"), str_of(job), STR("sdk/1") };
}

static void store(struct senders *s, const char *address, const char *job, int64_t when_s)
{
	const struct sender_name who = sender(address, job);
	const struct sender_stored what = { .type = STR("process_cpu"), .samples = 3, .bytes = 100 };

	senders_add_stored(s, &who, &what, at(when_s));
}

static void refuse(
	struct senders *s, const char *address, const char *job, unsigned reason, int64_t when_s)
{
	const struct refusal f = { sender(address, job), 1, reason, STR("bad") };
	uint64_t profiles;

	(void)senders_is_due(s, &f, at(when_s), &profiles);
}

static const struct sender_info *find(
	const struct sender_list *l, const char *address, const char *job)
{
	for (size_t i = 0; i < l->n; i++)
		if (str_is(l->v[i].name.address, address) && str_is(l->v[i].name.job, job))
			return &l->v[i];
	return NULL;
}

/* ---- what the log has ---- */

/* Profiles of the line that the log has; 0: it has none. */
static uint64_t line(
	struct senders *s, const char *address, unsigned reason, uint64_t n, int64_t after_s)
{
	const struct refusal f = { sender(address, ""), n, reason, STR("why") };
	uint64_t profiles = 0;

	return senders_is_due(s, &f, at(after_s), &profiles) ? profiles : 0;
}

TEST(a_sender_and_reason_have_a_line_a_minute)
{
	struct senders *s;
	struct err err;

	REQUIRE_OK(senders_open(&s, &err), &err);
	CHECK_INT(line(s, "a", ERR_INVALID, 2, 0), 2);
	CHECK_INT(line(s, "a", ERR_INVALID, 3, 1), 0);
	CHECK_INT(line(s, "a", ERR_LIMIT, 5, 2), 5);
	CHECK_INT(line(s, "b", ERR_INVALID, 7, 3), 7);
	CHECK_INT(line(s, "a", ERR_INVALID, 4, 59), 0);
	CHECK_INT(line(s, "a", ERR_INVALID, 1, 60), 8); /* with those since the last line */
	CHECK_INT(line(s, "a", ERR_INVALID, 1, 61), 0);
	senders_close(s);
}

TEST(all_senders_have_so_many_lines_a_minute)
{
	char address[16];
	struct senders *s;
	uint64_t lines = 0;
	struct err err;

	REQUIRE_OK(senders_open(&s, &err), &err);
	for (int i = 0; i < 10 * (int)SENDERS_LINES_PER_MINUTE; i++) {
		snprintf(address, sizeof(address), "%d", i);
		lines += line(s, address, ERR_INVALID, 1, 0);
	}
	CHECK_INT(lines, SENDERS_LINES_PER_MINUTE);
	CHECK_INT(line(s, "later", ERR_INVALID, 1, 59), 0);
	CHECK_INT(line(s, "later", ERR_INVALID, 1, 60), 2);
	senders_close(s);
}

static double counted(const char *reason)
{
	struct buf text = { 0 };
	char row[128];
	const char *found;
	double n = 0;

	metrics_print(&text);
	buf_add_char(&text, '\0');
	snprintf(row, sizeof(row), "epimetheus_ingest_refused_profiles_total{reason=\"%s\"} ", reason);
	if ((found = strstr(text.ptr, row)))
		n = atof(found + strlen(row));
	buf_release(&text);
	return n;
}

TEST(each_is_counted_by_reason)
{
	const struct refusal invalid = { sender("a", ""), 3, ERR_INVALID, STR("bad") },
		stranger = { sender("a", ""), 2, REFUSED_UNAUTHORIZED, STR("who") };
	double before = counted("invalid input"), strangers = counted("unauthorized");
	struct senders *s;
	struct err err;

	REQUIRE_OK(senders_open(&s, &err), &err);
	senders_add_refused(s, &invalid, START);
	senders_add_refused(s, &invalid, START);
	senders_add_refused(s, &stranger, START);
	CHECK_INT((int)(counted("invalid input") - before), 6);
	CHECK_INT((int)(counted("unauthorized") - strangers), 2);
	senders_close(s);
}

/* ---- what the list says ---- */

TEST(a_sender_has_its_profiles_and_what_was_refused_of_it)
{
	const struct sender_name a = sender("a", "shop");
	const struct sender_stored memory = { .type = STR("memory"), .samples = 1, .bytes = 10 },
		dropped = { .type = STR("block"), .dropped = true };
	const struct sender_info *i;
	struct sender_list l;
	struct senders *s;
	struct arena arena;
	struct err err;

	arena_init(&arena, 0);
	REQUIRE_OK(senders_open(&s, &err), &err);
	store(s, "a", "shop", 0);
	senders_add_stored(s, &a, &memory, at(0)); /* the same request */
	senders_add_stored(s, &a, &dropped, at(0));
	store(s, "a", "shop", 15);
	refuse(s, "a", "shop", ERR_LIMIT, 20);
	store(s, "a", "other", 16);
	REQUIRE_OK(senders_list(s, &arena, &l, &err), &err);
	CHECK_INT(l.n, 2);
	CHECK(l.since_ns > START);
	i = find(&l, "a", "shop");
	REQUIRE(i);
	CHECK_STR(i->types, "process_cpu,memory,block");
	CHECK_STR(i->name.client, "sdk/1");
	CHECK_INT(i->requests, 2);
	CHECK_INT(i->profiles, 3);
	CHECK_INT(i->dropped, 1);
	CHECK_INT(i->samples, 7);
	CHECK_INT(i->bytes, 210);
	CHECK_INT(i->first_ns, at(0));
	CHECK_INT(i->stored_ns, at(15));
	CHECK_INT(i->last_ns, at(20));
	CHECK_INT(i->interval_ns, 15 * NS_PER_S);
	CHECK_INT(i->refused[ERR_LIMIT], 1);
	CHECK_INT(i->error_ns, at(20));
	CHECK_STR(i->error, "bad");
	arena_release(&arena);
	senders_close(s);
}

static int64_t interval(struct senders *s, struct arena *a)
{
	struct sender_list l;
	struct err err;

	return !senders_list(s, a, &l, &err) && l.n == 1 ? l.v[0].interval_ns : -1;
}

TEST(a_pause_does_not_make_a_sender_slow)
{
	struct senders *s;
	struct arena arena;
	struct err err;

	arena_init(&arena, 0);
	REQUIRE_OK(senders_open(&s, &err), &err);
	for (int k = 0; k <= 20; k++)
		store(s, "a", "shop", 15 * k);
	CHECK_INT(interval(s, &arena), 15 * NS_PER_S);
	store(s, "a", "shop", 86400); /* 4 intervals at most */
	CHECK_INT(interval(s, &arena), 60 * NS_PER_S);
	for (int k = 1; k <= 11; k++)
		store(s, "a", "shop", 86400 + 15 * k);
	CHECK_INT(interval(s, &arena), 15 * NS_PER_S);
	arena_release(&arena);
	senders_close(s);
}

/* Five minutes apart, each time a request for each of four types. */
TEST(requests_that_come_together_say_nothing)
{
	struct senders *s;
	struct arena arena;
	struct err err;
	int64_t is;

	arena_init(&arena, 0);
	REQUIRE_OK(senders_open(&s, &err), &err);
	for (int k = 0; k < 40; k++)
		store(s, "a", "shop", k / 4 * 300 + k % 4);
	is = interval(s, &arena);
	CHECK(is > 190 * NS_PER_S && is <= 297 * NS_PER_S);
	arena_release(&arena);
	senders_close(s);
}

TEST(states)
{
	static const struct {
		const char *what, *state;
		int64_t first_s, stored_s, error_s, last_s, now_s;
		uint64_t requests;
	} rows[] = {
		{ "just now", "sending", 0, 900, 0, 900, 910, 61 },
		{ "silent for less than 2 minutes", "sending", 0, 900, 0, 900, 1019, 61 },
		{ "silent, and was regular", "stopped", 0, 900, 0, 900, 1021, 61 },
		{ "silent after 9 requests", "idle", 0, 900, 0, 900, 1021, 9 },
		{ "silent after a burst", "idle", 800, 900, 0, 900, 1021, 61 },
		{ "nothing was ever stored", "refused", 0, 0, 900, 900, 910, 0 },
		{ "that one gave up", "idle", 0, 0, 900, 900, 900 + 3601, 0 },
		{ "refused since 2 minutes", "refused", 0, 700, 900, 900, 910, 61 },
		{ "refused since a minute", "in part", 0, 840, 900, 900, 910, 61 },
		{ "an error that is over", "sending", 0, 900, 700, 900, 910, 61 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct sender_info info = { .requests = rows[i].requests,
			.interval_ns = rows[i].requests ? 15 * NS_PER_S : 0,
			.first_stored_ns = rows[i].stored_s ? at(rows[i].first_s) : 0,
			.stored_ns = rows[i].stored_s ? at(rows[i].stored_s) : 0,
			.error_ns = rows[i].error_s ? at(rows[i].error_s) : 0,
			.last_ns = at(rows[i].last_s) };

		if (strcmp(sender_state(&info, at(rows[i].now_s)), rows[i].state))
			CHECK_FAIL("%s: %s, not %s", rows[i].what, sender_state(&info, at(rows[i].now_s)),
				rows[i].state);
	}
}

/* ---- who is kept ---- */

static void fill(struct senders *s, int from, int to, const char *network, bool stored)
{
	char address[32];

	for (int i = from; i < to; i++) {
		snprintf(address, sizeof(address), "%s.%d", network, i);
		if (stored)
			store(s, address, "", i);
		else
			refuse(s, address, "", REFUSED_UNAUTHORIZED, i);
	}
}

TEST(the_longest_silent_goes)
{
	struct sender_list l;
	struct senders *s;
	struct arena arena;
	struct err err;

	arena_init(&arena, 0);
	REQUIRE_OK(senders_open(&s, &err), &err);
	fill(s, 0, SENDERS_MAX, "a", true);
	store(s, "a.0", "", SENDERS_MAX); /* comes again */
	store(s, "b", "", SENDERS_MAX + 1);
	REQUIRE_OK(senders_list(s, &arena, &l, &err), &err);
	CHECK_INT(l.n, SENDERS_MAX);
	CHECK_INT(l.forgotten, 1);
	CHECK(find(&l, "a.0", ""));
	CHECK(!find(&l, "a.1", ""));
	CHECK(find(&l, "b", ""));
	arena_release(&arena);
	senders_close(s);
}

TEST(strangers_put_out_strangers)
{
	struct sender_list l;
	struct senders *s;
	struct arena arena;
	struct err err;

	arena_init(&arena, 0);
	REQUIRE_OK(senders_open(&s, &err), &err);
	store(s, "old", "shop", 0);
	fill(s, 0, SENDERS_MAX + 100, "stranger", false);
	store(s, "new", "shop", SENDERS_MAX + 100);
	REQUIRE_OK(senders_list(s, &arena, &l, &err), &err);
	CHECK_INT(l.n, SENDERS_MAX);
	CHECK(find(&l, "old", "shop"));
	CHECK(find(&l, "new", "shop"));
	arena_release(&arena);
	senders_close(s);
}

TEST(an_address_with_many_jobs_puts_out_its_own)
{
	char job[32];
	struct sender_list l;
	struct senders *s;
	struct arena arena;
	struct err err;

	arena_init(&arena, 0);
	REQUIRE_OK(senders_open(&s, &err), &err);
	fill(s, 0, 1000, "a", true);
	for (int i = 0; i < (int)SENDERS_MAX + 5000; i++) {
		snprintf(job, sizeof(job), "job-%d", i);
		store(s, "odd", job, 1000 + i);
	}
	REQUIRE_OK(senders_list(s, &arena, &l, &err), &err);
	CHECK_INT(l.n, SENDERS_MAX);
	for (int i = 0; i < 1000; i++) {
		char address[32];

		snprintf(address, sizeof(address), "a.%d", i);
		CHECK(find(&l, address, ""));
	}
	CHECK(find(&l, "odd", job));
	CHECK(!find(&l, "odd", "job-0"));
	arena_release(&arena);
	senders_close(s);
}

/* ---- written and read ---- */

static void print(struct buf *out, const struct sender_list *l)
{
	struct json j;

	json_init(&j, out);
	sender_list_write(&j, l, START);
}

TEST(a_list_reads_as_it_was_written)
{
	const struct sender_name odd = {
		STR("10.0.0.1"), STR("ci"), { "/p\0\xff\"", 5 }, STR("shop \xe2\x82\xac"), STR("") };
	const struct sender_stored what = { .type = STR("memory"), .samples = 1, .bytes = 10 };
	struct sender_list l, again;
	struct senders *s, *next;
	struct buf first = { 0 }, second = { 0 };
	struct arena arena;
	struct err err;

	arena_init(&arena, 0);
	REQUIRE_OK(senders_open(&s, &err), &err);
	REQUIRE_OK(senders_open(&next, &err), &err);
	store(s, "a", "shop", 0);
	store(s, "a", "shop", 15);
	refuse(s, "a", "", ERR_UNSUPPORTED, 20);
	refuse(s, "b", "", REFUSED_FORBIDDEN, 20);
	senders_add_stored(s, &odd, &what, at(21));
	REQUIRE_OK(senders_list(s, &arena, &l, &err), &err);
	print(&first, &l);
	REQUIRE_OK(sender_list_read(buf_str(&first), &arena, &again, &err), &err);
	senders_restore(next, &again);
	REQUIRE_OK(senders_list(next, &arena, &again, &err), &err);
	print(&second, &again);
	CHECK_INT(again.n, 4);
	CHECK(str_eq(buf_str(&first), buf_str(&second)));
	refuse(next, "b", "", REFUSED_FORBIDDEN, 30); /* goes on */
	REQUIRE_OK(senders_list(next, &arena, &again, &err), &err);
	CHECK_INT(again.n, 4);
	CHECK_INT(find(&again, "b", "")->refused[REFUSED_FORBIDDEN], 2);
	buf_release(&first);
	buf_release(&second);
	arena_release(&arena);
	senders_close(next);
	senders_close(s);
}

TEST(what_is_no_list_is_refused)
{
	static const char *const texts[] = { "", "{", "[]", "{}", "{\"senders\":1}", "null",
		"{\"senders\":[],\"senders\":[]}" };
	struct sender_list l;
	struct arena arena;
	struct err err;

	arena_init(&arena, 0);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		CHECK_INT(sender_list_read(str_of(texts[i]), &arena, &l, &err), ERR_CORRUPT);
	REQUIRE_OK(sender_list_read(STR("{\"senders\":[1,{}],\"since\":5}"), &arena, &l, &err), &err);
	CHECK_INT(l.n, 2);
	arena_release(&arena);
}
