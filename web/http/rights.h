/*
 * Rights: the sections `users` and `trusted_proxy` of the web configuration, decoded and checked.
 *
 *	users:
 *	  - name: dashboards                  # its password is in basic_auth_users
 *	    roles: [read]
 *	    matchers: '{namespace="shop"}'    # what it reads; none: everything
 *	  - name: ci
 *	    token_file: ci.token              # Authorization: Bearer TOKEN
 *	    roles: [ingest]
 *	trusted_proxy:
 *	  addresses: [127.0.0.1, 10.0.0.0/8]
 *	  user_header: X-Forwarded-User
 *	  groups_header: X-Forwarded-Groups
 *	  users: [{name: alice@example.org, roles: [admin]}]
 *	  groups: [{name: shop, roles: [read], matchers: '{namespace="shop"}'}]
 *	  others: {roles: [read]}
 *
 * A name that a proxy gives and one of basic_auth_users are never the same user: who may choose his
 * name at the proxy's identity provider must not become one of ours.
 *
 * Errors:    ERR_INVALID "FILE:LINE:COLUMN: message"; of tokens also ERR_NOT_FOUND, ERR_IO.
 * Ownership: in the arena, but compiled matchers: rights_release.
 * Threads:   immutable once read.
 */
#ifndef WEB_HTTP_RIGHTS_H
#define WEB_HTTP_RIGHTS_H

#include "base/labels.h"
#include "base/net/ip_network.h"
#include "base/yaml/yaml.h"
#include "web/http/user.h"

#define RIGHTS_USERS_MAX 1000u /* of each list */
#define RIGHTS_TOKENS_MAX 256u
#define RIGHTS_TOKEN_BYTES_MIN 16u
#define RIGHTS_TOKEN_BYTES_MAX 4096u
#define RIGHTS_NETWORKS_MAX 256u
#define RIGHTS_HASH_BYTES 32u

struct parsed;

struct rights_entry {
	struct str name, token_file, matchers;
	struct yaml_list role_names;
	const struct yaml_node *node; /* NULL: it is not there */
	/* Checked: */
	unsigned roles; /* enum http_role */
	struct parsed *parsed;
	struct matcher_set set; /* of what it reads; n 0: everything */
	struct label_limits limits; /* that one set */
	const char *token_path;
	unsigned char token_hash[RIGHTS_HASH_BYTES]; /* SHA-256; rights_read_tokens */
};

struct rights_proxy {
	struct yaml_list addresses;
	struct str user_header, groups_header;
	struct yaml_list users, groups; /* struct rights_entry */
	struct rights_entry others; /* users that neither list has */
	struct ip_network *networks;
	size_t networks_n;
};

struct rights {
	struct yaml_list users; /* struct rights_entry */
	bool has_users; /* false: users of basic_auth_users have every role */
	struct rights_proxy proxy;
	bool has_proxy;
	size_t tokens; /* entries with a token_file */
};

extern const struct yaml_schema rights_user_schema, rights_proxy_schema;

/*
 * Checks what was decoded and compiles matchers. root: the file's. passwords: basic_auth_users.
 * After an error there is nothing to release.
 */
MUST_CHECK enum err_code rights_check(struct rights *r, struct arena *a,
	const struct yaml_node *root, struct labels passwords, struct err *err);
void rights_release(struct rights *r);
/*
 * Reads the token files; relative ones are beside the configuration. before(ctx, path) is called
 * before each is read.
 */
MUST_CHECK enum err_code rights_read_tokens(struct rights *r, struct arena *a, const char *file,
	void (*before)(void *ctx, const char *path), void *ctx, struct err *err);

/* NULL: no such entry. */
const struct rights_entry *rights_find(const struct yaml_list *l, struct str name);
/* The entry with this token, in a time that does not tell how much of it is right. */
const struct rights_entry *rights_find_token(const struct rights *r, struct str token);
bool rights_trusts(const struct rights *r, struct str remote); /* address:port */

#endif
