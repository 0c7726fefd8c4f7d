#include <stdlib.h>

#include "tsdb/catalog/blocks.h"

/*
 * Labels that tell instances of one service apart, by job. Series that differ in them only are a
 * group: rollups are kept of groups too.
 */
#define INSTANCE_LABELS_MAX 64u

static const struct str usual[] = { { "instance", 8 }, { "pod", 3 } };

static enum err_code copy_labels(
	struct arena *a, const struct db_job_labels *from, struct db_job_labels *to, struct err *err)
{
	struct str *v = arena_array(a, struct str, from->labels_n + 1);

	to->job = str_dup(a, from->job);
	if (!v || !to->job.ptr)
		return arena_fail(a, "instance labels", err);
	for (size_t i = 0; i < from->labels_n; i++)
		if (!(v[i] = str_dup(a, from->labels[i])).ptr)
			return arena_fail(a, "instance labels", err);
	to->labels = v;
	to->labels_n = from->labels_n;
	return ERR_OK;
}

static enum err_code copy_all(struct arena *a, const struct db_job_labels *from, size_t n,
	struct db_job_labels **out, struct err *err)
{
	struct db_job_labels *v = arena_array(a, struct db_job_labels, n + 1);
	enum err_code rc = v ? ERR_OK : arena_fail(a, "instance labels", err);

	for (size_t i = 0; i < n && !rc; i++)
		rc = copy_labels(a, &from[i], &v[i], err);
	*out = v;
	return rc;
}

enum err_code db_set_instance_labels(
	struct db *db, const struct db_job_labels *v, size_t n, struct err *err)
{
	struct db_job_labels *copy;
	struct arena a, old;
	enum err_code rc;

	for (size_t i = 0; i < n; i++)
		if (v[i].labels_n > INSTANCE_LABELS_MAX)
			return err_set(err, ERR_LIMIT, "job \"" STR_FMT "\" has %zu instance labels, limit %u",
				STR_ARG(v[i].job), v[i].labels_n, INSTANCE_LABELS_MAX);
	arena_init(&a, 0);
	if ((rc = copy_all(&a, v, n, &copy, err))) {
		arena_release(&a);
		return rc;
	}
	mutex_lock(&db->lock);
	old = db->job_labels_arena;
	db->job_labels_arena = a;
	db->job_labels = copy;
	db->job_labels_n = n;
	mutex_unlock(&db->lock);
	arena_release(&old);
	return ERR_OK;
}

enum err_code group_rules_copy(
	struct db *db, struct arena *a, struct group_rules *out, struct err *err)
{
	enum err_code rc;

	mutex_lock(&db->lock);
	out->n = db->job_labels_n;
	rc = copy_all(a, db->job_labels, db->job_labels_n, &out->v, err);
	mutex_unlock(&db->lock);
	return rc;
}

/* ---- comparing, without making the group's labels ---- */

struct names {
	const struct str *v;
	size_t n;
};

static struct names names_of(const struct group_rules *r, struct str job)
{
	for (size_t i = 0; i < r->n; i++)
		if (str_eq(r->v[i].job, job))
			return (struct names){ r->v[i].labels, r->v[i].labels_n };
	return (struct names){ usual, sizeof(usual) / sizeof(usual[0]) };
}

static bool tells_instance(struct names names, struct str name)
{
	for (size_t i = 0; i < names.n; i++)
		if (str_eq(names.v[i], name))
			return true;
	return false;
}

/* The next label that is one of the group's; false after the last. */
static bool next_label(struct names names, struct labels ls, size_t *at, struct label *out)
{
	while (*at < ls.n) {
		*out = ls.v[(*at)++];
		if (!tells_instance(names, out->name))
			return true;
	}
	return false;
}

/* As labels_cmp of what is left without the instance's labels. */
static int group_only_cmp(struct names names, struct labels a, struct labels b)
{
	size_t i = 0, k = 0;
	struct label x, y;
	bool more_a, more_b;
	int c;

	for (;;) { /* a label of each set per turn */
		more_a = next_label(names, a, &i, &x);
		more_b = next_label(names, b, &k, &y);
		if (!more_a || !more_b)
			return more_a - more_b;
		if ((c = str_cmp(x.name, y.name)) || (c = str_cmp(x.value, y.value)))
			return c;
	}
}

int group_cmp(const struct group_rules *r, struct str job, struct labels a, struct labels b)
{
	int c = group_only_cmp(names_of(r, job), a, b);

	return c ? c : labels_cmp(a, b);
}

bool group_same(const struct group_rules *r, struct str job, struct labels a, struct labels b)
{
	return group_only_cmp(names_of(r, job), a, b) == 0;
}

enum err_code group_labels(const struct group_rules *r, struct labels labels, struct arena *a,
	struct labels *out, struct err *err)
{
	struct names names = names_of(r, job_name_of(labels));
	struct labels_builder b;

	labels_builder_init(&b, a, labels);
	for (size_t i = 0; i < names.n; i++)
		labels_builder_del(&b, names.v[i]);
	return labels_builder_build(&b, out, err);
}
