/*
 * What a server is: mode, shard, bucket. Checks the flags about it, with each other and with the
 * configuration; combinations that make no sense are refused by name.
 *
 * Errors: ERR_INVALID.
 */
#ifndef CMD_EPIMETHEUS_MODES_H
#define CMD_EPIMETHEUS_MODES_H

#include "cmd/epimetheus/options.h"
#include "web/router/options.h"

struct config;

/* After the flags are parsed: sets mode, shard and the default of bucket_cache_path. */
MUST_CHECK enum err_code modes_check(struct options *o, struct err *err);
/* The same with a configuration that is to be used. c NULL: there is no file. */
MUST_CHECK enum err_code modes_check_config(
	const struct options *o, const struct config *c, struct err *err);

/* What a server of this mode never takes, and who does. */
struct web_elsewhere modes_elsewhere(const struct options *o);

#endif
