/*
 * Model: a list of all appends and their answers, and so of what a database has to hold.
 *
 * A row that was *acknowledged* has to be there, with exactly its samples, until retention may
 * take it. One whose append failed, or whose answer never came, may be there whole or not at all.
 * Nothing else may be there. Rows that db_delete_series took, once it said so, have to be gone;
 * rows that come later into a deleted range may be there or not. If several rows have the same
 * series and time, one is acknowledged; the others are refused, or have no answer and may be there
 * in its place if it was not stored.
 *
 * model_check reads everything and compares. Once the database was closed, or the power came back,
 * all rows that are there are settled: they have to stay.
 *
 * Units:   windows, blocks and retention are short (MODEL_WINDOW_S and on): windows are cut, blocks
 * joined and dropped all the time.
 * Errors:  model_check says what is wrong in m->wrong.
 * Threads: one; acknowledgements come from the database's.
 */
#ifndef TESTS_TSDB_MODEL_H
#define TESTS_TSDB_MODEL_H

#include "base/thread.h"
#include "tests/tsdb/fixture.h"

#define MODEL_PROFILES 8 /* series of profiles, of 3 jobs */
#define MODEL_SERIES 12 /* and numeric ones behind them */
#define MODEL_WINDOW_S 5
#define MODEL_BLOCK_S 20 /* four windows: the shortest that are joined */
#define MODEL_RETENTION_S 40
#define MODEL_RAW_RETENTION_S 32 /* for tests that want it */
#define MODEL_TOO_OLD_S 12
#define MODEL_SYMBOLS_BYTES (1u << 20) /* more than there are */

enum model_state {
	MODEL_TRIED, /* no answer yet */
	MODEL_ACKED,
	MODEL_UNKNOWN, /* the answer was an error, or will never come */
	MODEL_DELETED,
};

struct model_row {
	int64_t ts_ns;
	uint32_t series;
	uint32_t order; /* of its append among all */
	uint64_t seed; /* of its profile; of a numeric series its value */
	uint64_t hash; /* of its samples as text; of its value */
	enum model_state state;
	bool maybe; /* in a range that was deleted before it came, or by a deletion that failed */
	bool there; /* while checking */
};

struct model_range {
	uint32_t series;
	int64_t min_ns, max_ns;
};

struct model {
	struct fixture f;
	struct labels labels[MODEL_SERIES];
	uint64_t random;
	int64_t now_s, newest_ns; /* of appends that were not refused */
	struct mutex lock;
	struct cond answered;
	struct model_row *rows; /* lock */
	size_t n, cap;
	uint32_t appended;
	size_t waiting, acked, refused; /* lock; acked and refused: so far */
	bool no_replacing, deletes;
	bool snapshots; /* are taken at work, opened and compared */
	bool faults; /* the disk fails on purpose: a snapshot may fail; one that was taken is whole */
	size_t snapshots_n; /* that were taken and compared */
	struct model_range *deleted; /* all so far */
	size_t deleted_n, deleted_cap;
	int tell; /* a pipe that what happens is written to; -1: none */
	struct buf wrong;
	/* of the last check: */
	size_t missing, warnings, checked, bare;
	uint32_t level; /* highest of a block so far: 1 was cut, 2 and above joined */
	/* Rows may be missing and sums be off if a warning says so, or the metric, which was
	 * damage_before. Needs no_replacing: an older row may show through. */
	bool damage_allowed;
	double damage_before;
};

/* EPI_CRASH_ROUNDS and EPI_CRASH_SEED, for longer and other runs than the unit test's. */
uint64_t model_rounds(uint64_t by_default);
uint64_t model_seed(void); /* 1 by default */

uint64_t model_draw(struct model *m, uint64_t below);
/* A directory and options; the database is not open yet. */
bool model_init(struct model *m, uint64_t seed);
void model_release(struct model *m);
/* Opens with m->f.o; an open database is closed first. */
enum err_code model_open(struct model *m, struct err *err);
void model_close(struct model *m); /* answers what was appended */

/*
 * Follows the appends of another process and their answers through a pipe. The other process is a
 * fork with m->tell set to the pipe's end; this one reads until the end of file. The fork is killed
 * ms after its first append or, while_opening, after now. Appends without an answer are then
 * unknown. False: the pipe said something else.
 */
bool model_follow(struct model *m, int pipe, int pid, int ms, bool while_opening);

/* One append, of a profile or of up to MODEL_BATCH numbers; its answer is not waited for. False:
 * refused. */
#define MODEL_BATCH 3
bool model_append(struct model *m);
void model_wait(struct model *m); /* until all is answered */
/* Appends, waits, maintains, works on blocks and, if enabled, deletes and takes snapshots, in
 * random order; ends early if stop says so. False: m->wrong says what is wrong with a
 * snapshot. */
bool model_work(struct model *m, size_t appends, bool (*stop)(void *ctx), void *ctx);

bool model_is_numeric(uint32_t series);
uint64_t model_number_hash(double v);
/* A copy by db_snapshot opens and is the same, without warnings. False: m->wrong says what. */
bool model_check_snapshot(struct model *m);
/* All rows, and sums of some windows. settled: a row that is there counts as acknowledged from now
 * on, and others as never appended. False: m->wrong says what. */
bool model_check(struct model *m, bool settled);

#endif
