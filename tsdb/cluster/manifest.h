/*
 * Manifest: the one list of what a shard has in the bucket.
 *
 * Readers use only objects that the manifest names. Such an object must be there: if it is missing
 * or changed, that is a loss. So one write of the manifest replaces a window or blocks by a block,
 * in one step for every reader. The manifest is also the shard's lease (lease.h).
 *
 *     shards/NAME/manifest
 *     shards/NAME/blocks/ULID/{rows.ldb,rollups.ldb,spare,meta.json}
 *     shards/NAME/blocks/ULID/meta.json-HASH     meta.json as it is since the raw rows were dropped
 *     shards/NAME/blocks/ULID/deleted-HASH       the block's file `deleted`
 *     shards/NAME/head/START-IDENTITY/LAST-HASH  a segment of a window: its last batch, 20 digits
 *     shards/NAME/head/START-IDENTITY/deleted-HASH
 *     shards/NAME/files/{ids,losses}-HASH
 *
 * START is the window's start in seconds; IDENTITY and HASH are 16 hexadecimal digits. An object
 * never changes: another content has another key. So a reader that holds an older manifest reads
 * what that one names, until the object is removed (`gone`).
 *
 * The text is one JSON object on one line; its last member is the checksum of what is before it, as
 * in a block's meta.json. Members that are not known are passed over.
 *
 * Units:     times in nanoseconds since 1970, (min, max]; bytes.
 * Errors:    ERR_CORRUPT (what is wrong), ERR_LIMIT (which), ERR_UNSUPPORTED (another version's),
 *            ERR_NOMEM.
 * Ownership: what is read is in the arena.
 * Threads:   values.
 */
#ifndef TSDB_CLUSTER_MANIFEST_H
#define TSDB_CLUSTER_MANIFEST_H

#include "tsdb/block/block.h"
#include "tsdb/bucket/bucket.h"

#define MANIFEST_VERSION 1
#define MANIFEST_BYTES_MAX (32u << 20)
#define MANIFEST_WINDOWS_MAX 4096u
#define MANIFEST_SEGMENTS_MAX 65536u /* of a window */
#define MANIFEST_BLOCKS_MAX 65536u
#define MANIFEST_GONE_MAX 262144u
#define MANIFEST_TOKEN_LEN 32u /* hexadecimal digits */
#define MANIFEST_SHARD_BYTES_MAX 63u
#define MANIFEST_HOST_BYTES_MAX 255u
#define MANIFEST_ADDRESS_BYTES_MAX 511u

struct manifest_file {
	uint64_t bytes, hash; /* XXH3 of the object; bytes 0: there is none */
};

struct manifest_segment {
	uint64_t first, last; /* batches; the first segment begins with 1, and there are no gaps */
	struct manifest_file object;
};

struct manifest_window {
	int64_t start_ns, end_ns;
	uint64_t identity;
	struct manifest_segment *segments;
	uint32_t segments_n;
	struct manifest_file deleted;
	/* The shard's directory lacks it, and did not drop it: it could not be restored, or not be
	 * read. It stays here until its time is older than the retention. The list of losses cannot
	 * replace this flag: it has no identities, and a new window of the same start is usual. */
	bool kept;
	/* Set by older programs that went on in another directory: the entry is kept, and its numbers
	 * of jobs, series and symbols mean something else. It is read and printed; nothing sets it. */
	bool apart;
	/* Not in the text: the directory's window lost batches that the segments have. A snapshot takes
	 * the place of all. */
	bool diverged;
};

struct manifest_block {
	struct ulid ulid;
	int64_t min_ns, max_ns;
	uint32_t level;
	bool raw; /* rows.ldb is there */
	struct manifest_file rows, rollups, spare, meta, deleted;
	bool meta_changed; /* meta's key is meta.json-HASH */
	bool kept, apart; /* as a window's */
};

/* An object that was named, or found without a name; it is removed some time later. */
struct manifest_gone {
	struct str key; /* behind shards/NAME/ */
	int64_t at_ns;
};

struct manifest {
	struct str shard;
	struct str owner; /* token of the data directory; MANIFEST_TOKEN_LEN digits */
	struct str session; /* token of the process */
	struct str host;
	uint64_t generation; /* counts writes */
	int64_t since_ns; /* when this owner took it */
	int64_t written_ns;
	/* By its writer's monotonic clock: when it was written, and when the write before it, of the
	 * generation before, was confirmed. 0: not known. They count within a session. */
	int64_t clock_ns, confirmed_ns;
	int64_t through_ns; /* rows acknowledged until then are in it; 0: not known */
	int64_t interval_ns; /* it is written this often at least */
	/* Its owner acknowledges nothing when it has not written it for so long, and another server may
	 * take it over then. 0: not known. */
	int64_t lease_ns;
	/* While the shard was gone, retention by time dropped what ended until then (caretaker.h); the
	 * shard does not put it again. 0: nothing was dropped. */
	int64_t dropped_ns;
	int64_t dropped_size_ns; /* the same by size; the shard puts again what it still has */
	/* Set by older programs: it grew each time they went on in another directory, as numbers of
	 * jobs, series and symbols meant something else from then on. Not printed. */
	uint64_t lives;
	bool stopped; /* nobody has the lease: another owner need not wait */
	/* The bucket has all that was acknowledged: the owner ended in order, and no owner took
	 * profiles since. Owners that only restore or tidy repeat it. If the text has no such member,
	 * it is as `stopped`. */
	bool complete;
	/* An owner before may have acknowledged what it did not put, and the owner has not noted that
	 * on its list of losses yet. */
	bool loss_due;
	/* In a caretaker's manifest: the directory that took profiles last, and the last generation
	 * that it wrote. Empty: the owner's directory takes profiles. */
	struct str taker;
	uint64_t taker_generation;
	/* Of a shard that joins others (assignment/): the number that it follows, so it scrapes nothing
	 * by lower ones any more, and where others reach it. 0 and empty: of one that does not. */
	uint64_t assignment;
	struct str address;
	struct manifest_file ids, losses;
	struct manifest_window *windows; /* ascending by (start, identity) */
	struct manifest_block *blocks; /* ascending by (min, ULID) */
	struct manifest_gone *gone; /* ascending by key */
	uint32_t windows_n, blocks_n, gone_n;
};

