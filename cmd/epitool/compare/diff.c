#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/quote.h"
#include "cmd/epitool/compare/gate.h"
#include "cmd/epitool/compare/pair.h"
#include "cmd/epitool/progress.h"
#include "proto/report/pprof_unit.h"

static const char usage[] = "diff [FLAGS] BASE NEW";
static const char about[] =
	"What costs more and what less in NEW than in BASE, function by function. Each is a\n"
	"pprof file, the labels of a run (run=1, or run=1,branch=main: then --profile says of\n"
	"what), or a query that gives profiles.\n"
	"\n"
	"Changes are in percent of the base's total. With --threshold or --total-threshold the\n"
	"exit code is 1 where something costs more than that, be it by chance.\n"
	"\n"
	"Performance tests repeat their runs and judge them with --function-threshold=20%:\n"
	"  worse        costs more than in BASE, and 20% more is not excluded\n"
	"  not worse    20% more is excluded\n"
	"  cannot tell  too few runs; says how many more would tell\n"
	"Noise is measured between the runs of a side. If nothing changed, at most 1 in 100\n"
	"comparisons says worse of any function (Bonferroni); of a function that costs 20%\n"
	"more about 1 in 40 says not worse. With --normalize costs are relative to all other\n"
	"functions, else of a run. --function-budget=NAME=12% limits a share of NEW likewise.\n"
	"Runs of a side are files with commas between them, all files of a directory, values of\n"
	"a label (run=1,2,3; 'run=~\"7[.].+\"'), or all profiles that a run stored.";

#define EXIT_WORSE 1
#define EXIT_CANNOT_TELL 3
#define EXIT_NOT_JUDGED 4

struct diff_flags {
	struct pair_flags pair;
	struct gate_flags gate;
	const char *threshold_text, *total_text;
	bool both_ways, as_json;
	double total_threshold; /* out, of diff_flags_check; < 0: none */
};

struct diff {
	const struct diff_flags *f;
	struct pair pair;
	struct gate gate; /* if it is asked for */
	bool total_exceeds;
};

/* ---- the command line ---- */

static enum err_code diff_flags_check(struct diff_flags *f, struct err *err)
{
	enum err_code rc;

	if ((rc = pair_check(&f->pair, err)) || (rc = gate_flags_check(&f->gate, err)) ||
		(rc = percent_parse("threshold", f->threshold_text, &f->pair.compare.threshold, err)) ||
		(rc = percent_parse("total-threshold", f->total_text, &f->total_threshold, err)))
		return rc;
	f->pair.runs = f->gate.is_asked ? RUNS_APART : RUNS_LISTED;
	f->pair.compare.both_ways = f->both_ways;
	return ask_check(&f->pair.q, err);
}

/* ---- showing ---- */

static double diff_total_percent(const struct diff *d)
{
	double base = (double)d->pair.costs.total[COSTS_BASE];

	return ((double)d->pair.costs.total[COSTS_NEW] - base) / base * 100;
}

static void diff_print_rows(struct diff *d, struct buf *out)
{
	static const char *const titles[2][6] = {
		{ "change", "of base", "base flat", "new flat", "base cum", "new cum" },
		{ "change", "of base", "base cum", "new cum", "base flat", "new flat" },
	};
	bool cum = d->f->pair.compare.cum, marked = d->f->pair.compare.threshold >= 0;
	struct str to = pair_unit(&d->pair);
	struct text_table t;
	char percent[48];

	text_table_init(&t, &d->pair.arena);
	for (size_t i = 0; i < 6; i++)
		table_column(&t, titles[cum][i], true);
	table_column(&t, d->f->pair.by_text, false);
	for (size_t i = 0; i < pair_rows(&d->pair); i++) {
		const struct cost_row *r = &d->pair.costs.rows[i];
		const int64_t *first = cum ? r->cum : r->flat, *second = cum ? r->flat : r->cum;

		pair_cell(&d->pair, &t, r->change, true, to);
		snprintf(
			percent, sizeof(percent), "%s%+.2f%%", marked && r->exceeds ? "! " : "", r->percent);
		table_cell(&t, str_of(percent));
		pair_cell(&d->pair, &t, first[0], false, to);
		pair_cell(&d->pair, &t, first[1], false, to);
		pair_cell(&d->pair, &t, second[0], false, to);
		pair_cell(&d->pair, &t, second[1], false, to);
		table_cell(&t, r->name);
	}
	table_print(&t, terminal_width(), out);
	if (pair_rows(&d->pair) < d->pair.costs.n)
		buf_printf(out, "%zu more: --limit=0 shows all\n", d->pair.costs.n - pair_rows(&d->pair));
}

