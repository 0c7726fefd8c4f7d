/*
 * Block: an immutable window of profiles on disk; readers share it, nobody changes it.
 *
 * A block is a directory named by a ULID: `rows.ldb` (chunks), `rollups.ldb` (rollups, series
 * index, symbols), `spare` (copies of the tables' ends and of the series index) and `meta.json`
 * (sizes, hashes and contents of the others; written last). Its maker writes it under a temporary
 * name, syncs it and renames it. Retention may remove `rows.ldb`, after meta.json says so: then
 * only rollups answer.
 *
 * Inside, series are numbered 0, 1, ...: numeric ones by their labels, then those of profiles in
 * the order (partition, labels of the group, labels), so the series of a group are neighbours. A
 * group is all series of a partition that differ in the job's instance labels only. Each partition
 * of a block has one epoch; ids of its symbols are those of the data directory.
 *
 * Units:     times in nanoseconds since 1970, half-open (min, max]; sizes in bytes.
 * Errors:    ERR_CORRUPT (names the file; the block stays open, other pages are served), ERR_IO,
 *            ERR_LIMIT, ERR_NOMEM.
 * Ownership: block_open hands *out to the caller; block_close ends it. Iterators end before it.
 * Threads:   any number of readers, each with its own iterators; a writer has one.
 * Source:    tsdb/FORMAT.md, "Blocks".
 */
#ifndef TSDB_BLOCK_BLOCK_H
#define TSDB_BLOCK_BLOCK_H

#include "base/fs.h"
#include "base/labels.h"
#include "tsdb/columns/chunk.h"
#include "tsdb/columns/number_chunk.h"
#include "tsdb/rollup/rollup.h"
#include "tsdb/store/table.h"
#include "tsdb/symbols/partition.h"

#define ULID_LEN 26
#define BLOCK_SOURCES_MAX 4096u

struct ulid {
	char text[ULID_LEN + 1];
};
/* Time and 80 random bits; unique and ascending in a process. */
struct ulid ulid_new(int64_t now_ns);
bool ulid_parse(struct str text, struct ulid *out);
bool ulid_eq(const struct ulid *a, const struct ulid *b);
int ulid_cmp(const void *a, const void *b); /* of two struct ulid: for qsort and bsearch */

struct block_file {
	uint64_t bytes, hash; /* XXH3 of the file; bytes 0: not there */
};

struct block_meta {
	struct ulid ulid;
	int64_t min_ns, max_ns; /* what it covers, not just where its rows are */
	uint32_t level; /* 1: cut from a head window; else one more than the highest of its sources */
	struct ulid *sources; /* blocks that were joined into it */
	uint32_t sources_n;
	int64_t *heads; /* starts (ns) of the head windows cut into it, through all joining */
	uint32_t heads_n;
	uint64_t series, groups, partitions, rows, samples, chunks, nodes, strings;
	uint64_t number_series; /* the first of series: numeric ones */
	uint64_t numbers; /* their values */
	uint64_t links; /* rows that have links; 0 also where a version before this one made it */
	int64_t first_ns, last_ns; /* of rows and numbers */
	unsigned levels; /* of rollups: bit per level */
	bool raw; /* rows.ldb is there */
	bool unnamed; /* version 1: its tables do not say whose they are */
	bool streams; /* version 4: some of its chunks have streams */
	struct block_file rows_file, rollups_file, spare_file;
};

/* ---- reading ---- */

struct block;

/* Opens DIR in a range source (NULL: the disk). `damaged` says what is damaged but not needed (an
 * index that has a copy, meta.json that `spare` or the tables replace, an unreadable rows.ldb;
 * ERR_OK: nothing); missing rows are not served, the rest is. Where the source does not answer
 * (range_unreachable), that is the error: nothing is known of the block then. All files must be of
 * one block, the one that names DIR if the name is a ULID; a file of another block counts as
 * missing. ERR_UNSUPPORTED: another version's. */
MUST_CHECK enum err_code block_open(const char *dir, struct range_source *from,
	struct store_cache *cache, struct block **out, struct err *damaged, struct err *err);
