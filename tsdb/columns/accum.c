#include "tsdb/columns/accum.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "tsdb/symbols/partition.h"

/*
 * Cells of label set 0 are an array by node id in chunks that are made when a row touches them: a
 * query over one service among many pays for the stacks it meets. Rows ascend, so a chunk is looked
 * up once per row and chunk. Cells of other label sets are an open-addressing table. Sealing puts
 * all in order, and notes in bits behind each chunk's cells which are not 0: about half of them
 * are, in no order that a processor could foresee.
 */
#define CHUNK_LOG2 ACCUM_PAGE_LOG2
#define CHUNK_CELLS ACCUM_PAGE
#define CHUNK_WORDS (CHUNK_CELLS / 64)

struct accum_slot {
	uint64_t key; /* stack << 32 | label set */
	__int128 value;
	bool taken;
};

struct accum {
	struct partition *p;
	unsigned flags;
	size_t cell_bytes;
	void **chunks; /* int64_t[CHUNK_CELLS], __int128[CHUNK_CELLS] when weighted; then the bits */
	size_t chunks_n, bytes;
	struct accum_slot *slots;
	size_t slots_n, slots_used;
	struct accum_cell *cells; /* sealed, with label sets */
	size_t cells_n;
	int64_t signs; /* of all values that were added, or-ed: below 0 where one was */
	bool overflow;
};

enum err_code accum_open(struct partition *p, unsigned flags, struct accum **out, struct err *err)
{
	struct accum *a = calloc(1, sizeof(*a));

	assert((flags & ~(unsigned)(ACCUM_BY_LABELS | ACCUM_WEIGHTED)) == 0);
	if (!a)
		return err_nomem(err, "sum");
	a->p = p;
	a->flags = flags;
	a->cell_bytes = flags & ACCUM_WEIGHTED ? sizeof(__int128) : sizeof(int64_t);
	a->bytes = sizeof(*a);
	*out = a;
	return ERR_OK;
}

static void accum_release(struct accum *a)
{
	for (size_t i = 0; i < a->chunks_n; i++)
		free(a->chunks[i]);
	free(a->chunks);
	free(a->slots);
	free(a->cells);
}

void accum_close(struct accum *a)
{
	if (!a)
		return;
	accum_release(a);
	free(a);
}

void accum_clear(struct accum *a)
{
	accum_release(a);
	*a = (struct accum){
		.p = a->p, .flags = a->flags, .cell_bytes = a->cell_bytes, .bytes = sizeof(*a)
	};
}

size_t accum_bytes(const struct accum *a)
{
	return a->bytes;
}

static void *chunk_make(struct accum *a, uint32_t stack)
{
	const size_t bytes = CHUNK_CELLS * a->cell_bytes + CHUNK_WORDS * sizeof(uint64_t);
	size_t at = stack >> CHUNK_LOG2, was = a->chunks_n;

	if (at >= was) {
		if (!array_room(&a->chunks, was, at + 1 - was, &a->chunks_n))
			return NULL;
		memset(a->chunks + was, 0, (a->chunks_n - was) * sizeof(*a->chunks));
		a->bytes += (a->chunks_n - was) * sizeof(*a->chunks);
	}
	if (!a->chunks[at]) {
		if (!(a->chunks[at] = calloc(1, bytes)))
			return NULL;
		a->bytes += bytes;
	}
	return a->chunks[at];
}

static inline void *chunk_of(struct accum *a, uint32_t stack)
{
	size_t at = stack >> CHUNK_LOG2;

	return at < a->chunks_n && a->chunks[at] ? a->chunks[at] : chunk_make(a, stack);
}

/* Cells stacks[0..n) += values: the hot loop of every query. Returns how many could be added. */
static size_t accum_add_plain(
	struct accum *a, const uint32_t *stacks, const int64_t *values, size_t n)
{
	bool overflow = false;
	int64_t signs = 0;
	size_t i = 0;

	while (i < n) {
		uint32_t high = stacks[i] >> CHUNK_LOG2;
		int64_t *cells = chunk_of(a, stacks[i]);

		if (!cells)
			break;
		do {
			int64_t *c = &cells[stacks[i] & (CHUNK_CELLS - 1)];

			overflow |= __builtin_add_overflow(*c, values[i], c);
			signs |= values[i];
		} while (++i < n && stacks[i] >> CHUNK_LOG2 == high);
	}
	a->overflow |= overflow;
	a->signs |= signs;
	return i;
}

