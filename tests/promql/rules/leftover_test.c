/*
 * Series from before a restart: each that no rule writes any more is ended, at the first turn at
 * which all rules of its name have said what they write; the others are not. Turns are taken by
 * hand.
 */
#include "base/clock.h"
#include "promql/rules/manager_internal.h"
#include "promql/rules/notify/notifier.h"
#include "tests/promql/world.h"
#include "tests/wait.h"
#include "tsdb/columns/number_chunk.h"

void notifier_send(struct notifier *n, const struct notification *v, size_t count)
{
	(void)n;
	(void)v;
	(void)count;
}

struct stage {
	struct world w;
	struct rule_manager *m;
};

/* As the server does: also after kill -9, which leaves nothing else than the database. */
static void restart(struct stage *s, const char *text)
{
	static const struct rules_load l = { .interval_ns = 10 * NS_PER_S };
	const struct rule_manager_options o = { .engine = s->w.engine,
		.db = s->w.db,
		.outage_tolerance_ns = NS_PER_HOUR,
		.grace_period_ns = 30 * NS_PER_S };
	struct rule_set *set;
	struct err err;

	rule_manager_close(s->m);
	s->m = NULL;
	REQUIRE_OK(rule_manager_open(&o, &s->m, &err), &err);
	REQUIRE_OK(rule_set_load_text("f.yml", str_of(text), &l, &set, &err), &err);
	CHECK_OK(rule_manager_apply(s->m, set, (struct labels){ 0 }, &err), &err);
	rule_set_unref(set);
	mutex_lock(&s->m->lock);
	while (s->m->running)
		cond_wait(&s->m->changed, &s->m->lock);
	s->m->paused = true;
	mutex_unlock(&s->m->lock);
}

static bool open_stage(struct stage *s)
{
	*s = (struct stage){ .m = NULL };
	if (!world_open(&s->w, NULL))
		return false;
	s->w.t0 = (clock_now_ns() / NS_PER_MIN - 20) * NS_PER_MIN;
	return true;
}

static void close_stage(struct stage *s)
{
	rule_manager_close(s->m);
	world_close(&s->w);
}

static void turn(struct stage *s, size_t group, int at_s)
{
	group_evaluate(&s->m->groups[group], s->w.t0 + at_s * NS_PER_S);
}

static void put(struct stage *s, const char *labels, int at_s, double value)
{
	struct db_number n = { labels_of(&s->w.arena, labels), s->w.t0 + at_s * NS_PER_S, value };
	struct err err;

	atomic_store(&acked, 0);
	CHECK_OK(db_append_numbers(s->w.db, &n, 1, on_acked, NULL, &err), &err);
	CHECK(WAIT_FOR(atomic_load(&acked)));
}

static void end(struct stage *s, const char *labels, int at_s)
{
	put(s, labels, at_s, number_of_bits(NUMBER_STALE_BITS));
}

/* Times and values of a series, "x": a stale mark. */
static void print_samples(struct stage *s, const char *labels, struct buf *got)
{
	struct labels ls = labels_of(&s->w.arena, labels);
	struct matcher m[8];
	struct db_querier *q;
	struct db_series *v;
	int64_t *times;
	double *values;
	struct err err;
	size_t n, k = 0;

	for (; k < ls.n; k++)
		m[k] = (struct matcher){ .op = MATCH_EQ, .name = ls.v[k].name, .value = ls.v[k].value };
	REQUIRE_OK(db_querier_open(s->w.db, 0, INT64_MAX / 2, NULL, &q, &err), &err);
	CHECK_OK(db_select_kinds(q, DB_NUMBERS, m, k, &s->w.arena, &v, &n, &err), &err);
	for (size_t i = 0; i < n; i++) {
		if (!labels_eq(v[i].labels, ls))
			continue;
		CHECK_OK(
			db_numbers(q, &v[i], 0, INT64_MAX / 2, &s->w.arena, &times, &values, &k, &err), &err);
		for (size_t p = 0; p < k; p++) {
			buf_printf(got, "%s%g:", p ? " " : "", (double)(times[p] - s->w.t0) / 1e9);
			if (number_is_stale(values[p]))
				buf_add_char(got, 'x');
			else
				buf_printf(got, "%g", values[p]);
		}
	}
	db_querier_close(q);
}

static void check_samples(struct stage *s, const char *labels, const char *want)
{
	struct buf got = { 0 };

	print_samples(s, labels, &got);
	CHECK_STR(buf_str(&got), want);
	buf_release(&got);
}

static bool is_ended(struct stage *s, const char *labels)
{
	struct buf got = { 0 };
	bool ended;

	print_samples(s, labels, &got);
	ended = str_has_suffix(buf_str(&got), STR(":x"));
	buf_release(&got);
	return ended;
}

#define RECORD(name, expr) "  - {record: '" name "', expr: '" expr "'}\n"
#define GROUP(name) "- name: " name "\n  interval: 1h\n  rules:\n"