/*
 * The same where each read is a request and files are known: `spare` has copies of all that opening
 * and selecting need, so it is read whole, compared with its hash, and nothing else is read. That
 * the tables are of this block is checked when their first page is read. If `spare` is too large
 * for that, cannot be used, or is not what is known of it (*damaged), block_open is what happens.
 */
struct block_known {
	struct block_file spare, meta;
	bool meta_changed; /* since the block was made: meta.json is read, too */
};
MUST_CHECK enum err_code block_open_known(const char *dir, struct range_source *from,
	const struct block_known *known, struct store_cache *cache, struct block **out,
	struct err *damaged, struct err *err);
void block_close(struct block *b); /* NULL and half-built are fine */
const struct block_meta *block_meta(const struct block *b);
const char *block_dir(const struct block *b);
uint64_t block_disk_bytes(const struct block *b);
bool block_has_raw(const struct block *b); /* rows.ldb is there and readable */

#define BLOCK_NUMERIC SYM_NONE

struct block_partition {
	uint32_t id, epoch; /* of the data directory */
	struct str name;
};
uint32_t block_partitions_n(const struct block *b);
const struct block_partition *block_partition(const struct block *b, uint32_t slot);

struct block_series {
	struct labels labels;
	uint32_t slot, group; /* BLOCK_NUMERIC, both: numeric; rows are its values then */
	int64_t first_ns, last_ns; /* of its rows */
	uint64_t rows, samples;
	const uint32_t *headers; /* distinct ones of its rows, ascending */
	uint32_t headers_n;
};
MUST_CHECK enum err_code block_series(
	struct block *b, uint32_t id, struct arena *a, struct block_series *out, struct err *err);
/* The series of a group: [*first, *first + *n). */
MUST_CHECK enum err_code block_group(
	struct block *b, uint32_t group, uint32_t *first, uint32_t *n, struct err *err);

/*
 * Since when there are series of profiles with a label: each set of their labels `kept`, once, with
 * the time of the first row of all series that have it. It is made at the first call for a label,
 * and kept: the other fields are the same in each call. The list lives as long as the block.
 * ERR_LIMIT: there are too many. ERR_CORRUPT: some series cannot be read; the list has the rest.
 */
#define BLOCK_FIRSTS_KEPT_MAX 16u
struct block_firsts_of {
	struct str label;
	const struct str *kept; /* in order; at most BLOCK_FIRSTS_KEPT_MAX */
	size_t kept_n;
	struct str except; /* series of this name do not count */
};
struct block_first {
	struct labels labels;
	int64_t first_ns;
};
MUST_CHECK enum err_code block_firsts(struct block *b, const struct block_firsts_of *of,
	const struct block_first **out, size_t *n, struct err *err);

/*
 * Series that all matchers accept, by postings; regular expressions are tested over values. A
 * matcher about a label that a series lacks is passed where samples of its partition have it
 * (has_key), else tested with "". has_key NULL: it is about series alone.
 */
typedef bool (*block_has_key_fn)(void *ctx, uint32_t slot, struct str key);
MUST_CHECK enum err_code block_match(struct block *b, const struct matcher *m, size_t n,
	block_has_key_fn has_key, void *ctx, struct bits *out, struct err *err);
/* Keys of sample labels of a partition, without loading its symbols; in the block. */
MUST_CHECK enum err_code block_sample_keys(
	struct block *b, uint32_t slot, const struct str **out, size_t *n, struct err *err);
/* How many series of a partition have the label, and how many do not. */
MUST_CHECK enum err_code block_slot_having(struct block *b, uint32_t slot, struct str name,
	uint32_t *with, uint32_t *without, struct err *err);

/* Symbols are loaded in two stages: names, and what stacks are made of. */
enum block_stage {
	BLOCK_NAMES = 1, /* strings, mappings, functions, label sets, headers */
	BLOCK_STACKS = 2, /* locations, nodes; after BLOCK_NAMES */
};
/* Loads into p; the caller holds p->lock. Symbols that cannot be read are counted in *lost, with
 * the reason in *err; the rest is loaded. */
