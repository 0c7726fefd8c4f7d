/*
 * Handlers: what the rows of web/routes.c call. A handler fills *out; status 200 is set already.
 *
 * Threads: workers; any number at once.
 */
#ifndef WEB_ROUTER_HANDLERS_H
#define WEB_ROUTER_HANDLERS_H

#include "web/router/router.h"

/* api_query.c */
void api_query(struct web *w, struct http_in *in, struct http_out *out);
void api_query_range(struct web *w, struct http_in *in, struct http_out *out);

/* api_parse.c */
void api_parse_query(struct web *w, struct http_in *in, struct http_out *out);
void api_format_query(struct web *w, struct http_in *in, struct http_out *out);

/* api_language.c */
void api_language(struct web *w, struct http_in *in, struct http_out *out);

/* api_explain.c */
void api_explain_query(struct web *w, struct http_in *in, struct http_out *out);

/* api_meta.c */
void api_series(struct web *w, struct http_in *in, struct http_out *out);
void api_label_names(struct web *w, struct http_in *in, struct http_out *out);
void api_label_values(struct web *w, struct http_in *in, struct http_out *out);
void api_label_counts(struct web *w, struct http_in *in, struct http_out *out);
void api_profile_types(struct web *w, struct http_in *in, struct http_out *out);

/* api_names.c */
void api_functions(struct web *w, struct http_in *in, struct http_out *out);
void api_metadata(struct web *w, struct http_in *in, struct http_out *out);

/* api_prometheus.c */
void api_query_exemplars(struct web *w, struct http_in *in, struct http_out *out);
void handle_federate(struct web *w, struct http_in *in, struct http_out *out);
void handle_recorded(struct web *w, struct http_in *in, struct http_out *out);

/* api_rules.c */
void api_rules(struct web *w, struct http_in *in, struct http_out *out);
void api_alerts(struct web *w, struct http_in *in, struct http_out *out);
void api_alertmanagers(struct web *w, struct http_in *in, struct http_out *out);

/* api_targets.c */
void api_targets(struct web *w, struct http_in *in, struct http_out *out);
void api_scrape_pools(struct web *w, struct http_in *in, struct http_out *out);

/* api_relabel.c */
void api_relabel_steps(struct web *w, struct http_in *in, struct http_out *out);

/* api_profile.c */
void api_targets_profile(struct web *w, struct http_in *in, struct http_out *out);

/* api_status.c */
void api_buildinfo(struct web *w, struct http_in *in, struct http_out *out);
void api_runtimeinfo(struct web *w, struct http_in *in, struct http_out *out);
void api_config(struct web *w, struct http_in *in, struct http_out *out);
void api_flags(struct web *w, struct http_in *in, struct http_out *out);
void api_tsdb(struct web *w, struct http_in *in, struct http_out *out);

/* ingest.c */
void api_delete_series(struct web *w, struct http_in *in, struct http_out *out);
void api_snapshot(struct web *w, struct http_in *in, struct http_out *out);
void api_accept_losses(struct web *w, struct http_in *in, struct http_out *out);
void api_ingest(struct web *w, struct http_in *in, struct http_out *out);

/* pyroscope_rpc.c */
void pyroscope_handle(struct web *w, struct http_in *in, struct http_out *out);

/* lifecycle.c */
void handle_healthy(struct web *w, struct http_in *in, struct http_out *out);
void handle_ready(struct web *w, struct http_in *in, struct http_out *out);
void handle_reload(struct web *w, struct http_in *in, struct http_out *out);
void handle_quit(struct web *w, struct http_in *in, struct http_out *out);
void handle_metrics(struct web *w, struct http_in *in, struct http_out *out);
void handle_pprof_index(struct web *w, struct http_in *in, struct http_out *out);
void handle_pprof_profile(struct web *w, struct http_in *in, struct http_out *out);

/* static.c */
void handle_page(struct web *w, struct http_in *in, struct http_out *out);
void handle_asset(struct web *w, struct http_in *in, struct http_out *out);
/* Fills w->index and its etag from the template, for w->base. */
MUST_CHECK enum err_code page_prepare(struct web *w, struct err *err);

#endif
