/*
 * The end of LevelDB's logs: what a power cut leaves of the batch that was being written.
 *
 * LevelDB's repair reads logs without looking at checksums. The end of a log whose last batch was
 * not synced is garbage in parts, and what repair takes out of it may hide rows that were
 * acknowledged: same key, later, and of a wrong checksum. So that end is cut off before.
 *
 * Only an end is: bad bytes that no beginning of a valid record follows. Each batch is synced
 * before the next is written, so bad bytes with a record behind them were synced once: that is
 * damage, and left to repair.
 */
#ifndef TSDB_STORE_STORE_LOG_H
#define TSDB_STORE_STORE_LOG_H

#include "base/fs.h"

/* The offset at which the torn end of a log begins; the log's length if it has none. */
size_t store_log_whole(struct str log);
/* Cuts torn ends off all logs of a closed store; *cut: how many bytes. */
MUST_CHECK enum err_code store_cut_logs(
	struct fs *fs, const char *dir, uint64_t *cut, struct err *err);

#endif
