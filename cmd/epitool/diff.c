#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/labels.h"
#include "base/quote.h"
#include "cmd/epitool/ask.h"
#include "cmd/epitool/costs.h"
#include "cmd/epitool/profile_file.h"
#include "cmd/epitool/progress.h"
#include "cmd/epitool/table.h"
#include "proto/report/pprof_unit.h"

static const char usage[] = "diff [FLAGS] BASE NEW";
static const char about[] =
	"What costs more and what less in NEW than in BASE, function by function. Each is a\n"
	"pprof file, the labels of a run (run=1, or run=1,branch=main: then --profile says of\n"
	"what), or a query that gives profiles.\n"
	"\n"
	"Changes are in percent of the base's total. With --threshold or --total-threshold the\n"
	"exit code is 1 where something costs more than that: for performance tests.\n"
	"Exit codes: 0, 1 above a threshold or the query failed, 2 the command line is wrong,\n"
	"130 Ctrl-C.";

struct diff_flags {
	struct question q;
	const char *profile, *match, *by_text, *type, *measure, *threshold_text, *total_text;
	bool normalize, both_ways, as_json;
	uint64_t limit;
	/* out, of check_flags */
	enum costs_by by;
	struct compare_options compare;
	double total_threshold; /* < 0: none */
};

struct side {
	const char *text;
	struct buf query, bytes;
	const struct pprof *profile;
	uint32_t type;
};

struct diff {
	const struct diff_flags *f;
	struct arena arena;
	struct side sides[2];
	struct costs costs;
	struct str type, unit;
	bool total_exceeds;
};

/* ---- the command line ---- */

static enum err_code read_percent(const char *name, const char *s, double *out, struct err *err)
{
	char *end;

	*out = -1;
	if (!s[0])
		return ERR_OK;
	*out = strtod(s, &end);
	if (end == s || (*end && strcmp(end, "%")) || !isfinite(*out) || *out < 0)
		return err_set(
			err, ERR_INVALID, "--%s wants a percentage such as 2%%, not \"%s\"", name, s);
	return ERR_OK;
}

static enum err_code check_flags(struct diff_flags *f, struct err *err)
{
	enum err_code rc;

	if (!costs_by_parse(f->by_text, &f->by))
		return err_set(err, ERR_INVALID,
			"unknown --by \"%s\"; known are function, system_name, filename, line, mapping",
			f->by_text);
	if (strcmp(f->measure, "flat") && strcmp(f->measure, "cum"))
		return err_set(err, ERR_INVALID, "--measure is flat or cum, not \"%s\"", f->measure);
	if ((rc = read_percent("threshold", f->threshold_text, &f->compare.threshold, err)) ||
		(rc = read_percent("total-threshold", f->total_text, &f->total_threshold, err)))
		return rc;
	f->compare.normalize = f->normalize;
	f->compare.both_ways = f->both_ways;
	f->compare.cum = !strcmp(f->measure, "cum");
	f->q.format = "pprof";
	return ask_check(&f->q, err);
}

/* "run=1,branch=main": names, "=", and values, without the other syntax of queries. */
static bool is_run(const char *text)
{
	const char *equals = strchr(text, '=');
	struct str name = { text, equals ? (size_t)(equals - text) : 0 };

	return equals && label_name_valid(name) && !strpbrk(text, "\"'`{}()~!<>");
}

/* The profiles of a run, merged. */
static void add_run_query(const struct diff_flags *f, const char *text, struct buf *out)
{
	buf_printf(out, "merge(%s{", f->profile);
	while (*text) {
		size_t name = strcspn(text, "="), value;

		buf_add(out, text, name);
		text += name + (text[name] == '=');
		value = strcspn(text, ",");
		buf_add_cstr(out, "=\"");
		for (size_t i = 0; i < value; i++) {
			if (text[i] == '\\')
				buf_add_char(out, '\\');
			buf_add_char(out, text[i]);
		}
		buf_add_cstr(out, "\",");
		text += value + (text[value] == ',');
	}
	buf_printf(out, "%s})", f->match);
}

