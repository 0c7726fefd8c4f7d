/*
 * Sink: where scraped profiles go. The database implements it in the server, a recorder in the
 * tests.
 *
 * Ownership: nothing of the profile, or of the numbers, is used after append returned.
 * Threads:   append and append_numbers are called from several worker threads at once and may block
 *            (that is the back pressure); done is called once per successful append, from any
 *            thread, and must not block.
 */
#ifndef SCRAPE_CONFIG_SINK_H
#define SCRAPE_CONFIG_SINK_H

#include "base/labels.h"
#include "proto/kinds.h"

struct sink_profile {
	struct labels labels; /* with __name__ = the profile's name; sorted */
	int64_t ts_ns; /* the server's time at the end of the scrape */
	int64_t interval_ns; /* between scrapes of this series */
	const struct pprof *profile;
	const enum value_kind *kinds; /* profile->types_n; cumulative columns are to become deltas */
};

/* This NaN says that a series of numbers ends, as in Prometheus. */
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
	/* Where an error is returned, done is not called. */
	enum err_code (*append)(struct sink *s, const struct sink_profile *p, sink_done_fn done,
		void *ctx, struct err *err);
	/* All of them or none. */
	enum err_code (*append_numbers)(struct sink *s, const struct sink_number *v, size_t n,
		sink_done_fn done, void *ctx, struct err *err);
};

struct sink {
	const struct sink_ops *ops;
};

#endif
