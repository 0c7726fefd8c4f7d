/*
 * A binary and its debug files as the body of a request: a bundle, read from the files piece by
 * piece whenever it is sent. One other file is open at a time.
 *
 * Errors:    of open: ERR_NOMEM, ERR_LIMIT; of read: ERR_IO, and a file that has changed.
 * Ownership: the binary and the files outlive the body.
 * Source:    tsdb/debuginfo/elf/bundle.h
 */
#ifndef CMD_EPITOOL_DEBUGINFO_BUNDLE_BODY_H
#define CMD_EPITOOL_DEBUGINFO_BUNDLE_BODY_H

#include "cmd/epitool/debuginfo/debug_files.h"

struct bundle_body_piece {
	const struct debug_file *file; /* NULL: the binary, the first piece; the table, the last */
	uint64_t at; /* where it begins; zero bytes are before it */
	uint64_t bytes;
};

struct bundle_body {
	uint64_t bytes; /* of all */
	int binary_fd, fd;
	size_t open; /* the piece of fd, if there is one */
	size_t pieces_n;
	struct bundle_body_piece *pieces;
	struct buf table;
};

/* files NULL: the binary alone. */
MUST_CHECK enum err_code bundle_body_open(struct bundle_body *b, const struct native_file *binary,
	const struct debug_files *files, struct err *err);
/* Writes n bytes from `at` on, which are all in the body. */
MUST_CHECK enum err_code bundle_body_read(
	struct bundle_body *b, uint64_t at, char *to, size_t n, struct err *err);
void bundle_body_close(struct bundle_body *b);

#endif
