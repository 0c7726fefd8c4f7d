/*
 * The manager over a database: turns are taken by hand (group_evaluate), and once by its threads.
 * notifier_send is the test's own.
 */
#include <math.h>
#include <unistd.h>

#include "promql/rules/manager_internal.h"
#include "promql/rules/notify/notifier.h"
#include "tests/promql/world.h"
#include "tests/wait.h"

struct notifier {
	struct buf text;
};

void notifier_send(struct notifier *n, const struct notification *v, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		labels_print(&n->text, v[i].labels);
		labels_print(&n->text, v[i].annotations);
		buf_printf(&n->text, " %lld..%lld " STR_FMT "\n", (long long)(v[i].starts_ns / NS_PER_S),
			(long long)(v[i].ends_ns / NS_PER_S), STR_ARG(v[i].generator_url));
	}
}

struct stage {
	struct world w;
	struct notifier notifier;
	struct rule_manager *m;
};

static bool start_manager(struct stage *s, struct db *db)
{
	const struct rule_manager_options o = { .engine = s->w.engine,
		.db = db,
		.notifier = &s->notifier,
		.external_url = "http://epi:7272/",
		.resend_delay_ns = NS_PER_MIN,
		.outage_tolerance_ns = NS_PER_HOUR,
		.grace_period_ns = 30 * NS_PER_S };
	struct err err;

	if (!rule_manager_open(&o, &s->m, &err))
		return true;
	CHECK_FAIL("%s", err.msg);
	return false;
}

static bool open_stage(struct stage *s)
{
	*s = (struct stage){ .m = NULL };
	if (!world_open(&s->w, NULL))
		return false;
	/* The manager ends series by the clock. */
	s->w.t0 = (clock_now_ns() / NS_PER_MIN - 20) * NS_PER_MIN;
	return start_manager(s, s->w.db);
}

static void close_stage(struct stage *s)
{
	rule_manager_close(s->m);
	buf_release(&s->notifier.text);
	world_close(&s->w);
}

/* Rules that no thread evaluates: turns are taken by turn(). */
static void apply(struct stage *s, const char *text)
{
	static const struct rules_load l = { .interval_ns = 10 * NS_PER_S };
	struct rule_set *set;
	struct err err;

	REQUIRE_OK(rule_set_load_text("f.yml", str_of(text), &l, &set, &err), &err);
	CHECK_OK(rule_manager_apply(s->m, set, labels_of(&s->w.arena, "region=eu"), &err), &err);
	rule_set_unref(set);
	mutex_lock(&s->m->lock);
	while (s->m->running) /* it may just have been its turn */
		cond_wait(&s->m->changed, &s->m->lock);
	s->m->paused = true;
	mutex_unlock(&s->m->lock);
}

static void unpause(struct stage *s)
{
	mutex_lock(&s->m->lock);
	s->m->paused = false;
	mutex_unlock(&s->m->lock);
}

static void turn(struct stage *s, int at_s)
{
	for (size_t i = 0; i < s->m->groups_n; i++)
		group_evaluate(&s->m->groups[i], s->w.t0 + at_s * NS_PER_S);
}

static void put(struct stage *s, const char *labels, int at_s, double value)
{
	struct db_number n = { labels_of(&s->w.arena, labels), s->w.t0 + at_s * NS_PER_S, value };
	struct err err;

	atomic_store(&acked, 0);
	CHECK_OK(db_append_numbers(s->w.db, &n, 1, on_acked, NULL, &err), &err);
	CHECK(WAIT_FOR(atomic_load(&acked)));
}

static void check_error(struct stage *s, size_t group, size_t rule, const char *want)
{
	struct rules_snapshot snap;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(rule_manager_snapshot(s->m, &a, &snap, &err), &err);
	CHECK_STR(snap.groups[group].rules[rule].last_error, want);
	CHECK_INT(snap.groups[group].rules[rule].health, *want ? RULE_ERR : RULE_OK);
	rules_snapshot_release(&snap);
	arena_release(&a);
}

