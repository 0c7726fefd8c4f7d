/*
 * Appending to a database: profiles and numbers.
 *
 * Errors:  ERR_LIMIT (names the limit), ERR_INVALID (out of the accepted times), ERR_EXISTS,
 *          ERR_UNAVAILABLE (disk full, a failed store being reopened, closing), ERR_IO.
 * Threads: any number of appenders; the commit thread calls acknowledgements; they must not block.
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
	int64_t gap_max_ns; /* 0: the interval is known. Else it is the time since the series'
				   previous row, at most this; interval_ns if there is none */
};

struct db_append_stats {
	uint32_t samples; /* stored, zeros dropped */
	bool first; /* no usable delta base: cumulative columns are zero */
	bool overflow; /* some label sets were folded into __overflow__ */
	uint32_t links; /* linked samples stored: per stack, label set and span */
	uint32_t links_dropped; /* linked samples whose links are not; the samples are */
};

typedef void (*db_acked_fn)(void *ctx, enum err_code rc, const struct err *err);

/*
 * Returns once the row is encoded and queued; acked is then called exactly once, after its group's
 * sync. On an error acked is not called. *a is not used after the return. Blocks while the queue is
 * full. A second row of one series and time is ERR_EXISTS; if it is the same row, byte for byte,
 * and not to be converted, it is acknowledged at once. A deleted time of the series is ERR_INVALID.
 */
MUST_CHECK enum err_code db_append(struct db *db, const struct db_append *a,
	struct db_append_stats *stats, db_acked_fn acked, void *ctx, struct err *err);

/*
 * A value of a numeric series: `up`, ALERTS, recorded costs. Each bit of the value is kept; the NaN
 * NUMBER_STALE_BITS (tsdb/columns/number_chunk.h) says that the series ends, as in Prometheus.
 */
struct db_number {
	struct labels labels; /* with __name__; sorted */
	int64_t ts_ns; /* whole milliseconds take the least space */
	double value;
};

/*
 * Appends all of them or none, under one acknowledgement, as db_append. Another value for a stored
 * series and time is ERR_EXISTS. A name is either of profiles or of numbers; the other kind is
 * ERR_INVALID. Values of a batch may fall into several windows; if one window's commit fails the
 * whole batch is answered with the error, and may be appended again. n 0: acknowledged at once.
 */
MUST_CHECK enum err_code db_append_numbers(struct db *db, const struct db_number *d, size_t n,
	db_acked_fn acked, void *ctx, struct err *err);

/*
 * The earliest time from ts_ns on that a row may have: sealed windows and blocks take no more.
 * Where ts_ns is sealed, it is also after the rows of the window that follows. For the clock that
 * profiles are stamped by (clock_look).
 */
int64_t db_free_from(struct db *db, int64_t ts_ns);

/*
 * Reads every record of the head's windows and compares their number with the acknowledged one;
 * missing records become losses. For tools, on a database that is open for reading only.
 */
MUST_CHECK enum err_code db_verify_head(struct db *db, struct err *err);

#endif
