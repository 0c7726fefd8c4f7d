/* A question answered in this process: the database read-only, the engine, the API's renderers. */
#ifndef CMD_EPITOOL_LOCAL_H
#define CMD_EPITOOL_LOCAL_H

#include "cmd/epitool/ask.h"

/* Appends the result's warnings to `said` (ask_add_notice). */
MUST_CHECK enum err_code local_ask(const struct question *q, const char *text, struct buf *answer,
	struct buf *said, struct err *err);

#endif
