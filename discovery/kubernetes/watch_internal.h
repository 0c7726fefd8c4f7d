/*
 * The inside of watches, for these two files and tests. Others include
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
	int64_t watch_min_ns; /* a stream is asked to last once to twice this */
	int64_t list_ns, list_idle_ns, watch_idle_ns;
	int64_t quiet_ns; /* a stream that ends sooner, without an event, has failed */
};

extern const struct kube_timing kube_timing_default;

LIST_HEAD(kube_watch_list, kube_watch);

struct kube_clusters {
	struct event_base *base;
	struct http_client *client;
	struct kube_watch_list watches;
	struct kube_values values; /* shared by objects */
	struct kube_timing timing; /* tests shorten it */
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
	struct event *linger; /* set when it has no listener */
	struct http_request *request;
	int64_t backoff_ns; /* the next delay; 0: the last request did not fail */

	json_t *objects; /* by key */
	const char **order; /* the keys of objects, sorted; NULL: not sorted yet */
	bool synced;
	bool failing; /* `failed` was called, and `works` not since */
	char version[KUBE_VERSION_BYTES_MAX]; /* where the next stream begins; "": list first */

	/* the list under way */
	struct kube_list list;
	json_t *fresh; /* its objects so far; NULL: not begun */
	char *next_page; /* `continue`; NULL: the first page */
	bool gone; /* our version is gone: ask for the newest */
	bool full_list; /* pages expired while we read them: list without pages */

	/* the stream under way */
	struct kube_events events;
	bool progressed; /* it had an event */
};

/* The timer's callback: begins the next list or stream. */
void kube_watch_begin(int fd, short what, void *watch);
void kube_watch_stop(struct kube_watch *w); /* ends the request, and frees its list and stream */

#endif
