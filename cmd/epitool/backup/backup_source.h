/*
 * Source of a backup: the files of a data directory as they are at one moment. If a server has the
 * directory, it makes a snapshot of its windows and blocks, which is removed again; what a snapshot
 * does not have, symbols, kept files and rules, is taken from the directory itself: each of these
 * files is only ever replaced as a whole. Else the directory is locked, and is what is copied.
 *
 * Snapshots are renamed to snapshots/<name>.backup and locked, so that the next backup removes one
 * whose process was killed.
 *
 * Errors:    ERR_UNAVAILABLE: a server has the directory and no way to ask it was given;
 *            ERR_INVALID: its answer; ERR_NOT_FOUND: another server answered; ERR_IO.
 * Ownership: backup_source_open hands the lock and the snapshot to *out; backup_source_close ends
 *            it, also one that was half opened. Lists are in its arena.
 * Threads:   one.
 */
#ifndef CMD_EPITOOL_BACKUP_BACKUP_SOURCE_H
#define CMD_EPITOOL_BACKUP_BACKUP_SOURCE_H

#include "cmd/epitool/backup/backup_manifest.h"
#include "cmd/epitool/bucket/place.h"

/* Asks the server for a snapshot; its name in the arena. */
struct backup_asking {
	enum err_code (*snapshot)(void *ctx, struct arena *a, struct str *name, struct err *err);
	void *ctx;
};

struct backup_source_file {
	struct place_object is;
	const struct place *in;
};

struct backup_source {
	struct arena arena;
	struct place data; /* windows and blocks: the snapshot, or the directory itself */
	struct place beside; /* the directory, of a server that runs */
	int lock; /* of the directory or of the snapshot; -1: none */
	bool is_snapshot;
	struct backup_source_file *files; /* ascending by path */
	size_t files_n, files_cap;
	size_t odd; /* no regular file: left out */
};

MUST_CHECK enum err_code backup_source_open(const char *dir, const struct backup_asking *asking,
	struct backup_source *out, struct err *err);
void backup_source_close(struct backup_source *s);

#endif
