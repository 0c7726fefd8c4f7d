#include "web/api/label_counts.h"

#include <stdlib.h>

#include "base/array.h"

#define SLOTS_MIN 1024u
#define COUNTS_MIN 64u
#define NAME "a list of counts"

/* ---- hashes ---- */

/* The slot of a hash, or the free slot for it. */
static size_t api_slot_of(const uint64_t *values, size_t slots, uint64_t hash)
{
	size_t at = hash & (slots - 1);

	while (values[at] && values[at] != hash)
		at = (at + 1) & (slots - 1);
	return at;
}

static uint64_t api_not_zero(uint64_t hash)
{
	return hash ? hash : 1;
}

static bool api_set_has(const struct hash_set *s, uint64_t hash)
{
	return s->slots && s->v[api_slot_of(s->v, s->slots, api_not_zero(hash))] != 0;
}

/*
 * True if the counts and `more` bytes fit. Old and new slots exist side by side while a set grows.
 */
static bool api_has_room(const struct label_counts *c, size_t more)
{
	size_t bytes = (c->series.slots + c->values.slots) * sizeof(*c->series.v) +
		c->cap * sizeof(*c->v) + map_bytes(&c->map) + c->texts.used_bytes;

	return bytes + more <= c->bytes_max;
}

static enum err_code api_no_room(const struct label_counts *c, struct err *err)
{
	return err_set(
		err, ERR_LIMIT, NAME " needs more memory than its limit of %zu bytes", c->bytes_max);
}

static enum err_code api_set_grow(struct label_counts *c, struct hash_set *s, struct err *err)
{
	size_t slots = s->slots ? s->slots * 2 : SLOTS_MIN;
	uint64_t *grown;

	if (!api_has_room(c, slots * sizeof(*grown)))
		return api_no_room(c, err);
	if (!(grown = calloc(slots, sizeof(*grown))))
		return err_nomem(err, NAME);
	for (size_t i = 0; i < s->slots; i++)
		if (s->v[i])
			grown[api_slot_of(grown, slots, s->v[i])] = s->v[i];
	free(s->v);
	s->v = grown;
	s->slots = slots;
	return ERR_OK;
}

static enum err_code api_set_add(
	struct label_counts *c, struct hash_set *s, uint64_t hash, bool *is_new, struct err *err)
{
	enum err_code rc;
	size_t at;

	hash = api_not_zero(hash);
	if (s->n >= s->slots / 4 * 3 && (rc = api_set_grow(c, s, err)))
		return rc;
	at = api_slot_of(s->v, s->slots, hash);
	*is_new = s->v[at] == 0;
	s->n += *is_new;
	s->v[at] = hash;
	return ERR_OK;
}

/* ---- counts ---- */

void label_counts_init(struct label_counts *c, struct str label, size_t bytes_max)
{
	*c = (struct label_counts){ .label = label, .bytes_max = bytes_max };
	map_init(&c->map);
	arena_init(&c->texts, bytes_max);
}

void label_counts_release(struct label_counts *c)
{
	map_release(&c->map);
	arena_release(&c->texts);
	free(c->series.v);
	free(c->values.v);
	free(c->v);
}

static bool api_label_counts_is_same(const void *ctx, const void *key, uint32_t id)
{
	return str_eq(*(const struct str *)key, ((const struct label_counts *)ctx)->v[id].text);
}

/* Room for one more; growing needs the old array and the new one. */
static enum err_code api_grow(struct label_counts *c, struct err *err)
{
	if (c->n == c->cap && !api_has_room(c, 2 * (c->cap + COUNTS_MIN) * sizeof(*c->v)))
		return api_no_room(c, err);
	return array_room(&c->v, c->n, 1, &c->cap) ? ERR_OK : err_nomem(err, NAME);
}

static enum err_code count_of(
	struct label_counts *c, struct str text, uint64_t hash, uint32_t *id, struct err *err)
{
	struct str copy;
	enum err_code rc;

