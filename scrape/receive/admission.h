/*
 * Admission: which sender may decode a pushed body now. Few run at once, more wait, and no sender
 * has more than its share of both; each sender may also send so many profiles per second.
 *
 * Units:   profiles, seconds.
 * Errors:  ERR_LIMIT: this sender is to wait, *retry_s says how long; ERR_UNAVAILABLE: everybody.
 * Threads: any.
 */
#ifndef SCRAPE_RECEIVE_ADMISSION_H
#define SCRAPE_RECEIVE_ADMISSION_H

#include "base/str.h"
#include "base/thread.h"

#define ADMISSION_SENDERS \
	1024u /* remembered; the longest unused one is forgotten for a new one \
		   */

struct sender {
	uint64_t hash; /* 0: unused */
	unsigned in; /* running and waiting */
	double credit; /* profiles that it may send now; negative: it has sent more */
	int64_t at_ns; /* monotonic: of credit */
};

struct admission {
	struct mutex lock;
	struct cond changed;
	bool stopped;
	unsigned running, waiting;
	struct sender senders[ADMISSION_SENDERS];
};

void admission_init(struct admission *a);
void admission_release(struct admission *a);
void admission_stop(struct admission *a); /* ends all waiting */
uint64_t admission_hash(struct str sender); /* not 0 */

/* Waits for a turn. per_second: what the sender may send; 0: anything. */
MUST_CHECK enum err_code admission_begin(
	struct admission *a, uint64_t sender, uint64_t per_second, unsigned *retry_s, struct err *err);
/* profiles: how many the request had. */
void admission_end(struct admission *a, uint64_t sender, size_t profiles);

#endif
