#include <inttypes.h>
#include <stdlib.h>

#include "tsdb/db_internal.h"

/*
 * The file `ids`: the first free id of each kind. It is written before a window is dropped, since
 * ids that only that window had would otherwise look free after a restart, and an id never changes
 * its meaning. All other ids are found in the windows themselves.
 */
#define IDS_VERSION 1
#define IDS_BYTES_MAX (64u << 20)

enum err_code ids_save(struct db *db, struct err *err)
{
	struct buf b = { 0 };
	enum err_code rc;
	uint32_t n, i;

	buf_add_char(&b, IDS_VERSION);
	series_lock_read(db->series);
	buf_add_varint(&b, series_next_id(db->series));
	series_unlock(db->series);
	mutex_lock(&db->lock);
	n = db->partitions_n;
	buf_add_varint(&b, db->next_partition_id);
	mutex_unlock(&db->lock);
	buf_add_varint(&b, n);
	for (i = 0; i < n; i++) {
		struct partition *p;

		mutex_lock(&db->lock);
		p = db->partitions[i];
		mutex_unlock(&db->lock);
		mutex_lock(&p->lock);
		buf_add_varint(&b, p->id);
		for (int k = 1; k < SYM_KINDS; k++)
			buf_add_varint(&b, p->next[k]);
		buf_add_lenstr(&b, p->name);
		mutex_unlock(&p->lock);
	}
	buf_add_u64be(&b, hash_bytes(b.ptr, b.len, 0));
	rc = buf_failed(&b) ? err_set(err, ERR_NOMEM, "ids: out of memory") :
			      fs_write_file(db->o.fs, db->ids_path, buf_str(&b), err);
	buf_release(&b);
	return rc;
}

static enum err_code read_partition(struct db *db, struct cursor *in, struct err *err)
{
	uint32_t id = cursor_u32(in), next[SYM_KINDS] = { 0 };
	struct partition *p;
	struct str name;

	for (int k = 1; k < SYM_KINDS; k++)
		next[k] = cursor_u32(in);
	name = cursor_lenstr(in);
	if (in->bad)
		return err_set(err, ERR_CORRUPT, "%s: cut short", db->ids_path);
	/* One that no window has any more starts anew, under a new id. */
	p = db_partition_by_id(db, id);
	if (!p)
		return ERR_OK;
	if (!str_eq(p->name, name))
		return err_set(err, ERR_CORRUPT, "%s: partition %" PRIu32 " has two names",
			db->ids_path, id);
	for (int k = 1; k < SYM_KINDS; k++)
		if (p->next[k] < next[k])
			p->next[k] = next[k];
	return ERR_OK;
}

enum err_code ids_load(struct db *db, struct err *err)
{
	struct buf b = { 0 };
	enum err_code rc = ERR_OK;
	struct cursor in;
	uint32_t n, next;

	if (!fs_exists(db->ids_path))
		return ERR_OK;
	if ((rc = fs_read_file(db->ids_path, IDS_BYTES_MAX, &b, err)))
		goto out;
	rc = err_set(err, ERR_CORRUPT, "%s: bad checksum", db->ids_path);
	if (b.len < 9)
		goto out;
	in = cursor_of((struct str){ b.ptr + b.len - 8, 8 });
	if (cursor_u64be(&in) != hash_bytes(b.ptr, b.len - 8, 0))
		goto out;
	if (b.ptr[0] != IDS_VERSION) {
		rc = err_set(err, ERR_UNSUPPORTED, "%s: another format than this version's",
			db->ids_path);
		goto out;
	}
	in = cursor_of((struct str){ b.ptr + 1, b.len - 9 });
	series_reserve_ids(db->series, cursor_u32(&in));
	next = cursor_u32(&in);
	if (db->next_partition_id < next)
		db->next_partition_id = next;
	rc = ERR_OK;
	for (n = cursor_u32(&in); n && !rc; n--)
		rc = read_partition(db, &in, err);
out:
	buf_release(&b);
	return rc;
}
