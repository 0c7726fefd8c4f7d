/*
 * Series index, the inside: names, values, jobs, and which series have them.
 *
 * Threads: under the index's lock.
 */
#ifndef TSDB_SERIES_SERIES_INTERNAL_H
#define TSDB_SERIES_SERIES_INTERNAL_H

#include "base/map.h"
#include "tsdb/series/id_set.h"
#include "tsdb/series/job_counts.h"
#include "tsdb/series/series.h"

/* The series of one label value. */
struct series_posting {
	struct str value; /* text of one of them; empty: none has it any more */
	struct id_set ids;
};

struct index_name {
	struct str name; /* in the index's arena */
	struct id_set ids; /* series that have the label, with whatever value */
	struct series_posting *values;
	uint32_t n, cap;
	uint32_t dead; /* values without series */
	uint32_t latest; /* the value to which a series was added last: the next one often has it */
	struct map by_value; /* dead values stay until the next rebuild and are never equal */
};

struct index_job {
	struct job *job; /* NULL: numeric */
	struct id_set ids;
};

struct series_index {
	pthread_rwlock_t lock;
	uint64_t series_max, job_series_max, n;
	struct job_counts by_job_name;
	uint64_t series_bytes; /* of all struct series */
	uint32_t next_id;
	struct series **by_id; /* by_id[id], NULL in holes */
	uint32_t by_id_cap;
	struct map by_labels; /* ids; removed ones stay until the next rebuild and are never equal */
	uint32_t removed;
	struct index_name *names;
	uint32_t names_n, names_cap;
	struct map by_name;
	uint32_t values_n, values_dead; /* postings; those without series */
	struct index_job *jobs; /* stay: there are few */
	uint32_t jobs_n, jobs_cap;
	struct map by_job;
	struct arena arena; /* names */
};

/* ---- series_labels.c ---- */

struct index_name *index_name_find(const struct series_index *s, struct str name); /* or NULL */
struct series_posting *index_value_find(
	const struct index_name *in, struct str value); /* or NULL */
const struct index_job *index_job_find(const struct series_index *s, const struct job *job);

void index_labels_init(struct series_index *s);
void index_labels_release(struct series_index *s);
/* Many series are about to be added: asks memory for what adding this one will read. */
void index_labels_prefetch(const struct series_index *s, struct labels labels);
/* False: out of memory; index_labels_remove takes back what was added. */
MUST_CHECK bool index_labels_add(struct series_index *i, const struct series *s);
/* The series' text is not used afterwards. */
void index_labels_remove(struct series_index *series_index, const struct series *s);
/* Makes names and values anew when half of them have no series. */
void index_labels_compact(struct series_index *s);
uint64_t index_labels_bytes(const struct series_index *s);

#endif
