/*
 * A target of C++ for tests: serves a body of a format before protobuf on every GET, and answers
 * POST with names, as told. Plain sockets; a connection is served to its end before the next.
 *
 * Threads: its own; the test sets and reads at any time.
 */
#ifndef TESTS_SCRAPE_SYMBOL_TARGET_H
#define TESTS_SCRAPE_SYMBOL_TARGET_H

#include "base/str.h"

enum symbol_mode {
	SYMBOLS_NAMES, /* "PREFIX_401000" for each address that was asked for */
	SYMBOLS_EMPTY, /* "num_symbols: 1" and no name */
	SYMBOLS_NO_SERVICE, /* "num_symbols: 0" */
	SYMBOLS_404,
	SYMBOLS_500,
	SYMBOLS_PAGE, /* 200 with a web page */
	SYMBOLS_GARBAGE,
	SYMBOLS_CUT, /* the last line in the middle of its name */
	SYMBOLS_OTHERS, /* names of other addresses */
	SYMBOLS_LONG, /* names of 20,000 bytes */
	SYMBOLS_HUGE, /* more than anyone reads */
	SYMBOLS_RESET, /* closed in mid-answer */
	SYMBOLS_SILENT, /* no answer */
};

struct symbol_target;

struct symbol_target *symbol_target_open(void);
void symbol_target_close(struct symbol_target *t);
int symbol_target_port(const struct symbol_target *t);
/* What it answers from now on. body NULL: as before. */
void symbol_target_set(
	struct symbol_target *t, const struct buf *body, enum symbol_mode mode, const char *prefix);
unsigned symbol_target_questions(struct symbol_target *t);
/* Addresses in all questions so far. */
unsigned symbol_target_asked(struct symbol_target *t);
/* The head of the last question. */
void symbol_target_head(struct symbol_target *t, struct buf *out);

/* A heap profile of n stacks of one address each, 0x401000 and up; maps: the start of its code. */
void symbol_target_heap(struct buf *out, unsigned n, const char *maps);

#endif