/* ---- reading ---- */

static uint32_t default_type(const struct pprof *p)
{
	for (uint32_t i = 0; i < p->types_n && p->default_sample_type; i++)
		if (str_eq(p->strings[p->types[i].type], p->strings[p->default_sample_type]))
			return i;
	return p->types_n - 1;
}

static enum err_code choose_type(
	const struct diff *x, struct side *s, const char *name, struct err *err)
{
	const struct pprof *p = s->profile;

	if (!p->types_n)
		return err_set(err, ERR_INVALID, "%s: it has no sample types", s->text);
	s->type = default_type(p);
	if (!name[0])
		return ERR_OK;
	for (s->type = 0; s->type < p->types_n; s->type++)
		if (str_is(p->strings[p->types[s->type].type], name))
			return ERR_OK;
	return err_set(err, ERR_NOT_FOUND, "%s: it has no sample type \"%s\"", s->text, name);
}

static enum err_code read_side(struct diff *x, struct side *s, struct err *err)
{
	bool is_file = !strcmp(s->text, "-") || fs_exists(s->text);
	enum err_code rc;

	if (is_file) {
		rc = profile_file_read(s->text, &s->bytes, err);
	} else {
		if (is_run(s->text))
			add_run_query(x->f, s->text, &s->query);
		else
			buf_add_cstr(&s->query, s->text);
		buf_add_char(&s->query, '\0');
		rc = buf_failed(&s->query) ? err_nomem(err, "diff") :
									 ask(&x->f->q, s->query.ptr, &s->bytes, err);
	}
	if (rc) /* a query's error has a place, for a caret below */
		return is_file || (err->msg[0] >= '0' && err->msg[0] <= '9') ?
			rc :
			err_wrap(err, rc, "%s", s->text);
	if ((rc = profile_file_decode(s->text, buf_str(&s->bytes), &x->arena, &s->profile, err)))
		return rc;
	if (!is_file && !s->profile->samples_n)
		return err_set(err, ERR_NOT_FOUND, "%s: nothing found", s->query.ptr);
	return choose_type(x, s, is_file ? x->f->type : "", err);
}

static enum err_code read_all(struct diff *x, const char **query, struct err *err)
{
	struct str units[2];
	enum err_code rc;

	costs_init(&x->costs, &x->arena, x->f->by);
	for (unsigned i = 0; i < 2; i++) {
		struct side *s = &x->sides[i];

		rc = read_side(x, s, err);
		*query = s->query.ptr;
		if (rc || (rc = costs_add(&x->costs, s->profile, s->type, i, err)))
			return rc;
		units[i] = s->profile->strings[s->profile->types[s->type].unit];
		x->type = s->profile->strings[s->profile->types[s->type].type];
		*query = NULL;
	}
	x->unit = units[0];
	if (!str_eq(units[0], units[1]))
		return err_set(err, ERR_INVALID, "the base is in " STR_FMT ", the new one in " STR_FMT,
			STR_ARG(units[0]), STR_ARG(units[1]));
	if (x->costs.total[COSTS_BASE] <= 0)
		return err_set(err, ERR_INVALID, "%s: its total is not above 0", x->sides[0].text);
	return ERR_OK;
}

/* ---- showing ---- */

static double total_percent(const struct diff *x)
{
	double base = (double)x->costs.total[COSTS_BASE];

	return ((double)x->costs.total[COSTS_NEW] - base) / base * 100;
}

static size_t shown_rows(const struct diff *x)
{
	return x->f->limit && x->f->limit < x->costs.n ? x->f->limit : x->costs.n;
}

static void cell_cost(const struct diff *x, struct table *t, int64_t v, bool sign, struct str to)
{
	struct buf cell = { 0 };

	if (sign && v > 0)
		buf_add_char(&cell, '+');
	pprof_unit_print(&cell, v, x->unit, to);
	table_cell(t, buf_str(&cell));
	buf_release(&cell);
}