static size_t accum_add_weighted(
	struct accum *a, const uint32_t *stacks, const int64_t *values, size_t n, int64_t weight)
{
	bool overflow = false;
	int64_t signs = 0;
	size_t i = 0;

	while (i < n) {
		uint32_t high = stacks[i] >> CHUNK_LOG2;
		__int128 *cells = chunk_of(a, stacks[i]);

		if (!cells)
			break;
		do {
			__int128 *c = &cells[stacks[i] & (CHUNK_CELLS - 1)];

			overflow |= __builtin_add_overflow(*c, (__int128)values[i] * weight, c);
			signs |= values[i];
		} while (++i < n && stacks[i] >> CHUNK_LOG2 == high);
	}
	a->overflow |= overflow;
	a->signs |= signs;
	return i;
}

static struct accum_slot *accum_slot_of(struct accum_slot *slots, size_t n, uint64_t key)
{
	size_t i = map_hash_u64(key) & (n - 1);

	while (slots[i].taken && slots[i].key != key)
		i = (i + 1) & (n - 1);
	return &slots[i];
}

static bool accum_slots_grow(struct accum *a)
{
	size_t n = a->slots_n ? a->slots_n * 2 : 256;
	struct accum_slot *v = calloc(n, sizeof(*v));

	if (!v)
		return false;
	for (size_t i = 0; i < a->slots_n; i++)
		if (a->slots[i].taken)
			*accum_slot_of(v, n, a->slots[i].key) = a->slots[i];
	free(a->slots);
	a->bytes += (n - a->slots_n) * sizeof(*v);
	a->slots = v;
	a->slots_n = n;
	return true;
}

static bool accum_add_slot(struct accum *a, uint32_t stack, uint32_t set, __int128 value)
{
	struct accum_slot *s;

	if ((a->slots_used + 1) * 4 > a->slots_n * 3 && !accum_slots_grow(a))
		return false;
	s = accum_slot_of(a->slots, a->slots_n, (uint64_t)stack << 32 | set);
	if (!s->taken) {
		s->taken = true;
		s->key = (uint64_t)stack << 32 | set;
		a->slots_used++;
	}
	a->overflow |= __builtin_add_overflow(s->value, value, &s->value);
	if (!(a->flags & ACCUM_WEIGHTED) && s->value != (int64_t)s->value)
		a->overflow = true;
	return true;
}

static enum err_code accum_check_overflow(const struct accum *a, struct err *err)
{
	if (a->overflow)
		return err_set(err, ERR_LIMIT, "sum exceeds %d bits", a->flags & ACCUM_WEIGHTED ? 128 : 64);
	return ERR_OK;
}

static size_t accum_add_array(
	struct accum *a, const uint32_t *stacks, const int64_t *values, size_t n, int64_t weight)
{
	if (a->flags & ACCUM_WEIGHTED)
		return accum_add_weighted(a, stacks, values, n, weight);
	return accum_add_plain(a, stacks, values, n);
}

enum err_code accum_add(struct accum *a, const uint32_t *stacks, const uint32_t *label_sets,
	const int64_t *values, size_t n, int64_t weight, struct err *err)
{
	size_t i = 0, run;

	if (!label_sets || !(a->flags & ACCUM_BY_LABELS)) {
		if (accum_add_array(a, stacks, values, n, weight) < n)
			return err_nomem(err, "sum");
	} else {
		while (i < n) {
			for (run = i; run < n && label_sets[run] == 0; run++)
				;
			if (accum_add_array(a, stacks + i, values + i, run - i, weight) < run - i)
				return err_nomem(err, "sum");
			for (i = run; i < n && label_sets[i] != 0; i++)
				if (values[i] &&
					!accum_add_slot(a, stacks[i], label_sets[i],
						(__int128)values[i] * (a->flags & ACCUM_WEIGHTED ? weight : 1)))
					return err_nomem(err, "sum");
		}
	}
	return accum_check_overflow(a, err);
}

static size_t accum_add_wide_array(
	struct accum *a, const uint32_t *stacks, const __int128 *values, size_t n)
{
	size_t i = 0;

	for (; i < n; i++) {
		__int128 *cells = chunk_of(a, stacks[i]);
		__int128 *c;

		if (!cells)
			break;
		c = &cells[stacks[i] & (CHUNK_CELLS - 1)];
		a->overflow |= __builtin_add_overflow(*c, values[i], c);
		a->signs |= (int64_t)(values[i] >> 64);
	}
	return i;
}

