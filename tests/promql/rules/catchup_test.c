/*
 * A manager in the place of another one: it begins, makes up for what was missed, and ends again.
 * The first manager's turns are taken by hand, the other one's by its threads. notifier_send is the
 * test's own.
 */
#include "promql/rules/manager_internal.h"
#include "promql/rules/notify/notifier.h"
#include "tests/promql/world.h"
#include "tests/wait.h"
#include "tsdb/columns/number_chunk.h"

struct notifier {
	struct mutex lock; /* guards what follows */
	unsigned sent;
	int64_t starts_ns;
};

void notifier_send(struct notifier *n, const struct notification *v, size_t count)
{
	mutex_lock(&n->lock);
	n->sent += (unsigned)count;
	n->starts_ns = v->starts_ns;
	mutex_unlock(&n->lock);
}

struct stage {
	struct world w;
	struct notifier notifier;
	struct rule_manager *m;
	int64_t turn_ns; /* the first turn of the group */
	atomic_bool may_not;
	atomic_uint asked;
};

static const char rules[] = "groups:\n- name: g\n  interval: 1m\n  rules:\n"
							"  - {record: clock, expr: time()}\n"
							"  - {record: 'clock:copy', expr: clock}\n"
							"  - {alert: Slow, expr: 'vector(5) > 3', for: 4m30s}\n"
							"  - {record: last, expr: time()}\n";

static void start(struct stage *s, struct db *db, const char *text)
{
	const struct rule_manager_options o = { .engine = s->w.engine,
		.db = db,
		.notifier = &s->notifier,
		.external_url = "http://epi:7272/",
		.resend_delay_ns = NS_PER_MIN,
		.outage_tolerance_ns = NS_PER_HOUR,
		.grace_period_ns = 10 * NS_PER_MIN };
	static const struct rules_load l = { .interval_ns = 10 * NS_PER_S };
	struct rule_set *set;
	struct err err;

	rule_manager_close(s->m);
	s->m = NULL;
	REQUIRE_OK(rule_manager_open(&o, &s->m, &err), &err);
	REQUIRE_OK(rule_set_load_text("f.yml", str_of(text), &l, &set, &err), &err);
	REQUIRE_OK(rule_manager_apply(s->m, set, (struct labels){ 0 }, &err), &err);
	rule_set_unref(set);
}

/* Nothing is evaluated by threads: it has no database for them. */
static bool open_stage(struct stage *s)
{
	*s = (struct stage){ .m = NULL };
	mutex_init(&s->notifier.lock);
	if (!world_open(&s->w, NULL))
		return false;
	start(s, NULL, rules);
	s->turn_ns = group_next_turn(s->m->groups[0].group, clock_now_ns() - 20 * NS_PER_MIN);
	return true;
}

static void close_stage(struct stage *s)
{
	rule_manager_close(s->m);
	mutex_destroy(&s->notifier.lock);
	world_close(&s->w);
}

static int64_t minute(const struct stage *s, int i)
{
	return s->turn_ns + i * NS_PER_MIN;
}

/* For turns that are taken by hand; its threads pause meanwhile. NULL: no more. */
static void lend_database(struct stage *s, struct db *db)
{
	mutex_lock(&s->m->lock);
	s->m->o.db = db;
	s->m->paused = db != NULL;
	mutex_unlock(&s->m->lock);
}

