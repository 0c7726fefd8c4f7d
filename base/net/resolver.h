/*
 * Resolver: questions to name servers, c-ares on an event base.
 *
 * It asks the servers of /etc/resolv.conf, and reads the file again when it has changed; questions
 * under way then run to their end with the old servers. A question is sent up to three times to
 * each server (after 2 s, 4 s, 8 s it counts as lost), to the next server if one fails (SERVFAIL
 * and the like), and over TCP if the answer was cut.
 *
 * Errors:    of a question: c-ares's status; ares_strerror has its text.
 * Ownership: answers are valid during the callback only. A question cannot be taken back;
 *            resolver_close ends all that are under way with ARES_EDESTRUCTION before it returns.
 * Threads:   the one that runs the event base. A callback may come before the asking function
 *            returns, and may ask again; it must not close the resolver.
 * Source:    resolv.conf(5); RFC 1035.
 */
#ifndef BASE_NET_RESOLVER_H
#define BASE_NET_RESOLVER_H

#include "base/str.h"

#define RESOLVER_NAME_BYTES 512 /* any valid name fits; DNS allows 255 */

struct event_base;
struct ares_addrinfo;
struct resolver;

/* servers: "10.0.0.1,10.0.0.2:5353"; NULL: those of resolv.conf. */
MUST_CHECK enum err_code resolver_open(
	struct event_base *base, const char *servers, struct resolver **out, struct err *err);
void resolver_close(struct resolver *r); /* NULL is fine */

typedef void (*resolver_addresses_fn)(void *ctx, int status, const struct ares_addrinfo *res);
/* A name's addresses of both families, from /etc/hosts or by resolv.conf's search domains. */
void resolver_addresses(struct resolver *r, const char *name, resolver_addresses_fn fn, void *ctx);

/*
 * answer is the whole message, for ares_parse_*. ARES_ENODATA: the name exists without such
 * records. ARES_ENOTFOUND: the name does not exist.
 */
typedef void (*resolver_answer_fn)(void *ctx, int status, struct str answer);
/* Records of one type of exactly that name. type: such as ns_t_srv of arpa/nameser.h. */
void resolver_query(
	struct resolver *r, const char *name, int type, resolver_answer_fn fn, void *ctx);

/*
 * The i-th name to try for a name that a person wrote, with a dot at its end. False: there are no
 * more, or the resolver is closing. A name that ends in a dot is the only one; else resolv.conf's
 * search domains are appended in turn. The name alone comes first if it has at least `ndots` dots,
 * else last.
 */
bool resolver_candidate(
	struct resolver *r, struct str name, size_t i, char out[RESOLVER_NAME_BYTES]);

#endif
