#include "tsdb/remote/remote.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "tsdb/remote/internal.h"

/* The range source: known objects, and their readers. */

#define MEMORY_BYTES (32u << 20)
#define RESERVE_BYTES (UINT64_C(1) << 30)
#define RETRY_NS (5 * NS_PER_S)
#define CACHE_PAUSE_NS (60 * NS_PER_S) /* after a write failed */
#define WORKERS 4u
#define JOBS_MAX 1024u
#define OBJECT_PAGES_MAX (UINT32_MAX / 2)

METRIC_GAUGE(pages_gauge, "epimetheus_bucket_pages_read",
	"Pages of objects that were read, by where they were.", "from");
METRIC_GAUGE(requests_gauge, "epimetheus_bucket_range_requests",
	"Requests for ranges of objects, by result.", "result");
METRIC_GAUGE(
	bytes_gauge, "epimetheus_bucket_range_bytes", "Bytes that requests for ranges gave.", NULL);
METRIC_GAUGE(cache_gauge, "epimetheus_bucket_cache_bytes", "Bytes of the pages on disk.", NULL);
METRIC_GAUGE(damaged_gauge, "epimetheus_bucket_cache_damaged_pages",
	"Pages on disk that were damaged, and were read again from the bucket.", NULL);
METRIC_GAUGE(off_gauge, "epimetheus_bucket_cache_off",
	"1 if the cache on disk cannot be used, or takes no pages since a write failed.", NULL);

/* ---- objects ---- */

static struct object **remote_db_remote_chain_of(struct remote *r, struct str key)
{
	return &r->objects[XXH3_64bits(key.ptr, key.len) % OBJECT_CHAINS];
}

static struct object *remote_find(struct remote *r, struct str key)
{
	struct object *o = *remote_db_remote_chain_of(r, key);

	mutex_assert_held(&r->lock);
	while (o && !str_eq(str_of(o->key), key))
		o = o->next;
	return o;
}

static void remote_take_out(struct remote *r, struct object *o)
{
	struct object **at = remote_db_remote_chain_of(r, str_of(o->key));

	while (*at && *at != o)
		at = &(*at)->next;
	if (*at)
		*at = o->next;
	o->known = false;
}

void object_unuse(struct remote *r, struct object *o)
{
	mutex_assert_held(&r->lock);
	assert(o->users);
	if (--o->users || o->known)
		return;
	remote_take_out(r, o);
	free(o);
}

/* The object cannot be opened any more; its readers go on. */
static void remote_retire(struct remote *r, struct object *o)
{
	mutex_assert_held(&r->lock);
	remote_take_out(r, o);
	if (!o->users)
		free(o);
}

/* Adds an object to the table. NULL: out of memory. */
static struct object *remote_add(struct remote *r, struct str key, uint64_t bytes, uint64_t hash)
{
	struct object *o = calloc(1, sizeof(*o) + key.len + 1),
				  **chain = remote_db_remote_chain_of(r, key);
	XXH128_hash_t id;

	mutex_assert_held(&r->lock);
	if (!o)
		return NULL;
	memcpy(o->key, key.ptr, key.len);
	id = XXH3_128bits_withSeed(key.ptr, key.len, bytes ^ XXH3_64bits(&hash, sizeof(hash)));
	o->id[0] = id.low64;
	o->id[1] = id.high64;
	o->bytes = bytes;
	o->hash = hash;
	o->pages = (uint32_t)((bytes + REMOTE_PAGE_BYTES - 1) / REMOTE_PAGE_BYTES);
	o->stays = !str_has_suffix(key, STR("/rows.ldb")) || o->pages <= SMALL_PAGES;
	o->next = *chain;
	*chain = o;
	return o;
}

/* The known object of this key, size and hash, or a new one. NULL: out of memory. */
static struct object *remote_know(struct remote *r, struct str key, uint64_t bytes, uint64_t hash)
{
	struct object *o = remote_find(r, key);

	if (o && o->bytes == bytes && o->hash == hash)
		return o;
	if (o)
		remote_retire(r, o);
	return remote_add(r, key, bytes, hash);
}

static void remote_source_know(
	struct range_source *s, const char *path, uint64_t bytes, uint64_t hash)
{
	struct remote *r = (struct remote *)s;
	struct object *o;

	if (bytes / REMOTE_PAGE_BYTES > OBJECT_PAGES_MAX)
		return;
	mutex_lock(&r->lock);
	if ((o = remote_know(r, str_of(path), bytes, hash)))
		o->known = true;
	mutex_unlock(&r->lock);
}

static void remote_source_forget(struct range_source *s, const char *path)
{
	struct remote *r = (struct remote *)s;
	struct object *o;

	mutex_lock(&r->lock);
	if ((o = remote_find(r, str_of(path)))) {
		pages_forget(r, o);
		remote_retire(r, o);
	}
	mutex_unlock(&r->lock);
}

/* ---- readers ---- */

static enum err_code remote_reader_read(
	struct range_reader *r, uint64_t offset, size_t n, void *into, struct err *err)
{
	if (offset > r->bytes || n > r->bytes - offset)
		return err_set(
			err, ERR_CORRUPT, "%s: ends before the %zu bytes at %" PRIu64, r->name, n, offset);
	return n ? pages_read((struct remote_reader *)r, offset, n, into, err) : ERR_OK;
}

static void remote_reader_expect(struct range_reader *r, uint64_t offset, uint64_t n)
{
	pages_expect((struct remote_reader *)r, offset, n);
}

static void remote_reader_close(struct range_reader *reader)
{
	struct remote_reader *y = (struct remote_reader *)reader;
	struct remote *r = y->remote;

	mutex_lock(&r->lock);
	object_unuse(r, y->o);
	mutex_unlock(&r->lock);
	free(y);
}