/* Turns of the first manager, from minute 0 on; of the last one only the first `rules_n` rules. */
static void first_manager(struct stage *s, int turns, size_t rules_n)
{
	struct group_state *g = &s->m->groups[0];
	size_t all = g->rules_n;

	lend_database(s, s->w.db);
	for (int i = 0; i < turns; i++) {
		g->rules_n = i == turns - 1 ? rules_n : all;
		CHECK(group_evaluate(g, minute(s, i)));
	}
	g->rules_n = all;
	lend_database(s, NULL);
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

/* It has taken the last turn that is due. */
static bool is_up_to_date(struct stage *s)
{
	struct group_state *g = &s->m->groups[0];
	bool is;

	mutex_lock(&s->m->lock);
	is = !g->looks && !g->running && g->due_ns > clock_now_ns();
	mutex_unlock(&s->m->lock);
	return is;
}

static void numbers_of(
	struct stage *s, const char *name, int64_t **times, double **values, size_t *count)
{
	struct matcher m;
	struct db_querier *q;
	struct db_series *v;
	struct err err;
	size_t n;

	*count = 0;

	REQUIRE_OK(matcher_init(&m, MATCH_EQ, STR(LABEL_NAME), str_of(name), &err), &err);
	REQUIRE_OK(
		db_querier_open(s->w.db, s->turn_ns - NS_PER_HOUR * 2, clock_now_ns(), NULL, &q, &err),
		&err);
	REQUIRE_OK(db_select_kinds(q, DB_NUMBERS, &m, 1, &s->w.arena, &v, &n, &err), &err);
	CHECK_INT(n, 1);
	if (n == 1)
		CHECK_OK(
			db_numbers(q, &v[0], 0, clock_now_ns(), &s->w.arena, times, values, count, &err), &err);
	db_querier_close(q);
}

/* A value for each turn since minute `from`, each from its own turn. */
static void check_no_hole(struct stage *s, const char *name, int from)
{
	int64_t *times;
	double *values;
	size_t n;

	numbers_of(s, name, &times, &values, &n);
	REQUIRE(n > 0);
	for (size_t i = 0; i < n; i++) {
		CHECK_INT(times[i], minute(s, from + (int)i));
		CHECK(!number_is_stale(values[i]));
		CHECK(values[i] == (double)(times[i] / NS_PER_MS) / 1e3);
	}
	CHECK(times[n - 1] > clock_now_ns() - 2 * NS_PER_MIN);
}

TEST(what_was_missed_is_made_up_for)
{
	struct alert *a;
	struct stage s;

	REQUIRE(open_stage(&s));
	first_manager(&s, 3, 4);
	CHECK_INT(s.notifier.sent, 0);
	start(&s, NULL, rules);
	rule_manager_begin(s.m, s.w.db, NULL, NULL, NULL);
	CHECK(WAIT_FOR(is_up_to_date(&s)));
	check_no_hole(&s, "clock", 0);
	check_no_hole(&s, "clock:copy", 0);
	check_no_hole(&s, "last", 0);
	a = alert_state_at(s.m->groups[0].rules[2].alerts, 0);
	REQUIRE(a);
	CHECK_INT(a->active_at_ns, minute(&s, 0));
	CHECK_INT(a->phase, ALERT_FIRING);
	CHECK_INT(a->fired_at_ns, minute(&s, 5));
	/* sent for now, not for the past */
	CHECK(s.notifier.sent >= 1 && s.notifier.sent <= 2);
	CHECK_INT(s.notifier.starts_ns, minute(&s, 5));
	close_stage(&s);
}

TEST(a_turn_that_was_cut_is_ended)
{
	struct stage s;

	REQUIRE(open_stage(&s));
	first_manager(&s, 3, 1);
	start(&s, NULL, rules);
	rule_manager_begin(s.m, s.w.db, NULL, NULL, NULL);
	CHECK(WAIT_FOR(is_up_to_date(&s)));
	check_no_hole(&s, "clock", 0);
	check_no_hole(&s, "clock:copy", 0);
	check_no_hole(&s, "last", 0);
	CHECK_INT(alert_state_at(s.m->groups[0].rules[2].alerts, 0)->active_at_ns, minute(&s, 0));
	close_stage(&s);
}

/* The alert fired before: it fires at the first turn, since the same time. */
TEST(an_alert_that_fired_goes_on_firing)
{
	char want[256];
	struct stage s;

	REQUIRE(open_stage(&s));
	first_manager(&s, 8, 4);
	CHECK(s.notifier.sent > 0);
	start(&s, NULL, rules);
	rule_manager_begin(s.m, s.w.db, NULL, NULL, NULL);
	CHECK(WAIT_FOR(is_up_to_date(&s)));
	CHECK_INT(alert_state_at(s.m->groups[0].rules[2].alerts, 0)->fired_at_ns, minute(&s, 5));
	snprintf(want, sizeof(want), "{} 5");
	ask(&s.w, (struct query_options){ .t_ns = minute(&s, 9) },
		"sum(count_over_time(ALERTS{alertstate=\"firing\"}[270s]))", want);
	ask(&s.w, (struct query_options){ .t_ns = minute(&s, 9) },
		"count(ALERTS{alertstate=\"pending\"})", "");
	close_stage(&s);
}

TEST(nothing_stored_is_nothing_missed)
{
	struct stage s;

	REQUIRE(open_stage(&s));
	rule_manager_begin(s.m, s.w.db, NULL, NULL, NULL);
	CHECK(WAIT_FOR(is_up_to_date(&s)));
	CHECK_INT(turns_of(&s), 0);
	CHECK_INT(s.m->groups[0].due_ns, group_next_turn(s.m->groups[0].group, clock_now_ns()));
	close_stage(&s);
}

/* Nothing was active, so nothing is stored; since then an alert is. */
TEST(the_other_manager_said_when_its_last_turn_was)
{
	static const char later[] = "groups:\n- name: g\n  interval: 1m\n  rules:\n"
								"  - {alert: Late, expr: 'vector(time()) > %lld', for: 1h}\n";
	char text[256];
	struct rules_snapshot before;
	struct arena a;
	struct err err;
	struct stage s;

	REQUIRE(open_stage(&s));
	arena_init(&a, 0);
	snprintf(text, sizeof(text), later, (long long)(minute(&s, 5) / NS_PER_S));
	start(&s, NULL, text);
	first_manager(&s, 3, 1);
	REQUIRE_OK(rule_manager_snapshot(s.m, &a, &before, &err), &err);
	CHECK_INT(before.groups[0].last_evaluation_ns, minute(&s, 2));
	start(&s, NULL, text);
	rule_manager_begin(s.m, s.w.db, NULL, NULL, &before);
	rules_snapshot_release(&before);
	CHECK(WAIT_FOR(is_up_to_date(&s)));
	REQUIRE(alert_state_at(s.m->groups[0].rules[0].alerts, 0));
	CHECK_INT(alert_state_at(s.m->groups[0].rules[0].alerts, 0)->active_at_ns, minute(&s, 5));
	arena_release(&a);
	close_stage(&s);
}

TEST(older_than_an_hour_is_left_out)
{
	struct group_last last = { .from = 4 };
	struct group_state *g;
	struct stage s;
	int64_t now;

	REQUIRE(open_stage(&s));
	lend_database(&s, s.w.db);
	g = &s.m->groups[0];
	now = minute(&s, 20) + NS_PER_S;
	for (int ago = -1; ago < 180; ago += 1) {
		last.turn_ns = minute(&s, 20 - ago);
		CHECK_INT(group_first_turn(g, &last, now), minute(&s, ago > 60 ? -39 : 21 - ago));
		CHECK_INT(g->from, 0);
	}
	last = (struct group_last){ .turn_ns = minute(&s, 18), .from = 2 };
	CHECK_INT(group_first_turn(g, &last, now), minute(&s, 18));
	CHECK_INT(g->from, 2);
	last.turn_ns = minute(&s, -60);
	CHECK_INT(group_first_turn(g, &last, now), minute(&s, -39));
	CHECK_INT(g->from, 0);
	lend_database(&s, NULL);
	close_stage(&s);
}

/* Series of the same name that another group, or something else, wrote are no turns. */
TEST(only_turns_of_the_group_count)
{
	struct group_last last;
	struct stage s;

	REQUIRE(open_stage(&s));
	first_manager(&s, 2, 4);
	for (int i = 0; i < 2; i++) {
		struct db_number n = { labels_of(&s.w.arena, i ? "__name__=clock" : "__name__=last,a=b"),
			minute(&s, 3) + NS_PER_S + i, 1 };
		struct err err;

		atomic_store(&acked, 0);
		CHECK_OK(db_append_numbers(s.w.db, &n, 1, on_acked, NULL, &err), &err);
		CHECK(WAIT_FOR(atomic_load(&acked)));
	}
	lend_database(&s, s.w.db);
	group_find_last(&s.m->groups[0], clock_now_ns(), &last);
	CHECK_INT(last.turn_ns, minute(&s, 1));
	CHECK_INT(last.from, 4);
	lend_database(&s, NULL);
	close_stage(&s);
}

static const char quick[] =
	"groups:\n- name: g\n  interval: 50ms\n  rules:\n  - {record: ra, expr: '1'}\n"
	"  - {alert: Always, expr: vector(1)}\n";

TEST(it_ends_and_begins_again)
{
	int64_t *times;
	double *values;
	struct stage s;
	size_t n;

	REQUIRE(open_stage(&s));
	start(&s, NULL, quick);
	for (int i = 0; i < 3; i++) {
		uint64_t before = turns_of(&s);

		rule_manager_begin(s.m, s.w.db, NULL, NULL, NULL);
		CHECK(WAIT_FOR(turns_of(&s) > before + 3));
		rule_manager_end(s.m);
		before = turns_of(&s);
		CHECK_INT(s.m->groups[0].rules[0].health, RULE_UNKNOWN);
		CHECK(!alert_state_at(s.m->groups[0].rules[1].alerts, 0));
		usleep(200000); /* several turns would have come */
		CHECK_INT(turns_of(&s), before);
	}
	numbers_of(&s, "ra", &times, &values, &n);
	CHECK(n >= 12);
	for (size_t i = 1; i < n; i++) {
		CHECK_INT(times[i] - times[i - 1], 50 * NS_PER_MS);
		CHECK(!number_is_stale(values[i]));
	}
	close_stage(&s);
}

static bool may(void *ctx)
{
	struct stage *s = ctx;

	atomic_fetch_add(&s->asked, 1);
	return !atomic_load(&s->may_not);
}

TEST(while_it_may_not_nothing_is_written_or_sent)
{
	int64_t *times;
	double *values;
	uint64_t before;
	struct stage s;
	size_t n, again;

	REQUIRE(open_stage(&s));
	start(&s, NULL, quick);
	rule_manager_begin(s.m, s.w.db, may, &s, NULL);
	CHECK(WAIT_FOR(turns_of(&s) > 2));
	atomic_store(&s.may_not, true);
	before = atomic_load(&s.asked);
	CHECK(WAIT_FOR(atomic_load(&s.asked) > before + 2));
	before = turns_of(&s);
	numbers_of(&s, "ra", &times, &values, &n);
	usleep(200000);
	CHECK_INT(turns_of(&s), before);
	numbers_of(&s, "ra", &times, &values, &again);
	CHECK_INT(again, n);
	atomic_store(&s.may_not, false);
	CHECK(WAIT_FOR(turns_of(&s) > before + 6));
	numbers_of(&s, "ra", &times, &values, &n);
	for (size_t i = 1; i < n; i++)
		CHECK_INT(times[i] - times[i - 1], 50 * NS_PER_MS);
	close_stage(&s);
}
