/*
 * Rights that the server gives up: capabilities, writing outside the data directory, system calls
 * it never makes. If the kernel or a container does not allow a limit, the server logs it and goes
 * on without it.
 *
 * Of the capabilities one stays, if there were any:
 * - CAP_DAC_READ_SEARCH reads files that belong to others, and passes through directories of
 *   others. A reload may name new files, as keys and tokens whose user or group is another, and a
 *   configuration may lie in the home of somebody who called sudo. Landlock does not limit reading
 *   for the same reason. open_by_handle_at, which this right would allow, ends the process.
 * - CAP_DAC_OVERRIDE instead, where the data directory or the cache has something that is another
 *   user's (sudo in a checkout whose owner ran the server before): the database writes into what is
 *   there. It is also kept where the other one is missing, as in containers of Docker.
 * No other is needed once the ports are bound: a reload opens none, files are never given away,
 * priorities only fall, the profiler looks at its own process, hard links are made of files that
 * can be read and written.
 *
 * Capabilities belong to threads. The database starts threads while it takes the lock of its
 * directory. So limits_open comes right before that, when ports are bound and directories made:
 * what stays suffices to open them, as the server goes on to make files there all its life. The
 * children that read debug data drop all of theirs themselves (tsdb/debuginfo/store).
 *
 * System calls are limited once the ports answer, before the storage is opened: a start may wait
 * for minutes, and is asked meanwhile. So the table has what opening a database needs as well.
 *
 * Threads: limits_open before the first thread is started; limits_calls covers all that run.
 */
#ifndef CMD_EPIMETHEUS_LIMITS_H
#define CMD_EPIMETHEUS_LIMITS_H

#include "base/self/sandbox.h"

#define LIMITS_SIGNAL SIGUSR1 /* to this process: a call was refused, sandbox_report says which */

extern const struct sandbox_profile limits_server;

/*
 * Makes these directories; NULL and empty ones are passed over. Then drops capabilities, and files
 * are written below these directories alone.
 */
void limits_open(const char *data_dir, const char *cache_dir);
void limits_calls(void);

#endif
