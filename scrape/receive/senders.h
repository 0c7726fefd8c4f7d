/*
 * Senders: who pushes profiles, of what and how much, and what of it is refused.
 *
 * A sender is an address, its user, the path it sends to, and the job that its profiles have. A
 * request that is refused before its profiles are decoded has no job. SENDERS_MAX are kept. For a
 * new one the longest silent goes: of those that never had a profile stored, else of all; where one
 * address has more than a quarter of them, of that address. So no sender hides the others.
 *
 * Refusals are counted and logged here: the log has the first of a sender and reason, then one line
 * a minute with how many came meanwhile, and so many lines a minute of all senders together, so
 * that senders do not fill a disk.
 *
 * Units:     nanoseconds since 1970; bytes as they were sent.
 * Errors:    ERR_NOMEM; ERR_IO, ERR_CORRUPT of the file. Without memory for a new sender it is not
 *            kept; counts and log have its refusals all the same.
 * Ownership: what senders_list shows is in the arena.
 * Threads:   any.
 */
#ifndef SCRAPE_RECEIVE_SENDERS_H
#define SCRAPE_RECEIVE_SENDERS_H

#include "base/err.h"
#include "base/json.h"

#define SENDERS_MAX 10000u
#define SENDERS_OF_ADDRESS (SENDERS_MAX / 4)
#define SENDERS_LINES_PER_MINUTE 20u
/* Regular: it came so often, over so long. Silent: for so many of its intervals, and so long. */
#define SENDERS_REGULAR_REQUESTS 10u
#define SENDERS_REGULAR_NS (INT64_C(300) * 1000000000)
#define SENDERS_SILENT_INTERVALS 5
#define SENDERS_SILENT_NS (INT64_C(120) * 1000000000)
#define SENDERS_REFUSED_NS (INT64_C(3600) * 1000000000) /* who is silent for longer gave up */

/* Why: a code of base/err.h, or what the transport found. */
enum refusal_reason {
	REFUSED_UNAUTHORIZED = ERR_CODES, /* no user, or a wrong password or token */
	REFUSED_FORBIDDEN, /* a user that may not push, or the page of another site */
	REFUSAL_REASONS
};
const char *refusal_reason_name(unsigned reason); /* for metrics and the API */

struct sender_name {
	struct str address, user, path, job; /* user and job may be empty */
	struct str client; /* its User-Agent; the latest is shown */
};

struct refusal {
	struct sender_name sender;
	uint64_t profiles;
	unsigned reason; /* enum err_code or enum refusal_reason */
	struct str why; /* of the first */
};

struct senders;
MUST_CHECK enum err_code senders_open(struct senders **out, struct err *err);
void senders_close(struct senders *s); /* NULL is fine */

/* A profile of a request is durable. All of a request have its time, so that they count as one. */
struct sender_stored {
	struct str type; /* the profile's name */
	uint64_t samples, bytes;
	bool dropped; /* by relabelling: it is not stored, as the configuration wants */
};
void senders_add_stored(struct senders *s, const struct sender_name *who,
	const struct sender_stored *what, int64_t now_ns);
void senders_add_refused(struct senders *s, const struct refusal *refusal, int64_t now_ns);
/* Counts as above. Whether the log has a line for it; *profiles: how many that line is for. */
bool senders_is_due(
	struct senders *s, const struct refusal *refusal, int64_t now_ns, uint64_t *profiles);

/* ---- as they are shown ---- */

struct sender_info {
	struct sender_name name;
	struct str shard; /* of a list of several; else empty */
	struct str types; /* names of profiles, with commas between */
	int64_t first_ns, last_ns; /* a request of any kind */
	int64_t stored_ns; /* the last one that had a profile stored; 0: none */
	int64_t first_stored_ns;
	int64_t interval_ns; /* the longest between two requests of late; 0: not known */
	uint64_t requests, profiles, dropped, samples, bytes; /* stored; dropped is no profile */
	uint64_t refused[REFUSAL_REASONS]; /* profiles */
	int64_t error_ns; /* 0: none */
	unsigned reason;
	struct str error;
};

/* Takes the first of `types` off. False: there is none. */
bool sender_next_type(struct str *types, struct str *type);

struct sender_list {
	int64_t since_ns; /* senders are noted from then on */
	uint64_t forgotten; /* for others, since */
	struct sender_info *v; /* as they are kept: in no order */
	size_t n;
};
MUST_CHECK enum err_code senders_list(
	struct senders *s, struct arena *a, struct sender_list *out, struct err *err);

/*
 * "refused", "in part": nothing, or not all, of what it sent lately was stored; "stopped": it was
 * regular and is silent; "idle": silent, but was not regular; "sending".
 */
const char *sender_state(const struct sender_info *i, int64_t now_ns);

/* ---- as they are written: JSON, for the API, a file, and other servers ---- */

#define SENDERS_BYTES_MAX (32u << 20)

void sender_list_write(struct json *j, const struct sender_list *l, int64_t now_ns);
/* Reads what was written. ERR_CORRUPT. */
MUST_CHECK enum err_code sender_list_read(
	struct str text, struct arena *a, struct sender_list *out, struct err *err);
/* Into a list that is empty still: what an earlier process noted. */
void senders_restore(struct senders *s, const struct sender_list *l);

#endif
