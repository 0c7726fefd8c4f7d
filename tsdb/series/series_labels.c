#include <stdlib.h>

#include "base/array.h"
#include "tsdb/series/series_internal.h"

#define VALUES_FAR 4096u /* a map of fewer values is in the cache */

/*
 * Which series have a label, each of its values, and a job. The text of a value is that of one of
 * its series, so a value that only one series has takes no memory of its own for it.
 */

static bool series_labels_name_same(const void *ctx, const void *key, uint32_t id)
{
	return str_eq(((const struct series_index *)ctx)->names[id].name, *(const struct str *)key);
}

static bool series_labels_value_same(const void *ctx, const void *key, uint32_t id)
{
	return str_eq(((const struct index_name *)ctx)->values[id].value, *(const struct str *)key);
}

static bool job_same(const void *ctx, const void *key, uint32_t id)
{
	return ((const struct series_index *)ctx)->jobs[id].job == *(struct job *const *)key;
}

static uint64_t series_labels_hash_of(struct str s)
{
	return hash_bytes(s.ptr, s.len, 0);
}

static uint64_t job_hash(const struct job *job)
{
	return map_hash_u64((uintptr_t)job);
}

struct index_name *index_name_find(const struct series_index *s, struct str name)
{
	uint32_t i = map_find(
		&s->by_name, series_labels_hash_of(name), series_labels_name_same, s, &name);

	return i == MAP_NONE ? NULL : &s->names[i];
}

static struct series_posting *series_labels_value_find(
	const struct index_name *in, struct str value, uint64_t hash)
{
	/* No label has an empty value, but dead postings look like one. */
	uint32_t i = value.len ? map_find(&in->by_value, hash, series_labels_value_same, in, &value) :
							 MAP_NONE;

	return i == MAP_NONE ? NULL : &in->values[i];
}

struct series_posting *index_value_find(const struct index_name *in, struct str value)
{
	return series_labels_value_find(in, value, series_labels_hash_of(value));
}

const struct index_job *index_job_find(const struct series_index *s, const struct job *job)
{
	uint32_t i = map_find(&s->by_job, job_hash(job), job_same, s, &job);

	return i == MAP_NONE ? NULL : &s->jobs[i];
}

void index_labels_init(struct series_index *s)
{
	map_init(&s->by_name);
	map_init(&s->by_job);
	arena_init(&s->arena, 0);
}

static void series_labels_names_release(struct series_index *s)
{
	for (uint32_t i = 0; i < s->names_n; i++) {
		struct index_name *in = &s->names[i];

		for (uint32_t k = 0; k < in->n; k++)
			id_set_release(&in->values[k].ids);
		free(in->values);
		map_release(&in->by_value);
		id_set_release(&in->ids);
	}
	free(s->names);
	map_release(&s->by_name);
	arena_release(&s->arena);
}

void index_labels_release(struct series_index *s)
{
	series_labels_names_release(s);
	for (uint32_t i = 0; i < s->jobs_n; i++)
		id_set_release(&s->jobs[i].ids);
	free(s->jobs);
	map_release(&s->by_job);
}

/* ---- adding ---- */

/* at: where to look first. Most series have the same names. */
static struct index_name *series_labels_name_at(
	const struct series_index *s, struct str name, uint32_t at)
{
	if (at < s->names_n && str_eq(s->names[at].name, name))
		return &s->names[at];
	return index_name_find(s, name);
}

static struct index_name *series_labels_name_get(
	struct series_index *s, struct str name, uint32_t at)
{
	struct index_name *in = series_labels_name_at(s, name, at);
	struct str copy;

	if (in)
		return in;
	if (!array_room(&s->names, s->names_n, 1, &s->names_cap))
		return NULL;
	copy = str_dup(&s->arena, name);
	if (!copy.ptr || !map_add(&s->by_name, series_labels_hash_of(name), s->names_n))
		return NULL;
	in = &s->names[s->names_n++];
	*in = (struct index_name){ .name = copy };
	map_init(&in->by_value);
	return in;
}

static bool series_labels_is_latest(const struct index_name *in, struct str value)
{
	return in->n && str_eq(in->values[in->latest].value, value);
}

/* Adds the series to a value. */
static bool series_labels_value_add(
	struct series_index *s, struct index_name *in, struct str value, uint32_t id)
{
	struct series_posting *p;
	uint64_t hash;

	if (series_labels_is_latest(in, value))
		return id_set_add(&in->values[in->latest].ids, id);
	hash = series_labels_hash_of(value);
	if ((p = series_labels_value_find(in, value, hash))) {
		in->latest = (uint32_t)(p - in->values);
		return id_set_add(&p->ids, id);
	}
	if (!array_room(&in->values, in->n, 1, &in->cap))
		return false;
	p = &in->values[in->n];
	*p = (struct series_posting){ .value = value };
	if (!id_set_add(&p->ids, id))
		return false;
	if (!map_add(&in->by_value, hash, in->n)) {
		id_set_release(&p->ids);
		return false;
	}
	in->latest = in->n++;
	s->values_n++;
	return true;
}

