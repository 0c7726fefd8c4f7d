#include "tsdb/debuginfo/dwarf/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum err_code steps_take(struct dwarf_reader *r, uint64_t n, struct err *err)
{
	if (n > r->steps_left) {
		r->steps_left = 0;
		return err_set(err, ERR_LIMIT, "debug data need more than %llu steps to be read",
			(unsigned long long)r->steps_max);
	}
	r->steps_left -= n;
	return ERR_OK;
}

enum err_code dwarf_damaged(struct err *err, const char *fmt, ...)
{
	char msg[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	return err_set(err, ERR_INVALID, "%s", msg);
}

struct cursor dwarf_bytes(const struct dwarf_file *f, enum section s, uint64_t offset)
{
	/* A section that this kind of file does not have was not loaded: it is NULL. */
	struct cursor c = cursor_of(f->sections[s].len ? f->sections[s] : STR(""));

	if (offset > cursor_left(&c)) {
		c.at = c.end;
		c.bad = true;
	} else {
		c.at += offset;
	}
	return c;
}

uint64_t cursor_le(struct cursor *c, unsigned bytes)
{
	uint64_t v = 0;

	if (cursor_left(c) < bytes) {
		c->bad = true;
		c->at = c->end;
		return 0;
	}
	for (unsigned i = 0; i < bytes; i++)
		v |= (uint64_t)c->at[i] << (8 * i);
	c->at += bytes;
	return v;
}

int64_t cursor_sleb(struct cursor *c)
{
	uint64_t v = 0;
	unsigned shift = 0;

	while (c->at < c->end) {
		unsigned char byte = *c->at++;

		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (byte & 0x80)
			continue;
		if (shift < 64 && byte & 0x40)
			v |= UINT64_MAX << shift;
		return (int64_t)v;
	}
	c->bad = true;
	return 0;
}

struct str cursor_cstr(struct cursor *c)
{
	const unsigned char *from = c->at, *nul;

	nul = from < c->end ? memchr(from, 0, cursor_left(c)) : NULL;
	if (!nul) {
		c->bad = true;
		c->at = c->end;
		return (struct str){ 0 };
	}
	c->at = nul + 1;
	return (struct str){ (const char *)from, (size_t)(nul - from) };
}

static size_t number_slot(const struct number_map *m, uint64_t key)
{
	size_t i = (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (m->cap - 1);

	while (m->keys[i] && m->keys[i] != key + 1)
		i = (i + 1) & (m->cap - 1);
	return i;
}

uint32_t number_map_find(const struct number_map *m, uint64_t key)
{
	size_t i;

	if (!m->cap)
		return MAP_MISS;
	i = number_slot(m, key);
	return m->keys[i] ? m->values[i] : MAP_MISS;
}

static bool number_map_resize(struct number_map *m, size_t cap)
{
	struct number_map to = { .cap = cap, .used = m->used };

	to.keys = calloc(cap, sizeof(*to.keys));
	to.values = calloc(cap, sizeof(*to.values));
	if (!to.keys || !to.values) {
		free(to.keys);
		free(to.values);
		return false;
	}
	for (size_t i = 0; i < m->cap; i++) {
		if (m->keys[i]) {
			size_t at = number_slot(&to, m->keys[i] - 1);

			to.keys[at] = m->keys[i];
			to.values[at] = m->values[i];
		}
	}
	free(m->keys);
	free(m->values);
	*m = to;
	return true;
}

bool number_map_add(struct number_map *m, uint64_t key, uint32_t value)
{
	size_t i;

	if (m->used * 2 >= m->cap && !number_map_resize(m, m->cap ? m->cap * 2 : 256))
		return false;
	i = number_slot(m, key);
	if (!m->keys[i])
		m->used++;
	m->keys[i] = key + 1;
	m->values[i] = value;
	return true;
}

void number_map_clear(struct number_map *m)
{
	/* A map that a large unit has grown is not cleared for each small one. */
	if (m->cap > 1024 && m->used * 16 < m->cap) {
		free(m->keys);
		free(m->values);
		*m = (struct number_map){ 0 };
	} else if (m->used) {
		memset(m->keys, 0, m->cap * sizeof(*m->keys));
		m->used = 0;
	}
}