static void diff_print_text(struct diff *d, struct buf *out)
{
	const int64_t *total = d->pair.costs.total;
	struct buf costs = { 0 };

	buf_add_printable(out, d->pair.type);
	pprof_unit_print(&costs, total[0], d->pair.unit, STR("auto"));
	buf_add_cstr(&costs, ", new ");
	pprof_unit_print(&costs, total[1], d->pair.unit, STR("auto"));
	buf_add_cstr(out, ": base ");
	buf_add_printable(out, buf_str(&costs));
	buf_release(&costs);
	buf_printf(out, " (%s%+.2f%%)", d->total_exceeds ? "! " : "", diff_total_percent(d));
	if (d->f->pair.normalize)
		buf_printf(out, ", new times %.4g to compare shares", d->pair.costs.factor);
	buf_add_char(out, '\n');
	diff_print_rows(d, out);
	if (!d->f->gate.is_asked)
		return;
	buf_add_char(out, '\n');
	gate_print(&d->gate, &d->pair.arena, out);
	if (d->gate.result.verdict == JUDGE_NOT_WORSE) {
		gate_print_summary(&d->gate, out);
		buf_add_char(out, '\n');
	}
}

static void json_pair(struct json *j, const char *key, const int64_t *value)
{
	json_key(j, key);
	json_object(j);
	json_key(j, "base");
	json_i64(j, value[0]);
	json_key(j, "new");
	json_i64(j, value[1]);
	json_object_end(j);
}

static void json_rows(const struct diff *d, struct json *j)
{
	json_key(j, "rows");
	json_array(j);
	for (size_t i = 0; i < pair_rows(&d->pair); i++) {
		const struct cost_row *r = &d->pair.costs.rows[i];

		json_object(j);
		json_key(j, "name");
		json_str(j, r->name);
		json_pair(j, "flat", r->flat);
		json_pair(j, "cum", r->cum);
		json_key(j, "change");
		json_i64(j, r->change);
		json_key(j, "changePercent");
		json_double(j, r->percent);
		json_key(j, "exceeds");
		json_bool(j, r->exceeds);
		json_object_end(j);
	}
	json_array_end(j);
}

static void diff_print_json(const struct diff *d, struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_object(&j);
	json_key(&j, "type");
	json_str(&j, d->pair.type);
	json_key(&j, "unit");
	json_str(&j, d->pair.unit);
	json_key(&j, "by");
	json_cstr(&j, d->f->pair.by_text);
	json_key(&j, "measure");
	json_cstr(&j, d->f->pair.measure);
	json_key(&j, "factor");
	json_double(&j, d->pair.costs.factor);
	json_pair(&j, "total", d->pair.costs.total);
	json_key(&j, "totalChangePercent");
	json_double(&j, diff_total_percent(d));
	json_key(&j, "totalExceeds");
	json_bool(&j, d->total_exceeds);
	json_key(&j, "exceeding");
	json_u64(&j, d->pair.costs.exceeding);
	json_rows(d, &j);
	if (d->f->gate.is_asked)
		gate_print_json(&d->gate, &j);
	json_object_end(&j);
	buf_add_char(out, '\n');
}

static void diff_tell_first(const struct diff *d, const struct cost_row *first)
{
	struct buf name = { 0 };

	buf_add_printable(&name, first->name);
	fprintf(stderr, "epitool: %zu above --threshold=%s, first " STR_FMT "\n",
		d->pair.costs.exceeding, d->f->threshold_text, STR_ARG(buf_str(&name)));
	buf_release(&name);
}

static int diff_gate_verdict(const struct diff *d)
{
	enum judge_verdict v = d->gate.result.verdict;
	struct buf summary = { 0 };

	if (v == JUDGE_NOT_WORSE)
		return 0;
	gate_print_summary(&d->gate, &summary);
	fprintf(stderr, "epitool: " STR_FMT "\n", STR_ARG(buf_str(&summary)));
	buf_release(&summary);
	return v == JUDGE_WORSE ? EXIT_WORSE : d->f->gate.may_not_tell ? 0 : EXIT_CANNOT_TELL;
}

