#include "tsdb/symbols/segvec.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const unsigned char segvec_zero[SEGVEC_ITEM_MAX];

void segvec_init(struct segvec *s, size_t item_bytes)
{
	assert(item_bytes <= SEGVEC_ITEM_MAX);
	memset(s, 0, sizeof(*s));
	s->item_bytes = (uint32_t)item_bytes;
}

void segvec_release(struct segvec *s)
{
	for (size_t k = 0; k < SEGVEC_CHUNKS; k++)
		free(atomic_load_explicit(&s->chunk[k], memory_order_relaxed));
	segvec_init(s, s->item_bytes);
}

uint32_t segvec_next(const struct segvec *s, uint32_t id)
{
	uint64_t at = id, n = segvec_n(s);

	while (at < n) {
		struct segvec_place p = segvec_place((uint32_t)at);
		unsigned char *c = atomic_load_explicit(&s->chunk[p.chunk], memory_order_acquire);
		const _Atomic uint64_t *there;
		uint64_t word;

		if (!c) {
			at += ((uint64_t)1 << p.shift) - p.at;
			continue;
		}
		there = (const _Atomic uint64_t *)(const void *)(c + ((size_t)s->item_bytes << p.shift));
		word = atomic_load_explicit(&there[p.at >> 6], memory_order_acquire) >> (p.at & 63);
		if (word)
			return (uint32_t)(at + (unsigned)__builtin_ctzll(word));
		at += 64 - (p.at & 63);
	}
	return UINT32_MAX;
}

bool segvec_put(struct segvec *s, uint32_t id, const void *item)
{
	struct segvec_place p = segvec_place(id);
	size_t n = (size_t)1 << p.shift, bytes = n * s->item_bytes + n / 8;
	unsigned char *c = atomic_load_explicit(&s->chunk[p.chunk], memory_order_relaxed);
	_Atomic uint64_t *there;

	if (!c) {
		if (!(c = calloc(1, bytes)))
			return false;
		atomic_store_explicit(&s->chunk[p.chunk], c, memory_order_release);
		s->bytes += bytes;
	}
	memcpy(c + p.at * s->item_bytes, item, s->item_bytes);
	there = (_Atomic uint64_t *)(void *)(c + n * s->item_bytes) + (p.at >> 6);
	atomic_store_explicit(there,
		atomic_load_explicit(there, memory_order_relaxed) | UINT64_C(1) << (p.at & 63),
		memory_order_release);
	s->used++;
	if (id >= atomic_load_explicit(&s->n, memory_order_relaxed))
		atomic_store_explicit(&s->n, id + 1, memory_order_release);
	return true;
}

void bits_release(struct bits *b)
{
	free(b->w);
	*b = (struct bits){ 0 };
}

bool bits_reserve(struct bits *b, uint32_t id)
{
	size_t words = b->words ? b->words : 16;
	uint64_t *w;

	if ((id >> 6) < b->words)
		return true;
	while (words <= (id >> 6))
		words *= 2;
	if (!(w = realloc(b->w, words * sizeof(*w))))
		return false;
	memset(w + b->words, 0, (words - b->words) * sizeof(*w));
	b->w = w;
	b->words = words;
	return true;
}

size_t bits_count(const struct bits *b)
{
	size_t n = 0;

	for (size_t w = 0; w < b->words; w++)
		n += (size_t)__builtin_popcountll(b->w[w]);
	return n;
}
