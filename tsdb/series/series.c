#include "tsdb/series/series_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/map.h"
#include "tsdb/symbols/symbols.h"

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
	map_init(&x->by_name);
	arena_init(&x->arena, 0);
	*out = x;
	return ERR_OK;
}

static void names_release(struct series_index *x)
{
	for (uint32_t i = 0; i < x->names_n; i++) {
		for (uint32_t k = 0; k < x->names[i].n; k++)
			free(x->names[i].values[k].ids);
		free(x->names[i].values);
		map_release(&x->names[i].by_value);
	}
	free(x->names);
	map_release(&x->by_name);
	arena_release(&x->arena);
}

void series_index_close(struct series_index *x)
{
	if (!x)
		return;
	for (uint32_t i = 0; i < x->next_id && i < x->by_id_cap; i++)
		series_free(x->by_id[i]);
	free(x->by_id);
	names_release(x);
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

static struct series *find_locked(const struct series_index *x, const struct labels *labels)
{
	uint32_t id = map_find(&x->by_labels, labels_hash(*labels), labels_same, x, labels);

	return id == MAP_NONE ? NULL : x->by_id[id];
}

struct series *series_find(struct series_index *x, struct labels labels)
{
	struct series *s;

	series_lock_read(x);
	if ((s = find_locked(x, &labels)))
		atomic_fetch_add(&s->uses, 1);
	series_unlock(x);
	return s;
}

void series_release(struct series *s)
{
	atomic_fetch_sub(&s->uses, 1);
}

/* ---- postings ---- */

static bool name_same(const void *ctx, const void *key, uint32_t id)
{
	return str_eq(((const struct series_index *)ctx)->names[id].name, *(const struct str *)key);
}

static bool value_same(const void *ctx, const void *key, uint32_t id)
{
	return str_eq(((const struct index_name *)ctx)->values[id].value, *(const struct str *)key);
}

struct index_name *index_name_find(const struct series_index *x, struct str name)
{
	uint32_t i = map_find(&x->by_name, hash_bytes(name.ptr, name.len, 0), name_same, x, &name);

	return i == MAP_NONE ? NULL : &x->names[i];
}

struct posting *index_value_find(const struct index_name *in, struct str value)
{
	uint32_t i = map_find(
		&in->by_value, hash_bytes(value.ptr, value.len, 0), value_same, in, &value);

	return i == MAP_NONE ? NULL : &in->values[i];
}

static struct index_name *name_get(struct series_index *x, struct str name)
{
	struct index_name *in = index_name_find(x, name);
	struct str copy;

	if (in)
		return in;
	if (!array_room(&x->names, x->names_n, 1, &x->names_cap))
		return NULL;
	copy = str_dup(&x->arena, name);
	if (!copy.ptr || !map_add(&x->by_name, hash_bytes(name.ptr, name.len, 0), x->names_n))
		return NULL;
	in = &x->names[x->names_n++];
	*in = (struct index_name){ .name = copy };
	map_init(&in->by_value);
	return in;
}

static struct posting *value_get(struct series_index *x, struct index_name *in, struct str value)
{
	uint64_t hash = hash_bytes(value.ptr, value.len, 0);
	uint32_t i = map_find(&in->by_value, hash, value_same, in, &value);
	struct str copy;

	if (i != MAP_NONE)
		return &in->values[i];
	if (!array_room(&in->values, in->n, 1, &in->cap))
		return NULL;
	copy = str_dup(&x->arena, value);
	if (!copy.ptr || !map_add(&in->by_value, hash, in->n))
		return NULL;
	in->values[in->n] = (struct posting){ .value = copy };
	x->values_n++;
	x->values_dead++; /* until a series is there */
	return &in->values[in->n++];
}

/* Ids ascend, save while windows are loaded. */
static bool posting_add(struct posting *p, uint32_t id)
{
	uint32_t at = p->n, cap = p->cap ? p->cap * 2 : 4, *v;

	/* Not array_room: most values have one series, and its least capacity would cost them. */
	if (p->n == p->cap) {
		if (!(v = realloc(p->ids, cap * sizeof(*v))))
			return false;
		p->ids = v;
		p->cap = cap;
	}
	for (; at && p->ids[at - 1] > id; at--)
		p->ids[at] = p->ids[at - 1];
	p->ids[at] = id;
	p->n++;
	return true;
}

static bool posting_remove(struct posting *p, uint32_t id)
{
	uint32_t lo = 0, hi = p->n, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (p->ids[mid] < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == p->n || p->ids[lo] != id)
		return false;
	memmove(p->ids + lo, p->ids + lo + 1, (p->n - lo - 1) * sizeof(*p->ids));
	p->n--;
	return true;
}

static bool index_labels(struct series_index *x, const struct series *s)
{
	for (size_t i = 0; i < s->labels.n; i++) {
		struct index_name *in = name_get(x, s->labels.v[i].name);
		struct posting *p = in ? value_get(x, in, s->labels.v[i].value) : NULL;

		if (!p || !posting_add(p, s->id))
			return false;
		x->values_dead -= p->n == 1;
	}
	return true;
}

static void unindex_labels(struct series_index *x, const struct series *s)
{
	for (size_t i = 0; i < s->labels.n; i++) {
		struct index_name *in = index_name_find(x, s->labels.v[i].name);
		struct str value = s->labels.v[i].value;
		uint32_t at = in ?
			map_find(&in->by_value, hash_bytes(value.ptr, value.len, 0), value_same, in, &value) :
			MAP_NONE;

		if (at != MAP_NONE && posting_remove(&in->values[at], s->id))
			x->values_dead += in->values[at].n == 0;
	}
}

/* ---- names are of one kind ---- */

static enum series_kind name_kind_locked(const struct series_index *x, struct str name)
{
	const struct index_name *in = index_name_find(x, STR(LABEL_NAME));
	uint32_t at = in ?
		map_find(&in->by_value, hash_bytes(name.ptr, name.len, 0), value_same, in, &name) :
		MAP_NONE;

	if (at == MAP_NONE || !in->values[at].n)
		return SERIES_NONE;
	return x->by_id[in->values[at].ids[0]]->job ? SERIES_PROFILES : SERIES_NUMBERS;
}

enum series_kind series_name_kind(struct series_index *x, struct str name)
{
	enum series_kind kind;

	series_lock_read(x);
	kind = name_kind_locked(x, name);
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

static enum err_code check_kind_locked(
	const struct series_index *x, struct labels labels, const struct job *job, struct err *err)
{
	struct str name = labels_get(labels, STR(LABEL_NAME));

	return series_check_kind(
		name, name_kind_locked(x, name), job ? SERIES_PROFILES : SERIES_NUMBERS, err);
}

/* ---- adding and removing ---- */

static bool reserve_id(struct series_index *x, uint32_t id)
{
	uint32_t had = x->by_id_cap;

	if (id < had)
		return true;
	if (!array_room(&x->by_id, had, (size_t)id - had + 1, &x->by_id_cap))
		return false;
	memset(x->by_id + had, 0, (size_t)(x->by_id_cap - had) * sizeof(struct series *));
	return true;
}

static struct str put_str(char **at, struct str s)
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
		v[i].name = put_str(&at, labels.v[i].name);
		v[i].value = put_str(&at, labels.v[i].value);
	}
	s->labels = (struct labels){ v, labels.n };
	s->id = id;
	s->job = job;
	s->bytes = (uint32_t)bytes;
	s->stored_typeset = SYM_NONE;
	atomic_init(&s->uses, 1);
	return s;
}

