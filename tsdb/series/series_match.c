#include <stdlib.h>

#include "tsdb/series/series_internal.h"

/*
 * Selecting series, and names and values of labels with their counts.
 *
 * The matcher that accepts fewest series comes first. Each next one takes series out of what is
 * left: the sets of whole values, or one series after the other when few are left. A label that a
 * series lacks is looked at last, since only has_key knows about it. So the cost is that of a few
 * passes over the bits of all series (16 KB per 128,000 of them), and of what matches.
 */
#define CANDIDATE_BITS 128u /* testing one series costs about as much as so many words of bits */
#define AHEAD 16u /* values; their text is all over the memory of series */

struct series_match_step {
	const struct matcher *m;
	const struct index_name *in; /* NULL: no series has the label */
	const struct index_name *otherwise; /* of LABEL_SERVICE: counts where a series is not in `in` */
	uint64_t most; /* series that may pass */
	bool empty; /* it accepts "" */
};

struct series_match {
	const struct series_index *x;
	struct series_match_step *steps;
	size_t n;
	series_has_key_fn has_key;
	void *ctx;
	struct bits *out; /* what is left */
	struct bits scratch; /* of the same size */
	struct bits aside; /* likewise, for LABEL_SERVICE */
};

static void bits_copy(struct bits *to, const struct bits *from)
{
	memcpy(to->w, from->w, from->words * sizeof(*to->w));
}

/* ---- matchers that list values ---- */

static bool series_match_is_positive(const struct matcher *m)
{
	return m->op == MATCH_EQ || m->op == MATCH_RE;
}

static const struct id_set *series_match_ids_of(const struct index_name *in, struct str value)
{
	const struct series_posting *p = in ? index_value_find(in, value) : NULL;

	return p ? &p->ids : NULL;
}

static uint64_t series_match_most_of(
	const struct series_index *series_index, const struct series_match_step *s)
{
	uint64_t n = series_index->n, has = s->in ? s->in->ids.n : 0;
	const struct id_set *ids;
	struct str value;

	if (!series_match_is_positive(s->m) || !matcher_listed(s->m, 0, &value))
		return n;
	if (s->otherwise && has < s->otherwise->ids.n)
		has = s->otherwise->ids.n;
	n -= has;
	for (size_t i = 0; matcher_listed(s->m, i, &value); i++) {
		if ((ids = series_match_ids_of(s->in, value)))
			n += ids->n;
		if ((ids = series_match_ids_of(s->otherwise, value)))
			n += ids->n;
	}
	return n;
}

/* ---- taking series out ---- */

/* Those that have the label, and in `scratch` only those that are left of it. */
static void series_match_begin_label(struct series_match *m, const struct series_match_step *s)
{
	bits_copy(&m->scratch, m->out);
	id_set_keep(&s->in->ids, &m->scratch);
}

/* What is still in `scratch` has the label, with a value that does not match. */
static void series_match_end_label(struct series_match *s)
{
	for (size_t w = 0; w < s->out->words; w++)
		s->out->w[w] &= ~s->scratch.w[w];
}

static void series_match_by_listed(struct series_match *m, const struct series_match_step *s)
{
	struct bits *from = series_match_is_positive(s->m) ? &m->scratch : m->out;
	const struct id_set *ids;
	struct str value;

	if (series_match_is_positive(s->m))
		series_match_begin_label(m, s);
	for (size_t i = 0; matcher_listed(s->m, i, &value); i++)
		if ((ids = series_match_ids_of(s->in, value)))
			id_set_out_of(ids, from);
	if (series_match_is_positive(s->m))
		series_match_end_label(m);
}

