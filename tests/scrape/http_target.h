/*
 * A target for tests: plain sockets on 127.x.y.z, a thread per connection, and an answer per path.
 *
 *	/good /encoded /double         a profile: gzip, Content-Encoding: gzip of the bare message,
	both
 *	/handed                        a profile with a sample of pod a, one of pod b, one of nobody
 *	/html /json /legacy /empty     other things with status 200
 *	/503 /404page                  errors with a text, with a web page
 *	/endless /huge /bomb /drip     more than anyone wants: chunks without end, a long body,
 *	                               gzip of zeros, a byte now and then
 *	/to/x                          leads to /x; /to/round to itself
 *	/tls /alert                    as servers of TLS answer HTTP: 400, an alert
 *	/reset /silent                 closed in mid-answer; no answer
 *	/slow                          a profile after 300 ms
 *	/profile                       a CPU profile, taken for 300 ms whatever `seconds` says
 *	/x/delta_heap                  a heap profile that says it took 2 ms, as godeltaprof's do
 *	/falling /rising               heap profiles whose total falls every third time, or never
 *	/leak                          what Go 1.27 says of three leaked goroutines; 404 until it is
 served *	/one                           one of as many seconds, refused as Go does while one is
 taken
 *
 * Threads: its own; the counters may be read at any time.
 */
#ifndef TESTS_SCRAPE_HTTP_TARGET_H
#define TESTS_SCRAPE_HTTP_TARGET_H

#include <stdatomic.h>

#include "base/str.h"

struct http_target;

struct http_target *http_target_open(void);
/* Before /bomb is asked for: making it takes half a second of a processor. */
void http_target_arm(struct http_target *t);
void http_target_close(struct http_target *t);
int http_target_port(const struct http_target *t);

struct http_target_counts {
	unsigned connections, requests;
	unsigned answered; /* or given up: nobody waits any more */
	unsigned busy_max; /* /slow and /profile: most at one time */
	unsigned leaks; /* requests for /leak */
};
struct http_target_counts http_target_counts(struct http_target *t);
/* From then on /slow and /profile last until the client has gone. */
void http_target_hold(struct http_target *t, bool hold);
/* Whether /leak is there from then on. */
void http_target_serve_leaks(struct http_target *t, bool serve);
/* The head of the last request for /good. */
void http_target_last_head(struct http_target *t, struct buf *out);

/*
 * A profile in wire format: `samples` stacks of one function each, alloc_space and inuse_space or
 * cpu.
 */
void http_target_profile(struct buf *out, unsigned samples, bool cpu);

#endif
