/*
 * The inside of blocks: keys, the open block, and what reader and writer share.
 *
 * Keys of rollups.ldb are in the order in which a block is written: rollups as series and groups
 * come, then what is known when all have come. `spare` is a table too: it holds the small records
 * under the same keys, and the ends of both tables, so that a page of index that is damaged in one
 * place is read in the other.
 *
 * Errors:  ERR_CORRUPT names the file.
 * Threads: an open block by any number; struct block_iter, struct index_iter by one.
 * Source:  tsdb/FORMAT.md, "Blocks".
 */
#ifndef TSDB_BLOCK_BLOCK_INTERNAL_H
#define TSDB_BLOCK_BLOCK_INTERNAL_H

#include "base/thread.h"
#include "tsdb/block/block.h"
#include "tsdb/rollup/spill.h"

#define BLOCK_VERSION_STREAMS 4 /* of blocks that have chunks with streams */
#define BLOCK_VERSION_LINKS 3 /* of others that have links */
#define BLOCK_VERSION 2 /* of others */
#define BLOCK_VERSION_UNNAMED 1 /* tables do not say whose they are; read, and not written anew */
#define BLOCK_META_BYTES_MAX (16u << 20)
#define BLOCK_HEADS_MAX (1u << 18)
#define BLOCK_PARTITIONS_MAX (1u << 20)
#define BLOCK_PAGE_RAW_MAX \
	(64u << 20) /* a page of symbols, unpacked; a string may be this long \
				 */

/* First byte of a key. */
enum block_key_kind {
	KEY_IDENTITY = 'A', /* in each table: the block's ULID; then, with the file's name, nothing */
	KEY_ROLLUP_SERIES = 'a',
	KEY_ROLLUP_GROUP = 'b',
	KEY_FUNCTIONS = 'c',
	KEY_GROUP = 'd',
	KEY_NUMBERS = 'N', /* chunks of numeric series: written first */
	KEY_NAME = 'e', /* a label's name: series that have it */
	KEY_VALUE = 'f', /* name and value: series that have it */
	KEY_END = 'i', /* in `spare`: index and footer of a table, by its file's name */
	KEY_META = 'm',
	KEY_PARTITION = 'p',
	KEY_ROWS = 'r', /* in rows.ldb */
	KEY_SERIES = 's',
	KEY_SYMBOLS = 'y',
	KEY_LINKS = 't', /* in rows.ldb */
};

#define BLOCK_KEY_MAX 24
#define BLOCK_KEY_ID_BYTES 5u /* kind and id, which every key of a series begins with */
struct block_key {
	char at[BLOCK_KEY_MAX];
	size_t len;
};

/* KIND id be32; KIND id be32, level, step be64; 'r' series be32, last be64, first be64. */
struct block_key block_key_id(enum block_key_kind kind, uint32_t id);
struct block_key block_key_rollup(
	enum block_key_kind kind, uint32_t id, uint32_t level, int64_t step_ns);
struct block_key block_key_numbers(uint32_t series, int64_t last_ns, int64_t first_ns);
struct block_key block_key_rows(uint32_t series, int64_t last_ns, int64_t first_ns);
struct block_key block_key_links(
	uint32_t series, int64_t ts_ns); /* as that of a chunk of one row */
struct block_key block_key_symbols(uint32_t slot, enum sym_kind kind, uint32_t first);
static inline struct str block_key_str(const struct block_key *k)
{
	return (struct str){ k->at, k->len };
}
/* 'e' name; 'f' name (each 0 byte followed by 255), two 0 bytes, value. Appended to *out. */
void block_key_name(struct buf *out, struct str name);
void block_key_value(struct buf *out, struct str name, struct str value);

struct block_slot {
	struct block_partition p;
	uint32_t first, n; /* series */
	uint32_t symbols[SYM_KINDS]; /* how many there are */
	uint32_t ends[SYM_KINDS]; /* above their highest ids */
	struct str *keys; /* of sample labels, ascending */
	size_t keys_n;
};

/* A table that was opened without a look at it: whose it is. */
struct block_guarded {
	struct block *b;
	const char *name;
};

struct block {
	struct arena arena; /* dir, meta, partitions */
	const char *dir;
	struct ulid named; /* by its directory; empty where that has another kind of name */
	struct block_meta meta;
	uint64_t meta_bytes; /* of meta.json */
	struct range_source *from;
	struct store_cache *cache;
	struct table *rows; /* NULL: not there, or not readable */
	struct table *rollups;
	struct block_slot *slots;
	struct table *index; /* where small records are looked for first: rollups or spare */
	struct block_guarded guarded[2];
	struct mutex lock; /* guards what is below: opened when first needed */
	struct table *spare;
	bool spare_tried;
	enum err_code spare_rc;
	struct err spare_why;
	struct mutex firsts_lock; /* guards firsts; held while a list is made */
	struct block_firsts *firsts; /* lists that were asked for; they do not change */
};

