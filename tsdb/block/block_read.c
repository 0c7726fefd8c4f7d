#include "tsdb/block/block_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

/* Opens a block; reads partitions, series and groups by number. */

static enum err_code block_open_table(struct block *b, const char *name, struct str end,
	struct table **out, uint64_t *bytes, struct err *damaged, struct err *err)
{
	char *path = block_path(&b->arena, b->dir, name);
	struct range_reader *r;
	enum err_code rc;

	if (!path)
		return arena_fail(&b->arena, "path", err);
	if ((rc = range_open(b->from, path, &r, err)))
		return rc;
	*bytes = r->bytes;
	return table_open(r, end, b->cache, out, damaged, err);
}

/* ---- whose files they are ---- */

enum err_code block_check_ulid(
	const struct block *b, const char *name, const struct ulid *of, struct err *err)
{
	const struct ulid *want = b->meta.ulid.text[0] ? &b->meta.ulid : &b->named;

	if (!want->text[0] || strcmp(of->text, want->text) == 0)
		return ERR_OK;
	return err_set(err, ERR_CORRUPT, "%s/%s is a file of block %s", b->dir, name, of->text);
}

/* The end of a table, kept in a `spare`. */
static enum err_code block_get_end(
	struct table *spare, const char *name, struct buf *out, struct err *err)
{
	struct buf key = { 0 };
	enum err_code rc;

	buf_add_char(&key, KEY_END);
	buf_add_cstr(&key, name);
	rc = buf_failed(&key) ? err_nomem(err, "block") : table_get(spare, buf_str(&key), out, err);
	buf_release(&key);
	return rc;
}

/* Tables of older programs do not say that they are a spare: no other has these. */
static enum err_code block_check_spare(struct block *b, struct table *t, struct err *err)
{
	struct buf end = { 0 };
	enum err_code rc = block_check_role(b, t, "spare", err);

	if (!rc && block_get_end(t, "rollups.ldb", &end, NULL) == ERR_NOT_FOUND)
		rc = err_set(err, ERR_CORRUPT, "%s/spare has no end of rollups.ldb", b->dir);
	buf_release(&end);
	return rc;
}

/* A `spare` of version 1 says whose it is in its meta alone. */
static enum err_code block_unnamed_spare(
	struct block *b, struct table *t, struct ulid *of, struct err *err)
{
	struct block_key key = { .at = { KEY_META }, .len = 1 };
	struct buf text = { 0 };
	struct block_meta meta;
	enum err_code rc;

	if (!(rc = table_get(t, block_key_str(&key), &text, err)) &&
		!(rc = block_meta_parse(buf_str(&text), &b->arena, &meta, err))) {
		*of = meta.ulid;
		if (!meta.unnamed)
			rc = err_set(err, ERR_CORRUPT, "spare does not say of which block it is");
	}
	buf_release(&text);
	return rc;
}

/* A file of another block counts as missing, and so does another file of this one. */
static enum err_code block_open_spare(struct block *b, struct err *err)
{
	struct table *t = NULL;
	struct ulid of;
	uint64_t bytes;
	enum err_code rc;

	mutex_assert_held(&b->lock);
	if ((rc = block_open_table(b, "spare", STR(""), &t, &bytes, NULL, err)))
		return rc;
	if ((rc = block_identity_get(t, "spare", &of, err)) == ERR_NOT_FOUND)
		rc = block_unnamed_spare(b, t, &of, err);
	if (rc || (rc = block_check_ulid(b, "spare", &of, err)) || (rc = block_check_spare(b, t, err)))
		table_close(t);
	else
		b->spare = t;
	return rc;
}

struct table *block_spare(struct block *b, struct err *err)
{
	struct table *t;

	mutex_lock(&b->lock);
	if (!b->spare_tried) {
		b->spare_rc = block_open_spare(b, &b->spare_why);
		b->spare_tried = !range_unreachable(b->spare_rc);
	}
	if (b->spare_rc)
		err_copy(err, &b->spare_why);
	t = b->spare;
	mutex_unlock(&b->lock);
	return t;
}

/* Keeps the first error. */
static void block_note(struct err *damaged, const struct err *why)
{
	if (damaged && !damaged->code)
		*damaged = *why;
}

/* ---- meta ---- */

static enum err_code block_parse_meta(
	struct block *b, struct str text, const char *where, struct err *err)
{
	struct block_meta meta;
	enum err_code rc = block_meta_parse(text, &b->arena, &meta, err);

	if (rc)
		return err_wrap(err, rc, "%s/%s", b->dir, where);
	if (!(rc = block_check_ulid(b, where, &meta.ulid, err)))
		b->meta = meta;
	return rc;
}

