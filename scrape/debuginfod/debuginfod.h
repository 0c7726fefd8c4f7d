/*
 * Debuginfod: gets the debug data that is wanted: files of local directories, then of debuginfod
 * servers, in the order of the configuration.
 *
 *	debuginfo_want          a query met addresses without names; or o.walk did
 *	debuginfo_next_wanted   a thread takes it here
 *	DIR/.build-id/ab/cdef.debug, DIR/PATH.debug, DIR/PATH       debuginfo_extract_file
 *	URL/buildid/abcdef/debuginfo, then .../executable           debuginfo_upload_*: in pieces
 *	URL/buildid/abcdef/section/.gnu_debugaltlink                behind debug data; the common file
 *	                                                            of dwz is appended as a bundle
 *	URL/buildid/abcdef/source/usr/src/a.c                       debuginfod_source: for its caller
 *
 * All servers are asked for debug data before one is asked for an executable. A build id that none
 * has is missing for DEBUGINFOD_MISSING_NS. A server that fails (no answer, none in time, a status
 * other than 200, 404, 406 and 410) rests: for 5 s, then twice as long each time, up to
 * DEBUGINFOD_REST_MAX_NS, or as long as its Retry-After says. What is not an ELF file, too large or
 * broken off time and again is left alone for a shorter time. The code of kernels and JIT compilers
 * is never asked for, and servers only by GNU build ids.
 *
 * Units:     nanoseconds, bytes.
 * Errors:    of open and apply: ERR_NOMEM, ERR_UNAVAILABLE. Those of servers and files are logged,
 *            one line when a server begins to fail and one when it works again.
 * Ownership: apply takes a reference to the configuration. The service of debug data is the
 *            caller's; it is closed after debuginfod_close.
 * Threads:   "debuginfod-dir" takes what is wanted and looks into directories; "debuginfod" is an
 *            event loop with the HTTP client, which writes uploads to the store. apply: one at a
 *            time; list, source: any.
 * Source:    elfutils' debuginfod(8): webapi, X-DEBUGINFOD-MAXSIZE; GDB's "Separate Debug Files".
 */
#ifndef SCRAPE_DEBUGINFOD_DEBUGINFOD_H
#define SCRAPE_DEBUGINFOD_DEBUGINFOD_H

#include <stdatomic.h>

#include "scrape/config/config.h"
#include "tsdb/debuginfo/service/debuginfo.h"

#define DEBUGINFOD_DOWNLOADS_MAX 4u /* at once; of one server 1 */
#define DEBUGINFOD_WAITING_MAX \
	256u /* binaries in line for servers; others are wanted again later */
#define DEBUGINFOD_MISSING_NS (24 * 3600 * INT64_C(1000000000))
#define DEBUGINFOD_REST_MIN_NS (5 * INT64_C(1000000000))
#define DEBUGINFOD_REST_MAX_NS (300 * INT64_C(1000000000))
#define DEBUGINFOD_RETRY_AFTER_MAX_NS (3600 * INT64_C(1000000000))
#define DEBUGINFOD_WALK_NS (30 * INT64_C(1000000000))

struct debuginfod;

struct debuginfod_options {
	struct debuginfo *debuginfo;
	/* Called now and then on a thread of its own: wants what profiles name. NULL: none. */
	void (*walk)(void *ctx);
	/* Has somebody else an index of it, and is it here now? Then nobody is asked. May wait for
	 * seconds. NULL: nobody has. */
	bool (*ask_first)(void *ctx, const struct debuginfo_id *id);
	void *ctx;
	int64_t rest_min_ns, rest_max_ns; /* 0: those above; for tests */
	int64_t walk_ns; /* 0: DEBUGINFOD_WALK_NS */
};

/* Nothing is asked before the first apply. */
MUST_CHECK enum err_code debuginfod_open(
	const struct debuginfod_options *o, struct debuginfod **out, struct err *err);
/* Downloads under way end, and an extraction after debuginfo_stop. NULL is fine. */
void debuginfod_close(struct debuginfod *d);
/*
 * Whole or not at all. Where the servers are the same, downloads under way go on; where anything is
 * another, nothing is missing any more.
 */
MUST_CHECK enum err_code debuginfod_apply(struct debuginfod *d, struct config *c, struct err *err);

/* ---- source code ---- */

#define DEBUGINFOD_SOURCE_BYTES_MAX (4u << 20)
#define DEBUGINFOD_SOURCES_MAX 8u /* asked for at once */
#define DEBUGINFOD_SOURCE_MISSING_NS (600 * INT64_C(1000000000))

struct debuginfod_source {
	struct str build_id; /* GNU's */
	struct str path; /* of the source, as debug data says: from / on */
	struct str binary; /* its path, for allow_paths; "": not known */
};
struct debuginfod_text {
	struct str text; /* any bytes */
	struct str server; /* its URL without secrets */
};
/*
 * Asks the servers with `source: true` one after the other and waits. The answer is in the arena.
 *
 * ERR_INVALID: the build id, the path; ERR_NOT_FOUND: no server has it, or may be asked; ERR_LIMIT:
 * too large; ERR_UNAVAILABLE: a server failed, or too many ask; ERR_CANCELED.
 */
MUST_CHECK enum err_code debuginfod_source(struct debuginfod *d, const struct debuginfod_source *s,
	const atomic_bool *canceled, struct arena *a, struct debuginfod_text *out, struct err *err);

/* ---- status ---- */

struct debuginfod_info {
	struct str url; /* as people may see it */
	uint64_t requests, files, bytes; /* asked; got; of files, also of those that broke off */
	bool failing;
	struct str error; /* the last, also of one file; "": none */
	int64_t error_s; /* when, since 1970 */
	int64_t again_s; /* failing: asked again then */
};

/* In the order of the configuration; in the arena. */
MUST_CHECK enum err_code debuginfod_list(struct debuginfod *d, struct arena *a,
	struct debuginfod_info **debuginfod_info, size_t *n, struct err *err);

#endif
