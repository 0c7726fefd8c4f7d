/*
 * Gauges of a database: set from db_status whenever metrics are asked for. One database of a
 * process has them; the members of a union leave them to it.
 *
 * Threads: any.
 */
#ifndef TSDB_STATUS_H
#define TSDB_STATUS_H

struct db;

void db_gauges_begin(struct db *db);
void db_gauges_end(struct db *db); /* does nothing if they did not begin */

#endif