enum err_code block_meta_from(struct block *b, struct table *t, const char *where, struct err *err)
{
	struct block_key key = { .at = { KEY_META }, .len = 1 };
	struct buf text = { 0 };
	enum err_code rc;

	if (!(rc = table_get(t, block_key_str(&key), &text, err)))
		rc = block_parse_meta(b, buf_str(&text), where, err);
	buf_release(&text);
	return rc;
}

static enum err_code block_meta_from_rollups(struct block *b, struct err *err)
{
	struct table *t = NULL;
	uint64_t bytes;
	enum err_code rc;

	if ((rc = block_open_table(b, "rollups.ldb", STR(""), &t, &bytes, NULL, err)))
		return rc;
	rc = block_meta_from(b, t, "rollups.ldb", err);
	table_close(t);
	return rc;
}

enum err_code block_load_meta(struct block *b, struct err *damaged, struct err *err)
{
	char *path = block_path(&b->arena, b->dir, "meta.json");
	struct buf text = { 0 };
	struct table *spare;
	enum err_code rc;
	struct err why;

	if (!path)
		return arena_fail(&b->arena, "path", err);
	if (!(rc = range_read_all(b->from, path, BLOCK_META_BYTES_MAX, &text, &why)))
		rc = block_parse_meta(b, buf_str(&text), "meta.json", &why);
	b->meta_bytes = text.len;
	buf_release(&text);
	if (rc == ERR_OK)
		return ERR_OK;
	if (rc == ERR_NOMEM || rc == ERR_UNSUPPORTED || range_unreachable(rc))
		goto fail;
	rc = (spare = block_spare(b, NULL)) ? block_meta_from(b, spare, "spare", err) : ERR_NOT_FOUND;
	if (rc == ERR_OK || (rc != ERR_UNSUPPORTED && (rc = block_meta_from_rollups(b, err)) == ERR_OK))
		goto made_up;
	if (rc == ERR_UNSUPPORTED) /* whole, and a newer program's */
		return rc;
fail:
	return err_copy(err, &why);
made_up:
	b->meta.spare_file = (struct block_file){ 0 };
	block_note(damaged, &why);
	return ERR_OK;
}

/* ---- opening ---- */

enum err_code block_spare_end(struct block *b, const char *name, struct buf *out, struct err *err)
{
	struct table *spare = block_spare(b, err);

	return spare ? block_get_end(spare, name, out, err) : ERR_CORRUPT;
}

/* Uses the end in `spare` if the table's end (*t is NULL then) or its identity page cannot be read:
 * the other of the two must fit. */
static enum err_code block_open_by_spare(struct block *b, const char *name, struct str end,
	struct table **t, uint64_t *bytes, struct err *err)
{
	struct err differ = { 0 };
	bool has_end = *t != NULL;
	struct ulid of;
	enum err_code rc;

	table_close(*t);
	*t = NULL;
	if ((rc = block_open_table(b, name, end, t, bytes, &differ, err)))
		return rc;
	if (!has_end && !(rc = block_identity_get(*t, name, &of, err)))
		return block_check_ulid(b, name, &of, err);
	if (!has_end && rc == ERR_NOT_FOUND && b->meta.unnamed)
		return ERR_OK;
	return rc ? rc : differ.code;
}

static enum err_code block_check_size(struct block *b, const char *name, uint64_t bytes,
	const struct block_file *want, struct err *err)
{
	if (!want->bytes || want->bytes == bytes)
		return ERR_OK;
	return err_set(err, ERR_CORRUPT, "%s/%s has %" PRIu64 " bytes, not %" PRIu64, b->dir, name,
		bytes, want->bytes);
}

/* A table of version 1 does not say whose it is: its end must be the one in `spare`, if that can be
 * read. */
static enum err_code block_check_unnamed(
	struct block *b, const char *name, struct table **t, uint64_t *bytes, struct err *err)
{
	struct buf end = { 0 };
	enum err_code rc = ERR_OK;

	if (!block_spare_end(b, name, &end, NULL) &&
		(rc = block_open_by_spare(b, name, buf_str(&end), t, bytes, err)) == ERR_CORRUPT)
		err_set(err, rc, "%s/%s is not the table that spare knows", b->dir, name);
	buf_release(&end);
	return rc;
}

