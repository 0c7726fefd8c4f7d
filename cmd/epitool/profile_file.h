/*
 * Profiles in files: as go test and net/http/pprof write them, gzipped or not.
 *
 * Errors:    ERR_IO; pprof_decode's, with the file's name in front.
 * Ownership: *bytes belongs to the caller and outlives the profile, which lives in the arena.
 */
#ifndef CMD_EPITOOL_PROFILE_FILE_H
#define CMD_EPITOOL_PROFILE_FILE_H

#include "proto/pprof.h"

/* path "-": standard input. */
MUST_CHECK enum err_code profile_file_read(const char *path, struct buf *bytes, struct err *err);
MUST_CHECK enum err_code profile_file_decode(
	const char *path, struct str bytes, struct arena *a, const struct pprof **out, struct err *err);
/*
 * The same, and all that proto/any reads. A name that ends in .folded or .collapsed announces
 * folded text. Of a recording of Java it is the CPU profile, else the first one.
 */
MUST_CHECK enum err_code profile_file_decode_any(
	const char *path, struct str bytes, struct arena *a, const struct pprof **out, struct err *err);

#endif
