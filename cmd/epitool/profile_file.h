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
/* The same, and folded text, which a name that ends in .folded or .collapsed announces. */
MUST_CHECK enum err_code profile_file_decode_any(
	const char *path, struct str bytes, struct arena *a, const struct pprof **out, struct err *err);
/*
 * The name under which such a profile is scraped: process_cpu, memory, goroutine, ... Block and
 * mutex profiles look the same: the name of the file decides if it has one of these words. NULL:
 * unknown.
 */
const char *profile_name_guess(const struct pprof *p, const char *path);

#endif
