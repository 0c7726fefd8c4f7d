/*
 * A budget holds at least as much of the pool as it uses: held_bytes >= used_bytes whenever a take
 * has returned true. Takes and gives within held_bytes touch no lock. A give that lowers held_bytes
 * looks at used_bytes again afterwards, since a take may have relied on the old value meanwhile.
 */
#include "base/memory_pool.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"

#define CHUNK_MAX ((size_t)1 << 20)
#define CHUNKS_MIN 256u /* of a small pool: its chunks are smaller */
#define LOOK_NS (5 * NS_PER_MS) /* how late a waiter may see that it has to give up */

struct memory_pool {
	size_t max_bytes, chunk;
	const char *flag;
	struct mutex lock; /* guards the fields below, and budget.place of all members */
	struct cond changed;
	struct budget *members;
	struct budget *elder;
	size_t used_bytes; /* held by the members */
	uint64_t joined;
	uint64_t waits, refused;
};

enum err_code memory_pool_open(
	size_t max_bytes, const char *flag, struct memory_pool **out, struct err *err)
{
	struct memory_pool *p = calloc(1, sizeof(*p));

	if (!p)
		return err_nomem(err, "memory pool");
	p->max_bytes = max_bytes;
	p->chunk = max_bytes / CHUNKS_MIN < CHUNK_MAX ? max_bytes / CHUNKS_MIN + 1 : CHUNK_MAX;
	p->flag = flag;
	mutex_init(&p->lock);
	cond_init(&p->changed);
	*out = p;
	return ERR_OK;
}

void memory_pool_close(struct memory_pool *p)
{
	if (!p)
		return;
	assert(!p->members && !p->used_bytes);
	cond_destroy(&p->changed);
	mutex_destroy(&p->lock);
	free(p);
}

void memory_pool_join(
	struct memory_pool *p, struct budget *b, memory_give_up_fn give_up, const void *ctx)
{
	assert(!b->pool && !b->used_bytes && give_up);
	b->pool = p;
	b->pool_flag = p->flag;
	b->pool_max_bytes = p->max_bytes;
	b->place = (struct budget_place){ .give_up = give_up, .give_up_ctx = ctx };
	mutex_lock(&p->lock);
	b->place.age = p->joined++;
	b->place.next = p->members;
	p->members = b;
	mutex_unlock(&p->lock);
}

void memory_pool_leave(struct budget *b)
{
	struct memory_pool *p = b->pool;
	struct budget **at;

	if (!p)
		return;
	assert(!b->used_bytes);
	mutex_lock(&p->lock);
	for (at = &p->members; *at != b; at = &(*at)->place.next)
		assert(*at);
	*at = b->place.next;
	assert(p->used_bytes >= b->held_bytes && !b->place.waiting);
	p->used_bytes -= b->held_bytes;
	b->held_bytes = 0;
	if (p->elder == b)
		p->elder = NULL;
	cond_broadcast(&p->changed);
	mutex_unlock(&p->lock);
	b->pool = NULL;
}

void memory_pool_idle(struct budget *b, bool idle)
{
	if (!b->pool)
		return;
	mutex_lock(&b->pool->lock);
	b->place.idle = idle;
	mutex_unlock(&b->pool->lock);
}

bool memory_pool_was_short(const struct budget *b)
{
	return __atomic_load_n(&b->place.refusal, __ATOMIC_RELAXED) == BUDGET_SHORT;
}

static bool memory_pool_is_next_elder(const struct memory_pool *p, const struct budget *b)
{
	mutex_assert_held(&p->lock);
	for (const struct budget *o = p->members; o; o = o->place.next)
		if (o->place.wants_elder && o->place.age < b->place.age)
			return false;
	return !p->elder;
}

bool memory_pool_become_elder(struct budget *b)
{
	struct memory_pool *p = b->pool;
	bool patient = true;

	assert(p);
	mutex_lock(&p->lock);
	b->place.wants_elder = true;
	while (!memory_pool_is_next_elder(p, b) && (patient = !b->place.give_up(b->place.give_up_ctx)))
		cond_wait_until(&p->changed, &p->lock, clock_monotonic_ns() + LOOK_NS);
	b->place.wants_elder = false;
	if (patient)
		p->elder = b;
	cond_broadcast(&p->changed);
	mutex_unlock(&p->lock);
	return patient;
}

struct memory_pool_state memory_pool_look(struct memory_pool *p)
{
	struct memory_pool_state s;

	mutex_lock(&p->lock);
	s = (struct memory_pool_state){
		.used_bytes = p->used_bytes,
		.max_bytes = p->max_bytes,
		.waits = p->waits,
		.refused = p->refused,
	};
	mutex_unlock(&p->lock);
	return s;
}

/* ---- taking ---- */

static size_t memory_pool_used_of(const struct budget *b)
{
	return __atomic_load_n(&b->used_bytes, __ATOMIC_SEQ_CST);
}

static void memory_pool_set_held(struct memory_pool *p, struct budget *b, size_t bytes)
{
	mutex_assert_held(&p->lock);
	assert(p->used_bytes >= b->held_bytes);
	p->used_bytes = p->used_bytes - b->held_bytes + bytes;
	__atomic_store_n(&b->held_bytes, bytes, __ATOMIC_SEQ_CST);
}

static void memory_pool_set_refusal(struct budget *b, enum budget_refusal why)
{
	__atomic_store_n(&b->place.refusal, why, __ATOMIC_RELAXED);
}

