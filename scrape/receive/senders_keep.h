/*
 * Keeper of senders: writes their list once a minute, so that a restart knows who has stopped
 * coming, and a query node knows the senders of each shard. What a crash loses is a minute of
 * counts.
 *
 * Errors:    senders_keep_open: ERR_NOMEM. A file that cannot be read or written has a line in the
 *            log; the senders are kept in memory then.
 * Ownership: senders and the path's text outlive it.
 * Threads:   one of its own, which calls put.
 */
#ifndef SCRAPE_RECEIVE_SENDERS_KEEP_H
#define SCRAPE_RECEIVE_SENDERS_KEEP_H

#include "scrape/receive/senders.h"

struct senders_keep_options {
	struct senders *senders;
	const char *path; /* of the file; NULL: there is none */
	/* Where other servers find it; may wait. NULL: nowhere. An error is logged, and tried again
	 * a minute later. */
	enum err_code (*put)(void *ctx, struct str text, struct err *err);
	void *ctx;
};

struct senders_keeper;
/* Reads the file. */
MUST_CHECK enum err_code senders_keep_open(
	const struct senders_keep_options *o, struct senders_keeper **out, struct err *err);
/* Writes the last time. NULL is fine. */
void senders_keep_close(struct senders_keeper *k);

#endif
