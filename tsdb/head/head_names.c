#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "base/log.h"
#include "tsdb/head/head_internal.h"
#include "tsdb/head/numbers.h"

/*
 * head/<start>.names: a second copy of the small records of a window's store, which give its rows
 * their meaning. In the store one page or one log may have all of them; without them the window
 * could not be served, even if the rest is whole.
 *
 * A record is appended once the store has it, and is not synced: if a power cut removes it from the
 * file, the store still has it, and the next start makes the file anew. So every record in the file
 * was in the store; if the store lacks one at a start it was lost there and is put back.
 */
#define NAMES_VERSION 1
#define NAMES_BYTES_MAX (1u << 30)
#define HEAD_BYTES 17u

static const char kinds[] = { 'm', KEY_NUMBER_SERIES, 'p', 's', 't' }; /* ascending */
_Static_assert(KEY_NUMBER_SERIES > 'm' && KEY_NUMBER_SERIES < 'p', "kinds ascend");

static bool is_kept(struct str key)
{
	return key.len && memchr(kinds, key.ptr[0], sizeof(kinds));
}

static uint64_t identity_of(struct str key, uint64_t identity)
{
	return key.len && key.ptr[0] == 'm' ? 0 : identity;
}

/* ---- reading ---- */

static int name_cmp(const void *a, const void *b)
{
	const struct name *x = a, *y = b;
	int c = str_cmp(x->key, y->key);

	return c ? c : x->order < y->order ? -1 : x->order > y->order;
}

static void read_head(int64_t start_ns, struct str bytes, struct names_file *out)
{
	struct cursor in = cursor_of((struct str){ bytes.ptr + 1, HEAD_BYTES - 1 });
	uint64_t identity = cursor_u64be(&in);

	if (bytes.ptr[0] == NAMES_VERSION &&
		cursor_u64be(&in) == hash_bytes(bytes.ptr, HEAD_BYTES - 8, (uint64_t)start_ns)) {
		out->identity = identity;
		out->whole = true;
	}
}

/* Stops at the first damaged one, as its end is not known. */
static enum err_code read_records(struct str bytes, struct names_file *out, struct err *err)
{
	struct cursor in = cursor_of(bytes);
	size_t cap = 0;
	struct str value;

	while (in.at < in.end) {
		struct name one = { .order = out->n };

		one.key = cursor_lenstr(&in);
		one.record = cursor_lenstr(&in);
		if (in.bad || !is_kept(one.key) ||
			store_record_value(
				one.key, one.record, identity_of(one.key, out->identity), &value, NULL)) {
			out->whole = false;
			break;
		}
		if (!array_room(&out->v, out->n, 1, &cap))
			return err_nomem(err, "window");
		out->v[out->n++] = one;
	}
	return ERR_OK;
}

enum err_code head_names_parse(
	int64_t start_ns, struct str bytes, struct names_file *out, struct err *err)
{
	enum err_code rc;
	size_t kept = 0;

	if (bytes.len < HEAD_BYTES)
		return ERR_OK;
	read_head(start_ns, bytes, out);
	if (!out->whole)
		return ERR_OK;
	bytes = (struct str){ bytes.ptr + HEAD_BYTES, bytes.len - HEAD_BYTES };
	if ((rc = read_records(bytes, out, err)))
		return rc;
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), name_cmp);
	for (size_t i = 0; i < out->n; i++) {
		if (kept && str_eq(out->v[kept - 1].key, out->v[i].key))
			kept--;
		out->v[kept++] = out->v[i];
	}
	out->n = kept;
	return ERR_OK;
}

enum err_code head_names_read(const struct window *w, struct names_file *out, struct err *err)
{
	enum err_code rc;

	*out = (struct names_file){ .there = fs_exists(w->names_path) };
	if (!out->there)
		return ERR_OK;
	if ((rc = fs_read_file(w->names_path, NAMES_BYTES_MAX, &out->bytes, err)))
		return rc == ERR_NOMEM ? rc : ERR_OK;
	return head_names_parse(w->start_ns, buf_str(&out->bytes), out, err);
}

void head_names_release(struct names_file *n)
{
	free(n->v);
	buf_release(&n->bytes);
	*n = (struct names_file){ 0 };
}

const struct name *head_names_find(const struct names_file *n, struct str key)
{
	size_t from = 0, to = n->n;

	while (from < to) {
		size_t mid = from + (to - from) / 2;
		int c = str_cmp(n->v[mid].key, key);

		if (c == 0)
			return &n->v[mid];
		if (c < 0)
			from = mid + 1;
		else
			to = mid;
	}
	return NULL;
}

/* ---- writing ---- */

static void add_head(const struct window *w, struct buf *b)
{
	buf_add_char(b, NAMES_VERSION);
	buf_add_u64be(b, w->identity);
	buf_add_u64be(b, hash_bytes(b->ptr, HEAD_BYTES - 8, (uint64_t)w->start_ns));
}

