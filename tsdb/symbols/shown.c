#include "tsdb/symbols/shown.h"

#include <assert.h>
#include <stdlib.h>

#include "base/array.h"
#include "tsdb/symbols/partition.h"

/*
 * Two functions are alike if people see the same text. The first one of a text represents it. Ids
 * may have holes that are filled later, so a pass goes over all functions and takes those that it
 * does not know yet. It is made when functions were put since the last one.
 *
 * A word per function: its representative << 2, WORD_KNOWN, and WORD_MANY if the function
 * represents others too.
 */
#define WORD_KNOWN 1u
#define WORD_MANY 2u
#define WORD_SHIFT 2u
#define FUNCTIONS_MAX (UINT32_MAX >> WORD_SHIFT)

struct shown_names {
	struct mutex lock; /* guards all that follows, but for what readers see through atomics */
	_Atomic uint64_t seen; /* as partition->functions_put */
	struct segvec words; /* by function; words change, atomically */
	struct idtable by_text;
	uint32_t *named; /* by string: the function + 1, 0: none; NULL: not asked for yet */
	uint32_t named_n;
	struct shown_codes *codes;
	struct segvec lists; /* of const uint32_t * */
	struct arena arena; /* of lists */
	_Atomic size_t bytes;
};

static void shown_count_bytes(struct shown_names *s)
{
	size_t bytes = sizeof(*s) + s->words.bytes + s->lists.bytes + idtable_bytes(&s->by_text) +
		s->named_n * sizeof(*s->named) + s->arena.used_bytes;

	if (s->codes)
		bytes += sizeof(*s->codes) + (size_t)s->codes->n * sizeof(s->codes->v[0]);
	atomic_store_explicit(&s->bytes, bytes, memory_order_relaxed);
}

size_t shown_bytes(const struct partition *p)
{
	const struct shown_names *s = atomic_load_explicit(&p->shown_names, memory_order_acquire);

	return s ? atomic_load_explicit(&s->bytes, memory_order_relaxed) : 0;
}

/* ---- functions ---- */

static const struct partition *shown_base(const struct partition *p)
{
	while (p->base)
		p = p->base;
	return p;
}

static struct str shown_text(const struct partition *p, uint32_t function)
{
	return sym_function_name(p, sym_function(p, function));
}

static uint32_t shown_word(const struct shown_names *s, uint32_t function)
{
	return atomic_load_explicit(
		(const _Atomic uint32_t *)segvec_at_of(&s->words, function, sizeof(uint32_t)),
		memory_order_relaxed);
}

static void shown_word_change(struct shown_names *s, uint32_t function, uint32_t word)
{
	atomic_store_explicit(
		(_Atomic uint32_t *)(uintptr_t)segvec_at_of(&s->words, function, sizeof(uint32_t)), word,
		memory_order_relaxed);
}

static uint64_t shown_hash(const void *ctx, const struct idtable *made, uint32_t function)
{
	struct str text = shown_text(ctx, function);

	return hash_bytes(text.ptr, text.len, 0);
}

static uint32_t shown_find(const struct shown_names *s, const struct partition *p, struct str text)
{
	uint64_t hash = hash_bytes(text.ptr, text.len, 0);
	uint32_t place, id;

	if (!s->by_text.n)
		return SYM_NONE;
	place = idtable_place(&s->by_text, hash);
	while ((id = idtable_next(&s->by_text, hash, &place)) != IDTABLE_NONE)
		if (str_eq(shown_text(p, id), text))
			return id;
	return SYM_NONE;
}

static bool shown_name(struct shown_names *s, uint32_t string, uint32_t function)
{
	uint32_t n = s->named_n, cap, *grown;

	if (string >= n) {
		cap = string + string / 4 + 64;
		if (!(grown = realloc(s->named, cap * sizeof(*grown))))
			return false;
		memset(grown + n, 0, (cap - n) * sizeof(*grown));
		s->named = grown;
		s->named_n = cap;
	}
	if (!s->named[string])
		s->named[string] = function + 1;
	else if (s->named[string] != function + 1)
		s->named[string] = SHOWN_SEVERAL + 1;
	return true;
}

