/*
 * A thousand alerting rules over two hundred services: one turn of all of them, timed. What it
 * takes is printed; that it is less than half of a minute's core is checked.
 */
#include <time.h>

#include "promql/rules/manager_internal.h"
#include "promql/rules/notify/notifier.h"
#include "tests/promql/world.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SERVICES 20
#else
#define SERVICES 200
#endif
#define RULES_EACH 5
#define SCRAPES 5 /* a minute apart */
#define INTERVAL_S 60
#define STACKS 400

void notifier_send(struct notifier *n, const struct notification *v, size_t count) {}

static void fill_service(struct world *w, int service, const char *stacks)
{
	char labels[64];

	snprintf(labels, sizeof(labels), "__name__=process_cpu,job=svc%d", service);
	for (int i = 1; i <= SCRAPES; i++)
		store(w, labels, i * INTERVAL_S, INTERVAL_S, stacks);
	arena_reset(&w->arena);
}

static void make_stacks(struct buf *out)
{
	for (int i = 0; i < STACKS; i++)
		buf_printf(out, "%smain;serve;a%d;b%d;c%d;d%d %d", i ? "|" : "", i % 7, i % 19, i % 53,
			i % 120, 1 + i % 10);
	buf_add_char(out, '\0');
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

TEST(a_thousand_rules)
{
	static const struct rules_load l = { .interval_ns = NS_PER_HOUR };
	struct rule_manager_options o = { .manual = true, .resend_delay_ns = NS_PER_MIN };
	struct buf stacks = { 0 }, text = { 0 };
	struct rule_manager *m;
	struct rule_set *set;
	struct world w;
	struct err err;
	char want[32];
	double cpu;

	REQUIRE(world_open(&w, NULL));
	make_stacks(&stacks);
	buf_add_cstr(&text, "groups:\n- name: g\n  rules:\n");
	for (int i = 0; i < SERVICES; i++) {
		fill_service(&w, i, stacks.ptr);
		for (int k = 0; k < RULES_EACH; k++)
			buf_printf(&text,
				"  - {alert: Share, expr: 'cum_share(merge by (job) "
				"(cpu{job=\"svc%d\"}[5m]), {function=\"a%d\"}) > 0.1'}\n",
				i, k);
	}
	o.engine = w.engine;
	o.db = w.db;
	REQUIRE_OK(rule_set_load_text("f", buf_str(&text), &l, &set, &err), &err);
	REQUIRE_OK(rule_manager_open(&o, &m, &err), &err);
	REQUIRE_OK(rule_manager_apply(m, set, (struct labels){ 0 }, &err), &err);
	for (int i = 0; i < 2; i++) {
		cpu = cpu_seconds();
		group_evaluate(&m->groups[0], w.t0 + (SCRAPES * INTERVAL_S + i) * NS_PER_S);
		cpu = cpu_seconds() - cpu;
		printf("  %d rules over %d services: %.2f s of processor time, %.2f s\n",
			SERVICES * RULES_EACH, SERVICES, cpu, (double)m->groups[0].evaluation_ns / 1e9);
		CHECK(cpu < 30);
	}
	snprintf(want, sizeof(want), "{} %d", SERVICES * RULES_EACH);
	at(&w, SCRAPES * INTERVAL_S, "count(ALERTS)", want);
	rule_manager_close(m);
	rule_set_unref(set);
	buf_release(&stacks);
	buf_release(&text);
	world_close(&w);
}
