/*
 * Kept files, inside: the table of those that are known, their copies on the disk, their objects.
 *
 * Errors:    as kept.h; kept_bucket_*: ERR_UNAVAILABLE where the bucket does not answer.
 * Threads:   any. `lock` is held for the table and the directory, never while the bucket is waited
 *            for; `keeping` is held while objects are put and removed, and is taken before `lock`.
 */
#ifndef WEB_FILES_KEPT_INTERNAL_H
#define WEB_FILES_KEPT_INTERNAL_H

#include "base/thread.h"
#include "web/files/kept.h"

#define KEPT_FILE_BYTES_MAX (64u << 20)

enum kept_copy { /* on this disk */
	KEPT_NOT_HERE,
	KEPT_OWN, /* ID.file: the only one; with a bucket it is to be put there */
	KEPT_CACHED, /* ID.cached: the bucket has it */
};

struct kept_entry {
	struct kept_head head; /* of a damaged own file: the id and its size alone */
	enum kept_copy copy;
	uint64_t seen; /* the number of the call that saw it in the bucket last; 0: none did */
	uint64_t used; /* the copy that was used longest ago goes first */
};

struct kept {
	struct kept_options o;
	char *dir;
	struct mutex keeping;
	struct mutex lock; /* guards all below, and who writes to the directory */
	struct cond changed;
	struct kept_entry *v; /* ascending by id */
	size_t n, cap;
	uint64_t calls; /* numbers of calls of the bucket, and of uses */
	int64_t listed_ns; /* clock of the machine: when the bucket was listed last; 0: never */
	int64_t next_list_ns; /* monotonic */
	int64_t rest_ns; /* monotonic: the bucket did not answer, and is left alone until then */
	struct err why; /* it did not */
	bool failing, closing;
	struct thread cleaner;
};

/* ---- kept.c: the table; the lock is held ---- */

/* The index of the first entry whose id is not less. */
size_t kept_place(const struct kept *k, struct str id);
struct kept_entry *kept_find(struct kept *k, struct str id); /* NULL: none */
MUST_CHECK enum err_code kept_add(struct kept *k, const struct kept_entry *e, struct err *err);
void kept_remove(struct kept *k, struct kept_entry *e); /* of the table alone */
void kept_publish(const struct kept *k); /* metrics */
bool kept_is_over(const struct kept_file *f, int64_t now_ns);
enum err_code kept_none(struct str id, struct err *err); /* ERR_NOT_FOUND */

void kept_file_set_name(struct kept_file *f, struct str name);
/* `whole` is the file that `want` says. *bytes: those behind its first line. */
MUST_CHECK enum err_code kept_head_verify(
	const struct kept_head *want, struct str whole, struct str *bytes, struct err *err);

/* ---- kept_disk.c ---- */

MUST_CHECK enum err_code kept_disk_load(struct kept *k, struct err *err); /* at the start */
/* These with the lock held. A file that is written is e->copy. */
MUST_CHECK enum err_code kept_disk_write(
	struct kept *k, const struct kept_entry *e, struct str whole, struct err *err);
/* Only what was removed from the disk is not here any more. */
MUST_CHECK enum err_code kept_disk_remove(struct kept *k, struct kept_entry *e, struct err *err);
MUST_CHECK enum err_code kept_disk_make_cached(
	struct kept *k, struct kept_entry *e, struct err *err);
/* Copies of what the bucket has go until so many more bytes may come. */
void kept_disk_make_room(struct kept *k, uint64_t bytes);
/* Without the lock. ERR_CORRUPT names the file. */
MUST_CHECK enum err_code kept_disk_read(const struct kept *k, const struct kept_entry *e,
	struct buf *whole, struct str *bytes, struct err *err);

/* ---- kept_bucket.c: without the lock ---- */

/* Lists the bucket, and makes the table agree. */
MUST_CHECK enum err_code kept_bucket_refresh(struct kept *k, struct err *err);
/* `keeping` is held. */
MUST_CHECK enum err_code kept_bucket_put(
	struct kept *k, const struct kept_head *h, struct str whole, struct err *err);
MUST_CHECK enum err_code kept_bucket_get(struct kept *k, struct str id, int64_t now_ns,
	struct arena *a, struct kept_file *out, struct str *bytes, struct err *err);
MUST_CHECK enum err_code kept_bucket_delete(struct kept *k, struct str id, struct err *err);
/* What the thread does: lists when it is time, puts own files, removes what is over. */
void kept_bucket_round(struct kept *k, int64_t now_ns);

#endif
