#include <stdlib.h>

#include "base/array.h"
#include "proto/annotation.h"
#include "tsdb/catalog/jobs.h"
#include "tsdb/catalog/residents.h"
#include "tsdb/catalog/window_epochs.h"
#include "tsdb/columns/row.h"
#include "tsdb/head/commit.h"
#include "tsdb/head/epochs.h"
#include "tsdb/head/keys.h"
#include "tsdb/read/select_internal.h"

#define LISTED_WORDS 4u /* words of ids, listed under one lock */
#define LACKING_MANY 1024u /* series that lack a label; fewer are looked at one by one */

/* Selects in head windows, through the index in memory. A series comes once for each epoch that its
 * rows are in; only symbols of those epochs are loaded. */

/* True if the series has a row of this epoch in the querier's time. *first_ns: there is none
 * before. */
static bool window_has_rows(struct db_querier *q, struct querier_source *s, uint32_t series,
	struct window_span span, int64_t *first_ns)
{
	struct deleted d = { s->deleted, s->deleted_n };
	const struct deleted_range *gone;
	size_t gone_n = deleted_of(d, series, &gone);
	int64_t from = q->min_ns > span.min_ns ? q->min_ns : span.min_ns,
			to = q->max_ns < span.max_ns ? q->max_ns : span.max_ns, ts;
	struct key key = key_row(series, from + 1);
	struct store_iter *it = querier_iter(s);
	bool has = false;
	uint32_t id, epoch;
	struct str bytes;

	*first_ns = from + 1;
	if (from >= to)
		return false;
	if (!it)
		return s->snap != NULL; /* no memory: assume rows; reading them reports it */
	for (store_iter_seek(it, key_str(&key)); !has && store_iter_valid(it); store_iter_next(it)) {
		if (!key_parse_row(store_iter_key(it), &id, &ts) || id != series || ts > to)
			break;
		/* A row that cannot be read may be of any epoch; reading it reports the damage. */
		has = !deleted_has(gone, gone_n, ts) &&
			(store_iter_value(it, &bytes, NULL) || !row_epoch(bytes, &epoch) ||
				epoch == span.epoch);
		*first_ns = ts;
	}
	querier_check(q, s, it);
	return has;
}

/* Pinned until the querier closes, each once. */
static enum err_code select_window_keep_pinned(
	struct db_querier *q, struct partition *p, struct err *err)
{
	for (size_t i = 0; i < q->pinned_n; i++)
		if (q->pinned[i] == p) {
			partition_unpin(resident_of(p)->db, p);
			return ERR_OK;
		}
	if (!array_room(&q->pinned, q->pinned_n, 1, &q->pinned_cap)) {
		partition_unpin(resident_of(p)->db, p);
		return err_nomem(err, "select");
	}
	q->pinned[q->pinned_n++] = p;
	return ERR_OK;
}

enum err_code querier_window_partition(struct db_querier *q, struct querier_source *s,
	struct job *job, uint32_t epoch, struct partition **out, struct err *err)
{
	struct partition *p;
	enum err_code rc;
	struct err why;

	*out = NULL;
	if ((rc = partition_pin(s->db, job->name, job->id, epoch, &p, err)) ||
		(rc = select_window_keep_pinned(q, p, err)))
		return rc;
	if ((rc = partition_need_window(s->db, p, s->w, &why)))
		querier_warn(q, s, &why);
	if (rc && rc != ERR_CORRUPT && rc != ERR_EXISTS && rc != ERR_UNAVAILABLE)
		return err_copy(err, &why);
	if (rc != ERR_EXISTS)
		*out = p;
	return ERR_OK;
}

enum err_code select_list_jobs(struct db *db, struct window_jobs *j, struct err *err)
{
	while (db_job_at(db, j->n))
		j->n++;
	return (j->v = calloc(j->n + 1, sizeof(*j->v))) ? ERR_OK : err_nomem(err, "select");
}

void select_release_jobs(struct window_jobs *j)
{
	for (uint32_t i = 0; i < j->n && j->v; i++) {
		free(j->v[i].v);
		free(j->v[i].epochs);
	}
	free(j->v);
}

