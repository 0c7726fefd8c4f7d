#include "web/http/user.h"

#include <assert.h>

#include "base/quote.h"

static const struct {
	const char *name;
	enum http_role role;
} user_roles[] = {
	{ "read", ROLE_READ },
	{ "ingest", ROLE_INGEST },
	{ "admin", ROLE_ADMIN },
};
#define USER_ROLES (sizeof(user_roles) / sizeof(user_roles[0]))

void http_user_leave(struct http_user *u)
{
	if (u->release)
		u->release(u->held);
	*u = (struct http_user){ 0 };
}

bool http_user_may(const struct http_user *u, enum http_needs needs)
{
	switch (needs) {
	case NEEDS_NOT_SAID:
		break;
	case NEEDS_USER:
		return true;
	case NEEDS_READ:
		return u->roles & ROLE_READ;
	case NEEDS_READ_ALL:
		return (u->roles & ROLE_READ) && !u->limits;
	case NEEDS_INGEST:
		return u->roles & ROLE_INGEST;
	case NEEDS_ADMIN:
		return u->roles & ROLE_ADMIN;
	}
	assert(!"a route says what it needs");
	return false;
}

const char *http_needs_name(enum http_needs needs)
{
	static const char *const names[] = { [NEEDS_NOT_SAID] = "",
		[NEEDS_USER] = "",
		[NEEDS_READ] = "read",
		[NEEDS_READ_ALL] = "read without matchers",
		[NEEDS_INGEST] = "ingest",
		[NEEDS_ADMIN] = "admin" };

	return names[needs];
}

unsigned http_role_parse(struct str name)
{
	for (size_t i = 0; i < USER_ROLES; i++)
		if (str_is(name, user_roles[i].name))
			return user_roles[i].role;
	return 0;
}

void http_user_refuse(struct buf *out, const struct http_user *u, enum http_needs needs)
{
	bool any = false;

	buf_printf(out, "user %s lacks the role %s; it has", QUOTED(u->name), http_needs_name(needs));
	for (size_t i = 0; i < USER_ROLES; i++) {
		if (!(u->roles & user_roles[i].role))
			continue;
		buf_printf(out, "%s %s", any ? "," : "", user_roles[i].name);
		any = true;
	}
	buf_add_cstr(out, any ? "" : " none");
	if ((u->roles & ROLE_READ) && u->limits)
		buf_add_cstr(out, ", and matchers that limit what it reads");
}
