/*
 * Target groups: the targets that a source found, before relabelling.
 *
 * A group has a source ("prod.yml:0"), labels common to all its targets, and the targets: label
 * sets with at least __address__. A set of groups is all that is known at one moment. It is
 * immutable, so discovery can give it to other threads.
 *
 * Ownership: a set is counted; groups_ref and groups_unref pair, and the last unref frees it (NULL
 *            is fine). Groups and strings are in the set's arena, or in those of the sets that it
 * was made of, which it holds. Threads:   immutable once delivered; the count is atomic. Source:
 * Prometheus's targetgroup.Group.
 */
#ifndef DISCOVERY_SOURCES_GROUPS_H
#define DISCOVERY_SOURCES_GROUPS_H

#include <stdatomic.h>

#include "base/labels.h"
#include "base/yaml/yaml.h"

struct target_group {
	struct str source;
	struct labels labels;
	const struct labels *targets;
	size_t targets_n;
};

struct groups {
	atomic_uint refs;
	struct arena arena;
	struct target_group *v; /* of a bundle: none, groups_next walks its parts */
	size_t n;
	struct groups **parts; /* held; of groups_join and groups_bundle */
	size_t parts_n;
	struct { /* of a bundle */
		size_t groups, targets;
		unsigned depth; /* of bundles in it; 0: this is none */
	} all;
};

#define GROUPS_DEPTH_MAX 4u /* of bundles in bundles */

/* An empty set with one reference; NULL when out of memory. */
struct groups *groups_new(size_t budget_bytes);
struct groups *groups_ref(struct groups *g);
void groups_unref(struct groups *g);
/* The same sources, labels and targets in the same order. Shared groups are equal at once. */
bool groups_eq(const struct groups *a, const struct groups *b);

/*
 * Joins sets, in order; NULL is an empty one. The new set holds the others and copies no group, so
 * a change of a few groups is cheap.
 */
MUST_CHECK enum err_code groups_join(
	struct groups *const *sets, size_t n, struct groups **out, struct err *err);
/*
 * The same without an array of all groups: a set that is made of large parts costs nothing for what
 * is in them. A reader walks it with groups_next.
 */
MUST_CHECK enum err_code groups_bundle(
	struct groups *const *sets, size_t n, struct groups **out, struct err *err);
/* Copies groups into a new set, in one block of exactly the memory they need. */
MUST_CHECK enum err_code groups_pack(
	const struct target_group *t, size_t n, struct groups **out, struct err *err);

size_t groups_count(const struct groups *g); /* number of groups */
size_t groups_targets(const struct groups *g); /* number of targets in all groups */

/* A walk over all groups of any set, in order. */
struct groups_cursor {
	struct {
		const struct groups *set;
		size_t at;
	} path[GROUPS_DEPTH_MAX + 1];
	unsigned depth; /* of path */
};
void groups_begin(struct groups_cursor *c, const struct groups *g);
const struct target_group *groups_next(struct groups_cursor *c); /* NULL: no more */

/* Sets the label name=value on each group. New arrays are in the arena. */
MUST_CHECK enum err_code target_groups_label(struct arena *a, struct target_group *t, size_t n,
	struct str name, struct str value, struct err *err);

extern const struct yaml_schema target_group_schema; /* of one entry of such a list */
/*
 * Decodes a list of {targets: [host:port, ...], labels: {name: value}}, as in static_configs and
 * documents of file_sd. A group's source is source_prefix and its index. Errors name file, line and
 * column.
 */
MUST_CHECK enum err_code target_groups_decode(struct yaml_ctx *ctx, const struct yaml_node *n,
	const char *source_prefix, struct target_group **out, size_t *out_n, struct err *err);
/* The same for a document. `path` names it in messages and sources ("PATH:INDEX"). */
MUST_CHECK enum err_code target_groups_from_yaml(struct arena *a, const char *path, struct str text,
	struct target_group **out, size_t *n, struct err *err);
MUST_CHECK enum err_code target_groups_from_json(struct arena *a, const char *path, struct str text,
	struct target_group **out, size_t *n, struct err *err);

#endif
