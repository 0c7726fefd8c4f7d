#include "base/labels.h"

#include <assert.h>

#include "base/quote.h"

const char *match_op_name(enum match_op op)
{
	static const char *const names[] = {
		[MATCH_EQ] = "=", [MATCH_NE] = "!=", [MATCH_RE] = "=~", [MATCH_NRE] = "!~"
	};

	return names[op];
}

enum err_code matcher_init(
	struct matcher *m, enum match_op op, struct str name, struct str value, struct err *err)
{
	assert(op <= MATCH_NRE);
	*m = (struct matcher){ .op = op, .name = name, .value = value };
	if (op != MATCH_RE && op != MATCH_NRE)
		return ERR_OK;
	return regex_compile(value, REGEX_ANCHORED, &m->re, err);
}

void matcher_release(struct matcher *m)
{
	regex_free(m->re);
	m->re = NULL;
}

bool matcher_test(const struct matcher *m, struct str value)
{
	switch (m->op) {
	case MATCH_EQ:
		return str_eq(value, m->value);
	case MATCH_NE:
		return !str_eq(value, m->value);
	case MATCH_RE:
		return regex_match(m->re, value);
	case MATCH_NRE:
		return !regex_match(m->re, value);
	}
	return false;
}

bool matcher_test_labels(const struct matcher *m, struct labels ls)
{
	return matcher_test(m, labels_get(ls, m->name));
}

bool matcher_listed(const struct matcher *m, size_t i, struct str *out)
{
	if (m->re)
		return regex_literal(m->re, i, out);
	*out = m->value;
	return i == 0;
}

void matcher_print(struct buf *out, const struct matcher *m)
{
	if (label_name_valid(m->name))
		buf_add_str(out, m->name);
	else
		buf_add_quoted(out, m->name);
	buf_add_cstr(out, match_op_name(m->op));
	buf_add_quoted(out, m->value);
}

static bool matcher_set_accepts(const struct matcher_set *s, struct labels ls)
{
	for (size_t i = 0; i < s->n; i++)
		if (!matcher_test_labels(&s->m[i], ls))
			return false;
	return true;
}

bool label_limits_admit(const struct label_limits *l, struct labels ls)
{
	for (size_t i = 0; l && i < l->n; i++)
		if (matcher_set_accepts(&l->sets[i], ls))
			return true;
	return !l;
}
