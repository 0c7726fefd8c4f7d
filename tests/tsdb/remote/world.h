/* A fake store with an object, a client of it, a source over it, and a directory for its cache. */
#ifndef TESTS_TSDB_REMOTE_WORLD_H
#define TESTS_TSDB_REMOTE_WORLD_H

#include "base/clock.h"
#include "base/fs.h"
#include "tests/scratch.h"
#include "tests/tsdb/bucket/world.h"
#include "tsdb/remote/remote.h"

#define PAGE REMOTE_PAGE_BYTES

static struct remote *remote;
static struct remote_options options;
static char cache[] = SCRATCH "epimetheus-remote-XXXXXX";

/* Bytes that differ by place and seed. */
static inline void make_bytes(struct buf *out, size_t n, uint32_t seed)
{
	uint64_t v = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;

	buf_clear(out);
	if (!buf_reserve(out, n))
		abort();
	for (; out->len < n; out->len++) {
		v = v * UINT64_C(6364136223846793005) + 1442695040888963407u;
		out->ptr[out->len] = (char)(v >> 56);
	}
}

/* The bytes under "k" in the configured prefix. */
static inline void put_object(const char *key, const struct buf *bytes)
{
	char full[256];

	snprintf(full, sizeof(full), "p/q/%s", key);
	fake_put(&fake, full, buf_str(bytes));
}

static inline bool cache_make(void)
{
	memcpy(cache + sizeof(cache) - 7, "XXXXXX", 6);
	return scratch_dir(cache) != NULL;
}

/* With `options` as they are; the bucket is opened where it is not. */
static inline bool remote_start(void)
{
	if (!b && bucket_open(&config, &b, &err)) {
		printf("  %s\n", err.msg);
		return false;
	}
	options.bucket = b;
	options.free_bytes_reserve = 1;
	if (remote_open(&options, &remote, &err) == ERR_OK)
		return true;
	printf("  %s\n", err.msg);
	return false;
}

/* A fake, a client that gives up at once, and a source with a cache of so many pages. */
static inline bool remote_world(uint64_t cache_pages)
{
	options = (struct remote_options){ .retry_ns = NS_PER_HOUR };
	if (!cache_make() || !world_fake())
		return false;
	config.attempts_max = 1;
	options.cache_dir = cache;
	options.cache_bytes = cache_pages * (PAGE + 64);
	return remote_start();
}

static inline void remote_stop(void)
{
	remote_close(remote);
	remote = NULL;
}

static inline bool remote_again(void)
{
	remote_stop();
	return remote_start();
}

static inline void remote_world_stop(void)
{
	remote_stop();
	world_stop();
	CHECK_OK(fs_remove_tree(&fs_posix, cache, &err), &err);
}

static inline uint64_t requests(void)
{
	struct remote_status s;

	remote_status(remote, &s);
	return s.requests;
}

/* Reads, and compares with the object's bytes. */
static inline enum err_code read_same(
	struct range_reader *r, const struct buf *bytes, uint64_t offset, size_t n, struct err *why)
{
	char *into = malloc(n + 1);
	enum err_code rc = into ? r->ops->read(r, offset, n, into, why) : ERR_NOMEM;

	if (!rc && memcmp(into, bytes->ptr + offset, n) != 0)
		rc = err_set(why, ERR_CORRUPT, "%zu bytes at %" PRIu64 " are wrong", n, offset);
	free(into);
	return rc;
}

#endif