/* The snapshot waits for nobody: what pauses the manager here must be off for it. */
static void check_errors(struct stage *s, const char *const *want, size_t n)
{
	unpause(s);
	for (size_t i = 0; i < n; i++)
		check_error(s, 0, i, want[i]);
	mutex_lock(&s->m->lock);
	s->m->paused = true;
	mutex_unlock(&s->m->lock);
}

TEST(recorded_costs)
{
	struct stage s;

	REQUIRE(open_stage(&s));
	fill(&s.w);
	apply(&s,
		"groups:\n- name: g\n  interval: 1h\n  labels: {from: rules}\n  rules:\n"
		"  - {record: 'job:share', expr: 'cum_share(merge by (job) (cpu[1m]), "
		"{function=\"f\"})', labels: {kind: x}}\n"
		"  - {record: 'all:share', expr: 'sum(job:share)'}\n"
		"  - {record: one, expr: '1'}\n");
	turn(&s, 30);
	at(&s.w, 30, "job:share",
		"job:share{from=\"rules\", function=\"f\", job=\"a\", kind=\"x\"} 0.8604651162790697\n"
		"job:share{from=\"rules\", function=\"f\", job=\"b\", kind=\"x\"} 1");
	/* it saw what the one before it wrote */
	at(&s.w, 30, "all:share", "all:share{from=\"rules\"} 1.8604651162790697");
	at(&s.w, 30, "one", "one{from=\"rules\"} 1");
	turn(&s, 75); /* the last profiles stand at 20: in (15, 75] */
	at(&s.w, 75, "count(job:share)", "{} 2");
	turn(&s, 100);
	at(&s.w, 99, "count(job:share)", "{} 2");
	at(&s.w, 100, "count(job:share)", ""); /* stale at once, not after the lookback */
	close_stage(&s);
}

TEST(recorded_profiles)
{
	struct stage s;

	REQUIRE(open_stage(&s));
	fill(&s.w);
	store(&s.w, "__name__=goroutine,job=a", 20, 10, "main;f 30");
	apply(&s,
		"groups:\n- name: g\n  interval: 1h\n  rules:\n"
		"  - {record: 'job:cpu:merged', expr: 'merge by (job) (cpu[1m])', "
		"labels: {x: y}}\n"
		"  - {record: 'go:merged', expr: 'goroutine[1m]'}\n"
		"  - {record: 'shares', expr: 'total(job:cpu:merged)'}\n"
		"  - {record: 'd', expr: 'diff(cpu[1m], cpu[1m] offset 10s)'}\n");
	turn(&s, 30);
	at(&s.w, 30, "job:cpu:merged",
		"job:cpu:merged{job=\"a\", x=\"y\"} nanoseconds 430000000 of 1: "
		"main;f 370000000, main;g 10000000, main;h 50000000\n"
		"job:cpu:merged{job=\"b\", x=\"y\"} nanoseconds 1000000000 of 1: "
		"main;f 1000000000");
	at(&s.w, 30, "merge by (job) (cpu[1m])",
		"{job=\"a\"} nanoseconds 430000000 of 3: main;f 370000000, main;g 10000000, "
		"main;h 50000000\n"
		"{job=\"b\"} nanoseconds 1000000000 of 1: main;f 1000000000");
	at(&s.w, 30, "go:merged", "go:merged{job=\"a\"} count 30 of 1: main;f 30");
	at(&s.w, 30, "sum(shares)", "{} 1430000000");
	static const char *const want[] = { "", "", "", "a diff cannot be recorded" };
	check_errors(&s, want, 4);
	close_stage(&s);
}

