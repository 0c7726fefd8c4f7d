#include <stdlib.h>

#include "tsdb/db_internal.h"

/*
 * Names and values of labels: of the selected series, and of their samples.
 */

static int str_cmp_qsort(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static size_t unique(struct str *v, size_t n)
{
	size_t kept = 0;

	qsort(v, n, sizeof(*v), str_cmp_qsort);
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || !str_eq(v[kept - 1], v[i]))
			v[kept++] = v[i];
	return kept;
}

struct names {
	struct str name; /* empty: label names are wanted, else this label's values */
	struct arena *arena;
	struct str *v;
	size_t n, cap;
};

static enum err_code names_add(struct names *x, struct str s, struct err *err)
{
	size_t cap = x->cap ? x->cap * 2 : 256;
	struct str *grown;

	if (!s.len)
		return ERR_OK;
	if (x->n == x->cap) {
		/* Most are the same ones again: only what is new may make it grow. */
		x->n = x->n ? unique(x->v, x->n) : 0;
		if (x->n * 2 > x->cap || !x->cap) {
			if (!(grown = realloc(x->v, cap * sizeof(*grown))))
				return err_set(err, ERR_NOMEM, "label names: out of memory");
			x->v = grown;
			x->cap = cap;
		}
	}
	x->v[x->n++] = s;
	return ERR_OK;
}

static enum err_code add_series_names(struct names *x, const struct db_series *s, struct err *err)
{
	enum err_code rc = ERR_OK;

	if (x->name.len)
		return names_add(x, labels_get(s->labels, x->name), err);
	for (size_t k = 0; k < s->labels.n && !rc; k++)
		rc = names_add(x, s->labels.v[k].name, err);
	return rc;
}

static enum err_code add_value(
	struct names *x, const struct partition *p, uint32_t set, struct err *err)
{
	struct buf text = { 0 };
	struct str copy = { 0 };
	enum err_code rc;

	sym_label_value(p, set, x->name, &text);
	if (text.len)
		copy = str_dup(x->arena, buf_str(&text));
	rc = (text.len && !copy.ptr) || buf_failed(&text) ? arena_fail(x->arena, "label names", err) :
							    names_add(x, copy, err);
	buf_release(&text);
	return rc;
}

/* Those of a partition's samples, whichever of its series have them; names of ours are left out. */
static enum err_code add_sample_names(
	struct names *x, const struct partition *p, struct err *err)
{
	uint32_t sets = sym_label_sets_n(p);
	enum err_code rc = ERR_OK;

	if (x->name.len && !sym_has_label_key(p, x->name))
		return ERR_OK;
	for (uint32_t i = 1; i < sets && !rc; i++) {
		struct sym_label_set set = sym_label_set(p, i);

		if (x->name.len) {
			rc = add_value(x, p, i, err);
			continue;
		}
		for (uint32_t k = 0; k < set.n && !rc; k++) {
			struct str key = sym_string(p, set.v[k].key);

			if (!str_has_prefix(key, STR("__")))
				rc = names_add(x, key, err);
		}
	}
	return rc;
}

/* Label names (name empty) or one label's values, of the selected series and of their samples. */
static enum err_code names(struct db_querier *q, struct str name, const struct matcher *m, size_t n,
	struct arena *a, struct str **out, size_t *out_n, struct err *err)
{
	struct names x = { .name = name, .arena = a };
	uint32_t partitions = 0;
	struct db_series *v;
	bool *seen; /* partitions by index: each is looked at once */
	enum err_code rc;
	size_t found;

	if ((rc = db_select(q, m, n, a, &v, &found, err)))
		return rc;
	for (size_t i = 0; i < found; i++)
		if (!v[i].numeric && partition_index(v[i].partition) >= partitions)
			partitions = partition_index(v[i].partition) + 1;
	if (!(seen = arena_array(a, bool, partitions + 1)))
		rc = arena_fail(a, "label names", err);
	for (size_t i = 0; i < found && !rc; i++) {
		uint32_t at = v[i].numeric ? partitions : partition_index(v[i].partition);

		rc = add_series_names(&x, &v[i], err);
		if (!rc && !seen[at] && !v[i].numeric)
			rc = add_sample_names(&x, v[i].partition, err);
		seen[at] = true;
	}
	x.n = x.n ? unique(x.v, x.n) : 0;
	if (!rc && !(*out = arena_array(a, struct str, x.n + 1)))
		rc = arena_fail(a, "label names", err);
	for (size_t i = 0; i < x.n && !rc; i++)
		if (!((*out)[i] = str_dup(a, x.v[i])).ptr)
			rc = arena_fail(a, "label names", err);
	*out_n = x.n;
	free(x.v);
	return rc;
}

enum err_code db_label_names(struct db_querier *q, const struct matcher *m, size_t n,
	struct arena *a, struct str **out, size_t *out_n, struct err *err)
{
	return names(q, (struct str){ 0 }, m, n, a, out, out_n, err);
}

enum err_code db_label_values(struct db_querier *q, struct str name, const struct matcher *m,
	size_t n, struct arena *a, struct str **out, size_t *out_n, struct err *err)
{
	return names(q, name, m, n, a, out, out_n, err);
}
