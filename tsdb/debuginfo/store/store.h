/*
 * Store of debug data: for each key one immutable index file, and uploads that wait until a child
 * process has made an index of them (extractor.h). The contents of an index are opaque here; their
 * format has its own checksums.
 *
 *	debuginfo_wants, debuginfo_upload_begin, _append ..., _finish       an upload is queued
 *	debuginfo_job_next; extractor_run; debuginfo_job_publish            it becomes an index
 *	debuginfo_open, debuginfo_index_bytes, debuginfo_index_close        readers
 *
 * An upload that debuginfo_upload_finish acknowledged is synced: it stays queued over a crash until
 * its index is published or its extraction failed. Half an upload leaves nothing. A job has the
 * index that is there, whose names the new one keeps; a worse one is not published. An index that
 * was replaced, evicted or dropped is readable until its last reader closes it.
 *
 * Units:     bytes; seconds since 1970 where the name ends in _s.
 * Errors:    ERR_LIMIT (which one), ERR_IO (a full disk too: nothing half is left), ERR_NOT_FOUND,
 *            ERR_EXISTS (not wanted, and why), ERR_TIMEOUT (an upload without progress),
 *            ERR_CORRUPT, ERR_UNAVAILABLE (try again later), ERR_NOMEM.
 * Ownership: finish, cancel, publish and fail free what they get. debuginfo_store_close wants that
 *            no upload, job or reader is left.
 * Threads:   any; an upload and a job belong to one thread at a time.
 * Source:    README.md, "The directory"; limits after Pyroscope's and Parca's.
 */
#ifndef TSDB_DEBUGINFO_STORE_STORE_H
#define TSDB_DEBUGINFO_STORE_STORE_H

#include "base/fs.h"
#include "tsdb/debuginfo/store/id.h"

/*
 * What a sender says of its file, and then what is known of it: an index of several files is of the
 * kind that has the contents of all. The order is that of debuginfo_kinds.
 */
enum debuginfo_kind {
	DEBUGINFO_STRIPPED, /* no debug data: dynamic symbols, Go's tables */
	DEBUGINFO_NO_TEXT, /* debug data only */
	DEBUGINFO_FULL,
	DEBUGINFO_KINDS,
};
enum debuginfo_origin {
	DEBUGINFO_UPLOAD,
	DEBUGINFO_DEBUGINFOD,
	DEBUGINFO_DIRECTORY,
	DEBUGINFO_ORIGINS,
};
/* What was found in a file: the numbers of enum symindex_quality. 0: no name at all. */
enum debuginfo_quality {
	DEBUGINFO_NOTHING,
	DEBUGINFO_SYMBOLS,
	DEBUGINFO_LINES,
	DEBUGINFO_DWARF,
	DEBUGINFO_QUALITIES,
};
extern const char *const debuginfo_kinds[DEBUGINFO_KINDS]; /* "stripped", "no_text", "full" */
extern const char *const debuginfo_origins[DEBUGINFO_ORIGINS];
extern const char *const debuginfo_qualities[DEBUGINFO_QUALITIES];

/* 0 and NULL: the default. */
struct debuginfo_options {
	uint64_t bytes_max; /* of all indexes; default: no limit */
	uint64_t file_bytes_max; /* of one upload; 1 GiB */
	uint64_t uploads_bytes_max; /* of all that are under way or queued; 4 GiB */
	unsigned uploads_max; /* under way at once; 10 */
	uint64_t free_bytes_min; /* what is left on the disk; 0 */
	int64_t idle_ns; /* an upload without progress ends; 2 min */
	int64_t again_ns; /* when to take again what failed or was no better; 7 min */
	int64_t (*now_ns)(void); /* time of day */
};

struct debuginfo_store;

/*
 * Makes the directory; removes halves of uploads and damaged files. The caller holds the lock of
 * the data directory.
 */
MUST_CHECK enum err_code debuginfo_store_open(struct fs *fs, const char *dir,
	const struct debuginfo_options *o, struct debuginfo_store **out, struct err *err);
void debuginfo_store_close(struct debuginfo_store *s); /* NULL is fine */

/* Ends uploads without progress, forgets what is over, writes last uses once an hour. */
void debuginfo_store_tick(struct debuginfo_store *s);

