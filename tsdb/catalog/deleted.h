/*
 * Deleted ranges: rows that queriers no longer see, per series of a block or window.
 *
 * Errors:    ERR_CORRUPT: neither copy of the file can be read.
 * Ownership: arrays are replaced, not changed; an array that replaces another is linked to it, and
 *            deleted_release frees both.
 * Threads:   arrays are immutable. Files are written under db->blocks_files.
 * Source:    tsdb/FORMAT.md, "Deleted ranges".
 */
#ifndef TSDB_CATALOG_DELETED_H
#define TSDB_CATALOG_DELETED_H

#include "base/err.h"
#include "base/str.h"

struct db;

struct deleted_range {
	uint32_t series; /* number in the block or window */
	int64_t min_ns, max_ns; /* (min, max] */
};

struct deleted {
	const struct deleted_range *v;
	size_t n;
};
/*
 * Loads the ranges of a file, which has two copies; without a file there are none. If one copy
 * cannot be read it is made anew from the other; ERR_CORRUPT: neither can be read. `of` is the
 * block's ULID or the window's start; a file with another one is refused. Free it with
 * deleted_release.
 */
MUST_CHECK enum err_code deleted_load(
	struct db *db, const char *path, struct str of, struct deleted *out, struct err *err);
MUST_CHECK enum err_code deleted_decode(
	struct str bytes, const char *path, struct str of, struct deleted *out, struct err *err);
MUST_CHECK enum err_code deleted_save(
	struct db *db, const char *path, struct str of, struct deleted d, struct err *err);
/* Sorts d and joins ranges that touch; *out is linked to `old`, which lives as long. */
MUST_CHECK enum err_code deleted_make(
	struct deleted_range *d, size_t n, struct deleted old, struct deleted *out, struct err *err);
/* Frees an array of deleted_make that was never published; the array it is linked to stays. */
void deleted_give_up(struct deleted d);
void deleted_release(const struct deleted_range *d); /* with all it is linked to; NULL is fine */
/* The ranges of one series: [*first, *first + returned). */
size_t deleted_of(struct deleted d, uint32_t series, const struct deleted_range **first);
bool deleted_has(const struct deleted_range *d, size_t n, int64_t ts_ns);
/* Some part of (min, max] is deleted. */
bool deleted_touches(const struct deleted_range *d, size_t n, int64_t min_ns, int64_t max_ns);
/* The part of a rollup record's rows that is deleted, as their times tell. */
enum deleted_part {
	DELETED_NONE,
	DELETED_SOME, /* or perhaps some */
	DELETED_ALL,
};
struct rollup_view;
enum deleted_part deleted_of_record(
	const struct deleted_range *d, size_t n, const struct rollup_view *record);
char *window_deleted_path(const struct db *db, int64_t start_ns); /* malloc'ed */
/* Removes the ranges of a window that was dropped. If the window's files stayed, because the
 * database closed or the disk failed, its ranges stay too: the next start opens both. */
void window_deleted_remove(struct db *db, int64_t start_ns);
char *block_deleted_path(const char *dir); /* malloc'ed */
#define DELETED_OF_MAX 32
struct str window_deleted_of(int64_t start_ns, char *space); /* in space[DELETED_OF_MAX] */
#define DELETED_COPY ".copy" /* behind the path */

#endif
