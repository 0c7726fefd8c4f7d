#include "tsdb/symbols/translate.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

/* Ids of one partition in another, each looked up once: an array per kind holds the known ones. A
 * stack is walked up to a known node, then made downwards. */
struct memo {
	uint32_t *v; /* id + 1; 0: not known yet */
	uint32_t n;
};

struct translation {
	struct partition *from, *to;
	uint32_t id, from_epoch, to_epoch; /* of the job */
	struct memo memo[SYM_KINDS];
	uint32_t *path;
	size_t path_cap;
	struct arena arena; /* one symbol's arrays */
};

enum err_code translation_open(
	struct partition *from, struct partition *to, struct translation **out, struct err *err)
{
	struct translation *t = calloc(1, sizeof(*t));

	assert(from != to);
	if (!t)
		return err_nomem(err, "translation");
	t->from = from;
	t->to = to;
	t->id = to->id;
	t->from_epoch = from->epoch;
	t->to_epoch = to->epoch;
	arena_init(&t->arena, 0);
	*out = t;
	return ERR_OK;
}

void translation_close(struct translation *t)
{
	if (!t)
		return;
	for (int k = 0; k < SYM_KINDS; k++)
		free(t->memo[k].v);
	free(t->path);
	arena_release(&t->arena);
	free(t);
}

bool translation_is(struct translation *t, struct partition *from, struct partition *to)
{
	if (!t || t->id != to->id || t->from_epoch != from->epoch || t->to_epoch != to->epoch)
		return false;
	/* Either may have left memory and come back: the ids of an epoch do not change. */
	t->from = from;
	t->to = to;
	return true;
}

static bool translation_known(
	const struct translation *t, enum sym_kind kind, uint32_t id, uint32_t *out)
{
	const struct memo *m = &t->memo[kind];

	if (id >= m->n || !m->v[id])
		return false;
	*out = m->v[id] - 1;
	return true;
}

static enum err_code translation_remember(
	struct translation *t, enum sym_kind kind, uint32_t id, uint32_t is, struct err *err)
{
	struct memo *m = &t->memo[kind];
	uint64_t n = m->n ? m->n : 64;
	uint32_t *v;

	if (id >= m->n) {
		while (n <= id)
			n *= 2;
		if (!(v = realloc(m->v, n * sizeof(*v))))
			return err_nomem(err, "translation");
		memset(v + m->n, 0, (n - m->n) * sizeof(*v));
		m->v = v;
		m->n = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
	}
	m->v[id] = is + 1;
	return ERR_OK;
}

static enum err_code translation_missing(
	const struct translation *t, enum sym_kind kind, uint32_t id, struct err *err)
{
	return err_set(err, ERR_CORRUPT,
		"job \"" STR_FMT "\": symbol %" PRIu32 " of kind %d is missing", STR_ARG(t->from->name), id,
		(int)kind);
}

static enum err_code translation_string_of(
	struct translation *t, uint32_t id, uint32_t *out, struct err *err)
{
	enum err_code rc;

	if (translation_known(t, SYM_STRING, id, out))
		return ERR_OK;
	if (!sym_exists(t->from, SYM_STRING, id))
		return translation_missing(t, SYM_STRING, id, err);
	if ((rc = sym_intern_string(t->to, sym_string(t->from, id), out, err)))
		return rc;
	return translation_remember(t, SYM_STRING, id, *out, err);
}

static enum err_code translation_mapping_of(
	struct translation *t, uint32_t id, uint32_t *out, struct err *err)
{
	struct sym_mapping m;
	enum err_code rc;

	if (translation_known(t, SYM_MAPPING, id, out))
		return ERR_OK;
	if (!sym_exists(t->from, SYM_MAPPING, id))
		return translation_missing(t, SYM_MAPPING, id, err);
	m = *sym_mapping(t->from, id);
	if ((rc = translation_string_of(t, m.filename, &m.filename, err)) ||
		(rc = translation_string_of(t, m.build_id, &m.build_id, err)) ||
		(rc = sym_intern_mapping(t->to, &m, out, err)))
		return rc;
	return translation_remember(t, SYM_MAPPING, id, *out, err);
}

static enum err_code translation_function_of(
	struct translation *t, uint32_t id, uint32_t *out, struct err *err)
{
	struct sym_function f;
	enum err_code rc;

