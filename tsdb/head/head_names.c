#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "base/log.h"
#include "tsdb/head/head_internal.h"
#include "tsdb/head/numbers.h"
#include "tsdb/lists/versions.h"

/*
 * head/<start>.names: a second copy of the small records of a window's store, which give its rows
 * their meaning. In the store one page or one log may have all of them; without them the window
 * could not be served, even if the rest is whole.
 *
 * A record is appended once the store has it, and is not synced: if a power cut removes it from the
 * file, the store still has it, and the next start makes the file anew. So every record in the file
 * was in the store; if the store lacks one at a start it was lost there and is put back.
 */
#define NAMES_BYTES_MAX (1u << 30)
#define HEAD_BYTES 17u

static const char kinds[] = { 'm', KEY_NUMBER_SERIES, 'p', 's', 't' }; /* ascending */
_Static_assert(KEY_NUMBER_SERIES > 'm' && KEY_NUMBER_SERIES < 'p', "kinds ascend");

static bool head_names_is_kept(struct str key)
{
	return key.len && memchr(kinds, key.ptr[0], sizeof(kinds));
}

static size_t head_names_kind_of(struct str key)
{
	return (size_t)((const char *)memchr(kinds, key.ptr[0], sizeof(kinds)) - kinds);
}

static uint64_t head_names_identity_of(struct str key, uint64_t identity)
{
	return key.len && key.ptr[0] == 'm' ? 0 : identity;
}

/* ---- reading ---- */

/* The record that begins at `at`; it was read before. */
static struct head_name head_names_of(const struct names_file *f, uint32_t at)
{
	struct cursor in = cursor_of((struct str){ f->records.ptr + at, f->records.len - at });
	struct head_name n;

	n.key = cursor_lenstr(&in);
	n.record = cursor_lenstr(&in);
	return n;
}

static struct str key_at(const struct names_file *f, uint32_t at)
{
	return head_names_of(f, at).key;
}

struct head_name head_names_at(const struct names_file *n, size_t i)
{
	return head_names_of(n, n->at[i]);
}

static void head_names_read_start(int64_t start_ns, struct str bytes, struct names_file *out)
{
	struct cursor in = cursor_of((struct str){ bytes.ptr + 1, HEAD_BYTES - 1 });
	uint64_t identity = cursor_u64be(&in);

	if (bytes.ptr[0] == NAMES_VERSION &&
		cursor_u64be(&in) == hash_bytes(bytes.ptr, HEAD_BYTES - 8, (uint64_t)start_ns)) {
		out->identity = identity;
		out->whole = true;
	}
}

/* Records of one kind, as they come in the file. */
struct kind_list {
	uint32_t *at;
	size_t n, cap;
	struct str last;
	bool descends; /* somewhere, or a key is there twice */
};

static enum err_code kind_list_record(
	struct kind_list *lists, struct str key, uint32_t at, struct err *err)
{
	struct kind_list *l = &lists[head_names_kind_of(key)];

	if (!array_room(&l->at, l->n, 1, &l->cap))
		return err_nomem(err, "window");
	l->descends |= l->n && str_cmp(l->last, key) >= 0;
	l->last = key;
	l->at[l->n++] = at;
	return ERR_OK;
}

/* Stops at the first damaged one, as its end is not known. */
static enum err_code head_names_read_records(
	struct names_file *out, struct kind_list *lists, struct err *err)
{
	struct cursor in = cursor_of(out->records);
	enum err_code rc = ERR_OK;
	struct head_name one;
	struct str value;

	while (in.at < in.end && !rc) {
		uint32_t at = (uint32_t)((const char *)in.at - out->records.ptr);

		one.key = cursor_lenstr(&in);
		one.record = cursor_lenstr(&in);
		if (in.bad || !head_names_is_kept(one.key) ||
			store_record_value(one.key, one.record, head_names_identity_of(one.key, out->identity),
				&value, NULL)) {
			out->whole = false;
			break;
		}
		rc = kind_list_record(lists, one.key, at, err);
	}
	return rc;
}

/* ---- in order ---- */