/* A pod all the time, one that came later, each profiled for 9 s of 10; levels say no duration. */
TEST(rates_of_recorded_profiles)
{
	static const struct asked rows[] = {
		{ 60, "total(merge by (job) (rate(cpu[1m]))) / 1e9", "{job=\"a\"} 0.1" },
		{ 60, "total(rate(job:cpu:merged[1m])) / 1e9", "{job=\"a\"} 0.1" },
		{ 120, "total(merge by (job) (rate(cpu[2m]))) / 1e9", "{job=\"a\"} 0.11" },
		{ 120, "total(rate(job:cpu:merged[2m])) / 1e9", "{job=\"a\"} 0.11" },
		{ 120, "total(job:cpu:merged[2m])", "{job=\"a\"} 11880000000" },
		{ 120, "total(go:merged)", "{job=\"a\"} 30" },
	};
	struct stage s;

	REQUIRE(open_stage(&s));
	for (int at_s = 10; at_s <= 120; at_s += 10) {
		store(&s.w, "__name__=process_cpu,job=a,pod=p", at_s, 10, "main;f 72");
		if (at_s > 30)
			store(&s.w, "__name__=process_cpu,job=a,pod=q", at_s, 10, "main;g 36");
	}
	store(&s.w, "__name__=goroutine,job=a", 120, 10, "main;f 30");
	apply(&s,
		"groups:\n- name: g\n  interval: 1m\n  rules:\n"
		"  - {record: 'job:cpu:merged', expr: 'merge by (job) (cpu[1m])'}\n"
		"  - {record: 'go:merged', expr: 'merge by (job) (goroutine[10s])'}\n");
	turn(&s, 60);
	turn(&s, 120);
	CHECK_ANSWERS(&s.w, rows);
	close_stage(&s);
}

TEST(alerts_over_time)
{
	struct stage s;
	char want[1024];

	REQUIRE(open_stage(&s));
	put(&s, "__name__=level,job=a", 0, 5);
	apply(&s,
		"groups:\n- name: g\n  interval: 1h\n  rules:\n"
		"  - {alert: High, expr: 'level > 3', for: 20s, labels: {sev: page},"
		" annotations: {s: '{{ $labels.job }} {{ $value }} "
		"{{ $externalLabels.region }} {{ query \"level\" | first | value }}'}}\n");
	turn(&s, 10);
	at(&s.w, 10, "ALERTS",
		"ALERTS{alertname=\"High\", alertstate=\"pending\", job=\"a\", "
		"sev=\"page\"} 1");
	CHECK_STR(buf_str(&s.notifier.text), "");
	turn(&s, 30);
	at(&s.w, 30, "ALERTS",
		"ALERTS{alertname=\"High\", alertstate=\"firing\", job=\"a\", "
		"sev=\"page\"} 1");
	at(&s.w, 30, "ALERTS_FOR_STATE - time()", "{alertname=\"High\", job=\"a\", sev=\"page\"} -20");
	snprintf(want, sizeof(want),
		"{alertname=\"High\", job=\"a\", sev=\"page\"}{s=\"a 5 eu 5\"} %lld..%lld "
		"http://epi:7272/explore?query=level+%%3E+3&at=%lld.000&since=%lld.000"
		"&match=%%7Bjob%%3D%%22a%%22%%7D\n",
		(long long)(s.w.t0 / NS_PER_S + 30), (long long)(s.w.t0 / NS_PER_S + 30 + 4 * 3600),
		(long long)(s.w.t0 / NS_PER_S + 30), (long long)(s.w.t0 / NS_PER_S + 10));
	CHECK_STR(buf_str(&s.notifier.text), want);
	buf_clear(&s.notifier.text);
	turn(&s, 60); /* not due yet */
	CHECK_STR(buf_str(&s.notifier.text), "");
	put(&s, "__name__=level,job=a", 70, 1);
	turn(&s, 80);
	at(&s.w, 80, "ALERTS", "");
	CHECK(s.notifier.text.len > 0); /* resolved */
	close_stage(&s);
}

static const char one_alert[] =
	"groups:\n- name: g\n  interval: 1h\n  rules:\n"
	"  - {alert: High, expr: 'level > 3', for: 2m}\n  - {record: r, expr: level}\n";

