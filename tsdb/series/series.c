#include "tsdb/series/series_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/map.h"
#include "base/metrics.h"
#include "base/quote.h"
#include "tsdb/series/groups.h"
#include "tsdb/symbols/symbols.h"

#define TOGETHER 32u

METRIC_COUNTER(refused_total, "epimetheus_tsdb_series_refused_total",
	"New series that were refused, by the limit that was reached.", "limit");

enum err_code series_index_open(
	uint64_t series_max, uint64_t job_series_max, struct series_index **out, struct err *err)
{
	struct series_index *x = calloc(1, sizeof(*x));
	pthread_rwlockattr_t attr;

	if (!x)
		return err_nomem(err, "series index");
	/* Queries come without end; a new series must not wait for a moment without any. */
	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&x->lock, &attr);
	pthread_rwlockattr_destroy(&attr);
	x->series_max = series_max;
	x->job_series_max = job_series_max;
	map_init(&x->by_labels);
	index_labels_init(x);
	*out = x;
	return ERR_OK;
}

void series_index_close(struct series_index *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->next_id && i < s->by_id_cap; i++)
		series_free(s->by_id[i]);
	free(s->by_id);
	index_labels_release(s);
	job_counts_release(&s->by_job_name);
	map_release(&s->by_labels);
	pthread_rwlock_destroy(&s->lock);
	free(s);
}

void series_lock_read(struct series_index *s)
{
	if (pthread_rwlock_rdlock(&s->lock))
		abort();
}

void series_lock_write(struct series_index *s)
{
	if (pthread_rwlock_wrlock(&s->lock))
		abort();
}

void series_unlock(struct series_index *s)
{
	if (pthread_rwlock_unlock(&s->lock))
		abort();
}

void series_free(struct series *s)
{
	if (!s)
		return;
	delta_base_release(&s->base);
	free(s);
}

struct series *series_by_id_locked(const struct series_index *s, uint32_t id)
{
	return id < s->by_id_cap ? s->by_id[id] : NULL;
}

uint32_t series_next_id(const struct series_index *s)
{
	return s->next_id;
}

void series_reserve_ids(struct series_index *s, uint32_t next)
{
	if (s->next_id < next)
		s->next_id = next;
}

uint64_t series_n(struct series_index *s)
{
	uint64_t n;

	series_lock_read(s);
	n = s->n;
	series_unlock(s);
	return n;
}

static bool labels_same(const void *ctx, const void *key, uint32_t id)
{
	const struct series *s = series_by_id_locked(ctx, id);

	return s && labels_eq(s->labels, *(const struct labels *)key);
}

static struct series *series_find_locked(
	const struct series_index *s, const struct labels *labels, uint64_t hash)
{
	uint32_t id = map_find(&s->by_labels, hash, labels_same, s, labels);

	return id == MAP_NONE ? NULL : s->by_id[id];
}

struct series *series_find(struct series_index *i, struct labels labels)
{
	uint64_t hash = labels_hash(labels);
	struct series *s;

	series_lock_read(i);
	if ((s = series_find_locked(i, &labels, hash)))
		atomic_fetch_add(&s->uses, 1);
	series_unlock(i);
	return s;
}

void series_release(struct series *s)
{
	atomic_fetch_sub(&s->uses, 1);
}

/* ---- names are of one kind ---- */

static enum series_kind series_name_kind_locked(const struct series_index *s, struct str name)
{
	const struct index_name *in = index_name_find(s, STR(LABEL_NAME));
	const struct series_posting *p = in ? index_value_find(in, name) : NULL;

	if (!p)
		return SERIES_NONE;
	return s->by_id[id_set_first(&p->ids)]->job ? SERIES_PROFILES : SERIES_NUMBERS;
}

enum series_kind series_name_kind(struct series_index *s, struct str name)
{
	enum series_kind kind;

	series_lock_read(s);
	kind = series_name_kind_locked(s, name);
	series_unlock(s);
	return kind;
}

enum err_code series_check_kind(
	struct str name, enum series_kind is, enum series_kind wanted, struct err *err)
{
	assert(wanted != SERIES_NONE);
	if (is == SERIES_NONE || is == wanted)
		return ERR_OK;
	return err_set(err, ERR_INVALID, "\"" STR_FMT "\" is a name of %s, and of nothing else",
		STR_ARG(name), is == SERIES_NUMBERS ? "numbers" : "profiles");
}

