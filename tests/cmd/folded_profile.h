/* A profile out of folded text, for tests of what is made of profiles. */
#ifndef TESTS_CMD_FOLDED_PROFILE_H
#define TESTS_CMD_FOLDED_PROFILE_H

#include "proto/folded/folded.h"

/* NULL: it was refused. */
static inline const struct pprof *folded_profile(
	struct arena *a, const char *text, const char *type, const char *unit)
{
	const struct folded_meaning meaning = {
		.type = str_of(type), .unit = str_of(unit), .scale = 1
	};
	struct folded_profile *v = NULL;
	struct err err;
	uint32_t n = 0;

	return folded_decode(
			   a, FOLDED_STACKS, str_of(text), &meaning, &pprof_limits_default, &v, &n, &err) ?
		NULL :
		v[0].profile;
}

#endif
