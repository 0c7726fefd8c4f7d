/*
 * Load: thousands of profiled processes in one, for measuring a scraper.
 *
 * Target i listens at 127.1.0.0 + i on one port, speaks HTTP/1.1 with kept-alive connections, and
 * serves gzip'd profiles of a service of tests/fleet. /debug/pprof/profile holds the request for
 * its `seconds` first and is refused while another one is under way, as Go does;
 * /debug/pprof/allocs answers at once. A share of the targets is hostile, each in one of the ways
 * of hostile_ways.
 *
 * Units:     nanoseconds (clock_monotonic_ns), bytes.
 * Errors:    ERR_IO, ERR_NOMEM, ERR_LIMIT (descriptors) on opening; connections fail alone.
 * Ownership: load_close ends what load_open gave.
 * Threads:   one.
 */
#ifndef TESTS_LOAD_LOAD_H
#define TESTS_LOAD_LOAD_H

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/err.h"
#include "base/str.h"

enum load_kind { LOAD_CPU, LOAD_HEAP, LOAD_KINDS };

struct load_options {
	uint64_t targets, hostile_percent, port; /* port 0: any */
	uint64_t services, variants, scrapes; /* different bodies: pods of one, scrapes of a pod */
	int64_t interval_ns; /* at which the scraper is said to come */
};

/* Built once: what target i answers to its nth request of a kind. */
struct load_bodies;
MUST_CHECK enum err_code load_bodies_make(
	const struct load_options *o, struct load_bodies **out, struct err *err);
void load_bodies_free(struct load_bodies *b); /* NULL is fine */
struct str load_body(const struct load_bodies *b, size_t target, enum load_kind kind, uint64_t nth);
size_t load_bodies_n(const struct load_bodies *b);
const char *load_service(const struct load_bodies *b, size_t target, char name[32]);

/* Lateness: the gap between two requests of a target, less the interval. */
struct load_counts {
	uint64_t requests, gaps, late; /* late: more than a second over the interval */
	uint64_t refused; /* a CPU profile was under way */
	uint64_t cut; /* closed by the client before the answer had gone */
	int64_t gap_max_ns;
};

struct load_target {
	int64_t last_ns[LOAD_KINDS]; /* 0: none came yet */
	uint64_t nth[LOAD_KINDS];
	struct load_conn *profiler; /* whose CPU profile is under way; NULL: none is */
	uint8_t way; /* of hostile_ways + 1; 0: honest */
};

struct load {
	struct load_options o;
	struct event_base *base;
	struct event listener;
	int fd, port;
	struct load_bodies *bodies;
	struct load_target *targets;
	struct load_counts counts[2]; /* of honest ones, of hostile ones */
	uint64_t connections;
	struct load_conn *open; /* list */
};

MUST_CHECK enum err_code load_open(
	const struct load_options *o, struct event_base *base, struct load **out, struct err *err);
void load_close(struct load *l); /* NULL is fine */
/* A file_sd document of all targets: {"job": SERVICE, "kind": "honest" or the hostile way}. */
void load_print_document(const struct load *l, struct buf *out);

#define LOAD_IN_BYTES 1024 /* of a request's head */

struct load_conn {
	struct load *load;
	struct load_conn *next, **at; /* of load->open */
	struct event readable, writable, timer;
	int fd;
	size_t target;
	bool busy; /* between a request and the end of its answer */
	size_t in_n;
	struct str head, body; /* what is left of the answer */
	bool close_after;
	uint64_t step; /* of a hostile way */
	char out[512]; /* head points in here */
	char in[LOAD_IN_BYTES];
};

void conn_end(struct load_conn *c);
/* Sends head, then body; then the next request is read, or the connection closed. */
void conn_send(struct load_conn *c);
void conn_after(struct load_conn *c, int64_t ns); /* the timer */
void conn_answer(
	struct load_conn *c, const char *status, const char *type, const char *more, struct str body);

struct hostile_way {
	const char *name;
	void (*begin)(struct load_conn *c); /* a request came */
	void (*next)(struct load_conn *c); /* its timer */
};
extern const struct hostile_way hostile_ways[];
extern const size_t hostile_ways_n;

#endif