void head_names_append(struct db *db, struct window *w, struct str copies)
{
	struct fs *fs = db->o.fs;
	struct buf b = { 0 };
	struct err err;
	bool fresh;

	if (!copies.len || w->names_failed || db->o.read_only)
		return;
	if (w->names_fd < 0) {
		fresh = !fs_exists(w->names_path);
		if (fs->ops->open(fs, w->names_path, O_WRONLY | O_CREAT, 0644, &w->names_fd, &err)) {
			w->names_fd = -1;
			goto fail;
		}
		if (lseek(w->names_fd, 0, SEEK_END) < 0)
			goto fail;
		if (fresh)
			add_head(w, &b);
	}
	buf_add_str(&b, copies);
	if (!buf_failed(&b) && !fs->ops->write(fs, w->names_fd, b.ptr, b.len, &err)) {
		buf_release(&b);
		return;
	}
fail:
	/* The last record may be written by half. */
	log_warn("tsdb", "second copy of small records not written; the next start makes it anew",
		LOG_S("path", w->names_path));
	w->names_failed = true;
	buf_release(&b);
}

/* All of the store's, read once more. */
static enum err_code make_anew(struct db *db, struct window *w, struct err *err)
{
	struct store_iter *it = store_iter_open(w->store, NULL);
	struct buf b = { 0 };
	enum err_code rc;

	if (!it)
		return err_nomem(err, "window");
	add_head(w, &b);
	for (size_t i = 0; i < sizeof(kinds); i++)
		for (store_iter_seek(it, (struct str){ &kinds[i], 1 }); store_iter_valid(it);
			 store_iter_next(it)) {
			struct str key = store_iter_key(it), record = store_iter_record(it), value;

			if (!key.len || key.ptr[0] != kinds[i])
				break;
			if (store_record_value(key, record, identity_of(key, w->identity), &value, NULL))
				continue;
			buf_add_lenstr(&b, key);
			buf_add_lenstr(&b, record);
		}
	store_iter_close(it);
	rc = buf_failed(&b) ? err_nomem(err, "window") :
						  fs_write_file(db->o.fs, w->names_path, buf_str(&b), err);
	buf_release(&b);
	return rc;
}

/* ---- both ---- */

struct healing {
	struct window *w;
	const struct names_file *names;
	struct store_batch *batch;
	uint64_t put;
	bool lacks; /* the file does */
	struct err *why;
};

static void put_back(struct healing *h, const struct name *n, const char *what)
{
	if (!h->why->code)
		err_set(h->why, ERR_CORRUPT, "store %s: %s", h->w->dir, what);
	store_batch_put_record(h->batch, n->key, n->record);
	h->put++;
}

static enum err_code compare(struct healing *h, char kind, struct err *err)
{
	struct store_iter *it = store_iter_open(h->w->store, NULL);
	const struct names_file *n = h->names;
	struct str key, value;
	size_t i = 0;

	if (!it)
		return err_nomem(err, "window");
	while (i < n->n && n->v[i].key.ptr[0] < kind)
		i++;
	for (store_iter_seek(it, (struct str){ &kind, 1 }); store_iter_valid(it); store_iter_next(it)) {
		bool bad, known;

		key = store_iter_key(it);
		if (!key.len || key.ptr[0] != kind)
			break;
		for (; i < n->n && str_cmp(n->v[i].key, key) < 0; i++)
			put_back(h, &n->v[i], "a record is missing");
		known = i < n->n && str_eq(n->v[i].key, key);
		bad = store_record_value(key, store_iter_record(it), identity_of(key, h->w->identity),
				  &value, NULL) != ERR_OK;
		if (known && bad)
			put_back(h, &n->v[i], "a record's checksum is wrong");
		h->lacks |= !known;
		i += known;
	}
	for (; i < n->n && n->v[i].key.ptr[0] == kind; i++)
		put_back(h, &n->v[i], "a record is missing");
	if (!h->why->code)
		(void)!store_iter_status(it, h->why);
	store_iter_close(it);
	return ERR_OK;
}

enum err_code head_names_heal(struct db *db, struct window *w, const struct names_file *n,
	uint64_t *put, struct err *why, struct err *err)
{
	struct healing h = { .w = w, .names = n, .why = why };
	enum err_code rc = ERR_OK;

	*why = (struct err){ 0 };
	*put = 0;
	if (!(h.batch = store_batch_open()))
		return err_nomem(err, "window");
	for (size_t i = 0; i < sizeof(kinds) && !rc; i++)
		rc = compare(&h, kinds[i], err);
	if (!rc && h.put)
		rc = store_write(w->store, h.batch, err);
	store_batch_close(h.batch);
	*put = h.put;
	if (rc || db->o.read_only || w->shadow || (n->whole && !h.lacks))
		return rc;
	return make_anew(db, w, err);
}