/* The partition of an epoch, pinned once for the whole selection. NULL: it cannot be used. */
static enum err_code select_window_part_of(struct selecting *s, uint32_t source, struct job *job,
	uint32_t epoch, struct partition **out, struct err *err)
{
	struct window_parts *j = &s->jobs[source].v[job->index];
	uint32_t cap = j->cap;
	enum err_code rc;

	for (uint32_t i = 0; i < j->n; i++)
		if (j->epochs[i] == epoch) {
			*out = j->v[i];
			return ERR_OK;
		}
	if (!array_room(&j->v, j->n, 1, &cap) || !array_room(&j->epochs, j->n, 1, &j->cap))
		return err_nomem(err, "select");
	if ((rc = querier_window_partition(s->q, &s->q->sources[source], job, epoch, out, err)))
		return rc;
	j->v[j->n] = *out;
	j->epochs[j->n++] = epoch;
	return ERR_OK;
}

enum err_code select_window_has_key(struct selecting *selecting, uint32_t source, struct str name,
	struct str key, bool *has, struct err *err)
{
	const struct querier_source *s = &selecting->q->sources[source];
	struct window_span span;
	struct partition *p;
	struct job *job;
	enum err_code rc = ERR_OK;

	for (uint32_t i = 0; i < selecting->jobs[source].n && !rc && !*has; i++) {
		job = db_job_at(s->db, i);
		if (!str_eq(job->name, name))
			continue;
		for (uint32_t k = 0; window_epoch_at(s->db, s->w, job, k, &span); k++) {
			if (span.min_ns >= selecting->q->max_ns || span.max_ns <= selecting->q->min_ns)
				continue;
			rc = select_window_part_of(selecting, source, job, span.epoch, &p, err);
			if (rc || (*has = p && sym_has_label_key(p, key)))
				break;
		}
	}
	return rc;
}

/* Numbers have no samples: a missing label is "". */
static bool select_window_numbers_match(
	const struct selecting *s, const struct read_select_found *f)
{
	bool all = true;

	for (size_t i = 0; i < s->n && all; i++)
		all = matcher_test_labels(&s->m[i], f->labels);
	return all;
}

/* of: NULL if the series cannot be read. The index is locked. */
typedef void (*series_fn)(void *ctx, uint32_t id, struct series *of);

/* Calls `each` for the series in LISTED_WORDS words of ids, beginning with word `from`. The series
 * live as long as the querier. A series that left the index has no rows any more. */
static void select_window_each_series(const struct selecting *s, uint32_t source,
	const struct bits *ids, size_t from, series_fn each, void *ctx)
{
	struct series_index *index = s->q->sources[source].db->series;

	series_lock_read(index);
	for (size_t w = from; w < ids->words && w < from + LISTED_WORDS; w++)
		for (uint64_t rest = ids->w[w]; rest; rest &= rest - 1) {
			uint32_t id = (uint32_t)(w * 64 + (size_t)__builtin_ctzll(rest));
			struct series *of = series_by_id_locked(index, id);

			each(ctx, id, of && of->job && of->job->index >= s->jobs[source].n ? NULL : of);
		}
	series_unlock(index);
}

struct select_window_listed {
	struct read_select_found v[LISTED_WORDS * 64];
	size_t n;
	uint32_t source;
	bool numbers;
};

static void select_window_list_series(void *ctx, uint32_t id, struct series *of)
{
	struct select_window_listed *l = ctx;

	if (of && (of->job || l->numbers))
		l->v[l->n++] = (struct read_select_found){ of->labels, NULL, of->job,
			of->job ? of->job->name : (struct str){ 0 }, { l->source, id }, 0,
			atomic_load(&of->last_ts_ns) };
}

/* True if indexes prove that the series has rows in the querier's time, all of one epoch. */
static bool select_window_is_sure(
	const struct selecting *selecting, const struct querier_source *s, struct read_select_found f)
{
	const struct db_querier *q = selecting->q;
	int64_t from = q->min_ns > s->min_ns ? q->min_ns : s->min_ns,
			to = q->max_ns < s->max_ns ? q->max_ns : s->max_ns;
	struct window_span span;

	if (!selecting->visitor || !selecting->visitor->early || s->deleted_n ||
		window_epoch_at(s->db, s->w, f.job, 1, &span))
		return false;
	return selecting->whole || (f.last_ns > from && f.last_ns <= to);
}

/* Adds one entry for each epoch with rows of the series. f.last_ns: its last row, if known. */
static enum err_code select_window_add_epochs(
	struct selecting *selecting, uint32_t source, struct read_select_found f, struct err *err)
{
	struct querier_source *s = &selecting->q->sources[source];
	bool sure = select_window_is_sure(selecting, s, f);
	struct window_span span;
	enum err_code rc = ERR_OK;

