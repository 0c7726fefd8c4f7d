#include "discovery/sources/dns_records.h"

#include <ares.h>
#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <netdb.h>
#include <stdlib.h>

#include "base/array.h"

static void dns_answer_add_target(struct dns_answer *a, struct labels ls)
{
	if (arena_array_room(a->arena, &a->v, a->n, 1, &a->cap))
		a->v[a->n++] = ls;
	else
		a->failed = true;
}

/* A target host:port with the given labels; a NULL name is none. */
static void dns_answer_add_host(struct dns_answer *a, const char *host, unsigned port,
	const char *target_label, const char *target, const char *port_label)
{
	const char *format = strchr(host, ':') ? "[%s]:%u" : "%s:%u";
	struct labels_builder b;
	struct labels ls;

	labels_builder_init(&b, a->arena, (struct labels){ 0 });
	labels_builder_set(&b, STR("__address__"), str_of(arena_printf(a->arena, format, host, port)));
	labels_builder_set(&b, STR("__meta_dns_name"), a->name);
	if (target_label)
		labels_builder_set(&b, str_of(target_label), str_of(target));
	if (port_label)
		labels_builder_set(&b, str_of(port_label), str_of(arena_printf(a->arena, "%u", port)));
	if (labels_builder_build(&b, &ls, NULL) || !labels_has(ls, STR("__address__")))
		a->failed = true;
	else
		dns_answer_add_target(a, ls);
}

/* c-ares strips the final dot of names. The label has it, the address does not. */
static void dns_answer_add_name(struct dns_answer *a, const char *name, unsigned port,
	const char *target_label, const char *port_label)
{
	dns_answer_add_host(
		a, name, port, target_label, arena_printf(a->arena, "%s.", name), port_label);
}

/* At most so many records: what the header claims, as far as the size allows; at least 1. */
static int records_max(const struct dns_answer *a)
{
	const int record_bytes_min = 11; /* the root's name, type, class, time to live, no data */
	int claimed = a->len >= NS_HFIXEDSZ ? a->bytes[6] << 8 | a->bytes[7] : 0;
	int n = claimed < a->len / record_bytes_min ? claimed : a->len / record_bytes_min;

	return n ? n : 1;
}

static int dns_answer_parse_a(struct dns_answer *a)
{
	int n = records_max(a), rc;
	struct ares_addrttl *v = arena_array(a->arena, struct ares_addrttl, (size_t)n);
	char text[INET_ADDRSTRLEN];

	if (!v)
		return ARES_ENOMEM;
	rc = ares_parse_a_reply(a->bytes, a->len, NULL, v, &n);
	for (int i = 0; rc == ARES_SUCCESS && i < n; i++)
		if (inet_ntop(AF_INET, &v[i].ipaddr, text, sizeof(text)))
			dns_answer_add_host(a, text, a->port, NULL, NULL, NULL);
	return rc;
}

static int dns_answer_parse_aaaa(struct dns_answer *a)
{
	int n = records_max(a), rc;
	struct ares_addr6ttl *v = arena_array(a->arena, struct ares_addr6ttl, (size_t)n);
	const unsigned char *address;
	char text[INET6_ADDRSTRLEN];
	bool mapped; /* Go, and so Prometheus, prints it as an IPv4 address */

	if (!v)
		return ARES_ENOMEM;
	rc = ares_parse_aaaa_reply(a->bytes, a->len, NULL, v, &n);
	for (int i = 0; rc == ARES_SUCCESS && i < n; i++) {
		address = v[i].ip6addr._S6_un._S6_u8;
		mapped = memcmp(address, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12) == 0;
		if (inet_ntop(mapped ? AF_INET : AF_INET6, address + (mapped ? 12 : 0), text, sizeof(text)))
			dns_answer_add_host(a, text, a->port, NULL, NULL, NULL);
	}
	return rc;
}

static int dns_answer_parse_srv(struct dns_answer *a)
{
	struct ares_srv_reply *v = NULL, *r;
	int rc = ares_parse_srv_reply(a->bytes, a->len, &v);

	for (r = v; r; r = r->next)
		dns_answer_add_name(
			a, r->host, r->port, "__meta_dns_srv_record_target", "__meta_dns_srv_record_port");
	ares_free_data(v);
	return rc;
}

static int dns_answer_parse_mx(struct dns_answer *a)
{
	struct ares_mx_reply *v = NULL, *r;
	int rc = ares_parse_mx_reply(a->bytes, a->len, &v);

	for (r = v; r; r = r->next)
		dns_answer_add_name(a, r->host, a->port, "__meta_dns_mx_record_target", NULL);
	ares_free_data(v);
	return rc;
}

static int dns_answer_parse_ns(struct dns_answer *a)
{
	struct hostent *h = NULL;
	int rc = ares_parse_ns_reply(a->bytes, a->len, &h);

	if (rc != ARES_SUCCESS)
		return rc;
	for (char **name = h->h_aliases; *name; name++)
		dns_answer_add_name(a, *name, a->port, "__meta_dns_ns_record_target", NULL);
	ares_free_hostent(h);
	return rc;
}

const struct dns_type *dns_type_of(struct str name)
{
	static const struct dns_type types[] = {
		{ "SRV", ns_t_srv, dns_answer_parse_srv },
		{ "A", ns_t_a, dns_answer_parse_a },
		{ "AAAA", ns_t_aaaa, dns_answer_parse_aaaa },
		{ "MX", ns_t_mx, dns_answer_parse_mx },
		{ "NS", ns_t_ns, dns_answer_parse_ns },
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (str_eq_nocase(name, str_of(types[i].name)))
			return &types[i];
	return NULL;
}

static int dns_records_target_cmp(const void *a, const void *b)
{
	return labels_cmp(*(const struct labels *)a, *(const struct labels *)b);
}

int dns_answer_read(struct dns_answer *a, const struct dns_type *type)
{
	int rc = type->parse(a);
	size_t n = 0;

	if (rc == ARES_ENODATA)
		return ARES_SUCCESS;
	if (rc != ARES_SUCCESS || a->failed)
		return rc != ARES_SUCCESS ? rc : ARES_ENOMEM;
	if (a->n)
		qsort(a->v, a->n, sizeof(*a->v), dns_records_target_cmp);
	for (size_t i = 0; i < a->n; i++)
		if (i == 0 || !labels_eq(a->v[i], a->v[n - 1]))
			a->v[n++] = a->v[i];
	a->n = n;
	return ARES_SUCCESS;
}
