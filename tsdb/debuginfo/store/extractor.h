/*
 * Extractor: runs a function on a file, and on what was made of others before, in a child process
 * that may do nothing else. The file is hostile: the function may crash, loop, take all memory, or
 * run foreign code.
 *
 * extractor_open forks a keeper, which forks a process per slot, which forks a worker per file. A
 * worker has the files mapped, a descriptor to write to, a pipe for its result, limits on CPU,
 * memory and output, and the system calls of a table (extractor_worker.c): any other ends it. The
 * slot ends a worker that takes too long, and the keeper starts a slot that died anew. The caller
 * itself only sends and receives on sockets, so it may give up its rights after the open.
 *
 * Units:     bytes; nanoseconds.
 * Errors:    of the function: its code and its text, cut and printable. Else ERR_INVALID (the
 *            worker crashed, made a forbidden call, answered nonsense), ERR_LIMIT (CPU time,
 *            memory, input, output), ERR_TIMEOUT, ERR_UNAVAILABLE (no child could be had; the
 *            kernel does not allow the filter), ERR_CANCELED (extractor_stop).
 * Ownership: descriptors stay the caller's.
 * Threads:   open: before the first thread and before the sandbox. run: any number; they wait for a
 *            slot. stop, any; then the threads in run are joined; then close.
 */
#ifndef TSDB_DEBUGINFO_STORE_EXTRACTOR_H
#define TSDB_DEBUGINFO_STORE_EXTRACTOR_H

#include "base/str.h"

/*
 * Runs in the worker. What it appends to *out is written to the output when it returns ERR_OK.
 * older: "" where there is none. err->msg is "" before; it may say what was left out, too.
 */
typedef enum err_code (*extract_fn)(
	struct str input, struct str older, struct buf *out, struct err *err);

/* 0: the default. */
struct extractor_options {
	extract_fn fn;
	unsigned slots; /* files at once; 1, at most EXTRACTOR_SLOTS_MAX */
	int64_t timeout_ns; /* 2 min */
	unsigned cpu_s; /* 60 */
	uint64_t memory_bytes_max; /* beside the files; 512 MiB */
	uint64_t input_bytes_max; /* 1 GiB */
	uint64_t output_bytes_max; /* 1 GiB */
};
#define EXTRACTOR_SLOTS_MAX 16

struct extractor;

MUST_CHECK enum err_code extractor_open(
	const struct extractor_options *o, struct extractor **out, struct err *err);
struct extraction_files {
	int in_fd;
	int older_fd; /* -1: none */
	uint64_t older_bytes; /* its first ones, which are the index */
	int out_fd; /* for writing only, at its end; after an error it may hold a part */
};
/* ERR_OK: err->msg is "", or says what was left out. */
MUST_CHECK enum err_code extractor_run(
	struct extractor *e, const struct extraction_files *files, struct err *err);
/* Ends what runs: extractor_run gives ERR_CANCELED from now on. */
void extractor_stop(struct extractor *e);
/* No thread is in extractor_run. Returns when all children are gone. NULL is fine. */
void extractor_close(struct extractor *e);

#endif
