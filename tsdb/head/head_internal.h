/*
 * Windows of the head, the inside: opening a window's store, and finding out whether anything is
 * missing. A window is a LevelDB with two files beside it that say what must be in it:
 *
 *     <start>.acked  how much was acknowledged (head_mark.c)
 *     <start>.names  its small records a second time (head_names.c)
 *
 * Errors:  damage is no error of these functions: it is repaired or noted as a loss (db_lost), and
 *          the rest is served.
 * Threads: a window that is being opened belongs to one thread; else as each says.
 * Source:  tsdb/FORMAT.md, "Records", "Other files".
 */
#ifndef TSDB_HEAD_HEAD_INTERNAL_H
#define TSDB_HEAD_HEAD_INTERNAL_H

#include "tsdb/head/head.h"
#include "tsdb/head/keys.h"

/* ---- head_mark.c: what was acknowledged ---- */

struct head_mark {
	bool there;
	bool whole; /* it can be read; the rest is 0 else */
	bool rows_only; /* of an earlier version: only batches and rows are known */
	uint64_t identity;
	struct window_count count;
};
void head_write_mark(struct db *db, struct window *w, const struct window_count *c);
void head_read_mark(const struct window *w, struct head_mark *out);
/* The same from the file's bytes. False: they are damaged. */
bool head_parse_mark(int64_t start_ns, struct str bytes, struct head_mark *out);

/* ---- head_names.c: small records, a second time ---- */

struct head_name {
	struct str key, record; /* the record has its checksum */
};
struct names_file {
	struct buf bytes; /* the file */
	struct str records; /* of it */
	uint32_t *at; /* where they begin; ascending by key, each key once: its last record */
	size_t n;
	bool there;
	bool whole; /* read to its end */
	uint64_t identity; /* of the window; 0 also if the file's head cannot be read */
};
/* A missing or damaged file is not an error. */
MUST_CHECK enum err_code head_names_read(
	const struct window *w, struct names_file *out, struct err *err);
/* The same of the file's bytes, which live as long as *out, zeroed by the caller. */
MUST_CHECK enum err_code head_names_parse(
	int64_t start_ns, struct str bytes, struct names_file *out, struct err *err);
void head_names_release(struct names_file *n);
struct head_name head_names_at(const struct names_file *n, size_t i);
/* The first record of the kind, or of a later one; n: there is none. */
size_t head_names_first(const struct names_file *n, char kind);
/* False: it has none. */
bool head_names_find(const struct names_file *n, struct str key, struct head_name *out);
/* Records that the store has from now on, as store_batch_copies gives them. For the commit thread,
 * or while the window has no other user. */
void head_names_append(struct db *db, struct window *w, struct str copies);
/* Compares store and file. Records that the store lacks or cannot read are put back; if the file
 * lacks a record it is made anew from the store. */
struct names_healed {
	uint64_t put; /* records that were put back */
	bool same; /* store and file had the same whole records */
	struct err why; /* the damage of the store (ERR_OK: none) */
};
MUST_CHECK enum err_code head_names_heal(struct db *db, struct window *w,
	const struct names_file *n, struct names_healed *out, struct err *err);

/* ---- head_open.c: stores that are opened ---- */

struct window_opening;
struct window_meta;

/* Closes and opens the store of a window whose put failed with `failed`, and compares it with what
 * was acknowledged. */
MUST_CHECK enum err_code head_reopen(
	struct db *db, struct window *w, enum err_code failed, struct err *err);
/* At the start: puts a window in the list. A store that is not this directory's is set aside; an
 * empty one is removed. ERR_UNSUPPORTED: a newer program's, it stays as it is. */
MUST_CHECK enum err_code head_open_window(struct db *db, int64_t start_s, struct err *err);
/* The record `m` of the second copy. ERR_NOT_FOUND: it has none that is whole. */
MUST_CHECK enum err_code head_open_spare_meta(const struct window *w,
	const struct window_opening *o, struct window_meta *out, struct err *err);

/* ---- aside.c: stores that were set aside, and newer ones ---- */

/* At the start, after all windows and blocks were opened: takes windows back that an older program
 * set aside; those that do not fit become losses. */
MUST_CHECK enum err_code head_take_back(struct db *db, struct err *err);

/* ---- head_check.c: what is there, against what was acknowledged ---- */

struct window_found {
	struct window_count count; /* whole records */
	uint64_t bad; /* records and pages that cannot be read */
	uint64_t homeless; /* rows and values whose series is not known */
	struct err first; /* why the first of the bad ones cannot be read */
};
/* Reads every row, value and record of symbols. */
MUST_CHECK enum err_code head_recount(
	struct db *db, struct window *w, struct window_found *out, struct err *err);
/* Fewer than `acked` were found: each kind is a loss, and logged. rows_only: nothing else is known.
 * False: nothing is lost. */
bool head_tell_lost(struct db *db, struct window *w, const struct window_count *acked,
	bool rows_only, const struct window_found *found, const struct err *why);

/* ---- head_symbols.c ---- */

/* The number of the next symbol record of a job's epoch in this store. */
MUST_CHECK enum err_code head_next_symbol_record(
	struct store *s, uint32_t job, uint32_t epoch, uint32_t *out, struct err *err);
/* Symbol records of p's epoch, from the number *next on, into p, whose lock is held; *next goes
 * behind the last. ERR_CORRUPT, ERR_EXISTS: as
 * partition_need_window. */
MUST_CHECK enum err_code head_load_symbols(
	struct db *db, struct window *w, struct partition *p, uint32_t *next, struct err *err);
/* Reserves the ids that rows of the epoch use: for a window whose symbols were lost. */
MUST_CHECK enum err_code head_reserve_ids(
	struct db *db, struct window *w, struct partition *p, struct err *err);

/* ---- head_load.c ---- */

/* Facts about a window that is being opened. */
struct window_opening {
	struct head_mark mark;
	struct names_file names;
	bool names_same; /* as its store */
	bool damaged; /* its store was repaired, or something in it cannot be read */
	struct err why; /* the first such thing */
};
void head_suspect(struct window_opening *o, const struct err *why);
MUST_CHECK enum err_code head_load(
	struct db *db, struct window *w, struct window_opening *o, struct err *err);
/* Small records into memory one by one, jobs before their series, series before their types. The
 * window may be in the list already. */
struct head_loading;
MUST_CHECK enum err_code head_load_open(
	struct db *db, struct window *w, struct head_loading **out, struct err *err);
MUST_CHECK enum err_code head_load_record(
	struct head_loading *l, struct str key, struct str value, struct err *err);
/* Closes it in any case; loaded is all on ERR_OK only. */
MUST_CHECK enum err_code head_load_close(struct head_loading *l, struct err *err);
bool head_parse_count(struct str value, struct window_count *out);
MUST_CHECK enum err_code head_read_count(
	struct window *w, struct window_count *out, struct err *err);
struct window_meta {
	int64_t start_ns, end_ns;
	uint64_t identity;
	bool links; /* rows may have links */
};
MUST_CHECK enum err_code head_read_meta(struct store *s, struct window_meta *out, struct err *err);
MUST_CHECK enum err_code head_parse_meta(
	struct str value, const char *dir, struct window_meta *out, struct err *err);
void head_encode_meta(const struct window *w, bool links, struct buf *out);
MUST_CHECK enum err_code head_write_meta(struct db *db, struct window *w, struct err *err);
/* The window's meta, from now on one of rows with links, into a batch of records of the window. */
void head_put_links_meta(const struct window *w, struct buf *value, struct store_batch *b);

#endif
