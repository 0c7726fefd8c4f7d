#include "tests/promql/script.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tests/scratch.h"
#include "tests/tsdb/read/numbers.h"

/* One database at a time, under an engine. */
struct running {
	struct script *s;
	enum script_way way;
	char dir[64];
	struct db_options options;
	struct engine_options limits;
	struct script_places dbs;
	struct db *db; /* the only one, or a union of them */
	struct engine *engine;
	struct arena code_arena;
	struct script_code code;
	int64_t max_ns; /* latest time stored */
	bool is_changed; /* loaded since the way was gone */
	bool is_last; /* nothing more is loaded into this database */
};

/* ---- the database ---- */

static bool is_union(const struct running *x)
{
	return x->way == SCRIPT_IN_UNION || x->way == SCRIPT_IN_UNION_OF_BLOCKS;
}

static bool ends_in_blocks(const struct running *x)
{
	return x->way == SCRIPT_IN_BLOCKS || x->way == SCRIPT_IN_UNION_OF_BLOCKS;
}

static enum err_code open_db(struct running *x, size_t i, struct err *err)
{
	char dir[96], name[24];
	enum err_code rc;

	snprintf(name, sizeof(name), "s%zu", i);
	snprintf(dir, sizeof(dir), "%s/%s", x->dir, name);
	x->options.dir = dir;
	if ((rc = db_open(&x->options, &x->dbs.v[i], err)))
		return rc;
	x->dbs.n++;
	if (!is_union(x))
		x->db = x->dbs.v[i];
	return is_union(x) ? db_union_add(x->db, name, x->dbs.v[i], NULL, NULL, err) : ERR_OK;
}

static bool start(struct running *x, uint32_t line)
{
	struct err err;
	enum err_code rc = is_union(x) ? db_union_open(&x->db, &err) : ERR_OK;

	x->dbs.n = 0;
	for (size_t i = 0; i < (is_union(x) ? SCRIPT_DBS_MAX : 1) && !rc; i++)
		rc = open_db(x, i, &err);
	if (rc) {
		script_fault(x->s, line, "%s", err.msg);
		return false;
	}
	x->limits.db = x->db;
	if (engine_open(&x->limits, &x->engine, &err)) {
		script_fault(x->s, line, "%s", err.msg);
		return false;
	}
	return true;
}

static void stop(struct running *x)
{
	char name[24];

	engine_close(x->engine);
	for (size_t i = 0; i < x->dbs.n && is_union(x); i++) {
		snprintf(name, sizeof(name), "s%zu", i);
		db_union_remove(x->db, name);
	}
	if (is_union(x))
		db_close(x->db);
	for (size_t i = 0; i < x->dbs.n; i++)
		db_close(x->dbs.v[i]);
	x->dbs.n = 0;
	x->engine = NULL;
	x->db = NULL;
}

static void drop(struct running *x)
{
	char command[128];
	FILE *f;

	stop(x);
	arena_release(&x->code_arena);
	snprintf(command, sizeof(command), "rm -rf '%s'", x->dir);
	if (x->dir[0] && (f = popen(command, "r")))
		pclose(f);
	x->dir[0] = '\0';
}

/*
 * A number far behind all that was stored: then no window takes rows any more. Where raw rows are
 * to go, others come before it: after a gap, retention waits.
 */
static void settle(struct running *x, uint32_t line)
{
	struct label labels[] = { { STR(LABEL_NAME), STR("settled_by_script") } };
	struct db_number number = { .labels = { labels, 1 }, .value = 1 };
	int64_t last_ns = x->max_ns + x->options.too_old_ns + 3 * x->options.window_ns;
	struct err err;

	for (size_t i = 0; i < x->dbs.n; i++) {
		number.ts_ns = x->options.raw_retention_ns ? x->max_ns : last_ns;
		do { /* an hour at most from one to the next, up to the last */
			number.ts_ns += 30 * NS_PER_MIN;
			number.ts_ns = number.ts_ns < last_ns ? number.ts_ns : last_ns;
			if (numbers_wait(x->dbs.v[i], &number, 1, &err))
				script_fault(x->s, line, "%s", err.msg);
		} while (number.ts_ns < last_ns);
		if (db_compact(x->dbs.v[i], &err))
			script_fault(x->s, line, "%s", err.msg);
	}
}

static bool option(struct running *x, struct str word)
{
	ptrdiff_t at = str_find(word, STR("="));
	struct str name, value;
	uint64_t v = 0;
	int64_t t = 0;

	if (at < 0)
		return false;
	name = (struct str){ word.ptr, (size_t)at };
	value = (struct str){ word.ptr + at + 1, word.len - (size_t)at - 1 };
	if (!str_to_u64(value, &v) && !script_time(value, &t))
		return false;
	if (str_is(name, "window"))
		x->options.window_ns = t;
	else if (str_is(name, "raw"))
		x->options.raw_retention_ns = t;
	else if (str_is(name, "nodes"))
		x->options.nodes_max = (uint32_t)v;
	else if (str_is(name, "samples"))
		x->limits.samples_max = v;
	else if (str_is(name, "memory"))
		x->limits.memory_bytes_max = v;
	else if (str_is(name, "lookback"))
		x->limits.lookback_ns = t;
	else
		return false;
	return true;
}

