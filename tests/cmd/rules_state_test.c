/* What query nodes answer of rules that another one evaluates, over a fake store. */
#include "cmd/epimetheus/rules/rules_state.h"

#include "base/clock.h"
#include "promql/rules/manager_internal.h"
#include "tests/check.h"
#include "tests/promql/world.h"
#include "tests/tsdb/bucket/fake.h"
#include "tsdb/bucket/bucket.h"

static const char text[] = "groups:\n- name: g\n  interval: 1h\n  rules:\n"
						   "  - {record: r, expr: '1'}\n  - {alert: Always, expr: vector(1)}\n";

struct node {
	struct bucket *bucket;
	struct rules_state state;
	struct rule_manager *m;
};

static struct fake fake;
static struct world world;
static struct arena arena;
static struct err err;

static bool open_node(struct node *n, const char *rules)
{
	const struct rule_manager_options o = { .engine = world.engine };
	const struct rules_load l = { .interval_ns = NS_PER_MIN };
	struct bucket_config c = fake_config(&fake);
	struct rule_set *set = NULL;

	c.attempts_max = 1;
	CHECK_OK(bucket_open(&c, &n->bucket, &err), &err);
	rules_state_init(&n->state, n->bucket);
	CHECK_OK(rule_manager_open(&o, &n->m, &err), &err);
	CHECK_OK(rule_set_load_text("f.yml", str_of(rules), &l, &set, &err), &err);
	CHECK_OK(rule_manager_apply(n->m, set, (struct labels){ 0 }, &err), &err);
	rule_set_unref(set);
	return true;
}

static void close_node(struct node *n)
{
	rule_manager_close(n->m);
	rules_state_release(&n->state);
	bucket_close(n->bucket);
}

static bool open_all(struct node *a, struct node *b)
{
	arena_init(&arena, 0);
	return fake_start(&fake, NULL) && world_open(&world, NULL) && open_node(a, text) &&
		open_node(b, text);
}

static void close_all(struct node *a, struct node *b)
{
	close_node(a);
	close_node(b);
	world_close(&world);
	fake_stop(&fake);
	arena_release(&arena);
}

/* Its rules were evaluated once. */
static void evaluate(struct node *n)
{
	struct rules_snapshot s;

	rules_state_begin(&n->state, n->m, world.db, NULL, NULL);
	mutex_lock(&n->m->lock);
	while (n->m->groups[0].looks || n->m->groups[0].running)
		cond_wait(&n->m->changed, &n->m->lock);
	n->m->paused = true; /* its next turn is in up to an hour */
	mutex_unlock(&n->m->lock);
	CHECK(group_evaluate(&n->m->groups[0], clock_now_ns() / NS_PER_MS * NS_PER_MS));
	mutex_lock(&n->m->lock);
	n->m->paused = false;
	mutex_unlock(&n->m->lock);
	REQUIRE_OK(rule_manager_snapshot(n->m, &arena, &s, &err), &err);
	CHECK_INT(s.groups[0].rules[1].alerts_n, 1);
	rules_snapshot_release(&s);
}

/* Nothing waits for a second here. */
static void put(struct node *n)
{
	n->state.due_ns = 0;
	rules_state_put(&n->state, n->m);
}

/* Alerts of the answer, or -1; *warning: the first. */
static int ask_node(struct node *n, enum rules_lease_state state, struct str *warning)
{
	struct rules_report r;
	int alerts;

	*warning = STR("");
	if (rules_state_answer(&n->state, state, n->m, &arena, &r, &err)) {
		CHECK_FAIL("%s", err.msg);
		return -1;
	}
	CHECK_INT(r.rules.groups_n, 1);
	alerts = (int)r.rules.groups[0].rules[1].alerts_n;
	if (r.warnings_n)
		*warning = r.warnings[0];
	rules_snapshot_release(&r.rules);
	return alerts;
}

static void look_again(struct node *n)
{
	n->state.looked_ns = 0;
}

TEST(a_node_answers_what_another_one_evaluates)
{
	struct node a, b;
	struct str warning;
	unsigned requests;

	REQUIRE(open_all(&a, &b));
	CHECK_INT(ask_node(&b, RULES_NOT_HERE, &warning), 0);
	CHECK_STR(warning, "no query node has evaluated the rules yet");
	evaluate(&a);
	put(&a);
	requests = atomic_load(&fake.requests);
	b.state.looked_ns += NS_PER_HOUR; /* however slow this test is */
	CHECK_INT(ask_node(&b, RULES_NOT_HERE, &warning), 0); /* at most once a second */
	CHECK_INT(atomic_load(&fake.requests), requests);
	look_again(&b);
	CHECK_INT(ask_node(&b, RULES_NOT_HERE, &warning), 1);
	CHECK_STR(warning, "");
	CHECK_INT(atomic_load(&fake.requests), requests + 1);
	/* The same states are not put again within five seconds. */
	a.state.put_ns += NS_PER_HOUR;
	put(&a);
	CHECK_INT(atomic_load(&fake.requests), requests + 1);
	a.state.put_ns -= NS_PER_HOUR + RULES_STATE_EVERY_NS;
	put(&a);
	CHECK_INT(atomic_load(&fake.requests), requests + 2);
	CHECK_INT(ask_node(&a, RULES_HERE, &warning), 1);
	CHECK_STR(warning, "");
	CHECK_INT(ask_node(&a, RULES_PAUSED, &warning), 1);
	CHECK_STR(warning, "rules are not evaluated now: the bucket does not confirm their lease");
	close_all(&a, &b);
}

