#include "tsdb/series/job_counts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define DEAD_MIN 1024u /* fewer are not worth a rebuild */

static bool job_counts_same(const void *ctx, const void *key, uint32_t id)
{
	return str_eq(((const struct job_counts *)ctx)->v[id].name, *(const struct str *)key);
}

static uint64_t job_counts_hash(struct str job)
{
	return hash_bytes(job.ptr, job.len, 0);
}

static uint32_t job_counts_find(const struct job_counts *c, struct str job, uint64_t hash)
{
	return map_find(&c->by_name, hash, job_counts_same, c, &job);
}

static bool job_counts_is_latest(const struct job_counts *c, struct str job)
{
	return c->latest < c->n && str_eq(c->v[c->latest].name, job);
}

static bool job_counts_make(struct job_counts *c, struct str job, uint64_t hash)
{
	struct str copy = { malloc(job.len + 1), job.len };

	if (!copy.ptr)
		return false;
	if (job.len)
		memcpy((char *)(uintptr_t)copy.ptr, job.ptr, job.len);
	if (!array_room(&c->v, c->n, 1, &c->cap) || !map_add(&c->by_name, hash, c->n)) {
		free((char *)(uintptr_t)copy.ptr);
		return false;
	}
	c->v[c->n++] = (struct job_count){ .name = copy };
	c->dead++;
	c->name_bytes += job.len + 1;
	return true;
}

bool job_counts_add(struct job_counts *c, struct str job)
{
	uint64_t hash;
	uint32_t i = c->latest;

	if (!job_counts_is_latest(c, job)) {
		hash = job_counts_hash(job);
		if ((i = job_counts_find(c, job, hash)) == MAP_NONE) {
			i = c->n;
			if (!job_counts_make(c, job, hash))
				return false;
		}
		c->latest = i;
	}
	c->dead -= c->v[i].n++ == 0;
	return true;
}

/* Senders may name a job of each build: names without series must not stay for ever. */
static void job_counts_compact(struct job_counts *c)
{
	struct map fresh;
	uint32_t kept = 0;

	if (c->dead < DEAD_MIN || c->dead < c->n / 2)
		return;
	map_init(&fresh);
	for (uint32_t i = 0; i < c->n; i++)
		if (c->v[i].n && !map_add(&fresh, job_counts_hash(c->v[i].name), kept++)) {
			map_release(&fresh);
			return;
		}
	kept = 0;
	for (uint32_t i = 0; i < c->n; i++) {
		if (c->v[i].n) {
			c->v[kept++] = c->v[i];
			continue;
		}
		c->name_bytes -= c->v[i].name.len + 1;
		free((char *)(uintptr_t)c->v[i].name.ptr);
	}
	map_release(&c->by_name);
	c->by_name = fresh;
	c->n = kept;
	c->dead = c->latest = 0;
}

void job_counts_remove(struct job_counts *c, struct str job)
{
	uint32_t i = job_counts_is_latest(c, job) ? c->latest :
												job_counts_find(c, job, job_counts_hash(job));

	assert(i != MAP_NONE && c->v[i].n);
	if (--c->v[i].n)
		return;
	c->dead++;
	job_counts_compact(c);
}

uint32_t job_counts_of(const struct job_counts *c, struct str job)
{
	uint32_t i = job_counts_is_latest(c, job) ? c->latest :
												job_counts_find(c, job, job_counts_hash(job));

	return i == MAP_NONE ? 0 : c->v[i].n;
}

struct job_count job_counts_largest(const struct job_counts *c)
{
	struct job_count most = { .n = 0 };

	for (uint32_t i = 0; i < c->n; i++)
		if (c->v[i].n > most.n)
			most = c->v[i];
	return most;
}

uint64_t job_counts_bytes(const struct job_counts *c)
{
	return c->cap * sizeof(*c->v) + map_bytes(&c->by_name) + c->name_bytes;
}

void job_counts_release(struct job_counts *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		free((char *)(uintptr_t)c->v[i].name.ptr);
	free(c->v);
	map_release(&c->by_name);
	*c = (struct job_counts){ 0 };
}
