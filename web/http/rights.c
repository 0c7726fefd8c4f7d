#include "web/http/rights.h"

#include <assert.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "base/fs.h"
#include "base/quote.h"
#include "promql/syntax/parse.h"
#include "web/http/http.h"

/* ---- the tables ---- */

static enum err_code rights_note_entry(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	(void)ctx;
	(void)err;
	((struct rights_entry *)out)->node = n;
	return ERR_OK;
}

#define ENTRY_AT(f) offsetof(struct rights_entry, f)
#define PROXY_AT(f) offsetof(struct rights_proxy, f)
/* clang-format off */
#define RIGHTS_GRANTS \
	{ "roles", YAML_LIST, ENTRY_AT(role_names), .help = "What is allowed.", \
		.unset = "nothing", .limits = "`read`, `ingest` and `admin`" }, \
	{ "matchers", YAML_STRING, ENTRY_AT(matchers), \
		.help = "Only series that these accept may be read.", .unset = "all series", \
		.example = "'{namespace=\"shop\"}'" }
static const struct yaml_field user_fields[] = {
	{ "name", YAML_STRING, ENTRY_AT(name),
		.help = "The name, as in `basic_auth_users`, or of the token.", .unset = "required" },
	{ "token_file", YAML_STRING, ENTRY_AT(token_file),
		.help = "A file with a bearer token, read again when it changes.", .takes = "path" },
	RIGHTS_GRANTS,
};
const struct yaml_schema rights_user_schema = {
	.name = "web.User", .size = sizeof(struct rights_entry), .fields = user_fields,
	.fields_n = sizeof(user_fields) / sizeof(user_fields[0]), .check = rights_note_entry,
};
static const struct yaml_field proxied_fields[] = {
	{ "name", YAML_STRING, ENTRY_AT(name), .help = "The name, as the proxy says it.",
		.unset = "required" },
	RIGHTS_GRANTS,
};
static const struct yaml_schema proxied_schema = {
	.name = "web.ProxyUser", .size = sizeof(struct rights_entry), .fields = proxied_fields,
	.fields_n = sizeof(proxied_fields) / sizeof(proxied_fields[0]), .check = rights_note_entry,
};
static const struct yaml_field others_fields[] = { RIGHTS_GRANTS };
static const struct yaml_schema others_schema = {
	.name = "web.ProxyOthers", .size = sizeof(struct rights_entry), .fields = others_fields,
	.fields_n = sizeof(others_fields) / sizeof(others_fields[0]), .check = rights_note_entry,
};
static const struct yaml_field proxy_fields[] = {
	{ "addresses", YAML_LIST, PROXY_AT(addresses),
		.help = "Addresses and networks of the proxy. From others its headers count for nothing.",
		.unset = "required", .example = "[10.0.0.5, 10.1.0.0/16]" },
	{ "user_header", YAML_STRING, PROXY_AT(user_header), .help = "The header that names the user.",
		.unset = "required", .example = "X-Forwarded-User" },
	{ "groups_header", YAML_STRING, PROXY_AT(groups_header),
		.help = "The header that lists the groups of the user, with commas between.",
		.example = "X-Forwarded-Groups" },
	{ "users", YAML_LIST, PROXY_AT(users), .schema = &proxied_schema,
		.help = "What users of the proxy may do." },
	{ "groups", YAML_LIST, PROXY_AT(groups), .schema = &proxied_schema,
		.help = "What members of a group may do. The rights of several groups add up." },
	{ "others", YAML_STRUCT, PROXY_AT(others), .schema = &others_schema,
		.help = "What users may do that neither list has.", .unset = "nothing" },
};
const struct yaml_schema rights_proxy_schema = {
	.name = "web.TrustedProxy", .size = sizeof(struct rights_proxy), .fields = proxy_fields,
	.fields_n = sizeof(proxy_fields) / sizeof(proxy_fields[0]),
};
/* clang-format on */

/* ---- checks ---- */

static struct rights_entry *rights_entry_at(const struct yaml_list *l, size_t i)
{
	return (struct rights_entry *)l->v + i;
}

const struct rights_entry *rights_find(const struct yaml_list *l, struct str name)
{
	for (size_t i = 0; i < l->n; i++)
		if (str_eq(rights_entry_at(l, i)->name, name))
			return rights_entry_at(l, i);
	return NULL;
}

