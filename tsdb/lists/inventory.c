#include "tsdb/lists/inventory.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "base/log.h"
#include "base/map.h"
#include "base/thread.h"
#include "tsdb/lists/versions.h"
#include "tsdb/store/store.h"

/*
 * A file: version (byte), length of what follows (be32), generation (be64), number of entries
 * (varint), entries, XXH3 of all before (be64); then zeros, room for more. Both files have the
 * number of the change: after a crash between the two the higher one counts.
 */
#define HEAD_BYTES 5u
#define FILE_BYTES_MAX (64u << 20)
#define STEP_BYTES 4096u
#define COPIES 2u

enum { ENTRY_BLOCK = 1, ENTRY_RAW = 2, ENTRY_DELETED = 4 };

static const char *const names[COPIES] = { "inventory", "inventory.copy" };

struct inventory {
	struct fs *fs;
	bool read_only;
	char *paths[COPIES];
	struct mutex lock; /* guards the rest, and is held while the files are written */
	struct inventory_entry *v; /* in order */
	size_t n, cap;
	uint64_t generation;
	uint64_t room[COPIES]; /* bytes of the files; 0: to be made anew */
	bool ours[COPIES]; /* this process synced the content of the file */
	bool dirty; /* the files do not say the same */
	size_t first; /* the file to write first: the other one is whole */
};

/* ---- entries ---- */

static int inventory_entry_cmp(const struct inventory_entry *a, const struct inventory_entry *b)
{
	int c = strcmp(a->ulid.text, b->ulid.text);

	if (c || a->ulid.text[0])
		return c;
	return a->min_ns < b->min_ns ? -1 : a->min_ns > b->min_ns;
}

/* The index of the entry, or the one it would be inserted at. */
static size_t inventory_place_of(
	const struct inventory *inventory, const struct inventory_entry *e, bool *there)
{
	size_t from = 0, to = inventory->n;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (inventory_entry_cmp(&inventory->v[mid], e) < 0)
			from = mid + 1;
		else
			to = mid;
	}
	*there = from < inventory->n && inventory_entry_cmp(&inventory->v[from], e) == 0;
	return from;
}

static void inventory_take_out(struct inventory *inventory, const struct inventory_entry *e)
{
	bool there;
	size_t at = inventory_place_of(inventory, e, &there);

	if (!there)
		return;
	inventory->n--;
	memmove(inventory->v + at, inventory->v + at + 1, (inventory->n - at) * sizeof(*inventory->v));
	inventory->dirty = true;
}

/* The array has room. */
static void inventory_put_in(struct inventory *inventory, const struct inventory_entry *e)
{
	bool there;
	size_t at = inventory_place_of(inventory, e, &there);

	if (!there) {
		memmove(
			inventory->v + at + 1, inventory->v + at, (inventory->n - at) * sizeof(*inventory->v));
		inventory->n++;
	}
	inventory->v[at] = *e;
	inventory->dirty = true;
}

static bool inventory_reserve(struct inventory *inventory, size_t more)
{
	return array_room(&inventory->v, inventory->n, more, &inventory->cap);
}

struct inventory_entry inventory_of_block(const struct block_meta *m, bool deleted)
{
	return (struct inventory_entry){ m->ulid, m->min_ns, m->max_ns, m->raw, deleted };
}

/* ---- bytes ---- */

void inventory_encode(
	uint64_t generation, const struct inventory_entry *entries, size_t n, struct buf *out)
{
	struct buf body = { 0 };

	buf_add_u64be(&body, generation);
	buf_add_varint(&body, n);
	for (size_t i = 0; i < n; i++) {
		const struct inventory_entry *e = &entries[i];
		bool block = e->ulid.text[0] != '\0';

		buf_add_char(&body,
			(char)((block ? ENTRY_BLOCK : 0) | (e->raw ? ENTRY_RAW : 0) |
				(e->deleted ? ENTRY_DELETED : 0)));
		buf_add_cstr(&body, e->ulid.text);
		buf_add_varint(&body, str_zigzag(e->min_ns));
		buf_add_varint(&body, (uint64_t)e->max_ns - (uint64_t)e->min_ns);
	}
	buf_clear(out);
	buf_add_char(out, INVENTORY_VERSION);
	buf_add_u32be(out, (uint32_t)body.len);
	buf_add_str(out, buf_str(&body));
	buf_add_u64be(out, hash_bytes(out->ptr, out->len, 0));
	out->failed |= body.failed;
	buf_release(&body);
}

