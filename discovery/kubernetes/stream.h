/*
 * Stream: parses what an API server sends, cut anywhere: the items of a list one by one, and the
 * events of a watch line by line. Only one item is held as text, however long the list: a server
 * that answers from its cache ignores `limit`.
 *
 * Errors:    ERR_INVALID (not JSON, or not a list or event), ERR_LIMIT, ERR_NOMEM; any error of
 *            `fn`.
 * Ownership: init and release pair; `fn` keeps an object with json_incref.
 * Threads:   values.
 */
#ifndef DISCOVERY_KUBERNETES_STREAM_H
#define DISCOVERY_KUBERNETES_STREAM_H

#include <jansson.h>

#include "discovery/kubernetes/watch.h"

#define KUBE_KEY_BYTES_MAX 520 /* "namespace/name": each has at most 253 */
#define KUBE_VERSION_BYTES_MAX 128 /* resourceVersion */
#define KUBE_ENVELOPE_BYTES_MAX (1u << 20) /* of a list, without its items */

/* An object, parsed and trimmed. */
struct kube_item {
	json_t *object;
	char key[KUBE_KEY_BYTES_MAX];
	struct str version, uid; /* in object */
};

/* text: one object as JSON. The object is the caller's. */
MUST_CHECK enum err_code kube_item_parse(
	enum kube_resource r, struct str text, struct kube_item *out, struct err *err);

/* A list {"metadata": {...}, "items": [...]}, its members in any order. */
struct kube_list {
	enum kube_resource resource;
	struct buf envelope, item;
	unsigned depth;
	bool in_string, escaped, in_items;
};

typedef enum err_code (*kube_item_fn)(void *ctx, const struct kube_item *item, struct err *err);

void kube_list_init(struct kube_list *l, enum kube_resource r); /* for each page */
void kube_list_release(struct kube_list *l);
MUST_CHECK enum err_code kube_list_feed(
	struct kube_list *l, struct str piece, kube_item_fn fn, void *ctx, struct err *err);
/* The page is complete. *next (malloc) is its `continue`, or NULL. */
MUST_CHECK enum err_code kube_list_end(
	struct kube_list *l, char version[KUBE_VERSION_BYTES_MAX], char **next, struct err *err);

enum kube_event_type { KUBE_ADDED, KUBE_MODIFIED, KUBE_DELETED, KUBE_BOOKMARK, KUBE_ERROR };

struct kube_event {
	enum kube_event_type type;
	struct kube_item item; /* BOOKMARK: only version counts; ERROR: nothing */
	int code; /* ERROR: the status, such as 410 */
	const char *message; /* ERROR: of the server, or "" */
};

struct kube_events {
	enum kube_resource resource;
	struct buf line;
};

typedef enum err_code (*kube_event_fn)(void *ctx, const struct kube_event *event, struct err *err);

void kube_events_init(struct kube_events *e, enum kube_resource r);
void kube_events_release(struct kube_events *e);
MUST_CHECK enum err_code kube_events_feed(
	struct kube_events *e, struct str piece, kube_event_fn fn, void *ctx, struct err *err);

/* The message of a Status in a body, or "". */
void kube_status_message(struct str body, char *out, size_t size);

#endif
