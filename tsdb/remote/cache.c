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
	uint32_t users; /* reading or writing it: it stays */
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

static size_t cache_chain_of(const struct cache *d, const uint64_t object[2], uint32_t number)
{
	return map_hash_u64(object[0] + number) & d->mask;
}

static bool cache_slot_is_page(
	const struct cache_slot *s, const uint64_t object[2], uint32_t number)
{
	return s->e.number == number && s->e.object[0] == object[0] && s->e.object[1] == object[1];
}

static uint32_t cache_find(const struct cache *d, const uint64_t object[2], uint32_t number)
{
	uint32_t i = d->chains[cache_chain_of(d, object, number)];

	while (i != NONE && !cache_slot_is_page(&d->slots[i], object, number))
		i = d->slots[i].next;
	return i;
}

static void cache_link_newest(struct cache *d, uint32_t i)
{
	struct cache_slot *s = &d->slots[i];
	struct cache_list *l = &d->lists[s->e.kind];

	s->newer = NONE;
	s->older = l->newest;
	if (l->newest != NONE)
		d->slots[l->newest].newer = i;
	else
		l->oldest = i;
	l->newest = i;
	l->n++;
}

static void cache_unlink_slot(struct cache *d, uint32_t i)
{
	struct cache_slot *s = &d->slots[i];
	struct cache_list *l = &d->lists[s->e.kind];

	if (s->newer != NONE)
		d->slots[s->newer].older = s->older;
	else
		l->newest = s->older;
	if (s->older != NONE)
		d->slots[s->older].newer = s->newer;
	else
		l->oldest = s->newer;
	l->n--;
}

static void cache_enter(struct cache *d, uint32_t i)
{
	struct cache_slot *s = &d->slots[i];
	uint32_t *chain = &d->chains[cache_chain_of(d, s->e.object, s->e.number)];

	s->next = *chain;
	*chain = i;
	s->used = true;
	cache_link_newest(d, i);
}

static void cache_leave(struct cache *d, uint32_t i)
{
	struct cache_slot *s = &d->slots[i];
	uint32_t *at = &d->chains[cache_chain_of(d, s->e.object, s->e.number)];

	assert(s->used);
	while (*at != i)
		at = &d->slots[*at].next;
	*at = s->next;
	s->used = false;
	cache_unlink_slot(d, i);
}

static void cache_put_free(struct cache *d, uint32_t i)
{
	d->slots[i].next = d->free;
	d->free = i;
}

/* ---- opening ---- */

static uint64_t cache_entry_sum_of(const struct cache_entry *e)
{
	return XXH3_64bits(e, offsetof(struct cache_entry, sum));
}

static bool cache_is_entry(const struct cache *d, const struct cache_entry *e)
{
	return e->magic == ENTRY_MAGIC && e->sum == cache_entry_sum_of(e) && e->kind < KINDS &&
		e->len && e->len <= REMOTE_PAGE_BYTES && cache_find(d, e->object, e->number) == NONE;
}

/* What the files hold. What is behind the last slot that fits now is cut off. */
static enum err_code cache_load(struct cache *d, struct err *err)
{
	struct stat st;
	uint64_t n;

	if (fstat(d->index, &st))
		return err_errno(err, errno, "%s/index", d->dir);
	n = (uint64_t)st.st_size / sizeof(struct cache_entry);
	n = n < d->slots_max ? n : d->slots_max;
	if (ftruncate(d->index, (off_t)(n * sizeof(struct cache_entry))))
		return err_errno(err, errno, "%s/index", d->dir);
	if (fstat(d->pages, &st))
		return err_errno(err, errno, "%s/pages", d->dir);
	if ((uint64_t)st.st_size > n * REMOTE_PAGE_BYTES &&
		ftruncate(d->pages, (off_t)(n * REMOTE_PAGE_BYTES)))
		return err_errno(err, errno, "%s/pages", d->dir);
	if (!array_room(&d->slots, 0, n + 1, &d->slots_cap))
		return err_nomem(err, "cache");
	for (; d->slots_n < n; d->slots_n++) {
		struct cache_slot *s = &d->slots[d->slots_n];
		ssize_t got;

		*s = (struct cache_slot){ 0 };
		got = pread(d->index, &s->e, sizeof(s->e), (off_t)(d->slots_n * sizeof(s->e)));
		if (got == (ssize_t)sizeof(s->e) && cache_is_entry(d, &s->e))
			cache_enter(d, d->slots_n);
		else
			cache_put_free(d, d->slots_n);
	}
	return ERR_OK;
}

