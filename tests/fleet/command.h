/*
 * The commands of the program `fleet`. Each gets its arguments and prints to standard output; main
 * prints the error.
 */
#ifndef TESTS_FLEET_COMMAND_H
#define TESTS_FLEET_COMMAND_H

#include "base/err.h"
#include "base/self/flags.h"

/*
 * Parses a command's flags; --help prints them and ends the program. At most args_max words that
 * are no flags.
 */
MUST_CHECK enum err_code command_flags(struct flag *flags, size_t n, const char *about, int argc,
	char **argv, const char **args, size_t args_max, size_t *args_n, struct err *err);

MUST_CHECK enum err_code command_fit(int argc, char **argv, struct err *err);
MUST_CHECK enum err_code command_floor(int argc, char **argv, struct err *err);
MUST_CHECK enum err_code command_write(int argc, char **argv, struct err *err);
MUST_CHECK enum err_code command_push(int argc, char **argv, struct err *err);
MUST_CHECK enum err_code command_speed(int argc, char **argv, struct err *err);

#endif
