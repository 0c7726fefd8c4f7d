/* Filters' texts: regexes of frames, ranges and lists of labels. */
#include "promql/syntax/filter_text.h"

#include <assert.h>
#include <stdlib.h>

#include "base/regex.h"
#include "proto/report/pprof_unit.h"

bool filter_is(const struct expr *e)
{
	return e->kind == EXPR_CALL && (e->call.fn->flags & FUNCTION_FILTER);
}

const struct expr *filter_text_of(const struct expr *e)
{
	assert(filter_is(e));
	return e->call.args_n > 1 ? expr_strip(e->call.args[1]) : NULL;
}

bool filter_is_tag(enum function_id id)
{
	return id == FN_TAGFOCUS || id == FN_TAGIGNORE;
}

size_t filter_regexes(enum function_id id, struct str text)
{
	size_t n = id != FN_NOINLINES;

	for (size_t i = 0; filter_is_tag(id) && i < text.len; i++)
		n += text.ptr[i] == ',';
	return n;
}

/* ---- ranges ---- */

struct quantity {
	int64_t v;
	struct str unit;
};

/* Takes "+12kb" off the start of s. */
static bool filter_text_take_quantity(struct str *s, struct quantity *out, bool *too_great)
{
	size_t i = 0, digits;
	bool negative = false;
	uint64_t v;

	if (s->len > 0 && (s->ptr[0] == '+' || s->ptr[0] == '-'))
		negative = s->ptr[i++] == '-';
	digits = i;
	while (i < s->len && s->ptr[i] >= '0' && s->ptr[i] <= '9')
		i++;
	if (i == digits)
		return false;
	if (!str_to_u64((struct str){ s->ptr + digits, i - digits }, &v) || v > (uint64_t)INT64_MAX) {
		*too_great = true;
		return false;
	}
	out->v = negative ? -(int64_t)v : (int64_t)v;
	digits = i;
	while (i < s->len && ((s->ptr[i] | 32) >= 'a' && (s->ptr[i] | 32) <= 'z'))
		i++;
	out->unit = (struct str){ s->ptr + digits, i - digits };
	*s = (struct str){ s->ptr + i, s->len - i };
	return true;
}

static bool filter_text_take_colon(struct str *s)
{
	if (s->len == 0 || s->ptr[0] != ':')
		return false;
	*s = (struct str){ s->ptr + 1, s->len - 1 };
	return true;
}

/* False: it is not a range. A second number without a unit has the first one's. */
static bool tag_match_parse_range(struct tag_match *m, struct str s, bool *too_great)
{
	struct quantity q;
	struct str unit;
	bool colon = filter_text_take_colon(&s);

	if (!filter_text_take_quantity(&s, &q, too_great))
		return false;
	m->min = m->max = pprof_unit_scale(q.v, q.unit, q.unit, &m->unit);
	m->has_min = !colon;
	m->has_max = true;
	if (s.len == 0)
		return true;
	if (colon || !filter_text_take_colon(&s))
		return false;
	m->has_max = false;
	if (s.len == 0)
		return true;
	if (!filter_text_take_quantity(&s, &q, too_great) || s.len > 0)
		return false;
	m->max = pprof_unit_scale(q.v, q.unit, m->unit, &unit);
	m->has_max = true;
	return str_eq(unit, m->unit);
}

/* ---- compiling ---- */

static enum err_code tag_match_compile_list(struct tag_match *m, struct str text, struct err *err)
{
	size_t n = filter_regexes(FN_TAGFOCUS, text), end;
	enum err_code rc;

	if (!(m->re = calloc(n, sizeof(struct regex *))))
		return err_nomem(err, "filter");
	for (;; text = (struct str){ text.ptr + end + 1, text.len - end - 1 }) {
		for (end = 0; end < text.len && text.ptr[end] != ','; end++)
			;
		rc = regex_compile((struct str){ text.ptr, end }, 0, &m->re[m->n], err);
		if (rc)
			return rc;
		m->n++;
		if (end == text.len)
			return ERR_OK;
	}
}

static enum err_code tag_match_compile(struct str text, struct tag_match **out, struct err *err)
{
	struct tag_match *m = calloc(1, sizeof(*m) + text.len + 1);
	bool too_great = false;
	ptrdiff_t equals;

	if (!m)
		return err_nomem(err, "filter");
	*out = m;
	memcpy((char *)(m + 1), text.ptr, text.len);
	text.ptr = (char *)(m + 1); /* key and unit point there */
	equals = str_find(text, STR("="));
	if (equals >= 0) {
		m->key = (struct str){ text.ptr, (size_t)equals };
		text = (struct str){ text.ptr + equals + 1, text.len - (size_t)equals - 1 };
	}
	m->is_range = tag_match_parse_range(m, text, &too_great);
	if (too_great)
		return err_set(err, ERR_INVALID, "a number of the range exceeds 64 bits");
	return m->is_range ? ERR_OK : tag_match_compile_list(m, text, err);
}

static void tag_match_free(struct tag_match *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n; i++)
		regex_free(m->re[i]);
	free(m->re);
	free(m);
}

/* ---- one filter ---- */

enum err_code filter_compile(
	struct filter *f, enum function_id id, struct str text, struct err *err)
{
	assert(functions[id].flags & FUNCTION_FILTER);
	*f = (struct filter){ .id = id, .text = text, .is_empty = text.len == 0 };
	if (id == FN_NOINLINES)
		f->is_empty = false;
	if (f->is_empty || id == FN_NOINLINES)
		return ERR_OK;
	if (filter_is_tag(id))
		return tag_match_compile(text, &f->tags, err);
	return regex_compile(text, 0, &f->re, err);
}

void filter_release(struct filter *f)
{
	regex_free(f->re);
	tag_match_free(f->tags);
	*f = (struct filter){ 0 };
}
