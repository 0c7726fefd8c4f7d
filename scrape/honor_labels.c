#include "scrape/honor_labels.h"

#include <assert.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/quote.h"

#define NO_LABEL 0xffffu
#define UNSEEN 0xfffeu
#define LABELS_MAX 0x8000u /* of the target: as many as a slot can name */

/* A combination: for each label of the target the value that replaces it, or an empty one. */
struct honor_labels_group {
	const struct str *values;
	uint32_t samples_n, labels_n;
	struct pprof *profile;
};

struct split {
	struct arena *arena;
	const struct pprof *p;
	struct labels labels;
	uint16_t *slot_of; /* per string: the target's label of that name; NO_LABEL, UNSEEN */
	struct str *values; /* of the sample at hand */
	uint32_t *group_of; /* per sample */
	struct honor_labels_group *groups;
	uint32_t n;
	struct map by_values;
};

static uint16_t split_find_slot(const struct split *s, struct str name)
{
	if (str_is(name, LABEL_NAME))
		return NO_LABEL;
	for (size_t i = 0; i < s->labels.n; i++)
		if (str_eq(s->labels.v[i].name, name))
			return (uint16_t)i;
	return NO_LABEL;
}

/* The target's label that this label of a sample replaces, or NO_LABEL. */
static uint16_t split_slot_of(struct split *s, const struct pprof_label *l)
{
	uint16_t *slot = &s->slot_of[l->key];

	if (!l->str || !s->p->strings[l->str].len)
		return NO_LABEL;
	if (*slot == UNSEEN)
		*slot = split_find_slot(s, s->p->strings[l->key]);
	return *slot;
}

static bool split_clashes(struct split *s)
{
	for (uint32_t i = 0; i < s->p->labels_n; i++)
		if (split_slot_of(s, &s->p->labels[i]) != NO_LABEL)
			return true;
	return false;
}

/* ---- which samples belong together ---- */

/*
 * True if the label is taken from the sample. A value that equals the target's is taken too, but
 * makes no new combination: two rows of one series at one time would replace each other.
 */
static bool split_take_label(
	struct split *s, bool *taken, const struct pprof_label *l, uint16_t *slot)
{
	*slot = split_slot_of(s, l);
	if (*slot == NO_LABEL || taken[*slot])
		return false;
	taken[*slot] = true;
	return true;
}

static enum err_code split_read_values(struct split *s, const struct pprof_sample *sample,
	bool *taken, uint32_t *kept, struct err *err)
{
	const struct pprof_label *l = s->p->labels + sample->label_first;
	struct str value;
	uint16_t slot;

	memset(taken, 0, s->labels.n * sizeof(*taken));
	memset(s->values, 0, s->labels.n * sizeof(*s->values));
	*kept = sample->label_n;
	for (uint32_t i = 0; i < sample->label_n; i++) {
		if (!split_take_label(s, taken, &l[i], &slot))
			continue;
		(*kept)--;
		value = s->p->strings[l[i].str];
		if (!label_value_valid(value))
			return err_set(err, ERR_INVALID, "honor_labels: invalid label value for %s: %s",
				QUOTED(s->labels.v[slot].name), QUOTED(value));
		if (!str_eq(value, s->labels.v[slot].value))
			s->values[slot] = value;
	}
	return ERR_OK;
}

static uint64_t split_hash_values(const struct split *s)
{
	uint64_t h = 0;

	for (size_t i = 0; i < s->labels.n; i++)
		h = hash_bytes(s->values[i].ptr, s->values[i].len, h);
	return h;
}

static bool honor_labels_same_values(const void *ctx, const void *key, uint32_t id)
{
	const struct split *s = ctx;
	const struct str *a = key, *b = s->groups[id].values;

	for (size_t i = 0; i < s->labels.n; i++)
		if (!str_eq(a[i], b[i]))
			return false;
	return true;
}

static enum err_code split_too_many(const struct split *s, struct err *err)
{
	struct buf names = { 0 };

	for (size_t i = 0; i < s->labels.n; i++)
		if (s->values[i].len)
			buf_printf(&names, "%s" STR_FMT, names.len ? ", " : "", STR_ARG(s->labels.v[i].name));
	buf_add_char(&names, '\0');
	err_set(err, ERR_LIMIT,
		"honor_labels splits the profile into more than %u series (by the sample labels %s)",
		HONOR_SERIES_MAX, buf_failed(&names) ? "" : names.ptr);
	buf_release(&names);
	return ERR_LIMIT;
}

static enum err_code split_find_group(struct split *s, uint32_t *out, struct err *err)
{
	uint64_t hash = split_hash_values(s);
	struct str *copy;

	*out = map_find(&s->by_values, hash, honor_labels_same_values, s, s->values);
	if (*out != MAP_NONE)
		return ERR_OK;
	if (s->n == HONOR_SERIES_MAX)
		return split_too_many(s, err);
	if (!(copy = arena_array(s->arena, struct str, s->labels.n)))
		return arena_fail(s->arena, "honor_labels", err);
	memcpy(copy, s->values, s->labels.n * sizeof(*copy));
	s->groups[s->n].values = copy;
	if (!map_add(&s->by_values, hash, s->n))
		return err_nomem(err, "honor_labels");
	*out = s->n++;
	return ERR_OK;
}