	for (uint32_t i = 0; window_epoch_at(s->db, s->w, f.job, i, &span) && !rc; i++) {
		if (!sure && !window_has_rows(selecting->q, s, f.place.id, span, &f.first_ns))
			continue;
		f.last_ns = s->max_ns;
		rc = select_window_part_of(selecting, source, f.job, span.epoch, &f.partition, err);
		if (!rc && f.partition)
			rc = select_add(selecting, f, err);
	}
	return rc;
}

static enum err_code select_window_look(
	struct selecting *selecting, uint32_t source, const struct bits *ids, struct err *err)
{
	struct querier_source *s = &selecting->q->sources[source];
	enum err_code rc = ERR_OK;
	struct select_window_listed listed;
	bool may = false, wanted = true;

	listed.source = source;
	listed.numbers = selecting->kinds & DB_NUMBERS;
	for (size_t from = 0; from < ids->words && !rc; from += LISTED_WORDS) {
		while (from < ids->words && !ids->w[from]) /* nearly always few of very many are selected */
			from++;
		if (querier_canceled(selecting->q))
			return select_canceled(err);
		listed.n = 0;
		select_window_each_series(selecting, source, ids, from, select_window_list_series, &listed);
		for (size_t i = 0; i < listed.n && !rc; i++) {
			const struct read_select_found *f = &listed.v[i];

			rc = select_wants(selecting, f->labels, f->job_name, &wanted, err);
			if (rc || !wanted)
				continue;
			if (!f->job && select_window_numbers_match(selecting, f) &&
				numbers_in_window(selecting->q, s, f->place.id))
				rc = select_add(selecting, *f, err);
			else if (f->job && !(rc = select_samples_may_match(selecting, f, &may, err)) && may)
				rc = select_window_add_epochs(selecting, source, *f, err);
		}
	}
	return rc;
}

/* ---- labels that many series lack ---- */

/* Jobs of series that lack a label. */
struct lacking {
	struct selecting *x;
	uint32_t source;
	const struct matcher *m;
	size_t many; /* jobs are asked if at least this many series lack the label */
	struct bits ids;
	struct job **jobs;
	size_t n, cap;
	bool failed;
};

static bool select_window_add_job(void *ctx, struct job *job)
{
	struct lacking *l = ctx;

	if (!array_room(&l->jobs, l->n, 1, &l->cap)) {
		l->failed = true;
		return false;
	}
	l->jobs[l->n++] = job;
	return true;
}

static enum err_code select_window_list_lacking(
	struct lacking *l, const struct bits *ids, struct err *err)
{
	struct series_index *index = l->x->q->sources[l->source].db->series;

	if (!bits_reserve(&l->ids, (uint32_t)(ids->words * 64 - 1)))
		return err_nomem(err, "select");
	memcpy(l->ids.w, ids->w, ids->words * sizeof(*ids->w));
	series_lock_read(index);
	series_lacking_locked(index, l->m->name, &l->ids);
	if (bits_count(&l->ids) >= l->many)
		series_jobs_locked(index, &l->ids, select_window_add_job, l);
	series_unlock(index);
	return l->failed ? err_nomem(err, "select") : ERR_OK;
}

/* Takes the job's series with label <name> off the list of those to be dropped: on these, the label
 * sample_<name> means the label <name> of samples. */
static enum err_code select_window_keep_clashing(
	struct lacking *l, const struct job *job, struct str label, struct err *err)
{
	struct series_index *index = l->x->q->sources[l->source].db->series;
	uint32_t last = (uint32_t)(l->ids.words * 64 - 1);
	struct bits others = { 0 }, without = { 0 };
	bool ok = bits_reserve(&others, last) && bits_reserve(&without, last);

	if (ok) {
		memcpy(others.w, l->ids.w, l->ids.words * sizeof(*others.w));
		memcpy(without.w, l->ids.w, l->ids.words * sizeof(*without.w));
		series_lock_read(index);
		series_drop_job_locked(index, job, &others);
		series_lacking_locked(index, label, &without);
		series_unlock(index);
		for (size_t w = 0; w < l->ids.words; w++)
			l->ids.w[w] &= others.w[w] | without.w[w];
	}
	bits_release(&others);
	bits_release(&without);
	return ok ? ERR_OK : err_nomem(err, "select");
}

/* l->ids has the series to drop, which lack the label. Removes those of the job whose samples may
 * have it. */