static bool inventory_read_entry(struct cursor *in, struct inventory_entry *e)
{
	struct str flags = cursor_bytes(in, 1);
	unsigned f = flags.len ? (unsigned char)flags.ptr[0] : 0xff;
	uint64_t length;

	*e = (struct inventory_entry){ .raw = f & ENTRY_RAW, .deleted = f & ENTRY_DELETED };
	if (f & ~(unsigned)(ENTRY_BLOCK | ENTRY_RAW | ENTRY_DELETED))
		return false;
	if (f & ENTRY_BLOCK && !ulid_parse(cursor_bytes(in, ULID_LEN), &e->ulid))
		return false;
	e->min_ns = str_unzigzag(cursor_varint(in));
	length = cursor_varint(in);
	if (in->bad || e->min_ns < 0 || length > (uint64_t)INT64_MAX - (uint64_t)e->min_ns)
		return false;
	e->max_ns = e->min_ns + (int64_t)length;
	return true;
}

static enum err_code inventory_bad(const char *path, const char *what, struct err *err)
{
	return err_set(err, ERR_CORRUPT, "%s: %s", path, what);
}

enum err_code inventory_decode(struct str bytes, const char *path, struct arena *a,
	uint64_t *generation, struct inventory_entry **entries, size_t *n, struct err *err)
{
	struct cursor in = cursor_of(bytes), sum;
	struct str version = cursor_bytes(&in, 1);
	uint32_t length = cursor_u32be(&in);
	struct inventory_entry *v;
	uint64_t count;

	if (in.bad || length > cursor_left(&in) || cursor_left(&in) - length < 8)
		return inventory_bad(path, "it is cut short", err);
	sum = cursor_of((struct str){ bytes.ptr + HEAD_BYTES + length, 8 });
	if (cursor_u64be(&sum) != hash_bytes(bytes.ptr, HEAD_BYTES + length, 0))
		return inventory_bad(path, "its checksum is wrong", err);
	if ((unsigned char)version.ptr[0] > INVENTORY_VERSION)
		return versions_refuse(path, (unsigned char)version.ptr[0], INVENTORY_VERSION, err);
	if (version.ptr[0] != INVENTORY_VERSION)
		return inventory_bad(path, "its version is wrong", err);
	in = cursor_of((struct str){ bytes.ptr + HEAD_BYTES, length });
	*generation = cursor_u64be(&in);
	count = cursor_varint(&in);
	if (in.bad || count > INVENTORY_MAX || count > cursor_left(&in) / 3)
		return inventory_bad(path, "it cannot have so many entries", err);
	if (!(v = arena_array(a, struct inventory_entry, count + 1)))
		return arena_fail(a, "inventory", err);
	for (uint64_t i = 0; i < count; i++)
		if (!inventory_read_entry(&in, &v[i]) || (i && inventory_entry_cmp(&v[i - 1], &v[i]) >= 0))
			return inventory_bad(path, "an entry is wrong", err);
	if (cursor_left(&in))
		return inventory_bad(path, "bytes are left over", err);
	*entries = v;
	*n = (size_t)count;
	return ERR_OK;
}

/* ---- files ---- */

/* Overwrites the file in place: the room is there, however full the disk is. */
static enum err_code inventory_overwrite(
	struct fs *fs, const char *path, struct str content, struct err *err)
{
	enum err_code rc;
	int fd;

	if ((rc = fs->ops->open(fs, path, O_WRONLY, 0, &fd, err)))
		return rc;
	if (!(rc = fs->ops->write(fs, fd, content.ptr, content.len, err)))
		rc = fs->ops->sync(fs, fd, err);
	close(fd);
	return rc;
}

static bool inventory_pad(struct buf *b, uint64_t to)
{
	while (b->len < to && !buf_failed(b))
		buf_add_char(b, '\0');
	return !buf_failed(b);
}

