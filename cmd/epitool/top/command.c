#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/quote.h"
#include "cmd/epitool/compare/costs.h"
#include "cmd/epitool/progress.h"
#include "cmd/epitool/source.h"
#include "cmd/epitool/table.h"
#include "cmd/epitool/top/report.h"
#include "proto/report/pprof_top.h"
#include "proto/report/pprof_unit.h"
#include "proto/report/top_rows.h"

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
	"Ctrl-C while watching ends with 0.\n"
	"\n"
	"With --format=text the report is that of go tool pprof -top. Its options have the\n"
	"names that they have there; any of them means this format, and all rows are shown:\n"
	"  epitool top --noinlines --unit=ms --base=old.pb.gz new.pb.gz";

struct top_flags {
	struct question q;
	const char *profile, *match, *type, *measure, *by_text, *format;
	struct question_report report;
	bool switches[PPROF_OPTIONS]; /* of the report's options that are flags without a value */
	char rows_text[24];
	bool is_report;
	uint64_t limit, count;
	int64_t watch_ns; /* 0: once */
	enum costs_by by;
};

/* Places in the table of flags. */
enum { WATCH_FLAG, COUNT_FLAG, LIMIT_FLAG, BY_FLAG, MEASURE_FLAG };

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

/* Rows are in the order of go tool pprof, and percentages are of its total. */
static int tool_top_by_flat(const void *a, const void *b)
{
	const struct cost_row *l = a, *r = b;
	uint64_t lm = integer_magnitude64(l->flat[COSTS_NEW]);
	uint64_t rm = integer_magnitude64(r->flat[COSTS_NEW]);

	return lm != rm ? (lm < rm ? 1 : -1) : str_cmp(l->name, r->name);
}

static int tool_top_by_cum(const void *a, const void *b)
{
	const struct cost_row *l = a, *r = b;
	uint64_t lm = integer_magnitude64(l->cum[COSTS_NEW]);
	uint64_t rm = integer_magnitude64(r->cum[COSTS_NEW]);

	return lm != rm ? (lm < rm ? 1 : -1) : str_cmp(l->name, r->name);
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

	snprintf(text, sizeof(text), "%.2f%%", top_percent(value, total));
	table_cell(t, str_of(text));
}