static void print_rows(const struct diff *x, struct buf *out)
{
	static const char *const titles[2][6] = {
		{ "change", "of base", "base flat", "new flat", "base cum", "new cum" },
		{ "change", "of base", "base cum", "new cum", "base flat", "new flat" },
	};
	bool cum = x->f->compare.cum, marked = x->f->compare.threshold >= 0;
	struct str to = number_unit(
		x->costs.total[COSTS_BASE] / 1000 + 1, x->costs.total[COSTS_BASE], x->unit);
	struct table t;
	char percent[48];

	table_init(&t, (struct arena *)(uintptr_t)&x->arena);
	for (size_t i = 0; i < 6; i++)
		table_column(&t, titles[cum][i], true);
	table_column(&t, x->f->by_text, false);
	for (size_t i = 0; i < shown_rows(x); i++) {
		const struct cost_row *r = &x->costs.rows[i];
		const int64_t *first = cum ? r->cum : r->flat, *second = cum ? r->flat : r->cum;

		cell_cost(x, &t, r->change, true, to);
		snprintf(
			percent, sizeof(percent), "%s%+.2f%%", marked && r->exceeds ? "! " : "", r->percent);
		table_cell(&t, str_of(percent));
		cell_cost(x, &t, first[0], false, to);
		cell_cost(x, &t, first[1], false, to);
		cell_cost(x, &t, second[0], false, to);
		cell_cost(x, &t, second[1], false, to);
		table_cell(&t, r->name);
	}
	table_print(&t, terminal_width(), out);
	if (shown_rows(x) < x->costs.n)
		buf_printf(out, "%zu more: --limit=0 shows all\n", x->costs.n - shown_rows(x));
}

static void print_text(const struct diff *x, struct buf *out)
{
	const int64_t *total = x->costs.total;
	struct buf costs = { 0 };

	buf_add_printable(out, x->type);
	pprof_unit_print(&costs, total[0], x->unit, STR("auto"));
	buf_add_cstr(&costs, ", new ");
	pprof_unit_print(&costs, total[1], x->unit, STR("auto"));
	buf_add_cstr(out, ": base ");
	buf_add_printable(out, buf_str(&costs));
	buf_release(&costs);
	buf_printf(out, " (%s%+.2f%%)", x->total_exceeds ? "! " : "", total_percent(x));
	if (x->f->normalize)
		buf_printf(out, ", new times %.4g to compare shares", x->costs.factor);
	buf_add_char(out, '\n');
	print_rows(x, out);
}

static void json_pair(struct json *j, const char *key, const int64_t *v)
{
	json_key(j, key);
	json_object(j);
	json_key(j, "base");
	json_i64(j, v[0]);
	json_key(j, "new");
	json_i64(j, v[1]);
	json_object_end(j);
}