/* Letters, digits, "-", "_" and ".", which is not the first. ERR_INVALID. */
MUST_CHECK enum err_code manifest_check_shard(struct str name, struct err *err);

MUST_CHECK enum err_code manifest_parse(
	struct str text, struct arena *a, struct manifest *out, struct err *err);
/* Sorted as above by the caller. A failed buf: no memory. */
void manifest_print(struct buf *out, const struct manifest *m);
/* Sorts what has to be sorted. */
void manifest_sort(struct manifest *m);
/* Random hexadecimal digits. */
void manifest_new_token(char out[MANIFEST_TOKEN_LEN + 1]);
/* Nobody takes profiles under it: its owner has stopped, or is a caretaker. */
static inline bool manifest_has_ended(const struct manifest *m)
{
	return m->stopped || m->taker.len;
}
/* The newest end of its blocks or start of its windows; INT64_MIN: it has neither. */
int64_t manifest_newest_ns(const struct manifest *m);
/* NULL: there is none. */
struct manifest_window *manifest_find_window(
	const struct manifest *m, int64_t start_ns, uint64_t identity);
struct manifest_block *manifest_find_block(const struct manifest *m, const struct ulid *u);

/* The object with its ETag (BUCKET_ETAG_BYTES_MAX bytes or NULL); errors of the bucket too. */
MUST_CHECK enum err_code manifest_get(struct bucket *b, struct str key, struct arena *a,
	struct manifest *out, char *etag, struct err *err);

/* ---- keys ---- */

#define MANIFEST_KEY_BYTES_MAX 192u

struct manifest_key {
	char text[MANIFEST_KEY_BYTES_MAX];
};

enum manifest_block_file {
	MANIFEST_ROWS,
	MANIFEST_ROLLUPS,
	MANIFEST_SPARE,
	MANIFEST_META,
	MANIFEST_BLOCK_DELETED,
	MANIFEST_BLOCK_FILES
};
extern const char *const manifest_block_file_names[MANIFEST_BLOCK_FILES]; /* on the disk */
const struct manifest_file *manifest_block_file(
	const struct manifest_block *b, enum manifest_block_file which);

struct manifest_key manifest_key_of(struct str shard); /* of the manifest itself */
/* senders/NAME: who pushes to the shard. No manifest names it, and it is overwritten. */
struct manifest_key manifest_key_senders(struct str shard);
/* evaluated/NAME: what the rules' shard evaluates, as all query nodes answer it. Likewise. */
struct manifest_key manifest_key_evaluated(struct str shard);
struct manifest_key manifest_key_targets(struct str shard); /* targets/NAME: what it scrapes */
struct manifest_key manifest_key_block(
	struct str shard, const struct manifest_block *b, enum manifest_block_file which);
struct manifest_key manifest_key_segment(
	struct str shard, const struct manifest_window *w, const struct manifest_segment *s);
struct manifest_key manifest_key_window_deleted(struct str shard, const struct manifest_window *w);
/* name: "ids", "losses" */
struct manifest_key manifest_key_small(
	struct str shard, const char *name, const struct manifest_file *f);
static inline struct str manifest_key_str(const struct manifest_key *k)
{
	return str_of(k->text);
}
/* The part behind "shards/NAME/". */
static inline struct str manifest_key_rest(const struct manifest_key *k, struct str shard)
{
	return str_of(k->text + sizeof("shards/") - 1 + shard.len + 1);
}

/* Calls fn with the key of each object that is named, but for the manifest and `gone`, and what is
 * known of it. fn returns false to stop. */
typedef bool (*manifest_key_fn)(
	void *ctx, const struct manifest_key *key, const struct manifest_file *f);
void manifest_each_key(const struct manifest *m, manifest_key_fn fn, void *ctx);
uint64_t manifest_bytes(const struct manifest *m); /* of all that is named */
/*
 * Entries that readers and a restore pass over: those that are apart, and kept ones that overlap an
 * entry that is shown. There is an element for each window and block; true: it is hidden.
 */
void manifest_hidden(const struct manifest *m, bool *windows, bool *blocks);

#endif
