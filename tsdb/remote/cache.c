#include "tsdb/remote/cache.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/map.h"
#include "base/thread.h"

#define ENTRY_MAGIC 0x31434245u /* "EBC1" */
#define NONE UINT32_MAX
#define ROOM_EVERY 16u /* slots that are added between two looks at the free space */
#define SLOTS_MAX (UINT32_MAX / 2)

enum kind { LARGE, STAYS, KINDS };

/* On disk, in the machine's byte order: the file does not leave it. */
struct cache_entry {
	uint32_t magic;
	uint32_t kind;
	uint64_t object[2];
	uint32_t number, len;
	uint64_t etag;
	uint64_t hash; /* XXH3 of the page's bytes */
	uint64_t sum; /* XXH3 of what is before */
};

struct cache_slot {
	struct cache_entry e;
	uint32_t next; /* in its chain, or of the free ones */
	uint32_t newer, older;
	uint32_t users; /* that read or write it; while there are any it stays */
	bool used; /* in the table and the list of its kind */
};

struct cache_list {
	uint32_t newest, oldest, n;
};

struct cache {
	struct cache_options o;
	char *dir;
	int pages, index, lock_file;
	struct mutex lock; /* guards what is below */
	struct cache_slot *slots;
	uint32_t slots_n, slots_cap, slots_max;
	uint32_t room; /* slots that may be added before looking at the free space again */
	uint32_t *chains;
	size_t mask;
	uint32_t free; /* first free slot */
	struct cache_list lists[KINDS];
	int64_t off_until_ns;
	struct err off;
	uint64_t damaged;
};

/* ---- table and lists ---- */

static size_t cache_chain_of(const struct cache *c, const uint64_t object[2], uint32_t number)
{
	return map_hash_u64(object[0] + number) & c->mask;
}

static bool cache_slot_is_page(
	const struct cache_slot *s, const uint64_t object[2], uint32_t number)
{
	return s->e.number == number && s->e.object[0] == object[0] && s->e.object[1] == object[1];
}

static uint32_t cache_find(const struct cache *c, const uint64_t object[2], uint32_t number)
{
	uint32_t i = c->chains[cache_chain_of(c, object, number)];

	while (i != NONE && !cache_slot_is_page(&c->slots[i], object, number))
		i = c->slots[i].next;
	return i;
}

static void cache_link_newest(struct cache *c, uint32_t i)
{
	struct cache_slot *s = &c->slots[i];
	struct cache_list *l = &c->lists[s->e.kind];

	s->newer = NONE;
	s->older = l->newest;
	if (l->newest != NONE)
		c->slots[l->newest].newer = i;
	else
		l->oldest = i;
	l->newest = i;
	l->n++;
}

static void cache_unlink_slot(struct cache *c, uint32_t i)
{
	struct cache_slot *s = &c->slots[i];
	struct cache_list *l = &c->lists[s->e.kind];

	if (s->newer != NONE)
		c->slots[s->newer].older = s->older;
	else
		l->newest = s->older;
	if (s->older != NONE)
		c->slots[s->older].newer = s->newer;
	else
		l->oldest = s->newer;
	l->n--;
}

static void cache_enter(struct cache *c, uint32_t i)
{
	struct cache_slot *s = &c->slots[i];
	uint32_t *chain = &c->chains[cache_chain_of(c, s->e.object, s->e.number)];

	s->next = *chain;
	*chain = i;
	s->used = true;
	cache_link_newest(c, i);
}

static void cache_leave(struct cache *c, uint32_t i)
{
	struct cache_slot *s = &c->slots[i];
	uint32_t *at = &c->chains[cache_chain_of(c, s->e.object, s->e.number)];

	assert(s->used);
	while (*at != i)
		at = &c->slots[*at].next;
	*at = s->next;
	s->used = false;
	cache_unlink_slot(c, i);
}

static void cache_put_free(struct cache *c, uint32_t i)
{
	c->slots[i].next = c->free;
	c->free = i;
}

