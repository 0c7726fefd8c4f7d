#include "tsdb/catalog/remote.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/map.h"
#include "base/metrics.h"
#include "tsdb/catalog/inventory_sync.h"
#include "tsdb/catalog/state.h"

/* Stubs: blocks of a data directory whose tables are in a bucket. */

#define STUB_FILE "remote"
#define STUB_COPY "remote.copy"
#define SUM_DIGITS 16u
#define STUB_BYTES_MAX (REMOTE_KEY_BYTES_MAX + SUM_DIGITS + 2)

METRIC_COUNTER(swapped_blocks, "epimetheus_tsdb_remote_blocks_total",
	"Blocks whose files were removed from the disk and are read from the bucket.", NULL);

static const char *const tables[] = { "rows.ldb", "rollups.ldb", "spare" };
#define TABLES_N (sizeof(tables) / sizeof(tables[0]))

/* ---- the file ---- */

static uint64_t catalog_remote_sum_of(struct str key, struct str of)
{
	return hash_bytes(key.ptr, key.len, hash_bytes(of.ptr, of.len, 0));
}

enum err_code remote_key_decode(
	struct str bytes, struct str of, char key[REMOTE_KEY_BYTES_MAX + 1], struct err *err)
{
	char want[SUM_DIGITS + 3];
	struct str k = bytes;

	if (bytes.len < SUM_DIGITS + 3 || bytes.len > STUB_BYTES_MAX)
		return err_set(err, ERR_CORRUPT, "its length is wrong");
	k.len -= SUM_DIGITS + 2;
	snprintf(want, sizeof(want), " %016" PRIx64 "\n", catalog_remote_sum_of(k, of));
	if (memcmp(k.ptr + k.len, want, SUM_DIGITS + 2) != 0)
		return err_set(err, ERR_CORRUPT, "bad checksum");
	for (size_t i = 0; i < k.len; i++)
		if ((unsigned char)k.ptr[i] < 0x20 || k.ptr[i] == 0x7f)
			return err_set(err, ERR_CORRUPT, "a key has no control characters");
	memcpy(key, k.ptr, k.len);
	key[k.len] = '\0';
	return ERR_OK;
}

static enum err_code catalog_remote_read_copy(
	const char *dir, const char *name, char key[REMOTE_KEY_BYTES_MAX + 1], struct err *err)
{
	struct buf bytes = { 0 };
	char *path = NULL;
	enum err_code rc;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return err_nomem(err, "block");
	rc = fs_read_file(path, STUB_BYTES_MAX, &bytes, err);
	if (!rc && (rc = remote_key_decode(buf_str(&bytes), str_base_name(str_of(dir)), key, err)))
		rc = err_wrap(err, rc, "%s", path);
	buf_release(&bytes);
	free(path);
	return rc;
}

enum err_code remote_read_key(const char *dir, char key[REMOTE_KEY_BYTES_MAX + 1], struct err *err)
{
	struct err why;
	enum err_code rc = catalog_remote_read_copy(dir, STUB_FILE, key, &why),
				  other = rc ? catalog_remote_read_copy(dir, STUB_COPY, key, err) : ERR_OK;

	if (!rc || !other)
		return ERR_OK;
	key[0] = '\0';
	if (rc == ERR_NOT_FOUND && other == ERR_NOT_FOUND)
		return ERR_OK;
	return rc == ERR_NOT_FOUND ? other : err_copy(err, &why);
}

static enum err_code catalog_remote_write_key(
	struct fs *fs, const char *dir, const char *key, struct err *err)
{
	static const char *const names[] = { STUB_FILE, STUB_COPY };
	struct str k = str_of(key);
	enum err_code rc = ERR_OK;
	struct buf text = { 0 };

