#include "tsdb/head/append.h"
#include "tsdb/head/append_internal.h"
#include "tsdb/store/store.h"

/*
 * Intervals of pushed profiles. A level counts for as long as it lasted, and a push does not say
 * how often it comes: the interval is the time since the previous row of the series.
 *
 * The index knows the time of the latest row that this process stored. For a late row, and after a
 * start, the window's rows are searched. Rows of the window before are not searched: the first row
 * after a start then counts as the first one of its series.
 */

static enum err_code append_gap_row_before(
	struct window *w, uint32_t series, int64_t ts_ns, int64_t *out_ns, struct err *err)
{
	struct key key = key_row(series, ts_ns);
	struct store_iter *it = store_iter_open(w->store, NULL);
	enum err_code rc;
	int64_t found_ns;
	uint32_t found;

	*out_ns = 0;
	if (!it)
		return err_nomem(err, "storing a profile");
	store_iter_seek_before(it, key_str(&key));
	if (!(rc = store_iter_status(it, err)) && store_iter_valid(it) &&
		key_parse_row(store_iter_key(it), &found, &found_ns) && found == series)
		*out_ns = found_ns;
	store_iter_close(it);
	return rc;
}

enum err_code append_gap(struct window *w, struct series *s, struct db_append *copy,
	const struct db_append **a, struct err *err)
{
	int64_t ts_ns = (*a)->ts_ns, gap_max_ns = (*a)->gap_max_ns;
	int64_t last_ns = atomic_load(&s->last_ts_ns);
	enum err_code rc;

	if (gap_max_ns == 0)
		return ERR_OK;
	if ((last_ns == 0 || last_ns >= ts_ns) &&
		(rc = append_gap_row_before(w, s->id, ts_ns, &last_ns, err)))
		return rc;
	*copy = **a;
	if (last_ns > 0)
		copy->interval_ns = ts_ns - last_ns < gap_max_ns ? ts_ns - last_ns : gap_max_ns;
	*a = copy;
	return ERR_OK;
}
