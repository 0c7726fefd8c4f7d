/*
 * Annotations over HTTP: marks on time lines. Some are posted, as deploys are by a pipeline; others
 * are derived, where a version of a service has its first profile.
 *
 * Threads: handlers run on workers.
 * Source:  web/annotations/README.md.
 */
#ifndef WEB_ANNOTATIONS_ANNOTATIONS_H
#define WEB_ANNOTATIONS_ANNOTATIONS_H

#include "web/router/router.h"

route_fn annotations_get, annotations_post;
/* Of annotations_post: a mark is short. */
route_admit_fn annotations_admit;

#endif
