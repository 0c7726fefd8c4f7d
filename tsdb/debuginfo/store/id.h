/*
 * The key of debug data: what a profile says of a binary, so that its symbols are found.
 *
 * A GNU build id has 2 to 40 hexadecimal digits, a file id of the eBPF profiler 32; both are kept
 * in lower case. A Go build id is text of its linker. A stem is the part of a file name that holds
 * a key: "gnu-3f5e", "go-" and "file-" with hexadecimal digits, so that no key leaves its directory
 * and none depends on the case of names.
 *
 * Errors:  ERR_INVALID: no such key.
 * Threads: values.
 * Source:  Pyroscope's debuginfo.v1alpha1 (GNU build ids); OpenTelemetry's attributes
 *          process.executable.build_id.{gnu,go,htlhash}
 */
#ifndef TSDB_DEBUGINFO_STORE_ID_H
#define TSDB_DEBUGINFO_STORE_ID_H

#include "base/str.h"

enum debuginfo_id_kind { DEBUGINFO_GNU, DEBUGINFO_GO, DEBUGINFO_FILE, DEBUGINFO_ID_KINDS };

#define DEBUGINFO_ID_BYTES_MAX 100

/* Made by debuginfo_id_init or debuginfo_id_of_stem; unused bytes are 0. */
struct debuginfo_id {
	unsigned char kind, len;
	char text[DEBUGINFO_ID_BYTES_MAX];
};

MUST_CHECK enum err_code debuginfo_id_init(
	struct debuginfo_id *id, enum debuginfo_id_kind kind, struct str text, struct err *err);
/* Of the bytes that a file has. False: no key, and *id is 0. */
MUST_CHECK bool debuginfo_id_of_bytes(
	struct debuginfo_id *id, enum debuginfo_id_kind kind, struct str bytes);
/*
 * What a profile says, without the kind: Go's have slashes, 32 digits are a file id, others GNU's.
 * It is a guess: a GNU build id may have 32 digits. False: no key.
 */
MUST_CHECK bool debuginfo_id_guess(struct str text, struct debuginfo_id *out);
static inline struct str debuginfo_id_text(const struct debuginfo_id *id)
{
	return (struct str){ id->text, id->len };
}
bool debuginfo_id_eq(const struct debuginfo_id *a, const struct debuginfo_id *b);
const char *debuginfo_id_kind_name(enum debuginfo_id_kind kind); /* "gnu", "go", "file" */
void debuginfo_id_stem(const struct debuginfo_id *id, struct buf *out);
/* False: not what debuginfo_id_stem writes. */
MUST_CHECK bool debuginfo_id_of_stem(struct str stem, struct debuginfo_id *out);

#endif
