#include "base/clock.h"
#include "base/labels.h"
#include "tsdb/catalog/deleted.h"
#include "tsdb/catalog/jobs.h"
#include "tsdb/catalog/residents.h"
#include "tsdb/catalog/state.h"
#include "tsdb/head/append_internal.h"
#include "tsdb/head/commit.h"
#include "tsdb/head/epochs.h"
#include "tsdb/store/store.h"
#include "tsdb/symbols/translate.h"

/*
 * The same series and time again. They name a row, so a second one would overwrite the first, which
 * was acknowledged. The second row is refused, unless it is the same: then nothing is to do.
 *
 * Rows rarely come again, and looking up each would cost a read per append. A row is new if it is
 * newer than all rows that the series got in this process, and than all rows at the start. Only
 * others are looked up, once no row of the series and time waits in the queue.
 *
 * An interval that was found here is not compared, nor are links where the row's epoch has ended.
 */

bool duplicate_possible(const struct db *db, const struct series *s, int64_t ts_ns)
{
	return ts_ns <= s->appended_ns || ts_ns <= db->found_max_ns;
}

void duplicate_note(struct series *s, int64_t ts_ns)
{
	if (s->job)
		mutex_assert_held(&s->job->lock);
	if (ts_ns > s->appended_ns)
		s->appended_ns = ts_ns;
}

enum err_code duplicate_find(
	struct db *db, const struct duplicate_place *at, struct buf *out, struct err *err)
{
	enum err_code rc = commit_wait(db, at->series, at->ts_ns, at->generation, err);

	buf_clear(out);
	return rc ? rc : store_get(at->window->store, key_str(&at->key), out, err);
}

/* ---- the same row under other ids ---- */

/* The arrays of a row of n entries while they are put in order. */
struct entries {
	uint32_t n, columns_n;
	uint32_t *stacks, *sets;
	int64_t *values, *sorted;
	struct translated ids;
};

static bool entries_make(struct entries *e, const struct row_view *v, struct arena *a)
{
	size_t n = (size_t)v->n + 1;

	*e = (struct entries){ .n = v->n,
		.columns_n = v->columns_n,
		.stacks = arena_alloc_raw(a, n, sizeof(*e->stacks)),
		.sets = arena_alloc_raw(a, n, sizeof(*e->sets)),
		.values = arena_alloc_raw(a, n * v->columns_n, sizeof(*e->values)),
		.sorted = arena_alloc_raw(a, n * v->columns_n, sizeof(*e->sorted)),
		.ids = { .keys = arena_alloc_raw(a, n, sizeof(*e->ids.keys)),
			.keys_tmp = arena_alloc_raw(a, n, sizeof(*e->ids.keys_tmp)),
			.order = arena_alloc_raw(a, n, sizeof(*e->ids.order)),
			.order_tmp = arena_alloc_raw(a, n, sizeof(*e->ids.order_tmp)) } };
	return e->stacks && e->sets && e->values && e->sorted && e->ids.keys && e->ids.keys_tmp &&
		e->ids.order && e->ids.order_tmp;
}

static enum err_code head_duplicates_translate(
	struct translation *t, struct entries *e, uint32_t *header, struct err *err)
{
	enum err_code rc = translate_header(t, *header, header, err);

	if (rc || (rc = translate_entries(t, e->stacks, e->sets, e->n, &e->ids, err)))
		return rc;
	for (uint32_t i = 0; i < e->n; i++) {
		e->stacks[i] = (uint32_t)(e->ids.keys[i] >> 32);
		e->sets[i] = (uint32_t)e->ids.keys[i];
		for (uint32_t c = 0; c < e->columns_n; c++)
			e->sorted[(size_t)c * e->n + i] = e->values[(size_t)c * e->n + e->ids.order[i]];
	}
	e->values = e->sorted;
	return ERR_OK;
}