/* ---- opening ---- */

static uint64_t cache_entry_sum_of(const struct cache_entry *e)
{
	return XXH3_64bits(e, offsetof(struct cache_entry, sum));
}

static bool cache_is_entry(const struct cache *c, const struct cache_entry *e)
{
	return e->magic == ENTRY_MAGIC && e->sum == cache_entry_sum_of(e) && e->kind < KINDS &&
		e->len && e->len <= REMOTE_PAGE_BYTES && cache_find(c, e->object, e->number) == NONE;
}

/* Reads the index. Slots beyond the size that is configured now are cut off. */
static enum err_code cache_load(struct cache *c, struct err *err)
{
	struct stat st;
	uint64_t n;

	if (fstat(c->index, &st))
		return err_errno(err, errno, "%s/index", c->dir);
	n = (uint64_t)st.st_size / sizeof(struct cache_entry);
	n = n < c->slots_max ? n : c->slots_max;
	if (ftruncate(c->index, (off_t)(n * sizeof(struct cache_entry))))
		return err_errno(err, errno, "%s/index", c->dir);
	if (fstat(c->pages, &st))
		return err_errno(err, errno, "%s/pages", c->dir);
	if ((uint64_t)st.st_size > n * REMOTE_PAGE_BYTES &&
		ftruncate(c->pages, (off_t)(n * REMOTE_PAGE_BYTES)))
		return err_errno(err, errno, "%s/pages", c->dir);
	if (!array_room(&c->slots, 0, n + 1, &c->slots_cap))
		return err_nomem(err, "cache");
	for (; c->slots_n < n; c->slots_n++) {
		struct cache_slot *s = &c->slots[c->slots_n];
		ssize_t got;

		*s = (struct cache_slot){ 0 };
		got = pread(c->index, &s->e, sizeof(s->e), (off_t)(c->slots_n * sizeof(s->e)));
		if (got == (ssize_t)sizeof(s->e) && cache_is_entry(c, &s->e))
			cache_enter(c, c->slots_n);
		else
			cache_put_free(c, c->slots_n);
	}
	return ERR_OK;
}

static enum err_code cache_open_file(
	const struct cache *c, const char *name, int *fd, struct err *err)
{
	char path[4096];

	if (snprintf(path, sizeof(path), "%s/%s", c->dir, name) >= (int)sizeof(path))
		return err_set(err, ERR_INVALID, "%s: the path is too long", c->dir);
	*fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	return *fd < 0 ? err_errno(err, errno, "%s", path) : ERR_OK;
}

static enum err_code cache_open_files(struct cache *c, struct err *err)
{
	char path[4096];
	enum err_code rc;

	if (snprintf(path, sizeof(path), "%s/lock", c->dir) >= (int)sizeof(path))
		return err_set(err, ERR_INVALID, "%s: the path is too long", c->dir);
	if ((rc = fs_mkdir_all(&fs_posix, c->dir, err)))
		return rc;
	if ((rc = fs_lock(path, &c->lock_file, err)))
		return rc == ERR_UNAVAILABLE ?
			err_set(err, rc, "%s is the cache of another process", c->dir) :
			rc;
	if ((rc = cache_open_file(c, "pages", &c->pages, err)))
		return rc;
	return cache_open_file(c, "index", &c->index, err);
}

enum err_code cache_open(const struct cache_options *o, struct cache **out, struct err *err)
{
	struct cache *d = calloc(1, sizeof(*d));
	uint64_t slots = o->bytes / (REMOTE_PAGE_BYTES + sizeof(struct cache_entry));
	enum err_code rc;
	size_t chains = 1024;

