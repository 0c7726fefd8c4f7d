#include <jansson.h>

#include "web/router/refused.h"

#include "scrape/receive/receive.h"

struct sender_name router_sender(const struct http_in *in)
{
	return (struct sender_name){ .address = http_remote_host(in->remote),
		.user = in->user.name,
		.path = in->path,
		.client = in->user_agent };
}

void router_refuse_profiles(
	struct web *w, const struct http_in *in, unsigned reason, struct str why)
{
	struct refusal f = { router_sender(in), 1, reason, why };

	if (reason == REFUSED_UNAUTHORIZED && in->user.why) /* who asks is not told */
		f.why = str_of(in->user.why);
	/* A server that starts has no list of senders yet: web_set_parts. */
	if (router_is_ready(w, NULL) && w->receiver)
		receiver_refuse(w->receiver, &f);
}

static unsigned refused_reason_of(int status)
{
	switch (status) {
	case 401:
		return REFUSED_UNAUTHORIZED;
	case 403:
		return REFUSED_FORBIDDEN;
	case 404:
		return ERR_NOT_FOUND;
	case 413:
	case 429:
		return ERR_LIMIT;
	case 415:
		return ERR_UNSUPPORTED;
	default:
		return status < 500 ? ERR_INVALID : ERR_UNAVAILABLE;
	}
}

static bool refused_is_push(struct web *w, const struct http_in *in, int status)
{
	const struct route *r;

	if (in->method != HTTP_POST)
		return false;
	r = in->route ? in->route : router_find(w, in->path, HTTP_POST);
	return r ? (r->flags & (ROUTE_INGEST | ROUTE_NO_PROFILES)) == ROUTE_INGEST : status == 404;
}

/* Answers are text, or JSON with the text in it. */
static void refused_tell(struct web *w, const struct http_in *in, const struct http_out *out)
{
	json_t *answer = json_loadb(out->body.ptr ? out->body.ptr : "", out->body.len, 0, NULL);
	const json_t *text = json_object_get(answer, "error");
	struct str why = str_trim(buf_str(&out->body));

	text = text ? text : json_object_get(answer, "message");
	if (json_is_string(text))
		why = (struct str){ json_string_value(text), json_string_length(text) };
	router_refuse_profiles(w, in, refused_reason_of(out->status), why);
	json_decref(answer);
}

void router_tell_refused(struct web *w, const struct http_in *in, const struct http_out *out)
{
	if (out->status >= 400 && !in->handled && refused_is_push(w, in, out->status))
		refused_tell(w, in, out);
}
