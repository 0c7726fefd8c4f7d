/*
 * Push: the section `push_config`, what becomes of the labels of profiles that are sent to us.
 *
 * In this order: labels that match `drop_labels` go, as the sender names them, of series and of
 * samples; the rest are renamed (`attributes`, then characters that a label cannot have become
 * `_`); `labels` are added where the sender has none of that name; `relabel_configs` are applied.
 *
 * Units:     profiles per second.
 * Errors:    ERR_INVALID, ERR_LIMIT at a place in the file.
 * Ownership: strings in the configuration's arena; push_config_release frees what is compiled.
 * Threads:   immutable.
 * Source:    OpenTelemetry's semantic conventions for the names of attributes.
 */
#ifndef SCRAPE_CONFIG_PUSH_CONFIG_H
#define SCRAPE_CONFIG_PUSH_CONFIG_H

#include "base/yaml/yaml.h"
#include "discovery/relabel.h"

#define PUSH_PROFILES_PER_SECOND 10000u

extern const struct yaml_schema push_config_schema;

struct push_config {
	struct labels labels;
	struct regex *drop; /* whole names */
	struct labels attributes; /* attribute -> label; "" in the file: dropped */
	struct relabel_rules relabel;
	uint64_t profiles_per_second; /* of one sender */
	/* Profiles count since their process began, where their kinds say so: the server makes the
	 * differences. */
	bool cumulative;
};

/* n NULL: the defaults. On failure it leaves nothing. */
MUST_CHECK enum err_code push_config_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, struct push_config *out, struct err *err);
void push_config_release(struct push_config *c);

/* Whether the sender's label is to go. */
bool push_drops(const struct push_config *c, struct str name);
/* The name of the label for what the sender calls so; in the arena where it is a new one. "": the
 * arena failed. */
struct str push_label_name(const struct push_config *c, struct arena *a, struct str name);

#endif