static bool shown_add(struct shown_names *s, const struct partition *p, uint32_t function)
{
	const struct sym_function *f = sym_function(p, function);
	struct str text = sym_function_name(p, f);
	uint32_t of = shown_find(s, p, text), word;

	if (function > FUNCTIONS_MAX)
		return false;
	if (of == SYM_NONE) {
		of = function;
		if (!idtable_add(&s->by_text, hash_bytes(text.ptr, text.len, 0), function, shown_hash, p))
			return false;
	} else {
		shown_word_change(s, of, shown_word(s, of) | WORD_MANY);
	}
	if (s->named && !shown_name(s, f->name, of))
		return false;
	word = of << WORD_SHIFT | WORD_KNOWN;
	return segvec_put(&s->words, function, &word);
}

static enum err_code shown_open(struct partition *p, struct shown_names **out, struct err *err)
{
	struct shown_names *s, *other = NULL;

	if ((s = atomic_load_explicit(&p->shown_names, memory_order_acquire))) {
		*out = s;
		return ERR_OK;
	}
	if (!(s = calloc(1, sizeof(*s))))
		return err_nomem(err, "names of functions");
	mutex_init(&s->lock);
	segvec_init(&s->words, sizeof(uint32_t));
	segvec_init(&s->lists, sizeof(const uint32_t *));
	arena_init(&s->arena, 0);
	if (!atomic_compare_exchange_strong(&p->shown_names, &other, s)) {
		shown_close(s);
		s = other;
	}
	*out = s;
	return ERR_OK;
}

void shown_close(struct shown_names *s)
{
	if (!s)
		return;
	segvec_release(&s->words);
	segvec_release(&s->lists);
	idtable_release(&s->by_text);
	free(s->named);
	shown_codes_release(s->codes);
	arena_release(&s->arena);
	mutex_destroy(&s->lock);
	free(s);
}

enum err_code shown_of(const struct partition *from, struct shown_names **out, struct err *err)
{
	const struct partition *p = shown_base(from);
	uint64_t put = atomic_load_explicit(&p->functions_put, memory_order_acquire);
	struct shown_names *s;
	enum err_code rc;
	bool ok = true;

	/* The partition has a place for what readers make of it. */
	if ((rc = shown_open((struct partition *)(uintptr_t)p, &s, err)))
		return rc;
	*out = s;
	if (atomic_load_explicit(&s->seen, memory_order_acquire) >= put)
		return ERR_OK;
	mutex_lock(&s->lock);
	for (uint32_t i = sym_next(p, SYM_FUNCTION, 0); i != SYM_NONE && ok;
		 i = sym_next(p, SYM_FUNCTION, i + 1))
		if (!shown_word(s, i))
			ok = shown_add(s, p, i);
	if (ok && atomic_load_explicit(&s->seen, memory_order_relaxed) < put)
		atomic_store_explicit(&s->seen, put, memory_order_release);
	shown_count_bytes(s);
	mutex_unlock(&s->lock);
	return ok ? ERR_OK : err_nomem(err, "names of functions");
}

uint32_t shown_function(const struct shown_names *s, uint32_t function)
{
	uint32_t word = shown_word(s, function);

	return word ? word >> WORD_SHIFT : SYM_NONE;
}

bool shown_is_alone(const struct shown_names *s, uint32_t function)
{
	return shown_word(s, function) == (function << WORD_SHIFT | WORD_KNOWN);
}

/* ---- strings ---- */

/* All functions that are known, by their stored names. */
static bool shown_name_all(struct shown_names *s, const struct partition *p)
{
	bool ok = true;

	mutex_assert_held(&s->lock);
	if (s->named)
		return true;
	for (uint32_t i = segvec_next(&s->words, 0); i != UINT32_MAX && ok;
		 i = segvec_next(&s->words, i + 1))
		ok = shown_name(s, sym_function(p, i)->name, shown_word(s, i) >> WORD_SHIFT);
	if (!ok) {
		free(s->named);
		s->named = NULL;
		s->named_n = 0;
	}
	shown_count_bytes(s);
	return ok;
}

static uint32_t shown_function_named(const struct shown_names *s, uint32_t string)
{
	return string < s->named_n && s->named[string] ? s->named[string] - 1 : SYM_NONE;
}

enum err_code shown_functions_named(const struct partition *p, struct shown_names *s,
	const uint32_t *names, size_t stride, size_t n, uint32_t *out, struct err *err)
{
	const char *at = (const char *)names;
	bool ok;

	mutex_lock(&s->lock);
	ok = shown_name_all(s, shown_base(p));
	for (size_t i = 0; i < n && ok; i++, at += stride)
		out[i] = shown_function_named(s, *(const uint32_t *)(const void *)at);
	mutex_unlock(&s->lock);
	return ok ? ERR_OK : err_nomem(err, "names of functions");
}

