#include <assert.h>

#include "base/clock.h"
#include "tsdb/head/append_internal.h"

/* Checks that every append passes: labels, time, the database's state. */

enum err_code append_check_labels(struct labels labels, const char *what, struct err *err)
{
	size_t bytes = 0;

	assert(labels_are_set(labels));
	if (!labels_has(labels, STR(LABEL_NAME)))
		return err_set(err, ERR_INVALID, "a %s needs the label " LABEL_NAME, what);
	if (labels.n > SERIES_LABELS_MAX)
		return err_set(
			err, ERR_LIMIT, "series has %zu labels, limit %u", labels.n, SERIES_LABELS_MAX);
	for (size_t i = 0; i < labels.n; i++)
		bytes += labels.v[i].name.len + labels.v[i].value.len;
	if (bytes > SERIES_LABEL_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "labels of the series are %zu bytes, limit %u", bytes,
			SERIES_LABEL_BYTES_MAX);
	return ERR_OK;
}

enum err_code append_check_time(struct db *db, int64_t ts_ns, const char *what, struct err *err)
{
	int64_t newest = atomic_load(&db->max_ts_ns),
			start = (newest - 1) / db->o.window_ns * db->o.window_ns;
	enum err_code rc = ERR_OK;
	struct buf a = { 0 }, b = { 0 };

	if (newest && ts_ns <= start && start - ts_ns >= db->o.too_old_ns) {
		time_print_rfc3339(&a, ts_ns);
		time_print_rfc3339(&b, start - db->o.too_old_ns);
		rc = err_set(err, ERR_INVALID,
			"%s of " STR_FMT " is too old: %ss after " STR_FMT " are taken", what,
			STR_ARG(buf_str(&a)), what, STR_ARG(buf_str(&b)));
	} else if (ts_ns > clock_now_ns() + DB_FUTURE_NS) {
		time_print_rfc3339(&a, ts_ns);
		rc = err_set(err, ERR_INVALID,
			"%s of " STR_FMT " is more than 10m ahead of this server's clock", what,
			STR_ARG(buf_str(&a)));
	}
	buf_release(&a);
	buf_release(&b);
	return rc;
}

enum err_code append_check_state(struct db *db, struct err *err)
{
	enum err_code rc = ERR_OK;

	mutex_lock(&db->lock);
	if (db->closing)
		rc = err_set(err, ERR_UNAVAILABLE, "the database is closing");
	else if (db->state != DB_READY)
		rc = err_set(err, ERR_UNAVAILABLE, "%s", db->why.msg);
	mutex_unlock(&db->lock);
	return rc;
}
