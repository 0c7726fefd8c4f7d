/*
 * Derived partitions: stacks that a query made out of a partition's. Strings, functions, mappings
 * and label sets are the base's (a named one's too), under the base's ids; nodes, locations (with
 * fewer lines than they had) and headers are its own. It may have functions in addition to the
 * base's, above the ids that the base had by then. Readers see a partition like any other, through
 * symbols.h.
 *
 * Units:     room is given beforehand: derive_open says how many nodes, locations, headers and
 *            functions there can be at most; one more is a mistake of the caller.
 * Errors:    ERR_LIMIT, the arena's.
 * Ownership: all that readers ask for lives in the arena; the base must live as long. Lines that a
 *            location is given and texts of a function must too, they are not copied. What only
 * making needs is in scratch, which may go once the last node is made. Threads:   one writer, then
 * any number of readers.
 */
#ifndef TSDB_SYMBOLS_DERIVE_H
#define TSDB_SYMBOLS_DERIVE_H

#include "base/arena.h"
#include "tsdb/symbols/symbols.h"

struct derived;

struct derive_room {
	uint32_t nodes, locations, headers; /* nodes: without the empty stack */
	uint32_t functions; /* in addition to those of the base */
};

/*
 * base may be a derived one itself: its own ids mean nothing in the new one then, but for those of
 * functions.
 */
MUST_CHECK enum err_code derive_open(struct arena *a, struct arena *scratch,
	const struct partition *base, struct derive_room room, struct derived **out, struct err *err);
/* The new locations get the ids 0, 1, ...; so do headers. */
uint32_t derive_location(struct derived *d, const struct sym_location *l);
uint32_t derive_function(struct derived *d, struct str name, struct str filename);
uint32_t derive_header(struct derived *d, const struct sym_header *h);
/*
 * The node of this parent and location. Ids rise, so a parent must be made before its children.
 * may_recur false: the base's node was not recursive, so this one is not either.
 */
uint32_t derive_node(struct derived *d, uint32_t parent, uint32_t location, bool may_recur);
struct partition *derive_partition(struct derived *d);

/* ---- what symbols.h asks of it ---- */

uint32_t derived_n(const struct derived *d, enum sym_kind kind); /* of its own kinds */
uint32_t derived_functions_end(const struct derived *d); /* above all ids; 0: it has no own ones */
uint32_t derived_strings_end(const struct derived *d);
/* NULL: the id is the base's. */
const struct sym_function *derived_function(const struct derived *d, uint32_t id);
const struct str *derived_string(const struct derived *d, uint32_t id);
const struct sym_location *derived_location(const struct derived *d, uint32_t id);
const struct sym_header *derived_header(const struct derived *d, uint32_t id);
struct sym_node derived_node(const struct derived *d, uint32_t id);
bool derived_node_recursive(const struct derived *d, uint32_t id);

#endif