/* ---- uploads ---- */

/* What a sender says of its file. */
struct debuginfo_offer {
	enum debuginfo_kind kind;
	enum debuginfo_origin origin;
	struct str path; /* "": not known; kept with the index */
	bool force; /* also where nothing better is expected, or the last one failed */
};
/* *reason: a constant text for the sender. */
bool debuginfo_wants(struct debuginfo_store *s, const struct debuginfo_id *id,
	const struct debuginfo_offer *o, const char **reason);
/* There is an index, an upload, or one that failed a short time ago. */
bool debuginfo_is_known(struct debuginfo_store *s, const struct debuginfo_id *id);

/* Paths are kept as valid UTF-8 without control characters; longer ones lose their beginning. */
#define DEBUGINFO_PATH_BYTES_MAX 255
void debuginfo_path_clean(struct str path, char out[DEBUGINFO_PATH_BYTES_MAX + 1]);
/* No file that anybody has: code of a kernel, of a JIT compiler, memory without a file. */
bool debuginfo_path_is_no_file(struct str path);

struct debuginfo_upload;
/* ERR_EXISTS where debuginfo_wants says no. */
MUST_CHECK enum err_code debuginfo_upload_begin(struct debuginfo_store *s,
	const struct debuginfo_id *id, const struct debuginfo_offer *o, struct debuginfo_upload **out,
	struct err *err);
/* After an error finish fails too. The caller finishes when it has all bytes of the file. */
MUST_CHECK enum err_code debuginfo_upload_append(
	struct debuginfo_upload *u, struct str bytes, struct err *err);
MUST_CHECK enum err_code debuginfo_upload_finish(struct debuginfo_upload *u, struct err *err);
void debuginfo_upload_cancel(struct debuginfo_upload *u); /* NULL is fine */

/* ---- extraction ---- */

struct debuginfo_job {
	struct debuginfo_store *store;
	struct debuginfo_id id;
	enum debuginfo_kind kind;
	enum debuginfo_origin origin;
	char path[DEBUGINFO_PATH_BYTES_MAX + 1];
	uint64_t source_bytes;
	int in_fd, out_fd; /* to read; to write the index to, empty */
	int older_fd; /* of the index that is there; -1: none */
	uint64_t older_bytes; /* its first ones, which are the index */
	/* What is written is an index of another server, or has one in it: nobody tried a file, and it
	 * has its time of day. */
	bool shared;
	int64_t added_s; /* of a shared one */
	bool queued; /* of the queue, with a file of its own */
	char *tmp; /* the path of out_fd */
};

/* The oldest upload in the queue. ERR_NOT_FOUND: there is none that is due. */
MUST_CHECK enum err_code debuginfo_job_next(
	struct debuginfo_store *s, struct debuginfo_job **out, struct err *err);
/*
 * A file that needs no upload. in_fd: the job's, also on an error. ERR_EXISTS: not wanted; that an
 * earlier file failed or was no better a short time ago is no reason.
 */
MUST_CHECK enum err_code debuginfo_job_begin(struct debuginfo_store *s,
	const struct debuginfo_id *id, const struct debuginfo_offer *o, int in_fd,
	struct debuginfo_job **out, struct err *err);
/* The index that is there turned out to be damaged: nothing of it is kept. */
void debuginfo_job_forget_older(struct debuginfo_job *j);

struct debuginfo_found {
	enum debuginfo_quality quality;
	/* Where the code lies in the binary: known, lost (debug data alone), or neither is said. */
	enum debuginfo_places {
		DEBUGINFO_PLACES_UNSAID,
		DEBUGINFO_PLACES,
		DEBUGINFO_PLACES_LOST
	} places;
};
/*
 * out_fd has the index. ERR_EXISTS: it is worse than what is there, or the same. On ERR_IO and
 * ERR_NOMEM a queued upload stays in the queue, and is due again after again_ns.
 */
MUST_CHECK enum err_code debuginfo_job_publish(
	struct debuginfo_job *j, const struct debuginfo_found *found, struct err *err);
/* The extraction failed: the upload is gone. ERR_IO, _NOMEM, _UNAVAILABLE, _CANCELED: it stays. */
void debuginfo_job_fail(struct debuginfo_job *j, const struct err *why);

