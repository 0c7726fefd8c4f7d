/*
 * Links: which spans were running when samples of a row were taken. An optional part of a row, in
 * bytes of its own, so that a row without links has none, and sums do not pass them.
 *
 * They are a table of spans and a row of the linked samples alone: the same stack and label set
 * once for each span, with its share of the values. So they can be read without their row.
 *
 * Errors:  ERR_CORRUPT from any bytes that links_encode did not make; ERR_NOMEM; of links_encode
 *          those of row_encode.
 * Threads: values; no sharing.
 * Source:  tsdb/FORMAT.md, "Links".
 */
#ifndef TSDB_COLUMNS_LINKS_H
#define TSDB_COLUMNS_LINKS_H

#include "proto/pprof.h"
#include "tsdb/columns/row.h"

#define LINKS_ROW_MAX 65536u /* linked samples that a row keeps; more are dropped and counted */

struct links {
	const struct pprof_link *spans;
	uint32_t spans_n;
	const uint32_t *of; /* of each entry of the row: of spans */
	uint64_t dropped; /* linked samples that are not here, as there were too many */
};

/* The row's epoch counts, not this one's: r->epoch is 0. */
MUST_CHECK enum err_code links_encode(
	const struct links *l, const struct row *r, int64_t ts_ns, struct buf *out, struct err *err);

/* Links of a row, decoded. Zeroed at first; it keeps its memory for the next row. */
struct links_unpacked {
	struct links links; /* the spans are in the bytes given */
	struct row_view view;
	struct row row;
	uint32_t *ids; /* stacks, label sets, numbers of spans */
	int64_t *values;
	size_t ids_cap, values_cap;
};
/* The bytes must live as long as the result is used. */
MUST_CHECK enum err_code links_unpack(
	struct links_unpacked *u, struct str bytes, int64_t ts_ns, struct err *err);
void links_unpacked_release(struct links_unpacked *u);

#endif