struct str sym_shown_string(const struct partition *from, uint32_t string)
{
	const struct partition *p = shown_base(from);
	uint32_t function = SYM_NONE;
	struct shown_names *s = NULL;

	if (sym_has_shown(p))
		s = atomic_load_explicit(&p->shown_names, memory_order_acquire);
	if (s) {
		mutex_lock(&s->lock);
		function = shown_function_named(s, string);
		mutex_unlock(&s->lock);
	}
	return function < SHOWN_SEVERAL ? shown_text(p, function) : sym_string(p, string);
}

/* ---- codes ---- */

enum err_code shown_codes_hold(
	struct shown_names *s, uint32_t locations_n, struct shown_codes **out, struct err *err)
{
	uint32_t n = locations_n + locations_n / 4 + 64;
	struct shown_codes *c;
	enum err_code rc = ERR_OK;

	mutex_lock(&s->lock);
	if (!s->codes || s->codes->n < locations_n) {
		if ((c = calloc(1, sizeof(*c) + (size_t)n * sizeof(c->v[0])))) {
			c->n = n;
			atomic_init(&c->refs, 1);
			for (uint32_t i = 0; s->codes && i < s->codes->n; i++)
				atomic_init(&c->v[i], atomic_load_explicit(&s->codes->v[i], memory_order_acquire));
			shown_codes_release(s->codes);
			s->codes = c;
		} else {
			rc = err_nomem(err, "codes of locations");
		}
	}
	if (!rc) {
		atomic_fetch_add_explicit(&s->codes->refs, 1, memory_order_relaxed);
		*out = s->codes;
	}
	shown_count_bytes(s);
	mutex_unlock(&s->lock);
	return rc;
}

void shown_codes_release(struct shown_codes *c)
{
	if (c && atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) == 1)
		free(c);
}

const uint32_t *shown_list(const struct shown_names *s, uint32_t code)
{
	return *(const uint32_t *const *)segvec_at_of(
		&s->lists, code >> SHOWN_CODE_SHIFT, sizeof(const uint32_t *));
}

static enum err_code shown_list_add(
	struct shown_names *s, const uint32_t *functions, uint32_t n, uint32_t *code, struct err *err)
{
	uint32_t *list, number = s->lists.used + 1; /* a code of 0 is none */

	if (!(list = arena_alloc_raw(&s->arena, n + (size_t)1, sizeof(*list))))
		return arena_fail(&s->arena, "codes of locations", err);
	list[0] = n;
	memcpy(list + 1, functions, n * sizeof(*list));
	if (!segvec_put(&s->lists, number, &list))
		return err_nomem(err, "codes of locations");
	*code = number << SHOWN_CODE_SHIFT;
	return ERR_OK;
}

enum err_code shown_codes_find(struct shown_names *s, struct shown_codes *c,
	const struct partition *p, uint32_t location, uint32_t *out, struct err *err)
{
	const struct sym_location l = sym_location(p, location);
	uint32_t functions[SHOWN_LINES_MAX], code = 0, n = l.lines_n;
	enum err_code rc = ERR_OK;

	assert(location < c->n);
	*out = 0;
	if (n == 0 || n > SHOWN_LINES_MAX)
		return ERR_OK;
	for (uint32_t i = 0; i < n; i++) {
		functions[i] = shown_function(s, l.lines[i].function);
		if (functions[i] == SYM_NONE || !shown_text(p, functions[i]).len)
			return ERR_OK;
	}
	mutex_lock(&s->lock);
	if (!(code = atomic_load_explicit(&c->v[location], memory_order_relaxed))) {
		code = functions[0] << SHOWN_CODE_SHIFT | SHOWN_ONE;
		if (n > 1)
			rc = shown_list_add(s, functions, n, &code, err);
		if (!rc)
			atomic_store_explicit(&c->v[location], code, memory_order_release);
		if (!rc && s->codes != c) /* others have a longer array meanwhile */
			atomic_store_explicit(&s->codes->v[location], code, memory_order_release);
	}
	mutex_unlock(&s->lock);
	*out = rc ? 0 : code;
	return rc;
}
