/*
 * Arena: memory that is freed all at once. One request, one scrape, one reload = one arena.
 *
 * An arena has a budget. Passing it makes arena_alloc return NULL, which ends that request with
 * ERR_LIMIT (arena_fail says which limit); the process goes on.
 *
 * Up to 8 MiB of released blocks are kept for arenas to come.
 *
 * Units:     bytes.
 * Ownership: everything allocated dies with arena_release, or with arena_reset, which keeps one
 *            block for the next use.
 * Threads:   an arena belongs to one thread at a time.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct arena_block;

struct memory_pool;

enum budget_refusal { BUDGET_NOT_REFUSED, BUDGET_SHORT, BUDGET_NEVER };

/* A budget's place in its pool (base/memory_pool.h). The pool's lock guards it. */
struct budget_place {
	struct budget *next;
	uint64_t age; /* the higher, the younger */
	unsigned waiting; /* of its threads */
	bool idle, wants_elder;
	unsigned asleep; /* of the waiting threads, those that had to wait */
	int64_t asleep_since_ns, slept_ns; /* at least one of them, so far */
	enum budget_refusal refusal; /* SHORT stays; read by __atomic builtins elsewhere */
	bool (*give_up)(const void *ctx);
	const void *give_up_ctx;
};

/*
 * A budget that several arenas share, and memory outside of arenas: all of one query, on all its
 * threads. Arenas count whole blocks against it. Threads: any.
 */
struct budget {
	size_t max_bytes;
	const char *flag; /* "--query.max-memory": named in the error */
	size_t used_bytes; /* changed by __atomic builtins: C++ reads this header too */
	size_t peak_bytes; /* likewise: the most that was used at once */
	struct memory_pool *pool; /* NULL: no limit beside its own */
	const char *pool_flag;
	size_t pool_max_bytes;
	size_t held_bytes; /* of the pool's; changed under its lock, read likewise */
	struct budget_place place;
};
/* False: over the budget, or the pool is empty; nothing was taken. May wait for the pool. */
bool budget_take(struct budget *b, size_t bytes);
void budget_give(struct budget *b, size_t bytes);
enum err_code budget_fail(const struct budget *b, const char *what, struct err *err);

#define ARENA_BLOCK_FIRST 4096u /* the least size of the first block */

struct arena {
	struct arena_block *head; /* the block allocations come from; older ones behind it */
	unsigned char *at, *end; /* free part of head */
	size_t used_bytes; /* handed out plus padding, all blocks */
	size_t budget_bytes; /* 0: no limit */
	size_t block_max; /* 0: 1 MiB; less for an arena that lives long: half of a block may be free */
	struct budget *shared; /* NULL: none beside its own */
	bool starved; /* the machine had no memory, whatever the budget says */
};

void arena_init(struct arena *a, size_t budget_bytes);
void arena_init_shared(struct arena *a, struct budget *b); /* b NULL: no limit */
void arena_release(struct arena *a);
void arena_reset(struct arena *a); /* everything allocated so far is gone; the budget stays */

/* Moves all memory of `from` to `a`; `from` is empty then. Both share one budget. */
void arena_adopt(struct arena *a, struct arena *from);

/* Zeroed memory, aligned to 16 bytes, or NULL: out of memory or over budget. */
void *arena_alloc(struct arena *a, size_t size);
/* Zeroed memory for n items of size bytes; overflow gives NULL. */
void *arena_calloc(struct arena *a, size_t n, size_t size);
/* The same, not zeroed, for arrays that are filled at once. */
void *arena_alloc_raw(struct arena *a, size_t n, size_t size);

char *arena_strndup(struct arena *a, const char *text, size_t n); /* NUL-terminated copy */
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The error for an allocation that returned NULL: names `what` and the budget. */
enum err_code arena_fail(const struct arena *a, const char *what, struct err *err);

#define arena_new(a, type) ((type *)arena_alloc((a), sizeof(type)))
#define arena_array(a, type, n) ((type *)arena_calloc((a), (n), sizeof(type)))

#endif