	if (!d)
		return err_nomem(err, "cache");
	mutex_init(&d->lock);
	d->o = *o;
	d->pages = d->index = d->lock_file = -1;
	d->free = NONE;
	for (size_t i = 0; i < KINDS; i++)
		d->lists[i] = (struct cache_list){ NONE, NONE, 0 };
	d->slots_max = slots > SLOTS_MAX ? SLOTS_MAX : slots ? (uint32_t)slots : 1;
	while (chains < d->slots_max)
		chains *= 2;
	d->mask = chains - 1;
	d->dir = strdup(o->dir);
	if (!d->dir || !(d->chains = malloc(chains * sizeof(*d->chains)))) {
		rc = err_nomem(err, "cache");
		goto fail;
	}
	memset(d->chains, 0xff, chains * sizeof(*d->chains)); /* NONE */
	if ((rc = cache_open_files(d, err)) || (rc = cache_load(d, err)))
		goto fail;
	*out = d;
	return ERR_OK;
fail:
	cache_close(d);
	return err_wrap(err, rc, "bucket cache");
}

void cache_close(struct cache *c)
{
	if (!c)
		return;
	if (c->pages >= 0)
		close(c->pages);
	if (c->index >= 0)
		close(c->index);
	if (c->lock_file >= 0)
		fs_unlock(c->lock_file);
	free(c->slots);
	free(c->chains);
	free(c->dir);
	mutex_destroy(&c->lock);
	free(c);
}

/* ---- reading ---- */

bool cache_has(struct cache *c, const uint64_t object[2], uint32_t number)
{
	bool has;

	if (!c)
		return false;
	mutex_lock(&c->lock);
	has = cache_find(c, object, number) != NONE;
	mutex_unlock(&c->lock);
	return has;
}