	if (!k.len || k.len > REMOTE_KEY_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "a key of %zu bytes, limit %u", k.len, REMOTE_KEY_BYTES_MAX);
	buf_printf(
		&text, "%s %016" PRIx64 "\n", key, catalog_remote_sum_of(k, str_base_name(str_of(dir))));
	for (size_t i = 0; i < 2 && !rc; i++) {
		char *path = NULL;

		if (buf_failed(&text) || asprintf(&path, "%s/%s", dir, names[i]) < 0)
			rc = err_nomem(err, "block");
		else
			rc = fs_write_file(fs, path, buf_str(&text), err);
		free(path);
	}
	buf_release(&text);
	return rc;
}

static void catalog_remote_unlink_in(struct db *db, const char *dir, const char *name)
{
	struct err why;
	char *path = NULL;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return;
	if (fs_exists(path) && db->o.fs->ops->unlink(db->o.fs, path, &why))
		log_warn("tsdb", "leftover not removed", LOG_E(&why));
	free(path);
}

void remote_unlink_tables(struct db *db, const char *dir)
{
	for (size_t i = 0; i < TABLES_N; i++)
		catalog_remote_unlink_in(db, dir, tables[i]);
}

/* ---- opening ---- */

static enum err_code catalog_remote_place_open(
	struct range_source *s, const char *path, struct range_reader **out, struct err *err)
{
	struct block_place *p = (struct block_place *)s;
	char *other = NULL;
	enum err_code rc;

	if (!p->of)
		return err_set(err, ERR_UNAVAILABLE, "%s: is in a bucket, and none is configured", path);
	if (!str_has_suffix(str_of(path), STR("/meta.json")) || (!p->stub && !p->meta_changed))
		return range_open(p->of, path, out, err);
	if (p->stub) {
		if (asprintf(&other, "%s/meta.json", p->stub) < 0)
			return err_nomem(err, path);
		rc = range_open_file(other, out, err);
	} else {
		if (asprintf(&other, "%s-%016" PRIx64, path, p->meta_hash) < 0)
			return err_nomem(err, path);
		rc = range_open(p->of, other, out, err);
	}
	free(other);
	return rc;
}

static void catalog_remote_know_one(
	struct db *db, const char *key, const char *name, struct block_file f)
{
	char *path = NULL;

	if (f.bytes && asprintf(&path, "%s/%s", key, name) >= 0)
		range_know(db->o.remote, path, f.bytes, f.hash);
	free(path);
}

/* Tells the range source the sizes of the block's tables, which are in meta.json. */
static void catalog_remote_know_tables(struct db *db, const char *stub, const char *key)
{
	struct block_meta m;
	struct arena a;

	arena_init(&a, 0);
	if (!block_read_meta(stub, &a, &m, NULL)) {
		catalog_remote_know_one(db, key, "rows.ldb", m.rows_file);
		catalog_remote_know_one(db, key, "rollups.ldb", m.rollups_file);
		catalog_remote_know_one(db, key, "spare", m.spare_file);
	}
	arena_release(&a);
}

enum err_code remote_open_block(struct db *db, const char *key, const char *stub,
	const struct remote_block *of, struct db_block **out, struct err *err)
{
	struct db_block *b = calloc(1, sizeof(*b));
	struct block_known known;
	struct err damaged = { 0 };
	enum err_code rc;

	if (!b || (stub && !(b->stub = strdup(stub)))) {
		free(b);
		return err_nomem(err, "block");
	}
	b->remote = true;
	b->place = (struct block_place){
		.source.open = catalog_remote_place_open, .of = db->o.remote, .stub = b->stub
	};
	if (of) {
		b->place.meta_changed = of->meta_changed;
		b->place.meta_hash = of->meta.hash;
		known = (struct block_known){ of->spare, of->meta, of->meta_changed };
	}
	if ((rc = of ? block_open_known(
					   key, &b->place.source, &known, db->cache, &b->block, &damaged, err) :
				   block_open(key, &b->place.source, db->cache, &b->block, &damaged, err)))
		goto fail;
	if (of &&
		(!ulid_eq(&block_meta(b->block)->ulid, &of->ulid) ||
			block_meta(b->block)->min_ns != of->min_ns ||
			block_meta(b->block)->max_ns != of->max_ns)) {
		rc = err_set(
			err, ERR_CORRUPT, "%s: its meta.json is not that of the block in the list", key);
		goto fail;
	}
	b->why = damaged;
	if (damaged.code)
		blocks_damage(db, b, "made up for", &damaged);
	mutex_lock(&db->lock);
	b->number = ++db->source_number;
	mutex_unlock(&db->lock);
	*out = b;
	return ERR_OK;
fail:
	blocks_free(b);
	return rc;
}