void block_firsts_release(struct block *b); /* block_firsts.c */

/* ---- meta.json, block_meta.c ---- */

char *block_path(struct arena *a, const char *dir, const char *name);
/* The record's text; files: with sizes and hashes. */
void block_meta_print(struct buf *out, const struct block_meta *m, bool files);

/* ---- whose a table is, block_identity.c ---- */

MUST_CHECK enum err_code block_identity_put(
	struct table_writer *t, const struct ulid *ulid, const char *name, struct err *err);
/* ERR_NOT_FOUND: the table has no identity; ERR_CORRUPT: it is damaged. */
MUST_CHECK enum err_code block_identity_get(
	struct table *t, const char *name, struct ulid *out, struct err *err);
/* ERR_CORRUPT: it says that it is another file of its block. Tables of older programs say nothing.
 */
MUST_CHECK enum err_code block_check_role(
	const struct block *b, struct table *t, const char *name, struct err *err);

/* ---- the small records, block_records.c ---- */

void block_slot_encode(struct buf *out, const struct block_slot *s);
MUST_CHECK enum err_code block_slot_decode(
	struct str bytes, struct arena *a, struct block_slot *out, struct err *err);
void block_series_encode(struct buf *out, const struct block_series *s);
MUST_CHECK enum err_code block_series_decode(
	struct str bytes, struct arena *a, struct block_series *out, struct err *err);

/* A posting: number of series, then runs: gap x 2 + (more than one), number - 2. */
struct posting_reader {
	struct cursor in;
	uint32_t series_n; /* in it */
	uint32_t at, end; /* where the last run ended; ids are below it */
};
MUST_CHECK enum err_code posting_open(
	struct posting_reader *r, struct str bytes, uint32_t series_max, struct err *err);
/* The next run; false at the end or where the bytes are wrong (r->in.bad). */
bool posting_next(struct posting_reader *r, uint32_t *first, uint32_t *n);

/* Postings while a block is written: series come in ascending order. */
struct postings;
struct postings *postings_open(void); /* NULL: out of memory */
void postings_close(struct postings *p);
bool postings_add(struct postings *p, uint32_t series, struct labels labels);
void postings_seal(struct postings *p); /* after the last: put in the order of keys */
size_t postings_n(const struct postings *p);
/* Number i in the order of keys; out gets the value. */
struct str postings_at(const struct postings *p, size_t i, struct buf *out);

/* ---- symbols, block_symbols.c, block_page.c and block_symbols_read.c ---- */

/* Marks all symbols that the marked ids refer to. ERR_CORRUPT: one is missing; tainted: it is left
 * out instead. */
MUST_CHECK enum err_code block_symbols_close(const struct partition *p, struct bits bits[SYM_KINDS],
	bool tainted, uint32_t counts[SYM_KINDS], struct err *err);
/* Writes pages of the marked ones to the end of a spill. */
MUST_CHECK enum err_code block_symbols_pack(const struct partition *p,
	const struct bits bits[SYM_KINDS], struct spill *to, struct err *err);
/* The pages in [from, to) of the spill, as those of a slot. */
MUST_CHECK enum err_code block_symbols_put(struct table_writer *t, uint32_t slot, struct spill *s,
	uint64_t from, uint64_t to, struct err *err);

#define SYM_COLUMNS_MAX 7u
extern const uint8_t block_symbol_columns[SYM_KINDS]; /* columns that a page of the kind has */

/* One page, unpacked, for readers and damage tests. */
struct symbol_page {
	uint32_t n;
	struct cursor columns[SYM_COLUMNS_MAX];
	struct buf raw;
	struct ZSTD_DCtx_s *zstd; /* made when first wanted */
};
void symbol_page_release(struct symbol_page *page);
MUST_CHECK enum err_code symbol_page_unpack(
	struct symbol_page *page, enum sym_kind kind, struct str bytes, struct err *err);
/* Loads a page's symbols, *loaded of them; first is in its key, ids are below end. */
MUST_CHECK enum err_code symbol_page_load(struct symbol_page *page, struct partition *p,
	enum sym_kind kind, uint32_t first, uint32_t end, struct arena *scratch, uint64_t *loaded,
	struct err *err);

/* ---- block_numbers.c ---- */

/* Compares chunks and record of a numeric series; reports findings by fn. */
typedef void (*block_number_fn)(void *ctx, const char *what);
MUST_CHECK enum err_code block_check_numbers(struct block *b, uint32_t id,
	const struct block_series *s, struct block_chunks *it, block_number_fn fn, void *ctx,
	struct err *err);

/* ---- reading, block_read.c and block_iter.c ---- */

