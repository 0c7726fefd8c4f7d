#include "tsdb/store/store_internal.h"

#include <assert.h>
#include <errno.h>
#include <leveldb/c.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/fs.h"
#include "base/map.h"
#include "tsdb/store/store_internal.h"

/*
 * Measured with rows of 0.5 to 2 KB: pages of 16 KiB keep the index of a window small and a scan
 * quick; snappy costs more time on rows than it saves bytes, since they are packed already. A write
 * buffer of 8 MiB is what the memory budget allows (two of them while one is written out).
 */
#define WRITE_BUFFER_BYTES (8u << 20)
#define COPY_BUFFER_BYTES (1u << 20)
#define PAGE_BYTES (16u << 10)
#define FILE_BYTES (16u << 20)
#define OPEN_FILES_MAX 128
#define BATCH_KEPT_BYTES (1u << 20)
#define CHECKSUM_BYTES 4u

struct store_batch {
	leveldb_writebatch_t *b;
	size_t bytes;
	uint64_t identity;
	struct buf copies;
};

struct store_cache *store_cache_open(size_t bytes)
{
	return (struct store_cache *)leveldb_cache_create_lru(bytes);
}

void store_cache_close(struct store_cache *c)
{
	if (c)
		leveldb_cache_destroy((leveldb_cache_t *)c);
}

/* leveldb_cache_t is a struct of one pointer, which LevelDB's C interface does not declare. */
void *store_cache_leveldb(struct store_cache *c)
{
	void *cache = NULL;

	if (c)
		memcpy(&cache, c, sizeof(cache));
	return cache;
}

enum err_code store_error_of(char *msg, const char *dir, struct err *err)
{
	enum err_code rc;

	if (!msg)
		return ERR_OK;
	/* A file that ends before its index says is "Invalid argument" to LevelDB's reader. */
	rc = ERR_IO;
	if (strncmp(msg, "Corruption", 10) == 0 ||
		str_has_suffix(str_of(msg), STR(": Invalid argument")))
		rc = ERR_CORRUPT;
	err_set(err, rc, "store %s: %s", dir, msg);
	leveldb_free(msg);
	return rc;
}

leveldb_options_t *store_make_options(struct store_cache *cache)
{
	leveldb_options_t *o = leveldb_options_create();

	leveldb_options_set_create_if_missing(o, 1);
	leveldb_options_set_paranoid_checks(o, 1);
	leveldb_options_set_write_buffer_size(o, WRITE_BUFFER_BYTES);
	leveldb_options_set_block_size(o, PAGE_BYTES);
	leveldb_options_set_max_file_size(o, FILE_BYTES);
	leveldb_options_set_max_open_files(o, OPEN_FILES_MAX);
	leveldb_options_set_compression(o, leveldb_no_compression);
	if (cache)
		leveldb_options_set_cache(o, (leveldb_cache_t *)cache);
	return o;
}

/*
 * LevelDB takes a directory without CURRENT for a new store, and begins by removing what it does
 * not know. CURRENT is written before the first log and table, so if those are there and it is not,
 * it was lost. LevelDB believes whatever CURRENT says to be a file's name.
 */
static enum err_code store_check_current(const char *dir, struct err *err)
{
	struct arena a;
	struct str *names;
	struct buf current = { 0 };
	enum err_code rc = ERR_OK;
	bool there = false, others = false;
	size_t n;

	if (!fs_exists(dir) || (rc = store_check_names(dir, err)))
		return rc;
	arena_init(&a, 0);
	if ((rc = fs_list(dir, &a, &names, &n, err)))
		goto out;
	for (size_t i = 0; i < n; i++) {
		there |= str_is(names[i], "CURRENT");
		others |= str_has_suffix(names[i], STR(".ldb")) || str_has_suffix(names[i], STR(".log"));
	}
	if (!there && others)
		rc = err_set(err, ERR_CORRUPT, "store %s: CURRENT is missing", dir);
	if (!there)
		goto out;
	rc = fs_read_file(path_join(&a, str_of(dir), STR("CURRENT")), 4096, &current, err);
	if (rc == ERR_LIMIT || (!rc && !str_has_prefix(buf_str(&current), STR("MANIFEST-"))))
		rc = err_set(err, ERR_CORRUPT, "store %s: CURRENT names no MANIFEST", dir);
out:
	buf_release(&current);
	arena_release(&a);
	return rc;
}

static enum err_code store_ops_real_open(
	const struct store_ops *ops, struct store *s, struct err *err)
{
	char *msg = NULL;
	enum err_code rc;

	if ((rc = store_check_current(s->dir, err)))
		return rc;
	leveldb_options_set_env(s->options, ops->env ? ops->env : store_env());
	s->db = leveldb_open(s->options, s->dir, &msg);
	return store_error_of(msg, s->dir, err);
}

