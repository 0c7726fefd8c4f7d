/*
 * The graph of a profile, as reports need it: nodes with flat and cum costs, and which of them
 * were inlined.
 *
 * A node is what the options make a row of: a function's name, by default of any file and binary.
 * Without a name it is the binary and the function's first line.
 *
 * Errors:    ERR_NOMEM, ERR_LIMIT from the arena; ERR_CANCELED where *canceled says so.
 * Ownership: nodes live in the arena and point into the profile; pprof_graph_release ends the rest.
 * Threads:   one at a time.
 * Source:    google/pprof, internal/graph, internal/driver/tagroot.go; profile.Aggregate.
 */
#ifndef PROTO_REPORT_PPROF_GRAPH_H
#define PROTO_REPORT_PPROF_GRAPH_H

#include <stdatomic.h>

#include "base/map.h"
#include "proto/pprof.h"
#include "proto/report/pprof_options.h"
#include "proto/report/prune.h"

struct pprof_graph_node {
	struct str name, file; /* the file's path is cut and clean */
	struct str objfile; /* only of nodes without a name, as start_line */
	int64_t start_line;
	uint64_t address;
	int64_t line, column;
	struct str text; /* as printed */
	int64_t flat, cum;
	uint32_t seen; /* sample + 1 that added to cum last */
	bool kept; /* in, of pprof_graph_add_edges */
	bool inlined, called; /* some edge into it is inline; some is not */
};

struct pprof_graph {
	const struct pprof *p;
	const struct pprof_options *o;
	const atomic_bool *canceled; /* may be NULL */
	uint32_t type;
	struct arena *arena;
	struct prune prune;
	struct str *files; /* of each function */
	uint32_t *line_node; /* node of each line of the profile */
	uint32_t *bare_node; /* of each location without lines */
	uint32_t *tag_nodes; /* of each sample: its frames of tagroot, then of tagleaf */
	uint32_t roots_n, leaves_n;
	struct pprof_graph_node *nodes;
	size_t nodes_n, nodes_cap;
	struct map node_map;
	struct pprof_graph_edge *edges;
	size_t edges_n, edges_cap;
	struct map edge_map;
};

/* Nodes with their costs of this type. Release it, also after an error. */
MUST_CHECK enum err_code pprof_graph_init(struct pprof_graph *g, const struct pprof *p,
	uint32_t type, const struct pprof_options *o, const atomic_bool *canceled, struct arena *a,
	struct err *err);
/*
 * Edges between kept nodes, those that weigh `cutoff` or more: sets `inlined` and `called`. A frame
 * whose node is not kept is passed over, as if its caller had made its calls.
 */
MUST_CHECK enum err_code pprof_graph_add_edges(
	struct pprof_graph *g, uint64_t cutoff, struct err *err);
void pprof_graph_release(struct pprof_graph *g);

#endif
