#include "tsdb/remote/internal.h"

#include <assert.h>
#include <stdlib.h>

#include "base/map.h"

/*
 * Pages in memory, and how one is found: there, else on disk, else in the bucket. One thread reads
 * a page, others that want it wait. If that fails, each of them tries by itself.
 *
 * How much is read: FIRST_PAGES at a new place; twice as much as the last time if the miss is at
 * most GAP_PAGES behind the last read. The end of an object, where a table has its index, is one
 * read. Pages that the reader was told to expect are read as they were told.
 */
#define EXPECTED_BYTES_MAX (64u << 20) /* given to the pool */
#define EXPECTED_MORE (32u << 10)

/* ---- the table ---- */

static struct remote_page **remote_chain_of(
	struct remote *r, const uint64_t object[2], uint32_t number)
{
	return &r->chains[map_hash_u64(object[0] + number) & r->mask];
}

struct remote_page *page_find(struct remote *r, const struct object *o, uint32_t number)
{
	struct remote_page *p = *remote_chain_of(r, o->id, number);

	mutex_assert_held(&r->lock);
	while (p && (p->number != number || p->object[0] != o->id[0] || p->object[1] != o->id[1]))
		p = p->next;
	return p;
}

uint32_t page_len(const struct object *o, uint32_t number)
{
	uint64_t left = o->bytes - (uint64_t)number * REMOTE_PAGE_BYTES;

	return left < REMOTE_PAGE_BYTES ? (uint32_t)left : REMOTE_PAGE_BYTES;
}

/* Pages at the end of an object that hold the index of a table: an entry of about 40 bytes for each
 * 16 KiB. */
static uint32_t pages_tail(const struct object *o)
{
	return 1 + (o->pages - 1) / 256 + (o->pages > 1);
}

bool page_stays(const struct object *o, uint32_t number)
{
	return o->stays || number + pages_tail(o) >= o->pages;
}

struct remote_page *page_add(struct remote *r, const struct object *o, uint32_t number)
{
	struct remote_page *p = calloc(1, sizeof(*p)), **chain = remote_chain_of(r, o->id, number);

	mutex_assert_held(&r->lock);
	if (!p || !(p->bytes = malloc(REMOTE_PAGE_BYTES))) {
		free(p);
		return NULL;
	}
	p->object[0] = o->id[0];
	p->object[1] = o->id[1];
	p->number = number;
	p->len = page_len(o, number);
	p->pins = 1;
	p->next = *chain;
	*chain = p;
	r->memory_bytes += REMOTE_PAGE_BYTES;
	return p;
}

static void remote_remove_page(struct remote *r, struct remote_page *p)
{
	struct remote_page **at = remote_chain_of(r, p->object, p->number);

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	r->memory_bytes -= REMOTE_PAGE_BYTES;
	free(p->bytes);
	free(p);
}

void page_drop(struct remote *r, struct remote_page *p)
{
	mutex_assert_held(&r->lock);
	assert(!p->ready && p->pins == 1);
	remote_remove_page(r, p);
	cond_broadcast(&r->ready);
}

static void remote_unlink_page(struct remote *r, struct remote_page *p)
{
	*(p->newer ? &p->newer->older : &r->newest) = p->older;
	*(p->older ? &p->older->newer : &r->oldest) = p->newer;
}

static void remote_link_newest(struct remote *r, struct remote_page *p)
{
	p->newer = NULL;
	p->older = r->newest;
	*(r->newest ? &r->newest->newer : &r->oldest) = p;
	r->newest = p;
}

void page_came(struct remote *r, struct remote_page *p)
{
	mutex_assert_held(&r->lock);
	p->ready = true;
	remote_link_newest(r, p);
	cond_broadcast(&r->ready);
}

static void remote_make_room(struct remote *r)
{
	struct remote_page *p = r->oldest, *newer;

	for (; p && r->memory_bytes > r->o.memory_bytes; p = newer) {
		newer = p->newer;
		if (p->pins)
			continue;
		remote_unlink_page(r, p);
		remote_remove_page(r, p);
	}
}

void page_unpin(struct remote *r, struct remote_page *p)
{
	mutex_assert_held(&r->lock);
	assert(p->pins && p->ready);
	p->pins--;
	remote_make_room(r);
}

void pages_forget(struct remote *r, const struct object *o)
{
	struct remote_page *p;

	for (uint32_t n = 0; n < o->pages; n++)
		if ((p = page_find(r, o, n)) && p->ready && !p->pins) {
			remote_unlink_page(r, p);
			remote_remove_page(r, p);
		}
	cache_forget(r->cache, o->id, o->pages);
}

void pages_free(struct remote *r)
{
	while (r->oldest) {
		struct remote_page *p = r->oldest;

		assert(!p->pins);
		remote_unlink_page(r, p);
		remote_remove_page(r, p);
	}
}

