/*
 * Table: an immutable sorted file of keys and values in LevelDB's table format, written once and
 * read through a range reader.
 *
 * Opening costs two reads: the footer and the index page. Each page has a checksum that is verified
 * when it is read; pages are cached within the budget of the store cache. A page that is damaged
 * makes a LevelDB iterator pass over it silently, so every answer here comes with a status.
 *
 * The bytes behind the last data page (index, footer) exist twice: the *spare* is a copy that the
 * writer hands out and that the caller keeps in another file. If the end is damaged or cut off, the
 * spare makes all pages readable that are whole.
 *
 * Units:     sizes in bytes.
 * Errors:    ERR_CORRUPT (a checksum, an order), ERR_IO, ERR_NOMEM; ERR_UNAVAILABLE (and opening
 *            ERR_TIMEOUT, ERR_CANCELED): the range reader does not answer. Messages of reading
 * begin with its name. Ownership: the table takes its range reader over, also when opening fails.
 * Iterators end before their table; what they show lives until their next step. Threads:   a table
 * by any number; iterators and writers by one at a time. Source:    LevelDB, doc/table_format.md;
 * tsdb/FORMAT.md, "Tables".
 */
#ifndef TSDB_STORE_TABLE_H
#define TSDB_STORE_TABLE_H

#include "base/fs.h"
#include "tsdb/store/range.h"
#include "tsdb/store/store.h"

struct table;
struct table_iter;
struct table_writer;

#define TABLE_PAGE_BYTES (16u << 10) /* a larger value has a separate page */

/*
 * spare: as table_writer_finish gave it; empty: none. The end of the table is tried first, then the
 * spare; *damaged says why (ERR_OK: all is well). It also says if the end is whole and the spare is
 * damaged or another table's: nothing is lost yet.
 */
MUST_CHECK enum err_code table_open(struct range_reader *r, struct str spare,
	struct store_cache *cache, struct table **out, struct err *damaged, struct err *err);

/*
 * The same without a read: the end is the spare's, which is of a table of r->bytes bytes, else
 * ERR_CORRUPT. Whose table it is is asked before the first page behind the page at 0 is read: if fn
 * fails, so does each read, and after ERR_UNAVAILABLE the next one asks again. fn may read what the
 * page at 0 has. NULL: nobody asks.
 */
struct table_guard {
	enum err_code (*fn)(void *ctx, struct table *t, struct err *err);
	void *ctx;
};
MUST_CHECK enum err_code table_open_by_spare(struct range_reader *r, struct str spare,
	const struct table_guard *guard, struct store_cache *cache, struct table **out,
	struct err *err);
/* The end in the file is read and compared with the one in use. ERR_CORRUPT: they differ. */
MUST_CHECK enum err_code table_check_end(const struct table *t, struct err *err);
void table_close(struct table *t); /* NULL is fine */

/* NULL: out of memory. scan: pages are read once and not kept in the cache. */
struct table_iter *table_iter_open(struct table *t, bool scan);
void table_iter_close(struct table_iter *it); /* NULL is fine */
/* The first at or after it; "": the first of all. */
void table_iter_seek(struct table_iter *it, struct str key);
void table_iter_next(struct table_iter *it);
bool table_iter_valid(const struct table_iter *it);
struct str table_iter_key(const struct table_iter *it);
struct str table_iter_value(const struct table_iter *it);
/* ERR_OK, or ERR_CORRUPT: damage was passed over since it was opened. ERR_UNAVAILABLE: what could
 * not be read now was passed over. */
MUST_CHECK enum err_code table_iter_status(const struct table_iter *it, struct err *err);
/* One value, appended to *out; ERR_NOT_FOUND (only where the table is whole there). */
MUST_CHECK enum err_code table_get(
	struct table *t, struct str key, struct buf *out, struct err *err);
/* Bytes before a key, whether it is there or not; for estimates. */
uint64_t table_offset(const struct table *t, struct str key);
/* Pages from the key's to that of the key `to`, and `more` bytes behind its begin, are read soon:
 * the disk can begin. */
void table_expect(struct table *t, struct str key, struct str to, uint64_t more);

/* ---- writing ---- */

struct table_written {
	uint64_t bytes; /* of the file */
	uint64_t hash; /* XXH3 of the file */
};

MUST_CHECK enum err_code table_writer_open(
	struct fs *fs, const char *path, struct table_writer **out, struct err *err);
/* Keys ascend strictly: ERR_INVALID otherwise; over 1 GiB: ERR_LIMIT. The writer can go on then. */
MUST_CHECK enum err_code table_writer_put(
	struct table_writer *w, struct str key, struct str value, struct err *err);
/* The next key begins a page. */
void table_writer_end_page(struct table_writer *w);
/* Written out and synced; spare gets the bytes of index and footer. The writer is to be closed. */
MUST_CHECK enum err_code table_writer_finish(
	struct table_writer *w, struct table_written *out, struct buf *spare, struct err *err);
void table_writer_close(struct table_writer *w); /* NULL is fine; unfinished: the file stays */

#endif
