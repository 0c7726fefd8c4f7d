#include <fcntl.h>
#include <unistd.h>

#include "tsdb/head/head_internal.h"
#include "tsdb/lists/versions.h"

/*
 * head/<start>.acked: how much of a window was acknowledged.
 *
 * LevelDB opens a log that was cut short without an error; the mark shows that rows are missing. It
 * is written after the sync and before the acknowledgement, and not synced: after a power loss it
 * may lack its last change, but it never claims more than was acknowledged.
 */
#define MARK_ROWS_ONLY 1
#define MARK_BYTES_MAX 4096u

void head_encode_count(const struct window_count *c, struct buf *out)
{
	buf_add_varint(out, c->seq);
	buf_add_varint(out, c->rows);
	buf_add_varint(out, c->samples);
	buf_add_u64be(out, (uint64_t)c->min_ns);
	buf_add_u64be(out, (uint64_t)c->max_ns);
	if (c->numbers || c->symbols)
		buf_add_varint(out, c->numbers);
	if (c->symbols)
		buf_add_varint(out, c->symbols);
}

/* Always as long: a later one is written over it. */
static void head_mark_encode(const struct window *w, const struct window_count *c, struct buf *out)
{
	buf_add_char(out, MARK_VERSION);
	buf_add_u64be(out, w->identity);
	buf_add_u64be(out, c->seq);
	buf_add_u64be(out, c->rows);
	buf_add_u64be(out, c->samples);
	buf_add_u64be(out, c->numbers);
	buf_add_u64be(out, c->symbols);
	buf_add_u64be(out, (uint64_t)c->min_ns);
	buf_add_u64be(out, (uint64_t)c->max_ns);
	buf_add_u64be(out, hash_bytes(out->ptr, out->len, (uint64_t)w->start_ns));
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
	head_mark_encode(w, c, &b);
	if (lseek(w->mark_fd, 0, SEEK_SET) != 0 || fs->ops->write(fs, w->mark_fd, b.ptr, b.len, &err)) {
		/* A mark that lags says less, not something wrong. */
		close(w->mark_fd);
		w->mark_fd = -1;
	}
	buf_release(&b);
}

static bool head_mark_parse_rows_only(struct str bytes, struct head_mark *m)
{
	struct cursor in = cursor_of((struct str){ bytes.ptr + 1, bytes.len - 1 });

	m->rows_only = true;
	m->count.seq = cursor_u64be(&in);
	m->count.rows = cursor_u64be(&in);
	return cursor_u64be(&in) == hash_bytes(bytes.ptr, bytes.len < 17 ? 0 : 17, 0) && !in.bad;
}

static bool head_mark_parse(int64_t start_ns, struct str bytes, struct head_mark *m)
{
	struct cursor in = cursor_of((struct str){ bytes.ptr + 1, bytes.len - 1 });
	size_t hashed = 1 + 8 * 8;

	m->identity = cursor_u64be(&in);
	m->count.seq = cursor_u64be(&in);
	m->count.rows = cursor_u64be(&in);
	m->count.samples = cursor_u64be(&in);
	m->count.numbers = cursor_u64be(&in);
	m->count.symbols = cursor_u64be(&in);
	m->count.min_ns = (int64_t)cursor_u64be(&in);
	m->count.max_ns = (int64_t)cursor_u64be(&in);
	return bytes.ptr[0] == MARK_VERSION && bytes.len >= hashed &&
		cursor_u64be(&in) == hash_bytes(bytes.ptr, hashed, (uint64_t)start_ns) && !in.bad;
}

bool head_parse_mark(int64_t start_ns, struct str bytes, struct head_mark *out)
{
	struct head_mark m = { .there = true, .whole = true };

	if (!bytes.len ||
		!(bytes.ptr[0] == MARK_ROWS_ONLY ? head_mark_parse_rows_only(bytes, &m) :
										   head_mark_parse(start_ns, bytes, &m)))
		return false;
	*out = m;
	return true;
}

void head_read_mark(const struct window *w, struct head_mark *out)
{
	struct buf b = { 0 };

	*out = (struct head_mark){ .there = fs_exists(w->mark_path) };
	if (!fs_read_file(w->mark_path, MARK_BYTES_MAX, &b, NULL))
		(void)head_parse_mark(w->start_ns, buf_str(&b), out);
	buf_release(&b);
}
