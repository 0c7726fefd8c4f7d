#include <stdlib.h>

#include "base/map.h"
#include "tsdb/read/sum_internal.h"

/*
 * Edges: where one window ends in the middle of a chunk, the next one often begins. Adding the
 * first part of a chunk reads all of its bits (tsdb/columns/chunk_part.c), so the sums of the rest
 * cost almost nothing; they are kept here for the next window. A part that was added once needs no
 * further check: a corrupt chunk leaves nothing here.
 *
 * When the memory is full, edges of past windows are freed; if it is still full, a new edge is not
 * kept.
 */
#define BUCKETS 256u
#define BYTES_MAX ((size_t)4 << 20) /* of one querier: about 200 series of 1,500 stacks */

struct sum_edge {
	struct sum_edge *next;
	struct sum_edge_key key;
	int64_t cut_ns; /* of the first row behind the cut */
	size_t bytes;
	uint32_t n;
	bool has_sets;
	int64_t values[]; /* n; then as many stacks, then sets */
};

struct sum_edges {
	struct sum_edge *buckets[BUCKETS];
	size_t bytes;
	int64_t swept_ns; /* edges that were cut before this are freed */
};

void sum_edges_close(struct sum_edges *e)
{
	for (size_t i = 0; e && i < BUCKETS; i++)
		for (struct sum_edge *at = e->buckets[i], *next; at; at = next) {
			next = at->next;
			free(at);
		}
	free(e);
}

static bool sum_edges_key_eq(const struct sum_edge_key *a, const struct sum_edge_key *b)
{
	return a->source == b->source && a->series == b->series && a->column == b->column &&
		a->from == b->from && a->first_ns == b->first_ns;
}

static struct sum_edge **sum_edges_bucket_of(struct sum_edges *e, const struct sum_edge_key *key)
{
	uint64_t h = map_hash_u64((uint64_t)key->series << 32 | key->source);

	return &e->buckets[(h ^ map_hash_u64((uint64_t)key->first_ns + key->column)) % BUCKETS];
}

static struct sum_edge *read_sum_edges_find(struct sum_edges *e, const struct sum_edge_key *key)
{
	struct sum_edge *at = *sum_edges_bucket_of(e, key);

	while (at && !sum_edges_key_eq(&at->key, key))
		at = at->next;
	return at;
}

static void sum_edges_sweep(struct sum_edges *e, int64_t before_ns)
{
	if (before_ns <= e->swept_ns)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct sum_edge **at = &e->buckets[i], *gone; *at;) {
			if ((*at)->cut_ns > before_ns) {
				at = &(*at)->next;
				continue;
			}
			gone = *at;
			*at = gone->next;
			e->bytes -= gone->bytes;
			free(gone);
		}
	e->swept_ns = before_ns;
}

bool sum_edges_want(struct sum_edges **edges, const struct sum_edge_key *key)
{
	if (!*edges && (*edges = calloc(1, sizeof(**edges))))
		(*edges)->swept_ns = INT64_MIN;
	return *edges && !read_sum_edges_find(*edges, key);
}

void sum_edges_keep(struct sum_edges *e, const struct sum_edge_key *key, int64_t cut_ns,
	int64_t window_ns, const struct chunk_tail *tail)
{
	size_t n = tail->n, each = sizeof(int64_t) + sizeof(uint32_t), bytes;
	struct sum_edge **bucket = sum_edges_bucket_of(e, key), *edge;
	uint32_t *ids;

	if (!tail->is_known)
		return;
	each += tail->label_sets ? sizeof(uint32_t) : 0;
	bytes = sizeof(*edge) + n * each;
	if (e->bytes + bytes > BYTES_MAX)
		sum_edges_sweep(e, window_ns);
	if (e->bytes + bytes > BYTES_MAX || !(edge = malloc(bytes)))
		return;
	*edge = (struct sum_edge){ .next = *bucket,
		.key = *key,
		.cut_ns = cut_ns,
		.bytes = bytes,
		.n = tail->n,
		.has_sets = tail->label_sets != NULL };
	ids = (uint32_t *)(edge->values + n);
	if (n) {
		memcpy(edge->values, tail->values, n * sizeof(*edge->values));
		memcpy(ids, tail->stacks, n * sizeof(*ids));
		if (tail->label_sets)
			memcpy(ids + n, tail->label_sets, n * sizeof(*ids));
	}
	*bucket = edge;
	e->bytes += bytes;
}

bool sum_edges_find(struct sum_edges *e, const struct sum_edge_key *key, struct chunk_tail *out)
{
	struct sum_edge *edge = e ? read_sum_edges_find(e, key) : NULL;
	uint32_t *ids;

	if (!edge)
		return false;
	ids = (uint32_t *)(edge->values + edge->n);
	*out = (struct chunk_tail){ .stacks = ids,
		.label_sets = edge->has_sets ? ids + edge->n : NULL,
		.values = edge->values,
		.n = edge->n,
		.is_known = true };
	return true;
}
