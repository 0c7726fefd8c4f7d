/* A question answered in this process: the database read-only, the engine, the API's renderers. */
#ifndef CMD_EPITOOL_LOCAL_H
#define CMD_EPITOOL_LOCAL_H

#include "cmd/epitool/ask.h"

MUST_CHECK enum err_code local_ask(
	const struct question *q, const char *text, struct buf *answer, struct err *err);

#endif
