/*
 * Flame graphs ("flamebearer"): names, and a row of numbers per level.
 *
 * single: [dx, total, self, name] per box; double (diffs): [dx, total, self] of the base, then of
 * the new side, then name. x = end of the previous box in the row + dx; children start at their
 * parent's x + self. names[0] is "total", the root's.
 *
 * With `files` each name has an index into files and a line: where its function is defined. If
 * several functions have the name, the one that costs most counts (web/render/frame_origin.h).
 * files[0] is "": not known, as for "total" and "other".
 *
 * Functions may be called "other" too: `other` is the name that is none.
 *
 * Ownership: pictures and scratch in the arena.
 */
#ifndef WEB_RENDER_FLAME_H
#define WEB_RENDER_FLAME_H

#include "base/json.h"
#include "promql/value/value.h"
#include "web/render/render.h"

struct flame_options {
	size_t max_nodes; /* above 0; lighter boxes are summed up as "other" below their callers */
	/* Root first: only stacks that begin with these frames count. */
	const struct str *call_site;
	size_t call_site_n;
	/* Of these, what struct tree_part calls the rest. */
	bool call_site_rest;
	size_t call_site_skip;
	bool files;
	const atomic_bool *canceled; /* as in struct render_options */
};

struct flame_row {
	int64_t *v;
	size_t n;
};

struct flame_picture {
	bool is_diff;
	struct str *names;
	size_t names_n;
	struct str *files; /* NULL: not requested; each once, in the order of names */
	size_t files_n;
	uint32_t *name_files; /* per name, as is name_lines */
	int64_t *name_lines;
	struct flame_row *rows;
	size_t rows_n;
	int64_t left_ticks, right_ticks; /* base and new side; of a single graph left is 0 */
	int64_t max_self;
	uint32_t other; /* the name of boxes that sum up what was left out; 0: nothing was */
};

MUST_CHECK enum err_code flame_layout(const struct profile_value *p, const struct flame_options *o,
	struct arena *a, struct flame_picture *out, struct err *err);

/*
 * Pyroscope's tree bytes. Callers come before what they call. A box is its name, self, and how
 * many boxes are below it; lengths and numbers are varints. The root's name is empty. A diff
 * gives the tree of its new side.
 */
MUST_CHECK enum err_code flame_tree(const struct profile_value *p, const struct flame_options *o,
	struct arena *a, struct buf *out, struct err *err);

/* Writes the object of the key "flamebearer". */
MUST_CHECK enum err_code render_flame(
	struct json *j, const struct profile_value *p, const struct render_options *o, struct err *err);

#endif
