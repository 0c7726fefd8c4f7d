/*
 * tagroot and tagleaf: values of samples' labels as frames at the root or the leaf of a graph. The
 * first key is the outermost frame. A sample without the label has a frame without a name there.
 *
 * Errors:    ERR_NOMEM, ERR_LIMIT from the arena.
 * Source:    google/pprof, internal/driver/tagroot.go.
 */
#ifndef PROTO_REPORT_PPROF_TAGS_H
#define PROTO_REPORT_PPROF_TAGS_H

#include "proto/report/pprof_graph.h"

/* Fills in tag_nodes, roots_n, leaves_n of a graph whose options have tagroot or tagleaf. */
MUST_CHECK enum err_code pprof_graph_add_tags(struct pprof_graph *g, struct err *err);

/* ---- of pprof_graph.c ---- */

/* A frame's name and file, as far as the granularity has them. */
struct pprof_graph_node pprof_graph_frame(
	const struct pprof_graph *g, struct str name, struct str file);
/* copy: the name lives only as long as the call. */
MUST_CHECK enum err_code pprof_graph_find_node(struct pprof_graph *g,
	const struct pprof_graph_node *key, bool copy, uint32_t *out, struct err *err);

#endif