/* From the epoch in which the row was stored. */
static enum err_code head_duplicates_renumber(struct db *db, const struct duplicate_place *at,
	uint32_t epoch, struct partition *live, struct entries *e, uint32_t *header, struct err *err)
{
	struct translation *t = NULL;
	struct partition *then;
	enum err_code rc;

	if ((rc = partition_pin(db, live->name, live->id, epoch, &then, err)))
		return rc;
	if (!(rc = partition_need_window(db, then, at->window, err)) &&
		!(rc = translation_open(then, live, &t, err)))
		rc = head_duplicates_translate(t, e, header, err);
	translation_close(t);
	partition_unpin(db, then);
	return rc;
}

enum err_code duplicate_unpack(struct db *db, const struct duplicate_place *at,
	struct scratch *scratch, struct partition *live, struct duplicate_row *out, struct err *err)
{
	struct row_view v;
	struct row *r = &out->row;
	struct entries e;
	enum err_code rc;

	if ((rc = row_parse(buf_str(&scratch->there), at->ts_ns, &v, err)))
		return rc;
	if (!entries_make(&e, &v, &scratch->arena))
		return arena_fail(&scratch->arena, "storing a profile", err);
	rc = row_ids(&v, e.stacks, e.sets, err);
	for (uint32_t c = 0; c < v.columns_n && !rc; c++)
		rc = row_values(&v, c, e.values + (size_t)c * v.n, err);
	*r = (struct row){ .header = v.header,
		.interval_ns = v.interval_ns,
		.time_nanos = v.time_nanos,
		.duration_nanos = v.duration_nanos,
		.period = v.period,
		.n = v.n,
		.columns_n = v.columns_n,
		.epoch = live->epoch,
		.links = v.links };
	out->renumbered = v.epoch != live->epoch;
	if (!rc && out->renumbered)
		rc = head_duplicates_renumber(db, at, v.epoch, live, &e, &r->header, err);
	r->stacks = e.stacks;
	r->label_sets = e.sets;
	r->values = e.values;
	return rc;
}

enum err_code duplicate_check(const struct duplicate_row *stored, const struct db_append *a,
	struct scratch *scratch, struct err *err)
{
	struct row r = stored->row;
	struct buf *bytes = &scratch->record;
	enum err_code rc;

	if (stored->renumbered)
		r.links = buf_str(&scratch->links);
	if (a->gap_max_ns)
		r.interval_ns = a->interval_ns;
	buf_clear(bytes);
	if ((rc = row_encode(&r, a->ts_ns, bytes, err)))
		return rc;
	return str_eq(buf_str(bytes), buf_str(&scratch->row)) ?
		ERR_OK :
		duplicate_refuse("profile", a->labels, a->ts_ns, err);
}

/* ---- what is refused ---- */

enum err_code duplicate_refuse(
	const char *what, struct labels labels, int64_t ts_ns, struct err *err)
{
	struct buf text = { 0 };
	enum err_code rc;

	time_print_rfc3339(&text, ts_ns);
	buf_add_cstr(&text, " of series ");
	labels_print(&text, labels);
	rc = err_set(err, ERR_EXISTS, "another %s of " STR_FMT " is stored already", what,
		STR_ARG(buf_str(&text)));
	buf_release(&text);
	return rc;
}

enum err_code duplicate_check_deleted(struct db *db, const struct window *w, const struct series *s,
	int64_t ts_ns, const char *what, struct err *err)
{
	const struct deleted_range *v;
	struct buf text = { 0 };
	struct deleted d;
	enum err_code rc;
	size_t n;

	mutex_lock(&db->lock);
	d = (struct deleted){ w->deleted, w->deleted_n };
	mutex_unlock(&db->lock);
	n = deleted_of(d, s->id, &v);
	if (!deleted_has(v, n, ts_ns))
		return ERR_OK;
	time_print_rfc3339(&text, ts_ns);
	buf_add_cstr(&text, " of series ");
	labels_print(&text, s->labels);
	rc = err_set(
		err, ERR_INVALID, "%ss of " STR_FMT " were deleted", what, STR_ARG(buf_str(&text)));
	buf_release(&text);
	return rc;
}
