/*
 * Handlers of the API: the rows of web/routes.c below /api/v1, and what another Prometheus reads.
 * A handler fills *out; status 200 is set already.
 *
 * Threads: workers; any number at once.
 */
#ifndef WEB_API_HANDLERS_H
#define WEB_API_HANDLERS_H

#include "web/router/router.h"

struct group_info;
struct json;

/* query.c */
route_fn api_query, api_query_range;
/* parse.c */
route_fn api_parse_query, api_format_query;
/* language.c */
route_fn api_language;
/* explain.c */
route_fn api_explain_query;
/* meta.c */
route_fn api_series, api_label_names, api_label_values, api_label_counts, api_profile_types;
/* names.c */
route_fn api_functions, api_metadata;
/* features.c */
route_fn api_features;
/* prometheus.c */
route_fn api_query_exemplars, api_federate, api_recorded;
/* links.c */
route_fn api_links;
/* rules.c */
route_fn api_rules, api_alerts, api_alertmanagers;
/* A group with all of its rules and alerts, as /api/v1/rules has it. */
void api_write_rule_group(struct json *j, const struct group_info *g);
/* What is known of rules (promql/rules/report.h): on this server, or on the query node that
 * evaluates them. Without rules it has no groups. May wait for the bucket. The caller releases
 * out->rules. */
MUST_CHECK enum err_code api_rules_report(
	struct web *w, struct arena *a, struct rules_report *out, struct err *err);
/* targets.c */
route_fn api_targets, api_scrape_pools, api_senders;
/* targets_metadata.c */
route_fn api_targets_metadata;
/* relabel.c */
route_fn api_relabel_steps;
/* profile.c */
route_fn api_targets_profile;
/* status.c */
route_fn api_buildinfo, api_runtimeinfo, api_config, api_flags, api_tsdb, api_tsdb_blocks,
	api_walreplay, api_notifications, api_notifications_live;
/* cluster.c */
route_fn api_cluster;
/* admin.c */
route_fn api_delete_series, api_snapshot, api_accept_losses;
/* source.c */
route_fn api_source, api_source_links;
/* ingest.c */
route_fn api_ingest;

#endif
