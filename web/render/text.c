#include "base/quote.h"
#include "proto/report/pprof_top.h"
#include "web/render/notices.h"
#include "web/render/profile.h"
#include "web/render/render.h"

static void render_text_add_cost(struct buf *out, struct labels metric, double value)
{
	labels_print(out, metric);
	buf_add_char(out, ' ');
	buf_add_double(out, value);
}

static enum err_code render_text_print_matrix(
	const struct result *r, const struct render_options *o, struct buf *out, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < r->n && !rc; i++) {
		const struct cost_series *s = &r->matrix[i];

		labels_print(out, s->metric);
		buf_add_char(out, '\n');
		rc = render_flush(o, out, err);
		for (size_t k = 0; k < s->n && !rc; k++) {
			buf_add_double(out, s->points[k].value);
			buf_add_cstr(out, " @");
			buf_add_double(out, (double)(s->points[k].t_ns / 1000000) / 1e3);
			buf_add_char(out, '\n');
			rc = render_flush(o, out, err);
		}
	}
	return rc;
}

static enum err_code render_text_print_numbers(
	const struct result *r, const struct render_options *o, struct buf *out, struct err *err)
{
	enum err_code rc = ERR_OK;

	switch (r->type) {
	case RESULT_SCALAR:
		buf_add_double(out, r->scalar);
		buf_add_char(out, '\n');
		break;
	case RESULT_STRING:
		buf_add_printable(out, r->string);
		buf_add_char(out, '\n');
		break;
	case RESULT_VECTOR:
		for (size_t i = 0; i < r->n && !rc; i++) {
			render_text_add_cost(out, r->vector[i].metric, r->vector[i].value);
			buf_add_char(out, '\n');
			rc = render_flush(o, out, err);
		}
		break;
	case RESULT_MATRIX:
		rc = render_text_print_matrix(r, o, out, err);
		break;
	case RESULT_PROFILES:
	case RESULT_TOP:
	case RESULT_SCRAPE: /* answered as pprof only */
		break;
	}
	return rc;
}

/* ---- tables ---- */

/*
 * Appends the filters of a profile that are not in the list yet, in the order of their
 * application.
 */
static size_t render_text_add_filters(
	const struct active_filter *f, struct pprof_top_filter *p, size_t n)
{
	if (!f)
		return n;
	n = render_text_add_filters(f->before, p, n);
	/* The tool does not print these either. */
	if (!strcmp(f->name, "prune_from") || !strcmp(f->name, "noinlines"))
		return n;
	for (size_t i = 0; i < n; i++)
		if (!strcmp(p[i].name, f->name) && str_eq(p[i].text, f->text))
			return n;
	p[n] = (struct pprof_top_filter){ f->name, f->text };
	return n + 1;
}

/* Totals before filters, and the filters of all profiles, as the tool prints them of one. */
static enum err_code render_text_note_filters(const struct profile_value *const *v, size_t n,
	struct arena *a, struct pprof_top_options *top, struct err *err)
{
	int64_t value_size = 0, base_size = 0;
	struct pprof_top_filter *filters;
	size_t filters_max = 0;

	for (size_t i = 0; i < n; i++) {
		top->filtered |= v[i]->filtered;
		value_size = value_duration_sum(value_size, v[i]->value_size);
		base_size = value_duration_sum(base_size, v[i]->base_size);
		for (const struct active_filter *f = v[i]->filters; f; f = f->before)
			filters_max++;
	}
	top->total = base_size > 0 ? base_size : value_size;
	if (!(filters = arena_array(a, struct pprof_top_filter, filters_max + 1)))
		return arena_fail(a, "answer", err);
	for (size_t i = 0; i < n; i++)
		top->filters_n = render_text_add_filters(v[i]->filters, filters, top->filters_n);
	top->filters = filters;
	return ERR_OK;
}

enum err_code render_text_keep_base(const struct result *r, const struct render_options *o,
	struct arena *a, struct render_base *base, struct err *err)
{
	struct pprof_limits limits = pprof_limits_default;
	struct pprof_top_options top = { 0 };
	const struct profile_value **v;
	struct pprof *p, *kept = NULL;
	struct buf wire = { 0 };
	struct str copy;
	enum err_code rc;
	size_t n;

