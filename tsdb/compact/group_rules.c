#include "tsdb/compact/group_rules.h"

#include "tsdb/catalog/state.h"

/* The labels that tell instances apart, as the configuration last said. */
#define INSTANCE_LABELS_MAX 64u

enum err_code db_set_instance_labels(
	struct db *db, const struct db_job_labels *d, size_t n, struct err *err)
{
	struct db_job_labels *copy;
	struct arena a, old;
	enum err_code rc;

	for (size_t i = 0; i < n; i++)
		if (d[i].labels_n > INSTANCE_LABELS_MAX)
			return err_set(err, ERR_LIMIT, "job \"" STR_FMT "\" has %zu instance labels, limit %u",
				STR_ARG(d[i].job), d[i].labels_n, INSTANCE_LABELS_MAX);
	arena_init(&a, 0);
	if ((rc = group_rules_dup(&a, d, n, &copy, err))) {
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
	rc = group_rules_dup(a, db->job_labels, db->job_labels_n, &out->v, err);
	mutex_unlock(&db->lock);
	return rc;
}