static enum err_code series_check_kind_locked(
	const struct series_index *s, struct labels labels, const struct job *job, struct err *err)
{
	struct str name = labels_get(labels, STR(LABEL_NAME));

	return series_check_kind(
		name, series_name_kind_locked(s, name), job ? SERIES_PROFILES : SERIES_NUMBERS, err);
}

/* ---- adding and removing ---- */

static bool series_reserve_id(struct series_index *s, uint32_t id)
{
	uint32_t had = s->by_id_cap;

	if (id < had)
		return true;
	if (!array_room(&s->by_id, had, (size_t)id - had + 1, &s->by_id_cap))
		return false;
	memset(s->by_id + had, 0, (size_t)(s->by_id_cap - had) * sizeof(struct series *));
	return true;
}

static struct str series_put_str(char **at, struct str s)
{
	struct str copy = { *at, s.len };

	if (s.len)
		memcpy(*at, s.ptr, s.len);
	*at += s.len;
	return copy;
}

/* A head may have a million of them: they take no more memory than they need. */
static struct series *series_make(struct labels labels, uint32_t id, struct job *job)
{
	size_t bytes = sizeof(struct series) + labels.n * sizeof(struct label);
	struct label *v;
	struct series *s;
	char *at;

	for (size_t i = 0; i < labels.n; i++)
		bytes += labels.v[i].name.len + labels.v[i].value.len;
	if (bytes > UINT32_MAX || !(s = calloc(1, bytes)))
		return NULL;
	v = (struct label *)(s + 1);
	at = (char *)(v + labels.n);
	for (size_t i = 0; i < labels.n; i++) {
		v[i].name = series_put_str(&at, labels.v[i].name);
		v[i].value = series_put_str(&at, labels.v[i].value);
	}
	s->labels = (struct labels){ v, labels.n };
	s->id = id;
	s->job = job;
	s->bytes = (uint32_t)bytes;
	s->stored_typeset = SYM_NONE;
	atomic_init(&s->uses, 1);
	return s;
}

/*
 * One job whose discovery or relabelling went wrong must not take the room of all others. What is
 * stored is never refused: the limit may have been higher when it came.
 */
static enum err_code series_check_job_locked(
	const struct series_index *s, struct labels labels, struct err *err)
{
	struct str job = job_name_of(labels);
	uint32_t n = job_counts_of(&s->by_job_name, job);

	if (!s->job_series_max || n < s->job_series_max)
		return ERR_OK;
	metric_add(&refused_total, "max-series-per-job", 1);
	if (!job.len)
		return err_set(err, ERR_LIMIT,
			"%" PRIu32 " series have no job, limit %" PRIu64 " (--storage.tsdb.max-series-per-job)",
			n, s->job_series_max);
	return err_set(err, ERR_LIMIT,
		"job %s has %" PRIu32 " series, those of its scrapes' numbers too, limit %" PRIu64
		" (--storage.tsdb.max-series-per-job)",
		QUOTED(job), n, s->job_series_max);
}

static enum err_code series_add_locked(struct series_index *i, struct labels labels, uint64_t hash,
	uint32_t id, struct job *job, struct series **out, struct err *err)
{
	struct series *s;

	if (i->n >= i->series_max) {
		metric_add(&refused_total, "max-series", 1);
		return err_set(err, ERR_LIMIT,
			"%" PRIu64 " series, limit %" PRIu64 " (--storage.tsdb.max-series)", i->n,
			i->series_max);
	}
	if (id == SYM_NONE)
		id = i->next_id;
	if (id >= SERIES_TYPES_MANY)
		return err_set(err, ERR_LIMIT, "all series ids are used up");
	if (!series_reserve_id(i, id) || !(s = series_make(labels, id, job)))
		return err_nomem(err, "series index");
	if (!job_counts_add(&i->by_job_name, job_name_of(labels))) {
		series_free(s);
		return err_nomem(err, "series index");
	}
	if (!index_labels_add(i, s) || !map_add(&i->by_labels, hash, id)) {
		index_labels_remove(i, s);
		job_counts_remove(&i->by_job_name, job_name_of(labels));
		series_free(s);
		return err_nomem(err, "series index");
	}
	assert(!i->by_id[id]);
	i->by_id[id] = s;
	i->n++;
	i->series_bytes += s->bytes;
	if (i->next_id <= id)
		i->next_id = id + 1;
	*out = s;
	return ERR_OK;
}

