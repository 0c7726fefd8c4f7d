/*
 * Copiers: one call for each of n things, by several threads, until the first error or Ctrl-C.
 *
 * Errors:  the first one; ERR_CANCELED after Ctrl-C; ERR_UNAVAILABLE: no thread can be started.
 * Threads: starts `workers` of them and waits for all. fn runs on these; tick and cancel run on the
 *          caller's, while the others work.
 */
#ifndef CMD_EPITOOL_COPIERS_H
#define CMD_EPITOOL_COPIERS_H

#include <stdbool.h>

#include "base/err.h"

#define COPIERS_MAX 64u

struct copiers_job {
	size_t n;
	unsigned workers; /* 1 to COPIERS_MAX */
	enum err_code (*fn)(void *ctx, size_t i, struct err *err);
	void (*tick)(void *ctx); /* many times a second; NULL: never */
	void (*cancel)(void *ctx); /* once, after Ctrl-C: calls of fn that block end. NULL: they do */
	void *ctx;
};

MUST_CHECK enum err_code copiers_run(const struct copiers_job *job, struct err *err);

#endif