static enum err_code add_locked(struct series_index *x, struct labels labels, uint32_t id,
	struct job *job, struct series **out, struct err *err)
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
	if (!reserve_id(x, id) || !(s = series_make(labels, id, job)))
		return err_nomem(err, "series index");
	if (!index_labels(x, s) || !map_add(&x->by_labels, labels_hash(labels), id)) {
		unindex_labels(x, s);
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
	enum err_code rc = ERR_OK;

	series_lock_write(x);
	if ((*out = find_locked(x, &labels)))
		atomic_fetch_add(&(*out)->uses, 1);
	else if (id != SYM_NONE || !(rc = check_kind_locked(x, labels, job, err)))
		rc = add_locked(x, labels, id, job, out, err);
	series_unlock(x);
	return rc;
}

/* The map cannot forget an id; when half of what it holds is gone it is made anew. */
static void forget_removed(struct series_index *x)
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

/* Names and values are made anew too, when half of them have no series. */
static void forget_values(struct series_index *x)
{
	struct series_index fresh = { 0 };

	if (x->values_dead < 1024 || x->values_dead < x->values_n / 2)
		return;
	map_init(&fresh.by_name);
	arena_init(&fresh.arena, 0);
	for (uint32_t i = 0; i < x->next_id && i < x->by_id_cap; i++)
		if (x->by_id[i] && !index_labels(&fresh, x->by_id[i])) {
			names_release(&fresh);
			return;
		}
	names_release(x);
	x->names = fresh.names;
	x->names_n = fresh.names_n;
	x->names_cap = fresh.names_cap;
	x->by_name = fresh.by_name;
	x->arena = fresh.arena;
	x->values_n = fresh.values_n;
	x->values_dead = fresh.values_dead;
}

void series_remove_locked(struct series_index *x, struct series *s)
{
	assert(x->by_id[s->id] == s && !atomic_load(&s->uses));
	unindex_labels(x, s);
	x->by_id[s->id] = NULL;
	x->n--;
	x->series_bytes -= s->bytes;
	forget_removed(x);
	forget_values(x);
}

uint64_t series_index_bytes(struct series_index *x)
{
	uint64_t bytes;

	series_lock_read(x);
	bytes = x->by_id_cap * sizeof(*x->by_id) + map_bytes(&x->by_labels) + map_bytes(&x->by_name) +
		x->arena.used_bytes + x->names_cap * sizeof(*x->names) + x->series_bytes;
	for (uint32_t i = 0; i < x->names_n; i++) {
		const struct index_name *in = &x->names[i];

		bytes += map_bytes(&in->by_value) + in->cap * sizeof(*in->values);
		for (uint32_t k = 0; k < in->n; k++)
			bytes += in->values[k].cap * sizeof(*in->values[k].ids);
	}
	series_unlock(x);
	return bytes;
}
