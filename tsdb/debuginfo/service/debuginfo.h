/*
 * Debug data of a server: the store, the thread that makes indexes of what was uploaded, and what
 * is wanted: binaries that profiles name and that have no names of functions yet. Whoever can fetch
 * their files (debuginfod servers, directories) takes them from here.
 *
 *	debuginfo_service_open ...; debuginfo_stop; (users end); debuginfo_service_close
 *
 * Units:     bytes; nanoseconds.
 * Errors:    those of the store and the extractor. ERR_INVALID: the file has another build id than
 *            the key says. ERR_CORRUPT: what the child wrote is no index.
 * Ownership: close frees what open gave. The store's readers and uploads are ended before it.
 * Threads:   any; open and close by one.
 * Source:    README.md beside this file.
 */
#ifndef TSDB_DEBUGINFO_SERVICE_DEBUGINFO_H
#define TSDB_DEBUGINFO_SERVICE_DEBUGINFO_H

#include "tsdb/debuginfo/store/store.h"

struct debuginfo;
struct extractor;

struct debuginfo_service_options {
	struct fs *fs;
	const char *dir;
	struct debuginfo_options store;
	/* Opened by the program before its first thread; the caller's. NULL: uploads stay queued. */
	struct extractor *extractor;
};

MUST_CHECK enum err_code debuginfo_service_open(
	const struct debuginfo_service_options *o, struct debuginfo **out, struct err *err);
/* Ends waits and extractions, which stay queued: the extractor is stopped for good. */
void debuginfo_stop(struct debuginfo *d);
/* Nobody uses it any more. Leaves the extractor to the caller's extractor_close. NULL is fine. */
void debuginfo_service_close(struct debuginfo *d);

struct debuginfo_store *debuginfo_store(struct debuginfo *d);
bool debuginfo_extracts(const struct debuginfo *d); /* there is an extractor */
/* An upload was finished: it is extracted now. */
void debuginfo_wake(struct debuginfo *d);
/*
 * Makes an index of a file that is here already; in_fd stays the caller's. Waits for it.
 * ERR_EXISTS: no better than what is there; then, and where the file is bad, the key is missing for
 * a day, unless the file is of a directory: its caller knows whether others have one.
 */
MUST_CHECK enum err_code debuginfo_extract_file(struct debuginfo *d, const struct debuginfo_id *id,
	enum debuginfo_origin origin, int in_fd, struct err *err);

/*
 * Takes a file of another server's store (debuginfo_index_file). whole: it has all that is known
 * here, and takes the place of it. Else both become one index; where one is too large for that, the
 * better one stays. ERR_EXISTS: nothing changed here. ERR_CORRUPT, ERR_INVALID: it is damaged, or
 * of another binary. ERR_UNAVAILABLE: something is being made of that key. *more: what is here says
 * more than the file, also with ERR_EXISTS.
 */
#define DEBUGINFO_MERGED_BYTES_MAX (64u << 20) /* of each of both */
MUST_CHECK enum err_code debuginfo_import(struct debuginfo *d, const struct debuginfo_id *id,
	struct str file, bool whole, bool *more, struct err *err);

/* ---- wanted ---- */

struct debuginfo_want {
	struct debuginfo_id id;
	/* Of the binary, as profiles say; "": not known. */
	char path[DEBUGINFO_PATH_BYTES_MAX + 1];
};
#define DEBUGINFO_WANTED_MAX 4096
#define DEBUGINFO_WANTED_AGAIN_NS (INT64_C(600) * 1000000000)
/*
 * Cheap where it is known already. Not kept: what debuginfo_lacks denies. One more than
 * DEBUGINFO_WANTED_MAX drops the oldest.
 */
void debuginfo_want(struct debuginfo *d, const struct debuginfo_id *id, struct str path);
/* Somebody asked for it, and it is not there, whether others were asked already or not. */
bool debuginfo_is_wanted(struct debuginfo *d, const struct debuginfo_id *id);
/*
 * The next that was not given within DEBUGINFO_WANTED_AGAIN_NS. False: none within the time, or
 * debuginfo_stop. One caller at a time.
 */
MUST_CHECK bool debuginfo_next_wanted(
	struct debuginfo *d, int64_t timeout_ns, struct debuginfo_want *out);

#endif
