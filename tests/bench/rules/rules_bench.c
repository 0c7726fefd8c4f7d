/*
 * All rules of many services, round after round, on a database that `fleet push` filled: processor
 * time of a round, what is written with it. One line of JSON for each way to write the rules.
 *
 * The rules of a service either look at one selector of one window, each for a function of its own,
 * or are what examples/rules has: a share, cores, a flat share, costs of the ten most expensive
 * functions, a merged profile. Groups either have all rules of one service, or one rule of each.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "promql/rules/manager.h"
#include "tests/fleet/command.h"
#include "tests/fleet/fleet.h"

#define RULES_EACH 5u
#define ROUNDS_MAX 16u

struct benching {
	struct db_options db_options;
	struct db *db;
	struct engine *engine;
	struct arena arena;
	struct str (*functions)[RULES_EACH]; /* by service: its most expensive ones */
	uint64_t services, rounds;
	int64_t at_ns; /* of the last round */
};

struct way {
	const char *name;
	bool alike; /* one selector and window for all rules of a service */
	bool by_service; /* a group has the rules of a service */
	unsigned each;
};

static const struct way ways[] = {
	{ "examples, a group for each rule", false, false, RULES_EACH },
	{ "examples, a group for each service", false, true, RULES_EACH },
	{ "one selector, a group for each service", true, true, RULES_EACH },
	{ "one rule a service", true, true, 1 },
};

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- the rules ---- */

static enum err_code find_functions(struct benching *b, uint32_t service, struct err *err)
{
	struct query_options o = { .t_ns = b->at_ns };
	char name[32], text[128];
	const struct result *r;
	struct query *q;
	enum err_code rc;

	snprintf(text, sizeof(text), "top(%u, merge(cpu{job=\"%s\"}[5m]))", RULES_EACH,
		fleet_service_name(service, name));
	o.text = str_of(text);
	if ((rc = query_run(b->engine, &o, &q, err)))
		return rc;
	r = query_result(q);
	if (r->type != RESULT_TOP || r->n != 1 || r->tops[0].n != RULES_EACH)
		rc = err_set(err, ERR_NOT_FOUND, "%s: not so many functions", text);
	for (size_t i = 0; i < RULES_EACH && !rc; i++)
		b->functions[service][i] = str_dup(&b->arena, r->tops[0].rows[i].function);
	query_close(q);
	return rc;
}

static void add_rule(
	struct buf *out, const struct way *w, const char *job, unsigned i, struct str function)
{
	if (w->alike || i == 0) {
		buf_printf(out,
			"  - {alert: Share, for: 10m, expr: 'cum_share(merge by (job) "
			"(cpu{job=\"%s\"}[5m]), {function=\"" STR_FMT "\"}) > 0.1'}\n",
			job, STR_ARG(function));
	} else if (i == 1) {
		buf_printf(out,
			"  - {record: 'job:cpu:cores', expr: 'total(merge by (job) "
			"(rate(cpu{job=\"%s\"}[5m]))) / 1e9'}\n",
			job);
	} else if (i == 2) {
		buf_printf(out,
			"  - {alert: Flat, for: 10m, expr: 'flat_share(merge by (job) "
			"(cpu{job=\"%s\"}[5m]), {function=\"" STR_FMT "\"}) > 0.02'}\n",
			job, STR_ARG(function));
	} else if (i == 3) {
		buf_printf(out,
			"  - {record: 'function:cpu_cores:top10', expr: 'topk(10, flat by (job, "
			"function) (rate(cpu{job=\"%s\"}[5m])) / 1e9)'}\n",
			job);
	} else {
		buf_printf(out,
			"  - {record: 'job:cpu:merged', expr: 'merge by (job) "
			"(cpu{job=\"%s\"}[1m])'}\n",
			job);
	}
}

static enum err_code make_rules(
	struct benching *b, const struct way *w, struct rule_set **out, struct err *err)
{
	static const struct rules_load l = { .interval_ns = NS_PER_MIN };
	uint64_t outer = w->by_service ? b->services : w->each;
	uint64_t inner = w->by_service ? w->each : b->services;
	struct buf text = { 0 };
	enum err_code rc;
	char job[32];

	buf_add_cstr(&text, "groups:\n");
	for (uint64_t i = 0; i < outer; i++) {
		buf_printf(&text, "- name: g%" PRIu64 "\n  rules:\n", i);
		for (uint64_t k = 0; k < inner; k++) {
			uint32_t service = (uint32_t)(w->by_service ? i : k);
			unsigned rule = (unsigned)(w->by_service ? k : i);

			add_rule(&text, w, fleet_service_name(service, job), rule, b->functions[service][rule]);
		}
	}
	if (buf_failed(&text))
		rc = err_set(err, ERR_NOMEM, "rules: out of memory");
	else
		rc = rule_set_load_text("bench", buf_str(&text), &l, out, err);
	buf_release(&text);
	return rc;
}

/* ---- rounds ---- */

