/*
 * Database, the inside of db.h: what its files share.
 *
 * Locks, in the order they are taken (a later one while an earlier one is held, never the other way
 * round):
 *   job->lock        one append per job at a time; delta bases
 *   numbers_lock     one append of numbers at a time
 *   ids_lock         the file of ids
 *   partition->lock  symbols being made or loaded, stored symbols
 *   commit queue     rows that wait for their sync
 *   series index     label sets, postings, and which window has which series (window->series)
 *   db->lock         windows, blocks, their pins and counts, partitions in memory, queriers, state
 *   losses           the list of losses; nothing is taken while it is held
 *   inventory        what must be there; nothing is taken while it is held
 *
 * A window is pinned by whoever uses its store: a querier, an append, a queued row. Dropping or
 * reopening waits until nobody does. Windows are (start, end] and never overlap.
 */
#ifndef TSDB_CATALOG_DB_INTERNAL_H
#define TSDB_CATALOG_DB_INTERNAL_H

#include "tsdb/block/block.h"
#include "tsdb/catalog/inventory.h"
#include "tsdb/db.h"
#include "tsdb/series/series.h"
#include "tsdb/store/store.h"
#include "tsdb/symbols/stored.h"

#define DB_FUTURE_NS (INT64_C(600) * 1000000000) /* how far ahead of our clock a profile may be */
#define DB_JOBS_MAX 16384u
#define DB_QUEUE_BYTES_MAX (16u << 20) /* rows that wait for their sync */
#define DB_CACHE_BYTES (16u << 20) /* pages of all stores */
#define DB_REOPEN_BYTES (16u << 20) /* free space that opening a store again wants */
#define DB_SCRATCH_BYTES_MAX (1u << 30) /* of one append */
#define DB_REOPEN_WAIT_NS \
	(INT64_C(5) * 1000000000) /* a querier waits so long for a store being reopened */

/* What a window's store says it holds: the record "c", renewed by each batch. */
struct window_count {
	uint64_t seq; /* batches */
	uint64_t rows, samples;
	uint64_t numbers; /* values of numeric series */
	uint64_t symbols; /* records of symbols; fewer than there are in a window that is older */
	int64_t min_ns, max_ns; /* of rows and numbers; 0, 0: none */
};

static inline bool window_is_empty(const struct window_count *c)
{
	return c->rows == 0 && c->numbers == 0;
}

struct window {
	int64_t start_ns, end_ns;
	uint64_t identity; /* of the store's records; 0 where a version before this one made it */
	uint32_t number; /* as db_block's */
	bool sealed; /* db->lock: takes no more rows */
	const struct deleted_range *deleted; /* db->lock, as db_block's */
	size_t deleted_n;
	char *dir; /* the store's; a temporary copy when read-only */
	char *mark_path; /* beside it: what was acknowledged */
	char *names_path; /* likewise: a second copy of small records */
	struct store *store; /* db->lock; NULL while it is reopened */
	unsigned pins; /* db->lock */
	unsigned writers; /* db->lock: those of the pins that an append or a queued row has */
	unsigned waiting; /* db->lock: queriers that gave their pin back until it is reopened */
	struct window *next_dropping; /* db->lock */
	bool draining; /* db->lock: to be reopened, takes no new pins */
	bool damaged; /* db->lock: something of it was lost */
	bool shadow; /* db->lock: the disk was full when it was opened; nothing is written to it */
	struct window_count count; /* db->lock; the commit thread writes it */
	int mark_fd; /* the commit thread's; -1: none */
	int names_fd; /* likewise; -1: not open */
	bool names_failed; /* likewise: nothing is appended any more, the next start makes it anew */
	struct bits series; /* the series index's lock */
	bool types_lost; /* some series have types that are not known */
	struct window_job *jobs; /* db->lock: by job->index; window_epochs.c */
	uint32_t jobs_n;
};

/* Header whose types a series' rows of an epoch have. */
struct series_header {
	uint32_t series, header;
};

/* Rows of a job that a window has under one epoch. */
struct window_epoch {
	uint32_t epoch;
	int64_t min_ns, max_ns; /* (min, max]: all of them, and perhaps more */
	struct series_header *types; /* by series */
	uint32_t types_n, types_cap;
};