enum err_code remote_open_stub(
	struct db *db, const char *stub, const char *key, struct db_block **out, struct err *err)
{
	catalog_remote_know_tables(db, stub, key);
	return remote_open_block(db, key, stub, NULL, out, err);
}

void remote_forget(struct db *db, const struct db_block *b)
{
	const char *key = block_dir(b->block);
	char *path = NULL;

	for (size_t i = 0; i <= TABLES_N; i++) {
		if (asprintf(&path, "%s/%s", key, i < TABLES_N ? tables[i] : "meta.json") < 0)
			return;
		range_forget(db->o.remote, path);
		free(path);
	}
}

const char *blocks_local_dir(const struct db_block *b)
{
	return b->remote ? b->stub : block_dir(b->block);
}

static bool catalog_remote_has_epoch(const struct block *b, uint32_t job_id, uint32_t epoch)
{
	for (uint32_t s = 0; s < block_partitions_n(b); s++)
		if (block_partition(b, s)->id == job_id && block_partition(b, s)->epoch == epoch)
			return true;
	return false;
}

bool blocks_have_remote_epoch(struct db *db, uint32_t job_id, uint32_t epoch)
{
	bool has = false;

	mutex_lock(&db->lock);
	for (size_t i = 0; i < db->unreadable_n && !has; i++)
		has = db->unreadable[i].again;
	for (size_t i = 0; i < db->blocks_n && !has; i++)
		has = db->blocks[i]->remote &&
			catalog_remote_has_epoch(db->blocks[i]->block, job_id, epoch);
	mutex_unlock(&db->lock);
	return has;
}

/* ---- from the disk to the bucket ---- */

static struct db_block *catalog_remote_pin_local(struct db *db, const struct ulid *u)
{
	struct db_block *b = NULL;

	mutex_lock(&db->lock);
	for (size_t i = 0; i < db->blocks_n && !b; i++)
		if (!db->blocks[i]->remote && !db->blocks[i]->damaged &&
			ulid_eq(&block_meta(db->blocks[i]->block)->ulid, u))
			(b = db->blocks[i])->pins++;
	mutex_unlock(&db->lock);
	return b;
}

/* True if a window that the block replaced is still being dropped: its files stay until queriers
 * release it. */
static bool catalog_remote_has_dropping_window(struct db *db, const struct db_block *b)
{
	const struct block_meta *m = block_meta(b->block);
	bool has = false;

	mutex_lock(&db->lock);
	for (const struct window *w = db->dropping; w; w = w->next_dropping)
		for (uint32_t i = 0; i < m->heads_n; i++)
			has |= m->heads[i] == w->start_ns;
	mutex_unlock(&db->lock);
	return has;
}

/* True: True if b is in the list, nobody is joining or dropping it, and it has not changed since
 * `by` was opened. */
static bool catalog_remote_is_current(
	struct db *db, const struct db_block *b, const struct db_block *by)
{
	bool is;

	mutex_assert_held(&db->blocks_files);
	mutex_lock(&db->lock);
	is = !b->gone && !b->at_work && block_meta(b->block)->raw == block_meta(by->block)->raw;
	mutex_unlock(&db->lock);
	return is;
}

/* db->blocks_files is held. The stub's file is written first: from then on, a start reads the
 * tables in the bucket. */
