/*
 * Noting a loss: in the list of losses (losses.h), the log and the metric.
 *
 * Threads: any.
 */
#ifndef TSDB_CATALOG_LOSS_REPORT_H
#define TSDB_CATALOG_LOSS_REPORT_H

#include "tsdb/lists/losses.h"

struct db;

/*
 * Notes that stored data is gone or can no longer be read. `where`: its path below the data
 * directory, see losses.h. False: the list could not be written. The loss is then reported only
 * until the next start, so the caller must not change the files that show it.
 */
bool db_lost(struct db *db, enum loss_what what, const char *where, int64_t min_ns, int64_t max_ns,
	uint64_t count, const struct err *why);
/* At the start: logs the losses that are not accepted yet. */
void db_log_losses(struct db *db);

/*
 * Lists the losses in the order in which they were found, in the arena. A union lists one shard
 * after the other, and each shard has numbers of its own. A querier adds a warning for each loss in
 * its time that is not accepted.
 */
MUST_CHECK enum err_code db_losses(
	struct db *db, struct arena *a, struct loss **out, size_t *n, struct err *err);
/* Marks losses as known to a person, by number; n 0: all. ERR_NOT_FOUND names the number. */
MUST_CHECK enum err_code db_accept_losses(
	struct db *db, const uint64_t *numbers, size_t n, size_t *accepted, struct err *err);

#endif
