/*
 * Appending to a database: profiles and numbers.
 *
 * Errors:  ERR_LIMIT (names the limit), ERR_INVALID (out of the accepted times), ERR_EXISTS,
 * ERR_UNAVAILABLE (disk full, a failed store being reopened, closing), ERR_IO. Threads: any number
 * of appenders; acknowledgements are called from the commit thread and must not block.
 */
#ifndef TSDB_HEAD_APPEND_H
#define TSDB_HEAD_APPEND_H

#include "base/labels.h"
#include "proto/kinds.h"
#include "proto/pprof.h"

struct db;

struct db_append {
	struct labels labels; /* with __name__ = the profile's name; sorted */
	int64_t ts_ns; /* the server's time at the end of the scrape */
	int64_t interval_ns; /* between scrapes: a gauge's weight, and the age limit of a delta
				base; > 0 */
	const struct pprof *profile;
	const enum value_kind *kinds; /* one per type */
	bool convert; /* cumulative columns to deltas (scrapes); else they are kept as KIND_DELTA
			 (ingest) */
	int64_t gap_max_ns; /* 0: the interval is known. Else it is the time since the series' row
				   before, at most this; interval_ns where there is none */
};

struct db_append_stats {
	uint32_t samples; /* stored, zeros dropped */
	bool first; /* no usable delta base: cumulative columns are zero */
	bool overflow; /* some label sets were folded into __overflow__ */
};

typedef void (*db_acked_fn)(void *ctx, enum err_code rc, const struct err *err);

/*
 * Returns once the row is encoded and queued; acked is then called exactly once, after its group's
 * sync. Where an error is returned acked is not called. Nothing of *a is used after the return.
 * Blocks while the queue is full. The same series and time again is ERR_EXISTS, which names both;
 * unless it is the same row, byte for byte, and not to be converted: then it is acknowledged at
 * once. A time of which rows of the series were deleted is ERR_INVALID.
 */
MUST_CHECK enum err_code db_append(struct db *db, const struct db_append *a,
	struct db_append_stats *stats, db_acked_fn acked, void *ctx, struct err *err);

/*
 * A value of a numeric series: `up`, ALERTS, recorded costs. Each bit of the value is kept; the NaN
 * NUMBER_STALE_BITS (tsdb/columns/number_chunk.h) says that the series ends, as in Prometheus.
 */
struct db_number {
	struct labels labels; /* with __name__; sorted */
	int64_t ts_ns; /* cut to milliseconds it costs least */
	double value;
};

/*
 * All of them or none, under one acknowledgement, as db_append; the same series and time again is
 * ERR_EXISTS where the value is another. A name is of profiles or of numbers, and series of one
 * kind refuse the other: ERR_INVALID names it. Values of a batch may fall into several windows;
 * should one window's commit fail the whole batch is answered with the error, and may be appended
 * again. n 0: acknowledged at once.
 */
MUST_CHECK enum err_code db_append_numbers(struct db *db, const struct db_number *v, size_t n,
	db_acked_fn acked, void *ctx, struct err *err);

/*
 * Reads every record of the head's windows and compares their number with what was acknowledged:
 * what is missing is added to the losses. For tools, on a database that is open for reading only.
 */
MUST_CHECK enum err_code db_verify_head(struct db *db, struct err *err);

#endif