struct window_job {
	struct window_epoch *v; /* in the order of their beginning */
	uint32_t n, cap;
};

/* What the file of ids says of an epoch that is not in memory. */
struct known_ids {
	uint32_t epoch, next[SYM_KINDS];
};

#define JOB_EPOCHS_KNOWN_MAX 64u /* the newest ones */

struct job {
	uint32_t index; /* among jobs: jobs never go */
	uint32_t id; /* on disk */
	struct str name;
	struct mutex lock; /* first of all locks */
	struct translation *carry; /* lock: of delta bases into the live epoch */
	/* The rest is db->lock's. */
	bool superseded; /* a later job has the name: this one takes no rows */
	struct partition *partitions; /* those in memory */
	struct partition *live; /* pinned; NULL: not there yet */
	uint32_t live_epoch; /* SYM_NONE: the next row begins one */
	uint32_t next_epoch, epochs_saved; /* the file of ids says that those below are used */
	struct known_ids *known;
	uint32_t known_n;
};

/* Memory of one append, kept for the next. */
struct scratch {
	struct scratch *next;
	struct arena arena;
	struct buf row, record, there;
	struct new_symbols new_symbols;
};

struct commit;
struct work;

struct db {
	struct db_options o;
	char *dir, *head_dir, *ids_path;
	int lock_fd;
	struct store_cache *cache;
	struct series_index *series;
	struct commit *commit;
	struct losses *losses;
	struct inventory *inventory;
	enum inventory_found inventory_found;
	struct thread maintenance;

	struct mutex lock;
	struct cond changed; /* pins, reopening, closing */
	struct cond wake; /* the maintenance thread's */
	struct window **windows; /* ascending */
	size_t windows_n, windows_cap;
	struct window *dropping; /* not in windows any more, and their files are still there */
	struct db_block **blocks; /* db->lock: ascending by time */
	size_t blocks_n, blocks_cap;
	struct work *work; /* who changes blocks (tsdb/catalog/blocks.h) */
	uint32_t source_number; /* db->lock: the last one given to a block or window */
	struct db_job_labels *job_labels; /* db->lock; of db_set_instance_labels */
	size_t job_labels_n;
	struct arena job_labels_arena;
	struct job **jobs; /* db->lock: by index */
	uint32_t jobs_n, jobs_cap, next_job_id;
	struct map jobs_by_name, jobs_by_id; /* db->lock */
	struct partition **partitions; /* db->lock: by index; NULL: free */
	uint32_t partitions_n, partitions_cap;
	uint64_t unpins; /* db->lock: see partition->used_at */
	_Atomic uint64_t symbol_bytes; /* of all partitions, when last looked */
	_Atomic uint64_t delta_bytes; /* of all delta bases */
	struct mutex ids_lock;
	struct mutex numbers_lock;
	bool creating; /* db->lock: somebody makes a window, outside of the lock */
	enum db_state state;
	struct err why;
	struct db_querier *queriers; /* newest first */
	uint64_t queriers_opened;
	struct series *retired; /* out of the index, labels perhaps still seen by a querier */
	struct scratch *scratch;
	bool closing, retention_due;
	_Atomic int64_t max_ts_ns; /* of stored rows */
	int64_t found_max_ns; /* the same, at the start */
	_Atomic int64_t queued_max_ns; /* of what was queued, stored or not: it may be on the disk */
	_Atomic uint64_t rows, samples, numbers; /* appended since start */
};

/* Where rows of a series are: a source of the querier, and the series' number there. */
struct series_place {
	uint32_t source, id;
};

/* What a querier reads: a head window by a snapshot of its store, or a block. */
struct querier_source {
	int64_t min_ns, max_ns; /* what it covers: (min, max] */
	struct window *w; /* pinned; NULL: a block */
	struct store *store;
	struct store_snapshot *snap; /* NULL: it is being reopened, nothing is read */
	struct store_iter *it; /* made when first wanted, as the two below */
	struct db_block *b; /* pinned; NULL: a window */
	struct block_chunks *chunks, *numbers;
	struct block_rollups *rollups;
	struct partition **need; /* block: by slot, pinned once its names are loaded */
	bool *stacks; /* block: by slot, stacks are loaded too */
	const struct deleted_range *deleted;
	size_t deleted_n;
	bool warned;
};

