#include "base/clock.h"
#include "base/labels.h"
#include "tsdb/catalog/deleted.h"
#include "tsdb/catalog/jobs.h"
#include "tsdb/catalog/state.h"
#include "tsdb/head/append_internal.h"
#include "tsdb/head/commit.h"
#include "tsdb/store/store.h"

/*
 * The same series and time again. They name a row, so a second one would overwrite the first, which
 * was acknowledged. The second row is refused, unless it is the same: then nothing is to do.
 *
 * Rows rarely come again, and looking up each would cost a read per append. A row is new if it is
 * newer than all rows that the series got in this process, and than all rows at the start. Only
 * others are looked up, once no row of the series and time waits in the queue.
 */

bool again_possible(const struct db *db, const struct series *s, int64_t ts_ns)
{
	return ts_ns <= s->appended_ns || ts_ns <= db->found_max_ns;
}

void again_note(struct series *s, int64_t ts_ns)
{
	if (s->job)
		mutex_assert_held(&s->job->lock);
	if (ts_ns > s->appended_ns)
		s->appended_ns = ts_ns;
}

enum err_code again_find(
	struct db *db, const struct again_place *at, struct buf *out, struct err *err)
{
	enum err_code rc = commit_wait(db, at->series, at->ts_ns, at->generation, err);

	buf_clear(out);
	return rc ? rc : store_get(at->window->store, key_str(&at->key), out, err);
}

enum err_code again_refuse(const char *what, struct labels labels, int64_t ts_ns, struct err *err)
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

enum err_code again_check_deleted(struct db *db, const struct window *w, const struct series *s,
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
