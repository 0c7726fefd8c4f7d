/*
 * Storage: a database in a new directory and its engine, for tests of servers, and a profile to
 * push.
 *
 * Errors: storage_open and storage_close end the program where they cannot go on, as must does.
 */
#ifndef TESTS_WEB_STORAGE_H
#define TESTS_WEB_STORAGE_H

#include "base/err.h"
#include "base/str.h"
#include "tsdb/db_sink.h"

struct storage {
	char dir[64];
	struct db *db;
	struct engine *engine;
	struct db_sink sink;
};

void must(enum err_code rc, const struct err *err);

void storage_open(struct storage *s);
void storage_close(struct storage *s); /* and removes the directory */

/* main;handle;leaf costs `slow`, main;handle `own`. */
struct pushed_profile {
	bool cpu; /* samples of 10 ms for 9 s; else goroutines, a level */
	int64_t slow, own;
	const char *leaf;
	int64_t end_s; /* 0: the profile says neither time nor period */
	bool lasting; /* goroutines have a duration too */
	const char *handler; /* label of each sample; NULL: none */
	const char *key; /* its name; NULL: handler */
	bool starts; /* functions say where they start: a hundred lines for each */
};

void profile_gz(struct buf *gz, const struct pushed_profile *o);

#endif