static enum err_code store_ops_real_write(
	const struct store_ops *ops, struct store *s, struct store_batch *b, struct err *err)
{
	char *msg = NULL;

	leveldb_write(s->db, s->write, b->b, &msg);
	return store_error_of(msg, s->dir, err);
}

const struct store_ops store_leveldb = { store_ops_real_open, store_ops_real_write, NULL };

static struct store *store_make(
	const char *dir, struct store_cache *cache, const struct store_ops *ops)
{
	struct store *s = calloc(1, sizeof(*s));

	if (!s || !(s->dir = strdup(dir))) {
		free(s);
		return NULL;
	}
	s->ops = ops ? ops : &store_leveldb;
	s->options = store_make_options(cache);
	s->read = leveldb_readoptions_create();
	leveldb_readoptions_set_verify_checksums(s->read, 1);
	s->write = leveldb_writeoptions_create();
	leveldb_writeoptions_set_sync(s->write, 1);
	return s;
}

static enum err_code store_open_made(
	struct store *s, const char *dir, struct store **out, struct err *err)
{
	enum err_code rc;

	if (!s)
		return err_set(err, ERR_NOMEM, "store %s: out of memory", dir);
	if ((rc = s->ops->open(s->ops, s, err)))
		store_close(s);
	else
		*out = s;
	return rc;
}

enum err_code store_open(const char *dir, struct store_cache *cache, const struct store_ops *ops,
	struct store **out, struct err *err)
{
	return store_open_made(store_make(dir, cache, ops), dir, out, err);
}

enum err_code store_open_copy(const char *dir, struct store_cache *cache,
	const struct store_ops *ops, struct store **out, struct err *err)
{
	struct store *s = store_make(dir, cache, ops);

	if (s) {
		leveldb_options_set_write_buffer_size(s->options, COPY_BUFFER_BYTES);
		leveldb_writeoptions_set_sync(s->write, 0);
	}
	return store_open_made(s, dir, out, err);
}

enum err_code store_open_shadow(const char *dir, struct store_cache *cache,
	const struct store_ops *ops, struct store **out, struct err *err)
{
	struct store *s = store_make(dir, cache, ops);
	char *msg = NULL;
	enum err_code rc;

	if (!s || !(s->shadow = store_shadow_open(s->ops->env ? s->ops->env : store_env()))) {
		store_close(s);
		return err_set(err, ERR_NOMEM, "store %s: out of memory", dir);
	}
	if (!(rc = store_check_current(dir, err))) {
		leveldb_options_set_env(s->options, store_shadow_env(s->shadow));
		s->db = leveldb_open(s->options, s->dir, &msg);
		rc = store_error_of(msg, s->dir, err);
	}
	if (rc)
		store_close(s);
	else
		*out = s;
	return rc;
}

bool store_is_full(const struct err *err)
{
	return err->code == ERR_IO &&
		(strstr(err->msg, strerror(ENOSPC)) || strstr(err->msg, strerror(EDQUOT)));
}

char *store_property(struct store *s, const char *name)
{
	char *v = leveldb_property_value(s->db, name), *copy = v ? strdup(v) : NULL;

	leveldb_free(v);
	return copy;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	if (s->db)
		leveldb_close(s->db);
	store_shadow_close(s->shadow);
	leveldb_options_destroy(s->options);
	leveldb_readoptions_destroy(s->read);
	leveldb_writeoptions_destroy(s->write);
	free(s->dir);
	free(s);
}

void store_set_identity(struct store *s, uint64_t identity)
{
	s->identity = identity;
}

const char *store_dir(const struct store *s)
{
	return s->dir;
}

/* ---- records ---- */

static uint32_t store_checksum(struct str key, struct str value, uint64_t identity)
{
	return (uint32_t)hash_bytes(value.ptr, value.len, hash_bytes(key.ptr, key.len, identity));
}

enum err_code store_record_value(
	struct str key, struct str record, uint64_t identity, struct str *value, struct err *err)
{
	struct str v = { record.ptr, record.len - CHECKSUM_BYTES };
	struct cursor c;

	if (record.len >= CHECKSUM_BYTES) {
		c = cursor_of((struct str){ record.ptr + v.len, CHECKSUM_BYTES });
		if (cursor_u32be(&c) == store_checksum(key, v, identity)) {
			*value = v;
			return ERR_OK;
		}
	}
	return err_set(err, ERR_CORRUPT, "a record's checksum is wrong");
}

void store_record_seal(struct str key, struct buf *value, uint64_t identity)
{
	buf_add_u32be(value, store_checksum(key, buf_str(value), identity));
}

