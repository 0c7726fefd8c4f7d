/*
 * Handlers of the server itself: its life, its metrics and profile, its page. The rows of
 * web/routes.c that belong to no room below. A handler fills *out; status 200 is set already.
 *
 * Threads: workers; any number at once.
 */
#ifndef WEB_HANDLERS_H
#define WEB_HANDLERS_H

#include "web/router/router.h"

/* lifecycle.c */
route_fn handle_healthy, handle_ready, handle_reload, handle_quit, handle_metrics;
route_fn handle_pprof_index, handle_pprof_profile;
/* page.c */
route_fn handle_page, handle_asset, handle_book, handle_book_root;
/* Fills w->index and its etag from the template, for w->base. */
MUST_CHECK enum err_code page_prepare(struct web *w, struct err *err);

#endif
