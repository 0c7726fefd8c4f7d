/*
 * Selecting, the inside: select.c (labels of samples, blocks), select_window.c (head windows) and
 * select_unite.c.
 *
 * Threads: the querier's.
 */
#ifndef TSDB_READ_SELECT_INTERNAL_H
#define TSDB_READ_SELECT_INTERNAL_H

#include "tsdb/read/querier_internal.h"

/* Partitions of a job in a head window, pinned by the querier, with symbols. */
struct window_parts {
	struct partition **v; /* NULL: cannot be used */
	uint32_t *epochs, n, cap;
};

struct window_jobs {
	struct window_parts *v; /* by job->index */
	uint32_t n;
};

/* Whether samples of a job have a label; filled on demand. */
struct known_key {
	struct str job, key;
	bool has;
};

/* One series of one source. */
struct read_select_found {
	struct labels labels;
	struct partition *partition;
	struct job *job; /* a window's */
	struct str job_name; /* of profiles */
	struct series_place place;
	int64_t first_ns, last_ns; /* of profiles: there are no rows before and after these */
};

struct latest_count {
	int64_t max_ns;
	size_t n; /* series */
};

struct selecting {
	struct db_querier *q;
	const struct db_visitor *visitor; /* gets each series; NULL: they are kept in v */
	size_t series_max; /* ERR_LIMIT if one time has, or probably has, more series; 0: no limit */
	size_t about; /* after ERR_LIMIT: an estimate of their number */
	/* by member: the source that was looked at last; NULL: not needed */
	struct latest_count *latest;
	bool whole; /* all series of the current window have rows in the querier's time */
	bool too_many; /* the limit is exceeded: the rest is only estimated */
	double part; /* with too_many: the part of the accepted series that has rows */
	const struct matcher *m;
	size_t n;
	struct matcher *limited; /* m with the querier's limits; NULL: m is the caller's */
	unsigned kinds; /* of enum db_kinds */
	bool marks; /* the matchers name marks; else marks are left out */
	struct arena *a; /* for results; with a visitor, valid during its call */
	struct read_select_found *v;
	size_t found, cap;
	struct chunk *chunk; /* made when first wanted */
	struct window_jobs *jobs; /* by source; of windows */
	struct known_key *keys;
	uint32_t keys_n, keys_cap;
	struct map keys_map;
};

static inline enum err_code select_canceled(struct err *err)
{
	return err_set(err, ERR_CANCELED, "query canceled");
}

/* ---- select.c ---- */

/* Prepares s; select_end releases it, also after a failure. */
MUST_CHECK enum err_code select_begin(struct selecting *s, struct err *err);
void select_end(struct selecting *s);
MUST_CHECK enum err_code select_add(
	struct selecting *s, struct read_select_found f, struct err *err);
/* Whether the querier's limits and the visitor admit the series; asked before rows are searched.
 * job: empty for numbers. */
MUST_CHECK enum err_code select_wants(
	struct selecting *s, struct labels labels, struct str job, bool *out, struct err *err);

/*
 * Calls look with the ids of a source. If these may exceed series_max, a sample is looked at first.
 */
typedef enum err_code (*select_look_fn)(
	struct selecting *x, uint32_t source, const struct bits *ids, struct err *err);
MUST_CHECK enum err_code select_ids(struct selecting *selecting, uint32_t source,
	const struct bits *ids, select_look_fn look, struct err *err);
/*
 * Samples of the series may pass the matchers about labels that it lacks: those that do not accept
 * "" need samples with the label, by its own name or as sample_<name> where the series has a label
 * of that name.
 */
MUST_CHECK enum err_code select_samples_may_match(
	struct selecting *s, const struct read_select_found *f, bool *out, struct err *err);

/* *out: samples of the job have the label. The answer is remembered per job and key, so all epochs
 * of a job get the same one. */
MUST_CHECK enum err_code select_job_has_key(
	struct selecting *s, struct str job, struct str key, bool *out, struct err *err);

/* ---- select_unite.c ---- */

/* Series with their places, ascending by labels, from what was found. */
MUST_CHECK enum err_code select_unite(
	struct selecting *s, struct db_series **out, size_t *out_n, struct err *err);

/* ---- select_window.c ---- */

/* Makes room in *j for all jobs of the window's database; select_release_jobs frees it. */
MUST_CHECK enum err_code select_list_jobs(struct db *db, struct window_jobs *j, struct err *err);
void select_release_jobs(struct window_jobs *j);
MUST_CHECK enum err_code select_window(struct selecting *s, uint32_t source, struct err *err);
/* Adds the ids of the window's series that db_select would give to out. Rows are searched only if
 * indexes do not decide. */
MUST_CHECK enum err_code select_window_series(
	struct selecting *selecting, uint32_t source, struct bits *out, struct err *err);
/* *has: samples of the job in this window have the label. Loads all its symbols. */
MUST_CHECK enum err_code select_window_has_key(struct selecting *selecting, uint32_t source,
	struct str name, struct str key, bool *has, struct err *err);

#endif
