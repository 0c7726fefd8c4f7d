/*
 * Sink: takes scraped profiles and numbers. The server's is the database, the tests' a recorder.
 *
 * Ownership: the sink uses nothing of the profile or of the numbers after append has returned.
 * Threads:   several workers call append and append_numbers at once; these may block, which is the
 *            back pressure. The sink calls done once per successful append, from any thread; done
 *            does not block.
 */
#ifndef PROTO_SINK_H
#define PROTO_SINK_H

#include "base/labels.h"
#include "proto/kinds.h"

struct sink_stored {
	uint32_t samples; /* zeros are not stored */
	bool overflow; /* some label sets of samples were folded into one */
	uint32_t links_dropped; /* samples whose links to spans are not stored */
};

struct sink_profile {
	struct labels labels; /* with __name__ = the profile's name; sorted */
	int64_t ts_ns; /* the server's time at the end of the scrape */
	int64_t interval_ns; /* between scrapes of this series */
	const struct pprof *profile;
	const enum value_kind *kinds; /* profile->types_n; cumulative columns are to become deltas */
	bool as_sent; /* cumulative columns hold differences already */
	/* 0: the interval is known. Else it is the time since the profile before, at most this;
	 * interval_ns for the first. */
	int64_t gap_max_ns;
	/*
	 * What became of it, once append has returned and done was called with ERR_OK; written no more
	 * after that. May be NULL.
	 */
	struct sink_stored *stored;
};

/* The NaN that ends a series of numbers, as in Prometheus. */
#define SINK_STALE_BITS UINT64_C(0x7ff0000000000002)

struct sink_number { /* one value of a series of numbers, as `up` */
	struct labels labels; /* with __name__; sorted */
	int64_t ts_ns;
	double value;
};

/* rc ERR_OK: the profile, or all of the numbers, are durable. */
typedef void (*sink_done_fn)(void *ctx, enum err_code rc, const struct err *err);

struct sink;

struct sink_ops {
	/* On an error done is not called. */
	enum err_code (*append)(struct sink *s, const struct sink_profile *p, sink_done_fn done,
		void *ctx, struct err *err);
	/* All of them or none. On an error done is not called. */
	enum err_code (*append_numbers)(struct sink *s, const struct sink_number *v, size_t n,
		sink_done_fn done, void *ctx, struct err *err);
};

struct sink {
	const struct sink_ops *ops;
};

#endif
