/*
 * Checks of a configuration that need more than the room that reads it: what is read is judged the
 * same by the server, `epitool check config` and `epitool convert`.
 *
 * Errors:    ERR_INVALID with the place in the file; kept in the problems too.
 * Ownership: problems are the caller's; none is sorted in.
 * Threads:   one.
 */
#ifndef CMD_SHARED_CONFIG_CHECK_H
#define CMD_SHARED_CONFIG_CHECK_H

#include "scrape/config/config.h"

/* Warns of profiles that are called as queries call others for short. */
void config_check_names(const struct config *c, struct yaml_problems *problems);
/* config_check_names, and the section `bucket`. */
MUST_CHECK enum err_code config_check_parsed(
	const struct config *c, struct yaml_problems *problems, struct err *err);

#endif