static enum err_code split_group_samples(struct split *s, bool *taken, struct err *err)
{
	uint32_t kept, g;
	enum err_code rc;

	for (uint32_t i = 0; i < s->p->samples_n; i++) {
		if ((rc = split_read_values(s, &s->p->samples[i], taken, &kept, err)) ||
			(rc = split_find_group(s, &g, err)))
			return rc;
		s->group_of[i] = g;
		s->groups[g].samples_n++;
		s->groups[g].labels_n += kept;
	}
	return ERR_OK;
}

/* ---- a profile for each combination ---- */

static enum err_code split_make_profile(
	struct split *s, struct honor_labels_group *g, struct err *err)
{
	struct pprof *p = arena_new(s->arena, struct pprof);

	if (!p)
		return arena_fail(s->arena, "honor_labels", err);
	*p = *s->p;
	p->samples = arena_array(s->arena, struct pprof_sample, g->samples_n);
	p->labels = arena_array(s->arena, struct pprof_label, g->labels_n);
	p->values = arena_array(s->arena, int64_t, (size_t)g->samples_n * p->types_n);
	if (!p->samples || !p->labels || !p->values)
		return arena_fail(s->arena, "honor_labels", err);
	p->samples_n = p->labels_n = 0;
	g->profile = p;
	return ERR_OK;
}

static void split_add_sample(struct split *s, uint32_t i, bool *taken)
{
	const struct pprof_sample *from = &s->p->samples[i];
	const struct pprof_label *l = s->p->labels + from->label_first;
	struct pprof *to = s->groups[s->group_of[i]].profile;
	struct pprof_sample *sample = &to->samples[to->samples_n];
	uint16_t slot;

	*sample = *from;
	sample->label_first = to->labels_n;
	memset(taken, 0, s->labels.n * sizeof(*taken));
	for (uint32_t k = 0; k < from->label_n; k++)
		if (!split_take_label(s, taken, &l[k], &slot))
			to->labels[to->labels_n++] = l[k];
	sample->label_n = to->labels_n - sample->label_first;
	memcpy(to->values + (size_t)to->samples_n * to->types_n, s->p->values + (size_t)i * to->types_n,
		to->types_n * sizeof(*to->values));
	to->samples_n++;
}

static enum err_code split_make_labels(
	struct split *s, const struct honor_labels_group *g, struct labels *out, struct err *err)
{
	struct labels_builder b;

	labels_builder_init(&b, s->arena, s->labels);
	for (size_t i = 0; i < s->labels.n; i++)
		if (g->values[i].len)
			labels_builder_set(&b, s->labels.v[i].name, g->values[i]);
	return labels_builder_build(&b, out, err);
}

static enum err_code split_make_all(
	struct split *s, bool *taken, struct honored **out, struct err *err)
{
	struct honored *v = arena_array(s->arena, struct honored, s->n);
	enum err_code rc;

	if (!v)
		return arena_fail(s->arena, "honor_labels", err);
	for (uint32_t g = 0; g < s->n; g++) {
		if ((rc = split_make_profile(s, &s->groups[g], err)) ||
			(rc = split_make_labels(s, &s->groups[g], &v[g].labels, err)))
			return rc;
		v[g].profile = s->groups[g].profile;
	}
	for (uint32_t i = 0; i < s->p->samples_n; i++)
		split_add_sample(s, i, taken);
	for (uint32_t g = 0; g < s->n; g++)
		assert(v[g].profile->samples_n == s->groups[g].samples_n &&
			v[g].profile->labels_n == s->groups[g].labels_n);
	*out = v;
	return ERR_OK;
}

static enum err_code split_init(struct split *s, bool **taken, struct err *err)
{
	s->slot_of = arena_array(s->arena, uint16_t, s->p->strings_n);
	if (!s->slot_of)
		return arena_fail(s->arena, "honor_labels", err);
	for (uint32_t i = 0; i < s->p->strings_n; i++)
		s->slot_of[i] = UNSEEN;
	if (s->labels.n > LABELS_MAX)
		return err_set(err, ERR_LIMIT, "honor_labels: the target has %zu labels, limit %u",
			s->labels.n, LABELS_MAX);
	s->values = arena_array(s->arena, struct str, s->labels.n);
	s->group_of = arena_array(s->arena, uint32_t, s->p->samples_n);
	s->groups = arena_array(s->arena, struct honor_labels_group, HONOR_SERIES_MAX);
	*taken = arena_array(s->arena, bool, s->labels.n);
	if (!s->values || !s->group_of || !s->groups || !*taken)
		return arena_fail(s->arena, "honor_labels", err);
	return ERR_OK;
}

enum err_code honor_labels(struct arena *a, const struct pprof *p, struct labels labels,
	struct honored **out, size_t *n, struct err *err)
{
	struct split s = { .arena = a, .p = p, .labels = labels };
	bool *taken = NULL;
	enum err_code rc = split_init(&s, &taken, err);

	if (rc)
		return rc;
	if (!split_clashes(&s)) {
		if (!(*out = arena_new(a, struct honored)))
			return arena_fail(a, "honor_labels", err);
		**out = (struct honored){ labels, p };
		*n = 1;
		return ERR_OK;
	}
	map_init(&s.by_values);
	if (!(rc = split_group_samples(&s, taken, err)) && !(rc = split_make_all(&s, taken, out, err)))
		*n = s.n;
	map_release(&s.by_values);
	return rc;
}