struct str store_record_known(struct str record)
{
	assert(record.len >= CHECKSUM_BYTES);
	return (struct str){ record.ptr, record.len - CHECKSUM_BYTES };
}

enum err_code store_open_record(
	const struct store *s, struct str key, struct str record, struct str *out, struct err *err)
{
	enum err_code rc = store_record_value(key, record, s->identity, out, err);

	return rc ? err_wrap(err, rc, "store %s", s->dir) : ERR_OK;
}

struct store_batch *store_batch_open(void)
{
	struct store_batch *b = calloc(1, sizeof(*b));

	if (b)
		b->b = leveldb_writebatch_create();
	return b;
}

void store_batch_close(struct store_batch *b)
{
	if (!b)
		return;
	leveldb_writebatch_destroy(b->b);
	buf_release(&b->copies);
	free(b);
}

void store_batch_clear(struct store_batch *b)
{
	/* Clearing keeps the room of the largest there ever was. */
	if (b->bytes > BATCH_KEPT_BYTES) {
		leveldb_writebatch_destroy(b->b);
		b->b = leveldb_writebatch_create();
	} else {
		leveldb_writebatch_clear(b->b);
	}
	b->bytes = 0;
	buf_clear(&b->copies);
}

void store_batch_set_identity(struct store_batch *b, uint64_t identity)
{
	b->identity = identity;
}

void store_batch_put(struct store_batch *b, struct str key, struct buf *value)
{
	assert(key.len);
	store_record_seal(key, value, b->identity);
	if (buf_failed(value))
		return;
	leveldb_writebatch_put(b->b, key.ptr, key.len, value->ptr, value->len);
	b->bytes += key.len + value->len;
}

void store_batch_put_record(struct store_batch *b, struct str key, struct str record)
{
	leveldb_writebatch_put(b->b, key.ptr, key.len, record.ptr, record.len);
	b->bytes += key.len + record.len;
}

void store_batch_put_twice(struct store_batch *b, struct str key, struct buf *value)
{
	store_batch_put(b, key, value);
	buf_add_lenstr(&b->copies, key);
	buf_add_lenstr(&b->copies, buf_str(value));
}

struct str store_batch_copies(const struct store_batch *b)
{
	return buf_failed(&b->copies) ? (struct str){ 0 } : buf_str(&b->copies);
}

void store_batch_append(struct store_batch *to, const struct store_batch *from)
{
	buf_add_str(&to->copies, buf_str(&from->copies));
	leveldb_writebatch_append(to->b, from->b);
	to->bytes += from->bytes;
}

size_t store_batch_bytes(const struct store_batch *b)
{
	return b->bytes;
}

struct each_put {
	store_put_fn fn;
	void *ctx;
};

static void each_put(
	void *state, const char *key, size_t key_len, const char *record, size_t record_len)
{
	const struct each_put *e = state;

	e->fn(e->ctx, (struct str){ key, key_len }, (struct str){ record, record_len });
}

static void store_each_removed(void *state, const char *key, size_t key_len)
{
	(void)state, (void)key, (void)key_len; /* nothing is ever removed */
}

void store_batch_each(const struct store_batch *b, store_put_fn fn, void *ctx)
{
	struct each_put e = { fn, ctx };

	leveldb_writebatch_iterate(b->b, &e, each_put, store_each_removed);
}

enum err_code store_write(struct store *s, struct store_batch *b, struct err *err)
{
	return s->ops->write(s->ops, s, b, err);
}

/* ---- reading ---- */

struct store_snapshot *store_snapshot_open(struct store *s)
{
	struct store_snapshot *snap = malloc(sizeof(*snap));

	if (snap)
		snap->s = leveldb_create_snapshot(s->db);
	return snap;
}

void store_snapshot_close(struct store *s, struct store_snapshot *snap)
{
	if (!snap)
		return;
	leveldb_release_snapshot(s->db, snap->s);
	free(snap);
}

enum err_code store_get(struct store *s, struct str key, struct buf *out, struct err *err)
{
	struct str record, value;
	char *msg = NULL, *got;
	enum err_code rc;

	got = leveldb_get(s->db, s->read, key.ptr, key.len, &record.len, &msg);
	if ((rc = store_error_of(msg, s->dir, err)))
		return rc;
	if (!got)
		return err_set(err, ERR_NOT_FOUND, "store %s: no such record", s->dir);
	record.ptr = got;
	if (!(rc = store_open_record(s, key, record, &value, err))) {
		buf_add_str(out, value);
		if (buf_failed(out))
			rc = err_set(err, ERR_NOMEM, "store %s: out of memory", s->dir);
	}
	leveldb_free(got);
	return rc;
}
