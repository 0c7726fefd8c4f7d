/*
 * Names of a fleet's functions.
 */
#ifndef TESTS_FLEET_NAMES_H
#define TESTS_FLEET_NAMES_H

#include "tests/fleet/internal.h"

struct fleet_names {
	char name[192], file[192];
	int64_t start_line;
};

void fleet_function_name(const struct fleet *f, uint32_t service, uint32_t function,
	struct fleet_names *out);

#endif
