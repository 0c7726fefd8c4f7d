/*
 * Extract: the bytes of an ELF file become the index of its symbols (tsdb/debuginfo/index). The
 * bytes are hostile: a child process runs this (tsdb/debuginfo/store/extractor.h, an extract_fn).
 *
 * Behind the binary may be the files of its debug data (tsdb/debuginfo/elf/bundle.h): .dwo files
 * and packages, which are found by the ids of units, and dwz's common file, which must have the id
 * that the binary names. Such a file is left out if it is damaged, or another one; the binary's own
 * data still count. A bundle whose table is damaged is refused as a whole: what was sent is not
 * what arrived.
 *
 * What the file has is read: its symbol tables, Go's table of functions, DWARF; for each address
 * the best counts. A part that is damaged or beyond a limit is left out if another has names.
 * Files of debug data alone will do, and stripped ones, which have few names.
 *
 * older: the index of other files of the same binary; "": there is none. What it says is kept where
 * this file says nothing as good. One that is damaged is left out. Where it is beyond a limit with
 * this file, and this file is no better, ERR_LIMIT says so.
 *
 * symindex_build_id is then the GNU build id as hexadecimal digits in lower case; else Go's build
 * id; else "". One longer than SYMINDEX_BUILD_ID_MAX is cut.
 *
 * Errors:    ERR_INVALID: not ELF, and what it is instead; damaged, also the bundle's table; no
 *            part has a name ("ELF: it has no symbols", or why its parts cannot be read).
 *            ERR_UNSUPPORTED: a core dump, an object file, big-endian. ERR_LIMIT, ERR_NOMEM.
 *            With ERR_OK err's text says what was left out first and why, or how many units of
 *            split DWARF were not sent; "": nothing is missing.
 * Ownership: the index is written behind *out's bytes.
 * Threads:   any number, each with its own input.
 */
#ifndef TSDB_DEBUGINFO_EXTRACT_EXTRACT_H
#define TSDB_DEBUGINFO_EXTRACT_EXTRACT_H

#include "tsdb/debuginfo/index/symindex.h"

MUST_CHECK enum err_code debuginfo_extract(
	struct str input, struct str older, struct buf *out, struct err *err);
/* The same with other limits than symindex_limits_default. */
MUST_CHECK enum err_code debuginfo_extract_limited(struct str input, struct str older,
	const struct symindex_limits *l, struct buf *out, struct err *err);

#endif
