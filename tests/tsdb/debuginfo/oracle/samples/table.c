#include "table.h"

#include <stdio.h>

static __attribute__((noinline)) unsigned weigh(unsigned v, unsigned factor)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < factor; i++)
		sum += mix(v + i);
	return sum;
}

unsigned table_sum(const struct table *t, unsigned factor)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < 64; i++) {
		if (__builtin_expect(t->v[i] == 12345, 0))
			fprintf(stderr, "rare\n");
		sum += t->v[i] ? weigh(t->v[i], factor) : mix(i);
	}
	return sum;
}

/* Nobody calls it: the linker may remove its section. */
unsigned table_unused(const struct table *t)
{
	return t->n + table_slot(t, 7) + weigh(t->n, 3);
}