static enum err_code select_window_ask_job(
	struct lacking *l, const struct job *job, struct err *err)
{
	struct str name = l->m->name, inner = { name.ptr + 7, name.len - 7 };
	struct series_index *index = l->x->q->sources[l->source].db->series;
	bool has = false;
	enum err_code rc;

	if (!job || job->index >= l->x->jobs[l->source].n)
		return ERR_OK;
	if ((rc = select_job_has_key(l->x, job->name, name, &has, err)))
		return rc;
	if (has) {
		series_lock_read(index);
		series_drop_job_locked(index, job, &l->ids);
		series_unlock(index);
	} else if (str_has_prefix(name, STR("sample_"))) {
		rc = select_job_has_key(l->x, job->name, inner, &has, err);
		return rc || !has ? rc : select_window_keep_clashing(l, job, inner, err);
	}
	return ERR_OK;
}

/*
 * If very many series lack the label of a matcher, their jobs are asked first: if samples of a job
 * lack the label too, all its series are dropped at once. The result is the same as
 * select_samples_may_match for each.
 */
static enum err_code select_window_drop_lacking(struct selecting *s, uint32_t source,
	const struct matcher *m, size_t many, struct bits *ids, struct err *err)
{
	struct lacking l = { .x = s, .source = source, .m = m, .many = many };
	enum err_code rc = select_window_list_lacking(&l, ids, err);

	for (size_t i = 0; i < l.n && !rc; i++)
		rc = querier_canceled(s->q) ? select_canceled(err) :
									  select_window_ask_job(&l, l.jobs[i], err);
	for (size_t w = 0; w < ids->words && l.n && !rc; w++)
		ids->w[w] &= ~l.ids.w[w];
	free(l.jobs);
	bits_release(&l.ids);
	return rc;
}

static enum err_code select_window_match_ids(
	struct selecting *s, uint32_t source, size_t many, struct bits *ids, struct err *err)
{
	const struct window *w = s->q->sources[source].w;
	struct series_index *index = s->q->sources[source].db->series;
	enum err_code rc;

	series_lock_read(index);
	rc = series_match_locked(index, s->m, s->n, &w->series, NULL, NULL, ids, err);
	if (!rc && s->kinds != (DB_PROFILES | DB_NUMBERS))
		series_keep_kind_locked(index, s->kinds & DB_NUMBERS, ids);
	series_unlock(index);
	for (size_t i = 0; i < s->n && !rc && ids->words; i++)
		if (!matcher_test(&s->m[i], STR("")))
			rc = select_window_drop_lacking(s, source, &s->m[i], many, ids, err);
	return rc;
}

/* True if every series of the window has rows in the querier's time. Rows that wait for their sync
 * count. */
static bool select_window_is_whole(struct db_querier *q, const struct querier_source *s)
{
	const struct window_count *n = &s->w->count;
	bool whole = !s->deleted_n &&
		(s->db->o.read_only || !commit_generation(s->db)); /* no commit failed */

	mutex_lock(&s->db->lock);
	whole &= !s->w->damaged && !window_is_empty(n) &&
		(q->min_ns <= s->min_ns || q->min_ns < n->min_ns) &&
		(q->max_ns >= s->max_ns ||
			(q->max_ns >= n->max_ns && q->max_ns >= atomic_load(&s->db->queued_max_ns)));
	mutex_unlock(&s->db->lock);
	return whole;
}

enum err_code select_window(struct selecting *s, uint32_t source, struct err *err)
{
	struct bits ids = { 0 };
	enum err_code rc;

	if (!s->q->sources[source].snap)
		return ERR_OK;
	s->whole = s->visitor && s->visitor->early &&
		select_window_is_whole(s->q, &s->q->sources[source]);
	if (!(rc = select_window_match_ids(s, source, LACKING_MANY, &ids, err)))
		rc = select_ids(s, source, &ids, select_window_look, err);
	bits_release(&ids);
	return rc;
}

/* ---- series alone ---- */

/* A batch of series whose rows must be searched. */
struct unsure {
	struct {
		uint32_t id;
		struct job *job;
	} v[LISTED_WORDS * 64];
	size_t n;
	struct bits *ids; /* series that cannot be read are removed */
	int64_t min_ns, max_ns;
	bool deleted; /* some rows of the window are deleted */
};