/* ---- readers ---- */

struct debuginfo_index;
MUST_CHECK enum err_code debuginfo_open(struct debuginfo_store *s, const struct debuginfo_id *id,
	struct debuginfo_index **out, struct err *err);
/* The same, and it is no use of it: the index is evicted as early as without. */
MUST_CHECK enum err_code debuginfo_peek(struct debuginfo_store *s, const struct debuginfo_id *id,
	struct debuginfo_index **out, struct err *err);
struct str debuginfo_index_bytes(const struct debuginfo_index *d);
/* The file as it is on the disk, with the description at its end. */
struct str debuginfo_index_file(const struct debuginfo_index *d);
enum debuginfo_quality debuginfo_index_quality(const struct debuginfo_index *d);
void debuginfo_index_close(struct debuginfo_index *d); /* NULL is fine */
/* Removes what a reader found damaged, so that it is wanted again. Not what replaced it. */
void debuginfo_drop(struct debuginfo_store *s, struct debuginfo_index *d);
/* Rises after each index that was published, evicted or dropped. */
uint64_t debuginfo_generation(const struct debuginfo_store *s);
/*
 * For mappings without a build id: indexes of files with the base name of this path, or with
 * ".debug" behind it. Returns how many there are, of which at most max are written.
 */
size_t debuginfo_find_name(
	struct debuginfo_store *s, struct str path, struct debuginfo_id *d, size_t max);

/* ---- what is asked for ---- */

/*
 * True: to be asked of others. Nothing good is there or on its way: at most what somebody uploaded
 * without debug data. Nobody was asked in vain, and no file failed or was no better, a short time
 * ago.
 */
bool debuginfo_lacks(struct debuginfo_store *s, const struct debuginfo_id *id);
/* Nobody has it. */
void debuginfo_set_missing(struct debuginfo_store *s, const struct debuginfo_id *id, int64_t end_s);
bool debuginfo_is_missing(struct debuginfo_store *s, const struct debuginfo_id *id);
/* There is somebody new to ask. */
void debuginfo_forget_missing(struct debuginfo_store *s);

/* ---- status ---- */

struct debuginfo_info {
	struct debuginfo_id id;
	struct str path; /* "": not known */
	bool present; /* the next seven are set */
	enum debuginfo_kind kind;
	enum debuginfo_origin origin;
	enum debuginfo_quality quality;
	uint64_t index_bytes, source_bytes;
	int64_t added_s, used_s;
	uint64_t waiting_bytes; /* of an upload under way or queued */
	bool uploading, queued, extracting;
	int64_t missing_end_s; /* 0: not asked for in vain */
	int64_t again_s; /* 0: no upload failed or was no better */
	struct str why; /* it failed */
};

/* Of one key, without its texts. False: nothing is known of it. */
bool debuginfo_find(
	struct debuginfo_store *s, const struct debuginfo_id *id, struct debuginfo_info *out);

/* A file as another server's store has it: what its end says. ERR_CORRUPT. */
struct debuginfo_file {
	struct str index; /* in the file's bytes; its own checksums are not looked at */
	enum debuginfo_kind kind;
	enum debuginfo_origin origin;
	uint64_t source_bytes;
	int64_t added_s;
	char path[DEBUGINFO_PATH_BYTES_MAX + 1];
};
MUST_CHECK enum err_code debuginfo_file_read(
	struct str file, const struct debuginfo_id *id, struct debuginfo_file *out, struct err *err);

/* In the order of kinds and keys; in the arena. */
MUST_CHECK enum err_code debuginfo_list(struct debuginfo_store *s, struct arena *a,
	struct debuginfo_info **d, size_t *n, struct err *err);
uint64_t debuginfo_bytes(struct debuginfo_store *s); /* of all indexes */

struct debuginfo_totals {
	uint64_t bytes, bytes_max; /* of all indexes; 0: no limit */
	uint64_t uploads_bytes; /* under way, queued, and being extracted */
	size_t indexes, queued;
};
struct debuginfo_totals debuginfo_totals(struct debuginfo_store *s);
uint64_t debuginfo_file_bytes_max(const struct debuginfo_store *s); /* of one upload */

#endif
