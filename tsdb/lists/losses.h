/*
 * Losses: the list of what a data directory has lost, kept in it until a person accepts each entry.
 *
 * A loss names a time: every query that touches it says so in its warnings, after every restart.
 * Damage is often visible only once: LevelDB repairs a store, a mark is written again, and the next
 * start finds nothing wrong. So the code that finds a loss adds it here before it changes the files
 * that showed it.
 *
 * An entry is one (what, where): the same loss found again, at the next start or by the next
 * query, is that entry. `where` is the path below the data directory of what is damaged, and more
 * where one path can be damaged twice: "head/1700000000 after batch 98". An accepted entry is kept,
 * so that damage that stays on the disk is not reported again; it opens again when it is found with
 * a longer time or a higher count. An entry is removed when its whole time is older than the
 * retention.
 *
 * Units:     nanoseconds since 1970, (min, max]; 0 to LOSS_END is all time.
 * Errors:    ERR_IO (the entry stays in memory, and is written by the next call that writes),
 *            ERR_NOMEM, ERR_UNSUPPORTED (a later version's file).
 * Ownership: losses_open hands *out to the caller; what losses_each shows lives until it returns.
 * Threads:   any. No lock of the database is taken with one of this file's held.
 * Source:    tsdb/FORMAT.md, "Losses".
 */
#ifndef TSDB_LISTS_LOSSES_H
#define TSDB_LISTS_LOSSES_H

#include "base/fs.h"

#define LOSS_END INT64_MAX
#define LOSSES_MAX 4096u /* further ones are summed up in one entry */

/* Stored by number: new kinds go behind the others. */
enum loss_what {
	LOSS_WINDOW, /* a whole window of the head */
	LOSS_BLOCK, /* a whole block */
	LOSS_PROFILES, /* profiles, and values of numeric series beside them */
	LOSS_NUMBERS, /* values of numeric series */
	LOSS_SERIES, /* label sets of series: their rows cannot be found */
	LOSS_SYMBOLS, /* names of frames: rows that use them are left out */
	LOSS_SUMS, /* rollups */
	LOSS_DELETED, /* ranges that were deleted: their rows are seen again */
	LOSS_LEDGER, /* this list */
	LOSS_MORE, /* more than the list holds */
	LOSS_KINDS
};

struct loss {
	uint64_t number; /* from 1, never used again: people accept a loss by it */
	enum loss_what what;
	struct str where; /* at most 255 bytes count */
	struct str text; /* how it was found; one line */
	int64_t min_ns, max_ns;
	uint64_t count; /* how many are lost; 0: not known */
	int64_t found_ns; /* when first */
	bool accepted;
	struct str shard; /* of a union's list; else empty */
};
const char *loss_name(enum loss_what what); /* "window", "deleted": for programs */
/* One sentence for a person: what is lost, when, where, why. */
void loss_print(const struct loss *l, struct buf *out);

struct losses;

/*
 * Opens the list in `dir`. It has two copies; if one cannot be read it is made anew from the other.
 * If neither can be read, that is the first entry, over all time. read_only: nothing is written.
 */
MUST_CHECK enum err_code losses_open(
	struct fs *fs, const char *dir, bool read_only, struct losses **out, struct err *err);
void losses_close(struct losses *l); /* NULL is fine */

/* Adds a loss; durable on ERR_OK. number, found_ns and accepted are ignored. *fresh (may be NULL):
 * it is new, or larger than before. */
MUST_CHECK enum err_code losses_add(
	struct losses *l, const struct loss *found, bool *fresh, struct err *err);
/* Writes the list again if a write failed before. */
MUST_CHECK enum err_code losses_save(struct losses *l, struct err *err);

/* Calls fn with each entry whose time touches (min, max], by number, accepted ones too. fn returns
 * false to stop, and must not call this file. */
typedef bool (*loss_fn)(void *ctx, const struct loss *l);
void losses_each(struct losses *l, int64_t min_ns, int64_t max_ns, loss_fn fn, void *ctx);
size_t losses_open_n(struct losses *l); /* entries that are not accepted yet */
/* True if there is an entry, accepted or not, whose `where` is `path` or begins with it and a space
 * or slash. */
bool losses_has(struct losses *l, struct str path);

/* Accepts entries by number; n 0: all. *accepted: how many of them were open. ERR_NOT_FOUND names
 * an unknown number; nothing is accepted then. */
MUST_CHECK enum err_code losses_accept(
	struct losses *l, const uint64_t *numbers, size_t n, size_t *accepted, struct err *err);
/* Removes entries by number: what was lost is there again. */
MUST_CHECK enum err_code losses_settle(
	struct losses *l, const uint64_t *numbers, size_t n, struct err *err);
/* Removes entries that end at or before this time. */
MUST_CHECK enum err_code losses_forget(struct losses *l, int64_t before_ns, struct err *err);

/* ---- the file, for tests ---- */

/* Reads one copy: *entries in the arena. ERR_CORRUPT, ERR_UNSUPPORTED. */
MUST_CHECK enum err_code losses_decode(struct str bytes, const char *path, struct arena *a,
	uint64_t *generation, uint64_t *next_number, struct loss **entries, size_t *n, struct err *err);

#endif
