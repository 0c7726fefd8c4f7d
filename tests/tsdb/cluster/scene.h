/*
 * A shard for tests of the publisher: a town (tests/tsdb/town.h), a fake store, and a publisher
 * without threads. The check of all checks is a directory that is made of what the bucket has, and
 * nothing else: it must have the town's rows, each once.
 */
#ifndef TESTS_TSDB_CLUSTER_SCENE_H
#define TESTS_TSDB_CLUSTER_SCENE_H

#include "tests/tsdb/bucket/fake.h"
#include "tests/tsdb/town.h"
#include "tsdb/cluster/publisher.h"

struct scene {
	struct town town;
	struct fake fake;
	struct bucket *bucket;
	struct publisher *p;
	struct publisher_options o;
	struct err err;
	struct arena arena; /* of m */
	struct manifest m; /* as scene_look found it */
};

bool scene_open(struct scene *s); /* a town and a store, no publisher */
void scene_close(struct scene *s);
/* Takes the lease and attaches the town. False: failed, s->err says why. */
bool scene_start(struct scene *s);
void scene_crash(struct scene *s); /* the publisher is gone, without a request */
void scene_stop(struct scene *s); /* in order */
/* Rounds and work until nothing is left to do; the delay of removals is not waited for. */
void scene_settle(struct scene *s);
/* Reads the manifest from the store, not through the client. */
bool scene_look(struct scene *s);
struct fake_object *scene_object(struct scene *s, const struct manifest_key *key);
/*
 * Each object that the manifest names is there with its bytes and hash; with `exact` there is no
 * other but those that are gone.
 */
void scene_check_objects(struct scene *s, const char *what, bool exact);
/* A directory made of the bucket has the rows of the town; scene_check_rows: and its blocks and
 * windows. */
void scene_check_rows_alone(struct scene *s, const char *what);
void scene_check_rows(struct scene *s, const char *what);
/* "3: 1-4 5-9; block 1 raw; block 2": windows by their number with segments, and blocks. */
void scene_print(struct scene *s, struct buf *out);
#define CHECK_SCENE(s, want) \
	do { \
		struct buf scene_ = { 0 }; \
		scene_print((s), &scene_); \
		CHECK_STR(buf_str(&scene_), want); \
		buf_release(&scene_); \
	} while (0)

/* The end of a test. */
#define SCENE_END(s) \
	do { \
		scene_close(s); \
		CHECK_INT(town_failures, 0); \
		town_failures = 0; \
	} while (0)

#endif
