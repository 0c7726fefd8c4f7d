/*
 * Shared by the files of the store; not for its users.
 *
 * Lock: the store's lock guards all entries and counts. Bytes are written and synced without it;
 * renames and removals are under it, so that names and entries agree.
 */
#ifndef TSDB_DEBUGINFO_STORE_INTERNAL_H
#define TSDB_DEBUGINFO_STORE_INTERNAL_H

#include "base/thread.h"
#include "tsdb/debuginfo/store/stamps.h"
#include "tsdb/debuginfo/store/store.h"

#define BUCKETS 4096
#define ENTRIES_MAX 200000 /* keys that are only missing or failed are not noted beyond it */

enum waiting { WAITING_NOT, WAITING_UPLOAD, WAITING_QUEUED, WAITING_JOB };

struct debuginfo_entry {
	struct debuginfo_entry *next;
	struct stamp stamp; /* with the id */
	/* the index */
	bool present, unsynced; /* unsynced: its name may be gone after a power cut */
	enum debuginfo_kind kind;
	enum debuginfo_origin origin;
	enum debuginfo_quality quality;
	uint64_t index_bytes, file_bytes, source_bytes;
	int64_t added_s;
	struct debuginfo_index *mapped; /* of this index, while it has readers */
	char *path; /* NULL: not known */
	struct debuginfo_entry *next_named; /* with path: of this base name's bucket */
	/* what comes */
	enum waiting waiting;
	enum debuginfo_kind waiting_kind;
	enum debuginfo_origin waiting_origin;
	char *waiting_path; /* NULL: not known */
	uint64_t waiting_bytes, number; /* number: order in the queue */
	int64_t due_s;
};

struct debuginfo_store {
	struct fs *fs;
	char *dir;
	struct debuginfo_options o;
	struct mutex lock;
	struct debuginfo_entry *buckets[BUCKETS];
	struct debuginfo_entry *named[BUCKETS]; /* indexes, by the base names of their paths */
	_Atomic uint64_t generation;
	uint64_t seed;
	size_t entries_n, indexes_n, queued_n, jobs_n;
	uint64_t bytes; /* of all index files */
	uint64_t uploads_bytes; /* under way, queued, and of jobs */
	unsigned uploads_n; /* under way */
	struct debuginfo_upload *uploads; /* all that are under way */
	uint64_t last_number;
	int64_t stamped_s;
	bool stamps_changed;
};

struct debuginfo_index {
	struct debuginfo_store *store;
	struct debuginfo_entry *entry; /* NULL: replaced, evicted or dropped */
	unsigned readers;
	enum debuginfo_quality quality;
	void *map;
	size_t map_bytes, bytes;
};

int64_t store_now_s(const struct debuginfo_store *s);
/* The lock is held for these. */
struct debuginfo_entry *entry_find(struct debuginfo_store *s, const struct debuginfo_id *id);
MUST_CHECK enum err_code entry_make(struct debuginfo_store *s, const struct debuginfo_id *id,
	bool for_data, struct debuginfo_entry **out, struct err *err);
void entry_tidy(
	struct debuginfo_store *s, struct debuginfo_entry *e); /* frees it if it says nothing */
/* patient: not if a file failed or was no better a short time ago, unless it is forced. */
bool entry_wants(const struct debuginfo_store *s, const struct debuginfo_entry *e,
	const struct debuginfo_offer *o, bool patient, const char **reason);
void entry_set_tried(
	struct debuginfo_store *s, struct debuginfo_entry *e, enum debuginfo_kind kind, struct str why);
/* Removes the index of an entry. On an error it stays. */
MUST_CHECK enum err_code entry_remove_index(
	struct debuginfo_store *s, struct debuginfo_entry *e, struct err *err);
void uploads_end_idle(struct debuginfo_store *s);
void debuginfo_evict(struct debuginfo_store *s, const struct debuginfo_entry *keep);

/* Paths, malloc's; NULL: out of memory. */
char *path_of_index(const struct debuginfo_store *s, const struct debuginfo_id *id);
char *path_of_queued(const struct debuginfo_store *s, const struct debuginfo_id *id,
	enum debuginfo_kind kind, enum debuginfo_origin origin);
/* Beside a queued upload: the path of the file. */
char *path_of_waiting(const struct debuginfo_store *s, const struct debuginfo_id *id,
	enum debuginfo_kind kind, enum debuginfo_origin origin);
char *path_in(const struct debuginfo_store *s, const char *name);
MUST_CHECK enum err_code tmp_open(struct debuginfo_store *s, char **path, int *fd, struct err *err);
MUST_CHECK enum err_code space_check(struct debuginfo_store *s, uint64_t bytes, struct err *err);

/* "STEM.full.upload.queued", or "STEM.full.upload.path", which is *of_path. */
MUST_CHECK bool queued_name_parse(struct str name, struct debuginfo_id *id,
	enum debuginfo_kind *kind, enum debuginfo_origin *origin, bool *of_path);

/* ---- paths.c ---- */

/* *out is malloc's; NULL for an empty one. */
MUST_CHECK enum err_code path_copy(const char *path, char **out, struct err *err);
/* The path of an index. Takes `path`, which may be NULL. The lock is held. */
void entry_set_path(struct debuginfo_store *s, struct debuginfo_entry *e, char *path);
/* Of a queued upload, on the disk: synced; removed where path is "". */
MUST_CHECK enum err_code waiting_path_write(struct debuginfo_store *s,
	const struct debuginfo_id *id, enum debuginfo_kind kind, enum debuginfo_origin origin,
	const char *path, struct err *err);
void waiting_path_remove(struct debuginfo_store *s, const struct debuginfo_id *id,
	enum debuginfo_kind kind, enum debuginfo_origin origin);
/* A damaged one is logged and not known. ERR_NOMEM. */
MUST_CHECK enum err_code waiting_path_read(struct debuginfo_store *s, const struct debuginfo_id *id,
	enum debuginfo_kind kind, enum debuginfo_origin origin, char **out, struct err *err);

/* The end of an index file says what it is: the path, then 64 bytes. */
#define FOOTER_BYTES 64
#define FOOTER_BYTES_MAX (FOOTER_BYTES + DEBUGINFO_PATH_BYTES_MAX)
struct footer {
	char path[DEBUGINFO_PATH_BYTES_MAX + 1];
	enum debuginfo_kind kind;
	enum debuginfo_origin origin;
	enum debuginfo_quality quality;
	uint64_t index_bytes, source_bytes;
	int64_t added_s;
};
void footer_add(struct buf *out, const struct debuginfo_id *id, const struct footer *f);
static inline uint64_t footer_bytes(const struct footer *f)
{
	return FOOTER_BYTES + strlen(f->path);
}
/* bytes: the end of a file. ERR_CORRUPT: damaged, or of another key. */
MUST_CHECK enum err_code footer_decode(
	struct str bytes, const struct debuginfo_id *id, struct footer *f, struct err *err);

#endif
