/*
 * Inspection: an index is looked at before anybody else reads it. Who wrote it had read a hostile
 * file, or it comes from another server.
 *
 * Errors:    ERR_CORRUPT: it is none; ERR_INVALID: it is of another binary; ERR_IO.
 * Threads:   a job belongs to one.
 */
#ifndef TSDB_DEBUGINFO_SERVICE_INSPECT_H
#define TSDB_DEBUGINFO_SERVICE_INSPECT_H

#include "tsdb/debuginfo/index/symindex.h"
#include "tsdb/debuginfo/store/store.h"

/*
 * A file of another binary would give wrong names. The index has the file's GNU build id; where it
 * has none Go's, which may be cut. Where it has none of the key's kind its sender is believed.
 */
MUST_CHECK enum err_code inspect_id(
	const struct debuginfo_id *id, const struct symindex *s, struct err *err);
/* The index that was written to the job's file. */
MUST_CHECK enum err_code inspect_job(
	const struct debuginfo_job *j, struct debuginfo_found *found, struct err *err);
/*
 * What is there goes into the new index, whose checksums are new: it has to be sound. What is
 * damaged is dropped.
 */
void inspect_older(struct debuginfo_job *j);

#endif