struct db_querier {
	struct db *db;
	struct db_querier *older, *newer; /* db->lock */
	uint64_t number;
	int64_t min_ns, max_ns;
	const atomic_bool *cancel;
	bool fork; /* reads what another pinned, and is in no list */
	bool edges; /* windows begin where others ended: what is read there is kept */
	struct arena arena; /* warnings, infos */
	struct str *warnings, *infos;
	size_t warnings_n, infos_n;
	struct querier_source *sources; /* ascending by time */
	size_t sources_n;
	struct partition **pinned; /* of head windows, each once */
	size_t pinned_n, pinned_cap;
	struct sum_scratch *scratch; /* sum.c */
	uint32_t *stacks, *sets; /* decode buffers */
	int64_t *values;
	size_t decode_cap;
};

/* ---- keys (tsdb/FORMAT.md) ---- */

#define KEY_MAX 16
struct key {
	char bytes[KEY_MAX];
	size_t len;
};
struct key key_of(char kind); /* 'c', 'm' */
struct key key_u32(char kind, uint32_t id); /* 's' */
struct key key_u32_u32(char kind, uint32_t a, uint32_t b); /* 'p' */
struct key key_u32_u32_u32(char kind, uint32_t a, uint32_t b, uint32_t c); /* 't', 'y' */
struct key key_row(uint32_t series, int64_t ts_ns); /* 'r' */
static inline struct str key_str(const struct key *k)
{
	return (struct str){ k->bytes, k->len };
}
bool key_parse_row(struct str key, uint32_t *series, int64_t *ts_ns);

/* ---- head.c: windows ---- */

struct window *window_new(struct db *db, int64_t start_ns, int64_t end_ns); /* NULL: no memory */
bool head_reserve(struct db *db); /* room for one more; db->lock is held, or nobody else is there */
void head_insert(struct db *db, struct window *w); /* likewise */
/* The window that ts falls into, made where it is missing, pinned. ERR_INVALID: it is too old. */
MUST_CHECK enum err_code head_pin(
	struct db *db, int64_t ts_ns, struct window **out, struct err *err);
void head_unpin(struct db *db, struct window *w);
void head_unpin_writer(struct db *db, struct window *w); /* what head_pin pinned */
void head_free(struct db *db, struct window *w);
/* Out of db->windows, db->lock is held; queriers that have it pinned go on. */
void head_take_locked(struct db *db, struct window *w);
/* Removes a window that was taken, for good, once nobody uses it; `why` for the log and metric.
 * When the database closes meanwhile its files stay. */
void head_remove(struct db *db, struct window *w, const char *why);
/* Files beside a window's directory that say that it has to be there. */
void head_remove_beside(struct db *db, const struct window *w);
/* What a crash, or the disk, left of a window that is in a block. False: it is still there. */
bool head_remove_leftover(struct db *db, int64_t start_ns);
/* Takes and removes the oldest window. */
void head_drop_oldest(struct db *db, const char *why);
void head_encode_count(const struct window_count *c, struct buf *out);
uint64_t head_disk_bytes(struct db *db, const struct window *w);
/* Some window was opened over a full disk; db->lock is held. */
bool head_has_shadow_locked(const struct db *db);
/* Those are opened as they should be; where that fails they stay as they are. No window is pinned
 * by the caller. */
void head_leave_shadows(struct db *db);
void db_count_damage(void); /* the metric alone */
void db_damage(struct db *db, struct window *w, const char *what, const struct err *why);

/* ---- head_open.c ---- */

