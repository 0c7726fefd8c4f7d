/*
 * Rights that the server gives up: writing outside the data directory, system calls it never makes.
 * If the kernel or a container does not allow a limit, the server logs it and goes on without it.
 *
 * Threads: limits_files before the first thread is started; limits_calls when all parts are open.
 */
#ifndef CMD_EPIMETHEUS_LIMITS_H
#define CMD_EPIMETHEUS_LIMITS_H

#include "base/self/sandbox.h"

#define LIMITS_SIGNAL SIGUSR1 /* to this process: a call was refused, sandbox_report says which */

extern const struct sandbox_profile limits_server;

/* Files are written below these directories alone; NULL and empty ones are passed over. */
void limits_files(const char *data_dir, const char *cache_dir);
void limits_calls(void);

#endif
