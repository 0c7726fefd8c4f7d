/*
 * Target groups: what a provider found, before relabelling.
 *
 * A group is a source ("prod.yml:0"), labels common to all, and targets, each a label set that holds at least
 * __address__. A group set is everything one job's providers know at one moment; it is immutable, so that
 * the discovery thread can hand it to the scrape loop and go on.
 *
 * Ownership: a group set is counted; groups_ref and groups_unref pair, the last unref frees it (NULL is fine).
 *            Groups and their strings live in the set's arena.
 * Threads:   immutable once delivered; the count is atomic.
 * Source:    Prometheus's targetgroup.Group.
 */
#ifndef DISCOVERY_GROUPS_H
#define DISCOVERY_GROUPS_H

#include <stdatomic.h>

#include "base/labels.h"
#include "base/yaml.h"

#define GROUP_TARGETS_MAX 1000000u /* of one set */

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
};

/* An empty set with one reference; NULL when out of memory. */
struct groups *groups_new(size_t budget_bytes);
struct groups *groups_ref(struct groups *g);
void groups_unref(struct groups *g);
/* Same sources with the same labels and targets, in the same order. */
bool groups_eq(const struct groups *a, const struct groups *b);

/*
 * A mapping {targets: [host:port, ...], labels: {name: value}} as static_configs and file_sd documents hold
 * it. Errors name file, line and column.
 */
MUST_CHECK enum err_code target_group_decode(struct yaml_ctx *ctx, const struct yaml_node *n,
	struct target_group *out, struct err *err);
/* The same from JSON text: an array of groups. path names the document in messages and sources. */
MUST_CHECK enum err_code target_groups_from_json(struct arena *a, const char *path, struct str text,
	struct target_group **out, size_t *n, struct err *err);
/* And from YAML text. */
MUST_CHECK enum err_code target_groups_from_yaml(struct arena *a, const char *path, struct str text,
	struct target_group **out, size_t *n, struct err *err);

#endif