	if (translation_known(t, SYM_FUNCTION, id, out))
		return ERR_OK;
	if (!sym_exists(t->from, SYM_FUNCTION, id))
		return translation_missing(t, SYM_FUNCTION, id, err);
	f = *sym_function(t->from, id);
	if ((rc = translation_string_of(t, f.name, &f.name, err)) ||
		(rc = translation_string_of(t, f.system_name, &f.system_name, err)) ||
		(rc = translation_string_of(t, f.filename, &f.filename, err)) ||
		(rc = sym_intern_function(t->to, &f, out, err)))
		return rc;
	return translation_remember(t, SYM_FUNCTION, id, *out, err);
}

static enum err_code translation_location_of(
	struct translation *t, uint32_t id, uint32_t *out, struct err *err)
{
	struct sym_location l;
	struct sym_line *lines;
	enum err_code rc;

	if (translation_known(t, SYM_LOCATION, id, out))
		return ERR_OK;
	if (!sym_exists(t->from, SYM_LOCATION, id))
		return translation_missing(t, SYM_LOCATION, id, err);
	l = sym_location(t->from, id);
	arena_reset(&t->arena);
	if (!(lines = arena_array(&t->arena, struct sym_line, (size_t)l.lines_n + 1)))
		return err_nomem(err, "translation");
	if (l.mapping != SYM_NONE && (rc = translation_mapping_of(t, l.mapping, &l.mapping, err)))
		return rc;
	for (uint32_t i = 0; i < l.lines_n; i++) {
		lines[i] = l.lines[i];
		if ((rc = translation_function_of(t, lines[i].function, &lines[i].function, err)))
			return rc;
	}
	l.lines = lines;
	if ((rc = sym_intern_location(t->to, &l, out, err)))
		return rc;
	return translation_remember(t, SYM_LOCATION, id, *out, err);
}

static enum err_code translation_path_of(
	struct translation *t, uint32_t id, size_t *n, uint32_t *top, struct err *err)
{
	uint32_t *v;

	*n = 0;
	for (*top = 0; id && !translation_known(t, SYM_NODE, id, top);
		 id = sym_node(t->from, id).parent) {
		if (!sym_exists(t->from, SYM_NODE, id))
			return translation_missing(t, SYM_NODE, id, err);
		if (*n == t->path_cap) {
			size_t cap = t->path_cap ? t->path_cap * 2 : 64;

			if (!(v = realloc(t->path, cap * sizeof(*v))))
				return err_nomem(err, "translation");
			t->path = v;
			t->path_cap = cap;
		}
		t->path[(*n)++] = id;
	}
	return ERR_OK;
}

static enum err_code translation_stack_of(
	struct translation *t, uint32_t id, uint32_t *out, struct err *err)
{
	uint32_t location;
	enum err_code rc;
	size_t n;

	if ((rc = translation_path_of(t, id, &n, out, err)))
		return rc;
	while (n--) {
		uint32_t node = t->path[n];

		if ((rc = translation_location_of(t, sym_node(t->from, node).location, &location, err)) ||
			(rc = sym_intern_node(t->to, *out, location, out, err)) ||
			(rc = translation_remember(t, SYM_NODE, node, *out, err)))
			return rc;
	}
	return ERR_OK;
}

static enum err_code translation_label_set_of(
	struct translation *t, uint32_t id, uint32_t *out, struct err *err)
{
	struct sym_label_set set;
	struct sym_label *v;
	bool overflow;
	enum err_code rc;

	if (translation_known(t, SYM_LABEL_SET, id, out))
		return ERR_OK;
	if (!sym_exists(t->from, SYM_LABEL_SET, id))
		return translation_missing(t, SYM_LABEL_SET, id, err);
	set = sym_label_set(t->from, id);
	arena_reset(&t->arena);
	if (!(v = arena_array(&t->arena, struct sym_label, (size_t)set.n + 1)))
		return err_nomem(err, "translation");
	for (uint32_t i = 0; i < set.n; i++) {
		v[i] = set.v[i];
		if ((rc = translation_string_of(t, v[i].key, &v[i].key, err)) ||
			(rc = translation_string_of(t, v[i].str, &v[i].str, err)) ||
			(rc = translation_string_of(t, v[i].num_unit, &v[i].num_unit, err)))
			return rc;
	}
	sym_label_set_sort(v, set.n);
	set.v = v;
	if ((rc = sym_intern_label_set(t->to, &set, out, &overflow, err)))
		return rc;
	return translation_remember(t, SYM_LABEL_SET, id, *out, err);
}

