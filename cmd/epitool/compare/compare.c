#include <stdio.h>

#include "base/quote.h"
#include "cmd/epitool/compare/pair.h"
#include "cmd/epitool/compare/verdict.h"
#include "cmd/epitool/progress.h"
#include "proto/report/pprof_unit.h"

static const char usage[] = "compare [FLAGS] BASE NEW | QUERY";
static const char about[] =
	"Functions by how much their costs differ between BASE and NEW, and one sentence that\n"
	"names the one which changed most. Each is a pprof file, the labels of a run, or a\n"
	"query that gives profiles, as of epitool diff.\n"
	"\n"
	"One QUERY alone is compared with itself: the last hour, or --start and --end, with the\n"
	"time as long before it, or with --ago or --base-start:\n"
	"  epitool compare --ago=1d 'merge(cpu{job=\"api\"})'";

struct compare_comparison {
	struct pair_flags pair;
	struct question base;
	const char *base_start, *base_end;
	int64_t ago_ns;
	bool has_ago;
};

static enum err_code compare_comparison_base_window(struct compare_comparison *c, struct err *err)
{
	const struct question *q = &c->pair.q;
	enum err_code rc;

	c->base = *q;
	if (c->has_ago) {
		if (c->ago_ns <= 0)
			return err_set(err, ERR_INVALID, "--ago is more than 0");
		c->base.start_ns -= c->ago_ns;
		c->base.end_ns -= c->ago_ns;
	} else if (c->base_start[0]) {
		c->base.start = c->base_start;
		c->base.end = c->base_end;
		if ((rc = ask_check(&c->base, err)))
			return err_wrap(err, rc, "of the base");
		c->base.end_ns = c->base_end[0] ? c->base.end_ns : q->start_ns;
		if (c->base.end_ns < c->base.start_ns)
			return err_set(err, ERR_INVALID, "--base-start is behind --start: say --base-end");
	}
	return ERR_OK;
}

static enum err_code compare_comparison_check_flags(
	struct compare_comparison *c, bool one, const char *text, struct err *err)
{
	struct question *q = &c->pair.q;
	enum err_code rc = pair_check(&c->pair, err);

	if (rc)
		return rc;
	if (one && source_is_like_file(text))
		return err_set(err, ERR_INVALID,
			"%s is compared with what? One argument is a query, and files are two", text);
	if (c->has_ago && c->base_start[0])
		return err_set(err, ERR_INVALID, "either --ago or --base-start");
	if (c->base_end[0] && !c->base_start[0])
		return err_set(err, ERR_INVALID, "--base-end is given with --base-start");
	if (!q->start[0] && !q->end[0])
		q->start = one ? "-1h" : "-15d";
	if ((rc = ask_check(q, err)))
		return rc;
	if (one && !c->has_ago && !c->base_start[0]) {
		c->ago_ns = q->end_ns - q->start_ns;
		c->has_ago = true;
	}
	return compare_comparison_base_window(c, err);
}

/* ---- showing ---- */

static void compare_print_totals(const struct pair *p, struct buf *out)
{
	const int64_t *total = p->costs.total;

	buf_add_printable(out, p->type);
	buf_add_cstr(out, ": base ");
	pprof_unit_print(out, total[0], p->unit, STR("auto"));
	buf_add_cstr(out, ", new ");
	pprof_unit_print(out, total[1], p->unit, STR("auto"));
	if (p->f->normalize)
		buf_printf(out, ", new times %.4g to compare shares", p->costs.factor);
	buf_add_char(out, '\n');
}

