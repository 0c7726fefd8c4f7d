/*
 * Binaries: open indexes of symbols, kept between queries.
 *
 * An index that was replaced, evicted or found damaged is opened anew when it is asked for next;
 * who has it keeps it.
 *
 * Errors:    ERR_NOMEM. An index that cannot be read is logged and is none.
 * Ownership: binaries_close wants that no binary is held.
 * Threads:   any, but open and close.
 */
#ifndef TSDB_DEBUGINFO_NAMES_BINARIES_H
#define TSDB_DEBUGINFO_NAMES_BINARIES_H

#include "tsdb/debuginfo/index/symindex.h"
#include "tsdb/debuginfo/store/store.h"

struct binaries;
struct binary;

/* Told of a binary that has no names, whenever some were looked for; cheap. */
typedef void (*binary_wanted_fn)(void *ctx, const struct debuginfo_id *id, struct str path);

/* wanted: NULL: nobody is told. */
MUST_CHECK enum err_code binaries_open(struct debuginfo_store *store, binary_wanted_fn wanted,
	void *ctx, struct binaries **out, struct err *err);
void binaries_close(struct binaries *b); /* NULL is fine */

/*
 * The binary of this build id, or, where there is none, the only one whose file has this path's
 * last element. NULL: there are no names; whoever can fetch them is told (debuginfo_want).
 */
struct binary *binaries_get(
	struct binaries *b, struct str build_id, struct str path, bool *by_path);
const struct symindex *binary_index(const struct binary *x);
/* Its pages are damaged: it is removed, so that it is wanted again. */
void binary_drop(struct binaries *b, struct binary *x);
void binary_release(struct binaries *b, struct binary *x); /* NULL is fine */

#endif