/*
 * What is read at the start may be only in the page cache: the sync of the process before may have
 * failed, and nothing tells. So the first write makes a new file beside each, which harms neither,
 * unless the disk has no room.
 */
static enum err_code inventory_write_copy(
	struct inventory *inventory, size_t i, struct buf *b, uint64_t want, struct err *err)
{
	bool fits = b->len <= inventory->room[i];
	size_t len = b->len;
	enum err_code rc;

	if (fits && inventory->ours[i])
		return inventory_overwrite(inventory->fs, inventory->paths[i], buf_str(b), err);
	if (!inventory_pad(b, want))
		return err_nomem(err, "inventory");
	rc = fs_write_file(inventory->fs, inventory->paths[i], buf_str(b), err);
	b->len = len;
	if (!rc)
		inventory->room[i] = want;
	else if (fits && store_is_full(err))
		rc = inventory_overwrite(inventory->fs, inventory->paths[i], buf_str(b), err);
	inventory->ours[i] |= !rc;
	return rc;
}

/*
 * Stops at the first failure; the next call begins with the file that failed. So one of the two is
 * always whole. An even generation was written to file 0 first, an odd one to file 1: so the next
 * process knows which was synced before the other was begun.
 */
static enum err_code catalog_inventory_save(struct inventory *inventory, struct err *err)
{
	struct buf b = { 0 };
	enum err_code rc = ERR_OK;
	uint64_t want;

	if (inventory->read_only || !inventory->dirty)
		return ERR_OK;
	inventory->generation += (inventory->generation + 1) % COPIES == inventory->first ? 1 : 2;
	inventory_encode(inventory->generation, inventory->v, inventory->n, &b);
	want = (b.len * 2 + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
	if (buf_failed(&b) || inventory->n > INVENTORY_MAX)
		rc = err_nomem(err, "inventory");
	for (size_t k = 0, i = inventory->first; k < COPIES && !rc; k++, i = (i + 1) % COPIES) {
		inventory->first = i;
		rc = inventory_write_copy(inventory, i, &b, want, err);
	}
	buf_release(&b);
	inventory->dirty = rc != ERR_OK;
	return rc ? err_wrap(err, rc, "write the inventory") : ERR_OK;
}

enum err_code inventory_save(struct inventory *inventory, struct err *err)
{
	enum err_code rc;

	mutex_lock(&inventory->lock);
	rc = catalog_inventory_save(inventory, err);
	mutex_unlock(&inventory->lock);
	return rc;
}

enum err_code inventory_change(
	struct inventory *inventory, const struct inventory_change *c, struct err *err)
{
	enum err_code rc;

	mutex_lock(&inventory->lock);
	if (inventory_reserve(inventory, c->in_n)) {
		for (size_t i = 0; i < c->out_n; i++)
			inventory_take_out(inventory, &c->out[i]);
		for (size_t i = 0; i < c->in_n; i++)
			inventory_put_in(inventory, &c->in[i]);
		rc = catalog_inventory_save(inventory, err);
	} else {
		rc = err_nomem(err, "inventory");
	}
	mutex_unlock(&inventory->lock);
	return rc;
}

/* ---- opening ---- */

struct inventory_copy {
	struct inventory_entry *v;
	size_t n;
	uint64_t generation;
	bool there, read;
};

static enum err_code inventory_read_copy(struct inventory *inventory, size_t i, struct arena *a,
	struct inventory_copy *out, struct err *err)
{
	struct buf b = { 0 };
	struct err why;
	enum err_code rc;

