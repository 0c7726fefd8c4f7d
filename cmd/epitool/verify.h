/*
 * Verify: all of a data directory against all of it: hashes, order, counts, every row and sum,
 * every symbol, lists, losses. Findings are printed to standard output, errors to standard error.
 * The directory may be a running server's: nothing in it is written.
 *
 * Threads: the main one.
 */
#ifndef CMD_EPITOOL_VERIFY_H
#define CMD_EPITOOL_VERIFY_H

#include "base/str.h"

struct verify_options {
	bool (*skip)(void *ctx, struct str ulid); /* true: this block is not looked at; NULL: all are */
	void *ctx;
};

struct verify_result {
	uint64_t blocks, findings;
	bool newer; /* a newer program wrote the directory: nothing was looked at */
};

/* 0: nothing is wrong; else an exit code. options NULL: all blocks. */
int verify_directory(
	const char *dir, const struct verify_options *options, struct verify_result *out);
void verify_print_result(const struct verify_result *r); /* "3 blocks verified, 0 findings" */

#endif
