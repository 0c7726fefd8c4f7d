/*
 * Mirror: a copy of the head's stores for reading without writing to the original. LevelDB cannot
 * open a directory without writing to it. So tables, which never change, become symbolic links in a
 * temporary directory, and the rest, which is small, is copied. It works beside a running server
 * too, and then shows one moment of it: the links lead to files that are held open, so a table
 * that the server replaces meanwhile stays until the mirror is closed.
 *
 * Errors:    ERR_IO, ERR_NOMEM, ERR_NOT_FOUND (no such directory).
 * Ownership: mirror_open hands *out to the caller.
 * Threads:   one at a time.
 */
#ifndef TSDB_STORE_MIRROR_H
#define TSDB_STORE_MIRROR_H

#include "base/err.h"

struct mirror;

/* *head_dir (malloc) is replaced by the mirror's path, also malloc. On an error it stays as it was.
 */
MUST_CHECK enum err_code mirror_open(char **head_dir, struct mirror **out, struct err *err);
void mirror_close(struct mirror *m); /* removes it; NULL is fine */

#endif