TEST(a_series_that_is_not_written_again_is_ended)
{
	static const char text[] = "groups:\n" GROUP("g") RECORD("r", "level > 3") RECORD("one", "1");
	struct stage s;

	REQUIRE(open_stage(&s));
	/* The oldest first: an hour before the window of the newest is too old. */
	put(&s, "__name__=r,job=older", -3700, 1);
	put(&s, "__name__=r,job=old,x=y", -3500, 1); /* nobody has ended it for an hour */
	put(&s, "__name__=r,job=ended", -100, 1);
	end(&s, "__name__=r,job=ended", -90);
	put(&s, "__name__=level,job=a", 0, 5);
	put(&s, "__name__=level,job=b", 0, 6);
	put(&s, "__name__=other,job=b", 5, 1);
	restart(&s, text);
	turn(&s, 0, 10);
	check_samples(&s, "__name__=r,job=a", "10:5");
	check_samples(&s, "__name__=r,job=b", "10:6");
	put(&s, "__name__=level,job=b", 20, 1);
	restart(&s, text);
	turn(&s, 0, 30);
	turn(&s, 0, 40);
	check_samples(&s, "__name__=r,job=a", "10:5 30:5 40:5");
	check_samples(&s, "__name__=r,job=b", "10:6 30:x");
	check_samples(&s, "__name__=one", "10:1 30:1 40:1");
	check_samples(&s, "__name__=r,job=old,x=y", "-3500:1 10:x");
	check_samples(&s, "__name__=r,job=older", "-3700:1");
	check_samples(&s, "__name__=r,job=ended", "-100:1 -90:x");
	check_samples(&s, "__name__=other,job=b", "5:1");
	at(&s.w, 30, "r", "r{job=\"a\"} 5"); /* at once, not after the lookback */
	close_stage(&s);
}

/* A series belongs to any of the rules that write its name, in whatever group. */
TEST(rules_of_one_name_wait_for_each_other)
{
	static const char text[] = "groups:\n" GROUP("g") RECORD("r", "level{job=\"a\"}")
		RECORD("r", "level{job=\"b\"}") GROUP("h") RECORD("r", "level{job=~\"c|d\"}");
	struct stage s;

	REQUIRE(open_stage(&s));
	for (const char *job = "abcd"; *job; job++) {
		char labels[32];

		snprintf(labels, sizeof(labels), "__name__=level,job=%c", *job);
		put(&s, labels, 0, 5);
	}
	restart(&s, text);
	turn(&s, 0, 10);
	turn(&s, 1, 15);
	end(&s, "__name__=level,job=b", 16);
	end(&s, "__name__=level,job=c", 16);
	restart(&s, text);
	turn(&s, 0, 20);
	turn(&s, 0, 30);
	check_samples(&s, "__name__=r,job=b", "10:5"); /* it may be the other group's */
	turn(&s, 1, 35);
	turn(&s, 0, 40);
	turn(&s, 1, 45);
	check_samples(&s, "__name__=r,job=a", "10:5 20:5 30:5 40:5");
	check_samples(&s, "__name__=r,job=b", "10:5 35:x");
	check_samples(&s, "__name__=r,job=c", "15:5 35:x");
	check_samples(&s, "__name__=r,job=d", "15:5 35:5 45:5");
	close_stage(&s);
}

/* What a rule wrote after the start, and ended itself, is not ended again. */
TEST(what_began_and_ended_meanwhile)
{
	static const char text[] = "groups:\n" GROUP("g") RECORD("r", "level{job=\"a\"}") GROUP("h")
		RECORD("r", "level{job=\"b\"}");
	struct stage s;

	REQUIRE(open_stage(&s));
	put(&s, "__name__=level,job=a", 0, 5);
	put(&s, "__name__=level,job=b", 0, 5);
	restart(&s, text);
	turn(&s, 0, 10);
	end(&s, "__name__=level,job=a", 15);
	turn(&s, 0, 20);
	turn(&s, 1, 25);
	check_samples(&s, "__name__=r,job=a", "10:5 20:x");
	check_samples(&s, "__name__=r,job=b", "25:5");
	close_stage(&s);
}

/* A name that rules share with what is scraped, such as `up`. */
TEST(what_others_write_since_the_start_is_theirs)
{
	struct stage s;
	int now_s;

	REQUIRE(open_stage(&s));
	put(&s, "__name__=level,job=rule", 0, 5);
	put(&s, "__name__=up,job=gone", 5, 1);
	put(&s, "__name__=up,job=scraped", 5, 1);
	restart(&s, "groups:\n" GROUP("g") RECORD("up", "last_over_time(level[1h])"));
	now_s = (int)((clock_now_ns() - s.w.t0) / NS_PER_S) + 1;
	put(&s, "__name__=up,job=scraped", now_s, 1);
	turn(&s, 0, now_s + 1);
	CHECK(is_ended(&s, "__name__=up,job=gone"));
	CHECK(!is_ended(&s, "__name__=up,job=scraped"));
	CHECK(!is_ended(&s, "__name__=up,job=rule"));
	close_stage(&s);
}

