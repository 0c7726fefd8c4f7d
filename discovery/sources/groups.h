/*
 * Target groups: what a provider found, before relabelling.
 *
 * A group is a source ("prod.yml:0"), labels common to all, and targets, each a label set that
 * holds at least __address__. A group set is everything one job's providers know at one moment; it
 * is immutable, so that the discovery thread can hand it to the scrape loop and go on.
 *
 * Ownership: a group set is counted; groups_ref and groups_unref pair, the last unref frees it
 *            (NULL is fine). Groups and their strings live in the set's arena, or in that of a set
 *            it was joined from, which it then holds.
 * Threads:   immutable once delivered; the count is atomic.
 * Source:    Prometheus's targetgroup.Group.
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
	struct target_group *v;
	size_t n;
	struct groups **parts; /* of groups_join: each is a reference */
	size_t parts_n;
};

/* An empty set with one reference; NULL when out of memory. */
struct groups *groups_new(size_t budget_bytes);
struct groups *groups_ref(struct groups *g);
void groups_unref(struct groups *g);
/* Same sources with the same labels and targets, in the same order. Shared groups cost nothing. */
bool groups_eq(const struct groups *a, const struct groups *b);

/*
 * All groups of these sets (NULL is one without groups), in order, in one set that holds them: a
 * few of many groups can change without the others being copied.
 */
MUST_CHECK enum err_code groups_join(
	struct groups *const *sets, size_t n, struct groups **out, struct err *err);
/* A copy in a set that takes as much memory as it needs. */
MUST_CHECK enum err_code groups_pack(
	const struct target_group *v, size_t n, struct groups **out, struct err *err);

size_t groups_targets(const struct groups *g); /* how many targets there are in all groups */

/* Gives each group the label name=value, in place of one it has; new arrays are in the arena. */
MUST_CHECK enum err_code target_groups_label(struct arena *a, struct target_group *v, size_t n,
	struct str name, struct str value, struct err *err);

/*
 * A list of {targets: [host:port, ...], labels: {name: value}}, as static_configs and file_sd
 * documents hold it. Sources are source_prefix and the group's index. Errors name file, line and
 * column.
 */
MUST_CHECK enum err_code target_groups_decode(struct yaml_ctx *ctx, const struct yaml_node *n,
	const char *source_prefix, struct target_group **out, size_t *out_n, struct err *err);
/* Of a document's text. `path` names it in messages, and in sources: "PATH:INDEX". */
MUST_CHECK enum err_code target_groups_from_yaml(struct arena *a, const char *path, struct str text,
	struct target_group **out, size_t *n, struct err *err);
MUST_CHECK enum err_code target_groups_from_json(struct arena *a, const char *path, struct str text,
	struct target_group **out, size_t *n, struct err *err);

#endif
