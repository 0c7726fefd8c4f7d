#include "tsdb/series/id_set.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MIN 4u

static const uint32_t *id_set_list_of(const struct id_set *s)
{
	return s->cap ? s->list : s->few;
}

/* Where the id is in the list, or would be inserted. */
static uint32_t id_set_place_of(const struct id_set *s, uint32_t id)
{
	const uint32_t *v = id_set_list_of(s);
	uint32_t lo = 0, hi = s->n, mid;

	if (!s->n || v[s->n - 1] < id) /* ids mostly ascend */
		return s->n;
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (v[mid] < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static uint32_t id_set_last_of(const struct id_set *s)
{
	uint32_t w = s->cap;

	if (!s->is_bits)
		return id_set_list_of(s)[s->n - 1];
	while (w && !s->words[w - 1])
		w--;
	return w ? w * 64 - 1 - (uint32_t)__builtin_clzll(s->words[w - 1]) : 0;
}

static size_t id_set_words_for(uint32_t id)
{
	return (size_t)(id >> 6) + 1;
}

/* ---- from one form to the other ---- */

static bool id_set_to_bits(struct id_set *s, uint32_t last)
{
	size_t words = id_set_words_for(last);
	uint64_t *w = calloc(words, sizeof(*w));

	if (!w)
		return false;
	for (uint32_t i = 0; i < s->n; i++)
		w[id_set_list_of(s)[i] >> 6] |= UINT64_C(1) << (id_set_list_of(s)[i] & 63);
	if (s->cap)
		free(s->list);
	s->words = w;
	s->cap = (uint32_t)words;
	s->is_bits = 1;
	return true;
}

/* With room for one more. */
static bool id_set_to_list(struct id_set *s)
{
	uint32_t cap = s->n + s->n / 2 + LIST_MIN, n = 0, *v = malloc(cap * sizeof(*v));

	if (!v)
		return false;
	for (uint32_t w = 0; w < s->cap; w++)
		for (uint64_t rest = s->words[w]; rest; rest &= rest - 1)
			v[n++] = w * 64 + (uint32_t)__builtin_ctzll(rest);
	assert(n == s->n);
	free(s->words);
	s->list = v;
	s->cap = cap;
	s->is_bits = 0;
	return true;
}

/* ---- adding and removing ---- */

static bool id_set_widen(struct id_set *s, uint32_t id)
{
	size_t words = id_set_words_for(id), roomy = (size_t)s->cap + s->cap / 4;
	uint64_t *w;

	if (words < roomy)
		words = roomy;
	if (!(w = realloc(s->words, words * sizeof(*w))))
		return false;
	memset(w + s->cap, 0, (words - s->cap) * sizeof(*w));
	s->words = w;
	s->cap = (uint32_t)words;
	return true;
}

static bool id_set_longer(struct id_set *s)
{
	uint32_t had = s->cap, cap = had ? had + had / 2 : LIST_MIN, *v;

	if (!had) {
		if (!(v = malloc(cap * sizeof(*v))))
			return false;
		memcpy(v, s->few, sizeof(s->few));
	} else if (!(v = realloc(s->list, cap * sizeof(*v)))) {
		return false;
	}
	s->list = v;
	s->cap = cap;
	return true;
}

/* Makes room for the id in the form that is smaller. */
static bool id_set_make_room(struct id_set *s, uint32_t id)
{
	size_t bits_bytes, list_bytes = ((size_t)s->n + s->n / 2) * sizeof(*s->list);
	uint32_t last, cap = s->cap;

	if (s->is_bits) {
		if ((id >> 6) < cap)
			return true;
		/* Half as far again, so that no set changes its form over and over. */
		if (id_set_words_for(id) * sizeof(*s->words) <= list_bytes + list_bytes / 2)
			return id_set_widen(s, id);
		return id_set_to_list(s);
	}
	if (s->n < (cap ? cap : ID_SET_INLINE))
		return true;
	last = id_set_last_of(s) > id ? id_set_last_of(s) : id;
	bits_bytes = id_set_words_for(last) * sizeof(*s->words);
	return s->n >= 2 * LIST_MIN && bits_bytes < list_bytes ? id_set_to_bits(s, last) :
															 id_set_longer(s);
}

bool id_set_add(struct id_set *s, uint32_t id)
{
	uint32_t at, *v;

	if (!id_set_make_room(s, id))
		return false;
	if (s->is_bits) {
		assert(!(s->words[id >> 6] >> (id & 63) & 1));
		s->words[id >> 6] |= UINT64_C(1) << (id & 63);
	} else {
		at = id_set_place_of(s, id);
		v = s->cap ? s->list : s->few;
		assert(at == s->n || v[at] != id);
		memmove(v + at + 1, v + at, (s->n - at) * sizeof(*v));
		v[at] = id;
	}
	s->n++;
	return true;
}

bool id_set_remove(struct id_set *s, uint32_t id)
{
	uint32_t at, *v = s->cap ? s->list : s->few;

	if (!id_set_has(s, id))
		return false;
	if (s->is_bits) {
		s->words[id >> 6] &= ~(UINT64_C(1) << (id & 63));
	} else {
		at = id_set_place_of(s, id);
		memmove(v + at, v + at + 1, (s->n - at - 1) * sizeof(*v));
	}
	if (!--s->n)
		id_set_release(s);
	return true;
}

void id_set_release(struct id_set *s)
{
	if (s->cap)
		free(s->list); /* the words, if there are bits: one union */
	*s = (struct id_set){ 0 };
}

size_t id_set_bytes(const struct id_set *s)
{
	return s->cap * (s->is_bits ? sizeof(*s->words) : sizeof(*s->list));
}

/* ---- asking ---- */

bool id_set_has(const struct id_set *s, uint32_t id)
{
	uint32_t at;

	if (s->is_bits)
		return (id >> 6) < s->cap && (s->words[id >> 6] >> (id & 63) & 1);
	at = id_set_place_of(s, id);
	return at < s->n && id_set_list_of(s)[at] == id;
}

uint32_t id_set_first(const struct id_set *s)
{
	if (!s->n)
		return ID_SET_NONE;
	if (!s->is_bits)
		return id_set_list_of(s)[0];
	for (uint32_t w = 0;; w++)
		if (s->words[w])
			return w * 64 + (uint32_t)__builtin_ctzll(s->words[w]);
}

static size_t id_set_common_words(const struct id_set *s, const struct bits *b)
{
	return s->cap < b->words ? s->cap : b->words;
}

bool id_set_meets(const struct id_set *s, const struct bits *b)
{
	if (s->is_bits) {
		for (size_t w = 0; w < id_set_common_words(s, b); w++)
			if (s->words[w] & b->w[w])
				return true;
		return false;
	}
	for (uint32_t i = 0; i < s->n; i++)
		if (bits_get(b, id_set_list_of(s)[i]))
			return true;
	return false;
}

uint32_t id_set_count(const struct id_set *s, const struct bits *b)
{
	uint32_t n = 0;

	if (s->is_bits) {
		for (size_t w = 0; w < id_set_common_words(s, b); w++)
			n += (uint32_t)__builtin_popcountll(s->words[w] & b->w[w]);
		return n;
	}
	for (uint32_t i = 0; i < s->n; i++)
		n += bits_get(b, id_set_list_of(s)[i]);
	return n;
}

/* ---- together with bits ---- */

void id_set_into(const struct id_set *s, struct bits *b)
{
	if (s->is_bits) {
		for (size_t w = 0; w < id_set_common_words(s, b); w++)
			b->w[w] |= s->words[w];
		return;
	}
	for (uint32_t i = 0; i < s->n && (id_set_list_of(s)[i] >> 6) < b->words; i++)
		bits_set(b, id_set_list_of(s)[i]);
}

void id_set_out_of(const struct id_set *s, struct bits *b)
{
	if (s->is_bits) {
		for (size_t w = 0; w < id_set_common_words(s, b); w++)
			b->w[w] &= ~s->words[w];
		return;
	}
	for (uint32_t i = 0; i < s->n; i++)
		bits_clear(b, id_set_list_of(s)[i]);
}

void id_set_keep(const struct id_set *s, struct bits *b)
{
	size_t words = b->words, w = 0;
	uint32_t i = 0, id;

	if (s->is_bits) {
		for (; w < id_set_common_words(s, b); w++)
			b->w[w] &= s->words[w];
	} else {
		while (i < s->n && ((id = id_set_list_of(s)[i]) >> 6) < words) {
			uint64_t keep = 0;
			size_t at = id >> 6;

			for (; i < s->n && id_set_list_of(s)[i] >> 6 == at; i++)
				keep |= UINT64_C(1) << (id_set_list_of(s)[i] & 63);
			memset(b->w + w, 0, (at - w) * sizeof(*b->w));
			b->w[at] &= keep;
			w = at + 1;
		}
	}
	if (w < words)
		memset(b->w + w, 0, (words - w) * sizeof(*b->w));
}
