/*
 * Named partitions: a partition whose bare addresses got names that were found elsewhere. Nodes,
 * label sets, mappings and headers are the base's, under the base's ids, so costs by stack stay as
 * they are; some locations have lines that they did not have. Readers see a partition like any
 * other, through symbols.h.
 *
 * Functions and strings made here have ids above all that the base has given. What the base gets
 * later is not seen: stacks that were read before have none of it.
 *
 * Errors:    ERR_LIMIT, the arena's; ERR_LIMIT, ids.
 * Ownership: all lives in the arena, but the bytes of strings: they, and the base, must live as
 *            long. Lines are copied.
 * Threads:   one; readers too.
 */
#ifndef TSDB_SYMBOLS_NAMED_H
#define TSDB_SYMBOLS_NAMED_H

#include "base/arena.h"
#include "tsdb/symbols/symbols.h"

struct named;

/* base: not a derived one, nor a named one. */
MUST_CHECK enum err_code named_open(
	struct arena *a, const struct partition *base, struct named **out, struct err *err);
struct partition *named_partition(struct named *n);
MUST_CHECK enum err_code named_string(struct named *n, struct str s, uint32_t *id, struct err *err);
/* name: what people see; system_name: the symbol. */
MUST_CHECK enum err_code named_function(
	struct named *n, const struct sym_function *f, uint32_t *id, struct err *err);
/* Innermost first. Lines that were given before are replaced. */
MUST_CHECK enum err_code named_lines(struct named *n, uint32_t location,
	const struct sym_line *lines, uint32_t lines_n, struct err *err);

/* ---- what symbols.h asks of it ---- */

uint32_t named_n(
	const struct named *n, enum sym_kind kind); /* strings, functions: the base's too */
/* NULL: not made here. */
const struct sym_function *named_function_at(const struct named *n, uint32_t id);
const struct str *named_string_at(const struct named *n, uint32_t id);
/* NULL: the base's. */
const struct sym_location *named_location_at(const struct named *n, uint32_t id);

#endif
