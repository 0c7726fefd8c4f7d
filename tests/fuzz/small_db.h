/*
 * A small database and its engine for fuzz drivers of queries; at the program's end they are closed
 * and the directory is removed. Rows are of T0 and later.
 */
#ifndef TESTS_FUZZ_SMALL_DB_H
#define TESTS_FUZZ_SMALL_DB_H

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "promql/engine/engine.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);

#define T0 (INT64_C(1700000000) * NS_PER_S)

static struct db *db;
static struct engine *engine;
static char dir[] = "/tmp/epi-fuzz-XXXXXX";
static atomic_int acked; /* rows and batches of numbers that are stored */

/* For db_append and db_append_numbers. */
static inline void on_acked(void *ctx, enum err_code rc, const struct err *err)
{
	require(!rc);
	atomic_fetch_add(&acked, 1);
}

static inline void wait_acked(int n)
{
	while (atomic_load(&acked) < n)
		usleep(1000);
}

static inline void small_db_close(void)
{
	char command[64];
	FILE *f;

	engine_close(engine);
	db_close(db);
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	if ((f = popen(command, "r")))
		pclose(f);
}

/* The engine's limits are the caller's. */
static inline void small_db_open(struct engine_options limits)
{
	struct db_options o;
	struct err err;

	log_set(LOG_ERROR, LOG_LOGFMT);
	require(mkdtemp(dir) != NULL);
	db_options_default(&o);
	o.dir = dir;
	o.retention_ns = 0;
	o.too_old_ns = INT64_MAX / 2;
	o.no_compaction = true;
	o.free_bytes_reserve = 0;
	require(!db_open(&o, &db, &err));
	limits.db = db;
	require(!engine_open(&limits, &engine, &err));
	atexit(small_db_close);
}

#endif