static bool cache_read_slot(struct cache *c, uint32_t i, const struct cache_entry *e, char *into)
{
	size_t done = 0;
	ssize_t got;

	while (done < e->len) {
		got = pread(
			c->pages, into + done, e->len - done, (off_t)i * REMOTE_PAGE_BYTES + (off_t)done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		done += (size_t)got;
	}
	return XXH3_64bits(into, e->len) == e->hash;
}

bool cache_read(struct cache *c, struct cache_page *p, char *into)
{
	struct cache_entry e;
	uint32_t i;
	bool ok;

	if (!c)
		return false;
	mutex_lock(&c->lock);
	if ((i = cache_find(c, p->object, p->number)) == NONE) {
		mutex_unlock(&c->lock);
		return false;
	}
	e = c->slots[i].e;
	c->slots[i].users++;
	mutex_unlock(&c->lock);
	ok = cache_read_slot(c, i, &e, into);
	mutex_lock(&c->lock);
	c->slots[i].users--;
	if (c->slots[i].used && ok) {
		cache_unlink_slot(c, i);
		cache_link_newest(c, i);
	} else if (!ok) {
		c->damaged++;
		if (c->slots[i].used)
			cache_leave(c, i);
	}
	if (!c->slots[i].used && !c->slots[i].users)
		cache_put_free(c, i);
	mutex_unlock(&c->lock);
	p->len = e.len;
	p->etag = e.etag;
	return ok;
}

/* ---- writing ---- */

static void cache_turn_off(struct cache *c, const struct err *why)
{
	mutex_assert_held(&c->lock);
	if (!c->off.code)
		log_warn("bucket", "the cache takes no pages", LOG_S("dir", c->dir), LOG_E(why));
	c->off = *why;
	c->off_until_ns = clock_monotonic_ns() + c->o.pause_ns;
}

/* True if the disk has room for some more slots. */
static bool cache_has_room(struct cache *c)
{
	uint64_t bytes;

	if (c->room)
		return true;
	if (fs_posix.ops->free_bytes(&fs_posix, c->dir, &bytes, NULL) ||
		bytes < c->o.free_bytes_reserve + ROOM_EVERY * REMOTE_PAGE_BYTES)
		return false;
	c->room = ROOM_EVERY;
	return true;
}

/* The oldest that nobody uses now; NONE. */
static uint32_t cache_oldest(const struct cache *c, enum kind kind)
{
	uint32_t i = c->lists[kind].oldest;

	while (i != NONE && c->slots[i].users)
		i = c->slots[i].newer;
	return i;
}

/* Takes a slot that is free, new, or of the oldest page; NONE: there is none. */
static uint32_t cache_take(struct cache *c)
{
	bool large = c->lists[LARGE].n > c->slots_n / 8;
	uint32_t i = c->free;

	mutex_assert_held(&c->lock);
	if (i != NONE) {
		c->free = c->slots[i].next;
		return i;
	}
	if (c->slots_n < c->slots_max && cache_has_room(c) &&
		array_room(&c->slots, c->slots_n, 1, &c->slots_cap)) {
		c->room--;
		c->slots[c->slots_n] = (struct cache_slot){ 0 };
		return c->slots_n++;
	}
	if ((i = cache_oldest(c, large ? LARGE : STAYS)) == NONE)
		i = cache_oldest(c, large ? STAYS : LARGE);
	if (i != NONE)
		cache_leave(c, i);
	return i;
}

static enum err_code cache_write_all(
	const struct cache *c, int fd, const void *bytes, size_t n, off_t at, struct err *err)
{
	size_t done = 0;
	ssize_t got;

	while (done < n) {
		got = pwrite(fd, (const char *)bytes + done, n - done, at + (off_t)done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_errno(err, errno, "%s: write a page", c->dir);
		done += (size_t)got;
	}
	return ERR_OK;
}

void cache_write(struct cache *c, const struct cache_page *p, const char *bytes)
{
	struct cache_entry e = { .magic = ENTRY_MAGIC,
		.kind = p->stays ? STAYS : LARGE,
		.object = { p->object[0], p->object[1] },
		.number = p->number,
		.len = p->len,
		.etag = p->etag };
	enum err_code rc;
	struct err err;
	uint32_t i;

	if (!c)
		return;
	mutex_lock(&c->lock);
	if ((c->off.code && clock_monotonic_ns() < c->off_until_ns) ||
		cache_find(c, p->object, p->number) != NONE || (i = cache_take(c)) == NONE) {
		mutex_unlock(&c->lock);
		return;
	}
	c->slots[i].users = 1;
	mutex_unlock(&c->lock);
	e.hash = XXH3_64bits(bytes, p->len);
	e.sum = cache_entry_sum_of(&e);
	if (!(rc = cache_write_all(c, c->pages, bytes, p->len, (off_t)i * REMOTE_PAGE_BYTES, &err)))
		rc = cache_write_all(c, c->index, &e, sizeof(e), (off_t)i * (off_t)sizeof(e), &err);
	mutex_lock(&c->lock);
	c->slots[i].users = 0;
	if (rc)
		cache_turn_off(c, &err);
	else
		c->off = (struct err){ 0 };
	if (rc || cache_find(c, p->object, p->number) != NONE) {
		cache_put_free(c, i);
	} else {
		c->slots[i].e = e;
		cache_enter(c, i);
	}
	mutex_unlock(&c->lock);
}

void cache_forget(struct cache *c, const uint64_t object[2], uint64_t pages)
{
	uint32_t i;

	if (!c)
		return;
	mutex_lock(&c->lock);
	for (uint64_t n = 0; n < pages; n++) {
		if ((i = cache_find(c, object, (uint32_t)n)) == NONE)
			continue;
		cache_leave(c, i);
		if (!c->slots[i].users)
			cache_put_free(c, i);
	}
	mutex_unlock(&c->lock);
}

void cache_status(struct cache *c, struct remote_status *out)
{
	if (!c)
		return;
	mutex_lock(&c->lock);
	out->cache_bytes = (uint64_t)(c->lists[LARGE].n + c->lists[STAYS].n) * REMOTE_PAGE_BYTES;
	out->cache_bytes_max = c->o.bytes;
	out->damaged_pages = c->damaged;
	out->cache_off = c->off;
	mutex_unlock(&c->lock);
}