static void json_rows(const struct diff *x, struct json *j)
{
	json_key(j, "rows");
	json_array(j);
	for (size_t i = 0; i < shown_rows(x); i++) {
		const struct cost_row *r = &x->costs.rows[i];

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

static void print_json(const struct diff *x, struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_object(&j);
	json_key(&j, "type");
	json_str(&j, x->type);
	json_key(&j, "unit");
	json_str(&j, x->unit);
	json_key(&j, "by");
	json_cstr(&j, x->f->by_text);
	json_key(&j, "measure");
	json_cstr(&j, x->f->measure);
	json_key(&j, "factor");
	json_double(&j, x->costs.factor);
	json_pair(&j, "total", x->costs.total);
	json_key(&j, "totalChangePercent");
	json_double(&j, total_percent(x));
	json_key(&j, "totalExceeds");
	json_bool(&j, x->total_exceeds);
	json_key(&j, "exceeding");
	json_u64(&j, x->costs.exceeding);
	json_rows(x, &j);
	json_object_end(&j);
	buf_add_char(out, '\n');
}

static void tell_first(const struct diff *x, const struct cost_row *first)
{
	struct buf name = { 0 };

	buf_add_printable(&name, first->name);
	fprintf(stderr, "epitool: %zu above --threshold=%s, first " STR_FMT "\n", x->costs.exceeding,
		x->f->threshold_text, STR_ARG(buf_str(&name)));
	buf_release(&name);
}

static int verdict(const struct diff *x)
{
	size_t first = 0;

	while (first < x->costs.n && !x->costs.rows[first].exceeds)
		first++;
	if (first < x->costs.n)
		tell_first(x, &x->costs.rows[first]);
	if (x->total_exceeds)
		fprintf(stderr, "epitool: the total is above --total-threshold=%s\n", x->f->total_text);
	return x->costs.exceeding || x->total_exceeds ? EXIT_FAILED : 0;
}

static int run(struct diff *x)
{
	const char *query = NULL;
	struct buf out = { 0 };
	struct err err = { 0 };
	double change;
	int rc = EXIT_FAILED;

	if (read_all(x, &query, &err)) {
		ask_print_error(query, &err);
		return rc;
	}
	costs_compare(&x->costs, &x->f->compare);
	change = total_percent(x);
	x->total_exceeds = x->f->total_threshold >= 0 &&
		(x->f->both_ways ? fabs(change) : change) > x->f->total_threshold;
	if (x->f->as_json)
		print_json(x, &out);
	else
		print_text(x, &out);
	if (buf_failed(&out))
		fprintf(stderr, "epitool: error: diff: out of memory\n");
	else if (put_output("", buf_str(&out), &err))
		fprintf(stderr, "epitool: error: %s\n", err.msg);
	else
		rc = verdict(x);
	buf_release(&out);
	return rc;
}

int diff(int argc, char **argv)
{
	struct diff_flags f = { 0 };
	struct flag flags[] = {
		{ "normalize", FLAG_BOOL, &f.normalize, NULL,
			"Scale NEW to the total of BASE: compare shares, not costs." },
		{ "by", FLAG_STRING, &f.by_text, "function",
			"function, system_name, filename, line or mapping." },
		{ "measure", FLAG_STRING, &f.measure, "flat",
			"flat or cum: what is compared, sorted by and held against the threshold." },
		{ "threshold", FLAG_STRING, &f.threshold_text, "",
			"Exit with 1 where a function's change is above this, such as 2%." },
		{ "total-threshold", FLAG_STRING, &f.total_text, "",
			"Exit with 1 where the total's change is above this." },
		{ "both-ways", FLAG_BOOL, &f.both_ways, NULL,
			"Thresholds count for what costs less, too." },
		{ "limit", FLAG_UINT, &f.limit, "20", "Most rows; 0: all.", .short_name = 'n' },
		{ "json", FLAG_BOOL, &f.as_json, NULL, "For programs." },
		{ "profile", FLAG_STRING, &f.profile, "cpu",
			"Of runs: the profile type, such as memory:alloc_space." },
		{ "match", FLAG_STRING, &f.match, "", "Of runs: further matchers: job=\"api\"." },
		{ "type", FLAG_STRING, &f.type, "",
			"Of files: the sample type; default: the one the file names, or its last." },
		{ "start", FLAG_STRING, &f.q.start, "-15d", "All profiles from here to --end." },
		{ "end", FLAG_STRING, &f.q.end, "", "See --start; default: now." },
		ASK_FLAGS(f.q),
	};
	size_t n = sizeof(flags) / sizeof(flags[0]), args_n = 0;
	struct diff x = { .f = &f };
	const char *args[2];
	struct err err = { 0 };
	int rc = read_flags(flags, n, argc, argv, usage, about, args, 2, 2, &args_n);

	if (rc >= 0)
		return rc;
	f.q.time = f.q.step = "";
	if (check_flags(&f, &err)) {
		fprintf(stderr, "epitool: error: %s\nusage: epitool %s\n", err.msg, usage);
		return EXIT_USAGE;
	}
	x.sides[0].text = args[0];
	x.sides[1].text = args[1];
	arena_init(&x.arena, 0);
	interrupt_catch();
	rc = run(&x);
	costs_release(&x.costs);
	for (unsigned i = 0; i < 2; i++) {
		buf_release(&x.sides[i].bytes);
		buf_release(&x.sides[i].query);
	}
	arena_release(&x.arena);
	return rc;
}