TEST(an_old_state_and_a_store_that_is_away)
{
	struct node a, b;
	struct str warning;

	REQUIRE(open_all(&a, &b));
	evaluate(&a);
	put(&a);
	CHECK_INT(ask_node(&b, RULES_NOT_HERE, &warning), 1);
	b.state.same_since_ns -= 50 * NS_PER_S;
	CHECK_INT(ask_node(&b, RULES_NOT_HERE, &warning), 1);
	CHECK(str_find(warning, STR("; the state is 5")) > 0);
	CHECK(str_has_prefix(warning, STR("rules are evaluated by ")));
	fake_fault(&fake,
		(struct fake_fault){ .kind = FAULT_STATUS,
			.line = "GET",
			.times = 9,
			.status = 403,
			.code = "AccessDenied" });
	look_again(&b);
	CHECK_INT(ask_node(&b, RULES_NOT_HERE, &warning), 1);
	CHECK(str_find(warning, STR("s old, and cannot be read: ")) > 0);
	/* A node that never had it. */
	look_again(&a);
	CHECK_INT(ask_node(&a, RULES_NOT_HERE, &warning), 1);
	CHECK(str_has_prefix(warning, STR("rules are not evaluated here, and what ")));
	CHECK(str_find(warning, STR(" evaluates cannot be read: ")) > 0);
	fake_forget_faults(&fake);
	/* Bytes that are no report. */
	fake_put(
		&fake, "p/q/evaluated/rules", STR("epimetheus rules\n\1 and so on, without its checksum"));
	look_again(&b);
	CHECK_INT(ask_node(&b, RULES_NOT_HERE, &warning), 0);
	CHECK(str_find(warning, STR("cannot be read: a report of rules: the checksum is wrong")) > 0);
	close_all(&a, &b);
}

/* Its clock is an hour behind ours. */
static void put_late(struct node *n, int64_t more_ns)
{
	struct rules_snapshot own;
	struct buf bytes = { 0 };

	REQUIRE_OK(rule_manager_snapshot(n->m, &arena, &own, &err), &err);
	rules_report_print(&bytes, &own,
		STR("node-1"), clock_now_ns() - NS_PER_HOUR + more_ns, RULES_REPORT_BYTES_MAX);
	fake_put(&fake, "p/q/evaluated/rules", buf_str(&bytes));
	rules_snapshot_release(&own);
	buf_release(&bytes);
}

TEST(a_clock_that_differs)
{
	struct node a, b;
	struct str warning;

	REQUIRE(open_all(&a, &b));
	evaluate(&a);
	put_late(&a, 0);
	CHECK_INT(ask_node(&b, RULES_NOT_HERE, &warning), 1);
	CHECK(str_has_prefix(warning, STR("rules are evaluated by node-1; the state is 36")));
	/* It changes, so it is not old. */
	put_late(&a, NS_PER_S);
	b.state.looked_ns -= 2 * NS_PER_S;
	CHECK_INT(ask_node(&b, RULES_NOT_HERE, &warning), 1);
	CHECK_STR(warning, "");
	/* It was not looked at for long: when it changed is not known. */
	put_late(&a, 2 * NS_PER_S);
	b.state.looked_ns -= 20 * NS_PER_S;
	CHECK_INT(ask_node(&b, RULES_NOT_HERE, &warning), 1);
	CHECK(str_find(warning, STR("; the state is 3")) > 0);
	close_all(&a, &b);
}

TEST(other_rules_and_a_node_that_takes_over)
{
	static const char other[] =
		"groups:\n- name: g\n  interval: 1h\n  rules:\n"
		"  - {record: r, expr: '2'}\n  - {alert: Always, expr: vector(1)}\n";
	struct node a, b, c;
	struct str warning;

	REQUIRE(open_all(&a, &b));
	REQUIRE(open_node(&c, other));
	evaluate(&a);
	put(&a);
	CHECK_INT(ask_node(&c, RULES_NOT_HERE, &warning), 1);
	CHECK(str_has_suffix(
		warning, STR(", which evaluates the rules, has other rules than this node")));
	/* It has the lease, and its first turn is to come: what was known is still answered. */
	rules_state_begin(&b.state, b.m, world.db, NULL, NULL);
	CHECK_INT(ask_node(&b, RULES_HERE, &warning), 1);
	CHECK_STR(warning, "");
	rule_manager_end(b.m);
	CHECK_INT(ask_node(&b, RULES_NOT_HERE, &warning), 1);
	close_node(&c);
	close_all(&a, &b);
}
