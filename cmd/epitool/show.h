/*
 * The API's JSON answers as tables for people. What a server of another version may add is left
 * out.
 */
#ifndef CMD_EPITOOL_SHOW_H
#define CMD_EPITOOL_SHOW_H

#include "base/str.h"

/* width: of the terminal, 0: none. ERR_INVALID where the answer is not JSON. */
MUST_CHECK enum err_code show_answer(
	struct str answer, size_t width, struct buf *out, struct err *err);

#endif
