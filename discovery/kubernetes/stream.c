#include "discovery/kubernetes/stream.h"
#include "discovery/sources/json_path.h"

#include <stdlib.h>

#define NAME_BYTES_MAX 253

/* -------------------------------------------------------------------------------------------- */
/* Objects */

/* NUL is allowed: one annotation must not hide a whole cluster. Names with NUL are refused later.
 */
static json_t *kube_load(struct str text, struct err *err)
{
	json_error_t e;
	json_t *v = json_loadb(text.ptr, text.len, JSON_ALLOW_NUL, &e);

	if (!v)
		err_set(err, json_error_code(&e) == json_error_out_of_memory ? ERR_NOMEM : ERR_INVALID,
			"not JSON: %s", e.text);
	return v;
}

static bool kube_is_name(struct str s)
{
	return s.len && s.len <= NAME_BYTES_MAX && !memchr(s.ptr, '/', s.len) &&
		!memchr(s.ptr, '\0', s.len);
}

static enum err_code kube_check_version(struct str s, struct err *err)
{
	if (s.len >= KUBE_VERSION_BYTES_MAX || (s.len && memchr(s.ptr, '\0', s.len)))
		return err_set(err, ERR_INVALID, "invalid resourceVersion");
	return ERR_OK;
}

/* The object remains the caller's. */
static enum err_code kube_item_of(
	enum kube_resource r, json_t *object, struct kube_item *out, struct err *err)
{
	const json_t *m = json_object_get(object, "metadata");
	struct str name = json_text_of(json_object_get(m, "name"));
	struct str namespace = json_text_of(json_object_get(m, "namespace"));
	enum err_code rc = ERR_OK;

	*out = (struct kube_item){ .object = object,
		.uid = json_text_of(json_object_get(m, "uid")),
		.version = json_text_of(json_object_get(m, "resourceVersion")) };
	if (!kube_is_name(name) || (namespace.len && !kube_is_name(namespace)))
		rc = err_set(err, ERR_INVALID, "an object without a valid name");
	else
		rc = kube_check_version(out->version, err);
	if (rc)
		return rc;
	snprintf(out->key, sizeof(out->key), STR_FMT "%s" STR_FMT, STR_ARG(namespace),
		namespace.len ? "/" : "", STR_ARG(name));
	kube_object_trim(r, object);
	return ERR_OK;
}

enum err_code kube_item_parse(
	enum kube_resource r, struct str text, struct kube_item *out, struct err *err)
{
	json_t *v = kube_load(text, err);
	enum err_code rc;

	if (!v)
		return err->code;
	if ((rc = kube_item_of(r, v, out, err)))
		json_decref(v);
	return rc;
}

void kube_status_message(struct str body, char *out, size_t size)
{
	json_t *v = json_loadb(body.ptr, body.len, JSON_ALLOW_NUL, NULL);

	snprintf(out, size, STR_FMT, STR_ARG(json_text_of(json_object_get(v, "message"))));
	json_decref(v);
}

/* -------------------------------------------------------------------------------------------- */
/* Lists */

void kube_list_init(struct kube_list *l, enum kube_resource r)
{
	struct buf envelope = l->envelope, item = l->item;

	buf_clear(&envelope);
	buf_clear(&item);
	*l = (struct kube_list){ .resource = r, .envelope = envelope, .item = item };
}

void kube_list_release(struct kube_list *l)
{
	buf_release(&l->envelope);
	buf_release(&l->item);
}

/* Bytes of the envelope, or of the item that is read now. */
static enum err_code kube_list_take(
	struct kube_list *l, const char *from, const char *to, struct err *err)
{
	struct buf *b = l->in_items ? &l->item : &l->envelope;
	size_t n = (size_t)(to - from);
	size_t max = l->in_items ? KUBE_OBJECT_BYTES_MAX : KUBE_ENVELOPE_BYTES_MAX;

	if (n > max - b->len)
		return err_set(err, ERR_LIMIT, "an object is larger than %zu bytes", max);
	buf_add(b, from, n);
	return buf_failed(b) ? err_nomem(err, "object") : ERR_OK;
}

/* True if the envelope ends with the key `"items":`. */
static bool kube_list_at_items(const struct kube_list *l)
{
	struct str s = str_trim(buf_str(&l->envelope));

	if (!s.len || s.ptr[s.len - 1] != ':')
		return false;
	s.len--;
	s = str_trim(s);
	if (!str_has_suffix(s, STR("\"items\"")))
		return false;
	s.len -= 7;
	s = str_trim(s);
	return s.len && (s.ptr[s.len - 1] == '{' || s.ptr[s.len - 1] == ',');
}

static enum err_code kube_list_end_item(
	struct kube_list *l, kube_item_fn fn, void *ctx, struct err *err)
{
	struct str text = str_trim(buf_str(&l->item));
	struct kube_item item;
	enum err_code rc;

	if (!text.len) /* [] */
		return ERR_OK;
	if ((rc = kube_item_parse(l->resource, text, &item, err)))
		return rc;
	rc = fn(ctx, &item, err);
	json_decref(item.object);
	buf_clear(&l->item);
	return rc;
}

/* [at, end) begins inside a string: the place behind its quote, or end. */
static const char *kube_list_skip_string(struct kube_list *l, const char *at, const char *end)
{
	for (; at < end; at++) {
		if (l->escaped)
			l->escaped = false;
		else if (*at == '\\')
			l->escaped = true;
		else if (*at == '"') {
			l->in_string = false;
			return at + 1;
		}
	}
	return end;
}

/*
 * Looks only at brackets, commas and strings. The parser of items and of the envelope finds any
 * other error.
 */