MUST_CHECK enum err_code block_load_symbols(struct block *b, uint32_t slot, struct partition *p,
	enum block_stage stage, uint64_t *lost, struct err *err);

/* Announces that these symbols are loaded soon, so that the disk can begin to read. */
void block_symbols_expect(struct block *b, uint32_t slot, enum block_stage stage);
/* Some of the series are of the slot. */
bool block_slot_has_any(const struct block *b, uint32_t slot, const struct bits *series);

/* Chunks with rows in (min, max], ascending. */
struct block_chunks;
MUST_CHECK enum err_code block_chunks_open(
	struct block *b, bool scan, struct block_chunks **out, struct err *err);
/* Chunks of numeric series (number_chunk.h), with the same steps; also in blocks without raw rows.
 */
MUST_CHECK enum err_code block_numbers_open(
	struct block *b, bool scan, struct block_chunks **out, struct err *err);
/* Links of rows (columns/links.h), with the same steps: a row's at a time, `first` is its time. */
MUST_CHECK enum err_code block_links_open(
	struct block *b, bool scan, struct block_chunks **out, struct err *err);
void block_chunks_close(struct block_chunks *it); /* NULL is fine */
void block_chunks_seek(struct block_chunks *it, uint32_t series, int64_t min_ns, int64_t max_ns);
/* Chunks of these series are read soon, one series after the other: the disk can begin with all. */
void block_chunks_expect(
	struct block *b, uint32_t first, uint32_t n, int64_t min_ns, int64_t max_ns);
/* ERR_NOT_FOUND after the last, with *first_ts_ns of the next one of the series behind max_ns, or
 * INT64_MAX; ERR_CORRUPT: something was passed over, and next goes on. *bytes lives until the next
 * step. */
MUST_CHECK enum err_code block_chunks_next(
	struct block_chunks *it, struct str *bytes, int64_t *first_ts_ns, struct err *err);

/* Rollups of a series or group. A record covers the part of its step that lies in the block. */
enum rollup_kind {
	ROLLUP_SERIES,
	ROLLUP_GROUP,
	ROLLUP_FUNCTIONS, /* function totals of a group */
};
struct block_rollups;
MUST_CHECK enum err_code block_rollups_open(
	struct block *b, bool scan, struct block_rollups **out, struct err *err);
void block_rollups_close(struct block_rollups *it); /* NULL is fine */
/* Steps with step start in [from, to). A group of one series has no records: those of its
 * series are shown. */
void block_rollups_seek(struct block_rollups *it, enum rollup_kind kind, uint32_t id,
	uint32_t level, int64_t from_ns, int64_t to_ns);
/* Announces that these rollups are read soon, so that the disk can begin. */
void block_rollups_expect(struct block *b, enum rollup_kind kind, uint32_t id, uint32_t level,
	int64_t from_ns, int64_t to_ns);
MUST_CHECK enum err_code block_rollups_next(
	struct block_rollups *it, struct str *bytes, int64_t *step_ns, struct err *err);
/* Levels that the block has: bit per level. Every step with rows has a record of each. */
unsigned block_levels(const struct block *b);

/* Values of a label, names of labels: each once, in order (of LABEL_SERVICE a value may come
 * twice); fn returns false to stop. */
typedef bool (*block_name_fn)(void *ctx, struct str name, uint32_t series_n);
MUST_CHECK enum err_code block_label_names(
	struct block *b, block_name_fn fn, void *ctx, struct err *err);
MUST_CHECK enum err_code block_label_values(
	struct block *b, struct str name, block_name_fn fn, void *ctx, struct err *err);

/* Verifies everything: hashes, order, counts, that every chunk and rollup decodes, that every id is
 * there, that rollups equal their rows. Each finding is reported; ERR_OK: there was none. */
typedef void (*block_finding_fn)(void *ctx, const char *what);
MUST_CHECK enum err_code block_verify(
	struct block *b, block_finding_fn fn, void *ctx, struct err *err);

