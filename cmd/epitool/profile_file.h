/*
 * Profiles in files, of all formats that proto/any reads.
 *
 * Errors:    ERR_IO; any_decode's, with the file's name in front.
 * Ownership: *bytes belongs to the caller and outlives the profile, which lives in the arena.
 */
#ifndef CMD_EPITOOL_PROFILE_FILE_H
#define CMD_EPITOOL_PROFILE_FILE_H

#include "proto/any/any.h"

/* path "-": standard input. */
MUST_CHECK enum err_code profile_file_read(const char *path, struct buf *bytes, struct err *err);
MUST_CHECK enum err_code profile_file_decode(
	const char *path, struct str bytes, struct arena *a, struct any_file *out, struct err *err);

#endif