static const struct range_ops reader_ops = { remote_reader_read, remote_reader_close,
	remote_reader_expect };

/* Asks the bucket. An equal ETag means equal contents. */
static enum err_code remote_ask(
	struct remote *r, const char *path, struct bucket_info *out, struct err *err)
{
	enum err_code rc = bucket_head(r->o.bucket, str_of(path), out, err);

	if (rc)
		return err_wrap(err, rc, "%s", path);
	if (out->bytes / REMOTE_PAGE_BYTES > OBJECT_PAGES_MAX)
		return err_set(err, ERR_LIMIT, "%s: has %" PRIu64 " bytes, limit %" PRIu64, path,
			out->bytes, (uint64_t)OBJECT_PAGES_MAX * REMOTE_PAGE_BYTES);
	return ERR_OK;
}

static enum err_code remote_source_open(
	struct range_source *s, const char *path, struct range_reader **out, struct err *err)
{
	struct remote_reader *x = calloc(1, sizeof(*x));
	struct remote *r = (struct remote *)s;
	struct bucket_info info;
	enum err_code rc = ERR_OK;

	if (!x)
		return err_nomem(err, path);
	mutex_lock(&r->lock);
	if (!(x->o = remote_find(r, str_of(path))) || !x->o->known) {
		mutex_unlock(&r->lock);
		rc = remote_ask(r, path, &info, err);
		mutex_lock(&r->lock);
		if (!rc &&
			!(x->o = remote_know(
				  r, str_of(path), info.bytes, XXH3_64bits(info.etag, strlen(info.etag)))))
			rc = err_nomem(err, path);
	}
	if (!rc) {
		x->o->users++;
		x->remote = r;
		x->r = (struct range_reader){ &reader_ops, x->o->bytes, x->o->key };
	}
	mutex_unlock(&r->lock);
	if (rc)
		free(x);
	else
		*out = &x->r;
	return rc;
}

/* ---- status ---- */

void remote_status(struct remote *r, struct remote_status *out)
{
	mutex_lock(&r->lock);
	*out = r->status;
	mutex_unlock(&r->lock);
	cache_status(r->cache, out);
	if (r->no_cache.code)
		out->cache_off = r->no_cache;
}

static void remote_collect(void *ctx)
{
	struct remote_status s;

	remote_status(ctx, &s);
	metric_set(&pages_gauge, "memory", (double)s.from_memory);
	metric_set(&pages_gauge, "disk", (double)s.from_disk);
	metric_set(&pages_gauge, "bucket", (double)s.from_bucket);
	metric_set(&requests_gauge, "ok", (double)s.requests);
	metric_set(&requests_gauge, "failed", (double)s.failures);
	metric_set(&bytes_gauge, NULL, (double)s.request_bytes);
	metric_set(&cache_gauge, NULL, (double)s.cache_bytes);
	metric_set(&damaged_gauge, NULL, (double)s.damaged_pages);
	metric_set(&off_gauge, NULL, s.cache_off.code != ERR_OK);
}

/* ---- opening ---- */

static void remote_open_cache(struct remote *r)
{
	struct cache_options o = { r->o.cache_dir, r->o.cache_bytes, r->o.free_bytes_reserve,
		CACHE_PAUSE_NS };

	if (r->o.cache_dir && r->o.cache_bytes && cache_open(&o, &r->cache, &r->no_cache)) {
		r->cache = NULL;
		log_warn("bucket", "no cache on disk", LOG_S("dir", r->o.cache_dir), LOG_E(&r->no_cache));
	}
}

enum err_code remote_open(const struct remote_options *o, struct remote **out, struct err *err)
{
	struct remote *r = calloc(1, sizeof(*r));
	size_t chains = 256;
	enum err_code rc;

	if (!r)
		return err_nomem(err, "bucket");
	mutex_init(&r->lock);
	cond_init(&r->ready);
	r->source = (struct range_source){ remote_source_open, remote_source_know,
		remote_source_forget };
	r->o = *o;
	r->o.memory_bytes = o->memory_bytes ? o->memory_bytes : MEMORY_BYTES;
	r->o.free_bytes_reserve = o->free_bytes_reserve ? o->free_bytes_reserve : RESERVE_BYTES;
	r->o.retry_ns = o->retry_ns ? o->retry_ns : RETRY_NS;
	while (chains < r->o.memory_bytes / REMOTE_PAGE_BYTES)
		chains *= 2;
	r->mask = chains - 1;
	if (!(r->chains = calloc(chains, sizeof(struct remote_page *)))) {
		rc = err_nomem(err, "bucket");
		goto fail;
	}
	if ((rc = pool_open("bucket-read", o->workers ? o->workers : WORKERS, JOBS_MAX, &r->pool, err)))
		goto fail;
	remote_open_cache(r);
	metric_collector_add(remote_collect, r);
	*out = r;
	return ERR_OK;
fail:
	remote_close(r);
	return rc;
}

void remote_close(struct remote *r)
{
	if (!r)
		return;
	metric_collector_remove(remote_collect, r);
	mutex_lock(&r->lock);
	r->closing = true;
	mutex_unlock(&r->lock);
	pool_close(r->pool);
	mutex_lock(&r->lock);
	for (size_t i = 0; i < OBJECT_CHAINS; i++)
		while (r->objects[i]) {
			assert(!r->objects[i]->users); /* readers are closed */
			remote_retire(r, r->objects[i]);
		}
	mutex_unlock(&r->lock);
	if (r->chains)
		pages_free(r);
	cache_close(r->cache);
	free(r->chains);
	cond_destroy(&r->ready);
	mutex_destroy(&r->lock);
	free(r);
}

struct range_source *remote_source(struct remote *r)
{
	return &r->source;
}