static void compare_print_rows(struct pair *p, struct buf *out)
{
	static const char *const titles[] = { "base", "new", "difference", "times" };
	struct str unit = pair_unit(p);
	struct buf times = { 0 };
	struct text_table t;

	text_table_init(&t, &p->arena);
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		table_column(&t, titles[i], true);
	table_column(&t, p->f->by_text, false);
	for (size_t i = 0; i < pair_rows(p); i++) {
		const struct cost_row *r = &p->costs.rows[i];
		const int64_t *v = p->f->compare.cum ? r->cum : r->flat;

		pair_cell(p, &t, v[0], false, unit);
		pair_cell(p, &t, v[1], false, unit);
		pair_cell(p, &t, r->change, true, unit);
		buf_clear(&times);
		times_print(&times, (double)v[0], (double)v[1]);
		table_cell(&t, times.len ? buf_str(&times) : STR(""));
		table_cell(&t, r->name);
	}
	table_print(&t, terminal_width(), out);
	if (pair_rows(p) < p->costs.n)
		buf_printf(out, "%zu more: --limit=0 shows all\n", p->costs.n - pair_rows(p));
	out->failed = out->failed || buf_failed(&times);
	buf_release(&times);
}

static enum err_code compare_print_comparison(struct pair *p, struct buf *out, struct err *err)
{
	const struct source *base = &p->sides[0].v[0].source, *next = &p->sides[1].v[0].source;
	const struct pprof *profiles[2] = { base->profile, next->profile };
	const uint32_t types[2] = { base->type, next->type };
	struct verdict v;
	enum err_code rc;

	costs_compare(&p->costs, &p->f->compare);
	if ((rc = verdict_make(&p->arena, profiles, types, p->costs.factor, &v, err)))
		return rc;
	compare_print_totals(p, out);
	compare_print_rows(p, out);
	buf_add_char(out, '\n');
	verdict_print(&v, out);
	return buf_failed(out) ? err_nomem(err, "compare") : output_put("", buf_str(out), err);
}

static int compare_run(struct pair *p)
{
	const char *query = NULL;
	struct buf out = { 0 };
	struct err err = { 0 };
	int rc = 0;

	if (pair_read(p, &query, &err) || compare_print_comparison(p, &out, &err)) {
		ask_print_error(query, &err);
		rc = EXIT_FAILED;
	}
	buf_release(&out);
	return rc;
}

int tool_compare(int argc, char **argv)
{
	struct compare_comparison c = { .pair.compare.threshold = -1 };
	struct flag flags[] = {
		PAIR_COST_FLAGS(c.pair),
		{ "limit", FLAG_UINT, &c.pair.limit, "20", "Most rows; 0: all.", .short_name = 'n' },
		PAIR_SOURCE_FLAGS(c.pair),
		{ "start", FLAG_STRING, &c.pair.q.start, "",
			"All profiles from here to --end. Default: -15d; of one QUERY -1h." },
		{ "end", FLAG_STRING, &c.pair.q.end, "", "See --start; default: now." },
		{ "ago", FLAG_DURATION, &c.ago_ns, NULL, "BASE is so much earlier: 1d." },
		{ "base-start", FLAG_STRING, &c.base_start, "", "BASE is from here to --base-end." },
		{ "base-end", FLAG_STRING, &c.base_end, "", "See --base-start; default: --start." },
		ASK_FLAGS(c.pair.q),
	};
	size_t n = sizeof(flags) / sizeof(flags[0]), args_n = 0;
	struct pair x = { .f = &c.pair, .questions = { &c.base, &c.pair.q } };
	const char *args[2];
	struct err err = { 0 };
	int rc = output_read_flags(flags, n, argc, argv, usage, about, args, 1, 2, &args_n);

	if (rc >= 0)
		return rc;
	c.pair.q.time = c.pair.q.step = "";
	for (size_t i = 0; i < n; i++)
		c.has_ago = c.has_ago || (flags[i].value == &c.ago_ns && flags[i].set);
	if (compare_comparison_check_flags(&c, args_n == 1, args[0], &err)) {
		fprintf(stderr, "epitool: error: %s\nusage: epitool %s\n", err.msg, usage);
		return EXIT_USAGE;
	}
	x.texts[0] = args[0];
	x.texts[1] = args[args_n - 1];
	interrupt_catch();
	rc = compare_run(&x);
	pair_release(&x);
	return rc;
}
