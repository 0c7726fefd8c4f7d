/*
 * Save: one backup, of a source into a store. A file that the last backup of the same source had,
 * with the same size, time and inode, is not read again: blocks never change. Others are copied
 * under the hash of their bytes, unless an object has it already.
 *
 * Errors:    those of places and stores; ERR_CANCELED after Ctrl-C. After an error there is no
 *            backup.
 * Ownership: the source and the store are the caller's.
 * Threads:   starts `workers` (copiers.h) and waits for them.
 */
#ifndef CMD_EPITOOL_BACKUP_BACKUP_SAVE_H
#define CMD_EPITOOL_BACKUP_BACKUP_SAVE_H

#include "cmd/epitool/backup/backup_source.h"
#include "cmd/epitool/backup/backup_store.h"

struct backup_job {
	struct backup_store *store;
	const struct backup_source *source;
	struct str source_name; /* "HOST:DIRECTORY" */
	struct arena *arena; /* for lists */
	unsigned workers;
	/*
	 * Checks the source; gives the number of findings. Blocks that `skip` accepts are in the last
	 * backup, which had no findings. NULL: it is not checked.
	 */
	uint64_t (*verify)(const char *dir, bool (*skip)(void *ctx, struct str ulid), void *ctx);
};

struct backup_saved {
	char name[BACKUP_NAME_LEN + 1];
	uint64_t files, bytes, copied_files, copied_bytes, findings;
};

/* On any result the store's mark is there still: backup_store_end takes it away. */
MUST_CHECK enum err_code backup_save(
	const struct backup_job *job, struct backup_saved *out, struct err *err);

#endif
