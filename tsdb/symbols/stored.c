#include "tsdb/symbols/stored.h"

#include <assert.h>
#include <stdlib.h>

#include "base/array.h"

struct stored_symbols *stored_find(struct partition *p, int64_t window_ns)
{
	struct stored_symbols *s = p->stored;

	while (s && s->window_ns != window_ns)
		s = s->next;
	return s;
}

enum err_code stored_open(
	struct partition *p, int64_t window_ns, struct stored_symbols **out, struct err *err)
{
	struct stored_symbols *s = stored_find(p, window_ns);

	if (!s) {
		if (!(s = calloc(1, sizeof(*s))))
			return err_nomem(err, "symbols");
		s->window_ns = window_ns;
		s->next = p->stored;
		p->stored = s;
	}
	*out = s;
	return ERR_OK;
}

static void stored_free(struct stored_symbols *s)
{
	for (int k = 0; k < SYM_KINDS; k++)
		bits_release(&s->bits[k]);
	free(s);
}

void stored_drop(struct partition *p, int64_t window_ns)
{
	for (struct stored_symbols **at = &p->stored; *at; at = &(*at)->next) {
		struct stored_symbols *s = *at;

		if (s->window_ns != window_ns)
			continue;
		*at = s->next;
		stored_free(s);
		return;
	}
}

void stored_release_all(struct partition *p)
{
	while (p->stored)
		stored_drop(p, p->stored->window_ns);
}

/* ---- collecting ---- */

static bool new_symbols_push(struct new_symbols *new, enum sym_kind kind, uint32_t id)
{
	if (!array_room(&new->ids[kind], new->n[kind], 1, &new->cap[kind]))
		return false;
	new->ids[kind][new->n[kind]++] = id;
	return true;
}

void new_symbols_clear(struct new_symbols *new)
{
	memset(new->n, 0, sizeof(new->n));
}

void new_symbols_release(struct new_symbols *new)
{
	for (int k = 0; k < SYM_KINDS; k++)
		free(new->ids[k]);
	*new = (struct new_symbols){ 0 };
}

bool new_symbols_any(const struct new_symbols *new)
{
	for (int k = 0; k < SYM_KINDS; k++)
		if (new->n[k])
			return true;
	return false;
}

void stored_rollback(struct stored_symbols *s, const struct new_symbols *new)
{
	for (int k = 0; k < SYM_KINDS; k++)
		for (uint32_t i = 0; i < new->n[k]; i++)
			bits_clear(&s->bits[k], new->ids[k][i]);
	assert(s->nodes >= new->n[SYM_NODE]);
	s->nodes -= new->n[SYM_NODE];
}

/* True when the id was new. Bits were reserved up to the partition's last id. */
static bool stored_symbols_add_id(
	struct stored_symbols *s, struct new_symbols *new, enum sym_kind kind, uint32_t id, bool *ok)
{
	if (bits_get(&s->bits[kind], id))
		return false;
	if (!new_symbols_push(new, kind, id)) {
		*ok = false;
		return false;
	}
	bits_set(&s->bits[kind], id);
	s->nodes += kind == SYM_NODE;
	return true;
}

static void stored_symbols_add_strings(
	struct stored_symbols *s, struct new_symbols *new, const uint32_t *ids, size_t n, bool *ok)
{
	for (size_t i = 0; i < n; i++)
		if (ids[i])
			stored_symbols_add_id(s, new, SYM_STRING, ids[i], ok);
}

static void stored_add_mapping(const struct partition *p, struct stored_symbols *s,
	struct new_symbols *new, uint32_t id, bool *ok)
{
	const struct sym_mapping *v = sym_mapping(p, id);

	if (stored_symbols_add_id(s, new, SYM_MAPPING, id, ok))
		stored_symbols_add_strings(s, new, (const uint32_t[]){ v->filename, v->build_id }, 2, ok);
}

static void stored_add_location(const struct partition *p, struct stored_symbols *s,
	struct new_symbols *new, uint32_t id, bool *ok)
{
	const struct sym_location l = sym_location(p, id);