static void top_flags_print_table(const struct top_flags *f, struct tool_top_turn *now,
	bool compared, struct str unit, struct buf *out)
{
	static const char *const titles[] = { "flat", "flat%", "cum", "cum%" };
	int64_t total = pprof_top_total(now->source.profile, now->source.type);
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
	pprof_unit_print(&out, pprof_top_total(s->profile, s->type), unit, STR("auto"));
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

static enum err_code top_flags_print_report(
	const struct top_flags *f, const char *text, struct buf *query, struct err *err)
{
	struct question q = f->q;
	const struct source_options o = {
		.question = &q, .profile = f->profile, .match = f->match, .type = f->type
	};
	struct buf out = { 0 };
	enum err_code rc = ask_check(&q, err);

	if (f->watch_ns && isatty(STDOUT_FILENO))
		buf_add_cstr(&out, CLEAR);
	if (!rc)
		rc = top_report_print(&o, &f->report, text, &out, query, err);
	if (f->watch_ns && !isatty(STDOUT_FILENO))
		buf_add_char(&out, '\n');
	if (!rc)
		rc = buf_failed(&out) ? err_nomem(err, "top") : output_put("", buf_str(&out), err);
	buf_release(&out);
	return rc;
}

/* ---- turns ---- */

/* A table, or the report; `query` is for the error. */
static enum err_code top_flags_turn(const struct top_flags *f, const char *text,
	struct tool_top_turn *last, struct tool_top_turn *now, struct buf *query, struct err *err)
{
	enum err_code rc;

	if (f->is_report)
		return top_flags_print_report(f, text, query, err);
	if (!(rc = top_flags_turn_read(f, text, last, now, err)))
		rc = top_flags_print_turn(f, now, last->filled, err);
	buf_add_str(query, buf_str(&now->source.query));
	return rc;
}

/* The first must work; later ones may fail while a server starts again. */
static int top_flags_run(const struct top_flags *f, const char *text)
{
	struct tool_top_turn turns[2] = { 0 };
	uint64_t count = f->watch_ns ? f->count : 1;
	unsigned now = 0;
	int rc = 0;

	for (uint64_t i = 0; !count || i < count; i++) {
		struct tool_top_turn *last = &turns[!now];
		struct buf query = { 0 };
		struct err err = { 0 };
		enum err_code failed;

		if (i)
			progress_wait(f->watch_ns);
		if (i && atomic_load(&interrupted))
			break;
		rc = 0;
		failed = top_flags_turn(f, text, last, &turns[now], &query, &err);
		if (failed && !(i && atomic_load(&interrupted)))
			ask_print_error(query.ptr, &err);
		buf_release(&query);
		if (failed) {
			if (i && atomic_load(&interrupted))
				break;
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

/* The values that were given; *given is one of them. `flags` are those of the options alone. */
static void top_flags_take_options(
	struct top_flags *f, const struct flag *flags, bool limit, const char **given)
{
	struct question_report *r = &f->report;

	for (size_t i = 0; i < PPROF_OPTIONS; i++) {
		if (!flags[i].set)
			r->values[i] = NULL;
		else if (flags[i].kind == FLAG_BOOL)
			r->values[i] = f->switches[i] ? "true" : "false";
		if (flags[i].set)
			*given = flags[i].name;
		if (limit && !flags[i].set && !strcmp(flags[i].name, "nodecount")) {
			snprintf(f->rows_text, sizeof(f->rows_text), "%" PRIu64, f->limit);
			r->values[i] = f->rows_text;
		}
	}
	if (r->base[0] || r->diff_base[0] || r->normalize)
		*given = r->base[0] ? "base" : r->diff_base[0] ? "diff_base" : "normalize";
}

/* Options of the report mean the report. */
static enum err_code top_flags_check_report(
	struct top_flags *f, const struct flag *own, const struct flag *options, struct err *err)
{
	const char *given = NULL;

	top_flags_take_options(f, options, own[LIMIT_FLAG].set, &given);
	if (f->format[0] && strcmp(f->format, "table") && strcmp(f->format, "text"))
		return err_set(err, ERR_INVALID, "--format is table or text, not \"%s\"", f->format);
	if (given && !strcmp(f->format, "table"))
		return err_set(err, ERR_INVALID, "--%s needs --format=text", given);
	f->is_report = given || !strcmp(f->format, "text");
	if (f->is_report && own[BY_FLAG].set)
		return err_set(err, ERR_INVALID, "--by is of the table; the report has --granularity");
	if (f->is_report && own[MEASURE_FLAG].set)
		return err_set(err, ERR_INVALID, "--measure is of the table; the report has --sort");
	return question_report_check(&f->report, err);
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

/* The flags of the report's options, behind those of the command. */
static size_t top_flags_add_options(struct top_flags *f, struct flag *flags, size_t n)
{
	for (size_t i = 0; i < PPROF_OPTIONS; i++) {
		const struct pprof_option *row = &pprof_option_rows[i];
		bool is_switch = row->kind == PPROF_OPTION_BOOL && !strcmp(row->fallback, "false");

		flags[n++] = (struct flag){ .name = row->name,
			.kind = is_switch ? FLAG_BOOL : FLAG_STRING,
			.value = is_switch ? (void *)&f->switches[i] : (void *)&f->report.values[i],
			.default_text = is_switch ? NULL :
				row->fallback         ? row->fallback :
										"",
			.help = row->help };
	}
	return n;
}

int tool_top(int argc, char **argv)
{
	struct top_flags f = { 0 };
	const struct flag own[] = {
		{ "watch", FLAG_DURATION, &f.watch_ns, NULL,
			"Print it again after this time: --watch alone is --watch=" INTERVAL_DEFAULT "." },
		{ "count", FLAG_UINT, &f.count, NULL, "With --watch: end after so many tables." },
		{ "limit", FLAG_UINT, &f.limit, "20", "Most rows; 0: all.", .short_name = 'n' },
		{ "by", FLAG_STRING, &f.by_text, "function",
			"function, system_name, filename, line or mapping." },
		{ "measure", FLAG_STRING, &f.measure, "flat", "flat or cum: what is sorted by." },
		SOURCE_FLAGS(f),
		{ "format", FLAG_STRING, &f.format, "",
			"table, or text: the report of go tool pprof -top. Default: text if an option of it is "
			"given." },
		{ "base", FLAG_STRING, &f.report.base, "",
			"Query or file that is subtracted; equal samples cancel out." },
		{ "diff_base", FLAG_STRING, &f.report.diff_base, "",
			"As --base, but percentages are of the base's total." },
		{ "normalize", FLAG_BOOL, &f.report.normalize, NULL,
			"With --base and --diff_base: scale to the base's total first." },
	};
	struct flag flags[sizeof(own) / sizeof(own[0]) + PPROF_OPTIONS];
	size_t n, args_n = 0;
	const char *args[1];
	struct err err = { 0 };
	int rc;

	memcpy(flags, own, sizeof(own));
	n = top_flags_add_options(&f, flags, sizeof(own) / sizeof(own[0]));
	tool_top_complete_watch(argc, argv);
	rc = output_read_flags(flags, n, argc, argv, usage, about, args, 1, 1, &args_n);
	if (rc >= 0)
		return rc;
	f.q.step = "";
	f.q.format = "pprof";
	if (top_flags_check(&f, args[0], flags[WATCH_FLAG].set, flags[COUNT_FLAG].set, &err) ||
		top_flags_check_report(&f, flags, flags + sizeof(own) / sizeof(own[0]), &err)) {
		fprintf(stderr, "epitool: error: %s\nusage: epitool %s\n", err.msg, usage);
		return EXIT_USAGE;
	}
	interrupt_catch();
	return top_flags_run(&f, args[0]);
}