enum err_code kube_list_feed(
	struct kube_list *l, struct str piece, kube_item_fn fn, void *ctx, struct err *err)
{
	const char *at = piece.ptr, *end = piece.ptr + piece.len, *from = at;
	enum err_code rc = ERR_OK;

	while (at < end && !rc) {
		bool top = l->in_items && l->depth == 2;
		char c = *at;

		if (l->in_string) {
			at = kube_list_skip_string(l, at, end);
			continue;
		}
		at++;
		if (c == '"') {
			l->in_string = true;
		} else if (c == '[' && l->depth == 1 && !l->in_items) {
			rc = kube_list_take(l, from, at - 1, err);
			from = at - 1;
			l->depth++;
			if (!rc && kube_list_at_items(l)) {
				rc = kube_list_take(l, from, at, err);
				from = at;
				l->in_items = true;
			}
		} else if (c == '[' || c == '{') {
			l->depth++;
		} else if (top && (c == ',' || c == ']')) {
			rc = kube_list_take(l, from, at - 1, err);
			from = c == ',' ? at : at - 1;
			if (!rc)
				rc = kube_list_end_item(l, fn, ctx, err);
			l->in_items = c == ',';
			l->depth -= c == ']';
		} else if (c == ']' || c == '}') {
			if (!l->depth || top)
				return err_set(err, ERR_INVALID, "not JSON: brackets that do not match");
			l->depth--;
		}
	}
	return rc ? rc : kube_list_take(l, from, end, err);
}

enum err_code kube_list_end(
	struct kube_list *l, char version[KUBE_VERSION_BYTES_MAX], char **next, struct err *err)
{
	json_t *v = kube_load(buf_str(&l->envelope), err);
	const json_t *m = json_object_get(v, "metadata");
	struct str at = json_text_of(json_object_get(m, "resourceVersion"));
	struct str more = json_text_of(json_object_get(m, "continue"));
	enum err_code rc;

	*next = NULL;
	if (!v)
		return err->code;
	rc = kube_check_version(at, err);
	if (!rc && !at.len)
		rc = err_set(err, ERR_INVALID, "not a list: it has no resourceVersion");
	if (!rc) {
		snprintf(version, KUBE_VERSION_BYTES_MAX, STR_FMT, STR_ARG(at));
		*next = more.len ? strndup(more.ptr, more.len) : NULL;
		if (more.len && !*next)
			rc = err_nomem(err, "list");
	}
	json_decref(v);
	return rc;
}

/* -------------------------------------------------------------------------------------------- */
/* Events */

void kube_events_init(struct kube_events *e, enum kube_resource r)
{
	e->resource = r;
	buf_clear(&e->line);
}

void kube_events_release(struct kube_events *e)
{
	buf_release(&e->line);
}

/* {"type": "ADDED", "object": {...}}. Unknown types are ignored. */
static enum err_code kube_events_one_event(
	struct kube_events *e, struct str text, kube_event_fn fn, void *ctx, struct err *err)
{
	static const char *const types[] = { [KUBE_ADDED] = "ADDED",
		[KUBE_MODIFIED] = "MODIFIED",
		[KUBE_DELETED] = "DELETED",
		[KUBE_BOOKMARK] = "BOOKMARK",
		[KUBE_ERROR] = "ERROR" };
	struct kube_event event = { .message = "" };
	enum err_code rc = ERR_OK;
	json_t *v = kube_load(text, err), *object = json_object_get(v, "object");
	struct str type = json_text_of(json_object_get(v, "type"));
	size_t i = 0;

	if (!v)
		return err->code;
	while (i < sizeof(types) / sizeof(types[0]) && !str_is(type, types[i]))
		i++;
	event.type = (enum kube_event_type)i;
	if (i == sizeof(types) / sizeof(types[0])) {
		if (!type.len)
			rc = err_set(err, ERR_INVALID, "not an event: it has no type");
		json_decref(v);
		return rc;
	}
	if (event.type == KUBE_ERROR) {
		event.code = (int)json_integer_value(json_object_get(object, "code"));
		if (json_is_string(json_object_get(object, "message")))
			event.message = json_string_value(json_object_get(object, "message"));
	} else if (event.type == KUBE_BOOKMARK) {
		event.item.version = json_text_of(
			json_object_get(json_object_get(object, "metadata"), "resourceVersion"));
		rc = kube_check_version(event.item.version, err);
	} else {
		rc = kube_item_of(e->resource, object, &event.item, err);
	}
	if (!rc)
		rc = fn(ctx, &event, err);
	json_decref(v);
	return rc;
}

enum err_code kube_events_feed(
	struct kube_events *e, struct str piece, kube_event_fn fn, void *ctx, struct err *err)
{
	enum err_code rc = ERR_OK;

	while (piece.len && !rc) { /* a line, or the rest */
		const char *nl = memchr(piece.ptr, '\n', piece.len);
		size_t n = nl ? (size_t)(nl - piece.ptr) : piece.len;
		struct str line = { piece.ptr, n };

		piece.ptr += n + (nl != NULL);
		piece.len -= n + (nl != NULL);
		if (n > KUBE_OBJECT_BYTES_MAX - e->line.len)
			return err_set(
				err, ERR_LIMIT, "an event is larger than %u bytes", KUBE_OBJECT_BYTES_MAX);
		if (e->line.len || !nl) {
			buf_add_str(&e->line, line);
			if (buf_failed(&e->line))
				return err_nomem(err, "event");
			line = buf_str(&e->line);
		}
		if (!nl)
			break;
		line = str_trim(line);
		if (line.len)
			rc = kube_events_one_event(e, line, fn, ctx, err);
		buf_clear(&e->line);
	}
	return rc;
}
