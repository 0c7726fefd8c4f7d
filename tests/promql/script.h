/*
 * Query scripts: profiles and numbers as text, queries, and what they must answer. README.md in
 * tests/promql/scripts/ describes the notation.
 *
 * A script is text in lines: a statement begins in the first column, and lines that are indented
 * below it are its body. A document (Markdown) is the script of its ```text blocks.
 *
 * Units:     nanoseconds since 1970; a script's time begins there.
 * Errors:    text in script.report, one paragraph per fault, each beginning with "file:line:".
 * Ownership: script_close ends what script_read gave.
 * Threads:   one script, one thread.
 */
#ifndef TESTS_PROMQL_SCRIPT_H
#define TESTS_PROMQL_SCRIPT_H

#include "promql/engine/engine.h"

#define SCRIPT_TYPES_MAX 4

struct script_line {
	struct str text; /* without what it is indented by; never empty */
	uint32_t indent; /* in columns */
	uint32_t number;
};

/* A statement and its body. */
struct script_statement {
	const struct script_line *line, *body;
	size_t n; /* lines of the body */
};

/* Place of the data when the queries run. */
enum script_way {
	SCRIPT_IN_HEAD,
	SCRIPT_RESTARTED, /* in the head, after the database was closed and opened */
	SCRIPT_IN_BLOCKS, /* all windows cut and joined, but for data that more is loaded after */
	SCRIPT_IN_UNION, /* spread over the heads of several databases, as struct script_places says */
	SCRIPT_IN_UNION_OF_BLOCKS,
	SCRIPT_WAYS
};

struct script {
	char *file;
	struct buf text; /* what lines point into */
	struct script_line *lines;
	size_t n;
	struct buf report;
	size_t faults, evaluated;
};

bool script_read(struct script *s, const char *path);
void script_close(struct script *s);
/* The statement that begins at line *at, which moves behind it; false: there is no more. */
bool script_next(const struct script *s, size_t *at, struct script_statement *out);
void script_run(struct script *s, enum script_way way);
/* Each query of the script's eval statements. */
void script_queries(const struct script *s, void (*fn)(void *ctx, struct str query), void *ctx);

/* ---- within the runner ---- */

void script_fault(struct script *s, uint32_t line, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* The next word, up to a blank outside of quotes and braces; empty: there is none. */
struct str script_word(struct str *rest);
/* `name{a="b"}` or either half of it. */
bool script_labels(struct arena *a, struct str text, struct labels *out);
bool script_time(struct str text, int64_t *out_ns); /* 90s, 1h30m, 0 */

/* One value of a series in time, as Prometheus's tests write them: 1 1x5 0+10x5 _ _x2 stale. */
struct script_value {
	bool is_gap, is_stale;
	long double v[SCRIPT_TYPES_MAX]; /* several of a profile: 3/40 */
	unsigned n;
};
struct script_values {
	struct script_value *v;
	size_t n;
};
/* NULL, or what is wrong. */
const char *script_values(struct arena *a, struct str text, struct script_values *out);

/* ---- script_load.c ---- */

/* Code that all loads share: a frame has the same address in all profiles. */
struct script_code {
	struct arena *arena;
	struct str *frames, *mappings; /* as they are written */
	uint32_t frames_n, mappings_n;
};

/*
 * Where data goes: half of the series are in one database each, by their labels; rows of the others
 * go to one database after the other.
 */
#define SCRIPT_DBS_MAX 3u
struct script_places {
	struct db *v[SCRIPT_DBS_MAX];
	size_t n;
};

/* The body of a load statement; *max_ns: the latest time stored. */
void script_load(struct script *s, const struct script_statement *st,
	const struct script_places *to, struct script_code *code, int64_t *max_ns);

/* ---- script_answer.c ---- */

/* Reports a fault with both texts where the answer is not the statement's body. */
void script_compare(struct script *s, const struct script_statement *st, const struct result *r,
	bool ordered, const struct query_options *o);
/* Expected stacks show the labels of samples: the query must keep them. */
bool script_shows_labels(const struct script_statement *st);

#endif
