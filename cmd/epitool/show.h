/* The API's JSON answers as tables for people. Fields that another version may add are left out. */
#ifndef CMD_EPITOOL_SHOW_H
#define CMD_EPITOOL_SHOW_H

#include "base/str.h"

/* width: of the terminal, 0: none. ERR_INVALID: the answer is not JSON. */
MUST_CHECK enum err_code show_answer(
	struct str answer, size_t width, struct buf *out, struct err *err);

#endif