/* Where a field's value is, or would be. */
static const struct yaml_node *rights_place(const struct yaml_node *n, const char *field)
{
	const struct yaml_node *value = yaml_get(n, field);

	return value ? value : n;
}

static enum err_code rights_check_roles(struct rights_entry *e, struct err *err)
{
	const struct yaml_node *roles = yaml_get(e->node, "roles");
	unsigned role;

	for (const struct yaml_node *r = roles ? roles->child : NULL; r; r = r->next) {
		if (!(role = http_role_parse(r->text)))
			return yaml_err(r, err, ERR_INVALID,
				"unknown role %s; read, ingest and admin are known", QUOTED(r->text));
		e->roles |= role;
	}
	if (!e->roles)
		return yaml_err(e->node, err, ERR_INVALID, "missing roles: read, ingest or admin");
	return ERR_OK;
}

/* __type__ is not a label of a series: it is made of its profiles' types while a query runs. */
static enum err_code rights_check_selector(
	const struct selector *s, const struct yaml_node *at, struct err *err)
{
	if (s->name.len)
		return yaml_err(at, err, ERR_INVALID, "matchers: use labels in braces, without the name %s",
			QUOTED(s->name));
	if (!s->matchers_n)
		return yaml_err(at, err, ERR_INVALID,
			"matchers: {} matches everything: remove the field to allow everything");
	for (size_t i = 0; i < s->matchers_n; i++)
		if (str_is(s->matchers[i].name, "__type__"))
			return yaml_err(at, err, ERR_INVALID, "matchers: __type__ is not a label of a series");
	return ERR_OK;
}

/*
 * Not parse_selector: for a query a selector that admits series without the label is mostly a
 * mistake, but limits are often what somebody may not see.
 */
static enum err_code rights_parse_matchers(
	struct rights_entry *e, struct arena *a, const struct yaml_node *at, struct err *err)
{
	struct err why;
	enum err_code rc = parse_query(a, e->matchers, &e->parsed, NULL, &why);
	const struct selector *s;

	if (rc)
		return yaml_err(at, err, rc, "matchers: %s", why.msg);
	s = &e->parsed->root->selector;
	if (e->parsed->root->kind != EXPR_SELECTOR || s->window_ns || time_shift_any(&s->shift))
		return yaml_err(
			at, err, ERR_INVALID, "matchers: use labels in braces, such as {namespace=\"shop\"}");
	e->set = (struct matcher_set){ s->matchers, s->matchers_n };
	e->limits = (struct label_limits){ &e->set, 1 };
	return rights_check_selector(s, at, err);
}

static enum err_code rights_check_matchers(struct rights_entry *e, struct arena *a, struct err *err)
{
	const struct yaml_node *at = rights_place(e->node, "matchers");

	if (!yaml_get(e->node, "matchers"))
		return ERR_OK;
	if (e->roles & ROLE_ADMIN)
		return yaml_err(at, err, ERR_INVALID,
			"matchers need the role read without admin, which shows everything");
	if (!(e->roles & ROLE_READ))
		return yaml_err(at, err, ERR_INVALID, "matchers without the role read");
	return rights_parse_matchers(e, a, at, err);
}

static enum err_code rights_check_entry(struct rights_entry *e, struct arena *a, struct err *err)
{
	enum err_code rc = rights_check_roles(e, err);

	if (!rc)
		rc = rights_check_matchers(e, a, err);
	if (e->roles & ROLE_ADMIN)
		e->roles = ROLES_ALL;
	return rc;
}

static enum err_code rights_check_list(
	const struct yaml_list *l, const char *what, struct arena *a, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < l->n && !rc; i++) {
		struct rights_entry *e = rights_entry_at(l, i);

		if (i == RIGHTS_USERS_MAX)
			return yaml_err(e->node, err, ERR_LIMIT, "more than %u entries", RIGHTS_USERS_MAX);
		if (!e->name.len)
			return yaml_err(rights_place(e->node, "name"), err, ERR_INVALID, "missing name");
		if (rights_find(l, e->name) != e)
			return yaml_err(rights_place(e->node, "name"), err, ERR_INVALID, "%s %s is repeated",
				what, QUOTED(e->name));
		rc = rights_check_entry(e, a, err);
	}
	return rc;
}