	limits.raw_bytes_max = limits.body_bytes_max = RENDER_PPROF_BYTES_MAX;
	limits.samples_max = limits.elements_max = UINT32_MAX;
	if ((rc = render_profiles_of(r, o->arena, "text", &v, &n, err)) ||
		(rc = render_text_note_filters(v, n, o->arena, &top, err)) ||
		(rc = render_pprof(r, o, &p, err)) || (rc = pprof_encode(p, &wire, err)))
		goto out;
	if (wire.len > RENDER_PPROF_BYTES_MAX)
		rc = err_set(
			err, ERR_LIMIT, "the profile is %zu bytes, limit %u", wire.len, RENDER_PPROF_BYTES_MAX);
	else if (!(copy = str_dup(a, buf_str(&wire))).ptr)
		rc = arena_fail(a, "profile", err);
	else
		rc = pprof_decode(a, copy, &limits, &kept, err);
	base->p = kept;
	base->filtered = top.filtered;
	base->total = top.total;
out:
	buf_release(&wire);
	return rc;
}

/* What `go tool pprof -base` or -diff_base has of both answers as pprof. */
static enum err_code render_text_subtract(const struct render_options *o, struct pprof *p,
	struct pprof_top_options *top, struct pprof **out, struct err *err)
{
	const struct render_base *base = o->base;

	*out = p;
	if (!base)
		return ERR_OK;
	/* Nobody knows what would have cancelled out of what filters took away. */
	if (!base->options.diff_base) {
		top->filtered = false;
	} else if (base->filtered || top->filtered) {
		top->filtered = true;
		top->total = base->total > 0 ? base->total : top->total;
	}
	return pprof_without_base((struct pprof_side){ p, 0 }, (struct pprof_side){ base->p, 0 },
		&base->options, o->arena, out, err);
}

static enum err_code render_text_print_table(const struct result *r, const struct render_options *o,
	size_t rows_max, struct buf *out, struct err *err)
{
	struct pprof_options report = o->report ? *o->report : pprof_options_default;
	struct pprof_top_options top = { .options = &report, .canceled = o->canceled };
	const struct profile_value **v;
	struct pprof *p;
	enum err_code rc;
	size_t n;

	if (report.nodecount <= 0 || (rows_max > 0 && (uint64_t)report.nodecount > rows_max))
		report.nodecount = (int64_t)rows_max;
	if ((rc = render_profiles_of(r, o->arena, "text", &v, &n, err)) ||
		(rc = render_text_note_filters(v, n, o->arena, &top, err)) ||
		(rc = render_pprof(r, o, &p, err)) || (rc = render_text_subtract(o, p, &top, &p, err)))
		return rc;
	return pprof_top_print(p, &top, o->arena, out, err);
}

/* A table per element, with its labels above if there are several. */
static enum err_code render_text_print_tables(
	const struct result *r, const struct render_options *o, struct buf *out, struct err *err)
{
	enum err_code rc;

	for (size_t i = 0; i < r->n; i++) {
		const struct top_table *t = &r->tops[i];
		struct result one = *r;

		one.tops = &r->tops[i];
		one.n = 1;
		if (i > 0) {
			buf_add_char(out, '\n');
			one.warnings_n = one.infos_n = 0; /* the header of the first table has them */
		}
		if (r->n > 1) {
			labels_print(out, t->metric);
			buf_add_char(out, '\n');
		}
		if (t->k == 0) /* the printer takes 0 as all */
			continue;
		if ((rc = render_text_print_table(&one, o, t->k, out, err)))
			return rc;
	}
	return ERR_OK;
}

enum err_code render_text(
	const struct result *r, const struct render_options *o, struct buf *out, struct err *err)
{
	const struct notices notices = notices_of(r);
	enum err_code rc;

	if (r->type == RESULT_TOP && r->n > 0)
		return render_text_print_tables(r, o, out, err);
	if (r->type == RESULT_TOP || r->type == RESULT_PROFILES || o->report || o->base)
		return render_text_print_table(r, o, o->rows_max, out, err);
	if ((rc = notices_print(&notices, "# ", o->arena, out, err)) ||
		(rc = render_text_print_numbers(r, o, out, err)))
		return rc;
	return buf_failed(out) ? err_nomem(err, "answer") : ERR_OK;
}