static enum err_code translation_header_strings(
	struct translation *t, struct sym_header *h, struct err *err)
{
	uint32_t *const s[] = { &h->period_type, &h->period_unit, &h->drop_frames, &h->keep_frames,
		&h->default_sample_type, &h->doc_url };
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < sizeof(s) / sizeof(s[0]) && !rc; i++)
		rc = translation_string_of(t, *s[i], s[i], err);
	return rc;
}

static enum err_code translation_header_of(
	struct translation *t, uint32_t id, uint32_t *out, struct err *err)
{
	struct sym_header h;
	struct sym_type *types;
	uint32_t *comments, *mappings;
	enum err_code rc = ERR_OK;

	if (translation_known(t, SYM_HEADER, id, out))
		return ERR_OK;
	if (!sym_exists(t->from, SYM_HEADER, id))
		return translation_missing(t, SYM_HEADER, id, err);
	h = *sym_header(t->from, id);
	arena_reset(&t->arena);
	types = arena_array(&t->arena, struct sym_type, (size_t)h.types_n + 1);
	comments = arena_array(&t->arena, uint32_t, (size_t)h.comments_n + 1);
	mappings = arena_array(&t->arena, uint32_t, (size_t)h.mappings_n + 1);
	if (!types || !comments || !mappings)
		return err_nomem(err, "translation");
	for (uint32_t i = 0; i < h.types_n && !rc; i++) {
		types[i] = h.types[i];
		if (!(rc = translation_string_of(t, types[i].type, &types[i].type, err)))
			rc = translation_string_of(t, types[i].unit, &types[i].unit, err);
	}
	for (uint32_t i = 0; i < h.comments_n && !rc; i++)
		rc = translation_string_of(t, h.comments[i], &comments[i], err);
	for (uint32_t i = 0; i < h.mappings_n && !rc; i++)
		rc = translation_mapping_of(t, h.mappings[i], &mappings[i], err);
	h.types = types;
	h.comments = comments;
	h.mappings = mappings;
	if (rc || (rc = translation_header_strings(t, &h, err)) ||
		(rc = sym_intern_header(t->to, &h, out, err)))
		return rc;
	return translation_remember(t, SYM_HEADER, id, *out, err);
}

typedef enum err_code (*of_fn)(struct translation *t, uint32_t id, uint32_t *out, struct err *err);

static enum err_code translation_locked(
	struct translation *t, of_fn fn, uint32_t id, uint32_t *out, struct err *err)
{
	enum err_code rc;

	mutex_lock(&t->to->lock);
	rc = fn(t, id, out, err);
	mutex_unlock(&t->to->lock);
	return rc;
}

enum err_code translate_stack(struct translation *t, uint32_t id, uint32_t *out, struct err *err)
{
	return translation_known(t, SYM_NODE, id, out) ?
		ERR_OK :
		translation_locked(t, translation_stack_of, id, out, err);
}

enum err_code translate_label_set(
	struct translation *t, uint32_t id, uint32_t *out, struct err *err)
{
	return translation_known(t, SYM_LABEL_SET, id, out) ?
		ERR_OK :
		translation_locked(t, translation_label_set_of, id, out, err);
}

enum err_code translate_header(struct translation *t, uint32_t id, uint32_t *out, struct err *err)
{
	return translation_known(t, SYM_HEADER, id, out) ?
		ERR_OK :
		translation_locked(t, translation_header_of, id, out, err);
}

enum err_code translate_entries(struct translation *t, const uint32_t *stacks,
	const uint32_t *label_sets, uint32_t n, struct translated *out, struct err *err)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t stack, set = 0;
		enum err_code rc;

		if ((rc = translate_stack(t, stacks[i], &stack, err)) ||
			(label_sets && (rc = translate_label_set(t, label_sets[i], &set, err))))
			return rc;
		out->keys[i] = (uint64_t)stack << 32 | set;
		out->order[i] = i;
	}
	keys_sort(out->keys, out->order, n, out->keys_tmp, out->order_tmp);
	return ERR_OK;
}