MUST_CHECK enum err_code head_open_all(struct db *db, struct err *err);
/* "head/<start>" and what follows; malloc'ed, NULL: out of memory. */
char *head_where(const struct window *w, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* ---- lost.c: what was lost, kept until a person accepts it ---- */

/*
 * Something that was stored is gone, or can be read no more: onto the list of losses, into the log
 * and the metric. `where`: its path below the data directory, as losses.h says. Where the list
 * cannot be written it is said all the same, until the next start. False: it is not durable, so
 * whatever it was found by must stay as it is.
 */
bool db_lost(struct db *db, enum loss_what what, const char *where, int64_t min_ns, int64_t max_ns,
	uint64_t count, const struct err *why);
/* At the start: those that nobody accepted are logged. */
void db_log_losses(struct db *db);
/* Warnings of a querier that begins. */
void querier_tell_losses(struct db_querier *q);

/* ---- stock.c: what must be there (inventory.h) ---- */

MUST_CHECK enum err_code stock_open(struct db *db, struct err *err);
/* At the start, when all that is there was opened: what is missing becomes a loss. */
MUST_CHECK enum err_code stock_take(struct db *db, struct err *err);
/* What has come, once it is durable; what is to go, before any of its files does. */
MUST_CHECK enum err_code stock_add_window(struct db *db, const struct window *w, struct err *err);
MUST_CHECK enum err_code stock_drop_window(struct db *db, int64_t start_ns, struct err *err);
MUST_CHECK enum err_code stock_drop_block(struct db *db, const struct ulid *ulid, struct err *err);
struct db_block;
MUST_CHECK enum err_code stock_drop_raw(struct db *db, const struct db_block *b, struct err *err);
/* `by` takes the place of n blocks and a window (NULL: of none). It names them itself, so nothing
 * is lost where this cannot be written; by NULL: nothing takes it, and that is an error then. */
MUST_CHECK enum err_code stock_swap(struct db *db, struct db_block *const *olds, size_t n,
	const struct window *w, const struct db_block *by, struct err *err);
/* Ranges of a block (NULL: of the window) were deleted, and the file that says so is durable. */
void stock_note_deleted(struct db *db, const struct db_block *b, const struct window *w);

/* ---- head_load.c (more of it: tsdb/head/head_internal.h) ---- */

/* The number of the next symbol record of a job's epoch in this store. */
MUST_CHECK enum err_code head_next_symbol_record(
	struct store *s, uint32_t job, uint32_t epoch, uint32_t *out, struct err *err);
/* Symbol records of p's epoch into p, whose lock is held. ERR_CORRUPT, ERR_EXISTS: as
 * partition_need_window. */
MUST_CHECK enum err_code head_load_symbols(
	struct db *db, struct window *w, struct partition *p, struct err *err);
/* Ids that rows of the epoch use are not given again: for a window whose symbols were lost. */
MUST_CHECK enum err_code head_reserve_ids(
	struct db *db, struct window *w, struct partition *p, struct err *err);

/* ---- ids.c: numbers that are never given again ---- */

MUST_CHECK enum err_code ids_load(struct db *db, struct err *err);
MUST_CHECK enum err_code ids_save(struct db *db, struct err *err);

/* ---- db.c ---- */

void db_set_state(struct db *db, enum db_state state, const struct err *why);
void db_check_room(struct db *db); /* free space: DB_READY to DB_FULL and back */
/* One round of the maintenance thread: free space, blocks, retention, memory of what is gone. */
void db_maintain(struct db *db, bool retention);
void db_retire_series(struct db *db);

/* ---- commit.c ---- */

struct number_batch; /* tsdb/numbers.h */

struct commit_row {
	struct commit_row *next;
	struct window *window; /* pinned; the queue takes the pin over */
	struct series *series; /* in use; taken over likewise; NULL: numbers */
	struct number_batch *numbers; /* taken over likewise; NULL: a row */
	int64_t ts_ns;
	uint32_t samples;
	bool symbols; /* the batch has a record of symbols */
	struct store_batch *batch;
	size_t bytes;
	db_acked_fn acked;
	void *ctx;
	uint64_t number; /* in the order of queueing */
	bool has_before;
	struct delta_base before; /* the series' base before this row: given back when it fails */
};

/* Releases a base and takes it off the accounts. */
void base_release(struct db *db, struct delta_base *base);

MUST_CHECK enum err_code commit_open(struct db *db, struct err *err);
void commit_close(struct db *db); /* after all that is queued */
/* Changes with every failure: stored symbols noted under another number do not hold. */
uint64_t commit_generation(struct db *db);
/* Takes the row over on ERR_OK only. ERR_UNAVAILABLE: there was a failure since `generation`. */
MUST_CHECK enum err_code commit_enqueue(
	struct db *db, struct commit_row *row, uint64_t generation, struct err *err);

/* ---- append_gap.c ---- */

/* Of a row that has gap_max_ns *a becomes a copy with its interval. w: pinned. */
MUST_CHECK enum err_code append_gap(struct window *w, struct series *s, struct db_append *copy,
	const struct db_append **a, struct err *err);

/* Until nothing of the series and this time waits for its sync. ERR_UNAVAILABLE: there was a
 * failure since `generation`. The job's lock may be held: after a failure nobody is waited for. */
MUST_CHECK enum err_code commit_wait(
	struct db *db, const struct series *s, int64_t ts_ns, uint64_t generation, struct err *err);

/* ---- again.c: the same series and time again; job->lock or numbers_lock is held ---- */

/* False: nothing of the series has this time. */
bool again_possible(const struct db *db, const struct series *s, int64_t ts_ns);
void again_note(struct series *s, int64_t ts_ns); /* something of it was queued */
/* What is stored of the series and time, once nothing of them is queued; key: theirs, by kind.
 * ERR_NOT_FOUND: nothing. */
struct again_place {
	struct window *window; /* pinned */
	const struct series *series;
	int64_t ts_ns;
	struct key key;
	uint64_t generation;
};
MUST_CHECK enum err_code again_find(
	struct db *db, const struct again_place *at, struct buf *out, struct err *err);
/* ERR_EXISTS; what: "profile". */
MUST_CHECK enum err_code again_refuse(
	const char *what, struct labels labels, int64_t ts_ns, struct err *err);
/* ERR_INVALID: it would not be seen. */
MUST_CHECK enum err_code again_check_deleted(struct db *db, const struct window *w,
	const struct series *s, int64_t ts_ns, const char *what, struct err *err);

/* ---- window_epochs.c: under which epochs a window has rows of a job ---- */

/* All with db->lock held. */
struct window_epoch *window_epoch_locked(
	const struct window *w, const struct job *job, uint32_t epoch);
bool window_has_job_locked(const struct window *w, const struct job *job);
/* Made where it is missing, then *fresh; NULL: out of memory. ts_ns: of a row that comes. */
struct window_epoch *window_epoch_take_locked(
	struct window *w, const struct job *job, uint32_t epoch, int64_t ts_ns, bool *fresh);
void window_epochs_release(struct window *w);

/* The window, just read, has rows of the job under this epoch. */
MUST_CHECK enum err_code window_epoch_found(
	struct db *db, struct window *w, struct job *job, uint32_t epoch, struct err *err);
/* The i-th epoch of the job, with the times of its rows; false: there are no more. */
struct window_span {
	uint32_t epoch;
	int64_t min_ns, max_ns;
};
bool window_epoch_at(struct db *db, const struct window *w, const struct job *job, uint32_t i,
	struct window_span *out);
/* (min, max] becomes the part of it in which the window has rows in p's ids; false: it has none. */
bool window_clip(struct db *db, const struct window *w, const struct partition *p, int64_t *min_ns,
	int64_t *max_ns);
/* Header whose types the series' rows of an epoch have: SYM_NONE where there are none,
 * SERIES_TYPES_MANY where they differ and rows are to be asked. */
uint32_t window_types(
	struct db *db, const struct window *w, const struct job *job, uint32_t epoch, uint32_t series);
/* False: out of memory. */
bool window_set_types(struct db *db, struct window *w, const struct job *job, uint32_t epoch,
	uint32_t series, uint32_t header);

/* ---- partitions.c: jobs, their epochs, and which of their symbols are in memory ---- */

/*
 * A job's symbols live in epochs: each has ids of its own, in a struct partition. New rows go under
 * the newest, the job's live epoch, whose partition stays in memory; others are loaded from
 * blocks and windows when a query wants them, kept while they are pinned or a delta base is in
 * their ids, and let go when symbols exceed db_options.symbols_bytes, longest unused first. Where
 * that is not enough live epochs end (evict.c).
 *
 * Content has one id in an epoch, always: before a live epoch's partition is given new content,
 * everything that blocks and windows have of the epoch is loaded into it.
 */
struct str job_name_of(struct labels labels); /* job, else service_name, else "" */
/* By name, id SYM_NONE: made where it is missing. Else by id; the epoch (SYM_NONE: none) is not
 * given to anything new. */
MUST_CHECK enum err_code db_job(
	struct db *db, struct str name, uint32_t id, uint32_t epoch, struct job **out, struct err *err);
struct job *db_job_by_id(struct db *db, uint32_t id);
struct job *db_job_at(struct db *db, uint32_t i); /* the i-th; NULL behind the last */
/* The epoch has had ids below next[kind]; db->lock is held. */
void job_know_ids(struct job *job, uint32_t epoch, const uint32_t *next);
void jobs_release(struct db *db);

/* The partition of an epoch, made where it is missing, pinned; its symbols are not loaded yet. */
MUST_CHECK enum err_code partition_pin(struct db *db, struct str job, uint32_t job_id,
	uint32_t epoch, struct partition **out, struct err *err);
void partition_unpin(struct db *db, struct partition *p);
/* A row that is put in: how large a table is once each target came about twice is what lives in it,
 * later growth what an end of the epoch would free. p->lock is held. */
void partition_note_row(struct partition *p, int64_t ts_ns, int64_t interval_ns);
/* New rows of the job go under a new epoch; job->lock is held. */
void epoch_end(struct db *db, struct job *job);
/* The next partition in memory from *at on, pinned; *at goes behind it. NULL: no more. */
struct partition *partition_next(struct db *db, uint32_t *at);
/* What a new row of the job in this window (which is pinned) gets its ids from: the live epoch,
 * everything of it in memory. job->lock is held; it is there as long as that is. */
MUST_CHECK enum err_code window_partition_take(struct db *db, struct window *w, struct job *job,
	int64_t ts_ns, struct partition **out, struct err *err);
/*
 * All symbols that a window has of p, or a block has up to a stage, are in memory afterwards; the
 * window or block is pinned. What was lost is ERR_CORRUPT, each time it is asked for; the rest is
 * there and p->damaged is set. ERR_EXISTS: ids mean something else here than elsewhere, and nothing
 * of the window or block may be used.
 */
MUST_CHECK enum err_code partition_need_window(
	struct db *db, struct partition *p, struct window *w, struct err *err);
struct db_block;
MUST_CHECK enum err_code partition_need_block(struct db *db, struct partition *p,
	struct db_block *b, uint32_t slot, enum block_stage stage, struct err *err);
/* A block or window is gone; p->lock is held. */
void partition_forget_source(struct partition *p, uint32_t number);
/* A new epoch for a partition's symbols that nobody else has: for joining blocks of several. */
MUST_CHECK enum err_code partition_new_epoch(
	struct db *db, const struct partition *like, struct partition **out, struct err *err);
/* Lets go of what is over the budget and nobody needs. */
void partitions_evict(struct db *db);
/* The same, and ends live epochs where that is not enough. */
void partitions_bound(struct db *db);

/* Ids of one partition in another: content is found there, or made (`to` is locked by each call,
 * and complete). Both are pinned. What `from` lacks is ERR_CORRUPT. */
struct translation;
MUST_CHECK enum err_code translation_open(
	struct partition *from, struct partition *to, struct translation **out, struct err *err);
void translation_close(struct translation *t); /* NULL is fine */
/* It is between these epochs; from now on between these tables of them. */
bool translation_is(struct translation *t, struct partition *from, struct partition *to);
MUST_CHECK enum err_code translate_stack(
	struct translation *t, uint32_t id, uint32_t *out, struct err *err);
MUST_CHECK enum err_code translate_label_set(
	struct translation *t, uint32_t id, uint32_t *out, struct err *err);
MUST_CHECK enum err_code translate_header(
	struct translation *t, uint32_t id, uint32_t *out, struct err *err);

/* ---- blocks.c: the blocks of a database ---- */

struct deleted_range {
	uint32_t series; /* number in the block or window */
	int64_t min_ns, max_ns; /* (min, max] */
};

struct db_block {
	struct block *block;
	uint32_t number; /* of this process: names the block to partitions' caches */
	unsigned pins; /* db->lock: queriers, compactions */
	bool gone; /* db->lock: out of the list; freed, and its files removed, with the last pin */
	bool keep; /* db->lock: gone, but its files are another's now */
	bool stays; /* db->lock: gone, but its files are there until the next start */
	bool apart; /* work: not joined with what is before it, that has too many other symbols */
	bool raw_failed; /* db->lock: its raw rows could not be dropped in this round */
	bool damaged; /* db->lock */
	struct err why; /* what was found wrong when it was opened */
	const struct deleted_range
		*deleted; /* db->lock: ascending; an array is replaced, not changed */
	size_t deleted_n;
};

/* db->blocks are ascending by time, and overlap neither each other nor a window in db->windows: a
 * window leaves that list in the same step in which its block enters this one. */
MUST_CHECK enum err_code blocks_open_all(struct db *db, struct err *err);
void blocks_unpin(struct db *db, struct db_block *b);
void blocks_close_all(struct db *db);
/* Some block or window has this epoch of this job: calls fn for each block that does. */
typedef enum err_code (*block_visit_fn)(
	void *ctx, struct db_block *b, uint32_t slot, struct err *err);
MUST_CHECK enum err_code blocks_visit_epoch(
	struct db *db, uint32_t job_id, uint32_t epoch, block_visit_fn fn, void *ctx, struct err *err);

/* ---- append_check.c: what any append has to pass ---- */

MUST_CHECK enum err_code append_check_labels(
	struct labels labels, const char *what, struct err *err);
MUST_CHECK enum err_code append_check_time(
	struct db *db, int64_t ts_ns, const char *what, struct err *err);
MUST_CHECK enum err_code append_check_state(struct db *db, struct err *err);

/* ---- cut.c, compact.c, retention.c ---- */

/* The oldest window that takes no more rows becomes a block. *did: there was one. */
MUST_CHECK enum err_code cut_oldest(struct db *db, bool *did, struct err *err);
/* Joins the blocks that are most due. *did: there were some. */
MUST_CHECK enum err_code compact_some(struct db *db, bool *did, struct err *err);
void retention_apply(struct db *db);

/* ---- query.c ---- */

void querier_warn(struct db_querier *q, struct querier_source *s, const struct err *why);
void querier_warn_text(struct db_querier *q, const char *text); /* in its arena; NULL is fine */
void querier_info(struct db_querier *q, const char *fmt, ...)
	PRINTF_LIKE(2, 3); /* each text once */
/* Looks whether the iterator passed over something. */
void querier_check(struct db_querier *q, struct querier_source *s, const struct store_iter *it);
bool querier_canceled(const struct db_querier *q);
/* The source's own iterators; NULL: out of memory, or (a window's) nothing to read. */
struct store_iter *querier_iter(struct querier_source *s);
struct block_chunks *querier_chunks(struct querier_source *s, struct err *err);
struct block_rollups *querier_rollups(struct querier_source *s, struct err *err);
/* The partition of an epoch that a window, not being reopened, has of a job, with its symbols;
 * pinned until the querier closes. NULL: it cannot be used, which is told. */
MUST_CHECK enum err_code querier_window_partition(struct db_querier *q, struct querier_source *s,
	struct job *job, uint32_t epoch, struct partition **out, struct err *err);
/* A block's slot as a partition with names, or with stacks too. ERR_CORRUPT, ERR_EXISTS: what the
 * block has of it may not be believed, warned already; the caller goes without. */
MUST_CHECK enum err_code querier_partition(struct db_querier *q, struct querier_source *s,
	uint32_t slot, bool stacks, struct partition **out, struct err *err);
/* Ids of a row are there: else it is damaged, ERR_CORRUPT. */
struct row_view;
MUST_CHECK enum err_code querier_check_ids(const struct partition *p, const struct row_view *v,
	const uint32_t *stacks, const uint32_t *sets, struct err *err);
/* Column of the type in the header's rows, -1: none. */
int header_column(const struct partition *p, uint32_t header, const struct profile_type *t);
/* sum.c; NULL is fine */
void sum_scratch_close(struct sum_scratch *x);

#endif
