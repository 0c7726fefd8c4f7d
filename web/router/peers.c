#include "web/router/peers.h"

#include "scrape/forward/push_assignment.h"

#define BEARER "Bearer "

bool peers_are_asked(const struct web *w, const struct http_in *in)
{
	const struct route *r;

	if (in->method != HTTP_POST)
		return false;
	r = router_find(w, in->path, in->method);
	return r && (r->flags & ROUTE_PEERS);
}

/* Takes as long for a wrong one as for the right one. */
static bool peers_is_secret(const struct push_assignment *a, struct str given)
{
	char secret[PUSH_SECRET_BYTES] = "";
	volatile unsigned char differs = 0;

	a->secret(a->ctx, secret);
	if (!secret[0] || given.len != PUSH_SECRET_BYTES - 1)
		return false;
	for (size_t i = 0; i < PUSH_SECRET_BYTES - 1; i++)
		differs |= (unsigned char)(secret[i] ^ given.ptr[i]);
	return !differs;
}

enum http_admission peers_admit(struct web *w, struct http_in *in, struct http_out *out)
{
	const struct push_assignment *a;
	struct str given = in->authorization;
	struct buf why = { 0 };

	if (!router_is_ready(w, &why)) {
		router_refuse_unready(out, buf_str(&why));
		buf_release(&why);
		return HTTP_ANSWERED;
	}
	if (!(a = w->o.assignment)) {
		http_text(out, 404, "%s",
			w->o.elsewhere.profiles ? w->o.elsewhere.profiles :
									  "this server is no shard that has joined others");
		return HTTP_ANSWERED;
	}
	if (!str_has_prefix(given, STR(BEARER))) {
		http_text(out, 401, "Unauthorized: only shards of this cluster send here");
		http_add_header(out, "WWW-Authenticate", STR("Bearer"));
		return HTTP_ANSWERED;
	}
	given = (struct str){ given.ptr + sizeof(BEARER) - 1, given.len - (sizeof(BEARER) - 1) };
	if (!peers_is_secret(a, given)) {
		http_text(out, 403, "Forbidden: the secret is not that of this cluster's shards");
		return HTTP_ANSWERED;
	}
	http_user_leave(&in->user); /* admission may run twice */
	in->user = (struct http_user){ .sign_in = "shard", .roles = ROLE_INGEST };
	return HTTP_ADMITTED;
}