/* Each of our users has a password or a token, and each one with a password has an entry. */
static enum err_code rights_check_passwords(
	struct rights *r, const struct yaml_node *passwords, struct labels known, struct err *err)
{
	for (size_t i = 0; i < r->users.n; i++) {
		const struct rights_entry *e = rights_entry_at(&r->users, i);

		if (!e->token_file.len && !labels_has(known, e->name))
			return yaml_err(rights_place(e->node, "name"), err, ERR_INVALID,
				"user %s has neither a token_file nor a password in basic_auth_users",
				QUOTED(e->name));
		r->tokens += e->token_file.len > 0;
		if (e->token_file.len && r->tokens > RIGHTS_TOKENS_MAX)
			return yaml_err(rights_place(e->node, "token_file"), err, ERR_LIMIT,
				"more than %u token files", RIGHTS_TOKENS_MAX);
	}
	for (const struct yaml_node *u = passwords ? passwords->child : NULL; u; u = u->next)
		if (r->has_users && !rights_find(&r->users, u->key->text))
			return yaml_err(u->key, err, ERR_INVALID,
				"user %s has no roles: with users, each of basic_auth_users needs an entry",
				QUOTED(u->key->text));
	return ERR_OK;
}

static enum err_code rights_check_header(
	const struct yaml_node *n, struct str name, struct err *err)
{
	bool ok = http_keeps_header(name) && name.len <= 64;

	for (size_t i = 0; i < name.len && ok; i++) {
		char c = name.ptr[i];

		ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
	}
	return ok ?
		ERR_OK :
		yaml_err(n, err, ERR_INVALID,
			"header %s: must begin with X- or Remote-, such as X-Forwarded-User", QUOTED(name));
}

static enum err_code rights_check_networks(
	struct rights_proxy *p, struct arena *a, const struct yaml_node *n, struct err *err)
{
	const struct yaml_node *list = yaml_get(n, "addresses");

	if (!list || !list->n)
		return yaml_err(
			rights_place(n, "addresses"), err, ERR_INVALID, "missing addresses of the proxies");
	if (list->n > RIGHTS_NETWORKS_MAX)
		return yaml_err(list, err, ERR_LIMIT, "more than %u addresses", RIGHTS_NETWORKS_MAX);
	if (!(p->networks = arena_array(a, struct ip_network, list->n)))
		return arena_fail(a, "addresses", err);
	for (const struct yaml_node *i = list->child; i; i = i->next) {
		struct ip_network *net = &p->networks[p->networks_n++];

		if (ip_address_parse(i->text, &net->address))
			net->bits = 128;
		else if (!ip_network_parse(i->text, net))
			return yaml_err(i, err, ERR_INVALID,
				"%s is not an address or network, such as 10.0.0.5 or 10.0.0.0/8", QUOTED(i->text));
		if (net->bits == (ip_address_is_v4(&net->address) ? 96 : 0))
			return yaml_err(i, err, ERR_INVALID,
				"%s trusts everybody: list only the addresses of the proxies", QUOTED(i->text));
	}
	return ERR_OK;
}

static enum err_code rights_check_proxy(
	struct rights_proxy *p, struct arena *a, const struct yaml_node *n, struct err *err)
{
	enum err_code rc = rights_check_networks(p, a, n, err);

	if (rc)
		return rc;
	if (!p->user_header.len)
		return yaml_err(n, err, ERR_INVALID, "missing user_header, such as X-Forwarded-User");
	if ((rc = rights_check_header(yaml_get(n, "user_header"), p->user_header, err)))
		return rc;
	if (p->groups_header.len &&
		(rc = rights_check_header(yaml_get(n, "groups_header"), p->groups_header, err)))
		return rc;
	if (p->groups.n && !p->groups_header.len)
		return yaml_err(yaml_get(n, "groups"), err, ERR_INVALID, "groups without a groups_header");
	if ((rc = rights_check_list(&p->users, "user", a, err)) ||
		(rc = rights_check_list(&p->groups, "group", a, err)))
		return rc;
	return p->others.node ? rights_check_entry(&p->others, a, err) : ERR_OK;
}

static void rights_release_list(struct yaml_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		parsed_release(rights_entry_at(l, i)->parsed);
		rights_entry_at(l, i)->parsed = NULL;
	}
}

void rights_release(struct rights *r)
{
	rights_release_list(&r->users);
	rights_release_list(&r->proxy.users);
	rights_release_list(&r->proxy.groups);
	parsed_release(r->proxy.others.parsed);
	r->proxy.others.parsed = NULL;
}

