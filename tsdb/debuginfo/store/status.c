/* What the store has, for the status page, for metrics, and for a comparison with others. */
#include <stdlib.h>

#include "tsdb/debuginfo/store/internal.h"

static int debuginfo_status_by_id(const void *a, const void *b)
{
	const struct debuginfo_info *x = a, *y = b;

	if (x->id.kind != y->id.kind)
		return x->id.kind < y->id.kind ? -1 : 1;
	return str_cmp(debuginfo_id_text(&x->id), debuginfo_id_text(&y->id));
}

/* a NULL: without texts. */
static void debuginfo_status_info_of(const struct debuginfo_store *s,
	const struct debuginfo_entry *e, struct arena *a, struct debuginfo_info *out)
{
	bool failed = e->stamp.again_s > store_now_s(s);

	*out = (struct debuginfo_info){ .id = e->stamp.id,
		.present = e->present,
		.kind = e->kind,
		.origin = e->origin,
		.quality = e->quality,
		.index_bytes = e->index_bytes,
		.source_bytes = e->source_bytes,
		.added_s = e->added_s,
		.used_s = e->stamp.used_s,
		.waiting_bytes = e->waiting_bytes,
		.uploading = e->waiting == WAITING_UPLOAD,
		.queued = e->waiting == WAITING_QUEUED,
		.extracting = e->waiting == WAITING_JOB,
		.missing_end_s = e->stamp.missing_end_s,
		.again_s = failed ? e->stamp.again_s : 0 };
	if (a && failed && e->stamp.why[0])
		out->why = str_dup(a, str_of(e->stamp.why));
	if (a && (e->path || e->waiting_path))
		out->path = str_dup(a, str_of(e->path ? e->path : e->waiting_path));
}

bool debuginfo_find(
	struct debuginfo_store *s, const struct debuginfo_id *id, struct debuginfo_info *out)
{
	const struct debuginfo_entry *e;

	mutex_lock(&s->lock);
	if ((e = entry_find(s, id)))
		debuginfo_status_info_of(s, e, NULL, out);
	mutex_unlock(&s->lock);
	return e;
}

enum err_code debuginfo_list(struct debuginfo_store *s, struct arena *a, struct debuginfo_info **d,
	size_t *n, struct err *err)
{
	struct debuginfo_info *list;
	size_t count = 0;

	mutex_lock(&s->lock);
	list = arena_array(a, struct debuginfo_info, s->entries_n + 1);
	for (size_t i = 0; list && i < BUCKETS; i++)
		for (const struct debuginfo_entry *e = s->buckets[i]; e; e = e->next)
			debuginfo_status_info_of(s, e, a, &list[count++]);
	mutex_unlock(&s->lock);
	if (!list)
		return arena_fail(a, "list of symbols", err);
	qsort(list, count, sizeof(*list), debuginfo_status_by_id);
	*d = list;
	*n = count;
	return ERR_OK;
}

uint64_t debuginfo_file_bytes_max(const struct debuginfo_store *s)
{
	return s->o.file_bytes_max;
}

struct debuginfo_totals debuginfo_totals(struct debuginfo_store *s)
{
	struct debuginfo_totals t;

	mutex_lock(&s->lock);
	t = (struct debuginfo_totals){ s->bytes, s->o.bytes_max, s->uploads_bytes, s->indexes_n,
		s->queued_n };
	mutex_unlock(&s->lock);
	return t;
}

uint64_t debuginfo_bytes(struct debuginfo_store *s)
{
	return debuginfo_totals(s).bytes;
}