	*id = map_find(&c->map, hash, api_label_counts_is_same, c, &text);
	if (*id != MAP_NONE)
		return ERR_OK;
	if ((rc = api_grow(c, err)))
		return rc;
	if (!api_has_room(c, text.len))
		return api_no_room(c, err);
	copy = str_dup(&c->texts, text);
	if (!copy.ptr)
		return arena_fail(&c->texts, NAME, err);
	*id = (uint32_t)c->n;
	c->v[c->n++] = (struct label_count){ .text = copy };
	if (!map_add(&c->map, hash, *id))
		return err_nomem(err, NAME);
	return ERR_OK;
}

static enum err_code api_add_name(struct label_counts *c, const struct label *l, struct err *err)
{
	uint64_t hash = hash_bytes(l->name.ptr, l->name.len, 0);
	enum err_code rc;
	bool is_new;
	uint32_t id;

	if ((rc = count_of(c, l->name, hash, &id, err)) ||
		(rc = api_set_add(
			 c, &c->values, hash_bytes(l->value.ptr, l->value.len, hash), &is_new, err)))
		return rc;
	c->v[id].values += is_new && !(c->known && c->known(c->known_ctx, *l));
	c->v[id].series++;
	return ERR_OK;
}

static enum err_code api_add_value(struct label_counts *c, struct str value, struct err *err)
{
	uint32_t id;
	enum err_code rc;

	if (!value.len)
		return ERR_OK;
	rc = count_of(c, value, hash_bytes(value.ptr, value.len, 0), &id, err);
	if (!rc)
		c->v[id].series++;
	return rc;
}

bool label_counts_has(const struct label_counts *c, struct labels series)
{
	return api_set_has(&c->series, labels_hash(series));
}

enum err_code label_counts_add(struct label_counts *c, struct labels series, struct err *err)
{
	enum err_code rc;
	bool is_new;

	if ((rc = api_set_add(c, &c->series, labels_hash(series), &is_new, err)) || !is_new)
		return rc;
	if (c->label.len)
		return api_add_value(c, labels_get(series, c->label), err);
	for (size_t i = 0; i < series.n && !rc; i++)
		rc = api_add_name(c, &series.v[i], err);
	return rc;
}

enum err_code label_counts_add_many(
	struct label_counts *c, struct str text, uint64_t series, uint64_t values, struct err *err)
{
	uint32_t id;
	enum err_code rc = count_of(c, text, hash_bytes(text.ptr, text.len, 0), &id, err);

	if (rc)
		return rc;
	c->v[id].series += series;
	c->v[id].values += values;
	return ERR_OK;
}

static int api_most_first(const void *a, const void *b)
{
	const struct label_count *l = a, *r = b;

	if (l->series != r->series)
		return l->series > r->series ? -1 : 1;
	return str_cmp(l->text, r->text);
}

/* Leaves the first ones, whose texts move to fresh memory. */
static enum err_code api_label_counts_cut(struct label_counts *c, struct err *err)
{
	struct arena dropped = c->texts;
	enum err_code rc = ERR_OK;

	qsort(c->v, c->n, sizeof(*c->v), api_most_first);
	arena_init(&c->texts, c->bytes_max);
	c->n = c->limit;
	for (size_t i = 0; i < c->n && !rc; i++)
		if (!(c->v[i].text = str_dup(&c->texts, c->v[i].text)).ptr)
			rc = arena_fail(&c->texts, NAME, err);
	arena_release(&dropped);
	c->worst = c->v[c->n - 1];
	return rc;
}

enum err_code label_counts_add_last(
	struct label_counts *c, struct str text, uint64_t series, uint64_t values, struct err *err)
{
	struct label_count new = { text, values, series };
	enum err_code rc;

	c->total++;
	if (c->worst.text.ptr && api_most_first(&c->worst, &new) < 0)
		return ERR_OK;
	if (c->limit && c->n >= 2 * c->limit + COUNTS_MIN && (rc = api_label_counts_cut(c, err)))
		return rc;
	if ((rc = api_grow(c, err)))
		return rc;
	if (!api_has_room(c, text.len))
		return api_no_room(c, err);
	new.text = str_dup(&c->texts, text);
	if (!new.text.ptr)
		return arena_fail(&c->texts, NAME, err);
	c->v[c->n++] = new;
	return ERR_OK;
}

void label_counts_end(struct label_counts *c)
{
	if (!c->total)
		c->total = c->n;
	if (c->n)
		qsort(c->v, c->n, sizeof(*c->v), api_most_first);
}
