#include "tsdb/block/block_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <xxhash.h>

/*
 * Opening a block where each read is a request: `spare` has the small records and the ends of both
 * tables, so one request does. It is believed by the hash that is known of it. A table is opened
 * by its end in `spare`, and asked whose it is when it is first read: a table of another block in
 * its place would have wrong pages, or perhaps right ones of the same sizes.
 */
#define SPARE_BYTES_MAX \
	(16u << 20) /* four requests (tsdb/remote); larger ones are read by pages \
				 */

static enum err_code block_check_hash(
	struct block *b, const char *path, const struct block_file *want, struct err *err)
{
	struct buf bytes = { 0 };
	struct range_reader *r;
	enum err_code rc;
	uint64_t hash;

	if ((rc = range_open(b->from, path, &r, err)))
		return rc;
	if (r->bytes != want->bytes)
		rc = err_set(err, ERR_CORRUPT, "%s has %" PRIu64 " bytes, not %" PRIu64, path, r->bytes,
			want->bytes);
	else if (!buf_reserve(&bytes, (size_t)r->bytes))
		rc = err_nomem(err, path);
	else
		rc = r->ops->read(r, 0, (size_t)r->bytes, bytes.ptr, err);
	if (!rc && (hash = XXH3_64bits(bytes.ptr, (size_t)r->bytes)) != want->hash)
		rc = err_set(err, ERR_CORRUPT, "%s: its hash is %016" PRIx64 ", not %016" PRIx64, path,
			hash, want->hash);
	range_close(r);
	buf_release(&bytes);
	return rc;
}

/* ---- whose a table is ---- */

/* If its identity cannot be read, its end must be the one in `spare`. */
static enum err_code block_ask(void *ctx, struct table *t, struct err *err)
{
	const struct block_guarded *g = ctx;
	struct ulid of;
	enum err_code rc = block_identity_get(t, g->name, &of, err);

	if (!rc)
		return block_check_ulid(g->b, g->name, &of, err);
	if (rc == ERR_CORRUPT || (rc == ERR_NOT_FOUND && g->b->meta.unnamed))
		return table_check_end(t, err);
	return rc == ERR_NOT_FOUND ?
		err_set(err, ERR_CORRUPT, "%s/%s does not say of which block it is", g->b->dir, g->name) :
		rc;
}

static enum err_code block_open_guarded(struct block *b, const char *name,
	const struct block_file *want, struct block_guarded *g, struct table **out, struct err *err)
{
	char *path = block_path(&b->arena, b->dir, name);
	struct buf end = { 0 };
	struct range_reader *r;
	enum err_code rc;

	*g = (struct block_guarded){ b, name };
	if (!path)
		return arena_fail(&b->arena, "path", err);
	if ((rc = block_spare_end(b, name, &end, err)) || (rc = range_open(b->from, path, &r, err)))
		goto out;
	if (r->bytes == want->bytes) {
		rc = table_open_by_spare(
			r, buf_str(&end), &(struct table_guard){ block_ask, g }, b->cache, out, err);
	} else {
		rc = err_set(err, ERR_CORRUPT, "%s has %" PRIu64 " bytes, not %" PRIu64, path, r->bytes,
			want->bytes);
		range_close(r);
	}
out:
	buf_release(&end);
	return rc;
}

/* ---- opening ---- */

static enum err_code block_load(struct block *b, const struct block_known *known, struct err *err)
{
	struct block_meta *m = &b->meta;
	struct err damaged = { 0 };
	struct table *spare;
	enum err_code rc;

	if (!(spare = block_spare(b, err)))
		return err->code;
	if (known->meta_changed) {
		if ((rc = block_load_meta(b, &damaged, err)))
			return rc;
		if (damaged.code)
			return err_copy(err, &damaged);
	} else {
		if ((rc = block_meta_from(b, spare, "spare", err)))
			return rc;
		m->spare_file = known->spare;
		b->meta_bytes = known->meta.bytes;
	}
	b->index = spare;
	if ((rc = block_open_guarded(
			 b, "rollups.ldb", &m->rollups_file, &b->guarded[0], &b->rollups, err)) ||
		(rc = block_load_partitions(b, err)))
		return rc;
	return m->raw ?
		block_open_guarded(b, "rows.ldb", &m->rows_file, &b->guarded[1], &b->rows, err) :
		ERR_OK;
}

enum err_code block_load_known(
	struct block *b, const struct block_known *known, struct err *damaged, struct err *err)
{
	char *path = block_path(&b->arena, b->dir, "spare");
	enum err_code rc;
	struct err why;

	if (!path)
		return arena_fail(&b->arena, "path", err);
	if (!known->spare.bytes || known->spare.bytes > SPARE_BYTES_MAX)
		return ERR_NOT_FOUND;
	if (!(rc = block_check_hash(b, path, &known->spare, &why)) &&
		!(rc = block_load(b, known, &why)))
		return ERR_OK;
	if (rc == ERR_NOMEM || rc == ERR_UNSUPPORTED || range_unreachable(rc))
		return err_copy(err, &why);
	if (damaged)
		*damaged = why;
	table_close(b->rows);
	table_close(b->rollups);
	b->rows = b->rollups = b->index = NULL;
	b->meta = (struct block_meta){ 0 };
	return ERR_NOT_FOUND;
}
