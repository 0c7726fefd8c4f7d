/*
 * Marks: which symbols of a partition a window holds already, so that each window stores every
 * symbol its rows use, once. A window is then self-contained: dropping it is deleting its
 * directory.
 *
 * marks_add walks from what a row uses to all that those refer to, marks what is new and collects
 * it; the record made of it goes into the same batch as the row. marks_commit or marks_rollback
 * ends that. A record's number is higher than those of records it relies on, so reading them in
 * order finds everything in place.
 *
 * Errors:  ERR_NOMEM; ERR_CORRUPT where a record cannot be read.
 * Threads: under the partition's lock; symbols_load_record while nobody else has the partition.
 * Source:  tsdb/FORMAT.md, "Symbols".
 */
#ifndef TSDB_SYMBOLS_STORED_H
#define TSDB_SYMBOLS_STORED_H

#include "tsdb/symbols/partition.h"

struct marks {
	struct marks *next;
	int64_t window_ns; /* start of the window */
	uint64_t generation; /* of commits, see commit_generation */
	uint32_t seq; /* number of the next record */
	uint32_t nodes; /* marked ones */
	bool partition_stored; /* the window has the partition's own record */
	struct bits bits[SYM_KINDS];
};

/* Ids newly marked, per kind. */
struct marked {
	uint32_t *ids[SYM_KINDS], n[SYM_KINDS], cap[SYM_KINDS];
};

struct marks *marks_find(struct partition *p, int64_t window_ns);
MUST_CHECK enum err_code marks_open(
	struct partition *p, int64_t window_ns, struct marks **out, struct err *err);
void marks_drop(struct partition *p, int64_t window_ns); /* the window takes no more rows */
void marks_release_all(struct partition *p);

/* Marks all that these rows use; *new is reused between calls (marked_release at the end). */
MUST_CHECK enum err_code marks_add(struct partition *p, struct marks *m, uint32_t header,
	const uint64_t *keys, uint32_t n, struct marked *new, struct err *err);
void marks_rollback(struct marks *m, const struct marked *new);
void marked_clear(struct marked *new);
void marked_release(struct marked *new);
bool marked_any(const struct marked *new);

/* The record of what was newly marked. */
void symbols_encode(const struct partition *p, struct marked *new, struct buf *out);
/*
 * Puts a record's symbols into the partition and marks them (m may be NULL). A symbol that cannot
 * be used is left out, counted in *lost, and its reason is in *err; the others are loaded.
 * ERR_CORRUPT: the record itself cannot be read from some point on; ERR_EXISTS: an id has two
 * meanings.
 */
MUST_CHECK enum err_code symbols_load_record(struct partition *p, struct marks *m,
	struct str record, struct arena *scratch, uint64_t *lost, struct err *err);

#endif
