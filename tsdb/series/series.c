#include "tsdb/series/series_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/map.h"
#include "tsdb/symbols/symbols.h"

#define TOGETHER 32u

enum err_code series_index_open(uint64_t series_max, struct series_index **out, struct err *err)
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
	map_init(&x->by_labels);
	index_labels_init(x);
	*out = x;
	return ERR_OK;
}

void series_index_close(struct series_index *x)
{
	if (!x)
		return;
	for (uint32_t i = 0; i < x->next_id && i < x->by_id_cap; i++)
		series_free(x->by_id[i]);
	free(x->by_id);
	index_labels_release(x);
	map_release(&x->by_labels);
	pthread_rwlock_destroy(&x->lock);
	free(x);
}

void series_lock_read(struct series_index *x)
{
	if (pthread_rwlock_rdlock(&x->lock))
		abort();
}

void series_lock_write(struct series_index *x)
{
	if (pthread_rwlock_wrlock(&x->lock))
		abort();
}

void series_unlock(struct series_index *x)
{
	if (pthread_rwlock_unlock(&x->lock))
		abort();
}

void series_free(struct series *s)
{
	if (!s)
		return;
	delta_base_release(&s->base);
	free(s);
}

struct series *series_by_id_locked(const struct series_index *x, uint32_t id)
{
	return id < x->by_id_cap ? x->by_id[id] : NULL;
}

uint32_t series_next_id(const struct series_index *x)
{
	return x->next_id;
}

void series_reserve_ids(struct series_index *x, uint32_t next)
{
	if (x->next_id < next)
		x->next_id = next;
}

uint64_t series_n(struct series_index *x)
{
	uint64_t n;

	series_lock_read(x);
	n = x->n;
	series_unlock(x);
	return n;
}

static bool labels_same(const void *ctx, const void *key, uint32_t id)
{
	const struct series *s = series_by_id_locked(ctx, id);

	return s && labels_eq(s->labels, *(const struct labels *)key);
}

static struct series *series_find_locked(
	const struct series_index *x, const struct labels *labels, uint64_t hash)
{
	uint32_t id = map_find(&x->by_labels, hash, labels_same, x, labels);

	return id == MAP_NONE ? NULL : x->by_id[id];
}

struct series *series_find(struct series_index *x, struct labels labels)
{
	uint64_t hash = labels_hash(labels);
	struct series *s;

	series_lock_read(x);
	if ((s = series_find_locked(x, &labels, hash)))
		atomic_fetch_add(&s->uses, 1);
	series_unlock(x);
	return s;
}

void series_release(struct series *s)
{
	atomic_fetch_sub(&s->uses, 1);
}

/* ---- names are of one kind ---- */

static enum series_kind series_name_kind_locked(const struct series_index *x, struct str name)
{
	const struct index_name *in = index_name_find(x, STR(LABEL_NAME));
	const struct series_posting *p = in ? index_value_find(in, name) : NULL;

	if (!p)
		return SERIES_NONE;
	return x->by_id[id_set_first(&p->ids)]->job ? SERIES_PROFILES : SERIES_NUMBERS;
}

enum series_kind series_name_kind(struct series_index *x, struct str name)
{
	enum series_kind kind;

	series_lock_read(x);
	kind = series_name_kind_locked(x, name);
	series_unlock(x);
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
	const struct series_index *x, struct labels labels, const struct job *job, struct err *err)
{
	struct str name = labels_get(labels, STR(LABEL_NAME));

	return series_check_kind(
		name, series_name_kind_locked(x, name), job ? SERIES_PROFILES : SERIES_NUMBERS, err);
}

/* ---- adding and removing ---- */

