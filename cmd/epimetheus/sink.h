/*
 * The database as a sink for scraped profiles.
 *
 * Ownership: the caller's memory; the database must outlive it.
 * Threads:   as scrape/config/sink.h.
 */
#ifndef CMD_EPIMETHEUS_SINK_H
#define CMD_EPIMETHEUS_SINK_H

#include "scrape/config/sink.h"
#include "tsdb/db.h"

struct db_sink {
	struct sink sink; /* first: the scrape manager sees only this */
	struct db *db;
};

void db_sink_init(struct db_sink *s, struct db *db);

#endif
