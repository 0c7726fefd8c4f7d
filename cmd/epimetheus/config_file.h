/*
 * The configuration: a file, with what is not used here as warnings in the log; or the built-in
 * one.
 */
#ifndef CMD_EPIMETHEUS_CONFIG_FILE_H
#define CMD_EPIMETHEUS_CONFIG_FILE_H

#include "cmd/epimetheus/options.h"
#include "scrape/config/config.h"
#include "tsdb/db.h"
#include "web/web.h"

/* One message has the first error and the number of the others. log: warnings are logged. */
MUST_CHECK enum err_code config_file_load(
	const struct options *o, bool log, struct config **out, struct err *err);
/* It scrapes the server itself: `web` at listen_address. */
MUST_CHECK enum err_code config_file_load_builtin(
	const char *listen_address, struct web *web, struct config **out, struct err *err);

/* The database sums over instances of a job, so it needs the labels that tell them apart. */
MUST_CHECK enum err_code config_file_tell_labels(
	const struct config *c, struct db *db, struct err *err);

#endif
