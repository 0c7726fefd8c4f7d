/*
 * A store in a directory of its own, at a time that stands still.
 *
 * Threads: one.
 */
#ifndef TESTS_TSDB_DEBUGINFO_STORE_WORLD_H
#define TESTS_TSDB_DEBUGINFO_STORE_WORLD_H

#include <sys/types.h>

#include "tsdb/debuginfo/store/store.h"

#define T0_S 1700000000

extern int64_t now_s; /* of `plain` */
extern const struct debuginfo_options plain;

char *dir_new(void); /* now_s is T0_S then */
void dir_gone(const char *dir);
struct debuginfo_id gnu(const char *text);
enum err_code begin(struct debuginfo_store *s, const struct debuginfo_id *id,
	struct debuginfo_upload **out, struct err *err);
/* From the path /bin/TEXT. */
enum err_code upload(struct debuginfo_store *s, const char *text, enum debuginfo_kind kind,
	const char *bytes, struct err *err);
/* The next of the queue becomes an index of these bytes. */
enum err_code extract(
	struct debuginfo_store *s, const char *index, enum debuginfo_quality q, struct err *err);
enum err_code extract_found(struct debuginfo_store *s, const char *index,
	const struct debuginfo_found *found, struct err *err);
/* "yes: REASON" */
const char *wants(struct debuginfo_store *s, const char *text, enum debuginfo_kind kind);
#define CHECK_WANTS(s, text, kind, want) CHECK_STR(str_of(wants(s, text, kind)), want)
size_t files_in(const char *dir, const char *suffix);
/* Changes a byte; `at` counts from the file's end. */
void spoil(const char *dir, const char *name, off_t at);

#endif