static void select_window_list_unsure(void *ctx, uint32_t id, struct series *of)
{
	struct unsure *u = ctx;
	int64_t last;

	if (!of) {
		bits_clear(u->ids, id);
		return;
	}
	last = atomic_load(&of->last_ts_ns);
	if (u->deleted || last <= u->min_ns || last > u->max_ns) {
		u->v[u->n].id = id;
		u->v[u->n++].job = of->job;
	}
}

static bool select_window_has_rows(
	struct db_querier *q, struct querier_source *s, uint32_t id, struct job *job)
{
	struct window_span span;
	int64_t first_ns;

	if (!job)
		return numbers_in_window(q, s, id);
	for (uint32_t i = 0; window_epoch_at(s->db, s->w, job, i, &span); i++)
		if (window_has_rows(q, s, id, span, &first_ns))
			return true;
	return false;
}

static enum err_code select_window_keep_with_rows(
	struct selecting *selecting, uint32_t source, struct bits *ids, struct err *err)
{
	struct querier_source *s = &selecting->q->sources[source];
	struct unsure unsure;

	unsure.ids = ids;
	unsure.min_ns = selecting->q->min_ns > s->min_ns ? selecting->q->min_ns : s->min_ns;
	unsure.max_ns = selecting->q->max_ns < s->max_ns ? selecting->q->max_ns : s->max_ns;
	unsure.deleted = s->deleted_n;
	for (size_t from = 0; from < ids->words; from += LISTED_WORDS) {
		if (querier_canceled(selecting->q))
			return select_canceled(err);
		unsure.n = 0;
		select_window_each_series(selecting, source, ids, from, select_window_list_unsure, &unsure);
		for (size_t i = 0; i < unsure.n; i++)
			if (!select_window_has_rows(selecting->q, s, unsure.v[i].id, unsure.v[i].job))
				bits_clear(ids, unsure.v[i].id);
	}
	return ERR_OK;
}

struct select_window_limiting {
	const struct label_limits *limits;
	struct bits *ids;
};

static void select_window_limit_series(void *ctx, uint32_t id, struct series *of)
{
	struct select_window_limiting *l = ctx;

	if (!of || !label_limits_admit(l->limits, of->labels))
		bits_clear(l->ids, id);
}

/* Leaves the series that the querier's limits admit. */
static enum err_code select_window_keep_admitted(
	struct selecting *selecting, uint32_t source, struct bits *ids, struct err *err)
{
	struct select_window_limiting l = { selecting->q->limits, ids };

	for (size_t from = 0; l.limits && from < ids->words; from += LISTED_WORDS) {
		if (querier_canceled(selecting->q))
			return select_canceled(err);
		select_window_each_series(selecting, source, ids, from, select_window_limit_series, &l);
	}
	return ERR_OK;
}

/* Takes marks out of the ids, if the matchers do not name them. */
static enum err_code select_window_drop_marks(
	struct selecting *selecting, uint32_t source, struct bits *ids, struct err *err)
{
	const struct matcher named = {
		.op = MATCH_EQ, .name = STR(LABEL_NAME), .value = STR(ANNOTATION_NAME) };
	struct series_index *index = selecting->q->sources[source].db->series;
	struct bits marks = { 0 };
	enum err_code rc;

	if (selecting->marks || !ids->words)
		return ERR_OK;
	series_lock_read(index);
	rc = series_match_locked(index, &named, 1, ids, NULL, NULL, &marks, err);
	series_unlock(index);
	for (size_t w = 0; w < ids->words && w < marks.words && !rc; w++)
		ids->w[w] &= ~marks.w[w];
	bits_release(&marks);
	return rc;
}

enum err_code select_window_series(
	struct selecting *selecting, uint32_t source, struct bits *out, struct err *err)
{
	struct querier_source *s = &selecting->q->sources[source];
	struct bits ids = { 0 };
	enum err_code rc;

	if (!s->snap)
		return ERR_OK;
	if (!(rc = select_window_match_ids(selecting, source, 1, &ids, err)) &&
		!(rc = select_window_drop_marks(selecting, source, &ids, err)) &&
		!(rc = select_window_keep_admitted(selecting, source, &ids, err)) &&
		!select_window_is_whole(selecting->q, s))
		rc = select_window_keep_with_rows(selecting, source, &ids, err);
	if (!rc && ids.words && !bits_reserve(out, (uint32_t)(ids.words * 64 - 1)))
		rc = err_nomem(err, "select");
	for (size_t w = 0; w < ids.words && !rc; w++)
		out->w[w] |= ids.w[w];
	bits_release(&ids);
	return rc;
}
