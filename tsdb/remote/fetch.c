#include "tsdb/remote/internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/map.h"

/* Pages from the bucket: one request for a run of pages, into memory and onto the disk. */

struct fetch {
	struct remote *r;
	struct object *o;
	uint32_t first, n; /* pages */
	struct remote_page *pages[FETCH_PAGES_MAX]; /* NULL: the page is there already */
	struct buf bytes;
	struct bucket_info info;
	uint64_t etag; /* of the object, as r->lock showed it */
};

/* ---- which pages ---- */

static bool remote_is_there(struct remote *r, const struct object *o, uint32_t number)
{
	return page_find(r, o, number) || cache_has(r->cache, o->id, number);
}

/* Chooses a run of [from, end) around the page. It ends before pages that are there already, if so
 * many follow each other that a second request is better than reading them again. */
static void fetch_choose(struct fetch *f, uint32_t number, uint32_t from, uint32_t end)
{
	uint32_t last = number;

	f->first = number;
	while (f->first > from && number - f->first + 1 < FETCH_PAGES_MAX &&
		!remote_is_there(f->r, f->o, f->first - 1))
		f->first--;
	for (uint32_t n = number + 1; n < end && n - f->first < FETCH_PAGES_MAX; n++) {
		if (!remote_is_there(f->r, f->o, n))
			last = n;
		else if (n - last > GAP_PAGES)
			break;
	}
	f->n = last - f->first + 1;
}

/* ---- the request ---- */

/* Translates an error of the bucket for a reader of the object. */
static enum err_code fetch_judge(struct fetch *f, enum err_code rc, struct err *err)
{
	const char *key = f->o->key;
	struct bucket_info info;

	switch (rc) {
	case ERR_NOMEM:
	case ERR_CORRUPT:
	case ERR_TIMEOUT:
	case ERR_UNAVAILABLE:
	case ERR_CANCELED:
		return err_wrap(err, rc, "%s", key);
	case ERR_NOT_FOUND:
		err_set(err, ERR_CORRUPT, "%s: the object is gone from the bucket", key);
		return ERR_CORRUPT;
	case ERR_INVALID: /* the object may be shorter than it was */
		if (!bucket_head(f->r->o.bucket, str_of(key), &info, NULL) && info.bytes != f->o->bytes)
			return err_set(err, ERR_CORRUPT,
				"%s: the object has %" PRIu64 " bytes in the bucket, not %" PRIu64, key, info.bytes,
				f->o->bytes);
		/* fall through */
	default:
		err_wrap(err, rc, "%s", key);
		if (err)
			err->code = ERR_UNAVAILABLE;
		return ERR_UNAVAILABLE;
	}
}

static enum err_code fetch_get(struct fetch *f, struct err *err)
{
	uint64_t offset = (uint64_t)f->first * REMOTE_PAGE_BYTES,
			 len = (uint64_t)(f->n - 1) * REMOTE_PAGE_BYTES + page_len(f->o, f->first + f->n - 1);
	enum err_code rc = bucket_get(
		f->r->o.bucket, str_of(f->o->key), offset, len, &f->bytes, &f->info, err);

	if (rc)
		return fetch_judge(f, rc, err);
	if (f->info.bytes != f->o->bytes)
		return err_set(err, ERR_CORRUPT,
			"%s: the object has %" PRIu64 " bytes in the bucket, not %" PRIu64, f->o->key,
			f->info.bytes, f->o->bytes);
	if (f->bytes.len != len)
		return err_set(err, ERR_CORRUPT, "%s: %zu bytes came of %" PRIu64 " at %" PRIu64, f->o->key,
			f->bytes.len, len, offset);
	return ERR_OK;
}

/* r->lock is held. */
static enum err_code fetch_check_etag(struct fetch *f, struct err *err)
{
	const char *text = f->info.etag;
	uint64_t etag = text[0] ? hash_bytes(text, strlen(text), 0) | 1 : 0;

