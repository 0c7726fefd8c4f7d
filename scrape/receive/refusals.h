/*
 * Refusals: pushed profiles that are not stored. Each is counted by reason; the log has the first
 * of a sender and reason, then one line a minute with how many came meanwhile, and so many lines a
 * minute of all senders together: what senders do must not fill a disk.
 *
 * Threads: any.
 */
#ifndef SCRAPE_RECEIVE_REFUSALS_H
#define SCRAPE_RECEIVE_REFUSALS_H

#include "base/err.h"
#include "base/str.h"
#include "base/thread.h"

#define REFUSALS_REMEMBERED 256u /* senders x reasons; the longest unused one is forgotten */
#define REFUSALS_LINES_PER_MINUTE 20u

struct refusal_note {
	uint64_t hash; /* of sender and reason; 0: unused */
	int64_t used_ns, logged_ns; /* monotonic; logged_ns 0: never */
	uint64_t unlogged; /* profiles since */
};

struct refusals {
	struct mutex lock; /* all below */
	struct refusal_note notes[REFUSALS_REMEMBERED];
	int64_t minute_ns; /* when it began */
	uint32_t lines; /* since */
};

struct refusal {
	struct str sender; /* its address; empty: not known */
	struct str path; /* where it sent to */
	uint64_t profiles;
	enum err_code reason;
	const struct err *why; /* of the first */
};

void refusals_init(struct refusals *r);
void refusals_release(struct refusals *r);
void refusals_add(struct refusals *r, const struct refusal *refusal);
/* Whether the log has a line for it; *profiles: how many that line is for. */
bool refusals_is_due(
	struct refusals *r, const struct refusal *refusal, int64_t now_ns, uint64_t *profiles);

#endif
