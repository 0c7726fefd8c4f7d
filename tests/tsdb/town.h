/*
 * Helpers for tests of cutting, joining, retention and deleting: a database with short windows, a
 * list of what was appended to it, and a comparison of both.
 */
#ifndef TESTS_TSDB_BLOCKS_TOWN_H
#define TESTS_TSDB_BLOCKS_TOWN_H

#include "tests/tsdb/disk.h"
#include "tests/tsdb/fixture.h"
#include "tsdb/catalog/state.h"

#define T0 1080000 /* seconds: whole hours, and a multiple of the lengths that tests use */
#define TOWN_WINDOW_S 10

struct town_row {
	struct labels labels;
	int64_t ts_s;
	uint64_t seed;
	bool deleted;
};

struct town {
	struct fixture f;
	struct disk *disk; /* NULL: the real one */
	struct town_row *rows;
	size_t n, cap;
	const char *warning; /* which reading gives, each time; NULL: none */
};

/* Windows of 10 s, rows that are 20 s late are taken; nothing is cut by itself. */
bool town_open(struct town *w);
/* The same on a disk that may fail. */
bool town_open_on(struct town *w, bool faulty);
void town_close(struct town *w);
struct labels town_labels(struct town *w, const char *job, const char *instance);
/* Files and directories are named relative to the data directory. */
void town_copy(struct town *w, const char *from, const char *to);
void town_move(struct town *w, const char *from, const char *to);
/* Name of the i-th block, in the arena. */
const char *town_block(struct town *w, size_t i);
/* A random profile; acknowledged. */
void town_append(struct town *w, struct labels labels, int64_t ts_s);
/* Each of jobs x instances, every `every` seconds in (from, to]. */
void town_fill(struct town *w, int jobs, int instances, int64_t from_s, int64_t to_s, int every);
/* Deletes the rows of these labels in (from, to]. */
void town_delete(
	struct town *w, const char *job, const char *instance, int64_t from_s, int64_t to_s);
/* Rows up to ts are no longer expected. */
void town_forget_until(struct town *w, int64_t ts_s);
void town_compact(struct town *w);
/* Checks that blocks and head have all rows and nothing else, and that blocks verify. */
void town_check(struct town *w, const char *what, int line);
#define TOWN_CHECK(w, what) town_check((w), (what), __LINE__)
/* "1 1 2 head": levels of blocks and windows, oldest first. */
void town_layout(struct town *w, struct buf *out);
#define CHECK_LAYOUT(w, want) \
	do { \
		struct buf layout_ = { 0 }; \
		town_layout((w), &layout_); \
		CHECK_STR(buf_str(&layout_), want); \
		buf_release(&layout_); \
	} while (0)

/* In place of CHECK_FAIL, whose counter each test program has for itself. */
void town_failed(const char *fmt, ...) PRINTF_LIKE(1, 2);
extern int town_failures;

/* The end of a test. */
#define TOWN_END(w) \
	do { \
		CHECK_INT(town_failures, 0); \
		town_failures = 0; \
		town_close(w); \
	} while (0)

#endif
