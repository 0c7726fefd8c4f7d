#include "tsdb/db.h"
#include "tsdb/head/head.h"

/* Lists blocks and windows, for people. */

static void of_block(const struct db_block *b, struct db_block_status *out)
{
	const struct block_meta *m = block_meta(b->block);

	*out = (struct db_block_status){ .min_ns = m->min_ns,
		.max_ns = m->max_ns,
		.level = m->level,
		.series = m->series,
		.rows = m->rows,
		.samples = m->samples,
		.numbers = m->numbers,
		.bytes = block_disk_bytes(b->block),
		.raw = block_has_raw(b->block),
		.damaged = b->damaged };
	memcpy(out->ulid, m->ulid.text, sizeof(out->ulid));
}

/* Its series and files are counted without db->lock. */
static void of_window(struct db *db, const struct window *w, struct db_block_status *out)
{
	series_lock_read(db->series);
	for (size_t i = 0; i < w->series.words; i++)
		out->series += (uint64_t)__builtin_popcountll(w->series.w[i]);
	series_unlock(db->series);
	out->bytes = head_disk_bytes(db, w);
}

enum err_code db_list(
	struct db *db, struct arena *a, struct db_block_status **out, size_t *n, struct err *err)
{
	struct window **windows;
	size_t *at, windows_n = 0, blocks = 0, heads = 0;

	mutex_lock(&db->lock);
	*n = db->blocks_n + db->windows_n;
	*out = arena_array(a, struct db_block_status, *n + 1);
	windows = arena_array(a, struct window *, db->windows_n + 1);
	at = arena_array(a, size_t, db->windows_n + 1);
	if (!*out || !windows || !at) {
		mutex_unlock(&db->lock);
		return arena_fail(a, "list", err);
	}
	for (size_t i = 0; i < *n; i++) {
		struct window *w = heads < db->windows_n ? db->windows[heads] : NULL;
		struct db_block *b = blocks < db->blocks_n ? db->blocks[blocks] : NULL;

		if (b && (!w || block_meta(b->block)->min_ns < w->start_ns)) {
			of_block(b, &(*out)[i]);
			blocks++;
			continue;
		}
		(*out)[i] = (struct db_block_status){ .min_ns = w->start_ns,
			.max_ns = w->end_ns,
			.rows = w->count.rows,
			.samples = w->count.samples,
			.numbers = w->count.numbers,
			.raw = true,
			.damaged = w->damaged };
		w->pins++;
		windows[windows_n] = w;
		at[windows_n++] = i;
		heads++;
	}
	mutex_unlock(&db->lock);
	for (size_t i = 0; i < windows_n; i++) {
		of_window(db, windows[i], &(*out)[at[i]]);
		head_unpin(db, windows[i]);
	}
	return ERR_OK;
}