static enum err_code block_open_checked(struct block *b, const char *name,
	const struct block_file *want, struct table **out, struct err *damaged, struct err *err)
{
	struct buf end = { 0 };
	struct table *t = NULL;
	struct err why = { 0 };
	uint64_t bytes = 0;
	struct ulid of;
	enum err_code rc;

	if (!(rc = block_open_table(b, name, STR(""), &t, &bytes, NULL, &why)))
		rc = block_identity_get(t, name, &of, &why);
	if (!rc) {
		if (!(rc = block_check_ulid(b, name, &of, &why)) &&
			!(rc = block_check_role(b, t, name, &why)))
			rc = block_check_size(b, name, bytes, want, &why);
	} else if (rc == ERR_NOT_FOUND && t && b->meta.unnamed) {
		if (!(rc = block_check_unnamed(b, name, &t, &bytes, &why)))
			rc = block_check_size(b, name, bytes, want, &why);
	} else if (rc == ERR_CORRUPT && block_spare_end(b, name, &end, NULL) == ERR_OK &&
		!(rc = block_open_by_spare(b, name, buf_str(&end), &t, &bytes, NULL))) {
		block_note(damaged, &why);
	}
	buf_release(&end);
	if (!rc) {
		*out = t;
		return ERR_OK;
	}
	table_close(t);
	err_copy(err, &why);
	return rc == ERR_NOT_FOUND ? ERR_CORRUPT : rc;
}

static enum err_code block_open_rows(struct block *b, struct err *damaged, struct err *err)
{
	enum err_code rc;
	struct err why;

	if (!b->meta.raw)
		return ERR_OK;
	rc = block_open_checked(b, "rows.ldb", &b->meta.rows_file, &b->rows, damaged, &why);
	if (rc == ERR_NOMEM || range_unreachable(rc))
		return err_copy(err, &why);
	if (rc)
		block_note(damaged, &why);
	return ERR_OK;
}

enum err_code block_load_partitions(struct block *b, struct err *err)
{
	struct block_key from = { .at = { KEY_PARTITION }, .len = 1 };
	struct str key, value;
	struct index_iter it;
	uint64_t slot = 0, first = b->meta.number_series;
	enum err_code rc;

	if (b->meta.partitions > BLOCK_PARTITIONS_MAX)
		return err_set(err, ERR_LIMIT, "%s: %" PRIu64 " partitions, limit %u", b->dir,
			b->meta.partitions, BLOCK_PARTITIONS_MAX);
	if (!(b->slots = arena_array(&b->arena, struct block_slot, b->meta.partitions + 1)))
		return arena_fail(&b->arena, "partitions", err);
	if ((rc = index_iter_open(&it, b, block_key_str(&from), err)))
		return rc;
	while (!(rc = index_iter_next(&it, &key, &value, err))) {
		struct block_key want = block_key_id(KEY_PARTITION, (uint32_t)slot);
		struct block_slot *s = &b->slots[slot];

		if (slot == b->meta.partitions || !str_eq(key, block_key_str(&want)))
			break;
		if ((rc = block_slot_decode(value, &b->arena, s, err)))
			break;
		if (s->first != first || s->n > b->meta.series - first)
			break;
		first += s->n;
		slot++;
	}
	index_iter_close(&it);
	if (rc && rc != ERR_NOT_FOUND)
		return rc;
	if (rc == ERR_OK || slot != b->meta.partitions || first != b->meta.series)
		return err_set(err, ERR_CORRUPT, "%s: its partitions are not those it should have", b->dir);
	return ERR_OK;
}

static enum err_code block_read_load(struct block *b, struct err *damaged, struct err *err)
{
	enum err_code rc;

	if ((rc = block_load_meta(b, damaged, err)))
		return rc;
	if ((rc = block_open_checked(
			 b, "rollups.ldb", &b->meta.rollups_file, &b->rollups, damaged, err)))
		return rc;
	b->index = b->rollups;
	if ((rc = block_load_partitions(b, err)))
		return rc;
	return block_open_rows(b, damaged, err);
}

static enum err_code block_read_open(const char *dir, struct range_source *from,
	const struct block_known *known, struct store_cache *cache, struct block **out,
	struct err *damaged, struct err *err)
{
	struct block *b = calloc(1, sizeof(*b));
	enum err_code rc;

	if (damaged)
		*damaged = (struct err){ 0 };
	if (!b)
		return err_set(err, ERR_NOMEM, "open block %s: out of memory", dir);
	arena_init(&b->arena, 0);
	mutex_init(&b->lock);
	mutex_init(&b->firsts_lock);
	b->cache = cache;
	b->from = from;
	if (!(b->dir = arena_strndup(&b->arena, dir, strlen(dir)))) {
		rc = arena_fail(&b->arena, "block", err);
		goto fail;
	}
	if (!ulid_parse(str_base_name(str_of(dir)), &b->named))
		b->named.text[0] = '\0';
	rc = known ? block_load_known(b, known, damaged, err) : ERR_NOT_FOUND;
	if (rc == ERR_NOT_FOUND)
		rc = block_read_load(b, damaged, err);
	if (rc)
		goto fail;
	*out = b;
	return ERR_OK;
fail:
	block_close(b);
	return err_wrap(err, rc, "open block");
}

