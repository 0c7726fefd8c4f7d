/*
 * A name server for tests: one thread serves UDP and TCP on one port, from a zone written as text.
 * One record per line: "NAME TYPE DATA".
 *
 *	a.test A 10.0.0.1            AAAA, CNAME, NS likewise
 *	_api._tcp.test SRV 8080 a.test
 *	test MX mail.test
 *	e.test EMPTY                 exists, without records
 *	big.test CUT                 UDP answers are cut (TC); TCP has the records
 *	x.test SERVFAIL | REFUSED | SILENT | GARBAGE | LIES (an answer whose records end too soon)
 *
 * Names that have no line do not exist (NXDOMAIN). SRV and MX data have the order of fields in DNS,
 * with priority and weight 0. CNAMEs are followed within the zone.
 *
 * Threads: dns_server_zone and dns_server_asked from any thread, at any time.
 */
#ifndef TESTS_DISCOVERY_DNS_SERVER_H
#define TESTS_DISCOVERY_DNS_SERVER_H

#include "base/str.h"
#include "base/thread.h"

struct dns_server {
	int udp, tcp, stop[2];
	unsigned port;
	char address[32]; /* "IP:PORT", as source_env's dns_servers */
	struct thread thread;
	struct mutex lock;
	/* guarded by lock */
	const char *zone;
	struct buf asked; /* "udp a.test A\n" per question, however often it was sent */
	struct buf numbered; /* the same with the number of each: "udp a.test A 4711\n" */
};

bool dns_server_start(struct dns_server *s, const char *zone); /* zone is not copied */
/* Listens on this address, not on a free port of 127.0.0.1. */
bool dns_server_start_at(struct dns_server *s, const char *ip, unsigned port, const char *zone);
void dns_server_zone(struct dns_server *s, const char *zone);
/* The number of times a question was asked: "tcp big.test A"; "": of all questions.
 * One that was sent again because its answer was late counts once. */
unsigned dns_server_asked(struct dns_server *s, const char *question);
void dns_server_stop(struct dns_server *s);

#endif