static bool series_reserve_id(struct series_index *x, uint32_t id)
{
	uint32_t had = x->by_id_cap;

	if (id < had)
		return true;
	if (!array_room(&x->by_id, had, (size_t)id - had + 1, &x->by_id_cap))
		return false;
	memset(x->by_id + had, 0, (size_t)(x->by_id_cap - had) * sizeof(struct series *));
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

static enum err_code series_add_locked(struct series_index *x, struct labels labels, uint64_t hash,
	uint32_t id, struct job *job, struct series **out, struct err *err)
{
	struct series *s;

	if (x->n >= x->series_max)
		return err_set(err, ERR_LIMIT,
			"%" PRIu64 " series, limit %" PRIu64 " (--storage.tsdb.max-series)", x->n,
			x->series_max);
	if (id == SYM_NONE)
		id = x->next_id;
	if (id >= SERIES_TYPES_MANY)
		return err_set(err, ERR_LIMIT, "all series ids are used up");
	if (!series_reserve_id(x, id) || !(s = series_make(labels, id, job)))
		return err_nomem(err, "series index");
	if (!index_labels_add(x, s) || !map_add(&x->by_labels, hash, id)) {
		index_labels_remove(x, s);
		series_free(s);
		return err_nomem(err, "series index");
	}
	assert(!x->by_id[id]);
	x->by_id[id] = s;
	x->n++;
	x->series_bytes += s->bytes;
	if (x->next_id <= id)
		x->next_id = id + 1;
	*out = s;
	return ERR_OK;
}

enum err_code series_add(struct series_index *x, struct labels labels, uint32_t id, struct job *job,
	struct series **out, struct err *err)
{
	uint64_t hash = labels_hash(labels);
	enum err_code rc = ERR_OK;

	series_lock_write(x);
	if ((*out = series_find_locked(x, &labels, hash)))
		atomic_fetch_add(&(*out)->uses, 1);
	else if (id != SYM_NONE || !(rc = series_check_kind_locked(x, labels, job, err)))
		rc = series_add_locked(x, labels, hash, id, job, out, err);
	series_unlock(x);
	return rc;
}

static enum err_code series_add_stored_locked(
	struct series_index *x, const struct series_stored *v, uint64_t hash, struct err *err)
{
	struct series *s = series_by_id_locked(x, v->id);
	enum err_code rc;

	if (s && (!labels_eq(s->labels, v->labels) || !s->job != !v->job))
		return err_set(err, ERR_EXISTS, "series %" PRIu32 " has two meanings", v->id);
	if (s)
		return ERR_OK;
	if ((s = series_find_locked(x, &v->labels, hash)))
		return err_set(
			err, ERR_EXISTS, "series %" PRIu32 " has another id, %" PRIu32, v->id, s->id);
	if (!(rc = series_add_locked(x, v->labels, hash, v->id, v->job, &s, err)))
		series_release(s);
	return rc;
}

/* A million series are more than any cache holds: a few at a time wait for memory together. */
enum err_code series_add_stored(
	struct series_index *x, const struct series_stored *v, size_t n, struct err *err)
{
	uint64_t hash[TOGETHER];
	enum err_code rc = ERR_OK;

	series_lock_write(x);
	for (size_t from = 0, to; from < n && !rc; from = to) {
		to = n - from < TOGETHER ? n : from + TOGETHER;
		for (size_t i = from; i < to; i++) {
			map_prefetch(&x->by_labels, hash[i - from] = labels_hash(v[i].labels));
			index_labels_prefetch(x, v[i].labels);
		}
		for (size_t i = from; i < to && !rc; i++)
			rc = series_add_stored_locked(x, &v[i], hash[i - from], err);
	}
	series_unlock(x);
	return rc;
}

/* The map cannot forget an id; when half of what it holds is gone it is made anew. */
static void series_forget_removed(struct series_index *x)
{
	struct map fresh;

	if (++x->removed < 1024 || x->removed < x->n)
		return;
	map_init(&fresh);
	for (uint32_t i = 0; i < x->next_id && i < x->by_id_cap; i++)
		if (x->by_id[i] && !map_add(&fresh, labels_hash(x->by_id[i]->labels), i)) {
			map_release(&fresh);
			return;
		}
	map_release(&x->by_labels);
	x->by_labels = fresh;
	x->removed = 0;
}

void series_remove_locked(struct series_index *x, struct series *s)
{
	assert(x->by_id[s->id] == s && !atomic_load(&s->uses));
	index_labels_remove(x, s);
	x->by_id[s->id] = NULL;
	x->n--;
	x->series_bytes -= s->bytes;
	series_forget_removed(x);
	index_labels_compact(x);
}

uint64_t series_index_bytes(struct series_index *x)
{
	uint64_t bytes;

	series_lock_read(x);
	bytes = x->by_id_cap * sizeof(*x->by_id) + map_bytes(&x->by_labels) + x->series_bytes +
		index_labels_bytes(x);
	series_unlock(x);
	return bytes;
}
