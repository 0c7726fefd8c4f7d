/*
 * Target files: what all file sources share: documents by path, and watched directories.
 *
 * A document keeps the groups of its last good read while anybody uses it. So a reload, too, gets
 * the last groups of a file that is broken now.
 *
 * Errors:    ERR_NOT_FOUND, ERR_IO, ERR_LIMIT (FILE_SD_FILE_BYTES_MAX), ERR_INVALID with the place
 *            in the document.
 * Ownership: target_file_acquire and target_file_release pair; a struct dir_watch is the caller's,
 *            until target_files_unwatch. All are gone before target_files_close.
 * Threads:   discovery's.
 */
#ifndef DISCOVERY_SOURCES_TARGET_FILES_H
#define DISCOVERY_SOURCES_TARGET_FILES_H

#include <sys/queue.h>

#include "discovery/sources/groups.h"

#define FILE_SD_FILE_BYTES_MAX (32u << 20)

struct event_base;
struct target_files;

MUST_CHECK enum err_code target_files_open(
	struct event_base *base, struct target_files **out, struct err *err);
void target_files_close(struct target_files *t); /* NULL is fine */

/* ---- documents ---- */

struct target_file {
	LIST_ENTRY(target_file) link;
	unsigned users;
	uint64_t hash;
	char *path;
	struct groups *groups; /* of the last good read, or NULL */
};

MUST_CHECK enum err_code target_file_acquire(
	struct target_files *t, const char *path, struct target_file **out, struct err *err);
void target_file_release(struct target_file *f); /* NULL is fine */
/* Reads it now. On failure it keeps its groups. */
MUST_CHECK enum err_code target_file_read(struct target_file *f, struct err *err);
/* For `check config`: it can be read. */
MUST_CHECK enum err_code target_file_check(const char *path, struct err *err);

/* ---- directories ---- */

struct dir_watch {
	LIST_ENTRY(dir_watch) link;
	const char *dir;
	/* name: the entry that changed; "": the directory itself, or events were lost. */
	void (*changed)(struct dir_watch *w, struct str name);
	void *ctx;
	bool listed;
	int wd; /* inotify's number, -1: not watched */
};

/* Watches it, unless it is watched. False: it cannot be watched now. */
bool target_files_watch(struct target_files *t, struct dir_watch *w);
void target_files_unwatch(struct target_files *t, struct dir_watch *w);

#endif
