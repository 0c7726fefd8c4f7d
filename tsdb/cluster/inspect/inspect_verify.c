#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "tsdb/cluster/inspect/inspect.h"
#include "tsdb/segments/segments.h"

#define PIECE_BYTES (8u << 20)
#define LINE_BYTES 1400
#define CACHE_BYTES (32u << 20)

/* ---- lines ---- */

void inspect_note(struct inspect *inspect, const char *fmt, ...)
{
	char line[LINE_BYTES];
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	inspect->note(inspect->ctx, line);
}

enum err_code inspect_check_stop(struct inspect *inspect, struct err *err)
{
	return inspect->stop && inspect->stop(inspect->ctx) ?
		err_set(err, ERR_CANCELED, "interrupted") :
		ERR_OK;
}

/* ---- one object ---- */

static enum err_code inspect_verify_append(int fd, struct str bytes, struct err *err)
{
	while (bytes.len) { /* until all is written */
		ssize_t n = write(fd, bytes.ptr, bytes.len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(err, errno, "write");
		bytes.ptr += n;
		bytes.len -= (size_t)n;
	}
	return ERR_OK;
}

static enum err_code inspect_verify_read_pieces(struct inspect *inspect, struct str key,
	const struct manifest_file *want, int fd, XXH3_state_t *state, struct err *err)
{
	struct buf piece = { 0 };
	enum err_code rc = ERR_OK;
	uint64_t at = 0;

	while (at < want->bytes && !rc) { /* to the object's end */
		uint64_t n = want->bytes - at < PIECE_BYTES ? want->bytes - at : PIECE_BYTES;

		buf_clear(&piece);
		if ((rc = inspect_check_stop(inspect, err)) ||
			(rc = bucket_get(inspect->bucket, key, at, n, &piece, NULL, err)))
			break;
		if (piece.len != n)
			rc = err_set(err, ERR_CORRUPT, "it ends at byte %" PRIu64, at + piece.len);
		else if (fd >= 0)
			rc = inspect_verify_append(fd, buf_str(&piece), err);
		XXH3_64bits_update(state, piece.ptr, piece.len);
		at += n;
	}
	buf_release(&piece);
	return rc;
}

enum err_code inspect_fetch(struct inspect *inspect, struct str key,
	const struct manifest_file *want, const char *path, struct err *err)
{
	XXH3_state_t *state = XXH3_createState();
	enum err_code rc = ERR_OK;
	int fd = -1;

	if (!state)
		return err_nomem(err, "hash");
	XXH3_64bits_reset(state);
	if (path && (fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) < 0)
		rc = err_errno(err, errno, "%s", path);
	if (!rc)
		rc = inspect_verify_read_pieces(inspect, key, want, fd, state, err);
	if (!rc && XXH3_64bits_digest(state) != want->hash)
		rc = err_set(err, ERR_CORRUPT, "its hash is another one");
	XXH3_freeState(state);
	if (fd >= 0)
		close(fd);
	return rc;
}

/* ---- a shard ---- */

struct suspect { /* an object that is not what the manifest says, or has no name */
	struct str rest; /* "": the block itself or the manifest */
	const char *line;
};

struct inspect_verify_verifying {
	struct inspect *x;
	struct str shard;
	struct arena a;
	struct manifest m;
	struct shard_object *objects;
	size_t objects_n;
	struct suspect *suspects;
	size_t n, cap;
	const struct manifest_block *block; /* that is read now */
	enum err_code rc;
	struct err err;
};

static void inspect_verify_suspect(
	struct inspect_verify_verifying *v, struct str rest, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void inspect_verify_suspect(
	struct inspect_verify_verifying *v, struct str rest, const char *fmt, ...)
{
	char line[LINE_BYTES];
	struct str copy, name = str_dup(&v->a, rest);
	va_list args;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	copy = str_dup(&v->a, str_of(line));
	if (!copy.ptr || !name.ptr || !arena_array_room(&v->a, &v->suspects, v->n, 1, &v->cap)) {
		v->rc = v->rc ? v->rc : arena_fail(&v->a, "verify", &v->err);
		return;
	}
	v->suspects[v->n++] = (struct suspect){ name, copy.ptr };
}

/* An error of the object is a finding. An error of the bucket ends the verification. */
static void inspect_verify_judge(struct inspect_verify_verifying *v, const struct manifest_key *key,
	enum err_code rc, const struct err *why)
{
	if (rc == ERR_CORRUPT || rc == ERR_NOT_FOUND || rc == ERR_INVALID || rc == ERR_UNSUPPORTED ||
		rc == ERR_LIMIT) {
		inspect_verify_suspect(v, manifest_key_rest(key, v->shard), "%s: %s", key->text, why->msg);
	} else if (rc && !v->rc) {
		v->rc = rc;
		err_copy(&v->err, why);
	}
}

/* path: where to put it, or NULL. */
static bool inspect_verify_check(struct inspect_verify_verifying *v, const struct manifest_key *key,
	const struct manifest_file *f, const char *path)
{
	const struct shard_object *is = shard_find_object(
		v->objects, v->objects_n, manifest_key_rest(key, v->shard));
	enum err_code rc;
	struct err why;

	v->x->objects++;
	v->x->bytes += f->bytes;
	if (!is)
		rc = err_set(&why, ERR_NOT_FOUND, "not there");
	else if (is->bytes != f->bytes)
		rc = err_set(&why, ERR_CORRUPT, "%" PRIu64 " bytes, %" PRIu64 " in the manifest", is->bytes,
			f->bytes);
	else
		rc = inspect_fetch(v->x, manifest_key_str(key), f, path, &why);
	inspect_verify_judge(v, key, rc, &why);
	return !rc;
}

static bool inspect_verify_check_key(
	void *ctx, const struct manifest_key *key, const struct manifest_file *f)
{
	struct inspect_verify_verifying *v = ctx;

	inspect_verify_check(v, key, f, NULL);
	return !v->rc;
}

/* ---- blocks and segments, read ---- */

static void inspect_verify_on_block_finding(void *ctx, const char *what)
{
	struct inspect_verify_verifying *v = ctx;
	struct manifest_key key = manifest_key_block(v->shard, v->block, MANIFEST_META);

	inspect_verify_suspect(v, manifest_key_rest(&key, v->shard), "shards/" STR_FMT "/blocks/%s: %s",
		STR_ARG(v->shard), v->block->ulid.text, what);
}

static void inspect_verify_read_block(struct inspect_verify_verifying *v, const char *dir)
{
	struct store_cache *cache = store_cache_open(CACHE_BYTES);
	const struct manifest_block *m = v->block;
	struct err why, damaged = { 0 };
	struct block *b = NULL;
	enum err_code rc;

	rc = block_open(dir, NULL, cache, &b, &damaged, &why);
	if (rc) {
		inspect_verify_on_block_finding(v, why.msg);
	} else {
		const struct block_meta *is = block_meta(b);

		if (damaged.code)
			inspect_verify_on_block_finding(v, damaged.msg);
		if (is->min_ns != m->min_ns || is->max_ns != m->max_ns || is->level != m->level ||
			is->raw != m->raw)
			inspect_verify_on_block_finding(
				v, "its times, level or raw rows are not those in the manifest");
		rc = block_verify(
			b, inspect_verify_on_block_finding, v, &why); /* reports findings itself */
		if (rc && rc != ERR_CORRUPT && !v->rc) {
			v->rc = rc;
			err_copy(&v->err, &why);
		}
	}
	block_close(b);
	store_cache_close(cache);
}

static void inspect_verify_check_block(
	struct inspect_verify_verifying *v, const struct manifest_block *b)
{
	char *dir = path_join(&v->a, str_of(v->x->dir), str_of(b->ulid.text));
	bool whole = true;
	struct err why;

	v->block = b;
	if (!dir || fs_mkdir_all(&fs_posix, dir, &why)) {
		v->rc = dir ? err_copy(&v->err, &why) : arena_fail(&v->a, "verify", &v->err);
		return;
	}
	for (unsigned k = 0; k < MANIFEST_BLOCK_FILES && !v->rc; k++) {
		struct manifest_key key = manifest_key_block(v->shard, b, k);
		const struct manifest_file *f = manifest_block_file(b, k);

		if (f->bytes)
			whole &= inspect_verify_check(
				v, &key, f, path_join(&v->a, str_of(dir), str_of(manifest_block_file_names[k])));
	}
	if (whole && !v->rc)
		inspect_verify_read_block(v, dir);
	if (fs_remove_tree(&fs_posix, dir, &why) && !v->rc)
		v->rc = err_copy(&v->err, &why);
}

static enum err_code inspect_verify_read_segment(const char *path, const struct manifest_window *w,
	const struct manifest_segment *s, struct err *err)
{
	struct segment_reader *r = NULL;
	const struct segment *head;
	struct segment_frame frame;
	enum err_code rc;

	if ((rc = segment_reader_open_file(path, &r, err)))
		return rc;
	head = segment_reader_head(r);
	if (head->start_ns != w->start_ns || head->end_ns != w->end_ns ||
		head->identity != w->identity || head->first != s->first || head->last != s->last)
		rc = err_set(err, ERR_CORRUPT, "its window or batches are not those in the manifest");
	while (!rc) /* all frames */
		rc = segment_reader_next(r, &frame, err);
	segment_reader_close(r);
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

static void inspect_verify_check_window(
	struct inspect_verify_verifying *v, const struct manifest_window *w)
{
	char *path = path_join(&v->a, str_of(v->x->dir), STR("segment"));
	struct manifest_key key;
	struct err why;

	for (uint32_t i = 0; i < w->segments_n && path && !v->rc; i++) {
		key = manifest_key_segment(v->shard, w, &w->segments[i]);
		if (inspect_verify_check(v, &key, &w->segments[i].object, path))
			inspect_verify_judge(
				v, &key, inspect_verify_read_segment(path, w, &w->segments[i], &why), &why);
	}
	if (path)
		(void)!unlink(path);
	key = manifest_key_window_deleted(v->shard, w);
	if (w->deleted.bytes && !v->rc)
		inspect_verify_check(v, &key, &w->deleted, NULL);
}

static void inspect_verify_check_deep(struct inspect_verify_verifying *v)
{
	struct manifest small = { .shard = v->shard, .ids = v->m.ids, .losses = v->m.losses };

	manifest_each_key(&small, inspect_verify_check_key, v);
	for (uint32_t i = 0; i < v->m.windows_n && !v->rc; i++)
		inspect_verify_check_window(v, &v->m.windows[i]);
	for (uint32_t i = 0; i < v->m.blocks_n && !v->rc; i++)
		inspect_verify_check_block(v, &v->m.blocks[i]);
}

/* ---- the end ---- */

static int inspect_verify_gone_cmp(const void *a, const void *b)
{
	return str_cmp(((const struct manifest_gone *)a)->key, ((const struct manifest_gone *)b)->key);
}

/* Reports findings and orphans, by the manifest that is there in the end. */
static enum err_code inspect_verify_tell(struct inspect_verify_verifying *v, struct err *err)
{
	struct manifest_key at = manifest_key_of(v->shard);
	struct key_set then, now;
	struct manifest m;
	enum err_code rc;

	if ((rc = key_set_named(&v->m, v->shard, &v->a, &then, err)))
		return rc;
	rc = manifest_get(v->x->bucket, manifest_key_str(&at), &v->a, &m, NULL, err);
	if (rc == ERR_NOT_FOUND) /* removed meanwhile */
		m = v->m;
	else if (rc)
		return rc;
	if ((rc = key_set_named(&m, v->shard, &v->a, &now, err)))
		return rc;
	for (size_t i = 0; i < v->n; i++) {
		if (!key_set_has(&now, v->suspects[i].rest))
			continue;
		v->x->findings++;
		v->x->finding(v->x->ctx, v->suspects[i].line);
	}
	for (size_t i = 0; i < v->objects_n; i++) {
		const struct manifest_gone key = { .key = v->objects[i].rest };

		if (str_is(key.key, "manifest") || key_set_has(&then, key.key) ||
			key_set_has(&now, key.key) ||
			(m.gone_n && bsearch(&key, m.gone, m.gone_n, sizeof(key), inspect_verify_gone_cmp)))
			continue;
		v->x->orphans++;
		inspect_note(v->x,
			"shards/" STR_FMT "/" STR_FMT ": no manifest names it (%" PRIu64 " bytes)",
			STR_ARG(v->shard), STR_ARG(key.key), v->objects[i].bytes);
	}
	return ERR_OK;
}

static enum err_code inspect_verify_shard(struct inspect_verify_verifying *v, struct err *err)
{
	struct manifest_key key = manifest_key_of(v->shard);
	enum err_code rc;

	v->x->shards++;
	rc = manifest_get(v->x->bucket, manifest_key_str(&key), &v->a, &v->m, NULL, err);
	if (rc == ERR_NOT_FOUND || rc == ERR_CORRUPT || rc == ERR_UNSUPPORTED || rc == ERR_LIMIT) {
		v->x->findings++;
		v->x->finding(v->x->ctx, err->msg);
		return ERR_OK;
	}
	if (rc ||
		(rc = shard_list_objects(v->x->bucket, v->shard, &v->a, &v->objects, &v->objects_n, err)))
		return rc;
	v->m.shard = v->shard;
	v->x->blocks += v->m.blocks_n;
	if (v->x->dir)
		inspect_verify_check_deep(v);
	else
		manifest_each_key(&v->m, inspect_verify_check_key, v);
	return v->rc ? err_copy(err, &v->err) : inspect_verify_tell(v, err);
}

enum err_code inspect_verify(struct inspect *inspect, struct str shard, struct err *err)
{
	struct inspect_verify_verifying v = { .x = inspect, .shard = shard };
	enum err_code rc;

	if ((rc = manifest_check_shard(shard, err)))
		return rc;
	arena_init(&v.a, 0);
	rc = inspect_verify_shard(&v, err);
	arena_release(&v.a);
	return rc;
}
