#include "web/http/sign_in.h"

#include <assert.h>

#define PROXY_NAME_BYTES_MAX 256u

bool sign_in_is_asked(const struct sign_in *s)
{
	return s->passwords.n || s->rights->tokens || s->rights->has_proxy;
}

static void sign_in_grant(struct http_in *in, const struct rights_entry *e)
{
	in->user.roles = e->roles;
	in->user.limits = e->limits.n ? &e->limits : NULL;
}

/* ---- a trusted proxy ---- */

static struct str sign_in_next_group(struct str *list)
{
	const char *comma = list->len ? memchr(list->ptr, ',', list->len) : NULL;
	size_t n = comma ? (size_t)(comma - list->ptr) : list->len, taken = n + (comma != NULL);
	struct str group = { list->ptr, n };

	*list = (struct str){ list->ptr + taken, list->len - taken };
	return str_trim(group);
}

/*
 * A member of several groups has the roles of all, and reads what any of those with the role read
 * admits. False: out of memory.
 */
static bool sign_in_grant_groups(
	const struct rights_proxy *p, struct http_in *in, struct str groups, bool *any)
{
	struct label_limits *l = arena_new(&in->arena, struct label_limits);
	struct matcher_set *sets = arena_array(&in->arena, struct matcher_set, p->groups.n + 1);
	bool everything = false;
	unsigned roles = 0;

	if (!l || !sets)
		return false;
	*l = (struct label_limits){ sets, 0 };
	while (groups.len) {
		const struct rights_entry *e = rights_find(&p->groups, sign_in_next_group(&groups));
		size_t i = 0;

		if (!e)
			continue;
		*any = true;
		roles |= e->roles;
		if (!(e->roles & ROLE_READ))
			continue;
		everything |= !e->set.n;
		while (i < l->n && sets[i].m != e->set.m)
			i++;
		if (i == l->n && e->set.n)
			sets[l->n++] = e->set;
	}
	in->user.roles = roles;
	in->user.limits = everything || !l->n ? NULL : l;
	return true;
}

static enum users_verdict sign_in_refuse(struct http_in *in, const char *why)
{
	in->user.why = why;
	return USERS_REFUSED;
}

/* The header is a trusted proxy's. */
static enum users_verdict sign_in_by_proxy(
	const struct rights_proxy *p, struct http_in *in, struct str name)
{
	const struct rights_entry *e = rights_find(&p->users, name);
	size_t times = 0;
	struct str groups = STR("");
	bool any = false;

	if (p->groups_header.len)
		groups = http_kept_header(in, p->groups_header, &times);
	if (times > 1)
		return sign_in_refuse(in, "the proxy's groups header is repeated");
	if (name.len > PROXY_NAME_BYTES_MAX)
		return sign_in_refuse(in, "the proxy's user name is longer than 256 bytes");
	in->user.name = name;
	in->user.sign_in = "proxy";
	if (e) {
		sign_in_grant(in, e);
		return USERS_OK;
	}
	if (!sign_in_grant_groups(p, in, groups, &any))
		return USERS_BUSY;
	if (!any && p->others.node)
		sign_in_grant(in, &p->others);
	return USERS_OK;
}

/* *found: a proxy says who it is, and the verdict counts. */
static enum users_verdict sign_in_ask_proxy(const struct rights *r, struct http_in *in, bool *found)
{
	struct str name;
	size_t times;

	*found = false;
	if (!r->has_proxy)
		return USERS_REFUSED;
	name = str_trim(http_kept_header(in, r->proxy.user_header, &times));
	if (!times && !in->kept_over)
		return USERS_REFUSED;
	if (!rights_trusts(r, in->remote))
		return sign_in_refuse(in, "proxy header from an untrusted address");
	*found = in->kept_over || times > 1 || name.len;
	if (in->kept_over)
		return sign_in_refuse(in, "more than 32 headers that begin with X- or Remote-");
	if (times > 1)
		return sign_in_refuse(in, "the proxy's user header is repeated");
	return name.len ? sign_in_by_proxy(&r->proxy, in, name) : USERS_REFUSED;
}

/* ---- tokens and passwords ---- */

static enum users_verdict sign_in_by_token(
	const struct rights *r, struct http_in *in, struct str token)
{
	const struct rights_entry *e = rights_find_token(r, str_trim(token));

	if (!e)
		return sign_in_refuse(in, "unknown token");
	in->user.name = e->name;
	in->user.sign_in = "token";
	sign_in_grant(in, e);
	return USERS_OK;
}

static enum users_verdict sign_in_by_password(
	const struct sign_in *s, struct http_in *in, bool may_wait)
{
	const struct users_request r = { in->authorization, in->client, may_wait };
	enum users_verdict verdict = users_verify(s->users, s->passwords, &r, &in->arena);
	const struct rights_entry *e;
	struct str name;

	if (verdict == USERS_REFUSED)
		return sign_in_refuse(in, "unknown name or password");
	if (verdict != USERS_OK)
		return verdict;
	if (!users_name(&in->arena, in->authorization, &name))
		return USERS_BUSY; /* out of memory: it was verified */
	in->user.name = name;
	in->user.sign_in = "password";
	in->user.roles = ROLES_ALL;
	if (!s->rights->has_users)
		return USERS_OK;
	e = rights_find(&s->rights->users, name);
	assert(e); /* rights_check */
	sign_in_grant(in, e);
	return USERS_OK;
}

enum users_verdict sign_in_verify(const struct sign_in *s, struct http_in *in, bool may_wait)
{
	static const struct str bearer = { "Bearer ", 7 };
	enum users_verdict verdict;
	bool found;

	assert(sign_in_is_asked(s));
	verdict = sign_in_ask_proxy(s->rights, in, &found);
	if (found)
		return verdict;
	if (!in->authorization.len && in->user.why)
		return USERS_REFUSED;
	if (!in->authorization.len) {
		in->user.why = "no credentials";
		return USERS_UNNAMED;
	}
	if (s->rights->tokens && str_has_prefix_nocase(in->authorization, bearer))
		return sign_in_by_token(s->rights, in,
			(struct str){ in->authorization.ptr + bearer.len, in->authorization.len - bearer.len });
	return s->passwords.n ? sign_in_by_password(s, in, may_wait) :
							sign_in_refuse(in, "unsupported kind of credentials");
}

void sign_in_challenge(const struct sign_in *s, struct http_out *out)
{
	if (s->passwords.n)
		http_add_header(out, "WWW-Authenticate", STR("Basic"));
	if (s->rights->tokens || !s->passwords.n)
		http_add_header(out, "WWW-Authenticate", STR("Bearer"));
}