/* Tests each value once; sets of the fewer, those that match or those that do not, are read. */
static bool series_match_by_values(struct series_match *m, const struct series_match_step *s)
{
	const struct index_name *in = s->in;
	uint64_t *hits = calloc(in->n / 64 + 1, sizeof(*hits)), matched = 0;
	bool positive;

	if (!hits)
		return false;
	for (uint32_t i = 0; i < in->n; i++) {
		if (i + AHEAD < in->n)
			__builtin_prefetch(in->values[i + AHEAD].value.ptr);
		if (in->values[i].ids.n && matcher_test(s->m, in->values[i].value)) {
			hits[i >> 6] |= UINT64_C(1) << (i & 63);
			matched += in->values[i].ids.n;
		}
	}
	positive = matched < in->ids.n / 2;
	if (positive)
		series_match_begin_label(m, s);
	for (uint32_t i = 0; i < in->n; i++)
		if ((hits[i >> 6] >> (i & 63) & 1) == positive)
			id_set_out_of(&in->values[i].ids, positive ? &m->scratch : m->out);
	if (positive)
		series_match_end_label(m);
	free(hits);
	return true;
}

static void series_match_by_candidates(struct series_match *m, const struct series_match_step *s)
{
	for (size_t w = 0; w < m->out->words; w++)
		for (uint64_t rest = m->out->w[w]; rest; rest &= rest - 1) {
			uint32_t id = (uint32_t)(w * 64 + (size_t)__builtin_ctzll(rest));
			const struct series *of = series_by_id_locked(m->x, id);
			struct str value = of ? labels_get(of->labels, s->m->name) : (struct str){ 0 };

			if (value.len && !matcher_test(s->m, value))
				bits_clear(m->out, id);
		}
}

/* Takes out those that have the label with a value that does not match. */
static bool series_match_apply_label(
	struct series_match *m, const struct series_match_step *s, bool first)
{
	struct str value;
	size_t n;

	if (!s->in)
		return true;
	n = first ? m->x->n : bits_count(m->out);
	if (matcher_listed(s->m, 0, &value)) {
		if (n * CANDIDATE_BITS < m->out->words)
			series_match_by_candidates(m, s);
		else
			series_match_by_listed(m, s);
		return true;
	}
	if (n < s->in->n) {
		series_match_by_candidates(m, s);
		return true;
	}
	return series_match_by_values(m, s);
}

static bool series_match_apply(
	struct series_match *m, const struct series_match_step *s, bool first)
{
	struct series_match_step other = *s;

	if (!series_match_apply_label(m, s, first))
		return false;
	if (!s->otherwise)
		return true;
	other.in = s->otherwise;
	if (!s->in)
		return series_match_apply_label(m, &other, first);
	if (!bits_reserve(&m->aside, (uint32_t)(m->out->words * 64 - 1)))
		return false;
	bits_copy(&m->aside, m->out);
	id_set_keep(&s->in->ids, &m->aside);
	id_set_out_of(&s->in->ids, m->out);
	if (!series_match_apply_label(m, &other, false))
		return false;
	for (size_t w = 0; w < m->out->words; w++)
		m->out->w[w] |= m->aside.w[w];
	return true;
}

/* ---- labels that series lack ---- */

/* Samples are matched by the label's own name, or as sample_<name> where the series has a label
 * <name>. */
static bool series_sample_label(
	const struct series *s, struct str name, series_has_key_fn has_key, void *ctx)
{
	struct str inner = { name.ptr + 7, name.len - 7 };

	return has_key(ctx, s, name) ||
		(str_has_prefix(name, STR("sample_")) && labels_has(s->labels, inner) &&
			has_key(ctx, s, inner));
}

static void series_match_take_out_lacking(struct series_match *m, const struct series_match_step *s)
{
	bits_copy(&m->scratch, m->out);
	if (s->in)
		id_set_out_of(&s->in->ids, &m->scratch);
	if (s->otherwise)
		id_set_out_of(&s->otherwise->ids, &m->scratch);
	for (size_t w = 0; w < m->out->words; w++)
		for (uint64_t rest = m->scratch.w[w]; rest; rest &= rest - 1) {
			uint32_t id = (uint32_t)(w * 64 + (size_t)__builtin_ctzll(rest));
			const struct series *of = series_by_id_locked(m->x, id);

			if (!of || !series_sample_label(of, s->m->name, m->has_key, m->ctx))
				bits_clear(m->out, id);
		}
}

