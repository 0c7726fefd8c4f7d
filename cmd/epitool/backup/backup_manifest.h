/*
 * Manifest of a backup: which files a data directory had, and the SHA-256 of each. A backup is what
 * its manifest names; the manifest is written last.
 *
 * It is text, one line for each field and file:
 *
 *     epimetheus-backup 1
 *     name 20261129T114636Z-2f2f8d9f
 *     source shop-1:/var/lib/epimetheus
 *     findings 0
 *     file <SHA-256> <bytes> <modified> <inode> blocks/01ARZ3NDEKTSV4RRFFQ69G5FAV/meta.json
 *     end <SHA-256 of all that is before this line>
 *
 * Files are in the order of their paths. A path is one that a bucket takes as a key: relative, and
 * without "..", so that no manifest makes a restore write elsewhere.
 *
 * Units:     bytes; nanoseconds since 1970.
 * Errors:    ERR_CORRUPT with the line; ERR_UNSUPPORTED: a newer program wrote it; ERR_LIMIT.
 * Ownership: what is parsed is in the arena.
 * Threads:   values; no sharing.
 */
#ifndef CMD_EPITOOL_BACKUP_BACKUP_MANIFEST_H
#define CMD_EPITOOL_BACKUP_BACKUP_MANIFEST_H

#include "tsdb/bucket/bucket.h"

#define BACKUP_MANIFEST_VERSION 1
#define BACKUP_MANIFEST_BYTES_MAX ((size_t)256 << 20)
#define BACKUP_NAME_LEN 25 /* 20261129T114636Z-2f2f8d9f */
#define BACKUP_SOURCE_BYTES_MAX 1024

struct backup_file {
	struct str path; /* below the data directory; ends in NUL */
	uint64_t bytes;
	int64_t modified_ns; /* of the file that was copied, as its inode: the next backup compares */
	uint64_t inode;
	char hash[BUCKET_HASH_LEN + 1];
};

struct backup_manifest {
	struct str name;
	struct str source; /* "HOST:DIRECTORY" */
	uint64_t findings; /* that `tsdb verify` had when it was made; 0: whole */
	struct backup_file *files; /* ascending by path */
	size_t files_n;
};

bool backup_name_is_valid(struct str name);
/* By the clock, with random digits: names sort by time. */
void backup_name_make(char out[BACKUP_NAME_LEN + 1]);

void backup_manifest_print(const struct backup_manifest *m, struct buf *out);
/* name: that of its object. */
MUST_CHECK enum err_code backup_manifest_parse(struct str text, struct str name, struct arena *a,
	struct backup_manifest *out, struct err *err);
/* NULL: there is none. */
const struct backup_file *backup_manifest_find(const struct backup_manifest *m, struct str path);
uint64_t backup_manifest_bytes(const struct backup_manifest *m);

#endif
