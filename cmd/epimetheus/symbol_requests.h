/*
 * Symbol requests: walks over the binaries that profiles of the last hour name, and asks for the
 * symbols of those with addresses that have no names. So they are there before somebody looks.
 *
 * Threads: any, one at a time.
 */
#ifndef CMD_EPIMETHEUS_SYMBOL_REQUESTS_H
#define CMD_EPIMETHEUS_SYMBOL_REQUESTS_H

#include "tsdb/db.h"
#include "tsdb/debuginfo/service/debuginfo.h"

void symbol_requests_walk(struct db *db, struct debuginfo *d);

#endif