static int series_match_most_cmp(const void *a, const void *b)
{
	const struct series_match_step *l = a, *r = b;

	uint32_t l_values = l->in ? l->in->n : 0, r_values = r->in ? r->in->n : 0;

	if (l->most != r->most)
		return l->most < r->most ? -1 : 1;
	return (l_values > r_values) - (l_values < r_values);
}

/* *otherwise: of LABEL_SERVICE, the label that counts where a series lacks the other. */
static const struct index_name *series_match_find(
	const struct series_index *series_index, struct str name, const struct index_name **otherwise)
{
	*otherwise = NULL;
	if (!label_is_service(name))
		return index_name_find(series_index, name);
	*otherwise = index_name_find(series_index, STR(LABEL_SERVICE_ELSE));
	return index_name_find(series_index, STR(LABEL_SERVICE_NAME));
}

static bool series_match_all(struct series_match *match, const struct matcher *m)
{
	for (size_t i = 0; i < match->n; i++) {
		struct series_match_step *s = &match->steps[i];

		*s = (struct series_match_step){ .m = &m[i], .empty = matcher_test(&m[i], STR("")) };
		s->in = series_match_find(match->x, m[i].name, &s->otherwise);
		s->most = series_match_most_of(match->x, s);
	}
	qsort(match->steps, match->n, sizeof(*match->steps), series_match_most_cmp);
	for (size_t i = 0; i < match->n; i++)
		if (!series_match_apply(match, &match->steps[i], i == 0))
			return false;
	for (size_t i = 0; i < match->n && match->has_key; i++)
		if (!match->steps[i].empty)
			series_match_take_out_lacking(match, &match->steps[i]);
	return true;
}

enum err_code series_match_locked(const struct series_index *s, const struct matcher *m, size_t n,
	const struct bits *among, series_has_key_fn has_key, void *ctx, struct bits *out,
	struct err *err)
{
	struct series_match t = { .x = s, .n = n, .has_key = has_key, .ctx = ctx, .out = out };
	bool ok;

	if (!among->words)
		return ERR_OK;
	ok = bits_reserve(out, (uint32_t)(among->words * 64 - 1));
	if (ok)
		bits_copy(out, among);
	if (ok && n) {
		ok = (t.steps = calloc(n, sizeof(*t.steps))) &&
			bits_reserve(&t.scratch, (uint32_t)(out->words * 64 - 1)) && series_match_all(&t, m);
		free(t.steps);
		bits_release(&t.scratch);
		bits_release(&t.aside);
	}
	return ok ? ERR_OK : err_nomem(err, "select");
}

void series_keep_kind_locked(const struct series_index *s, bool numbers, struct bits *ids)
{
	const struct index_job *none = index_job_find(s, NULL);

	if (none && numbers)
		id_set_keep(&none->ids, ids);
	else if (none)
		id_set_out_of(&none->ids, ids);
	else if (numbers && ids->words)
		memset(ids->w, 0, ids->words * sizeof(*ids->w));
}

void series_lacking_locked(const struct series_index *s, struct str name, struct bits *ids)
{
	const struct index_name *otherwise, *in = series_match_find(s, name, &otherwise);

	if (in)
		id_set_out_of(&in->ids, ids);
	if (otherwise)
		id_set_out_of(&otherwise->ids, ids);
}

uint32_t series_having_locked(const struct series_index *s, struct str name, const struct bits *ids)
{
	const struct index_name *in = index_name_find(s, name);

	return in ? id_set_count(&in->ids, ids) : 0;
}

void series_keep_job_locked(const struct series_index *s, const struct job *job, struct bits *ids)
{
	const struct index_job *of = index_job_find(s, job);

	if (of)
		id_set_keep(&of->ids, ids);
	else if (ids->words)
		memset(ids->w, 0, ids->words * sizeof(*ids->w));
}

