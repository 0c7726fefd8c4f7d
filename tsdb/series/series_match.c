#include "tsdb/series/series_internal.h"
#include "tsdb/symbols/segvec.h"

/* Selecting series of the index by postings, and its names and values. */

struct match {
	const struct series_index *x;
	const struct matcher *m;
	series_has_key_fn has_key;
	void *ctx;
	struct bits has, yes; /* series with the label; those whose value matches */
};

static void set_all(struct bits *b, const struct posting *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		if ((p->ids[i] >> 6) < b->words)
			bits_set(b, p->ids[i]);
}

/* Samples are matched by the label's own name, or as sample_<name> where the series has a label
 * <name>. */
static bool series_sample_label(
	const struct series *s, struct str name, series_has_key_fn has_key, void *ctx)
{
	struct str inner = { name.ptr + 7, name.len - 7 };

	return !has_key || has_key(ctx, s, name) ||
		(str_has_prefix(name, STR("sample_")) && labels_has(s->labels, inner) &&
			has_key(ctx, s, inner));
}

static void lacking(struct match *t, const struct bits *among)
{
	bool empty = matcher_test(t->m, STR(""));

	for (size_t w = 0; w < among->words; w++) {
		uint64_t rest = among->w[w] & ~t->has.w[w];

		if (empty) {
			t->yes.w[w] |= rest;
			continue;
		}
		for (; rest; rest &= rest - 1) {
			uint32_t id = (uint32_t)(w * 64 + (size_t)__builtin_ctzll(rest));
			const struct series *s = series_by_id_locked(t->x, id);

			if (s && series_sample_label(s, t->m->name, t->has_key, t->ctx))
				bits_set(&t->yes, id);
		}
	}
}

static bool match_one(struct match *t, struct bits *out)
{
	const struct index_name *in = index_name_find(t->x, t->m->name);
	uint32_t last = (uint32_t)(out->words * 64 - 1);
	const struct posting *of;

	if (!bits_reserve(&t->has, last) || !bits_reserve(&t->yes, last))
		return false;
	for (uint32_t i = 0; in && i < in->n; i++)
		set_all(&t->has, &in->values[i]);
	if (in && t->m->op == MATCH_EQ) {
		if ((of = index_value_find(in, t->m->value)))
			set_all(&t->yes, of);
	} else {
		for (uint32_t i = 0; in && i < in->n; i++)
			if (in->values[i].n && matcher_test(t->m, in->values[i].value))
				set_all(&t->yes, &in->values[i]);
	}
	lacking(t, out);
	for (size_t w = 0; w < out->words; w++)
		out->w[w] &= t->yes.w[w];
	return true;
}

enum err_code series_match_locked(const struct series_index *x, const struct matcher *m, size_t n,
	const struct bits *among, series_has_key_fn has_key, void *ctx, struct bits *out,
	struct err *err)
{
	bool ok = among->words == 0 || bits_reserve(out, (uint32_t)(among->words * 64 - 1));

	if (ok && among->words)
		memcpy(out->w, among->w, among->words * sizeof(*out->w));
	for (size_t i = 0; ok && out->words && i < n; i++) {
		struct match t = { .x = x, .m = &m[i], .has_key = has_key, .ctx = ctx };

		ok = match_one(&t, out);
		bits_release(&t.has);
		bits_release(&t.yes);
	}
	return ok ? ERR_OK : err_nomem(err, "select");
}

/* ---- names and values ---- */

static bool posting_meets(const struct posting *p, const struct bits *among)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (bits_get(among, p->ids[i]))
			return true;
	return false;
}

void series_names_locked(const struct series_index *x, struct str name, const struct bits *among,
	series_name_fn fn, void *ctx)
{
	const struct index_name *in = name.len ? index_name_find(x, name) : NULL;
	bool more = true, met;

	for (uint32_t i = 0; in && i < in->n && more; i++)
		if (posting_meets(&in->values[i], among))
			more = fn(ctx, in->values[i].value);
	for (uint32_t i = 0; !name.len && i < x->names_n && more; i++) {
		in = &x->names[i];
		met = false;
		for (uint32_t k = 0; k < in->n && !met; k++)
			met = posting_meets(&in->values[k], among);
		if (met)
			more = fn(ctx, in->name);
	}
}