static bool job_add(struct series_index *s, struct job *job, uint32_t id)
{
	uint32_t i = map_find(&s->by_job, job_hash(job), job_same, s, &job);

	if (i == MAP_NONE) {
		i = s->jobs_n;
		if (!array_room(&s->jobs, s->jobs_n, 1, &s->jobs_cap) ||
			!map_add(&s->by_job, job_hash(job), i))
			return false;
		s->jobs[s->jobs_n++] = (struct index_job){ .job = job };
	}
	return id_set_add(&s->jobs[i].ids, id);
}

static bool labels_add(struct series_index *series_index, const struct series *s)
{
	uint32_t at = 0;

	for (size_t i = 0; i < s->labels.n; i++) {
		struct index_name *in = series_labels_name_get(series_index, s->labels.v[i].name, at);

		if (!in || !id_set_add(&in->ids, s->id) ||
			!series_labels_value_add(series_index, in, s->labels.v[i].value, s->id))
			return false;
		at = (uint32_t)(in - series_index->names) + 1;
	}
	return true;
}

void index_labels_prefetch(const struct series_index *s, struct labels labels)
{
	uint32_t at = 0;

	for (size_t i = 0; i < labels.n; i++) {
		const struct index_name *in = series_labels_name_at(s, labels.v[i].name, at);

		if (!in)
			continue;
		if (in->n >= VALUES_FAR && !series_labels_is_latest(in, labels.v[i].value))
			map_prefetch(&in->by_value, series_labels_hash_of(labels.v[i].value));
		at = (uint32_t)(in - s->names) + 1;
	}
}

bool index_labels_add(struct series_index *i, const struct series *s)
{
	return job_add(i, s->job, s->id) && labels_add(i, s);
}

/* ---- removing ---- */

/* Another series' text takes the place of this one's. */
static void series_labels_lend_text(const struct series_index *series_index, struct index_name *in,
	struct series_posting *p, const struct series *s)
{
	for (size_t i = 0; i < s->labels.n; i++)
		if (str_eq(s->labels.v[i].name, in->name))
			p->value = s->labels.v[i].value;
}

static void series_labels_value_remove(
	struct series_index *s, struct index_name *in, struct str value, uint32_t id)
{
	struct series_posting *p = index_value_find(in, value);

	if (!p || !id_set_remove(&p->ids, id))
		return;
	if (!p->ids.n) {
		p->value = (struct str){ 0 };
		in->dead++;
		s->values_dead++;
	} else if (p->value.ptr == value.ptr) {
		series_labels_lend_text(s, in, p, s->by_id[id_set_first(&p->ids)]);
	}
}

void index_labels_remove(struct series_index *series_index, const struct series *s)
{
	uint32_t at = map_find(
		&series_index->by_job, job_hash(s->job), job_same, series_index, &s->job);

	if (at != MAP_NONE)
		id_set_remove(&series_index->jobs[at].ids, s->id);
	for (size_t i = 0; i < s->labels.n; i++) {
		struct index_name *in = index_name_find(series_index, s->labels.v[i].name);

		if (!in)
			continue;
		id_set_remove(&in->ids, s->id);
		series_labels_value_remove(series_index, in, s->labels.v[i].value, s->id);
	}
}

void index_labels_compact(struct series_index *s)
{
	struct series_index fresh = { 0 };

	if (s->values_dead < 1024 || s->values_dead < s->values_n / 2)
		return;
	map_init(&fresh.by_name);
	arena_init(&fresh.arena, 0);
	for (uint32_t i = 0; i < s->next_id && i < s->by_id_cap; i++)
		if (s->by_id[i] && !labels_add(&fresh, s->by_id[i])) {
			series_labels_names_release(&fresh);
			return;
		}
	series_labels_names_release(s);
	s->names = fresh.names;
	s->names_n = fresh.names_n;
	s->names_cap = fresh.names_cap;
	s->by_name = fresh.by_name;
	s->arena = fresh.arena;
	s->values_n = fresh.values_n;
	s->values_dead = fresh.values_dead;
}

uint64_t index_labels_bytes(const struct series_index *s)
{
	uint64_t bytes = map_bytes(&s->by_name) + map_bytes(&s->by_job) + s->arena.used_bytes +
		s->names_cap * sizeof(*s->names) + s->jobs_cap * sizeof(*s->jobs);

	for (uint32_t i = 0; i < s->jobs_n; i++)
		bytes += id_set_bytes(&s->jobs[i].ids);
	for (uint32_t i = 0; i < s->names_n; i++) {
		const struct index_name *in = &s->names[i];

		bytes += map_bytes(&in->by_value) + in->cap * sizeof(*in->values) + id_set_bytes(&in->ids);
		for (uint32_t k = 0; k < in->n; k++)
			bytes += id_set_bytes(&in->values[k].ids);
	}
	return bytes;
}
