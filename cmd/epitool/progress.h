/*
 * Waiting: a line with the elapsed time on a terminal's standard error, erased at the end, and the
 * flag that Ctrl-C sets.
 *
 * Threads: a separate thread writes the line; the calls belong to the main thread.
 */
#ifndef CMD_EPITOOL_PROGRESS_H
#define CMD_EPITOOL_PROGRESS_H

#include <stdatomic.h>
#include <stdint.h>

extern atomic_bool interrupted; /* SIGINT or SIGTERM came after interrupt_catch */
void interrupt_catch(void); /* a second one ends the program */
/* 128 + the signal's number if a signal came and the command failed; else rc itself. */
int interrupt_exit_code(int rc);

/* Shows nothing in the first second, and nothing if standard error is no terminal. */
void progress_begin(const char *what);
void progress_end(void);
/* How far it is, from any thread; total 0: not known. */
void progress_set(uint64_t done, uint64_t total);
/* Sleeps; Ctrl-C ends it early. */
void progress_wait(int64_t ns);

#endif