/* Bytes of each part. */
struct block_sizes {
	uint64_t rows, links, numbers, rollups_series[ROLLUP_LEVELS], rollups_group[ROLLUP_LEVELS],
		functions[ROLLUP_LEVELS], series, postings, symbols[SYM_KINDS], meta, overhead;
	struct chunk_sizes chunks; /* of all chunks */
};
MUST_CHECK enum err_code block_measure(struct block *b, struct block_sizes *out, struct err *err);
/* Bytes of all rollups of a kind, to some pages, from the index of their table alone. */
enum block_rollups_kind { BLOCK_ROLLUPS_SERIES, BLOCK_ROLLUPS_GROUP, BLOCK_ROLLUPS_FUNCTIONS };
uint64_t block_rollups_bytes(const struct block *b, enum block_rollups_kind kind);

/* ---- writing ---- */

struct block_writer;

struct block_write_options {
	struct fs *fs;
	const char *dir; /* the temporary one; made here */
	struct ulid ulid; /* of the block; it is in each of its files */
	int64_t min_ns, max_ns;
	unsigned levels; /* rollup levels it will have: bit per level */
	bool raw; /* false: no rows.ldb */
};
MUST_CHECK enum err_code block_writer_open(
	const struct block_write_options *o, struct block_writer **out, struct err *err);
void block_writer_close(struct block_writer *w); /* NULL is fine; unfinished: the files stay */
/* Partitions in ascending order of their jobs' ids, one after the other; symbols are taken from p
 * when the next one begins or the block is finished (p unchanged or growing until then, and
 * pinned), and p is not used any more. */
MUST_CHECK enum err_code block_writer_partition(
	struct block_writer *w, struct partition *p, uint32_t *slot, struct err *err);
/* Begins a numeric series: before all partitions, ascending by labels; adds a chunk of the one last
 * begun. */
MUST_CHECK enum err_code block_writer_number_series(
	struct block_writer *w, struct labels labels, uint32_t *id, struct err *err);
MUST_CHECK enum err_code block_writer_numbers(
	struct block_writer *w, const struct number_chunk *c, struct err *err);
/* In the order of the numbering (ERR_INVALID otherwise); group_labels: labels without the
 * instance's. *group is new where they differ from those before. */
MUST_CHECK enum err_code block_writer_series(struct block_writer *w, uint32_t slot,
	struct labels labels, struct labels group_labels, uint32_t *id, uint32_t *group,
	struct err *err);
/* Adds a chunk of the series last begun, in ascending order. Counts, headers and used ids are read
 * from the bytes. */
MUST_CHECK enum err_code block_writer_chunk(
	struct block_writer *w, struct str bytes, struct err *err);
/* Adds the links of a row: after the last series, ascending by (series, time). Their row is in a
 * chunk of that series, so its ids are marked already. */
MUST_CHECK enum err_code block_writer_links(
	struct block_writer *w, uint32_t series, int64_t ts_ns, struct str bytes, struct err *err);
/* Without raw rows the series record is made from these rollups. */
MUST_CHECK enum err_code block_writer_rollup(
	struct block_writer *w, uint32_t level, int64_t step_ns, struct str bytes, struct err *err);
/* After the last series: ascending by (kind: group, functions; group; level; step). A group of one
 * series has function totals only. */
MUST_CHECK enum err_code block_writer_group_rollup(struct block_writer *w, enum rollup_kind kind,
	uint32_t group, uint32_t level, int64_t step_ns, struct str bytes, struct err *err);
/* meta: level, sources and heads are the caller's; the rest is filled in. All files and the
 * directory are synced. */
MUST_CHECK enum err_code block_writer_finish(
	struct block_writer *w, struct block_meta *meta, struct err *err);

/* meta.json of a directory on the disk; arrays in the arena. ERR_NOT_FOUND. */
MUST_CHECK enum err_code block_read_meta(
	const char *dir, struct arena *a, struct block_meta *out, struct err *err);
/* The same of its bytes. ERR_CORRUPT, with what is wrong. */
MUST_CHECK enum err_code block_meta_parse(
	struct str text, struct arena *a, struct block_meta *out, struct err *err);
/* meta.json, for changes that keep the rest (raw rows dropped): old or new, never half. */
MUST_CHECK enum err_code block_write_meta(
	struct fs *fs, const char *dir, const struct block_meta *meta, struct err *err);

#endif