static enum err_code cache_open_file(
	const struct cache *d, const char *name, int *fd, struct err *err)
{
	char path[4096];

	if (snprintf(path, sizeof(path), "%s/%s", d->dir, name) >= (int)sizeof(path))
		return err_set(err, ERR_INVALID, "%s: the path is too long", d->dir);
	*fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	return *fd < 0 ? err_errno(err, errno, "%s", path) : ERR_OK;
}

static enum err_code cache_open_files(struct cache *d, struct err *err)
{
	char path[4096];
	enum err_code rc;

	if (snprintf(path, sizeof(path), "%s/lock", d->dir) >= (int)sizeof(path))
		return err_set(err, ERR_INVALID, "%s: the path is too long", d->dir);
	if ((rc = fs_mkdir_all(&fs_posix, d->dir, err)))
		return rc;
	if ((rc = fs_lock(path, &d->lock_file, err)))
		return rc == ERR_UNAVAILABLE ?
			err_set(err, rc, "%s is the cache of another process", d->dir) :
			rc;
	if ((rc = cache_open_file(d, "pages", &d->pages, err)))
		return rc;
	return cache_open_file(d, "index", &d->index, err);
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

void cache_close(struct cache *d)
{
	if (!d)
		return;
	if (d->pages >= 0)
		close(d->pages);
	if (d->index >= 0)
		close(d->index);
	if (d->lock_file >= 0)
		fs_unlock(d->lock_file);
	free(d->slots);
	free(d->chains);
	free(d->dir);
	mutex_destroy(&d->lock);
	free(d);
}

/* ---- reading ---- */

bool cache_has(struct cache *d, const uint64_t object[2], uint32_t number)
{
	bool has;

	if (!d)
		return false;
	mutex_lock(&d->lock);
	has = cache_find(d, object, number) != NONE;
	mutex_unlock(&d->lock);
	return has;
}

static bool cache_read_slot(struct cache *d, uint32_t i, const struct cache_entry *e, char *into)
{
	size_t done = 0;
	ssize_t got;

	while (done < e->len) {
		got = pread(
			d->pages, into + done, e->len - done, (off_t)i * REMOTE_PAGE_BYTES + (off_t)done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		done += (size_t)got;
	}
	return XXH3_64bits(into, e->len) == e->hash;
}

bool cache_read(struct cache *d, struct cache_page *p, char *into)
{
	struct cache_entry e;
	uint32_t i;
	bool ok;

	if (!d)
		return false;
	mutex_lock(&d->lock);
	if ((i = cache_find(d, p->object, p->number)) == NONE) {
		mutex_unlock(&d->lock);
		return false;
	}
	e = d->slots[i].e;
	d->slots[i].users++;
	mutex_unlock(&d->lock);
	ok = cache_read_slot(d, i, &e, into);
	mutex_lock(&d->lock);
	d->slots[i].users--;
	if (d->slots[i].used && ok) {
		cache_unlink_slot(d, i);
		cache_link_newest(d, i);
	} else if (!ok) {
		d->damaged++;
		if (d->slots[i].used)
			cache_leave(d, i);
	}
	if (!d->slots[i].used && !d->slots[i].users)
		cache_put_free(d, i);
	mutex_unlock(&d->lock);
	p->len = e.len;
	p->etag = e.etag;
	return ok;
}

/* ---- writing ---- */

static void cache_turn_off(struct cache *d, const struct err *why)
{
	mutex_assert_held(&d->lock);
	if (!d->off.code)
		log_warn("bucket", "the cache takes no pages", LOG_S("dir", d->dir), LOG_E(why));
	d->off = *why;
	d->off_until_ns = clock_monotonic_ns() + d->o.pause_ns;
}

/* True if the disk has room for some more slots. */
static bool cache_has_room(struct cache *d)
{
	uint64_t bytes;

	if (d->room)
		return true;
	if (fs_posix.ops->free_bytes(&fs_posix, d->dir, &bytes, NULL) ||
		bytes < d->o.free_bytes_reserve + ROOM_EVERY * REMOTE_PAGE_BYTES)
		return false;
	d->room = ROOM_EVERY;
	return true;
}

/* The oldest that nobody uses now; NONE. */
static uint32_t cache_oldest(const struct cache *d, enum kind kind)
{
	uint32_t i = d->lists[kind].oldest;

	while (i != NONE && d->slots[i].users)
		i = d->slots[i].newer;
	return i;
}

/* A slot that nobody has; NONE. */
static uint32_t cache_take(struct cache *d)
{
	bool large = d->lists[LARGE].n > d->slots_n / 8;
	uint32_t i = d->free;

	mutex_assert_held(&d->lock);
	if (i != NONE) {
		d->free = d->slots[i].next;
		return i;
	}
	if (d->slots_n < d->slots_max && cache_has_room(d) &&
		array_room(&d->slots, d->slots_n, 1, &d->slots_cap)) {
		d->room--;
		d->slots[d->slots_n] = (struct cache_slot){ 0 };
		return d->slots_n++;
	}
	if ((i = cache_oldest(d, large ? LARGE : STAYS)) == NONE)
		i = cache_oldest(d, large ? STAYS : LARGE);
	if (i != NONE)
		cache_leave(d, i);
	return i;
}

static enum err_code cache_write_all(
	const struct cache *d, int fd, const void *p, size_t n, off_t at, struct err *err)
{
	size_t done = 0;
	ssize_t got;

	while (done < n) {
		got = pwrite(fd, (const char *)p + done, n - done, at + (off_t)done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_errno(err, errno, "%s: write a page", d->dir);
		done += (size_t)got;
	}
	return ERR_OK;
}

void cache_write(struct cache *d, const struct cache_page *p, const char *bytes)
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

	if (!d)
		return;
	mutex_lock(&d->lock);
	if ((d->off.code && clock_monotonic_ns() < d->off_until_ns) ||
		cache_find(d, p->object, p->number) != NONE || (i = cache_take(d)) == NONE) {
		mutex_unlock(&d->lock);
		return;
	}
	d->slots[i].users = 1;
	mutex_unlock(&d->lock);
	e.hash = XXH3_64bits(bytes, p->len);
	e.sum = cache_entry_sum_of(&e);
	if (!(rc = cache_write_all(d, d->pages, bytes, p->len, (off_t)i * REMOTE_PAGE_BYTES, &err)))
		rc = cache_write_all(d, d->index, &e, sizeof(e), (off_t)i * (off_t)sizeof(e), &err);
	mutex_lock(&d->lock);
	d->slots[i].users = 0;
	if (rc)
		cache_turn_off(d, &err);
	else
		d->off = (struct err){ 0 };
	if (rc || cache_find(d, p->object, p->number) != NONE) {
		cache_put_free(d, i);
	} else {
		d->slots[i].e = e;
		cache_enter(d, i);
	}
	mutex_unlock(&d->lock);
}

void cache_forget(struct cache *d, const uint64_t object[2], uint64_t pages)
{
	uint32_t i;

	if (!d)
		return;
	mutex_lock(&d->lock);
	for (uint64_t n = 0; n < pages; n++) {
		if ((i = cache_find(d, object, (uint32_t)n)) == NONE)
			continue;
		cache_leave(d, i);
		if (!d->slots[i].users)
			cache_put_free(d, i);
	}
	mutex_unlock(&d->lock);
}

void cache_status(struct cache *d, struct remote_status *out)
{
	if (!d)
		return;
	mutex_lock(&d->lock);
	out->cache_bytes = (uint64_t)(d->lists[LARGE].n + d->lists[STAYS].n) * REMOTE_PAGE_BYTES;
	out->cache_bytes_max = d->o.bytes;
	out->damaged_pages = d->damaged;
	out->cache_off = d->off;
	mutex_unlock(&d->lock);
}
