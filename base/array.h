/*
 * Arrays that grow: a pointer, a count and a capacity, each a field or a variable of the caller.
 *
 *	if (!array_room(&list->v, list->n, 1, &list->cap))
 *		return err_nomem(err, "list");
 *	list->v[list->n++] = item;
 *
 * The capacity grows by half, so that n items cost O(n); in an arena it doubles, since the smaller
 * arrays stay there. It may be of any unsigned type, and never passes the largest value of that
 * type.
 *
 * Errors:    false: out of memory, or the capacity's type is too small. Nothing changed then.
 * Ownership: malloc's; the caller frees. In an arena the old items stay until its end.
 */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include "base/arena.h"

/*
 * Makes room for `more` items behind the first n. v: address of the pointer; cap: of the capacity.
 */
#define array_room(v, n, more, cap) array_room_(NULL, v, n, more, cap)
/* The same in an arena. */
#define arena_array_room(a, v, n, more, cap) array_room_(a, v, n, more, cap)

#define array_room_(a, v, n, more, cap) \
	({ \
		size_t array_n_ = (n), array_cap_ = *(cap); \
		void *array_v_ = *(v); \
		bool array_ok_ = array_cap_ - array_n_ >= (size_t)(more) || \
			array_grow((a), &array_v_, array_n_, (more), &array_cap_, (__typeof__(*(cap)))-1, \
				sizeof(**(v))); \
		*(v) = array_v_; \
		*(cap) = (__typeof__(*(cap)))array_cap_; \
		array_ok_; \
	})

/* The macros call it when there is no room. a: NULL for malloc's memory. */
MUST_CHECK bool array_grow(struct arena *a, void **array, size_t n, size_t more, size_t *cap,
	size_t cap_max, size_t item_bytes);

#endif