/* A failed evaluation says nothing about what a rule writes. */
TEST(a_rule_that_fails_ends_nothing)
{
	static const char text[] = "groups:\n" GROUP("g") RECORD("r", "level");
	struct stage s;

	REQUIRE(open_stage(&s));
	put(&s, "__name__=level,job=a", 0, 5);
	put(&s, "__name__=r,job=gone", 5, 5);
	restart(&s, "groups:\n- name: g\n  limit: 1\n  interval: 1h\n  rules:\n" RECORD("r", "level"));
	put(&s, "__name__=level,job=b", 8, 5);
	turn(&s, 0, 10); /* two series */
	check_samples(&s, "__name__=r,job=gone", "5:5");
	end(&s, "__name__=level,job=b", 12);
	turn(&s, 0, 20);
	check_samples(&s, "__name__=r,job=gone", "5:5 20:x");
	check_samples(&s, "__name__=r,job=a", "20:5");
	restart(&s, text);
	close_stage(&s);
}

TEST(alerts_that_have_gone)
{
	static const char text[] = "groups:\n" GROUP(
		"g") "  - {alert: High, expr: 'level > 3', labels: {sev: page}}\n"
			 "  - {alert: High, expr: 'level > 5', labels: {sev: call}}\n";
	struct stage s;

	REQUIRE(open_stage(&s));
	put(&s, "__name__=level,job=a", 0, 9);
	put(&s, "__name__=level,job=b", 0, 9);
	put(&s, "__name__=ALERTS,alertname=Low,alertstate=firing", 5, 1);
	restart(&s, text);
	turn(&s, 0, 10);
	at(&s.w, 10, "count by (sev) (ALERTS{alertname=\"High\"})",
		"{sev=\"call\"} 2\n{sev=\"page\"} 2");
	put(&s, "__name__=level,job=a", 15, 4);
	end(&s, "__name__=level,job=b", 15);
	restart(&s, text);
	turn(&s, 0, 20);
	at(&s.w, 20, "ALERTS{alertname=\"High\"}",
		"ALERTS{alertname=\"High\", alertstate=\"firing\", job=\"a\", sev=\"page\"} 1");
	at(&s.w, 20, "count(ALERTS_FOR_STATE)", "{} 1");
	check_samples(
		&s, "__name__=ALERTS,alertname=High,alertstate=firing,job=a,sev=page", "10:1 20:1");
	check_samples(
		&s, "__name__=ALERTS,alertname=High,alertstate=firing,job=a,sev=call", "10:1 20:x");
	check_samples(&s, "__name__=ALERTS,alertname=Low,alertstate=firing", "5:1");
	close_stage(&s);
}

/* The mark is behind the last sample, whatever offset of the group that writes it. */
TEST(groups_with_an_offset)
{
	static const char text[] = "groups:\n" GROUP("g") RECORD("r",
		"level{job=\"a\"}") "- name: h\n  interval: 1h\n  query_offset: 5s\n  rules:\n" RECORD("r",
		"level{job=\"b\"}");
	struct stage s;

	REQUIRE(open_stage(&s));
	put(&s, "__name__=level,job=b", 0, 5);
	put(&s, "__name__=r,job=x", 9, 1);
	put(&s, "__name__=r,job=y", 4, 1);
	restart(&s, text);
	turn(&s, 0, 10);
	turn(&s, 1, 11);
	check_samples(&s, "__name__=r,job=b", "6:5");
	check_samples(&s, "__name__=r,job=x", "9:1 9.001:x");
	check_samples(&s, "__name__=r,job=y", "4:1 6:x");
	close_stage(&s);
}

/* A reload before the first turn: rules that are gone are not waited for. */
TEST(a_reload_before_all_have_begun)
{
	static const struct rules_load l = { .interval_ns = 10 * NS_PER_S };
	struct rule_set *set;
	struct stage s;
	struct err err;

	REQUIRE(open_stage(&s));
	put(&s, "__name__=level,job=a", 0, 5);
	put(&s, "__name__=r,job=gone", 5, 1);
	put(&s, "__name__=p,job=gone", 5, 1);
	restart(&s,
		"groups:\n" GROUP("g") RECORD("r", "level") RECORD("q", "level") GROUP("h")
			RECORD("r", "level{job=\"b\"}") RECORD("p", "level"));
	turn(&s, 0, 10);
	check_samples(&s, "__name__=r,job=gone", "5:1");
	REQUIRE_OK(rule_set_load_text(
		"f.yml", STR("groups:\n" GROUP("g") RECORD("r", "level")), &l, &set, &err), &err);
	mutex_lock(&s.m->lock);
	s.m->paused = false;
	mutex_unlock(&s.m->lock);
	CHECK_OK(rule_manager_apply(s.m, set, (struct labels){ 0 }, &err), &err);
	rule_set_unref(set);
	/* by the clock, as all that a reload ends */
	CHECK(is_ended(&s, "__name__=r,job=gone"));
	CHECK(is_ended(&s, "__name__=p,job=gone"));
	CHECK(is_ended(&s, "__name__=q,job=a")); /* it has been written, and the rule is gone */
	CHECK(!is_ended(&s, "__name__=r,job=a"));
	CHECK_INT(s.m->leftovers.n, 0);
	close_stage(&s);
}