enum err_code block_open(const char *dir, struct range_source *from, struct store_cache *cache,
	struct block **out, struct err *damaged, struct err *err)
{
	return block_read_open(dir, from, NULL, cache, out, damaged, err);
}

enum err_code block_open_known(const char *dir, struct range_source *from,
	const struct block_known *known, struct store_cache *cache, struct block **out,
	struct err *damaged, struct err *err)
{
	return block_read_open(dir, from, known, cache, out, damaged, err);
}

void block_close(struct block *b)
{
	if (!b)
		return;
	table_close(b->rows);
	table_close(b->rollups);
	table_close(b->spare);
	mutex_destroy(&b->lock);
	block_firsts_release(b);
	arena_release(&b->arena);
	free(b);
}

/* ---- what it says of itself ---- */

const struct block_meta *block_meta(const struct block *b)
{
	return &b->meta;
}

const char *block_dir(const struct block *b)
{
	return b->dir;
}

uint64_t block_disk_bytes(const struct block *b)
{
	return b->meta_bytes + (b->meta.raw ? b->meta.rows_file.bytes : 0) +
		b->meta.rollups_file.bytes + b->meta.spare_file.bytes;
}

bool block_has_raw(const struct block *b)
{
	return b->rows != NULL;
}

unsigned block_levels(const struct block *b)
{
	return b->meta.levels;
}

uint32_t block_partitions_n(const struct block *b)
{
	return (uint32_t)b->meta.partitions;
}

const struct block_partition *block_partition(const struct block *b, uint32_t slot)
{
	assert(slot < b->meta.partitions);
	return &b->slots[slot].p;
}

bool block_slot_has_any(const struct block *b, uint32_t slot, const struct bits *series)
{
	const struct block_slot *s = &b->slots[slot];

	assert(slot < b->meta.partitions);
	for (uint32_t id = s->first; id < s->first + s->n; id++)
		if (bits_get(series, id))
			return true;
	return false;
}

enum err_code block_sample_keys(
	struct block *b, uint32_t slot, const struct str **out, size_t *n, struct err *err)
{
	if (slot >= b->meta.partitions)
		return err_set(err, ERR_NOT_FOUND, "block %s has no partition %" PRIu32, b->dir, slot);
	*out = b->slots[slot].keys;
	*n = b->slots[slot].keys_n;
	return ERR_OK;
}

/* ---- series and groups ---- */

enum err_code block_series(
	struct block *b, uint32_t id, struct arena *a, struct block_series *out, struct err *err)
{
	struct block_key key = block_key_id(KEY_SERIES, id);
	struct buf bytes = { 0 };
	enum err_code rc;

	if (id >= b->meta.series)
		return err_set(err, ERR_NOT_FOUND, "block %s has no series %" PRIu32, b->dir, id);
	if (!(rc = index_get(b, block_key_str(&key), &bytes, err)))
		rc = block_series_decode(buf_str(&bytes), a, out, err);
	buf_release(&bytes);
	if (!rc &&
		(id < b->meta.number_series ?
				out->slot != BLOCK_NUMERIC || out->group != BLOCK_NUMERIC :
				out->slot >= b->meta.partitions || out->group >= b->meta.groups))
		rc = err_set(err, ERR_CORRUPT, "a series' record is wrong");
	if (rc == ERR_NOT_FOUND)
		rc = err_set(err, ERR_CORRUPT, "its record is missing");
	return rc ? err_wrap(err, rc, "block %s: series %" PRIu32, b->dir, id) : ERR_OK;
}

enum err_code block_group(
	struct block *b, uint32_t group, uint32_t *first, uint32_t *n, struct err *err)
{
	struct block_key key = block_key_id(KEY_GROUP, group);
	struct buf bytes = { 0 };
	struct cursor in;
	enum err_code rc;

	if (group >= b->meta.groups)
		return err_set(err, ERR_NOT_FOUND, "block %s has no group %" PRIu32, b->dir, group);
	if (!(rc = index_get(b, block_key_str(&key), &bytes, err))) {
		in = cursor_of(buf_str(&bytes));
		*first = cursor_u32(&in);
		*n = cursor_u32(&in);
		if (in.bad || !*n || *first >= b->meta.series || *n > b->meta.series - *first)
			rc = err_set(err, ERR_CORRUPT, "a group's record is wrong");
	}
	buf_release(&bytes);
	if (rc == ERR_NOT_FOUND)
		rc = err_set(err, ERR_CORRUPT, "its record is missing");
	return rc ? err_wrap(err, rc, "block %s: group %" PRIu32, b->dir, group) : ERR_OK;
}
