/*
 * tagfocus and tagignore: finds the label sets that the texts match. A label set is tested once; a
 * cell is a look-up.
 */
#include "base/regex.h"
#include "promql/profiles/filter.h"
#include "proto/report/pprof_unit.h"

/* ---- units ---- */

/* The unit of each key's numbers: the first that is met. */
struct tag_unit {
	struct str key, unit; /* unit.len 0: none met yet */
	struct tag_unit *next;
};

static bool filter_tags_is_number(const struct sym_label *l)
{
	return !l->str && (l->num || l->num_unit);
}

static struct tag_unit *tag_unit_find(struct tag_unit *units, struct str key)
{
	while (units && !str_eq(units->key, key))
		units = units->next;
	return units;
}

static enum err_code filter_tags_units_add(struct arena *a, const struct tag_match *m,
	const struct partition *p, uint32_t label_set, struct tag_unit **units, struct err *err)
{
	struct sym_label_set set = sym_label_set(p, label_set);

	for (uint32_t i = 0; i < set.n; i++) {
		struct str key = sym_string(p, set.v[i].key);
		struct tag_unit *u;

		if (!filter_tags_is_number(&set.v[i]) || !set.v[i].num_unit ||
			(m->key.len && !str_eq(m->key, key)))
			continue;
		if (!(u = tag_unit_find(*units, key))) {
			if (!(u = arena_new(a, struct tag_unit)))
				return arena_fail(a, "filter", err);
			*u = (struct tag_unit){ key, sym_string(p, set.v[i].num_unit), *units };
			*units = u;
		}
	}
	return ERR_OK;
}

static struct str tag_unit_of(struct tag_unit *units, struct str key)
{
	const struct tag_unit *u = tag_unit_find(units, key);

	if (u)
		return u->unit;
	return str_is(key, "alignment") || str_is(key, "request") ? STR("bytes") : key;
}

/* ---- matching ---- */

static bool filter_tags_in_range(const struct tag_match *m, int64_t value, struct str unit)
{
	double scaled = pprof_unit_scale(value, unit, m->unit, &unit);

	return str_eq(unit, m->unit) && (!m->has_min || scaled >= m->min) &&
		(!m->has_max || scaled <= m->max);
}

static bool filter_tags_some_number(const struct tag_match *m, const struct partition *p,
	struct sym_label_set set, struct tag_unit *units)
{
	for (uint32_t i = 0; i < set.n; i++) {
		struct str key = sym_string(p, set.v[i].key);

		if (filter_tags_is_number(&set.v[i]) && (!m->key.len || str_eq(m->key, key)) &&
			filter_tags_in_range(m, set.v[i].num, tag_unit_of(units, key)))
			return true;
	}
	return false;
}

/* Some text of the key, or "key:text" of any. */
static bool filter_tags_some_text(const struct regex *re, const struct tag_match *m,
	const struct partition *p, struct sym_label_set set, struct buf *scratch)
{
	for (uint32_t i = 0; i < set.n; i++) {
		struct str key = sym_string(p, set.v[i].key), text;

		if (!set.v[i].str || (m->key.len && !str_eq(m->key, key)))
			continue;
		text = sym_string(p, set.v[i].str);
		if (!m->key.len) {
			buf_clear(scratch);
			buf_add_str(scratch, key);
			buf_add_char(scratch, ':');
			buf_add_str(scratch, text);
			text = buf_str(scratch);
		}
		if (regex_match(re, text))
			return true;
	}
	return false;
}

static bool filter_tags_set_matches(const struct tag_match *m, const struct partition *p,
	uint32_t label_set, struct tag_unit *units, struct buf *scratch)
{
	struct sym_label_set set = sym_label_set(p, label_set);

	if (m->is_range)
		return filter_tags_some_number(m, p, set, units);
	for (size_t i = 0; i < m->n; i++)
		if (filter_tags_some_text(m->re[i], m, p, set, scratch) == (m->key.len > 0))
			return m->key.len > 0;
	return m->key.len == 0;
}

/* ---- cells ---- */

enum { SET_UNKNOWN, SET_MATCHES, SET_DOES_NOT };

static enum err_code filter_tags_match_part(struct work *work, struct arena *a,
	const struct tag_match *m, bool ignore, const struct part *in, struct tag_unit *units,
	struct buf *text, struct part *out, struct err *err)
{
	char *known = arena_array(a, char, sym_label_sets_n(in->partition) + 1);

	*out = *in;
	out->n = 0;
	out->cells = arena_alloc_raw(work->arena, in->n + 1, sizeof(*out->cells));
	if (!out->cells)
		return work_nomem(work, err);
	if (!known)
		return arena_fail(a, "filter", err);
	for (size_t i = 0; i < in->n; i++) {
		uint32_t set = in->cells[i].label_set;

		if (known[set] == SET_UNKNOWN)
			known[set] = filter_tags_set_matches(m, in->partition, set, units, text) ? SET_MATCHES :
																					   SET_DOES_NOT;
		if ((known[set] == SET_MATCHES) != ignore)
			out->cells[out->n++] = in->cells[i];
	}
	return ERR_OK;
}

enum err_code tag_match_cells(struct work *work, struct arena *scratch, const struct tag_match *m,
	bool ignore, const struct profile_value *p, struct part *out, struct err *err)
{
	struct tag_unit *units = NULL;
	struct buf text = { 0 };
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < p->parts_n && m->is_range; i++)
		for (size_t k = 0; k < p->parts[i].n; k++)
			if ((rc = filter_tags_units_add(scratch, m, p->parts[i].partition,
					 p->parts[i].cells[k].label_set, &units, err)))
				return rc;
	for (size_t i = 0; i < p->parts_n && !rc; i++)
		rc = filter_tags_match_part(
			work, scratch, m, ignore, &p->parts[i], units, &text, &out[i], err);
	if (!rc && buf_failed(&text))
		rc = err_nomem(err, "filter");
	buf_release(&text);
	return rc;
}