TEST(a_restart_keeps_the_pending_time)
{
	struct stage s;

	REQUIRE(open_stage(&s));
	put(&s, "__name__=level,job=a", 0, 5);
	apply(&s, one_alert);
	turn(&s, 10);
	turn(&s, 70);
	rule_manager_close(s.m);
	REQUIRE(start_manager(&s, s.w.db));
	apply(&s, one_alert);
	turn(&s, 100); /* 60 s were spent, 30 s are the outage: 60 s are left */
	at(&s.w, 100, "ALERTS_FOR_STATE - time()", "{alertname=\"High\", job=\"a\"} -60");
	turn(&s, 159);
	at(&s.w, 159, "count by (alertstate) (ALERTS)", "{alertstate=\"pending\"} 1");
	turn(&s, 160);
	at(&s.w, 160, "count by (alertstate) (ALERTS)", "{alertstate=\"firing\"} 1");
	close_stage(&s);
}

/* Anybody may write by that name. */
TEST(a_restart_takes_up_no_time_that_is_none)
{
	static const double values[] = { -8.9e9, NAN, INFINITY, 9.1e9 };
	struct stage s;

	REQUIRE(open_stage(&s));
	put(&s, "__name__=level,job=a", 0, 5);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		put(&s, "__name__=ALERTS_FOR_STATE,alertname=High,job=a", 1 + (int)i, values[i]);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		rule_manager_close(s.m);
		REQUIRE(start_manager(&s, s.w.db));
		apply(&s, one_alert);
		group_evaluate(&s.m->groups[0], s.w.t0 + (1 + (int64_t)i) * NS_PER_S);
		CHECK_INT(alert_state_at(s.m->groups[0].rules[0].alerts, 0)->active_at_ns,
			s.w.t0 + (1 + (int64_t)i) * NS_PER_S);
	}
	close_stage(&s);
}

TEST(a_reload_keeps_what_it_can)
{
	struct stage s;

	REQUIRE(open_stage(&s));
	put(&s, "__name__=level,job=a", 0, 5);
	apply(&s, one_alert);
	turn(&s, 10);
	/* the alert has another annotation and goes on; the record is gone and its series ends */
	apply(&s,
		"groups:\n- name: g\n  interval: 1h\n  rules:\n"
		"  - {alert: High, expr: 'level > 3', for: 2m, annotations: {a: b}}\n");
	at(&s.w, 20, "r", "r{job=\"a\"} 5");
	ask(&s.w, (struct query_options){ .t_ns = clock_now_ns() }, "r", "");
	turn(&s, 130);
	at(&s.w, 130, "ALERTS", "ALERTS{alertname=\"High\", alertstate=\"firing\", job=\"a\"} 1");
	close_stage(&s);
}

#define FAILING(limit) \
	"groups:\n- name: g\n  interval: 1h\n  limit: " limit "\n  rules:\n" \
	"  - {record: a, expr: level}\n" \
	"  - {alert: b, expr: level}\n" \
	"  - {record: c, expr: level, labels: {job: z}}\n" \
	"  - {alert: d, expr: cpu}\n" \
	"  - {record: e, expr: 'level{job=\"a\"}'}\n"

TEST(what_fails)
{
	static const char *const limited[] = { "exceeded limit of 1 with 2 series",
		"exceeded limit of 1 with 2 alerts", "exceeded limit of 1 with 2 series",
		"an alert's expression must give costs", "" };
	static const char *const unlimited[] = { "", "",
		"vector contains metrics with the same labelset after applying rule labels",
		"an alert's expression must give costs", "" };
	struct stage s;

	REQUIRE(open_stage(&s));
	fill(&s.w);
	put(&s, "__name__=level,job=a", 0, 5);
	put(&s, "__name__=level,job=b", 0, 6);
	apply(&s, FAILING("1"));
	turn(&s, 30);
	check_errors(&s, limited, 5);
	apply(&s, FAILING("0"));
	turn(&s, 31);
	check_errors(&s, unlimited, 5);
	close_stage(&s);
}