/* `spare`, or NULL with the reason in *err. */
struct table *block_spare(struct block *b, struct err *err);
/* Opening, once b has its directory: by what is known of its files. ERR_NOT_FOUND: that is no help
 * (*damaged may say why), and b is as it was. */
MUST_CHECK enum err_code block_load_known(
	struct block *b, const struct block_known *known, struct err *damaged, struct err *err);
MUST_CHECK enum err_code block_load_meta(struct block *b, struct err *damaged, struct err *err);
MUST_CHECK enum err_code block_meta_from(
	struct block *b, struct table *t, const char *where, struct err *err);
MUST_CHECK enum err_code block_load_partitions(struct block *b, struct err *err);
MUST_CHECK enum err_code block_check_ulid(
	const struct block *b, const char *name, const struct ulid *of, struct err *err);
/* The end of a table, as `spare` has it. */
MUST_CHECK enum err_code block_spare_end(
	struct block *b, const char *name, struct buf *out, struct err *err);

/*
 * Records whose keys begin with a prefix. A damaged page is reported once, and the walk goes
 * on behind it.
 */
struct block_iter {
	struct table *t;
	struct table_iter *it;
	bool scan;
	enum { ITER_SEEK, ITER_STEP, ITER_STAY, ITER_END } next; /* what the next call begins with */
	struct buf key; /* to seek */
	size_t prefix; /* bytes of it that all keys share */
};
MUST_CHECK enum err_code block_iter_open(
	struct block_iter *it, struct table *t, bool scan, struct err *err);
void block_iter_close(struct block_iter *it);
/* From `key` on, whose first `prefix` bytes are the prefix. */
void block_iter_seek(struct block_iter *it, struct str key, size_t prefix);
/* ERR_NOT_FOUND after the last; ERR_CORRUPT: something was passed over, and the next call goes on.
 * Key and value live until then. */
MUST_CHECK enum err_code block_iter_next(
	struct block_iter *it, struct str *key, struct str *value, struct err *err);

/* Small records whose keys begin with a prefix: of rollups.ldb or `spare`; where that is damaged,
 * those of the other. */
struct index_iter {
	struct block *b;
	struct block_iter it;
	bool other;
	struct buf from; /* where a walk through the other goes on */
	size_t prefix;
};
MUST_CHECK enum err_code index_iter_open(
	struct index_iter *it, struct block *b, struct str prefix, struct err *err);
void index_iter_close(struct index_iter *it);
/* Goes on from `key`, which has the prefix. */
void index_iter_seek(struct index_iter *it, struct str key);
MUST_CHECK enum err_code index_iter_next(
	struct index_iter *it, struct str *key, struct str *value, struct err *err);
/* One small record, from either place; appended. */
MUST_CHECK enum err_code index_get(
	struct block *b, struct str key, struct buf *out, struct err *err);

/* ---- writing, block_writer.c and block_finish.c ---- */

struct writer_slot {
	struct partition *p; /* NULL: sealed */
	uint32_t id; /* its job */
	struct buf record; /* once sealed, as the two below; the other fields are freed then */
	uint64_t pages, pages_end; /* in the spill */
	uint32_t first, n; /* series */
	bool
		tainted; /* a chunk or rollup was refused half-way: symbols that it marked may be missing */
	struct bits bits[SYM_KINDS];
	uint32_t symbols[SYM_KINDS];
};

struct record_ends { /* record i ends at byte at[i], where the next one begins */
	size_t *at;
	uint32_t n, cap;
};

struct block_writer {
	struct block_write_options o;
	struct arena arena; /* paths */
	const char *dir;
	struct table_writer *rows, *rollups;
	struct writer_slot *slots;
	uint32_t slots_n, slots_cap;
	struct spill symbols; /* pages of sealed slots: they come last in the file */
	struct buf series; /* their records */
	struct record_ends series_at;
	uint32_t *groups; /* first series of each */
	uint32_t groups_n, groups_cap;
	struct postings *postings;
	struct block_meta meta;
	struct chunk *chunk;
	struct rollup_view *view;
	/* the series last begun, while `open` */
	bool open;
	struct arena labels_arena[2]; /* its labels, and where the next one's go */
	struct labels group_labels;
	struct block_series now;
	uint32_t *headers, headers_n, headers_cap;
	uint32_t number_series;
	struct buf numbers; /* a chunk, encoded */
	unsigned stats_level; /* rollups that are counted where there are no rows */
	bool grouping; /* group rollups have begun: no more series */
};

/* The record of the series last begun, now that all of it is known. */
MUST_CHECK enum err_code block_writer_end_series(struct block_writer *w, struct err *err);
/* The last slot has all its series: its symbols are packed, and its partition is used no more. */
MUST_CHECK enum err_code block_writer_seal(struct block_writer *w, struct err *err);

#endif
