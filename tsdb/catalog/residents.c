#include "tsdb/catalog/residents.h"

#include <assert.h>
#include <stdlib.h>

#include "base/array.h"
#include "tsdb/catalog/state.h"

/* The epochs whose symbols are in memory, and their pins. */

static struct partition *residents_find(const struct job *job, uint32_t epoch)
{
	struct partition *p = job->partitions;

	while (p && p->epoch != epoch)
		p = resident_of(p)->next_of_job;
	return p;
}

/*
 * Numbers of partitions. Each is unique in the process, as a querier of a union has partitions of
 * several databases. The smallest free one is given, so that they stay dense.
 */
static struct {
	struct mutex lock;
	struct bits used;
	uint32_t from; /* all below are used */
} numbers = { .lock = MUTEX_INIT };

static bool residents_number_take(uint32_t *out)
{
	uint32_t i;
	bool ok;

	mutex_lock(&numbers.lock);
	for (i = numbers.from; bits_get(&numbers.used, i); i++)
		;
	if ((ok = bits_reserve(&numbers.used, i))) {
		bits_set(&numbers.used, i);
		numbers.from = i + 1;
		*out = i;
	}
	mutex_unlock(&numbers.lock);
	return ok;
}

static void residents_number_give(uint32_t number)
{
	mutex_lock(&numbers.lock);
	bits_clear(&numbers.used, number);
	if (number < numbers.from)
		numbers.from = number;
	mutex_unlock(&numbers.lock);
}

static bool residents_free_slot(struct db *db, uint32_t *out)
{
	mutex_assert_held(&db->lock);
	for (*out = 0; *out < db->partitions_n; (*out)++)
		if (!db->partitions[*out])
			return true;
	if (!array_room(&db->partitions, db->partitions_n, 1, &db->partitions_cap))
		return false;
	db->partitions[db->partitions_n++] = NULL;
	return true;
}

static enum err_code resident_open(
	struct job *job, const struct symbol_limits *limits, struct partition **out, struct err *err)
{
	struct resident *r = calloc(1, sizeof(*r));
	enum err_code rc;
	uint32_t number;

	if (!r || !residents_number_take(&number)) {
		free(r);
		return err_nomem(err, "partition");
	}
	if ((rc = partition_init(&r->table, job->name, job->id, number, limits, err))) {
		residents_number_give(number);
		free(r);
		return rc;
	}
	*out = &r->table;
	return ERR_OK;
}

void resident_close(struct partition *p)
{
	struct resident *r = resident_of(p);

	for (uint32_t i = 0; i < r->sources_n; i++)
		free(r->sources[i].why);
	free(r->sources);
	residents_number_give(p->index);
	partition_release(p);
	free(r);
}

enum err_code partition_pin_locked(struct db *db, struct job *job, uint32_t epoch, bool lookup,
	struct partition **out, struct err *err)
{
	const struct symbol_limits limits = { db->o.nodes_max, db->o.strings_max, db->o.label_sets_max,
		db->o.partition_bytes_max };
	struct partition *p = residents_find(job, epoch);
	enum err_code rc;
	uint32_t slot;

	mutex_assert_held(&db->lock);
	assert(epoch != SYM_NONE);
	if (!p) {
		if (!residents_free_slot(db, &slot))
			return err_nomem(err, "partition");
		if ((rc = resident_open(job, &limits, &p, err)))
			return rc;
		resident_of(p)->db = db;
		resident_of(p)->slot = slot;
		resident_of(p)->job = job;
		p->epoch = epoch;
		p->lookup = lookup || (epoch == job->live_epoch && !db->o.follower);
		resident_of(p)->next_of_job = job->partitions;
		job->partitions = p;
		db->partitions[slot] = p;
	}
	resident_of(p)->pins++;
	*out = p;
	return ERR_OK;
}

void partition_unpin_locked(struct db *db, struct partition *p)
{
	mutex_assert_held(&db->lock);
	assert(!p || resident_of(p)->pins > 0);
	if (p && --resident_of(p)->pins == 0)
		resident_of(p)->used_at = ++db->unpins;
}

enum err_code partition_pin(struct db *db, struct str name, uint32_t job_id, uint32_t epoch,
	struct partition **out, struct err *err)
{
	struct job *job;
	enum err_code rc;

	if ((rc = db_job(db, name, job_id, epoch, &job, err)))
		return rc;
	mutex_lock(&db->lock);
	rc = partition_pin_locked(db, job, epoch, false, out, err);
	mutex_unlock(&db->lock);
	return rc;
}

void partition_unpin(struct db *db, struct partition *p)
{
	mutex_lock(&db->lock);
	partition_unpin_locked(db, p);
	mutex_unlock(&db->lock);
}

struct partition *partition_next(struct db *db, uint32_t *at)
{
	struct partition *p = NULL;

	mutex_lock(&db->lock);
	while (*at < db->partitions_n && !p)
		p = db->partitions[(*at)++];
	if (p)
		resident_of(p)->pins++;
	mutex_unlock(&db->lock);
	return p;
}

/* ---- what was loaded into them; p->lock is held ---- */

struct partition_source *partition_source_of(struct partition *p, uint32_t number)
{
	mutex_assert_held(&p->lock);
	for (uint32_t i = resident_of(p)->sources_n; i-- > 0;)
		if (resident_of(p)->sources[i].number == number)
			return &resident_of(p)->sources[i];
	return NULL;
}

struct partition_source *partition_source_add(struct partition *p, uint32_t number)
{
	struct resident *r = resident_of(p);

	mutex_assert_held(&p->lock);
	assert(!partition_source_of(p, number));
	if (!array_room(&r->sources, r->sources_n, 1, &r->sources_cap))
		return NULL;
	r->sources[r->sources_n] = (struct partition_source){ .number = number };
	return &r->sources[r->sources_n++];
}

void partition_forget_source(struct partition *p, uint32_t number)
{
	struct partition_source *s = partition_source_of(p, number);

	mutex_assert_held(&p->lock);
	if (!s)
		return;
	free(s->why);
	*s = resident_of(p)->sources[--resident_of(p)->sources_n];
}
