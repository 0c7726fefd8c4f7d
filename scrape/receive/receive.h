/*
 * Receive: the one path of profiles that are sent to us, whatever their form. The form's own code
 * makes a list of struct received of a request; receive_store does the rest, so that all forms have
 * the same limits and the same rules for labels and times.
 *
 *	if ((rc = receive_begin(r, sender, &turn, err)))
 *		...429 or 503, with turn.retry_s...
 *	...decode into turn.arena...
 *	receive_store(&turn, v, n);
 *	...answer by v[i].rc...
 *	receive_end(&turn);
 *
 * Units:     nanoseconds since 1970.
 * Errors:    receive_begin: ERR_LIMIT: this sender is to wait; ERR_UNAVAILABLE: everybody is.
 *            Of a profile: ERR_INVALID (labels, times), ERR_LIMIT, ERR_EXISTS
 *            (RECEIVE_TWINS_MAX others of this series and time are stored), ERR_UNAVAILABLE
 *            (the database takes none now; the same request may come again: what is stored
 *            already is acknowledged again).
 * Ownership: a turn and its arena are the caller's until receive_end.
 * Threads:   any; a turn belongs to one.
 */
#ifndef SCRAPE_RECEIVE_RECEIVE_H
#define SCRAPE_RECEIVE_RECEIVE_H

#include "proto/sink.h"
#include "scrape/config/push_config.h"
#include "scrape/receive/senders_keep.h"

#define RECEIVE_RUNNING_MAX 4u /* decoded at once: a small body may need much memory */
#define RECEIVE_WAITING_MAX 16u /* for one of these; of all senders */
#define RECEIVE_SENDER_MAX 16u /* of one sender, running and waiting */
#define RECEIVE_ARENA_BYTES_MAX (256u << 20)
#define RECEIVE_LABELS_MAX 64u
#define RECEIVE_NAME_BYTES_MAX 128u
#define RECEIVE_VALUE_BYTES_MAX 4096u
#define RECEIVE_TWINS_MAX 64u /* profiles of one series and time, each a nanosecond later */
#define RECEIVE_INTERVAL_MAX_NS (INT64_C(86400) * 1000000000)

struct receiver;
struct config;

struct receiver_options {
	struct sink *sink;
	/* The configuration in force, referenced for the caller (config_unref). NULL: there is none,
	 * and labels stay as they are. */
	struct config *(*config)(void *ctx);
	void *ctx;
	int64_t gap_max_ns; /* how long a level of unknown length may have lasted */
	int64_t retention_ns; /* older profiles are refused; 0: none is */
	/* The list of senders, as senders_keep.h: both NULL: it is in memory alone. */
	const char *senders_path;
	enum err_code (*put_senders)(void *ctx, struct str text, struct err *err);
};
MUST_CHECK enum err_code receiver_open(
	const struct receiver_options *o, struct receiver **out, struct err *err);
/* No turn is under way. NULL is fine. */
void receiver_close(struct receiver *r);
/* From now on receive_begin is ERR_UNAVAILABLE, also for those who wait. */
void receiver_stop(struct receiver *r);
/* How many wait for their turn now. */
size_t receiver_waiting(struct receiver *r);

struct receive_turn {
	struct receiver *r;
	struct config *config; /* in force for the whole request */
	const struct push_config *push;
	struct arena arena;
	uint64_t sender;
	size_t profiles; /* so far */
	unsigned retry_s; /* when to try again, where receive_begin failed */
	int64_t now_ns; /* of receive_store */
	/* Who sends, for the list of senders; job: of what is decoded just now, if it is known. */
	struct sender_name from;
	uint64_t bytes; /* of the request's body, as it was sent */
};
/* sender: a user, or an address. Waits for its turn. */
MUST_CHECK enum err_code receive_begin(
	struct receiver *r, struct str sender, struct receive_turn *t, struct err *err);
void receive_end(struct receive_turn *t);

struct received {
	struct labels labels; /* as they are to be, but for relabelling; with __name__ */
	const struct pprof *profile;
	const enum value_kind *kinds; /* of its columns; NULL: by name and type, as of a scrape */
	int64_t ts_ns; /* the end of what it covers; 0: as the profile says, else now */
	int64_t interval_ns; /* what it covers; 0: the profile's duration, else not known */
	bool convert; /* cumulative columns become differences to the profile before; as push_config */
	/*
	 * Processes of one service may have one series, and times in seconds are soon the same. So the
	 * hashes of body and source choose a time within the last millisecond: the same profile of the
	 * same source is the same row when it comes again, and that of another source is another one.
	 */
	uint64_t body; /* a hash; 0: the time stays as it is */
	uint64_t process; /* a hash of what names the process; 0: the sender's address is the source */
	/* The answer: */
	enum err_code rc;
	struct err err;
	uint32_t samples; /* stored */
	bool overflow; /* some label sets of samples were folded into one */
	uint32_t links_dropped; /* samples whose links to spans are not stored */
	bool dropped; /* by relabelling: nothing is stored, and nothing is wrong */
	bool doubted; /* what looks cumulative was stored as amounts */
};

/*
 * Stores all of them and returns when each is durable or refused. Profiles of one series and time
 * become one row: a sender may list each process, whose number is no label, or each sample type. If
 * another profile of this series and time is stored, the next nanosecond that is free is taken.
 */
void receive_store(struct receive_turn *t, struct received *r, size_t n);

/* Counts and logs profiles that could not be decoded; a whole request is one. */
void receive_refuse(struct receive_turn *t, uint64_t profiles, const struct err *why);
/* The same of a request that got no turn. */
void receiver_refuse(struct receiver *r, const struct refusal *refusal);
/* What is refused from now on has these labels. */
void receive_tell_labels(struct receive_turn *t, struct labels labels);
struct senders *receiver_senders(struct receiver *r);

/* A label of a sender as ours: false where the configuration drops it. *name may be in the arena.
 */
bool receive_label(struct receive_turn *t, struct str *name);

#endif
