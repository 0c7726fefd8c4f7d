#include "base/arena.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory_pool.h"
#include "base/thread.h"

#define ALIGN 16u
#define BLOCK_MAX (1u << 20) /* larger requests get a block of their own size */

struct arena_block {
	struct arena_block *next;
	size_t size; /* of data */
	_Alignas(16) unsigned char data[];
};

void arena_init(struct arena *a, size_t budget_bytes)
{
	*a = (struct arena){ .budget_bytes = budget_bytes };
}

void arena_init_shared(struct arena *a, struct budget *b)
{
	*a = (struct arena){ .shared = b };
}

/* The error names the limit that was passed last. */
static void budget_own_limit(struct budget *b)
{
	enum budget_refusal never = BUDGET_NEVER;

	__atomic_compare_exchange_n(
		&b->place.refusal, &never, BUDGET_NOT_REFUSED, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

bool budget_take(struct budget *b, size_t bytes)
{
	size_t used = __atomic_load_n(&b->used_bytes, __ATOMIC_RELAXED), peak;

	do {
		if (bytes > b->max_bytes || used > b->max_bytes - bytes) {
			budget_own_limit(b);
			return false;
		}
	} while (!__atomic_compare_exchange_n(
		&b->used_bytes, &used, used + bytes, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	if (b->pool && !memory_pool_cover(b, bytes))
		return false;
	used += bytes;
	peak = __atomic_load_n(&b->peak_bytes, __ATOMIC_RELAXED);
	while (used > peak &&
		!__atomic_compare_exchange_n(
			&b->peak_bytes, &peak, used, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return true;
}

void budget_give(struct budget *b, size_t bytes)
{
	size_t used = __atomic_fetch_sub(&b->used_bytes, bytes, __ATOMIC_SEQ_CST);

	assert(used >= bytes);
	if (b->pool)
		memory_pool_uncover(b);
}

enum err_code budget_fail(const struct budget *b, const char *what, struct err *err)
{
	switch (__atomic_load_n(&b->place.refusal, __ATOMIC_RELAXED)) {
	case BUDGET_SHORT:
		return err_set(err, ERR_UNAVAILABLE,
			"%s found no memory: others use the %zu bytes that all may use together "
			"(%s): try again later",
			what, b->pool_max_bytes, b->pool_flag);
	case BUDGET_NEVER:
		return err_set(err, ERR_LIMIT,
			"%s needs more memory than the %zu bytes that all may use together (%s)", what,
			b->pool_max_bytes, b->pool_flag);
	case BUDGET_NOT_REFUSED:
		break;
	}
	return err_set(err, ERR_LIMIT, "%s needs more memory than its limit of %zu bytes (%s)", what,
		b->max_bytes, b->flag);
}

/*
 * Some blocks are kept for the next arena: the system gives memory by pages that it clears first,
 * which takes longer than most requests use a block for. The latest are kept, since those are the
 * sizes that requests need now, and may be in a cache still.
 */
#define SPARE_LEAST (1u << 16)
#define SPARE_MOST (1u << 22)
#define SPARE_BYTES (1u << 23)
#ifdef __SANITIZE_ADDRESS__
#define SPARE_ANY false /* uses after the release are to be found */
#else
#define SPARE_ANY true
#endif

static struct {
	struct mutex lock;
	struct arena_block *head; /* the latest first */
} spare = { .lock = MUTEX_INIT };

static bool arena_spare_size(size_t size)
{
	return SPARE_ANY && size >= SPARE_LEAST && size <= SPARE_MOST;
}

/* Few sizes, so that blocks are often of the same: at most a ninth of one is unused. Large ones are
 * as they are asked for, and found again by a request that asks for the same. */
static size_t arena_round_up(size_t size)
{
	size_t step;

	if (size < SPARE_LEAST || size > BLOCK_MAX)
		return size;
	step = (size_t)1 << (60 - __builtin_clzll(size - 1));
	return (size + step - 1) & ~(step - 1);
}

static struct arena_block *arena_spare_take(size_t size)
{
	struct arena_block **at, *b;

	if (!arena_spare_size(size))
		return NULL;
	mutex_lock(&spare.lock);
	for (at = &spare.head; *at && (*at)->size != size;)
		at = &(*at)->next;
	if ((b = *at))
		*at = b->next;
	mutex_unlock(&spare.lock);
	return b;
}

/* Returns the blocks that are too much now. */
static struct arena_block *arena_block_spare_give(struct arena_block *b)
{
	struct arena_block **at, *dropped;
	size_t bytes = 0;

	mutex_lock(&spare.lock);
	b->next = spare.head;
	spare.head = b;
	for (at = &spare.head; *at && bytes + (*at)->size <= SPARE_BYTES;) {
		bytes += (*at)->size;
		at = &(*at)->next;
	}
	dropped = *at;
	*at = NULL;
	mutex_unlock(&spare.lock);
	return dropped;
}

static void arena_free_block(struct arena *a, struct arena_block *b)
{
	struct arena_block *next;

	if (a->shared)
		budget_give(a->shared, sizeof(*b) + b->size);
	for (b->next = NULL, b = arena_spare_size(b->size) ? arena_block_spare_give(b) : b; b;
		 b = next) {
		next = b->next;
		free(b);
	}
}

void arena_release(struct arena *a)
{
	struct arena_block *b = a->head, *next;

	for (; b; b = next) {
		next = b->next;
		arena_free_block(a, b);
	}
	*a = (struct arena){
		.budget_bytes = a->budget_bytes, .block_max = a->block_max, .shared = a->shared
	};
}

/* Keeps the newest block: it is the largest that ordinary requests of this user needed. */
void arena_reset(struct arena *a)
{
	struct arena_block *keep = a->head;

	a->starved = false;
	if (!keep)
		return;
	a->head = keep->next;
	keep->next = NULL;
	arena_release(a);
	if (keep->size > BLOCK_MAX) { /* an outlier: give it back */
		arena_free_block(a, keep);
		return;
	}
	a->head = keep;
	a->at = keep->data;
	a->end = keep->data + keep->size;
}

/* The adopted blocks go behind the block in use, so the walk is over them, which are few. */
void arena_adopt(struct arena *a, struct arena *from)
{
	struct arena_block *last = from->head;

	assert(a != from && a->shared == from->shared);
	if (!last)
		return;
	if (a->head) {
		while (last->next)
			last = last->next;
		last->next = a->head->next;
		a->head->next = from->head;
	} else {
		a->head = from->head;
		a->at = from->at;
		a->end = from->end;
	}
	a->used_bytes += from->used_bytes;
	*from = (struct arena){
		.budget_bytes = from->budget_bytes, .block_max = from->block_max, .shared = from->shared
	};
}

static int arena_add_block(struct arena *a, size_t need)
{
	size_t size = a->head ? a->head->size * 2 : ARENA_BLOCK_FIRST;
	size_t max = a->block_max ? a->block_max : BLOCK_MAX;
	struct arena_block *b;

	if (size > max)
		size = max;
	if (size < need)
		size = arena_round_up(need);
	if (a->shared && !budget_take(a->shared, sizeof(*b) + size))
		return 0;
	b = arena_spare_take(size);
	if (!b && !(b = malloc(sizeof(*b) + size))) {
		if (a->shared)
			budget_give(a->shared, sizeof(*b) + size);
		a->starved = true;
		return 0;
	}
	b->size = size;
	b->next = a->head;
	a->head = b;
	a->at = b->data;
	a->end = b->data + size;
	return 1;
}

void *arena_alloc_raw(struct arena *a, size_t n, size_t size)
{
	size_t bytes;
	void *p;

	if (__builtin_mul_overflow(n, size, &bytes) || bytes > PTRDIFF_MAX - ALIGN)
		return NULL;
	bytes = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (a->budget_bytes && (bytes > a->budget_bytes || a->used_bytes > a->budget_bytes - bytes))
		return NULL;
	if ((size_t)(a->end - a->at) < bytes && !arena_add_block(a, bytes))
		return NULL;
	if (bytes == 0)
		return a->at ? a->at : (arena_add_block(a, ALIGN) ? a->at : NULL);
	p = a->at;
	a->at += bytes;
	a->used_bytes += bytes;
	return p;
}

void *arena_calloc(struct arena *a, size_t n, size_t size)
{
	void *p = arena_alloc_raw(a, n, size);

	return p ? memset(p, 0, n * size) : NULL;
}

void *arena_alloc(struct arena *a, size_t size)
{
	return arena_calloc(a, 1, size);
}

char *arena_strndup(struct arena *a, const char *text, size_t n)
{
	char *p = n == SIZE_MAX ? NULL : arena_alloc_raw(a, n + 1, 1);

	if (!p)
		return NULL;
	if (n)
		memcpy(p, text, n);
	p[n] = '\0';
	return p;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	char *p;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || !(p = arena_alloc_raw(a, (size_t)n + 1, 1)))
		return NULL;
	va_start(ap, fmt);
	vsnprintf(p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return p;
}

enum err_code arena_fail(const struct arena *a, const char *what, struct err *err)
{
	if (a->starved)
		return err_nomem(err, what);
	if (a->shared)
		return budget_fail(a->shared, what, err);
	if (a->budget_bytes)
		return err_set(err, ERR_LIMIT, "%s needs more memory than its limit of %zu bytes", what,
			a->budget_bytes);
	return err_nomem(err, what);
}
