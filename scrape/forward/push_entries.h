/*
 * Push entries: pushed profiles on their way from the shard that got them to the shard that keeps
 * them, and the answer to each. The body of POST /api/v1/shard/profiles, and of its answer.
 *
 *	body    = version (a byte, 1), entries: u32be length, entry
 *	entry   = varint assignment, labels (labels_encode), zigzag ts_ns, zigzag interval_ns,
 *	          zigzag gap_max_ns, flags (a byte), lenstr kinds (a byte each), varint stacks_cut,
 *	          varint links_n, links (24 bytes each: trace id, span id),
 *	          varint sample_links_n, sample links (varint each), lenstr pprof
 *	answers = version (a byte, 1), an answer for each entry, in order
 *	answer  = code (a byte); of 0: varint samples, flags (a byte), varint links_dropped;
 *	          of others: lenstr message
 *
 * The pprof bytes are those of pprof_encode, compressed if they are long. A profile has fields that
 * pprof_encode leaves out: links and stacks_cut. They are beside it. Links are those of the
 * profile, the first one included, which is none.
 *
 * A reader refuses a version that it does not know. It accepts what the limits below allow, even
 * if a sender's own limits are lower: the server that got a profile has checked it already, and
 * both must store the same.
 *
 * Units:     nanoseconds, bytes.
 * Errors:    of writing: ERR_LIMIT (an entry is larger than PUSH_ENTRY_BYTES_MAX), ERR_NOMEM. Of
 *            reading: ERR_INVALID (the bytes are cut short or wrong), ERR_LIMIT, ERR_UNSUPPORTED
 *            (the version), ERR_NOMEM.
 * Ownership: what is read is in the arena, or points into the body, which must outlive it.
 * Threads:   pure functions.
 */
#ifndef SCRAPE_FORWARD_PUSH_ENTRIES_H
#define SCRAPE_FORWARD_PUSH_ENTRIES_H

#include "proto/sink.h"

#define PUSH_ENTRIES_PATH "/api/v1/shard/profiles"
#define PUSH_ENTRIES_MAX 256u /* of a body */
/* Entries go together up to this size; one entry alone may be longer. */
#define PUSH_BODY_BYTES 16777216u
#define PUSH_ENTRY_BYTES_MAX 33554432u
#define PUSH_BODY_BYTES_MAX (PUSH_ENTRY_BYTES_MAX + 16u)
#define PUSH_ANSWER_BYTES_MAX 524288u /* of all answers to a body */
#define PUSH_COMPRESS_BYTES 262144u /* pprof bytes of this length and more are compressed */
#define PUSH_INTERVAL_MAX_NS (INT64_C(86400) * 1000000000)

/* Appends an entry without its length. */
MUST_CHECK enum err_code push_entry_write(
	const struct sink_profile *p, uint64_t assignment, struct buf *out, struct err *err);
/* Begins a body, and appends an entry with its length. */
void push_body_begin(struct buf *out);
void push_body_add(struct buf *out, struct str entry);

/* Counts the entries of a body and checks their lengths. */
MUST_CHECK enum err_code push_body_open(
	struct str body, struct cursor *entries, unsigned *n, struct err *err);
/* The next entry; called n times. */
struct str push_body_next(struct cursor *entries);
/* assignment: the number of the assignment by which the sender chose this shard. */
MUST_CHECK enum err_code push_entry_read(struct arena *a, struct str entry,
	struct sink_profile *out, uint64_t *assignment, struct err *err);

void push_answers_begin(struct buf *out);
/* rc ERR_OK: stored; else err. */
void push_answer_add(
	struct buf *out, enum err_code rc, const struct err *err, const struct sink_stored *stored);
MUST_CHECK enum err_code push_answers_open(struct str body, struct cursor *c, struct err *err);
/*
 * The next answer: *rc with *why, or ERR_OK with *stored. False: the bytes are wrong, or there is
 * no other.
 */
MUST_CHECK bool push_answer_next(
	struct cursor *c, enum err_code *rc, struct err *why, struct sink_stored *stored);
/* After the last one. */
bool push_answers_ended(const struct cursor *c);

#endif
