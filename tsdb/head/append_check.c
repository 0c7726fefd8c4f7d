#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tsdb/head/append_internal.h"
#include "tsdb/head/head.h"

/* Checks that every append passes: labels, time, the database's state; and its memory. */

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
	int64_t from = db_accepts_from_ns(db), now = clock_now_ns(), system = clock_system_ns();
	enum err_code rc = ERR_OK;
	struct buf a = { 0 }, b = { 0 };

	if (ts_ns <= from) {
		time_print_rfc3339(&a, ts_ns);
		time_print_rfc3339(&b, from);
		rc = err_set(err, ERR_INVALID,
			"%s of " STR_FMT " is too old: %ss after " STR_FMT " are accepted", what,
			STR_ARG(buf_str(&a)), what, STR_ARG(buf_str(&b)));
	} else if (ts_ns > (system > now ? system : now) + DB_FUTURE_NS) {
		time_print_rfc3339(&a, ts_ns);
		rc = err_set(err, ERR_INVALID,
			"%s of " STR_FMT " is more than 10m ahead of this server's clock", what,
			STR_ARG(buf_str(&a)));
	}
	buf_release(&a);
	buf_release(&b);
	return rc;
}

/* What is sealed from ts_ns on; ts_ns: nothing is. */
static int64_t append_check_sealed_locked(const struct db *db, int64_t ts_ns)
{
	int64_t start = INT64_MIN, end = INT64_MAX;

	for (size_t i = 0; i < db->windows_n; i++) {
		const struct window *w = db->windows[i];

		if (w->sealed && w->start_ns < ts_ns && ts_ns <= w->end_ns)
			return w->end_ns + 1;
	}
	if (blocks_clip_locked(db, ts_ns, &start, &end))
		return ts_ns;
	for (size_t i = 0; i < db->unreadable_n; i++)
		if (db->unreadable[i].min_ns < ts_ns && ts_ns <= db->unreadable[i].max_ns)
			return db->unreadable[i].max_ns + 1;
	for (size_t i = 0; i < db->blocks_n; i++)
		if (block_meta(db->blocks[i]->block)->max_ns >= ts_ns)
			return block_meta(db->blocks[i]->block)->max_ns + 1;
	return ts_ns;
}

int64_t db_free_from(struct db *db, int64_t ts_ns)
{
	int64_t free_ns = ts_ns, next;

	mutex_lock(&db->lock);
	while ((next = append_check_sealed_locked(db, free_ns)) > free_ns) /* each block once */
		free_ns = next;
	for (size_t i = 0; i < db->windows_n && free_ns > ts_ns; i++) /* after the rows that follow */
		if (db->windows[i]->start_ns < free_ns && free_ns <= db->windows[i]->count.max_ns)
			free_ns = db->windows[i]->count.max_ns + 1;
	mutex_unlock(&db->lock);
	return free_ns;
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

/* ---- memory: an append that ends leaves its own to the next ---- */

struct scratch *scratch_take(struct db *db)
{
	struct scratch *s;

	mutex_lock(&db->lock);
	if ((s = db->scratch))
		db->scratch = s->next;
	mutex_unlock(&db->lock);
	if (!s && (s = calloc(1, sizeof(*s))))
		arena_init(&s->arena, DB_SCRATCH_BYTES_MAX);
	return s;
}

void scratch_put(struct db *db, struct scratch *s)
{
	arena_reset(&s->arena);
	buf_clear(&s->row);
	buf_clear(&s->there);
	buf_clear(&s->links);
	buf_clear(&s->record);
	mutex_lock(&db->lock);
	s->next = db->scratch;
	db->scratch = s;
	mutex_unlock(&db->lock);
}

void scratch_free_all(struct db *db)
{
	struct scratch *s;

	while ((s = db->scratch)) {
		db->scratch = s->next;
		arena_release(&s->arena);
		buf_release(&s->row);
		buf_release(&s->there);
		buf_release(&s->links);
		buf_release(&s->record);
		new_symbols_release(&s->new_symbols);
		free(s);
	}
}
