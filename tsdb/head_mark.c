#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/metrics.h"
#include "tsdb/db_internal.h"

/*
 * head/<start>.acked: the number of a window's last acknowledged batch.
 *
 * The mark is for what LevelDB cannot tell: a log that was cut short opens without complaint. It is
 * written after the sync and before the acknowledgement, and not synced itself: what it may miss
 * after a power loss is its own last change, never can it claim more than was acknowledged.
 */
#define MARK_VERSION 1

METRIC_COUNTER(lost_rows, "epimetheus_tsdb_lost_rows_total",
	"Acknowledged rows that were missing when looked for.", NULL);

void head_count_lost(uint64_t acknowledged, uint64_t found)
{
	metric_add(&lost_rows, NULL, acknowledged > found ? (double)(acknowledged - found) : 0);
}

void head_encode_count(const struct window_count *c, struct buf *out)
{
	buf_add_varint(out, c->seq);
	buf_add_varint(out, c->rows);
	buf_add_varint(out, c->samples);
	buf_add_u64be(out, (uint64_t)c->min_ns);
	buf_add_u64be(out, (uint64_t)c->max_ns);
	if (c->numbers)
		buf_add_varint(out, c->numbers);
}

static void encode_mark(const struct window_count *c, struct buf *out)
{
	buf_add_char(out, MARK_VERSION);
	buf_add_u64be(out, c->seq);
	buf_add_u64be(out, c->rows);
	buf_add_u64be(out, hash_bytes(out->ptr, out->len, 0));
}

void head_write_mark(struct db *db, struct window *w, const struct window_count *c)
{
	struct fs *fs = db->o.fs;
	struct buf b = { 0 };
	struct err err;

	if (w->mark_fd < 0 &&
		fs->ops->open(fs, w->mark_path, O_RDWR | O_CREAT, 0644, &w->mark_fd, &err)) {
		w->mark_fd = -1;
		return;
	}
	encode_mark(c, &b);
	if (lseek(w->mark_fd, 0, SEEK_SET) != 0 ||
		fs->ops->write(fs, w->mark_fd, b.ptr, b.len, &err)) {
		/* A mark that lags says less, not something wrong. */
		close(w->mark_fd);
		w->mark_fd = -1;
	}
	buf_release(&b);
}

void head_check_mark(struct db *db, struct window *w)
{
	struct window_count mark = { 0 };
	struct buf b = { 0 };
	struct cursor in;
	struct err err;

	if (fs_read_file(w->mark_path, 4096, &b, &err) || b.len < 25 || b.ptr[0] != MARK_VERSION)
		goto out;
	in = cursor_of((struct str){ b.ptr + 1, 24 });
	mark.seq = cursor_u64be(&in);
	mark.rows = cursor_u64be(&in);
	if (cursor_u64be(&in) != hash_bytes(b.ptr, 17, 0) || mark.seq <= w->count.seq)
		goto out;
	err_set(&err, ERR_CORRUPT,
		"%" PRIu64 " batches with %" PRIu64 " rows were acknowledged and are missing",
		mark.seq - w->count.seq, mark.rows > w->count.rows ? mark.rows - w->count.rows : 0);
	head_count_lost(mark.rows, w->count.rows);
	db_damage(db, w, "lost rows", &err);
out:
	buf_release(&b);
}