TEST(query_offset)
{
	struct stage s;

	REQUIRE(open_stage(&s));
	put(&s, "__name__=level,job=a", 0, 5);
	put(&s, "__name__=level,job=a", 25, 6);
	apply(&s,
		"groups:\n- name: g\n  interval: 1h\n  query_offset: 10s\n  rules:\n"
		"  - {record: r, expr: level}\n");
	turn(&s, 30);
	at(&s.w, 20, "r", "r{job=\"a\"} 5");
	at(&s.w, 19, "r", "");
	close_stage(&s);
}

TEST(turns_have_a_phase)
{
	struct rule_group g = { .file = STR("f"), .name = STR("n"), .interval_ns = NS_PER_MIN };
	int64_t now = 1700000000 * NS_PER_S, a = group_next_turn(&g, now), b;

	CHECK(a > now && a <= now + NS_PER_MIN);
	CHECK_INT(group_next_turn(&g, a), a + NS_PER_MIN);
	CHECK_INT(group_next_turn(&g, a - 1), a);
	g.name = STR("m");
	b = group_next_turn(&g, now);
	CHECK(a != b);
}

TEST(threads_take_turns)
{
	static const struct rules_load l = { .interval_ns = 200 * NS_PER_MS };
	struct rules_snapshot snap;
	struct rule_set *set;
	struct stage s;
	struct arena a;
	struct err err;
	uint64_t turns = 0;

	REQUIRE(open_stage(&s));
	arena_init(&a, 0);
	REQUIRE_OK(rule_set_load_text("f",
		STR("groups:\n- {name: a, rules: [{record: ra, expr: "
					       "'1'}]}\n- {name: b, rules: [{record: rb, expr: "
					       "'2'}]}\n"),
			&l, &set, &err),
		&err);
	REQUIRE_OK(rule_manager_apply(s.m, set, (struct labels){ 0 }, &err), &err);
	for (int64_t until_ns = 0; turns < 3 && wait_more(&until_ns);) {
		arena_reset(&a);
		REQUIRE_OK(rule_manager_snapshot(s.m, &a, &snap, &err), &err);
		turns = snap.groups[0].iterations < snap.groups[1].iterations ? snap.groups[0].iterations :
																		snap.groups[1].iterations;
		rules_snapshot_release(&snap);
	}
	CHECK(turns >= 3);
	ask(&s.w, (struct query_options){ .t_ns = clock_now_ns() }, "ra + on () rb", "{} 3");
	/* a reload in mid-flight */
	CHECK_OK(rule_manager_apply(s.m, set, (struct labels){ 0 }, &err), &err);
	rule_set_unref(set);
	arena_release(&a);
	close_stage(&s);
}

static uint64_t turns_of(struct stage *s)
{
	struct rules_snapshot snap;
	struct arena a;
	struct err err;
	uint64_t n = 0;

	arena_init(&a, 0);
	if (!rule_manager_snapshot(s->m, &a, &snap, &err)) {
		n = snap.groups[0].iterations;
		rules_snapshot_release(&snap);
	}
	arena_release(&a);
	return n;
}

TEST(without_a_database_it_rests)
{
	static const struct rules_load l = { .interval_ns = 50 * NS_PER_MS };
	struct rule_set *set;
	struct stage s;
	struct err err;

	REQUIRE(open_stage(&s));
	rule_manager_close(s.m);
	REQUIRE(start_manager(&s, NULL));
	REQUIRE_OK(rule_set_load_text(
		"f", STR("groups:\n- {name: a, rules: [{record: ra, expr: '1'}]}\n"), &l, &set, &err),
		&err);
	REQUIRE_OK(rule_manager_apply(s.m, set, (struct labels){ 0 }, &err), &err);
	/* several turns would have come */
	usleep(300000);
	CHECK_INT(turns_of(&s), 0);
	rule_manager_begin(s.m, s.w.db, NULL, NULL, NULL);
	CHECK(WAIT_FOR(turns_of(&s) > 0));
	CHECK_OK(rule_manager_apply(s.m, set, (struct labels){ 0 }, &err), &err);
	rule_set_unref(set);
	ask(&s.w, (struct query_options){ .t_ns = clock_now_ns() }, "ra", "ra 1");
	close_stage(&s);
}