static size_t head_names_run_end(
	const struct names_file *f, const uint32_t *values, size_t i, size_t n)
{
	while (++i < n && str_cmp(key_at(f, values[i - 1]), key_at(f, values[i])) <= 0)
		;
	return i;
}

/* Two runs of value, [a, b) and [b, third), into one of out. Equal keys stay in the order of the
 * file. */
static void head_names_merge_runs(const struct names_file *f, const uint32_t *values, size_t a,
	size_t b, size_t third, uint32_t *out)
{
	size_t i = a, k = b;

	for (size_t o = a; o < third; o++)
		if (k == third || (i < b && str_cmp(key_at(f, values[i]), key_at(f, values[k])) <= 0))
			out[o] = values[i++];
		else
			out[o] = values[k++];
}

/* Records of a kind nearly ascend in the file: runs that do are found, and merged by pairs. */
static void head_names_sort_kind(
	const struct names_file *f, uint32_t *values, size_t n, uint32_t *spare)
{
	size_t a, b, c;

	while (head_names_run_end(f, values, 0, n) < n) {
		for (a = 0; a < n; a = c) {
			b = head_names_run_end(f, values, a, n);
			c = b < n ? head_names_run_end(f, values, b, n) : n;
			head_names_merge_runs(f, values, a, b < n ? b : n, c, spare);
		}
		memcpy(values, spare, n * sizeof(*values));
	}
}

/* Of records with one key the last in the file stays. */
static size_t head_names_drop_older(const struct names_file *f, uint32_t *values, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		kept -= kept && str_eq(key_at(f, values[kept - 1]), key_at(f, values[i]));
		values[kept++] = values[i];
	}
	return kept;
}

static enum err_code head_names_join_kinds(
	struct names_file *f, struct kind_list *lists, struct err *err)
{
	size_t n = 0;

	for (size_t k = 0; k < sizeof(kinds); k++)
		n += lists[k].n;
	if (!(f->at = malloc((n + 1) * sizeof(*f->at))))
		return err_nomem(err, "window");
	for (size_t k = 0; k < sizeof(kinds); k++) {
		struct kind_list *l = &lists[k];

		if (l->descends) {
			head_names_sort_kind(f, l->at, l->n, f->at + f->n);
			l->n = head_names_drop_older(f, l->at, l->n);
		}
		if (l->n)
			memcpy(f->at + f->n, l->at, l->n * sizeof(*f->at));
		f->n += l->n;
	}
	return ERR_OK;
}

enum err_code head_names_parse(
	int64_t start_ns, struct str bytes, struct names_file *out, struct err *err)
{
	struct kind_list lists[sizeof(kinds)] = { 0 };
	enum err_code rc;

	assert(bytes.len <= NAMES_BYTES_MAX);
	if (bytes.len < HEAD_BYTES)
		return ERR_OK;
	head_names_read_start(start_ns, bytes, out);
	if (!out->whole)
		return ERR_OK;
	out->records = (struct str){ bytes.ptr + HEAD_BYTES, bytes.len - HEAD_BYTES };
	if (!(rc = head_names_read_records(out, lists, err)))
		rc = head_names_join_kinds(out, lists, err);
	for (size_t k = 0; k < sizeof(kinds); k++)
		free(lists[k].at);
	return rc;
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
	free(n->at);
	buf_release(&n->bytes);
	*n = (struct names_file){ 0 };
}