/* clear [window=.. nodes=.. samples=.. memory=.. lookback=..]: a new, empty database. */
static bool clear(struct running *x, struct str rest, uint32_t line)
{
	struct str word;

	drop(x);
	arena_init(&x->code_arena, 0);
	x->code = (struct script_code){ .arena = &x->code_arena };
	x->max_ns = 0;
	x->is_changed = false;
	x->limits = (struct engine_options){ 0 };
	db_options_default(&x->options);
	x->options.free_bytes_reserve = 1;
	x->options.retention_ns = 0;
	x->options.no_compaction = true; /* windows are cut when the script says so */
	if (ends_in_blocks(x))
		x->options.window_ns = 20 * NS_PER_S;
	while ((word = script_word(&rest)).len > 0)
		if (!option(x, word)) {
			script_fault(x->s, line, "no option: " STR_FMT, STR_ARG(word));
			return false;
		}
	snprintf(x->dir, sizeof(x->dir), SCRATCH "epi-script-XXXXXX");
	return scratch_dir(x->dir) && start(x, line);
}

/* ---- queries ---- */

struct question {
	struct query_options o;
	bool fails, ordered;
};

/* instant at T | span from A to B | range from A to B step S, then the query */
static bool read_question(const struct script_statement *st, struct question *q)
{
	struct str rest = st->line->text, word = script_word(&rest);

	*q = (struct question){ .fails = str_is(word, "eval_fail"),
		.ordered = str_is(word, "eval_ordered") };
	if (!q->fails && !q->ordered && !str_is(word, "eval"))
		return false;
	word = script_word(&rest);
	if (str_is(word, "instant")) {
		if (!str_is(script_word(&rest), "at") || !script_time(script_word(&rest), &q->o.t_ns))
			return false;
	} else {
		q->o.has_span = true;
		if (!str_is(script_word(&rest), "from") ||
			!script_time(script_word(&rest), &q->o.start_ns) || !str_is(script_word(&rest), "to") ||
			!script_time(script_word(&rest), &q->o.end_ns))
			return false;
		if (str_is(word, "range") &&
			(!str_is(script_word(&rest), "step") ||
				!script_time(script_word(&rest), &q->o.step_ns)))
			return false;
		if (!str_is(word, "range") && !str_is(word, "span"))
			return false;
	}
	q->o.text = str_trim(rest);
	return true;
}

static void expect_fault(struct script *s, const struct script_statement *st, const char *got)
{
	struct str want = st->n == 1 ? st->body[0].text : STR("");

	if (!str_is(want, got))
		script_fault(s, st->line->number, STR_FMT "\n  expected\n    " STR_FMT "\n  got\n    %s",
			STR_ARG(st->line->text), STR_ARG(want), got);
}

static void ask(struct running *x, const struct script_statement *st)
{
	struct question question;
	struct query *q;
	struct err err;

	if (!read_question(st, &question)) {
		script_fault(x->s, st->line->number,
			"eval[_fail|_ordered] instant at T | span from A to B | range from A to B step S");
		return;
	}
	x->s->evaluated++;
	question.o.keep_sample_labels = script_shows_labels(st);
	if (query_run(x->engine, &question.o, &q, &err)) {
		if (question.fails)
			expect_fault(x->s, st, err.msg);
		else
			script_fault(
				x->s, st->line->number, STR_FMT "\n  fails: %s", STR_ARG(st->line->text), err.msg);
		return;
	}
	if (question.fails)
		script_fault(x->s, st->line->number, STR_FMT "\n  does not fail", STR_ARG(st->line->text));
	else
		script_compare(x->s, st, query_result(q), question.ordered, &question.o);
	query_close(q);
}

void script_queries(const struct script *s, void (*fn)(void *ctx, struct str query), void *ctx)
{
	struct script_statement st;
	struct question q;

	for (size_t at = 0; script_next(s, &at, &st);)
		if (read_question(&st, &q))
			fn(ctx, q.o.text);
}

/* ---- statements ---- */

static bool is_statement(const struct script_statement *st, const char *word)
{
	struct str rest = st->line->text;

	return str_is(script_word(&rest), word);
}

/* Is more loaded before the next `clear`? */
static bool loads_more(const struct script *s, size_t at)
{
	struct script_statement st;

	while (script_next(s, &at, &st) && !is_statement(&st, "clear"))
		if (is_statement(&st, "load"))
			return true;
	return false;
}

/* Data to where the way wants it. */
static bool go_way(struct running *x, uint32_t line)
{
	if (!x->is_changed)
		return true;
	x->is_changed = false;
	if (ends_in_blocks(x) && x->is_last)
		settle(x, line);
	if (x->way != SCRIPT_RESTARTED)
		return true;
	stop(x);
	return start(x, line);
}

static bool run_statement(struct running *x, const struct script_statement *st, size_t at)
{
	uint32_t line = st->line->number;
	struct str rest = st->line->text, word = script_word(&rest);

	if (str_is(word, "clear"))
		return clear(x, rest, line);
	if (str_is(word, "load")) {
		script_load(x->s, st, &x->dbs, &x->code, &x->max_ns);
		x->is_changed = true;
		x->is_last = !loads_more(x->s, at);
		return true;
	}
	if (str_is(word, "compact")) {
		settle(x, line);
		return true;
	}
	if (str_is(word, "restart")) {
		stop(x);
		return start(x, line);
	}
	if (!go_way(x, line))
		return false;
	ask(x, st);
	return true;
}

void script_run(struct script *s, enum script_way way)
{
	struct running x = { .s = s, .way = way };
	struct script_statement st;
	bool ok = clear(&x, (struct str){ 0 }, 1);

	for (size_t at = 0; ok && script_next(s, &at, &st);)
		ok = run_statement(&x, &st, at);
	drop(&x);
}