/* Every rule was evaluated, and well. */
static enum err_code check_rules(struct rule_manager *m, size_t *rules, struct err *err)
{
	struct rules_snapshot s;
	struct arena a;
	enum err_code rc;

	arena_init(&a, 0);
	*rules = 0;
	if (!(rc = rule_manager_snapshot(m, &a, &s, err))) {
		for (size_t i = 0; i < s.groups_n && !rc; i++)
			for (size_t k = 0; k < s.groups[i].rules_n && !rc; k++, ++*rules)
				if (s.groups[i].rules[k].health != RULE_OK)
					rc = err_set(err, ERR_INVALID, STR_FMT ": \"" STR_FMT "\"",
						STR_ARG(s.groups[i].rules[k].rule->expr),
						STR_ARG(s.groups[i].rules[k].last_error));
		rules_snapshot_release(&s);
	}
	arena_release(&a);
	return rc;
}

static enum err_code measure(struct benching *b, const struct way *w, struct err *err)
{
	const struct rule_manager_options o = {
		.engine = b->engine, .db = b->db, .manual = true, .resend_delay_ns = NS_PER_MIN
	};
	struct rule_manager *m = NULL;
	struct rule_set *set = NULL;
	double cpu[ROUNDS_MAX], wall[ROUNDS_MAX];
	size_t rules = 0;
	enum err_code rc;

	if ((rc = make_rules(b, w, &set, err)) || (rc = rule_manager_open(&o, &m, err)) ||
		(rc = rule_manager_apply(m, set, (struct labels){ 0 }, err)))
		goto done;
	for (uint64_t i = 0; i < b->rounds; i++) {
		int64_t at_ns = b->at_ns - (int64_t)(b->rounds - 1 - i) * NS_PER_MIN;

		cpu[i] = seconds(CLOCK_PROCESS_CPUTIME_ID);
		wall[i] = seconds(CLOCK_MONOTONIC);
		for (size_t k = 0; k < set->groups_n; k++)
			rule_manager_turn(m, k, at_ns);
		cpu[i] = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu[i];
		wall[i] = seconds(CLOCK_MONOTONIC) - wall[i];
	}
	if ((rc = check_rules(m, &rules, err)))
		goto done;
	printf(
		"{\"name\":\"%s\",\"rules\":%zu,\"groups\":%zu,\"cpu_s\":[", w->name, rules, set->groups_n);
	for (uint64_t i = 0; i < b->rounds; i++)
		printf("%s%.4f", i ? "," : "", cpu[i]);
	printf("],\"wall_s\":[");
	for (uint64_t i = 0; i < b->rounds; i++)
		printf("%s%.4f", i ? "," : "", wall[i]);
	printf("]}\n");
done:
	rule_manager_close(m);
	rule_set_unref(set);
	return rc;
}

static enum err_code run(struct benching *b, struct err *err)
{
	/* One thread: what is asked is whether one core does it. */
	struct engine_options o = { .threads_max = 1 };
	enum err_code rc;

	if ((rc = db_open(&b->db_options, &b->db, err)))
		return rc;
	o.db = b->db;
	if ((rc = engine_open(&o, &b->engine, err)))
		return rc;
	if (!(b->functions = arena_alloc_raw(&b->arena, b->services, sizeof(*b->functions))))
		return arena_fail(&b->arena, "functions", err);
	for (uint64_t i = 0; i < b->services && !rc; i++)
		rc = find_functions(b, (uint32_t)i, err);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]) && !rc; i++)
		rc = measure(b, &ways[i], err);
	return rc;
}

int main(int argc, char **argv)
{
	struct benching b = { 0 };
	uint64_t at_s;
	struct flag flags[] = {
		{ "data", FLAG_STRING, &b.db_options.dir, NULL, "The database's directory." },
		{ "services", FLAG_UINT, &b.services, "200", "How many it has." },
		{ "at", FLAG_UINT, &at_s, "0", "When its last scrape was, in seconds." },
		{ "rounds", FLAG_UINT, &b.rounds, "3", "The last one then, a minute apart." },
	};
	struct err err = { 0 };
	size_t args_n = 0;
	enum err_code rc;

	setvbuf(stdout, NULL, _IOLBF, 0);
	db_options_default(&b.db_options);
	b.db_options.no_compaction = true; /* joining blocks is not what is measured */
	arena_init(&b.arena, 0);
	rc = command_flags(flags, sizeof(flags) / sizeof(flags[0]),
		"Processor time of a round of all rules.", argc, argv, NULL, 0, &args_n, &err);
	b.at_ns = (int64_t)at_s * NS_PER_S;
	if (!rc &&
		(!b.db_options.dir || !at_s || !b.services || b.services > 1000 || !b.rounds ||
			b.rounds > ROUNDS_MAX))
		rc = err_set(&err, ERR_INVALID, "--data, --at, services and rounds are needed");
	if (!rc)
		rc = run(&b, &err);
	engine_close(b.engine);
	db_close(b.db);
	arena_release(&b.arena);
	if (rc)
		fprintf(stderr, "rules_bench: %s\n", err.msg);
	return rc ? 1 : 0;
}
