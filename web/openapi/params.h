/*
 * Parameters that several operations share, as rows of their tables.
 *
 * Source: web/router/operation.h.
 */
#ifndef WEB_OPENAPI_PARAMS_H
#define WEB_OPENAPI_PARAMS_H

#include "web/router/operation.h"

#define PARAMS(...) \
	(const struct operation_param[]) \
	{ \
		__VA_ARGS__, \
		{ \
			0 \
		} \
	}
#define BODIES(...) \
	(const struct operation_body[]) \
	{ \
		__VA_ARGS__, \
		{ \
			0 \
		} \
	}
#define ANSWERS(...) \
	(const struct operation_answer[]) \
	{ \
		__VA_ARGS__, \
		{ \
			0 \
		} \
	}
#define ANSWER(type, help) ANSWERS({ 200, NULL, type, help })

#define PARAM_OF_QUERY(text) \
	{ \
		"query", PARAM_QUERY, PARAM_REQUIRED, NULL, NULL, "The query.", text \
	}
#define PARAM_TIMEOUT \
	{ \
		"timeout", PARAM_DURATION, 0, NULL, NULL, \
			"The query ends after so long; at most `--query.timeout`.", NULL \
	}
#define PARAM_LIMIT(what) \
	{ \
		"limit", PARAM_UINT, 0, NULL, "0", "At most so many " what "; 0: all.", NULL \
	}
#define PARAMS_WINDOW \
	{ "start", PARAM_TIME, 0, NULL, "the oldest data", "Begin of the window.", NULL }, \
	{ \
		"end", PARAM_TIME, 0, NULL, "the newest data", "End of the window.", NULL \
	}
#define PARAM_MATCH(help) \
	{ \
		"match[]", PARAM_SELECTOR, PARAM_REPEATED, NULL, NULL, help, NULL \
	}

#endif
