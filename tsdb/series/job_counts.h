/*
 * Job counts: how many series of an index each job has, those of numbers included.
 *
 * A job is the name that job_name_of gives: the label `job`, else `service_name`, else "" for all
 * that have neither. Adding a series costs one look into a map, most often none.
 *
 * Errors:    false: out of memory; nothing changed.
 * Ownership: names are copied. A zeroed struct is empty; job_counts_release frees.
 * Threads:   the user's lock guards it.
 */
#ifndef TSDB_SERIES_JOB_COUNTS_H
#define TSDB_SERIES_JOB_COUNTS_H

#include "base/err.h"
#include "base/map.h"
#include "base/str.h"

struct job_count {
	struct str name;
	uint32_t n; /* 0: it may come again; else it goes with the next rebuild */
};

struct job_counts {
	struct job_count *v;
	uint32_t n, cap;
	uint32_t dead; /* of v, without series */
	uint32_t latest; /* the next series is often of the same job */
	struct map by_name;
	uint64_t name_bytes;
};

MUST_CHECK bool job_counts_add(struct job_counts *c, struct str job);
void job_counts_remove(struct job_counts *c, struct str job); /* it was added */
uint32_t job_counts_of(const struct job_counts *c, struct str job);
/* The job with the most series; n 0: there are no series. The name lives until the next change. */
struct job_count job_counts_largest(const struct job_counts *c);
uint64_t job_counts_bytes(const struct job_counts *c); /* beside the struct */
void job_counts_release(struct job_counts *c);

#endif