	rc = fs_read_file(inventory->paths[i], FILE_BYTES_MAX, &b, &why);
	out->there = rc != ERR_NOT_FOUND;
	if (!rc)
		rc = inventory_decode(
			buf_str(&b), inventory->paths[i], a, &out->generation, &out->v, &out->n, &why);
	out->read = rc == ERR_OK;
	if (out->read)
		inventory->room[i] = b.len;
	buf_release(&b);
	if (rc == ERR_NOMEM || rc == ERR_UNSUPPORTED)
		return err_copy(err, &why);
	if (rc && out->there)
		log_error("tsdb", "a copy of the inventory cannot be read", LOG_E(&why));
	return ERR_OK;
}

static enum err_code inventory_load(
	struct inventory *inventory, enum inventory_found *found, struct err *err)
{
	struct inventory_copy copies[COPIES] = { 0 };
	const struct inventory_copy *best = NULL;
	enum err_code rc = ERR_OK;
	struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < COPIES && !rc; i++) {
		if ((rc = inventory_read_copy(inventory, i, &a, &copies[i], err)))
			break;
		if (copies[i].read && (!best || copies[i].generation > best->generation))
			best = &copies[i];
	}
	*found = best                          ? INVENTORY_READ :
		copies[0].there || copies[1].there ? INVENTORY_LOST :
											 INVENTORY_NONE;
	inventory->dirty = !copies[0].read || !copies[1].read ||
		copies[0].generation != copies[1].generation;
	/* The older one of two was synced before the newer one was begun. */
	if (!inventory->dirty)
		inventory->first = (copies[0].generation + 1) % COPIES;
	else
		inventory->first = copies[0].read &&
			(!copies[1].read || copies[0].generation < copies[1].generation);
	if (!rc && best) {
		inventory->generation = best->generation;
		if (!inventory_reserve(inventory, best->n))
			rc = err_nomem(err, "inventory");
		else if (best->n)
			memcpy(inventory->v, best->v, best->n * sizeof(*inventory->v));
		inventory->n = rc ? 0 : best->n;
	}
	arena_release(&a);
	return rc;
}

static struct inventory *inventory_make(struct fs *fs, const char *dir, bool read_only)
{
	struct inventory *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	mutex_init(&v->lock);
	v->fs = fs;
	v->read_only = read_only;
	v->dirty = true;
	for (size_t i = 0; i < COPIES; i++)
		if (asprintf(&v->paths[i], "%s/%s", dir, names[i]) < 0) {
			v->paths[i] = NULL;
			inventory_close(v);
			return NULL;
		}
	return v;
}

enum err_code inventory_open(struct fs *fs, const char *dir, bool read_only, struct inventory **out,
	enum inventory_found *found, struct err *err)
{
	struct inventory *v = inventory_make(fs, dir, read_only);
	enum err_code rc;

	if (!v)
		return err_nomem(err, "inventory");
	if ((rc = inventory_load(v, found, err)))
		inventory_close(v);
	else
		*out = v;
	return rc;
}

void inventory_close(struct inventory *inventory)
{
	if (!inventory)
		return;
	for (size_t i = 0; i < COPIES; i++)
		free(inventory->paths[i]);
	free(inventory->v);
	mutex_destroy(&inventory->lock);
	free(inventory);
}

enum err_code inventory_write(struct fs *fs, const char *dir, const struct inventory_entry *entries,
	size_t n, struct err *err)
{
	struct inventory *v = inventory_make(fs, dir, false);
	enum err_code rc;

	if (!v)
		return err_nomem(err, "inventory");
	rc = inventory_change(v, &(struct inventory_change){ .in = entries, .in_n = n }, err);
	inventory_close(v);
	return rc;
}

/* ---- what it says ---- */

enum err_code inventory_list(struct inventory *inventory, struct arena *a,
	struct inventory_entry **out, size_t *n, struct err *err)
{
	mutex_lock(&inventory->lock);
	if ((*out = arena_array(a, struct inventory_entry, inventory->n + 1)) && inventory->n)
		memcpy(*out, inventory->v, inventory->n * sizeof(**out));
	*n = inventory->n;
	mutex_unlock(&inventory->lock);
	return *out ? ERR_OK : arena_fail(a, "inventory", err);
}

bool inventory_find(
	struct inventory *inventory, const struct inventory_entry *e, struct inventory_entry *out)
{
	bool there;
	size_t at;

	mutex_lock(&inventory->lock);
	at = inventory_place_of(inventory, e, &there);
	if (there)
		*out = inventory->v[at];
	mutex_unlock(&inventory->lock);
	return there;
}

uint64_t inventory_generation(struct inventory *inventory)
{
	uint64_t generation;

	mutex_lock(&inventory->lock);
	generation = inventory->generation;
	mutex_unlock(&inventory->lock);
	return generation;
}
