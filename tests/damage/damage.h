/*
 * The damage oracle: a data directory is damaged at random, opened and asked; each answer equals
 * that of the undamaged directory, or carries a warning, or is an error. README.md says how to run
 * it.
 *
 * Units:     nanoseconds and seconds since 1970.
 * Errors:    those of the database; a trial never stops the program.
 * Ownership: init and release, open and close come in pairs.
 * Threads:   one per process; each trial is a process.
 */
#ifndef TESTS_DAMAGE_DAMAGE_H
#define TESTS_DAMAGE_DAMAGE_H

#include <stdio.h>

#include "promql/engine/engine.h"
#include "tests/draw.h"
#include "tsdb/db.h"
#include "web/web.h"

/* ---- trees of files (tree.c) ---- */

MUST_CHECK enum err_code tree_copy(const char *from, const char *to, struct err *err);

struct tree_file {
	char *path; /* below the directory, without a slash in front */
	char *kind; /* the path with N for numbers and ULID for ULIDs: "head/N/N.log" */
	uint64_t size;
	bool is_dir;
};
struct tree {
	struct tree_file *v; /* directories before what is in them */
	size_t n, cap;
};
MUST_CHECK enum err_code tree_list(const char *dir, struct tree *out, struct err *err);
void tree_release(struct tree *t);

/* ---- the data (data.c) ---- */

#define DATA_T0_S INT64_C(1700006400) /* a day's start */
#define DATA_OLDER 3 /* directories as they were earlier */

/*
 * Makes DIR/now, and DIR/older-0 .. on the way to it. The last process that had it open was killed.
 */
MUST_CHECK enum err_code data_make(const char *dir, struct err *err);
struct db_options data_options(const char *dir);
/* Rows behind all others: no question without "later" sees them. */
MUST_CHECK enum err_code data_append_later(struct db *db, struct err *err);

/* ---- questions and answers (questions.c, site.c) ---- */

enum asked { AT, SPAN, STEPS, GET, RPC };

struct question {
	enum asked how;
	bool all_formats;
	bool later; /* only where data_append_later was acknowledged */
	const char *text; /* query; path with parameters; method and body of an RPC */
	int from_m, to_m, step_m; /* minutes after DATA_T0_S */
};
extern const struct question questions[];
extern const size_t questions_n;
extern const char *const formats[]; /* json first */
extern const size_t formats_n;

struct answer {
	const struct question *question;
	const char *format;
	int status;
	bool warned; /* in the envelope, or by a header */
	struct buf body;
};
struct answers {
	struct answer *v; /* the same questions in the same order, always */
	size_t n;
};
void answers_release(struct answers *a);
void answer_print_question(const struct answer *a, struct buf *out);

/* A server without its sockets: requests go to the router. */
struct site {
	struct db *db;
	struct engine *engine;
	struct web *web;
};
MUST_CHECK enum err_code site_open(const struct db_options *o, struct site *s, struct err *err);
void site_close(struct site *s);
/* Asks all. later: those too that are for rows appended later. */
void site_ask(struct site *s, bool later, struct answers *out);

/* ---- damage (harm.c) ---- */

enum harm {
	HARM_FLIP,
	HARM_FLIPS,
	HARM_CUT,
	HARM_EMPTY,
	HARM_ZERO,
	HARM_ZERO_ALL,
	HARM_NOISE,
	HARM_APPEND,
	HARM_TAKE_OUT,
	HARM_REMOVE,
	HARM_SWAP, /* with another of its kind */
	HARM_OTHER, /* another of its kind in its place */
	HARM_FOREIGN, /* one of another kind in its place */
	HARM_OLDER, /* as it was earlier */
	HARM_RENAME,
	HARM_KINDS
};
extern const char *const harm_names[HARM_KINDS];

/* Files and directories of DIR/now that may be damaged, by kind. */
struct harms {
	const char *dir; /* of data_make */
	struct tree tree;
	const char **kinds; /* sorted */
	size_t kinds_n;
};
MUST_CHECK enum err_code harms_init(struct harms *h, const char *dir, struct err *err);
void harms_release(struct harms *h);

struct harm_done {
	size_t kind; /* in harms.kinds */
	enum harm how;
	char what[400];
};
/* Damages TO, a copy of DIR/now. only: a part of the kind's name, or NULL. */
MUST_CHECK enum err_code harm_do(const struct harms *h, const char *to, const char *only,
	struct draw *d, struct harm_done *out, struct err *err);
/* A file of one kind in place of one of another. pair: number of the kind that goes, times kinds_n,
 * plus that of the kind that comes. ERR_NOT_FOUND: that is no pair; nothing was done. */
MUST_CHECK enum err_code harm_pair(const struct harms *h, const char *to, size_t pair,
	struct draw *d, struct harm_done *out, struct err *err);

/* ---- the system's clock (steps.c) ---- */

int64_t steps_draw(uint64_t seed); /* between a trial's starts; of most seeds 0 */
/* This process has a clock that is so far from the trial's; before the database is opened. */
void steps_begin(int64_t ahead_ns);

/* ---- trials (trial.c) ---- */

enum verdict { EQUAL, WARNED, REFUSED, SILENT, CRASHED, HUNG, VERDICTS };
extern const char *const verdict_names[VERDICTS];

struct trial_options {
	const struct harms *harms;
	const struct answers *plain, *compacted; /* of the undamaged directory */
	const char *work; /* a directory of this process */
	const char *only;
	unsigned seconds_max; /* of one process */
	bool pairs; /* the seed is a pair's number; all is verified */
	bool harmless; /* nothing is damaged: all has to be equal, without warnings */
	bool verbose;
	FILE *out;
};
struct trial_result {
	struct harm_done harm;
	enum verdict verdict;
	uint32_t equal, warned, errors, silent; /* answers */
	uint32_t silent_json; /* of the silent ones */
	bool verify_missed; /* answers differed and verify found nothing */
};
/* False: there is no such pair, and nothing was tried. */
bool trial_run(const struct trial_options *o, uint64_t seed, struct trial_result *out);

#endif