static int diff_verdict(const struct diff *d)
{
	int rc = d->f->gate.is_asked ? diff_gate_verdict(d) : 0;
	size_t first = 0;

	while (first < d->pair.costs.n && !d->pair.costs.rows[first].exceeds)
		first++;
	if (first < d->pair.costs.n)
		diff_tell_first(d, &d->pair.costs.rows[first]);
	if (d->total_exceeds)
		fprintf(stderr, "epitool: the total is above --total-threshold=%s\n", d->f->total_text);
	return d->pair.costs.exceeding || d->total_exceeds ? EXIT_WORSE : rc;
}

static enum err_code diff_check_total(const struct diff *d, struct err *err)
{
	if (d->pair.costs.total[COSTS_BASE] > 0)
		return ERR_OK;
	return err_set(err, ERR_INVALID, "%s: its total is not above 0", d->pair.texts[0]);
}

/* Unequally many runs that are judged: the costs shown are those of a run. */
static void diff_average_runs(struct diff *d)
{
	struct costs *c = &d->pair.costs;

	if (!d->f->gate.is_asked || d->f->pair.normalize ||
		d->pair.sides[COSTS_BASE].n == d->pair.sides[COSTS_NEW].n)
		return;
	for (unsigned side = 0; side < 2; side++) {
		double n = (double)d->pair.sides[side].n;

		for (size_t i = 0; i < c->n; i++) {
			c->rows[i].flat[side] = llround((double)c->rows[i].flat[side] / n);
			c->rows[i].cum[side] = llround((double)c->rows[i].cum[side] / n);
		}
		c->total[side] = llround((double)c->total[side] / n);
	}
}

static int diff_run(struct diff *d)
{
	const char *query = NULL;
	struct buf out = { 0 };
	struct err err = { 0 };
	double change;
	int rc = EXIT_NOT_JUDGED;

	if (pair_read(&d->pair, &query, &err) || diff_check_total(d, &err) ||
		(d->f->gate.is_asked && gate_judge(&d->f->gate, &d->pair, &d->gate, &err))) {
		ask_print_error(query, &err);
		return rc;
	}
	diff_average_runs(d);
	costs_compare(&d->pair.costs, &d->f->pair.compare);
	change = diff_total_percent(d);
	d->total_exceeds = d->f->total_threshold >= 0 &&
		(d->f->both_ways ? fabs(change) : change) > d->f->total_threshold;
	if (d->f->as_json)
		diff_print_json(d, &out);
	else
		diff_print_text(d, &out);
	if (buf_failed(&out))
		fprintf(stderr, "epitool: error: diff: out of memory\n");
	else if (output_put("", buf_str(&out), &err))
		fprintf(stderr, "epitool: error: %s\n", err.msg);
	else
		rc = diff_verdict(d);
	buf_release(&out);
	return rc;
}

int tool_diff(int argc, char **argv)
{
	struct diff_flags f = { 0 };
	struct flag flags[] = {
		PAIR_COST_FLAGS(f.pair),
		{ "threshold", FLAG_STRING, &f.threshold_text, "",
			"Exit with 1 where a function's change is above this, such as 2%." },
		{ "total-threshold", FLAG_STRING, &f.total_text, "",
			"Exit with 1 where the total's change is above this." },
		{ "both-ways", FLAG_BOOL, &f.both_ways, NULL,
			"Both thresholds count for what costs less, too." },
		GATE_FLAGS(f.gate),
		{ "limit", FLAG_UINT, &f.pair.limit, "20", "Most rows; 0: all.", .short_name = 'n' },
		{ "json", FLAG_BOOL, &f.as_json, NULL, "For programs." },
		PAIR_SOURCE_FLAGS(f.pair),
		{ "start", FLAG_STRING, &f.pair.q.start, "-15d", "All profiles from here to --end." },
		{ "end", FLAG_STRING, &f.pair.q.end, "", "See --start; default: now." },
		ASK_FLAGS(f.pair.q),
	};
	size_t n = sizeof(flags) / sizeof(flags[0]), args_n = 0;
	struct diff x = { .f = &f, .pair = { .f = &f.pair, .questions = { &f.pair.q, &f.pair.q } } };
	const char *args[2];
	struct err err = { 0 };
	int rc = output_read_flags(flags, n, argc, argv, usage, about, args, 2, 2, &args_n);

	if (rc >= 0)
		return rc;
	f.pair.q.time = f.pair.q.step = "";
	if (diff_flags_check(&f, &err)) {
		fprintf(stderr, "epitool: error: %s\nusage: epitool %s\n", err.msg, usage);
		return EXIT_USAGE;
	}
	x.pair.texts[0] = args[0];
	x.pair.texts[1] = args[1];
	interrupt_catch();
	rc = diff_run(&x);
	pair_release(&x.pair);
	return rc;
}
