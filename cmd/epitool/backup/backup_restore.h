/*
 * Restore: a backup becomes a data directory. Its files are copied into DIR/restoring, each is
 * compared with its hash, and all of them are verified together; then they are moved into DIR, the
 * inventory first, so that a start in between names what is not there yet. Before that DIR has
 * nothing: a restore that was interrupted can be started again.
 *
 * Errors:    ERR_EXISTS: DIR has something; ERR_UNAVAILABLE: a server has it; ERR_CORRUPT: damaged
 *            files, or findings that the backup did not have, and `partial` is not given; those of
 *            places. ERR_CANCELED after Ctrl-C.
 * Ownership: all is the caller's.
 * Threads:   starts `workers` (copiers.h) and waits for them.
 */
#ifndef CMD_EPITOOL_BACKUP_BACKUP_RESTORE_H
#define CMD_EPITOOL_BACKUP_BACKUP_RESTORE_H

#include "cmd/epitool/backup/backup_store.h"

struct backup_restore_job {
	const struct backup_store *store;
	const struct backup_manifest *manifest;
	const char *dir;
	struct arena *arena; /* for lists */
	unsigned workers;
	bool partial; /* without the files that are damaged */
	struct fs *fs; /* writes; NULL: fs_posix */
	/* Each damaged file, by any thread. */
	void (*damaged)(void *ctx, struct str path, const struct err *why);
	void *ctx;
	/* Checks what was restored; gives the number of findings. */
	uint64_t (*verify)(void *ctx, const char *dir);
};

struct backup_restored {
	uint64_t files, bytes, damaged, findings;
};

MUST_CHECK enum err_code backup_restore(
	const struct backup_restore_job *job, struct backup_restored *out, struct err *err);

#endif