static void memory_pool_refuse(struct memory_pool *p, struct budget *b)
{
	mutex_assert_held(&p->lock);
	if (b->place.refusal != BUDGET_SHORT)
		p->refused++;
	memory_pool_set_refusal(b, BUDGET_SHORT);
	cond_broadcast(&p->changed);
}

/* Covers the used bytes, in whole chunks if the pool has them. False: the pool has less left. */
static bool memory_pool_hold(struct memory_pool *p, struct budget *b, size_t used)
{
	size_t left = p->max_bytes > p->used_bytes ? p->max_bytes - p->used_bytes : 0;
	size_t whole = (used + p->chunk - 1) / p->chunk * p->chunk;
	size_t most = b->held_bytes + left;

	mutex_assert_held(&p->lock);
	if (used > most)
		return false;
	memory_pool_set_held(p, b, whole < most ? whole : most);
	return true;
}

/* True if it may give memory back without getting more first. */
static bool memory_pool_may_give(const struct budget *b)
{
	if (!b->held_bytes || b->place.idle)
		return false;
	return !b->place.waiting || b->place.refusal == BUDGET_SHORT;
}

/* When everybody waits, the youngest is refused, but never the elder. */
static void memory_pool_break_tie(struct memory_pool *p)
{
	struct budget *youngest = NULL;

	mutex_assert_held(&p->lock);
	for (struct budget *b = p->members; b; b = b->place.next) {
		if (memory_pool_may_give(b))
			return;
		if (b->held_bytes && b->place.waiting && b != p->elder &&
			(!youngest || b->place.age > youngest->place.age))
			youngest = b;
	}
	if (youngest)
		memory_pool_refuse(p, youngest);
}

static void memory_pool_fall_asleep(struct memory_pool *p, struct budget *b)
{
	mutex_assert_held(&p->lock);
	p->waits++;
	if (b->place.asleep++ == 0)
		b->place.asleep_since_ns = clock_monotonic_ns();
}

static void memory_pool_wake_up(const struct memory_pool *p, struct budget *b)
{
	mutex_assert_held(&p->lock);
	if (--b->place.asleep == 0)
		b->place.slept_ns += clock_monotonic_ns() - b->place.asleep_since_ns;
}

int64_t memory_pool_waited_ns(const struct budget *b)
{
	struct memory_pool *p = b->pool;
	int64_t ns;

	if (!p)
		return 0;
	mutex_lock(&p->lock);
	ns = b->place.slept_ns;
	if (b->place.asleep)
		ns += clock_monotonic_ns() - b->place.asleep_since_ns;
	mutex_unlock(&p->lock);
	return ns;
}

/* Releases the lock while it waits. */
static bool memory_pool_wait_for_room(struct memory_pool *p, struct budget *b)
{
	bool ok = false, waited = false;
	size_t used;

	mutex_assert_held(&p->lock);
	b->place.waiting++;
	for (;;) {
		used = memory_pool_used_of(b);
		ok = used <= b->held_bytes || memory_pool_hold(p, b, used);
		if (ok || b->place.refusal == BUDGET_SHORT)
			break;
		if (used > p->max_bytes) {
			memory_pool_set_refusal(b, BUDGET_NEVER);
			break;
		}
		if (b->place.give_up(b->place.give_up_ctx))
			memory_pool_refuse(p, b);
		else
			memory_pool_break_tie(p);
		if (b->place.refusal == BUDGET_SHORT)
			break;
		if (!waited)
			memory_pool_fall_asleep(p, b);
		waited = true;
		cond_wait_until(&p->changed, &p->lock, clock_monotonic_ns() + LOOK_NS);
	}
	if (waited)
		memory_pool_wake_up(p, b);
	b->place.waiting--;
	return ok;
}

bool memory_pool_cover(struct budget *b, size_t bytes)
{
	struct memory_pool *p = b->pool;
	bool ok;

	if (memory_pool_used_of(b) <= __atomic_load_n(&b->held_bytes, __ATOMIC_SEQ_CST))
		return true;
	mutex_lock(&p->lock);
	/*
	 * A budget that was short gets nothing more: it has to end. One that asked too much may ask
	 * less.
	 */
	ok = b->place.refusal != BUDGET_SHORT && memory_pool_wait_for_room(p, b);
	if (!ok)
		__atomic_fetch_sub(&b->used_bytes, bytes, __ATOMIC_SEQ_CST);
	else if (b->place.refusal == BUDGET_NEVER)
		memory_pool_set_refusal(b, BUDGET_NOT_REFUSED);
	mutex_unlock(&p->lock);
	return ok;
}

void memory_pool_uncover(struct budget *b)
{
	struct memory_pool *p = b->pool;
	size_t used, keep;

	/* A spare chunk stays, so that small ups and downs cost no lock. */
	if (__atomic_load_n(&b->held_bytes, __ATOMIC_SEQ_CST) < memory_pool_used_of(b) + 2 * p->chunk)
		return;
	mutex_lock(&p->lock);
	keep = memory_pool_used_of(b) + p->chunk;
	if (b->held_bytes > keep) {
		memory_pool_set_held(p, b, keep);
		if ((used = memory_pool_used_of(b)) > b->held_bytes)
			memory_pool_set_held(p, b, used); /* taken meanwhile, under the old cover */
		cond_broadcast(&p->changed);
	}
	mutex_unlock(&p->lock);
}
