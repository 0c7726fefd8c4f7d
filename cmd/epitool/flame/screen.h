/*
 * The terminal that a flame graph takes over: its alternate screen, without a cursor, keys one by
 * one. It is given back as it was on every end, also by a signal.
 *
 * Errors:    ERR_UNSUPPORTED: there is no terminal; ERR_IO.
 * Ownership: one at a time, as it belongs to the process.
 * Threads:   the main one.
 */
#ifndef CMD_EPITOOL_FLAME_SCREEN_H
#define CMD_EPITOOL_FLAME_SCREEN_H

#include "base/str.h"

MUST_CHECK enum err_code screen_open(struct err *err);
void screen_close(void); /* not open: fine */
void screen_size(uint32_t *width, uint32_t *height);
MUST_CHECK enum err_code screen_show(struct str drawn, struct err *err);

enum screen_event { SCREEN_INPUT, SCREEN_PAUSE, SCREEN_RESIZED, SCREEN_END };
/*
 * Waits for input, and appends it. SCREEN_PAUSE: there was none for a moment, so an Escape that
 * came last is a key; only with `brief`. SCREEN_END: a signal, or the terminal is gone.
 */
enum screen_event screen_wait(bool brief, struct buf *input);
int screen_signal(void); /* that ended the wait; 0: none */

#endif
