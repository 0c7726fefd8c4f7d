/*
 * File discovery: documents of target groups, found by paths and patterns.
 *
 * A document that cannot be read or parsed keeps the groups it gave before; one that is gone gives
 * none.
 *
 * Errors:    problems with a document are logged and counted here; ERR_NOMEM, ERR_LIMIT for the
 *            provider itself.
 * Threads:   one at a time.
 * Source:    Prometheus's file_sd; __meta_filepath.
 */
#ifndef DISCOVERY_FILE_SD_H
#define DISCOVERY_FILE_SD_H

#include "discovery/discovery.h"

struct file_sd;

/* Copies the configuration. Nothing is read yet. */
MUST_CHECK enum err_code file_sd_open(const struct file_sd_config *c, struct file_sd **out,
	struct err *err);
void file_sd_close(struct file_sd *f); /* NULL is fine */
int64_t file_sd_refresh_interval_ns(const struct file_sd *f);

/* Finds and reads the documents again. */
void file_sd_refresh(struct file_sd *f);
/* What `old` knows of the same paths is the fallback of f's first refresh. */
void file_sd_inherit(struct file_sd *f, const struct file_sd *old);

/* The documents read, ascending by path; i from 0, NULL at the end. */
const struct groups *file_sd_document(const struct file_sd *f, size_t i);

/* The directories in which a change may matter; i from 0, NULL at the end. */
const char *file_sd_dir(const struct file_sd *f, size_t i);
/* Whether a change of the entry `name` in the i-th of them may matter. */
bool file_sd_concerns(const struct file_sd *f, size_t i, struct str name);

#endif
