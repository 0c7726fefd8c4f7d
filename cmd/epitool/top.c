#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/quote.h"
#include "cmd/epitool/compare/costs.h"
#include "cmd/epitool/progress.h"
#include "cmd/epitool/source.h"
#include "cmd/epitool/table.h"
#include "proto/report/pprof_unit.h"

#define CLEAR "\033[H\033[2J\033[3J"
#define INTERVAL_DEFAULT "10s"

static const char usage[] = "top [FLAGS] QUERY|FILE";
static const char about[] =
	"The functions that cost most, of a query that gives profiles, or of a pprof file.\n"
	"\n"
	"With --watch the table is printed again and again, with the change since the one before:\n"
	"  epitool top --watch 'merge(cpu{job=\"api\"}[1m])'\n"
	"  epitool top --watch=1m --start=-5m 'cpu'\n"
	"Relative times count from each turn on. What fails later is said, and tried again.\n"
	"Ctrl-C while watching ends with 0.";

struct top_flags {
	struct question q;
	const char *profile, *match, *type, *measure, *by_text;
	uint64_t limit, count;
	int64_t watch_ns; /* 0: once */
	enum costs_by by;
};

/* One turn: a profile, and its costs beside those of the turn before. */
struct tool_top_turn {
	struct arena arena;
	struct source source;
	struct costs costs;
	bool filled;
};

static void tool_top_turn_release(struct tool_top_turn *t)
{
	if (!t->filled)
		return;
	costs_release(&t->costs);
	source_release(&t->source);
	arena_release(&t->arena);
	t->filled = false;
}

static enum err_code top_flags_turn_read(const struct top_flags *f, const char *text,
	const struct tool_top_turn *before, struct tool_top_turn *out, struct err *err)
{
	struct question q = f->q;
	const struct source_options o = {
		.question = &q, .profile = f->profile, .match = f->match, .type = f->type
	};
	enum err_code rc;

	*out = (struct tool_top_turn){ .filled = true };
	arena_init(&out->arena, 0);
	costs_init(&out->costs, &out->arena, f->by);
	if ((rc = ask_check(&q, err)) || (rc = source_read(&o, text, &out->arena, &out->source, err)))
		return rc;
	if (before->filled &&
		(rc = costs_add(&out->costs, before->source.profile, before->source.type, COSTS_BASE, err)))
		return rc;
	return costs_add(&out->costs, out->source.profile, out->source.type, COSTS_NEW, err);
}

/* ---- showing ---- */

static int tool_top_by_flat(const void *a, const void *b)
{
	const struct cost_row *l = a, *r = b;

	if (l->flat[COSTS_NEW] != r->flat[COSTS_NEW])
		return l->flat[COSTS_NEW] < r->flat[COSTS_NEW] ? 1 : -1;
	if (l->cum[COSTS_NEW] != r->cum[COSTS_NEW])
		return l->cum[COSTS_NEW] < r->cum[COSTS_NEW] ? 1 : -1;
	return str_cmp(l->name, r->name);
}

static int tool_top_by_cum(const void *a, const void *b)
{
	const struct cost_row *l = a, *r = b;

	if (l->cum[COSTS_NEW] != r->cum[COSTS_NEW])
		return l->cum[COSTS_NEW] < r->cum[COSTS_NEW] ? 1 : -1;
	return tool_top_by_flat(a, b);
}

static void tool_top_cell_cost(
	struct text_table *t, int64_t value, bool sign, struct str from, struct str to)
{
	struct buf cell = { 0 };

	if (sign && value > 0)
		buf_add_char(&cell, '+');
	pprof_unit_print(&cell, value, from, to);
	table_cell(t, buf_str(&cell));
	buf_release(&cell);
}

static void tool_top_cell_percent(struct text_table *t, int64_t value, int64_t total)
{
	char text[32];

	snprintf(text, sizeof(text), "%.2f%%", total ? (double)value / (double)total * 100 : 0.0);
	table_cell(t, str_of(text));
}

static void top_flags_print_table(const struct top_flags *f, struct tool_top_turn *now,
	bool compared, struct str unit, struct buf *out)
{
	static const char *const titles[] = { "flat", "flat%", "cum", "cum%" };
	int64_t total = now->costs.total[COSTS_NEW];
	struct str to = number_unit(total / 1000 + 1, total, unit);
	bool cum = !strcmp(f->measure, "cum");
	struct text_table t;

	qsort(now->costs.rows, now->costs.n, sizeof(*now->costs.rows),
		cum ? tool_top_by_cum : tool_top_by_flat);
	text_table_init(&t, &now->arena);
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		table_column(&t, titles[i], true);
	if (compared)
		table_column(&t, "change", true);
	table_column(&t, f->by_text, false);
	for (size_t i = 0; i < now->costs.n && (!f->limit || i < f->limit); i++) {
		const struct cost_row *r = &now->costs.rows[i];
		const int64_t *v = cum ? r->cum : r->flat;

		if (!r->cum[COSTS_NEW] && !r->flat[COSTS_NEW])
			continue;
		tool_top_cell_cost(&t, r->flat[COSTS_NEW], false, unit, to);
		tool_top_cell_percent(&t, r->flat[COSTS_NEW], total);
		tool_top_cell_cost(&t, r->cum[COSTS_NEW], false, unit, to);
		tool_top_cell_percent(&t, r->cum[COSTS_NEW], total);
		if (compared)
			tool_top_cell_cost(&t, v[COSTS_NEW] - v[COSTS_BASE], true, unit, to);
		table_cell(&t, r->name);
	}
	table_print(&t, terminal_width(), out);
}

