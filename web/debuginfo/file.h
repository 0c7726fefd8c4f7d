/*
 * The first bytes of a file that somebody uploads: is it ELF, and whose key do its notes name? Its
 * symbols are read elsewhere, by a process without rights; here headers and notes are looked at,
 * in place, and nothing is inflated. What is looked at is kept in memory, so it is one MiB. BOLT
 * puts headers behind that: then the sender's id counts, else what looks like one. The extraction
 * refuses a file with another build id than its key.
 *
 * Errors: ERR_INVALID, ERR_UNSUPPORTED: no ELF file, or none that is taken; it says what it seems
 *         to be.
 */
#ifndef WEB_DEBUGINFO_FILE_H
#define WEB_DEBUGINFO_FILE_H

#include "tsdb/debuginfo/store/store.h"

#define FILE_HEAD_BYTES_MAX (1u << 20)

struct debuginfo_file_ids {
	struct debuginfo_id gnu, go; /* len 0: the head has no such note */
	bool is_likely; /* gnu is what looks so: the headers that would say it are beyond the head */
};
/* goes_on: the file has more than the head. */
MUST_CHECK enum err_code debuginfo_file_ids(
	struct str head, bool goes_on, struct debuginfo_file_ids *out, struct err *err);
/*
 * The key of an upload. has_id: *id is what its sender says, and the file may not name another of
 * that kind; else *id becomes the file's: GNU's, or Go's. ERR_INVALID if there is none.
 */
MUST_CHECK enum err_code debuginfo_file_key(
	struct str head, bool goes_on, bool has_id, struct debuginfo_id *id, struct err *err);
/* The base name of the key's kind: "gnu", "go", "file". False: another word. */
bool debuginfo_kind_parse(struct str name, enum debuginfo_id_kind *out);

#endif
