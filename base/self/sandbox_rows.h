/*
 * Rows of a table of system calls, for sandbox.h. Only files with such a table include it: the
 * names are short.
 */
#ifndef BASE_SELF_SANDBOX_ROWS_H
#define BASE_SELF_SANDBOX_ROWS_H

#include <sys/syscall.h>

#include "base/self/sandbox.h"

#define CALL(name, why) \
	{ \
		__NR_##name, #name, why, SANDBOX_ALWAYS \
	}
#define WHERE(name, arg, mask, value, why) \
	{ \
		__NR_##name, #name, why, SANDBOX_ARG, arg, mask, value \
	}
#define OWN(name, arg, why) \
	{ \
		__NR_##name, #name, why, SANDBOX_OWN, arg \
	}
#define ABSENT(name, why) \
	{ \
		__NR_##name, #name, why, SANDBOX_ABSENT \
	}

#endif