/* ---- what is expected ---- */

struct pages_job {
	struct pages_job *next; /* of r->jobs: those that have not begun */
	struct remote *r;
	struct object *o;
	uint32_t first, end; /* a reader that cannot wait may take some of them */
	uint64_t bytes; /* counted in expected_bytes */
};

static void pages_run_job(void *ctx)
{
	struct pages_job *j = ctx, **at;
	struct remote *r = j->r;

	mutex_lock(&r->lock);
	for (at = &r->jobs; *at != j; at = &(*at)->next)
		;
	*at = j->next;
	for (uint32_t n = j->first; n < j->end && !r->closing; n++)
		if (!page_find(r, j->o, n) && !cache_has(r->cache, j->o->id, n) &&
			fetch_locked(r, j->o, n, n, j->end, NULL, NULL))
			break; /* a reader that needs the page asks again, and gets the error */
	r->expected_bytes -= j->bytes;
	object_unuse(r, j->o);
	mutex_unlock(&r->lock);
	free(j);
}

static void pages_submit(struct remote_reader *reader, uint32_t first, uint32_t end)
{
	struct remote *r = reader->remote;
	uint64_t bytes = (uint64_t)(end - first) * REMOTE_PAGE_BYTES;
	struct pages_job *j;

	mutex_assert_held(&r->lock);
	/* Without a disk, new pages would replace expected ones in memory before a reader got them. */
	if (first >= end || r->expected_bytes + bytes > EXPECTED_BYTES_MAX ||
		(!r->cache && r->expected_bytes + bytes > r->o.memory_bytes / 2) ||
		!(j = malloc(sizeof(*j))))
		return;
	*j = (struct pages_job){ r->jobs, r, reader->o, first, end, bytes };
	r->jobs = j;
	reader->o->users++;
	r->expected_bytes += bytes;
	if (!pool_submit(r->pool, pages_run_job, j)) {
		r->jobs = j->next;
		r->expected_bytes -= bytes;
		reader->o->users--;
		free(j);
	}
}

/* Takes this page and all behind it out of the job that has it, and returns their end; 0: no job
 * has the page. */
static uint32_t remote_take_job(struct remote *r, const struct object *o, uint32_t number)
{
	uint32_t end;

	for (struct pages_job *j = r->jobs; j; j = j->next)
		if (j->o == o && j->first <= number && number < j->end) {
			end = j->end;
			j->end = number;
			return end;
		}
	return 0;
}

static void pages_submit_expected(struct remote_reader *r)
{
	pages_submit(r, r->expected_first, r->expected_end);
	r->expected_first = r->expected_end = 0;
}

static bool remote_in_job(const struct remote *r, const struct object *o, uint32_t number)
{
	for (const struct pages_job *j = r->jobs; j; j = j->next)
		if (j->o == o && j->first <= number && number < j->end)
			return true;
	return false;
}

/* The page can join the expected run: it is near, and the run fits into one request. */
static bool pages_fits(const struct remote_reader *r, uint32_t number)
{
	uint32_t first = r->expected_first, end = r->expected_end;

	if (number < first)
		return first - number <= GAP_PAGES && end - number <= FETCH_PAGES_MAX;
	return end && number <= end + GAP_PAGES && number - first < FETCH_PAGES_MAX;
}

void pages_expect(struct remote_reader *reader, uint64_t offset, uint64_t n)
{
	struct remote *r = reader->remote;
	uint32_t first, end;

	if (!n || offset >= reader->o->bytes)
		return;
	/* The caller knows where records begin, but not where the last one ends. */
	n = n < UINT64_MAX - EXPECTED_MORE ? n + EXPECTED_MORE : n;
	n = n < reader->o->bytes - offset ? n : reader->o->bytes - offset;
	first = (uint32_t)(offset / REMOTE_PAGE_BYTES);
	end = (uint32_t)((offset + n - 1) / REMOTE_PAGE_BYTES) + 1;
	mutex_lock(&r->lock);
	for (; first < end; first++) { /* each turn takes a page */
		if (page_find(r, reader->o, first) || cache_has(r->cache, reader->o->id, first) ||
			remote_in_job(r, reader->o, first))
			continue;
		if (!pages_fits(reader, first)) {
			pages_submit_expected(reader);
			reader->expected_first = first;
		}
		if (first < reader->expected_first)
			reader->expected_first = first;
		if (first >= reader->expected_end)
			reader->expected_end = first + 1;
		if (r->expected_bytes >= EXPECTED_BYTES_MAX)
			break; /* the rest comes when it is wanted */
	}
	mutex_unlock(&r->lock);
}

/* ---- reading ---- */

