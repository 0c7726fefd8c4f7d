/*
 * DNS records as targets: the SRV, A, AAAA, MX or NS records of an answer, sorted and distinct,
 * because servers rotate their answers. CNAMEs are followed and are no targets.
 *
 * Errors:    c-ares's status: ARES_EBADRESP for bytes that are no answer, ARES_ENOMEM.
 * Ownership: targets live in the answer's arena.
 * Threads:   values.
 * Source:    Prometheus's discovery/dns: __meta_dns_*.
 */
#ifndef DISCOVERY_SOURCES_DNS_RECORDS_H
#define DISCOVERY_SOURCES_DNS_RECORDS_H

#include "base/labels.h"

struct dns_answer;

struct dns_type {
	const char *name; /* "SRV" */
	int type; /* ns_t_srv */
	int (*parse)(struct dns_answer *a); /* ARES_ENODATA: no such records */
};

/* By its name in any case; NULL: not supported. */
const struct dns_type *dns_type_of(struct str name);

struct dns_answer {
	struct arena *arena;
	const unsigned char *bytes;
	int len;
	struct str name; /* as configured */
	unsigned port; /* of the targets, but for SRV */
	/* out: the targets */
	struct labels *v;
	size_t n, cap;
	bool failed; /* out of memory */
};

MUST_CHECK int dns_answer_read(struct dns_answer *a, const struct dns_type *type);

#endif
