/*
 * Waiting: a line with the elapsed time on a terminal's standard error, erased at the end, and what
 * Ctrl-C sets.
 *
 * Threads: the line is written by a thread of its own; the calls belong to the main thread.
 */
#ifndef CMD_EPITOOL_PROGRESS_H
#define CMD_EPITOOL_PROGRESS_H

#include <stdatomic.h>

extern atomic_bool interrupted; /* SIGINT or SIGTERM came after interrupt_catch */
void interrupt_catch(void); /* a second one ends the program */
/* As a shell says it of a program that a signal ended, where one came and it failed; else as is. */
int interrupt_exit_code(int rc);

/* Nothing is shown before a second has passed, and nothing where standard error is no terminal. */
void progress_begin(const char *what);
void progress_end(void);

#endif