	if (!f->o->etag)
		f->o->etag = etag;
	if (!etag || etag == f->o->etag)
		return ERR_OK;
	return err_set(err, ERR_CORRUPT, "%s: the object was changed in the bucket: its ETag is %s",
		f->o->key, text);
}

static void remote_note_answer(
	struct remote *r, const struct fetch *f, enum err_code rc, const struct err *why)
{
	mutex_assert_held(&r->lock);
	if (rc) {
		r->status.failures++;
	} else {
		r->status.requests++;
		r->status.request_bytes += f->bytes.len;
	}
	if (range_unreachable(rc)) {
		r->status.down = *why;
		r->down_until_ns = clock_monotonic_ns() + r->o.retry_ns;
	} else {
		r->status.down = (struct err){ 0 };
	}
}

/* ---- all of it ---- */

static bool remote_is_down(const struct remote *r)
{
	return r->status.down.code && clock_monotonic_ns() < r->down_until_ns;
}

/* No lock: nobody else looks at these pages before they are ready. */
static void fetch_fill_pages(const struct fetch *f)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (f->pages[i])
			memcpy(
				f->pages[i]->bytes, f->bytes.ptr + (size_t)i * REMOTE_PAGE_BYTES, f->pages[i]->len);
}

static void fetch_give_pages(const struct fetch *f, enum err_code rc)
{
	for (uint32_t i = 0; i < f->n; i++) {
		if (f->pages[i] && rc)
			page_drop(f->r, f->pages[i]);
		else if (f->pages[i])
			page_came(f->r, f->pages[i]);
	}
}

/* No lock: the pages are pinned. */
static void fetch_write_pages(const struct fetch *f)
{
	for (uint32_t i = 0; i < f->n; i++) {
		const struct remote_page *p = f->pages[i];

		if (p)
			cache_write(f->r->cache,
				&(struct cache_page){ .object = { p->object[0], p->object[1] },
					.number = p->number,
					.len = p->len,
					.etag = f->etag,
					.stays = page_stays(f->o, p->number) },
				p->bytes);
	}
}

enum err_code fetch_locked(struct remote *r, struct object *o, uint32_t number, uint32_t from,
	uint32_t end, struct remote_page **out, struct err *err)
{
	struct fetch f = { .r = r, .o = o };
	enum err_code rc;
	struct err why = { 0 };

	mutex_assert_held(&r->lock);
	assert(from <= number && number < end && end <= o->pages);
	if (remote_is_down(r))
		return err_set(
			err, ERR_UNAVAILABLE, "%s: not tried again yet after: %s", o->key, r->status.down.msg);
	fetch_choose(&f, number, from, end);
	for (uint32_t i = 0; i < f.n; i++)
		if ((f.first + i == number || !remote_is_there(r, o, f.first + i)) &&
			!(f.pages[i] = page_add(r, o, f.first + i)))
			f.n = f.first + i > number ? i : 0; /* as many as there is memory for */
	if (!f.n || !f.pages[number - f.first]) {
		for (uint32_t i = 0; i < FETCH_PAGES_MAX; i++)
			if (f.pages[i])
				page_drop(r, f.pages[i]);
		return err_nomem(err, o->key);
	}
	mutex_unlock(&r->lock);
	if (!(rc = fetch_get(&f, &why)))
		fetch_fill_pages(&f);
	mutex_lock(&r->lock);
	if (!rc)
		rc = fetch_check_etag(&f, &why);
	f.etag = o->etag;
	remote_note_answer(r, &f, rc, &why);
	fetch_give_pages(&f, rc);
	if (!rc) {
		mutex_unlock(&r->lock);
		fetch_write_pages(&f);
		mutex_lock(&r->lock);
		for (uint32_t i = 0; i < f.n; i++)
			if (f.pages[i] && (!out || f.first + i != number))
				page_unpin(r, f.pages[i]);
		if (out)
			*out = f.pages[number - f.first];
	}
	buf_release(&f.bytes);
	return rc ? err_copy(err, &why) : ERR_OK;
}