static enum err_code top_flags_print_turn(
	const struct top_flags *f, struct tool_top_turn *now, bool compared, struct err *err)
{
	const struct source *s = &now->source;
	const struct pprof_type *type = &s->profile->types[s->type];
	struct str unit = s->profile->strings[type->unit];
	const int64_t *total = now->costs.total;
	struct buf out = { 0 };
	enum err_code rc;

	if (f->watch_ns && isatty(STDOUT_FILENO))
		buf_add_cstr(&out, CLEAR);
	buf_add_printable(&out, s->profile->strings[type->type]);
	buf_add_cstr(&out, ": total ");
	pprof_unit_print(&out, total[COSTS_NEW], unit, STR("auto"));
	if (compared) {
		buf_add_cstr(&out, total[COSTS_NEW] > total[COSTS_BASE] ? ", change +" : ", change ");
		pprof_unit_print(&out, total[COSTS_NEW] - total[COSTS_BASE], unit, STR("auto"));
	}
	if (f->watch_ns) {
		buf_add_cstr(&out, ", ");
		time_print_rfc3339(&out, clock_now_ns() / NS_PER_S * NS_PER_S);
	}
	buf_add_char(&out, '\n');
	top_flags_print_table(f, now, compared, unit, &out);
	if (f->watch_ns && !isatty(STDOUT_FILENO))
		buf_add_char(&out, '\n');
	rc = buf_failed(&out) ? err_nomem(err, "top") : output_put("", buf_str(&out), err);
	buf_release(&out);
	return rc;
}

/* ---- turns ---- */

/* The first must work; later ones may fail while a server starts again. */
static int top_flags_run(const struct top_flags *f, const char *text)
{
	struct tool_top_turn turns[2] = { 0 };
	uint64_t count = f->watch_ns ? f->count : 1;
	unsigned now = 0;
	int rc = 0;

	for (uint64_t i = 0; !count || i < count; i++) {
		struct tool_top_turn *last = &turns[!now];
		struct err err = { 0 };

		if (i)
			progress_wait(f->watch_ns);
		if (i && atomic_load(&interrupted))
			break;
		rc = 0;
		if (top_flags_turn_read(f, text, last, &turns[now], &err) ||
			top_flags_print_turn(f, &turns[now], last->filled, &err)) {
			if (i && atomic_load(&interrupted))
				break;
			ask_print_error(turns[now].source.query.ptr, &err);
			tool_top_turn_release(&turns[now]);
			rc = EXIT_FAILED;
			if (!i)
				break;
			continue;
		}
		tool_top_turn_release(last);
		now = !now;
	}
	tool_top_turn_release(&turns[0]);
	tool_top_turn_release(&turns[1]);
	return f->watch_ns && atomic_load(&interrupted) ? 0 : rc;
}

static enum err_code top_flags_check(
	struct top_flags *f, const char *text, bool watch, bool count, struct err *err)
{
	struct question q;
	enum err_code rc = costs_check_flags(f->by_text, f->measure, &f->by, err);

	if (rc)
		return rc;
	if (watch && f->watch_ns <= 0)
		return err_set(err, ERR_INVALID, "--watch is more than 0");
	if (count && !watch)
		return err_set(err, ERR_INVALID, "--count is given with --watch");
	if (watch && !strcmp(text, "-"))
		return err_set(err, ERR_INVALID, "--watch cannot read standard input again");
	q = f->q;
	return ask_check(&q, err);
}

/* --watch alone means an interval; the flag has one in any case. */
static void tool_top_complete_watch(int argc, char **argv)
{
	static char with_default[] = "--watch=" INTERVAL_DEFAULT;

	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++)
		if (!strcmp(argv[i], "--watch"))
			argv[i] = with_default;
}

int tool_top(int argc, char **argv)
{
	struct top_flags f = { 0 };
	struct flag flags[] = {
		{ "watch", FLAG_DURATION, &f.watch_ns, NULL,
			"Print it again after this time: --watch alone is --watch=" INTERVAL_DEFAULT "." },
		{ "count", FLAG_UINT, &f.count, NULL, "With --watch: end after so many tables." },
		{ "limit", FLAG_UINT, &f.limit, "20", "Most rows; 0: all.", .short_name = 'n' },
		{ "by", FLAG_STRING, &f.by_text, "function",
			"function, system_name, filename, line or mapping." },
		{ "measure", FLAG_STRING, &f.measure, "flat", "flat or cum: what is sorted by." },
		SOURCE_FLAGS(f),
	};
	size_t n = sizeof(flags) / sizeof(flags[0]), args_n = 0;
	const char *args[1];
	struct err err = { 0 };
	int rc;

	tool_top_complete_watch(argc, argv);
	rc = output_read_flags(flags, n, argc, argv, usage, about, args, 1, 1, &args_n);
	if (rc >= 0)
		return rc;
	f.q.step = "";
	f.q.format = "pprof";
	if (top_flags_check(&f, args[0], flags[0].set, flags[1].set, &err)) {
		fprintf(stderr, "epitool: error: %s\nusage: epitool %s\n", err.msg, usage);
		return EXIT_USAGE;
	}
	interrupt_catch();
	return top_flags_run(&f, args[0]);
}