enum err_code accum_add_wide(struct accum *a, const uint32_t *stacks, const uint32_t *label_sets,
	const __int128 *values, size_t n, struct err *err)
{
	bool by_labels = label_sets && a->flags & ACCUM_BY_LABELS;
	size_t i = 0, run;

	assert(a->flags & ACCUM_WEIGHTED);
	while (i < n) {
		for (run = i; run < n && !(by_labels && label_sets[run]); run++)
			;
		if (accum_add_wide_array(a, stacks + i, values + i, run - i) < run - i)
			return err_nomem(err, "sum");
		for (i = run; i < n && by_labels && label_sets[i]; i++)
			if (values[i] && !accum_add_slot(a, stacks[i], label_sets[i], values[i]))
				return err_nomem(err, "sum");
	}
	return accum_check_overflow(a, err);
}

/*
 * While no cell is below 0 and no value is, a cell that overflows is below 0; so one check of all
 * will do. Returns how many could be added.
 */
static size_t accum_add_positive(
	struct accum *a, const uint32_t *stacks, const unsigned char *values, uint64_t factor, size_t n)
{
	uint64_t all = 0;
	size_t i = 0;

	while (i < n) {
		const uint32_t first = stacks[i] & ~(CHUNK_CELLS - 1);
		int64_t *cells = chunk_of(a, first);
		uint32_t at = stacks[i] - first;

		if (!cells)
			break;
		do {
			uint64_t v = (uint64_t)cells[at] + values[i] * factor;

			cells[at] = (int64_t)v;
			all |= v;
		} while (++i < n && (at = stacks[i] - first) < CHUNK_CELLS);
	}
	a->overflow |= all >> 63;
	return i;
}

/* Not inline: its array would be cleared for each row. */
static __attribute__((noinline)) enum err_code accum_add_bytes_wide(struct accum *a,
	const uint32_t *stacks, const uint32_t *label_sets, const unsigned char *values,
	uint64_t factor, size_t n, int64_t weight, struct err *err)
{
	enum err_code rc = ERR_OK;
	int64_t wide[256];

	for (size_t i = 0, k; i < n && !rc; i += k) {
		for (k = 0; k < 256 && k < n - i; k++)
			wide[k] = (int64_t)(values[i + k] * factor);
		rc = accum_add(a, stacks + i, label_sets ? label_sets + i : NULL, wide, k, weight, err);
	}
	return rc;
}

enum err_code accum_add_bytes(struct accum *a, const uint32_t *stacks, const uint32_t *label_sets,
	const unsigned char *values, uint64_t factor, size_t n, int64_t weight, struct err *err)
{
	assert(factor <= UINT64_C(1) << 56);
	if (a->signs < 0 || a->flags & ACCUM_WEIGHTED || (label_sets && a->flags & ACCUM_BY_LABELS))
		return accum_add_bytes_wide(a, stacks, label_sets, values, factor, n, weight, err);
	if (accum_add_positive(a, stacks, values, factor, n) < n)
		return err_nomem(err, "sum");
	return accum_check_overflow(a, err);
}

bool accum_has_negative(const struct accum *a)
{
	return a->signs < 0;
}

static __int128 accum_cell_at(const struct accum *a, const void *chunk, size_t i)
{
	return a->flags & ACCUM_WEIGHTED ? ((const __int128 *)chunk)[i] : ((const int64_t *)chunk)[i];
}

enum err_code accum_merge(struct accum *into, const struct accum *from, struct err *err)
{
	assert(into != from);
	for (size_t c = 0; c < from->chunks_n; c++) {
		void *to;

		if (!from->chunks[c])
			continue;
		if (!(to = chunk_of(into, (uint32_t)(c << CHUNK_LOG2))))
			return err_nomem(err, "sum");
		for (size_t i = 0; i < CHUNK_CELLS; i++) {
			if (into->flags & ACCUM_WEIGHTED)
				into->overflow |= __builtin_add_overflow(((__int128 *)to)[i],
					accum_cell_at(from, from->chunks[c], i), &((__int128 *)to)[i]);
			else
				into->overflow |= __builtin_add_overflow(((int64_t *)to)[i],
					accum_cell_at(from, from->chunks[c], i), &((int64_t *)to)[i]);
		}
	}
	for (size_t i = 0; i < from->slots_n; i++)
		if (from->slots[i].taken &&
			!accum_add_slot(into, (uint32_t)(from->slots[i].key >> 32),
				(uint32_t)from->slots[i].key, from->slots[i].value))
			return err_nomem(err, "sum");
	into->signs |= from->signs;
	return accum_check_overflow(into, err);
}

