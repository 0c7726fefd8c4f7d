/* Samples for the comparison of names and lines: what is inlined into several files. */
#ifndef SAMPLES_TABLE_H
#define SAMPLES_TABLE_H

struct table {
	unsigned n, v[64];
};

static inline unsigned mix(unsigned v)
{
	v ^= v >> 16;
	v *= 0x7feb352d;
	return v ^ v >> 15;
}

static inline unsigned table_slot(const struct table *t, unsigned key)
{
	unsigned i = mix(key) % 64;

	while (t->v[i] && t->v[i] != key)
		i = (i + 1) % 64;
	return i;
}

static inline int table_add(struct table *t, unsigned key)
{
	unsigned i = table_slot(t, key);

	if (t->v[i])
		return 0;
	t->v[i] = key;
	t->n++;
	return 1;
}

unsigned table_sum(const struct table *t, unsigned factor);
unsigned table_unused(const struct table *t);

#endif
