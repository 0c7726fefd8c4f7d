#include "tsdb/bucket/ahead.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/thread.h"

enum ahead_state { AHEAD_WAITS, AHEAD_READS, AHEAD_READ };

struct ahead_slot {
	struct ahead_object of;
	enum ahead_state state;
	bool dropped; /* nobody wants it any more; the thread that reads it frees it */
	struct buf bytes;
	enum err_code rc;
	struct err err;
};

struct ahead {
	struct bucket *bucket;
	unsigned slots_max;
	uint64_t bytes_max;
	struct thread threads[AHEAD_SLOTS_MAX];
	unsigned threads_n; /* the caller's */
	struct mutex lock; /* guards the rest */
	struct cond work, done; /* an object is wanted; one was read */
	struct ahead_slot *slots[AHEAD_SLOTS_MAX]; /* in the order of their turns */
	size_t n;
	bool closing;
};

static void ahead_free_slot(struct ahead_slot *s)
{
	buf_release(&s->bytes);
	free(s);
}

/* A slot that is being read is freed by the thread that reads it. */
static void ahead_drop(struct ahead_slot *s)
{
	if (s->state == AHEAD_READS)
		s->dropped = true;
	else
		ahead_free_slot(s);
}

/* The lock is held, and released during the request. */
static void ahead_read(struct ahead *a, struct ahead_slot *s)
{
	mutex_assert_held(&a->lock);
	s->state = AHEAD_READS;
	mutex_unlock(&a->lock);
	s->rc = bucket_get(a->bucket, str_of(s->of.key), 0, BUCKET_TO_END, &s->bytes, NULL, &s->err);
	mutex_lock(&a->lock);
	s->state = AHEAD_READ;
	if (s->dropped)
		ahead_free_slot(s);
	cond_broadcast(&a->done);
}

/* The first slot that nobody reads, if all slots up to it fit into bytes_max. */
static struct ahead_slot *ahead_next(const struct ahead *a)
{
	uint64_t bytes = 0;

	mutex_assert_held(&a->lock);
	for (size_t i = 0; i < a->n; i++) {
		uint64_t more = a->slots[i]->of.bytes;

		if (more > a->bytes_max - bytes)
			return NULL;
		bytes += more;
		if (a->slots[i]->state == AHEAD_WAITS)
			return a->slots[i];
	}
	return NULL;
}

static void ahead_work(void *ctx)
{
	struct ahead *a = ctx;
	struct ahead_slot *s;

	mutex_lock(&a->lock);
	while (!a->closing) {
		if ((s = ahead_next(a)))
			ahead_read(a, s);
		else
			cond_wait(&a->work, &a->lock);
	}
	mutex_unlock(&a->lock);
}

/* Without threads the objects are read when their turn comes. */
static void ahead_start_threads(struct ahead *a)
{
	struct err err;

	while (a->threads_n < a->slots_max - 1) {
		if (thread_start(&a->threads[a->threads_n], "ahead", ahead_work, a, &err)) {
			log_warn("bucket", "objects are not read ahead", LOG_E(&err));
			return;
		}
		a->threads_n++;
	}
}

enum err_code ahead_open(
	struct bucket *b, unsigned slots, uint64_t bytes_max, struct ahead **out, struct err *err)
{
	struct ahead *a = calloc(1, sizeof(*a));

	assert(slots && slots <= AHEAD_SLOTS_MAX);
	if (!a)
		return err_nomem(err, "objects ahead");
	a->bucket = b;
	a->slots_max = slots;
	a->bytes_max = bytes_max;
	mutex_init(&a->lock);
	cond_init(&a->work);
	cond_init(&a->done);
	*out = a;
	return ERR_OK;
}

void ahead_close(struct ahead *a)
{
	if (!a)
		return;
	mutex_lock(&a->lock);
	a->closing = true;
	cond_broadcast(&a->work);
	mutex_unlock(&a->lock);
	for (unsigned i = 0; i < a->threads_n; i++)
		thread_join(&a->threads[i]);
	for (size_t i = 0; i < a->n; i++)
		ahead_free_slot(a->slots[i]);
	cond_destroy(&a->work);
	cond_destroy(&a->done);
	mutex_destroy(&a->lock);
	free(a);
}

/* Takes the slot of this key out of the list, or makes one. NULL: no memory. */
static struct ahead_slot *ahead_reuse(
	struct ahead_slot **was, size_t n, const struct ahead_object *of)
{
	struct ahead_slot *s;

	for (size_t i = 0; i < n; i++)
		if (was[i] && strcmp(was[i]->of.key, of->key) == 0) {
			s = was[i];
			was[i] = NULL;
			return s;
		}
	if ((s = calloc(1, sizeof(*s))))
		s->of = *of;
	return s;
}

void ahead_want(struct ahead *a, const struct ahead_object *objects, size_t n)
{
	struct ahead_slot *was[AHEAD_SLOTS_MAX], *s;
	size_t was_n;

	mutex_lock(&a->lock);
	was_n = a->n;
	memcpy(was, a->slots, was_n * sizeof(*was));
	a->n = 0;
	while (a->n < n && a->n < a->slots_max && (s = ahead_reuse(was, was_n, &objects[a->n])))
		a->slots[a->n++] = s;
	for (size_t i = 0; i < was_n; i++)
		if (was[i])
			ahead_drop(was[i]);
	cond_broadcast(&a->work);
	mutex_unlock(&a->lock);
	if (n > 1)
		ahead_start_threads(a);
}

enum err_code ahead_take(struct ahead *a, struct buf *out, struct err *err)
{
	struct ahead_slot *s;
	enum err_code rc;

	mutex_lock(&a->lock);
	if (!a->n) { /* ahead_want had no memory for it */
		mutex_unlock(&a->lock);
		return err_nomem(err, "objects ahead");
	}
	s = a->slots[0];
	if (s->state == AHEAD_WAITS)
		ahead_read(a, s);
	while (s->state != AHEAD_READ)
		cond_wait(&a->done, &a->lock);
	memmove(a->slots, a->slots + 1, --a->n * sizeof(*a->slots));
	cond_broadcast(&a->work);
	mutex_unlock(&a->lock);
	buf_release(out);
	if ((rc = s->rc))
		rc = err_copy(err, &s->err);
	else
		*out = s->bytes;
	if (!rc)
		s->bytes = (struct buf){ 0 };
	ahead_free_slot(s);
	return rc;
}