/* ---- pages ---- */

size_t accum_pages_n(const struct accum *a)
{
	assert(!a->flags);
	return a->chunks_n;
}

int64_t *accum_page(const struct accum *a, size_t i)
{
	assert(!a->flags);
	return i < a->chunks_n ? a->chunks[i] : NULL;
}

int64_t *accum_page_make(struct accum *a, size_t i)
{
	assert(!a->flags && i <= UINT32_MAX >> CHUNK_LOG2);
	return chunk_of(a, (uint32_t)(i << CHUNK_LOG2));
}

/* ---- sealing ---- */

static uint64_t *chunk_bits(const struct accum *a, void *chunk)
{
	return (uint64_t *)((char *)chunk + CHUNK_CELLS * a->cell_bytes);
}

/* Bits of the cells that are not 0. Returns how many those are. */
static size_t accum_note_cells(const struct accum *a, void *chunk)
{
	const __int128 *wide = chunk;
	const int64_t *cells = chunk;
	uint64_t *bits = chunk_bits(a, chunk);
	size_t n = 0;

	for (size_t w = 0; w < CHUNK_WORDS; w++) {
		uint64_t word = 0;

		for (size_t i = 0; i < 64; i++)
			word |= (uint64_t)(a->flags & ACCUM_WEIGHTED ? wide[w * 64 + i] != 0 :
														   cells[w * 64 + i] != 0)
				<< i;
		bits[w] = word;
		n += (size_t)__builtin_popcountll(word);
	}
	return n;
}

static bool accum_next_plain(const struct accum *a, size_t *at, struct accum_cell *out)
{
	size_t c = *at >> CHUNK_LOG2, i = *at & (CHUNK_CELLS - 1);

	for (; c < a->chunks_n; c++, i = 0) {
		const uint64_t *bits = a->chunks[c] ? chunk_bits(a, a->chunks[c]) : NULL;

		for (; bits && i < CHUNK_CELLS; i = (i | 63) + 1) {
			const uint64_t rest = bits[i / 64] >> (i & 63);

			if (!rest)
				continue;
			i += (size_t)__builtin_ctzll(rest);
			*out = (struct accum_cell){ (uint32_t)(c << CHUNK_LOG2 | i), 0,
				accum_cell_at(a, a->chunks[c], i) };
			*at = (c << CHUNK_LOG2 | i) + 1;
			return true;
		}
	}
	*at = c << CHUNK_LOG2;
	return false;
}

static int accum_cell_cmp(const void *left, const void *right)
{
	const struct accum_cell *a = left, *b = right;

	if (a->stack != b->stack)
		return a->stack < b->stack ? -1 : 1;
	return (a->label_set > b->label_set) - (a->label_set < b->label_set);
}

enum err_code accum_seal(struct accum *a, struct err *err)
{
	struct accum_cell cell;
	size_t at = 0, n = 0;

	for (size_t c = 0; c < a->chunks_n; c++)
		n += a->chunks[c] ? accum_note_cells(a, a->chunks[c]) : 0;
	a->cells_n = n;
	if (!(a->flags & ACCUM_BY_LABELS))
		return ERR_OK;
	free(a->cells);
	if (!(a->cells = malloc((n + a->slots_used + 1) * sizeof(*a->cells))))
		return err_nomem(err, "sum");
	a->bytes += (n + a->slots_used + 1) * sizeof(*a->cells);
	for (at = 0, n = 0; accum_next_plain(a, &at, &cell);)
		a->cells[n++] = cell;
	for (size_t i = 0; i < a->slots_n; i++)
		if (a->slots[i].taken && a->slots[i].value)
			a->cells[n++] = (struct accum_cell){ (uint32_t)(a->slots[i].key >> 32),
				(uint32_t)a->slots[i].key, a->slots[i].value };
	qsort(a->cells, n, sizeof(*a->cells), accum_cell_cmp);
	a->cells_n = n;
	return ERR_OK;
}

bool accum_next(const struct accum *a, size_t *at, struct accum_cell *out)
{
	if (!(a->flags & ACCUM_BY_LABELS))
		return accum_next_plain(a, at, out);
	if (*at >= a->cells_n)
		return false;
	*out = a->cells[(*at)++];
	return true;
}

size_t accum_cells_n(const struct accum *a)
{
	assert(a->cells || !(a->flags & ACCUM_BY_LABELS)); /* sealed */
	return a->cells_n;
}
