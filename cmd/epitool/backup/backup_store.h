/*
 * Store of backups: a place, a directory or a prefix in a bucket, which backups share.
 *
 *     objects/<SHA-256>   the bytes of a file, once, whichever backups have it
 *     backups/<name>      a manifest; with it, a backup exists
 *     running/<name>      a backup is being made; written again each minute
 *     removing/<name>     it is removing others
 *
 * A manifest is written after all objects that it names, so a backup that was interrupted is not
 * there. Its objects are: the next backup uses them, or removes them.
 *
 * Several backups may be made at once. One that removes objects must not meet one that relies on
 * them. It writes removing/, then looks for others in running/, and removes nothing if there is
 * one. One that begins writes running/, then looks for others in removing/, and waits. So one of
 * two sees the other. A mark that was not written again for BACKUP_MARK_NS is of a process that was
 * killed, and is removed. If that process only stood still, it notices: one that removes ends, and
 * one that has written its manifest looks again whether all objects are there. Whoever removes
 * objects after that has read the manifest.
 *
 * Units:     nanoseconds; the times of marks are compared by the place's clock alone.
 * Errors:    those of places. ERR_CORRUPT and ERR_UNSUPPORTED of a manifest name it.
 * Ownership: a store's lists are in its arena; backup_store_release ends it.
 * Threads:   backup_store_put: any. All else: one.
 */
#ifndef CMD_EPITOOL_BACKUP_BACKUP_STORE_H
#define CMD_EPITOOL_BACKUP_BACKUP_STORE_H

#include "base/clock.h"
#include "cmd/epitool/backup/backup_manifest.h"
#include "cmd/epitool/bucket/place.h"

#define BACKUP_TOUCH_NS (60 * NS_PER_S)
#define BACKUP_MARK_NS (600 * NS_PER_S)

struct backup_store {
	struct arena arena;
	struct place objects, backups, running, removing;
	char name[BACKUP_NAME_LEN + 1]; /* of the backup that is being made; "": none */
	int64_t touched_ns; /* when the marks were written last; it counts while the machine sleeps */
	bool removes; /* there is a mark in removing/ */
	bool late; /* a mark was not written again in time */
	int64_t wait_ns; /* for one that removes: longer than a mark of a killed one counts */
	struct place_list there; /* objects, as backup_store_begin found them */
};

/* Nothing is read or written yet. */
MUST_CHECK enum err_code backup_store_init(
	struct backup_store *s, const struct place *root, struct err *err);
void backup_store_release(struct backup_store *s); /* a zeroed one is fine */

/* Names of all backups, ascending. */
MUST_CHECK enum err_code backup_store_names(
	const struct backup_store *s, struct arena *a, struct str **names, size_t *n, struct err *err);
MUST_CHECK enum err_code backup_store_read(const struct backup_store *s, struct str name,
	struct arena *a, struct backup_manifest *out, struct err *err);

/*
 * Begins the backup s->name. ERR_UNAVAILABLE: another one has been removing for longer than
 * s->wait_ns.
 */
MUST_CHECK enum err_code backup_store_begin(struct backup_store *s, struct err *err);
/* Many times a second, until backup_store_end. */
void backup_store_touch(struct backup_store *s);
/* True: the object is there, with that size. */
bool backup_store_has(const struct backup_store *s, const char *hash, uint64_t bytes);
/* The bytes of an open file, which have this hash. */
MUST_CHECK enum err_code backup_store_put(
	const struct backup_store *s, const char *hash, int fd, struct err *err);
/* ERR_OK: the backup exists. Else it does not, or the place took nothing any more. */
MUST_CHECK enum err_code backup_store_commit(
	struct backup_store *s, const struct backup_manifest *m, struct err *err);

struct backup_removed {
	uint64_t backups, objects, bytes;
	bool busy; /* another backup is being made: nothing was removed */
};
/*
 * Removes backups of `source` but the newest `keep` whole ones and what is newer than the oldest of
 * these; then all objects that no backup names. A manifest that cannot be read is an error, and
 * nothing is removed.
 */
MUST_CHECK enum err_code backup_store_remove_old(struct backup_store *s, struct str source,
	uint64_t keep, struct backup_removed *out, struct err *err);
/* Takes the mark away; after an error too. */
void backup_store_end(struct backup_store *s);

#endif
