#include "base/clock.h"
#include "scrape/target_lines.h"
#include "tests/check.h"

#define NOW (INT64_C(1700000000) * NS_PER_S)

static const struct label discovered[] = {
	{ STR("__address__"), STR("10.0.0.1:80") }, { STR("__meta_\xe2\x82\xac"), STR("a\"\n\\") } };
static const struct label stored[] = {
	{ STR("instance"), STR("10.0.0.1:80") }, { STR("job"), STR("shop") } };
#define LABELS(v) ((struct labels){ v, sizeof(v) / sizeof((v)[0]) })

static struct target_info target(struct str profile, enum target_health health)
{
	return (struct target_info){ .discovered = LABELS(discovered),
		.labels = LABELS(stored),
		.profile = profile,
		.pool = STR("shop"),
			.scrape_url = STR("http://10.0.0.1:80/debug/pprof/profile"),
				.global_url = STR("http://10.0.0.1:80/debug/pprof/profile"),
					.unix_path = STR("/run/a.sock"),
						.last_error = STR("none \xff such"),
							.warning = STR("odd"), .last_scrape_ns = NOW - NS_PER_S,
								.last_duration_ns = NS_PER_S / 4, .next_profile_ns = NOW + NS_PER_S,
								.interval_ns = 15 * NS_PER_S, .timeout_ns = 10 * NS_PER_S,
								.health = health, .sharing = SHARING_HALVES, .scrapes = 7,
								.failures = 1, .skipped = 2, .last_samples = 3, .last_bytes = 4 };
}

static struct target_info active[3];
static struct dropped_target dropped[] = {
	{ LABELS(discovered), STR("shop"), STR("") },
		{ LABELS(discovered), STR("shop"), STR("shard 1 scrapes it (shards 0 to 2)") },
		};
static struct pool_info pools[] = {
	{ STR("cart"), 0, 0, 0, STR("no such file") }, { STR("shop"), 3, 5, 4, STR("") } };

static struct scrape_snapshot snapshot(void)
{
	active[0] = target(STR("block"), TARGET_UP);
	active[1] = target(STR("memory"), TARGET_DOWN);
	active[2] = target(STR("process_cpu"), TARGET_UNKNOWN);
	return (struct scrape_snapshot){ .pools = pools,
		.pools_n = 2,
		.active = active,
		.active_n = 3,
		.dropped = dropped,
		.dropped_n = 2 };
}

static void print_one(struct buf *out, const struct target_info *t)
{
	struct json j;

	json_init(&j, out);
	target_lines_write_target(&j, t);
}

TEST(a_list_reads_as_it_was_written)
{
	struct scrape_snapshot s = snapshot();
	struct buf text = { 0 }, before = { 0 }, after = { 0 };
	struct listed_targets l;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(target_lines_print(&s, NOW, TARGET_LINES_BYTES_MAX, &text, &err), &err);
	REQUIRE_OK(target_lines_read(buf_str(&text), &a, &l, &err), &err);
	CHECK_INT(l.time_ns, NOW);
	CHECK_INT(l.left_out, 0);
	REQUIRE(l.s.active_n == 3 && l.s.dropped_n == 1 && l.s.pools_n == 2);
	CHECK_STR(l.s.active[0].profile, "memory"); /* who is up comes last */
	CHECK_STR(l.s.active[1].profile, "process_cpu");
	CHECK_STR(l.s.active[2].profile, "block");
	for (size_t i = 0; i < 3; i++) {
		buf_clear(&before);
		buf_clear(&after);
		print_one(&before, &active[(i + 1) % 3]);
		print_one(&after, &l.s.active[i]);
		CHECK(str_eq(buf_str(&before), buf_str(&after)));
	}
	CHECK(labels_eq(l.s.dropped[0].discovered, dropped[0].discovered));
	CHECK_STR(l.s.pools[0].error, "no such file");
	CHECK_INT(l.s.pools[1].active, 3);
	CHECK_INT(l.s.pools[1].dropped, 1); /* the other shards' are no dropped ones of the fleet */
	arena_release(&a);
	buf_release(&text);
	buf_release(&before);
	buf_release(&after);
}

TEST(a_list_that_is_too_long_keeps_what_is_not_up)
{
	struct scrape_snapshot s = snapshot();
	struct buf text = { 0 }, one = { 0 };
	struct listed_targets l;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	print_one(&one, &(struct target_info){ 0 });
	s.active_n = 3;
	print_one(&one, &active[0]);
	REQUIRE_OK(target_lines_print(&s, NOW, 2 * one.len, &text, &err), &err);
	REQUIRE_OK(target_lines_read(buf_str(&text), &a, &l, &err), &err);
	REQUIRE(l.s.active_n == 2);
	CHECK_STR(l.s.active[0].profile, "memory");
	CHECK_STR(l.s.active[1].profile, "process_cpu");
	CHECK_INT(l.left_out, 1);
	CHECK_INT(l.s.dropped_n, 0);
	CHECK_INT(l.s.pools[1].active, 3);
	arena_release(&a);
	buf_release(&text);
	buf_release(&one);
}

TEST(what_is_no_list_is_refused)
{
	static const char head[] = "{\"time\":\"2026-01-01T00:00:00Z\",\"leftOut\":0,\"pools\":[]}\n";
	static const struct {
		const char *rest, *why;
	} cases[] = {
		{ "{\"labels\":{}}", "targets: the list has no end" },
		{ "[]\n", "targets: line 2: not an object" },
		{ "{\"labels\":[],\"discoveredLabels\":{}}\n",
			"targets: line 2: labels are no object of strings" },
		{ "{\"labels\":{\"a\":1},\"discoveredLabels\":{}}\n",
			"targets: line 2: labels are no object of strings" },
		{ "{}\n", "targets: line 2: labels are no object of strings" },
	};
	struct listed_targets l;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf text = { 0 };

		buf_printf(&text, "%s%s", head, cases[i].rest);
		CHECK_INT(target_lines_read(buf_str(&text), &a, &l, &err), ERR_CORRUPT);
		CHECK_STR(str_of(err.msg), cases[i].why);
		buf_release(&text);
	}
	CHECK_INT(target_lines_read(STR(""), &a, &l, &err), ERR_CORRUPT);
	CHECK_INT(target_lines_read(STR("{}\n"), &a, &l, &err), ERR_CORRUPT);
	CHECK_STR(str_of(err.msg), "targets: line 1: not the head of a list");
	arena_release(&a);
}

TEST(a_list_of_too_many_lines_is_refused)
{
	struct buf text = { 0 };
	struct listed_targets l;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	for (uint32_t i = 0; i <= TARGET_LINES_MAX; i++)
		buf_add_char(&text, '\n');
	CHECK_INT(target_lines_read(buf_str(&text), &a, &l, &err), ERR_LIMIT);
	arena_release(&a);
	buf_release(&text);
}