static enum err_code catalog_remote_swap_in(
	struct db *db, struct db_block *b, struct db_block *by, struct err *err)
{
	const char *dir = block_dir(b->block);
	enum err_code rc;

	if (!catalog_remote_is_current(db, b, by))
		return err_set(err, ERR_NOT_FOUND,
			"block %s was joined or dropped meanwhile, or is about to be",
			block_meta(b->block)->ulid.text);
	if (catalog_remote_has_dropping_window(db, b))
		return err_set(err, ERR_UNAVAILABLE, "the window that it replaced is still being read");
	if (!blocks_hide_replaced(db, b))
		return err_set(err, ERR_IO, "the window or blocks that it replaced cannot be removed");
	if ((rc = blocks_reserve(db, "block", err)) || (rc = blocks_load_deleted(db, by, err)))
		return rc;
	if ((rc = catalog_remote_write_key(db->o.fs, dir, block_dir(by->block), err))) {
		catalog_remote_unlink_in(db, dir, STUB_FILE);
		catalog_remote_unlink_in(db, dir, STUB_COPY);
		return rc;
	}
	mutex_lock(&db->lock);
	by->number = b->number; /* its symbols are the same */
	by->apart = b->apart;
	b->tables_go = true;
	blocks_swap_locked(db, &b, 1, NULL, by);
	mutex_unlock(&db->lock);
	blocks_retire(db, b, true);
	return ERR_OK;
}

enum err_code blocks_swap_remote(
	struct db *db, const struct ulid *ulid, const char *key, struct err *err)
{
	struct db_block *b, *by = NULL;
	enum err_code rc;

	if (!db->o.remote)
		return err_set(err, ERR_UNSUPPORTED, "no bucket is configured");
	if (!(b = catalog_remote_pin_local(db, ulid)))
		return err_set(err, ERR_NOT_FOUND, "no whole block %s is on the disk", ulid->text);
	if (!(rc = remote_open_stub(db, block_dir(b->block), key, &by, err)) && by->damaged)
		rc = err_copy(err, &by->why);
	if (!rc) {
		mutex_lock(&db->blocks_files);
		rc = catalog_remote_swap_in(db, b, by, err);
		mutex_unlock(&db->blocks_files);
	}
	if (rc)
		blocks_free(by);
	blocks_unpin(db, b);
	if (rc)
		return err_wrap(err, rc, "block %s stays on the disk", ulid->text);
	metric_add(&swapped_blocks, NULL, 1);
	log_info("tsdb", "block is read in the bucket", LOG_S("block", ulid->text), LOG_S("key", key));
	return ERR_OK;
}

enum err_code remote_write_stub(struct fs *fs, const char *blocks_dir, const struct ulid *ulid,
	const char *key, struct str meta, struct str deleted, struct err *err)
{
	struct arena a;
	enum err_code rc;
	char *dir, *meta_path, *deleted_path, *copy_path;

	arena_init(&a, 0);
	dir = arena_printf(&a, "%s/%s", blocks_dir, ulid->text);
	meta_path = arena_printf(&a, "%s/meta.json", dir ? dir : "");
	deleted_path = arena_printf(&a, "%s/deleted", dir ? dir : "");
	copy_path = arena_printf(&a, "%s/deleted" DELETED_COPY, dir ? dir : "");
	if (!dir || !meta_path || !deleted_path || !copy_path)
		rc = arena_fail(&a, "block", err);
	else if (!(rc = fs_mkdir_all(fs, dir, err)) &&
		!(rc = catalog_remote_write_key(fs, dir, key, err)) &&
		!(rc = deleted.len ? fs_write_file(fs, deleted_path, deleted, err) : ERR_OK) &&
		!(rc = deleted.len ? fs_write_file(fs, copy_path, deleted, err) : ERR_OK))
		rc = fs_write_file(fs, meta_path, meta, err);
	arena_release(&a);
	return rc;
}
