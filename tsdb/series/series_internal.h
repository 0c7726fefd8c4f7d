/*
 * Series index, the inside: names, values, postings.
 *
 * Threads: under the index's lock.
 */
#ifndef TSDB_SERIES_SERIES_INTERNAL_H
#define TSDB_SERIES_SERIES_INTERNAL_H

#include "base/map.h"
#include "tsdb/series/series.h"

/* The series of one label value, ascending by id. */
struct posting {
	struct str value;
	uint32_t *ids;
	uint32_t n, cap;
};

struct index_name {
	struct str name;
	struct posting *values;
	uint32_t n, cap;
	struct map by_value;
};

struct series_index {
	pthread_rwlock_t lock;
	uint64_t series_max, n;
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
	struct arena arena; /* names and values */
};

struct index_name *index_name_find(const struct series_index *x, struct str name); /* or NULL */
struct posting *index_value_find(const struct index_name *in, struct str value); /* or NULL */

#endif