enum err_code series_add(struct series_index *s, struct labels labels, uint32_t id, struct job *job,
	struct series **out, struct err *err)
{
	uint64_t hash = labels_hash(labels);
	enum err_code rc = ERR_OK;

	series_lock_write(s);
	if ((*out = series_find_locked(s, &labels, hash)))
		atomic_fetch_add(&(*out)->uses, 1);
	else if (id != SYM_NONE ||
		(!(rc = series_check_kind_locked(s, labels, job, err)) &&
			!(rc = series_check_job_locked(s, labels, err))))
		rc = series_add_locked(s, labels, hash, id, job, out, err);
	series_unlock(s);
	return rc;
}

static enum err_code series_add_stored_locked(
	struct series_index *i, const struct series_stored *stored, uint64_t hash, struct err *err)
{
	struct series *s = series_by_id_locked(i, stored->id);
	enum err_code rc;

	if (s && (!labels_eq(s->labels, stored->labels) || !s->job != !stored->job))
		return err_set(err, ERR_EXISTS, "series %" PRIu32 " has two meanings", stored->id);
	if (s)
		return ERR_OK;
	if ((s = series_find_locked(i, &stored->labels, hash)))
		return err_set(
			err, ERR_EXISTS, "series %" PRIu32 " has another id, %" PRIu32, stored->id, s->id);
	if (!(rc = series_add_locked(i, stored->labels, hash, stored->id, stored->job, &s, err)))
		series_release(s);
	return rc;
}

/* A million series are more than any cache holds: a few at a time wait for memory together. */
enum err_code series_add_stored(
	struct series_index *s, const struct series_stored *stored, size_t n, struct err *err)
{
	uint64_t hash[TOGETHER];
	enum err_code rc = ERR_OK;

	series_lock_write(s);
	for (size_t from = 0, to; from < n && !rc; from = to) {
		to = n - from < TOGETHER ? n : from + TOGETHER;
		for (size_t i = from; i < to; i++) {
			map_prefetch(&s->by_labels, hash[i - from] = labels_hash(stored[i].labels));
			index_labels_prefetch(s, stored[i].labels);
		}
		for (size_t i = from; i < to && !rc; i++)
			rc = series_add_stored_locked(s, &stored[i], hash[i - from], err);
	}
	series_unlock(s);
	return rc;
}

/* The map cannot forget an id; when half of what it holds is gone it is made anew. */
static void series_forget_removed(struct series_index *s)
{
	struct map fresh;

	if (++s->removed < 1024 || s->removed < s->n)
		return;
	map_init(&fresh);
	for (uint32_t i = 0; i < s->next_id && i < s->by_id_cap; i++)
		if (s->by_id[i] && !map_add(&fresh, labels_hash(s->by_id[i]->labels), i)) {
			map_release(&fresh);
			return;
		}
	map_release(&s->by_labels);
	s->by_labels = fresh;
	s->removed = 0;
}

void series_remove_locked(struct series_index *i, struct series *s)
{
	assert(i->by_id[s->id] == s && !atomic_load(&s->uses));
	index_labels_remove(i, s);
	i->by_id[s->id] = NULL;
	i->n--;
	i->series_bytes -= s->bytes;
	job_counts_remove(&i->by_job_name, job_name_of(s->labels));
	series_forget_removed(i);
	index_labels_compact(i);
}

uint64_t series_index_bytes(struct series_index *s)
{
	uint64_t bytes;

	series_lock_read(s);
	bytes = s->by_id_cap * sizeof(*s->by_id) + map_bytes(&s->by_labels) + s->series_bytes +
		index_labels_bytes(s) + job_counts_bytes(&s->by_job_name);
	series_unlock(s);
	return bytes;
}

uint64_t series_largest_job(struct series_index *s, struct buf *name)
{
	struct job_count most;

	series_lock_read(s);
	most = job_counts_largest(&s->by_job_name);
	if (name)
		buf_add_str(name, most.name);
	series_unlock(s);
	return most.n;
}
