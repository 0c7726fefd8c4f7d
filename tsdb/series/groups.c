#include "tsdb/series/groups.h"

#include <stdlib.h>

/*
 * Labels that tell instances of one service apart, by job. Series that differ in them only are a
 * group: rollups are kept of groups too.
 */

static const struct str usual[] = { { "instance", 8 }, { "pod", 3 } };

struct str job_name_of(struct labels labels)
{
	struct str name = labels_get(labels, STR("job"));

	return name.len ? name : labels_get(labels, STR("service_name"));
}

static enum err_code series_groups_copy_labels(
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

enum err_code group_rules_dup(struct arena *a, const struct db_job_labels *from, size_t n,
	struct db_job_labels **out, struct err *err)
{
	struct db_job_labels *v = arena_array(a, struct db_job_labels, n + 1);
	enum err_code rc = v ? ERR_OK : arena_fail(a, "instance labels", err);

	for (size_t i = 0; i < n && !rc; i++)
		rc = series_groups_copy_labels(a, &from[i], &v[i], err);
	*out = v;
	return rc;
}

/* ---- comparing, without making the group's labels ---- */

struct series_groups_names {
	const struct str *v;
	size_t n;
};

static struct series_groups_names group_rules_names_of(const struct group_rules *r, struct str job)
{
	for (size_t i = 0; i < r->n; i++)
		if (str_eq(r->v[i].job, job))
			return (struct series_groups_names){ r->v[i].labels, r->v[i].labels_n };
	return (struct series_groups_names){ usual, sizeof(usual) / sizeof(usual[0]) };
}

static bool series_groups_tells_instance(struct series_groups_names names, struct str name)
{
	for (size_t i = 0; i < names.n; i++)
		if (str_eq(names.v[i], name))
			return true;
	return false;
}

/* The next label that is one of the group's; false after the last. */
static bool series_groups_next_label(
	struct series_groups_names names, struct labels ls, size_t *at, struct label *out)
{
	while (*at < ls.n) {
		*out = ls.v[(*at)++];
		if (!series_groups_tells_instance(names, out->name))
			return true;
	}
	return false;
}

/* As labels_cmp of what is left without the instance's labels. */
static int group_only_cmp(struct series_groups_names names, struct labels a, struct labels b)
{
	size_t i = 0, k = 0;
	struct label x, y;
	bool more_a, more_b;
	int c;

	for (;;) { /* a label of each set per turn */
		more_a = series_groups_next_label(names, a, &i, &x);
		more_b = series_groups_next_label(names, b, &k, &y);
		if (!more_a || !more_b)
			return more_a - more_b;
		if ((c = str_cmp(x.name, y.name)) || (c = str_cmp(x.value, y.value)))
			return c;
	}
}

int group_cmp(const struct group_rules *r, struct str job, struct labels a, struct labels b)
{
	int c = group_only_cmp(group_rules_names_of(r, job), a, b);

	return c ? c : labels_cmp(a, b);
}

bool group_same(const struct group_rules *r, struct str job, struct labels a, struct labels b)
{
	return group_only_cmp(group_rules_names_of(r, job), a, b) == 0;
}

enum err_code group_labels(const struct group_rules *r, struct labels labels, struct arena *a,
	struct labels *out, struct err *err)
{
	struct series_groups_names names = group_rules_names_of(r, job_name_of(labels));
	struct labels_builder b;

	labels_builder_init(&b, a, labels);
	for (size_t i = 0; i < names.n; i++)
		labels_builder_del(&b, names.v[i]);
	return labels_builder_build(&b, out, err);
}
