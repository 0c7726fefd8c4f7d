/*
 * What was lost, as a database notes it: the list of losses (losses.h), the log and the metric.
 *
 * Threads: any.
 */
#ifndef TSDB_CATALOG_LOST_H
#define TSDB_CATALOG_LOST_H

#include "tsdb/catalog/losses.h"

struct db;

/*
 * Something that was stored is gone, or can be read no more: onto the list of losses, into the log
 * and the metric. `where`: its path below the data directory, as losses.h says. Where the list
 * cannot be written it is said all the same, until the next start. False: it is not durable, so
 * whatever it was found by must stay as it is.
 */
bool db_lost(struct db *db, enum loss_what what, const char *where, int64_t min_ns, int64_t max_ns,
	uint64_t count, const struct err *why);
/* At the start: those that nobody accepted are logged. */
void db_log_losses(struct db *db);

/*
 * What was found to be lost, in the order in which it was found (tsdb/catalog/losses.h); in the
 * arena. Each querier whose time touches one that is not accepted says so in its warnings.
 */
MUST_CHECK enum err_code db_losses(
	struct db *db, struct arena *a, struct loss **out, size_t *n, struct err *err);
/* A person knows of them: by number; n 0: all. ERR_NOT_FOUND names the number. */
MUST_CHECK enum err_code db_accept_losses(
	struct db *db, const uint64_t *numbers, size_t n, size_t *accepted, struct err *err);

#endif
