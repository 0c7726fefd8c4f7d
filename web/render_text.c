#include "web/notices.h"
#include "web/pprof_top.h"
#include "web/render.h"

static void add_cost(struct buf *out, struct labels metric, double value)
{
	labels_print(out, metric);
	buf_add_char(out, ' ');
	buf_add_double(out, value);
}

static enum err_code print_matrix(
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

static enum err_code print_numbers(
	const struct result *r, const struct render_options *o, struct buf *out, struct err *err)
{
	enum err_code rc = ERR_OK;

	switch (r->type) {
	case RESULT_SCALAR:
		buf_add_double(out, r->scalar);
		buf_add_char(out, '\n');
		break;
	case RESULT_STRING:
		buf_add_str(out, r->string);
		buf_add_char(out, '\n');
		break;
	case RESULT_VECTOR:
		for (size_t i = 0; i < r->n && !rc; i++) {
			add_cost(out, r->vector[i].metric, r->vector[i].value);
			buf_add_char(out, '\n');
			rc = render_flush(o, out, err);
		}
		break;
	case RESULT_MATRIX:
		rc = print_matrix(r, o, out, err);
		break;
	case RESULT_PROFILES:
	case RESULT_TOP:
	case RESULT_SCRAPE: /* answered as pprof only */
		break;
	}
	return rc;
}

/* A table per element, its labels above where there are several. */
static enum err_code print_tables(
	const struct result *r, const struct render_options *o, struct buf *out, struct err *err)
{
	struct render_options options = *o;
	struct pprof *p;
	enum err_code rc;

	for (size_t i = 0; i < r->n; i++) {
		const struct top_table *t = &r->tops[i];
		struct result one = *r;

		one.tops = &r->tops[i];
		one.n = 1;
		if (i > 0) {
			buf_add_char(out, '\n');
			one.warnings_n = one.infos_n = 0; /* the first one's header has them */
		}
		if (r->n > 1) {
			labels_print(out, t->metric);
			buf_add_char(out, '\n');
		}
		if (t->k == 0) /* to the printer 0 means all */
			continue;
		options.rows_max = t->k;
		if ((rc = render_pprof(&one, &options, &p, err)) ||
			(rc = pprof_top_print(p, 0, t->k, o->canceled, o->arena, out, err)))
			return rc;
	}
	return ERR_OK;
}

enum err_code render_text(
	const struct result *r, const struct render_options *o, struct buf *out, struct err *err)
{
	const struct notices notices = notices_of(r);
	struct pprof *p;
	enum err_code rc;

	if (r->type == RESULT_TOP && r->n > 0)
		return print_tables(r, o, out, err);
	if (r->type == RESULT_TOP || r->type == RESULT_PROFILES) {
		if ((rc = render_pprof(r, o, &p, err)))
			return rc;
		return pprof_top_print(p, 0, o->rows_max, o->canceled, o->arena, out, err);
	}
	if ((rc = notices_print(&notices, "# ", o->arena, out, err)) ||
		(rc = print_numbers(r, o, out, err)))
		return rc;
	return buf_failed(out) ? err_set(err, ERR_NOMEM, "answer: out of memory") : ERR_OK;
}
