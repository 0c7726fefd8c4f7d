/*
 * The database as a sink for scraped profiles.
 *
 * Ownership: the caller's memory; the database must outlive it.
 * Threads:   as proto/sink.h.
 */
#ifndef TSDB_DB_SINK_H
#define TSDB_DB_SINK_H

#include "proto/sink.h"
#include "tsdb/db.h"

struct db_sink {
	struct sink sink; /* first: the scrape manager sees only this */
	struct db *db;
};

void db_sink_init(struct db_sink *s, struct db *db);

#endif
