/*
 * Conversions: the configuration of another program becomes ours.
 *
 * Errors:    ERR_INVALID "FILE:LINE:COLUMN: message" for what is not that program's configuration;
 *            ERR_LIMIT.
 * Ownership: items and notes are in the conversion's arena.
 * Threads:   values.
 * Source:    the programs' documentation: Prometheus 3, Parca, Grafana Alloy, Pyroscope (the server
 *            before 1.0, and the one since).
 */
#ifndef CMD_EPITOOL_CONVERT_CONVERT_H
#define CMD_EPITOOL_CONVERT_CONVERT_H

#include "cmd/epitool/convert/item.h"

#define CONVERT_ARENA_BYTES_MAX (256u << 20)

/* Each reads conversion->source and fills conversion->root. */
MUST_CHECK enum err_code convert_prometheus(struct conversion *conversion, struct err *err);
MUST_CHECK enum err_code convert_parca(struct conversion *conversion, struct err *err);
MUST_CHECK enum err_code convert_pyroscope(struct conversion *conversion, struct err *err);
MUST_CHECK enum err_code convert_alloy(struct conversion *c, struct err *err);

/* A job that has no targets left is noted. */
void convert_note_targets(struct conversion *c, struct item *job, uint32_t line, uint32_t column);

#endif
