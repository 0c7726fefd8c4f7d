#include "tsdb/catalog/room.h"

#include <inttypes.h>

#include "tsdb/catalog/state.h"
#include "tsdb/store/store.h"

static enum err_code room_look_at(
	const struct db *db, const char *dir, struct disk_room *out, struct err *err)
{
	struct fs *fs = db->o.fs;
	enum err_code rc;

	out->inodes = UINT64_MAX;
	if ((rc = fs->ops->free_bytes(fs, dir, &out->bytes, err)) || !fs->ops->free_inodes)
		return rc;
	return fs->ops->free_inodes(fs, dir, &out->inodes, err);
}

enum err_code room_look(const struct db *db, struct disk_room *out, struct err *err)
{
	return room_look_at(db, db->dir, out, err);
}

bool room_lacks(const struct db *db, const struct disk_room *r, bool reopening, struct err *why)
{
	uint64_t reserve = db->o.free_bytes_reserve;

	if (r->bytes < reserve) {
		err_set(why, ERR_UNAVAILABLE,
			"disk is full: %s free in %s, reserve %s (--storage.tsdb.free-reserve)",
			str_size_of(r->bytes).text, db->dir, str_size_of(reserve).text);
		return true;
	}
	if (r->inodes < DB_FREE_INODES && (reserve || reopening)) {
		err_set(why, ERR_UNAVAILABLE, "disk is full: %" PRIu64 " inodes free in %s, %u needed",
			r->inodes, db->dir, DB_FREE_INODES);
		return true;
	}
	if (reopening && r->bytes < DB_REOPEN_BYTES) {
		err_set(why, ERR_UNAVAILABLE,
			"disk is full: %s free in %s, %s needed to open stores for writing again",
			str_size_of(r->bytes).text, db->dir, str_size_of(DB_REOPEN_BYTES).text);
		return true;
	}
	return false;
}

enum err_code room_explain(const struct db *db, enum err_code rc, struct err *err)
{
	struct str parent = path_dir(str_of(db->dir));
	char above[256];
	const char *dir = db->dir;
	struct disk_room r;

	if (rc != ERR_IO || !err || !store_is_full(err))
		return rc;
	if (room_look(db, &r, NULL)) { /* at the first start it may not be there yet */
		if (parent.len >= sizeof(above))
			return err_wrap(err, ERR_UNAVAILABLE, "disk is full");
		memcpy(above, parent.ptr, parent.len);
		above[parent.len] = '\0';
		dir = above;
		if (room_look_at(db, dir, &r, NULL))
			return err_wrap(err, ERR_UNAVAILABLE, "disk is full");
	}
	if (r.inodes == UINT64_MAX)
		return err_wrap(
			err, ERR_UNAVAILABLE, "disk is full: %s free in %s", str_size_of(r.bytes).text, dir);
	return err_wrap(err, ERR_UNAVAILABLE, "disk is full: %s and %" PRIu64 " inodes free in %s",
		str_size_of(r.bytes).text, r.inodes, dir);
}
