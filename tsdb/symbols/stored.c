#include "tsdb/symbols/stored.h"

#include <stdlib.h>

struct marks *marks_find(struct partition *p, int64_t window_ns)
{
	struct marks *m = p->marks;

	while (m && m->window_ns != window_ns)
		m = m->next;
	return m;
}

enum err_code marks_open(
	struct partition *p, int64_t window_ns, struct marks **out, struct err *err)
{
	struct marks *m = marks_find(p, window_ns);

	if (!m) {
		if (!(m = calloc(1, sizeof(*m))))
			return err_set(err, ERR_NOMEM, "symbols: out of memory");
		m->window_ns = window_ns;
		m->next = p->marks;
		p->marks = m;
	}
	*out = m;
	return ERR_OK;
}

static void marks_free(struct marks *m)
{
	for (int k = 0; k < SYM_KINDS; k++)
		bits_release(&m->bits[k]);
	free(m);
}

void marks_drop(struct partition *p, int64_t window_ns)
{
	for (struct marks **at = &p->marks; *at; at = &(*at)->next) {
		struct marks *m = *at;

		if (m->window_ns != window_ns)
			continue;
		*at = m->next;
		marks_free(m);
		return;
	}
}

void marks_release_all(struct partition *p)
{
	while (p->marks)
		marks_drop(p, p->marks->window_ns);
}

/* ---- collecting ---- */

static bool marked_push(struct marked *new, enum sym_kind kind, uint32_t id)
{
	uint32_t cap = new->cap[kind] ? new->cap[kind] * 2 : 64, *ids;

	if (new->n[kind] == new->cap[kind]) {
		if (!(ids = realloc(new->ids[kind], cap * sizeof(*ids))))
			return false;
		new->ids[kind] = ids;
		new->cap[kind] = cap;
	}
	new->ids[kind][new->n[kind]++] = id;
	return true;
}

void marked_clear(struct marked *new)
{
	memset(new->n, 0, sizeof(new->n));
}

void marked_release(struct marked *new)
{
	for (int k = 0; k < SYM_KINDS; k++)
		free(new->ids[k]);
	*new = (struct marked){ 0 };
}

bool marked_any(const struct marked *new)
{
	for (int k = 0; k < SYM_KINDS; k++)
		if (new->n[k])
			return true;
	return false;
}

void marks_rollback(struct marks *m, const struct marked *new)
{
	for (int k = 0; k < SYM_KINDS; k++)
		for (uint32_t i = 0; i < new->n[k]; i++)
			bits_clear(&m->bits[k], new->ids[k][i]);
	m->nodes -= new->n[SYM_NODE];
}

/* True when the id was new. Bits were reserved up to the partition's last id. */
static bool mark(struct marks *m, struct marked *new, enum sym_kind kind, uint32_t id, bool *ok)
{
	if (bits_get(&m->bits[kind], id))
		return false;
	if (!marked_push(new, kind, id)) {
		*ok = false;
		return false;
	}
	bits_set(&m->bits[kind], id);
	m->nodes += kind == SYM_NODE;
	return true;
}

static void mark_strings(
	struct marks *m, struct marked *new, const uint32_t *ids, size_t n, bool *ok)
{
	for (size_t i = 0; i < n; i++)
		if (ids[i])
			mark(m, new, SYM_STRING, ids[i], ok);
}

static void mark_mapping(
	const struct partition *p, struct marks *m, struct marked *new, uint32_t id, bool *ok)
{
	const struct sym_mapping *v = sym_mapping(p, id);

	if (mark(m, new, SYM_MAPPING, id, ok))
		mark_strings(m, new, (const uint32_t[]){ v->filename, v->build_id }, 2, ok);
}

static void mark_location(
	const struct partition *p, struct marks *m, struct marked *new, uint32_t id, bool *ok)
{
	const struct sym_location *l = sym_location(p, id);

	if (!mark(m, new, SYM_LOCATION, id, ok))
		return;
	if (l->mapping != SYM_NONE)
		mark_mapping(p, m, new, l->mapping, ok);
	for (uint32_t i = 0; i < l->lines_n; i++) {
		const struct sym_function *f = sym_function(p, l->lines[i].function);

		if (mark(m, new, SYM_FUNCTION, l->lines[i].function, ok))
			mark_strings(m, new, (const uint32_t[]){ f->name, f->system_name, f->filename }, 3, ok);
	}
}

static void mark_stack(
	const struct partition *p, struct marks *m, struct marked *new, uint32_t id, bool *ok)
{
	struct sym_node n;

	/* A node that is marked has its ancestors marked. */
	for (; id && *ok && mark(m, new, SYM_NODE, id, ok); id = n.parent) {
		n = sym_node(p, id);
		mark_location(p, m, new, n.location, ok);
	}
}

static void mark_label_set(
	const struct partition *p, struct marks *m, struct marked *new, uint32_t id, bool *ok)
{
	struct sym_label_set set;

	if (!id || !mark(m, new, SYM_LABEL_SET, id, ok))
		return;
	set = sym_label_set(p, id);
	for (uint32_t i = 0; i < set.n; i++)
		mark_strings(
			m, new, (const uint32_t[]){ set.v[i].key, set.v[i].str, set.v[i].num_unit }, 3, ok);
}

static void mark_header(
	const struct partition *p, struct marks *m, struct marked *new, uint32_t id, bool *ok)
{
	const struct sym_header *h = sym_header(p, id);

	if (!mark(m, new, SYM_HEADER, id, ok))
		return;
	mark_strings(m, new,
		(const uint32_t[]){ h->period_type, h->period_unit, h->drop_frames, h->keep_frames,
			h->default_sample_type, h->doc_url },
		6, ok);
	mark_strings(m, new, h->comments, h->comments_n, ok);
	for (uint32_t i = 0; i < h->types_n; i++)
		mark_strings(m, new, (const uint32_t[]){ h->types[i].type, h->types[i].unit }, 2, ok);
	for (uint32_t i = 0; i < h->mappings_n; i++)
		mark_mapping(p, m, new, h->mappings[i], ok);
}

enum err_code marks_add(struct partition *p, struct marks *m, uint32_t header, const uint64_t *keys,
	uint32_t n, struct marked *new, struct err *err)
{
	bool ok = true;

	marked_clear(new);
	for (int k = 1; k < SYM_KINDS; k++)
		if (p->next[k] && !bits_reserve(&m->bits[k], p->next[k] - 1))
			return err_set(err, ERR_NOMEM, "symbols: out of memory");
	mark_header(p, m, new, header, &ok);
	for (uint32_t i = 0; i < n && ok; i++) {
		mark_stack(p, m, new, (uint32_t)(keys[i] >> 32), &ok);
		mark_label_set(p, m, new, (uint32_t)keys[i], &ok);
	}
	if (ok)
		return ERR_OK;
	marks_rollback(m, new);
	marked_clear(new);
	return err_set(err, ERR_NOMEM, "symbols: out of memory");
}