void series_jobs_locked(
	const struct series_index *s, const struct bits *ids, series_job_fn fn, void *ctx)
{
	for (uint32_t i = 0; i < s->jobs_n; i++)
		if (id_set_meets(&s->jobs[i].ids, ids) && !fn(ctx, s->jobs[i].job))
			return;
}

void series_drop_job_locked(const struct series_index *s, const struct job *job, struct bits *ids)
{
	const struct index_job *of = index_job_find(s, job);

	if (of)
		id_set_out_of(&of->ids, ids);
}

/* ---- names and values ---- */

/* Then every series counts, and no set is looked at. */
static bool series_match_has_all(const struct series_index *s, const struct bits *among)
{
	for (uint32_t i = 0; i < s->jobs_n; i++)
		if (id_set_count(&s->jobs[i].ids, among) != s->jobs[i].ids.n)
			return false;
	return true;
}

static bool series_match_list(
	const struct index_name *in, const struct bits *among, series_name_fn fn, void *ctx)
{
	bool more = true;

	for (uint32_t i = 0; in && i < in->n && more; i++)
		if (id_set_meets(&in->values[i].ids, among))
			more = fn(ctx, in->values[i].value);
	return more;
}

bool series_names_locked(const struct series_index *s, struct str name, const struct bits *among,
	series_name_fn fn, void *ctx)
{
	const struct index_name *otherwise, *in = series_match_find(s, name, &otherwise);
	struct bits rest = { 0 };
	bool more = true;

	if (!name.len) {
		for (uint32_t i = 0; i < s->names_n && more; i++)
			if (id_set_meets(&s->names[i].ids, among))
				more = fn(ctx, s->names[i].name);
		return true;
	}
	if (!series_match_list(in, among, fn, ctx) || !otherwise || !among->words)
		return true;
	if (!bits_reserve(&rest, (uint32_t)(among->words * 64 - 1)))
		return false;
	bits_copy(&rest, among);
	if (in)
		id_set_out_of(&in->ids, &rest);
	series_match_list(otherwise, &rest, fn, ctx);
	bits_release(&rest);
	return true;
}

static bool series_match_count_values(
	const struct index_name *in, const struct bits *among, bool all, series_count_fn fn, void *ctx)
{
	bool more = true;

	for (uint32_t i = 0; i < in->n && more; i++) {
		const struct series_posting *p = &in->values[i];
		uint32_t n = all ? p->ids.n : id_set_count(&p->ids, among);

		if (n)
			more = fn(ctx, p->value, n, 0);
	}
	return more;
}

static bool series_match_count_name(
	const struct index_name *in, const struct bits *among, bool all, series_count_fn fn, void *ctx)
{
	uint32_t n = all ? in->ids.n : id_set_count(&in->ids, among), values = in->n - in->dead;

	if (!n)
		return true;
	if (!all) {
		values = 0;
		for (uint32_t i = 0; i < in->n; i++)
			values += id_set_meets(&in->values[i].ids, among);
	}
	return fn(ctx, in->name, n, values);
}

void series_counts_locked(const struct series_index *s, struct str name, const struct bits *among,
	series_count_fn fn, void *ctx)
{
	const struct index_name *in = name.len ? index_name_find(s, name) : NULL;
	bool all = series_match_has_all(s, among);

	if (in)
		series_match_count_values(in, among, all, fn, ctx);
	for (uint32_t i = 0; !name.len && i < s->names_n; i++)
		if (!series_match_count_name(&s->names[i], among, all, fn, ctx))
			return;
}

bool series_value_meets_locked(
	const struct series_index *s, struct label label, const struct bits *among)
{
	const struct index_name *in = index_name_find(s, label.name);
	const struct series_posting *p = in ? index_value_find(in, label.value) : NULL;

	return p && id_set_meets(&p->ids, among);
}
