/*
 * Flame graphs as JSON ("flamebearer"): names, and a row of numbers per level.
 *
 * single: [dx, total, self, name] per node; double (diffs): [dx, total, self] of the base, the same
 * of the new side, name. x = end of the previous node in the row + dx; children start at their
 * parent's x + self.
 *
 * Ownership: scratch in the arena.
 */
#ifndef WEB_RENDER_FLAME_H
#define WEB_RENDER_FLAME_H

#include "base/json.h"
#include "promql/value.h"

/* The object behind the key "flamebearer". */
MUST_CHECK enum err_code render_flame(struct json *j, const struct profile_value *p,
	size_t max_nodes, struct arena *a, struct err *err);

#endif