	if (!stored_symbols_add_id(s, new, SYM_LOCATION, id, ok))
		return;
	if (l.mapping != SYM_NONE)
		stored_add_mapping(p, s, new, l.mapping, ok);
	for (uint32_t i = 0; i < l.lines_n; i++) {
		const struct sym_function *f = sym_function(p, l.lines[i].function);

		if (stored_symbols_add_id(s, new, SYM_FUNCTION, l.lines[i].function, ok))
			stored_symbols_add_strings(
				s, new, (const uint32_t[]){ f->name, f->system_name, f->filename }, 3, ok);
	}
}

/* Leaf first; the new ids ascend then, as they were given. */
static void stored_add_stack(const struct partition *p, struct stored_symbols *s,
	struct new_symbols *new, uint32_t id, bool *ok)
{
	const struct stack_nodes nodes = partition_nodes(p);
	uint32_t first = new->n[SYM_NODE], last;
	struct stack_node n;

	/* A stored node has its ancestors stored. */
	for (; id && *ok && stored_symbols_add_id(s, new, SYM_NODE, id, ok); id = n.parent) {
		n = stack_node_at(nodes, id);
		stored_add_location(p, s, new, (n.tag >> 1) - 1, ok);
	}
	for (last = new->n[SYM_NODE]; first + 1 < last; first++, last--) {
		id = new->ids[SYM_NODE][first];
		new->ids[SYM_NODE][first] = new->ids[SYM_NODE][last - 1];
		new->ids[SYM_NODE][last - 1] = id;
	}
}

static void stored_add_label_set(const struct partition *p, struct stored_symbols *s,
	struct new_symbols *new, uint32_t id, bool *ok)
{
	struct sym_label_set set;

	if (!id || !stored_symbols_add_id(s, new, SYM_LABEL_SET, id, ok))
		return;
	set = sym_label_set(p, id);
	for (uint32_t i = 0; i < set.n; i++)
		stored_symbols_add_strings(
			s, new, (const uint32_t[]){ set.v[i].key, set.v[i].str, set.v[i].num_unit }, 3, ok);
}

static void stored_add_header(const struct partition *p, struct stored_symbols *s,
	struct new_symbols *new, uint32_t id, bool *ok)
{
	const struct sym_header *h = sym_header(p, id);

	if (!stored_symbols_add_id(s, new, SYM_HEADER, id, ok))
		return;
	stored_symbols_add_strings(s, new,
		(const uint32_t[]){ h->period_type, h->period_unit, h->drop_frames, h->keep_frames,
			h->default_sample_type, h->doc_url },
		6, ok);
	stored_symbols_add_strings(s, new, h->comments, h->comments_n, ok);
	for (uint32_t i = 0; i < h->types_n; i++)
		stored_symbols_add_strings(
			s, new, (const uint32_t[]){ h->types[i].type, h->types[i].unit }, 2, ok);
	for (uint32_t i = 0; i < h->mappings_n; i++)
		stored_add_mapping(p, s, new, h->mappings[i], ok);
}

enum err_code stored_add(struct partition *p, struct stored_symbols *s, uint32_t header,
	const uint64_t *keys, uint32_t n, struct new_symbols *new, struct err *err)
{
	bool ok = true;

	assert(p->lookup && sym_exists(p, SYM_HEADER, header));
	new_symbols_clear(new);
	for (int k = 1; k < SYM_KINDS; k++)
		if (p->next[k] && !bits_reserve(&s->bits[k], p->next[k] - 1))
			return err_nomem(err, "symbols");
	stored_add_header(p, s, new, header, &ok);
	for (uint32_t i = 0; i < n && ok; i++) {
		stored_add_stack(p, s, new, (uint32_t)(keys[i] >> 32), &ok);
		stored_add_label_set(p, s, new, (uint32_t)keys[i], &ok);
	}
	if (ok)
		return ERR_OK;
	stored_rollback(s, new);
	new_symbols_clear(new);
	return err_nomem(err, "symbols");
}