/* The reader's stream that this page continues, or a new one. */
static struct remote_stream *pages_stream_of(struct remote_reader *r, uint32_t number)
{
	struct remote_stream *s = &r->streams[0];

	for (size_t i = 0; i < STREAMS_N; i++) {
		struct remote_stream *t = &r->streams[i];

		if (t->window && number >= t->next && number - t->next <= GAP_PAGES)
			return t;
		if (t->used < s->used)
			s = t;
	}
	s->window = 0;
	return s;
}

static enum err_code pages_fetch_for(struct remote_reader *reader, uint32_t number, uint32_t last,
	struct remote_page **out, struct err *err)
{
	struct remote *r = reader->remote;
	uint32_t from = number, end = last + 1, expected = 0;
	struct remote_stream *s = pages_stream_of(reader, number);

	if (number >= reader->expected_first && number < reader->expected_end) {
		expected = reader->expected_end;
		reader->expected_end = number;
	} else {
		expected = remote_take_job(r, reader->o, number);
	}
	s->used = ++r->clock;
	if (reader->o->pages <= SMALL_PAGES) {
		from = 0;
		end = reader->o->pages;
	} else if (expected) {
		end = expected > end ? expected : end;
		s->window = end - number;
	} else if (number + pages_tail(reader->o) >= reader->o->pages) {
		from = reader->o->pages - pages_tail(reader->o);
		end = reader->o->pages;
	} else {
		s->window = s->window ? s->window * 2 : FIRST_PAGES;
		if (s->window > FETCH_PAGES_MAX)
			s->window = FETCH_PAGES_MAX;
		end = number + s->window > end ? number + s->window : end;
	}
	pages_submit_expected(reader);
	end = end > reader->o->pages ? reader->o->pages : end;
	s->next = end;
	return fetch_locked(r, reader->o, number, from, end, out, err);
}

/* Reads a page from the disk, pinned; NULL: it is not there any more, or of no use. */
static struct remote_page *remote_load_locked(struct remote *r, struct object *o, uint32_t number)
{
	struct cache_page d = { .object = { o->id[0], o->id[1] }, .number = number };
	struct remote_page *p = page_add(r, o, number);
	bool ok;

	if (!p)
		return NULL;
	mutex_unlock(&r->lock);
	ok = cache_read(r->cache, &d, p->bytes);
	mutex_lock(&r->lock);
	/* Pages of an object that had another ETag are of no use. */
	if (ok && d.len == p->len && (!o->etag || !d.etag || d.etag == o->etag)) {
		o->etag = o->etag ? o->etag : d.etag;
		r->status.from_disk++;
		page_came(r, p);
		return p;
	}
	page_drop(r, p);
	return NULL;
}

/* *out is pinned. */
static enum err_code pages_get_page(struct remote_reader *reader, uint32_t number, uint32_t last,
	struct remote_page **out, struct err *err)
{
	struct remote *r = reader->remote;
	enum err_code rc;
	struct remote_page *p;

	mutex_assert_held(&r->lock);
	while ((p = page_find(r, reader->o, number)) && !p->ready)
		cond_wait(&r->ready, &r->lock);
	if (p) {
		p->pins++;
		remote_unlink_page(r, p);
		remote_link_newest(r, p);
		r->status.from_memory++;
	} else if (cache_has(r->cache, reader->o->id, number)) {
		p = remote_load_locked(r, reader->o, number);
	}
	if (p) {
		*out = p;
		return ERR_OK;
	}
	/* Another thread may have begun while the disk was read. */
	if (page_find(r, reader->o, number))
		return pages_get_page(reader, number, last, out, err);
	if (!(rc = pages_fetch_for(reader, number, last, out, err)))
		r->status.from_bucket++;
	return rc;
}

enum err_code pages_read(
	struct remote_reader *reader, uint64_t offset, size_t n, char *into, struct err *err)
{
	uint32_t last = (uint32_t)((offset + n - 1) / REMOTE_PAGE_BYTES);
	struct remote *r = reader->remote;
	enum err_code rc = ERR_OK;
	struct remote_page *p;

	assert(n && offset + n <= reader->o->bytes);
	mutex_lock(&r->lock);
	while (n && !rc) { /* each turn copies a page's part */
		uint32_t number = (uint32_t)(offset / REMOTE_PAGE_BYTES),
				 at = (uint32_t)(offset % REMOTE_PAGE_BYTES);
		size_t part;

		if ((rc = pages_get_page(reader, number, last, &p, err)))
			break;
		mutex_unlock(&r->lock);
		part = p->len - at < n ? p->len - at : n;
		memcpy(into, p->bytes + at, part);
		offset += part;
		into += part;
		n -= part;
		mutex_lock(&r->lock);
		page_unpin(r, p);
	}
	mutex_unlock(&r->lock);
	return rc;
}
