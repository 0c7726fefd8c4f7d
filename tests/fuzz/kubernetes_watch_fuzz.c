/*
 * fuzz: discovery
 *
 * Bytes from an API server, as a list (first byte even) or as events (odd), whole and in pieces of
 * the size that the first byte names: no crash, the same objects, keys that are proper names, and
 * objects that stay what they are when they share their values.
 */
#include <stdlib.h>

#include "discovery/kubernetes/stream.h"
#include "discovery/kubernetes/values.h"
#include "tests/fuzz/fuzz.h"

/* Two copies of it, whose values become one. */
static void share(const json_t *object)
{
	struct kube_values values;
	json_t *copies[2];

	kube_values_init(&values);
	for (int i = 0; i < 2; i++) {
		copies[i] = json_deep_copy(object);
		kube_object_share(&values, KUBE_PODS, copies[i]);
	}
	if (!json_equal(copies[0], object) || !json_equal(copies[1], object))
		abort();
	json_decref(copies[0]);
	json_decref(copies[1]);
	kube_values_release(&values);
}

static void add_item(struct buf *b, const struct kube_item *item)
{
	char *text = json_dumps(item->object, JSON_COMPACT | JSON_ENCODE_ANY);

	if (!item->key[0] || item->key[0] == '/' || item->version.len >= KUBE_VERSION_BYTES_MAX)
		abort();
	buf_printf(b, "%s %s\n", item->key, text ? text : "");
	free(text);
	share(item->object);
}

static enum err_code on_item(void *ctx, const struct kube_item *item, struct err *err)
{
	add_item(ctx, item);
	return ERR_OK;
}

static enum err_code on_event(void *ctx, const struct kube_event *e, struct err *err)
{
	buf_printf(ctx, "%d %d %s\n", e->type, e->code, e->message);
	if (e->type < KUBE_BOOKMARK)
		add_item(ctx, &e->item);
	return ERR_OK;
}

static enum err_code run(
	struct str text, size_t step, bool events, enum kube_resource r, struct buf *out)
{
	char version[KUBE_VERSION_BYTES_MAX] = "", *next = NULL;
	struct kube_events e = { 0 };
	struct kube_list l = { 0 };
	enum err_code rc = ERR_OK;
	struct err err;

	kube_events_init(&e, r);
	kube_list_init(&l, r);
	while (text.len && !rc) {
		struct str piece = { text.ptr, text.len < step ? text.len : step };

		text.ptr += piece.len;
		text.len -= piece.len;
		rc = events ? kube_events_feed(&e, piece, on_event, out, &err) :
					  kube_list_feed(&l, piece, on_item, out, &err);
	}
	if (!rc && !events)
		rc = kube_list_end(&l, version, &next, &err);
	buf_printf(out, "%s %s", version, next ? next : "");
	free(next);
	kube_events_release(&e);
	kube_list_release(&l);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data + 1, size ? size - 1 : 0 };
	struct buf whole = { 0 }, pieces = { 0 };
	enum kube_resource r;
	char message[64];
	bool events;

	if (!size)
		return 0;
	events = data[0] & 1;
	r = (enum kube_resource)((data[0] >> 1) % KUBE_RESOURCES);
	if (run(text, SIZE_MAX, events, r, &whole) != run(text, 1 + data[0] / 2, events, r, &pieces) ||
		!str_eq(buf_str(&whole), buf_str(&pieces)))
		abort();
	kube_status_message(text, message, sizeof(message));
	buf_release(&whole);
	buf_release(&pieces);
	return 0;
}
