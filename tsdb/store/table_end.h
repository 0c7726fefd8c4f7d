/*
 * The end of a table: its index page and footer, and the copy of them that is kept elsewhere.
 *
 * Errors:    ERR_CORRUPT, the message begins with `name`.
 * Ownership: what is read points into the bytes that were given.
 */
#ifndef TSDB_STORE_TABLE_END_H
#define TSDB_STORE_TABLE_END_H

#include "base/err.h"
#include "base/str.h"

#define TABLE_FOOTER_BYTES 48u
#define TABLE_TRAILER_BYTES 5u /* behind each page: how it is compressed (0: not), its checksum */
#define TABLE_RECORD_BYTES_MAX (1u << 30) /* LevelDB's pages count in 32 bits */

struct table_handle {
	uint64_t offset, size; /* of a page, without its trailer */
};

/* footer: the last TABLE_FOOTER_BYTES of a file of `bytes`. The index page ends where it begins. */
MUST_CHECK enum err_code table_read_footer(const char *footer, uint64_t bytes,
	struct table_handle *meta, struct table_handle *index, const char *name, struct err *err);
/* Checks the index page. page: without trailer, its checksum verified. */
MUST_CHECK enum err_code table_check_index(
	struct str page, struct table_handle meta, const char *name, struct err *err);

/* bytes: of the table; end: its last, from the index page on. Appended to *out. */
void table_spare_make(struct str end, uint64_t bytes, struct buf *out);
/* False where it is damaged. */
bool table_spare_read(struct str spare, struct str *end, uint64_t *bytes);

#endif
