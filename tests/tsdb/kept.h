/*
 * Kept: a directory held in memory, to be damaged and put back as it was.
 *
 * Threads: one.
 */
#ifndef TESTS_TSDB_KEPT_H
#define TESTS_TSDB_KEPT_H

#include "base/str.h"

struct kept_file {
	char *path; /* below the directory, with a slash in front */
	struct buf bytes;
	bool is_dir;
};

struct kept {
	char *dir;
	struct kept_file *v; /* directories before what is in them */
	size_t n, cap;
};

void kept_read(struct kept *k, const char *dir);
void kept_put_back(const struct kept *k); /* all else that is in the directory goes */
void kept_release(struct kept *k);

enum kept_damage { KEPT_FLIP, KEPT_ZERO, KEPT_CUT, KEPT_REMOVE, KEPT_DAMAGES };
extern const char *const kept_damage_names[KEPT_DAMAGES];
/* On the disk; at: a place in the file. */
void kept_damage(const struct kept *k, const struct kept_file *f, enum kept_damage kind,
	uint64_t at, uint64_t n);
/* The two change places. */
void kept_exchange(const struct kept *k, const struct kept_file *a, const struct kept_file *b);

#endif
