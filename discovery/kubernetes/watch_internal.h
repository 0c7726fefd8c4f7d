/*
 * The parts of watches, as they see each other and as tests see them; everybody else includes
 * discovery/kubernetes/watch.h.
 *
 *	watch.c    a watch's requests: lists, streams, what follows their ends
 *	watches.c  who holds which watch; reading its objects
 */
#ifndef DISCOVERY_KUBERNETES_WATCH_INTERNAL_H
#define DISCOVERY_KUBERNETES_WATCH_INTERNAL_H

#include <sys/queue.h>

#include "discovery/kubernetes/stream.h"
#include "discovery/kubernetes/values.h"

#define KUBE_PAGE_ITEMS 500
#define KUBE_WATCH_MARGIN_NS (INT64_C(30) * 1000000000) /* beyond timeoutSeconds */

struct event;

struct kube_timing {
	int64_t backoff_min_ns, backoff_max_ns;
	int64_t linger_ns;
	int64_t watch_min_ns; /* a stream is asked to last so long, to twice as long */
	int64_t list_ns, list_idle_ns, watch_idle_ns;
};

extern const struct kube_timing kube_timing_default;

LIST_HEAD(kube_watch_list, kube_watch);

struct kube_clusters {
	struct event_base *base;
	struct http_client *client;
	struct kube_watch_list watches;
	struct kube_values values; /* what objects have in common */
	struct kube_timing timing; /* tests are in a hurry */
	uint64_t random;
};

struct kube_watch {
	struct kube_clusters *clusters;
	LIST_ENTRY(kube_watch) link;
	struct arena arena; /* access, key, path, what */
	struct kube_access access;
	struct kube_watch_key key;
	const char *path; /* the URL up to its query */
	const char *what; /* "pods in namespace x" */
	struct kube_listener *listeners, *next_told;
	struct event *timer; /* the next request begins */
	struct event *linger; /* nobody wants it any more */
	struct http_request *request;
	int64_t backoff_ns; /* of the failure before; 0: there was none */

	json_t *objects; /* by key */
	const char **order; /* the keys of objects, sorted; NULL: to be made */
	bool synced;
	bool failing; /* listeners were told so, and not yet that it works again */
	char version[KUBE_VERSION_BYTES_MAX]; /* what the next stream begins from; "": list first */

	/* the list under way */
	struct kube_list list;
	json_t *fresh; /* its objects so far; NULL: not begun */
	char *next_page; /* `continue`; NULL: the first page */
	bool gone; /* the version we had is no more: the newest is asked for */
	bool full_list; /* pages went out of date while we read them */

	/* the stream under way */
	struct kube_events events;
	bool progressed; /* an event came */
};

/* The timer's function: the next list or stream. */
void kube_watch_begin(int fd, short what, void *watch);
void kube_watch_stop(struct kube_watch *w); /* ends the request and frees what it gathered */

#endif
