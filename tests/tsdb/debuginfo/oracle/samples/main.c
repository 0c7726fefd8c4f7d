#include "table.h"

#include <stdio.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
	unsigned x = mix(*(const unsigned *)a), y = mix(*(const unsigned *)b);

	return x < y ? -1 : x > y;
}

static unsigned run(struct table *t, unsigned n)
{
	unsigned added = 0;

	for (unsigned i = 1; i < n; i++)
		added += (unsigned)table_add(t, i * 3);
	qsort(t->v, 64, sizeof(t->v[0]), by_value);
	return added;
}

int main(int argc, char **argv)
{
	struct table t = { 0 };
	unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) % 60 : 20;

	printf("%u %u\n", run(&t, n), table_sum(&t, n));
	return 0;
}
