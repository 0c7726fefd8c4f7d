/* A fake store and a client of it; a test program has one of each. */
#ifndef TESTS_TSDB_BUCKET_WORLD_H
#define TESTS_TSDB_BUCKET_WORLD_H

#include "tests/check.h"
#include "tests/tsdb/bucket/fake.h"

static struct fake fake;
static struct bucket_config config;
static struct bucket *b;
static struct err err;

/* The configuration may be changed between the two. */
static inline bool world_fake(void)
{
	if (!fake_start(&fake, NULL))
		return false;
	config = fake_config(&fake);
	return true;
}

static inline bool world_start(void)
{
	if (!world_fake())
		return false;
	if (bucket_open(&config, &b, &err) == ERR_OK)
		return true;
	printf("  %s\n", err.msg);
	return false;
}

static inline void world_stop(void)
{
	bucket_close(b);
	b = NULL;
	fake_stop(&fake);
}

static inline enum err_code put_text(const char *key, const char *text)
{
	return bucket_put(b, str_of(key), str_of(text), BUCKET_ANY, NULL, NULL, &err);
}

/* The whole object. */
static inline enum err_code get_text(const char *key, struct buf *out)
{
	buf_clear(out);
	return bucket_get(b, str_of(key), 0, BUCKET_TO_END, out, NULL, &err);
}

#endif