enum err_code rights_check(struct rights *r, struct arena *a, const struct yaml_node *root,
	struct labels passwords, struct err *err)
{
	enum err_code rc = rights_check_list(&r->users, "user", a, err);

	if (!rc && r->has_users && !r->users.n)
		rc = yaml_err(yaml_get(root, "users"), err, ERR_INVALID, "users is empty");
	if (!rc)
		rc = rights_check_passwords(r, yaml_get(root, "basic_auth_users"), passwords, err);
	if (!rc && r->has_proxy)
		rc = rights_check_proxy(&r->proxy, a, yaml_get(root, "trusted_proxy"), err);
	if (rc)
		rights_release(r);
	return rc;
}

/* ---- tokens ---- */

static bool rights_hash(struct str token, unsigned char out[RIGHTS_HASH_BYTES])
{
	return gnutls_hash_fast(GNUTLS_DIG_SHA256, token.ptr, token.len, out) == 0;
}

/* RFC 6750: what a header can hold. */
static enum err_code rights_check_token(struct str token, struct err *err)
{
	if (token.len < RIGHTS_TOKEN_BYTES_MIN)
		return err_set(err, ERR_INVALID, "a token of %zu bytes: %u are the fewest", token.len,
			RIGHTS_TOKEN_BYTES_MIN);
	for (size_t i = 0; i < token.len; i++) {
		char c = token.ptr[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
				(c && strchr("-._~+/=", c))))
			return err_set(err, ERR_INVALID,
				"the file must hold one token of letters, digits and - . _ ~ + / =");
	}
	return ERR_OK;
}

static enum err_code rights_read_token(struct rights_entry *e, struct err *err)
{
	struct buf text = { 0 };
	enum err_code rc = fs_read_file(e->token_path, RIGHTS_TOKEN_BYTES_MAX, &text, err);
	struct str token = str_trim(buf_str(&text));

	if (!rc && (rc = rights_check_token(token, err)))
		err_wrap(err, rc, "%s", e->token_path);
	if (!rc && !rights_hash(token, e->token_hash))
		rc = err_nomem(err, "token");
	if (text.ptr)
		gnutls_memset(text.ptr, 0, text.len);
	buf_release(&text);
	return rc;
}

/* The first other entry with the token. */
static const struct rights_entry *rights_same_token(
	const struct rights *r, const struct rights_entry *e)
{
	const struct rights_entry *first = r->users.v;

	for (; first < e; first++)
		if (first->token_path && !memcmp(first->token_hash, e->token_hash, RIGHTS_HASH_BYTES))
			return first;
	return NULL;
}

enum err_code rights_read_tokens(struct rights *r, struct arena *a, const char *file,
	void (*before)(void *ctx, const char *path), void *ctx, struct err *err)
{
	for (size_t i = 0; i < r->users.n; i++) {
		struct rights_entry *e = rights_entry_at(&r->users, i);
		const struct rights_entry *same;
		enum err_code rc;
		struct err why;

		if (!e->token_file.len)
			continue;
		if (!(e->token_path = path_join(a, path_dir(str_of(file)), e->token_file)))
			return arena_fail(a, file, err);
		before(ctx, e->token_path);
		if ((rc = rights_read_token(e, &why)))
			return yaml_err(
				rights_place(e->node, "token_file"), err, rc, "token_file: %s", why.msg);
		if ((same = rights_same_token(r, e)))
			return yaml_err(rights_place(e->node, "token_file"), err, ERR_INVALID,
				"token_file: %s: same token as user %s", e->token_path, QUOTED(same->name));
	}
	return ERR_OK;
}

const struct rights_entry *rights_find_token(const struct rights *r, struct str token)
{
	const struct rights_entry *found = NULL;
	unsigned char hash[RIGHTS_HASH_BYTES];

	if (!rights_hash(token, hash))
		return NULL;
	for (size_t i = 0; i < r->users.n; i++) {
		const struct rights_entry *e = rights_entry_at(&r->users, i);

		if (e->token_path && !gnutls_memcmp(e->token_hash, hash, sizeof(hash)))
			found = e;
	}
	return found;
}

/* ---- proxies ---- */

bool rights_trusts(const struct rights *r, struct str remote)
{
	struct in6_addr address;

	if (!ip_address_parse(http_remote_host(remote), &address))
		return false;
	for (size_t i = 0; i < r->proxy.networks_n; i++)
		if (ip_network_has(&r->proxy.networks[i], address))
			return true;
	return false;
}
