#include "base/array.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define CAP_MIN 8u

bool array_grow(struct arena *a, void **array, size_t n, size_t more, size_t *cap, size_t cap_max,
	size_t item_bytes)
{
	size_t need, wide, bytes;
	void *p;

	assert(n <= *cap);
	if (__builtin_add_overflow(n, more, &need) || need > cap_max)
		return false;
	if (__builtin_add_overflow(*cap, a ? *cap : *cap / 2, &wide) || wide > cap_max)
		wide = cap_max;
	if (wide < CAP_MIN)
		wide = CAP_MIN < cap_max ? CAP_MIN : cap_max;
	if (wide < need)
		wide = need;
	if (__builtin_mul_overflow(wide, item_bytes, &bytes))
		return false;
	if (a) {
		p = arena_alloc_raw(a, 1, bytes);
		if (p && n)
			memcpy(p, *array, n * item_bytes);
	} else {
		p = realloc(*array, bytes);
	}
	if (!p)
		return false;
	*array = p;
	*cap = wide;
	return true;
}
