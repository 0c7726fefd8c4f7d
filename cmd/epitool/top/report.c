#include "cmd/epitool/top/report.h"

#include "proto/report/pprof_base.h"
#include "proto/report/pprof_top.h"

static bool top_report_has(const char *text)
{
	return text && text[0];
}

/* All by the server: it knows the totals before the query's filters. */
static enum err_code top_report_ask(const struct source_options *o, const struct question_report *r,
	const char *text, struct buf *out, struct buf *query, struct err *err)
{
	struct question question = *o->question;
	struct question_report report = *r;
	struct source_options options = *o;
	struct buf base = { 0 };
	struct source s = { 0 };
	const char **side = top_report_has(report.base) ? &report.base : &report.diff_base;
	enum err_code rc = ERR_OK;

	question.format = "text";
	question.report = &report;
	options.question = &question;
	if (top_report_has(*side)) {
		rc = source_add_query(o, *side, &base, err);
		buf_add_char(&base, '\0');
		if (!rc && buf_failed(&base))
			rc = err_nomem(err, "query");
		*side = base.ptr;
	}
	if (!rc && !(rc = source_fetch(&options, text, &s, err)))
		buf_add_str(out, buf_str(&s.bytes));
	buf_add_str(query, buf_str(&s.query));
	source_release(&s);
	buf_release(&base);
	return rc;
}

/* The base has to have the same sample type. */
static enum err_code top_report_subtract(const struct source_options *o,
	const struct question_report *r, const struct source *s, struct source *base, struct arena *a,
	struct pprof **out, struct err *err)
{
	bool is_diff = top_report_has(r->diff_base);
	struct pprof_base_options options = { is_diff, r->normalize };
	struct source_options of_base = *o;
	struct str type = s->profile->strings[s->profile->types[s->type].type];
	char *name = arena_printf(a, STR_FMT, STR_ARG(type));
	enum err_code rc;

	if (!name)
		return arena_fail(a, "profile", err);
	of_base.type = name;
	if ((rc = source_read(&of_base, is_diff ? r->diff_base : r->base, a, base, err)))
		return rc;
	return pprof_without_base((struct pprof_side){ s->profile, s->type },
		(struct pprof_side){ base->profile, base->type }, &options, a, out, err);
}

static enum err_code top_report_make(const struct source_options *o,
	const struct question_report *r, const char *text, struct buf *out, struct buf *query,
	struct err *err)
{
	struct pprof_top_options top = { .options = &r->options };
	struct source s = { 0 }, base = { 0 };
	const struct pprof *p;
	struct pprof *left;
	struct arena a;
	enum err_code rc;

	arena_init(&a, 0);
	rc = source_read(o, text, &a, &s, err);
	buf_add_str(query, buf_str(&s.query));
	p = s.profile;
	top.type = s.type;
	if (!rc && (top_report_has(r->base) || top_report_has(r->diff_base))) {
		rc = top_report_subtract(o, r, &s, &base, &a, &left, err);
		p = left;
		top.type = 0;
	}
	if (!rc)
		rc = pprof_top_print(p, &top, &a, out, err);
	source_release(&base);
	source_release(&s);
	arena_release(&a);
	return rc;
}

enum err_code top_report_print(const struct source_options *o, const struct question_report *r,
	const char *text, struct buf *out, struct buf *query, struct err *err)
{
	const char *base = top_report_has(r->base) ? r->base : r->diff_base;

	if (source_is_file(text) || (top_report_has(base) && source_is_file(base)))
		return top_report_make(o, r, text, out, query, err);
	return top_report_ask(o, r, text, out, query, err);
}