/* The first record at or after the key. */
static size_t head_names_lower_bound(const struct names_file *n, struct str key)
{
	size_t from = 0, to = n->n;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (str_cmp(key_at(n, n->at[mid]), key) < 0)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

size_t head_names_first(const struct names_file *n, char kind)
{
	return head_names_lower_bound(n, (struct str){ &kind, 1 });
}

bool head_names_find(const struct names_file *n, struct str key, struct head_name *out)
{
	size_t i = head_names_lower_bound(n, key);

	if (i == n->n)
		return false;
	*out = head_names_at(n, i);
	return str_eq(out->key, key);
}

/* ---- writing ---- */

static void head_names_add_start(const struct window *w, struct buf *b)
{
	buf_add_char(b, NAMES_VERSION);
	buf_add_u64be(b, w->identity);
	buf_add_u64be(b, hash_bytes(b->ptr, b->len, (uint64_t)w->start_ns));
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
			head_names_add_start(w, &b);
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
static enum err_code head_names_make_anew(struct db *db, struct window *w, struct err *err)
{
	struct store_iter *it = store_iter_open(w->store, NULL);
	struct buf b = { 0 };
	enum err_code rc;

	if (!it)
		return err_nomem(err, "window");
	head_names_add_start(w, &b);
	for (size_t i = 0; i < sizeof(kinds); i++)
		for (store_iter_seek(it, (struct str){ &kinds[i], 1 }); store_iter_valid(it);
			 store_iter_next(it)) {
			struct str key = store_iter_key(it), record = store_iter_record(it), value;

			if (!key.len || key.ptr[0] != kinds[i])
				break;
			if (store_record_value(
					key, record, head_names_identity_of(key, w->identity), &value, NULL))
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
	struct names_healed *out;
	bool lacks; /* the file does */
};

static void head_names_put_back(struct healing *h, const struct head_name *n, const char *what)
{
	if (!h->out->why.code)
		err_set(&h->out->why, ERR_CORRUPT, "store %s: %s", h->w->dir, what);
	store_batch_put_record(h->batch, n->key, n->record);
	h->out->put++;
}

/* If the file has the same bytes their checksum was compared when it was read. */
static void head_names_compare_record(
	struct healing *h, struct str key, struct str record, const struct head_name *known)
{
	struct str value;

	if (known && h->names->identity == h->w->identity && str_eq(known->record, record))
		return;
	h->out->same = false;
	h->lacks |= !known;
	if (known &&
		store_record_value(key, record, head_names_identity_of(key, h->w->identity), &value, NULL))
		head_names_put_back(h, known, "a record's checksum is wrong");
}

static enum err_code head_names_compare(struct healing *h, char kind, struct err *err)
{
	struct store_iter *it = store_iter_open(h->w->store, NULL);
	const struct names_file *f = h->names;
	struct head_name n = { 0 };
	size_t i = head_names_first(f, kind);

	if (!it)
		return err_nomem(err, "window");
	for (store_iter_seek(it, (struct str){ &kind, 1 }); store_iter_valid(it); store_iter_next(it)) {
		struct str key = store_iter_key(it);
		int c = 1;

		if (!key.len || key.ptr[0] != kind)
			break;
		for (; i < f->n; i++) {
			n = head_names_at(f, i);
			if ((c = str_cmp(n.key, key)) >= 0)
				break;
			head_names_put_back(h, &n, "a record is missing");
		}
		head_names_compare_record(h, key, store_iter_record(it), i < f->n && c == 0 ? &n : NULL);
		i += i < f->n && c == 0;
	}
	for (; i < f->n; i++) {
		n = head_names_at(f, i);
		if (n.key.ptr[0] != kind)
			break;
		head_names_put_back(h, &n, "a record is missing");
	}
	if (!h->out->why.code)
		(void)!store_iter_status(it, &h->out->why);
	store_iter_close(it);
	return ERR_OK;
}

enum err_code head_names_heal(struct db *db, struct window *w, const struct names_file *n,
	struct names_healed *out, struct err *err)
{
	struct healing h = { .w = w, .names = n, .out = out };
	enum err_code rc = ERR_OK;

	*out = (struct names_healed){ .same = n->whole };
	if (!(h.batch = store_batch_open()))
		return err_nomem(err, "window");
	for (size_t i = 0; i < sizeof(kinds) && !rc; i++)
		rc = head_names_compare(&h, kinds[i], err);
	if (!rc && out->put)
		rc = store_write(w->store, h.batch, err);
	store_batch_close(h.batch);
	out->same &= !rc && !out->put && !out->why.code;
	if (rc || db->o.read_only || w->shadow || (n->whole && !h.lacks))
		return rc;
	return head_names_make_anew(db, w, err);
}
