/*
 * Follower: one shard as a query node sees it: a database that is fed from the bucket.
 *
 * A look reads the shard's manifest if it changed, swaps blocks and windows in one step, and puts
 * new segments into the windows that are here, so that queries see the shard as of one manifest or
 * the next. Blocks are read in the bucket by ranges. Windows that lack many segments, as all do at
 * first, are left unread: they are read afterwards, the newest one first, segment by segment, and
 * between two segments there may be another look. Segments that were read can be queried; answers
 * that overlap the time of an unread window say so. The directory is a cache: it is emptied at the
 * start, and removed at the end.
 *
 * An answer that lacks an object which the manifest names has a warning with its key. Answers also
 * warn of a shard that is late: what it acknowledged two intervals and a second ago may not be
 * here, or something that its manifest names could not be read. Clocks are not compared, but for
 * the first manifest. A shard that stopped in order is not late.
 *
 * A shard that lives and follows an older assignment than others, for longer than its lease, may
 * have scraped what others scrape by now: answers say so.
 *
 * Units:     nanoseconds since 1970.
 * Errors:    the bucket's; ERR_CORRUPT and others of the manifest: the follower stays as it was.
 * Ownership: bucket and range source outlive it.
 * Threads:   rounds, looks and reads by one at a time; follower_tell, follower_status and
 *            follower_has_unread by any.
 */
#ifndef TSDB_CLUSTER_FOLLOWER_H
#define TSDB_CLUSTER_FOLLOWER_H

#include "tsdb/catalog/members.h"
#include "tsdb/catalog/options.h"
#include "tsdb/cluster/manifest.h"
#include "tsdb/store/range.h"

struct follower;

struct follower_options {
	struct bucket *bucket;
	struct range_source *remote;
	const char *shard; /* its name */
	/* The newest assignment that any shard follows, of all followers; it is raised by each. NULL:
	 * nobody asks. */
	_Atomic uint64_t *newest;
	const char *dir; /* emptied */
	struct db_options db; /* memory and limits; the rest is set here */
};

MUST_CHECK enum err_code follower_open(
	const struct follower_options *o, struct follower **out, struct err *err);
void follower_close(struct follower *f); /* its database has no users any more; NULL is fine */
struct db *follower_db(struct follower *f);

/*
 * One look. ERR_NOT_FOUND: the shard has no manifest. ERR_EXISTS: numbers that this follower has
 * learned mean something else now: nothing changed, and another follower is needed.
 */
MUST_CHECK enum err_code follower_look(struct follower *f, struct err *err);
/* A window is unread. *start_ns: of the newest one. */
bool follower_has_unread(struct follower *f, int64_t *start_ns);
/*
 * Reads the newest unread window to its end; several segments are fetched ahead. between NULL:
 * nobody is asked. ERR_OK: it is read as far as possible, or was stopped. If a window fails, the
 * next older one is read, and the error is given afterwards: the bucket's, the store's, or that of
 * a look in between. What was read stays.
 */
enum follower_between {
	FOLLOWER_GO_ON,
	FOLLOWER_LOOK, /* follower_look is due, and is done here */
	FOLLOWER_STOP,
};
typedef enum follower_between (*follower_between_fn)(void *ctx); /* before each segment */
MUST_CHECK enum err_code follower_read(
	struct follower *f, follower_between_fn between, void *ctx, struct err *err);
/* A look, and all that is unread. */
MUST_CHECK enum err_code follower_round(struct follower *f, struct err *err);
/* A db_member_fn: ctx is the follower. */
void follower_tell(void *ctx, int64_t min_ns, int64_t max_ns, db_warn_fn warn, void *to);

struct follower_status {
	char host[MANIFEST_HOST_BYTES_MAX + 1];
	/* Of the last manifest that was taken over as a whole; 0: there was none yet. */
	uint64_t generation;
	int64_t through_ns, written_ns;
	int64_t changed_ns; /* when the manifest was seen to change, by our clock */
	int64_t interval_ns;
	uint64_t windows, segments, blocks, bytes;
	uint64_t missing; /* objects that the manifest names and the bucket lacks */
	uint64_t assignment; /* that it follows (manifest.h) */
	bool behind; /* others follow a newer one, for longer than its lease */
	/* Of the last manifest, whole or not. Once all is read, read_ and all_ are equal. */
	uint64_t read_segments, all_segments, read_bytes, all_bytes;
	uint64_t unread_windows;
	int64_t left_ns; /* until all are read, if it goes on as up to now; -1: not known; 0: none is */
	bool stopped, late;
	struct err failed; /* of the last round; code ERR_OK: it was well */
};
void follower_status(struct follower *f, struct follower_status *out);

#endif
