/*
 * Constants: what events refer to by class and id. They are in checkpoint events, of which a chunk
 * has one or many; a constant may refer to others that come later, also in a later checkpoint. So
 * all checkpoints of a chunk are read first, and only the places of constants are kept.
 */
#include "base/array.h"
#include "base/quote.h"
#include "proto/jfr/decoder.h"

static enum err_code jfr_keep(
	struct jfr_chunk *c, struct jfr_class *class, uint64_t id, uint32_t at)
{
	struct jfr_decoder *d = c->d;

	if (class->entries_n >= d->limits->elements_max)
		return err_set(d->err, ERR_LIMIT, "chunk %u: more than %u constants of " STR_FMT, c->number,
			d->limits->elements_max, STR_ARG(class->name));
	if (!arena_array_room(
			&d->chunk_arena, &class->entries, class->entries_n, 1, &class->entries_cap))
		return arena_fail(&d->chunk_arena, "constants", d->err);
	class->entries[class->entries_n++] = (struct jfr_entry){ .id = id, .at = at };
	return ERR_OK;
}

/* Constants of one class. */
static enum err_code jfr_pool_of_class(struct jfr_chunk *c, struct cursor *cursor)
{
	uint32_t begin = jfr_offset(c->d, cursor), i = jfr_index_find(&c->by_id, jfr_varint(cursor));
	uint64_t n = jfr_varint(cursor);
	struct jfr_class *class;
	bool wanted;
	enum err_code rc;

	if (cursor->bad)
		return jfr_value_fail(c, begin, "constants");
	if (i == JFR_NONE) {
		c->why = "their class is not in the metadata";
		return jfr_value_fail(c, begin, "constants");
	}
	class = &c->classes[i];
	wanted = class->role >= ROLE_STRING && class->role <= ROLE_TRACE;
	for (; n; n--) {
		uint32_t at = jfr_offset(c->d, cursor);
		uint64_t id = jfr_varint(cursor);

		if (!cursor->bad && wanted && (rc = jfr_keep(c, class, id, jfr_offset(c->d, cursor))))
			return rc;
		if (cursor->bad || !jfr_constant(c, cursor, class, NULL))
			return jfr_value_fail(c, at, "a constant");
	}
	return ERR_OK;
}

enum err_code jfr_checkpoint(struct jfr_chunk *c, struct cursor cursor)
{
	uint32_t at = jfr_offset(c->d, &cursor);
	enum err_code rc;
	uint64_t n;

	for (int i = 0; i < 3; i++) /* start, duration, the way to the checkpoint before */
		jfr_varint(&cursor);
	cursor_bytes(&cursor, 1); /* what it was written for */
	n = jfr_varint(&cursor);
	if (cursor.bad)
		return jfr_value_fail(c, at, "a checkpoint");
	for (; n; n--)
		if ((rc = jfr_pool_of_class(c, &cursor)))
			return rc;
	return ERR_OK;
}

enum err_code jfr_pools_finish(struct jfr_chunk *c)
{
	enum err_code rc = ERR_OK;

	for (uint32_t i = 0; i < c->classes_n && !rc; i++) {
		struct jfr_class *class = &c->classes[i];

		rc = jfr_index_init(&class->index, c->d, &c->d->chunk_arena, class->entries,
			sizeof(*class->entries), class->entries_n);
	}
	return rc;
}

static struct jfr_entry *jfr_pool_find(const struct jfr_chunk *c, uint32_t class, uint64_t id)
{
	uint32_t i;

	if (class == JFR_NONE)
		return NULL;
	i = jfr_index_find(&c->classes[class].index, id);
	return i == JFR_NONE ? NULL : &c->classes[class].entries[i];
}

struct jfr_entry *jfr_find(const struct jfr_chunk *c, const struct jfr_class *class, unsigned slot,
	const struct jfr_value *values)
{
	const struct jfr_field *f;

	if (class->field_of[slot] == JFR_NONE)
		return NULL;
	f = &c->fields[class->field_of[slot]];
	return f->kind == KIND_REF && !f->array ? jfr_pool_find(c, f->class, values[slot].n) : NULL;
}

/* Latin-1, and UTF-16 as varints, to UTF-8. Surrogates that are not pairs become U+FFFD. */
static enum err_code jfr_convert(struct jfr_chunk *c, const struct jfr_value *v, struct str *out)
{
	struct cursor r = cursor_of(v->bytes);
	size_t len = 0;
	char *to;

	/* A unit becomes at most 3 bytes; a pair of them 4. */
	if (v->n > c->d->limits->string_bytes_max)
		return err_set(c->d->err, ERR_LIMIT, "chunk %u: a string of %llu characters, limit %u",
			c->number, (unsigned long long)v->n, c->d->limits->string_bytes_max);
	if (!(to = arena_alloc(&c->d->chunk_arena, 3 * (size_t)v->n + 1)))
		return arena_fail(&c->d->chunk_arena, "string", c->d->err);
	while (r.at < r.end) {
		uint32_t u = v->encoding == 5 ? *r.at++ : (uint16_t)jfr_varint(&r);

		if (u >= 0xd800 && u < 0xdc00) {
			struct cursor next = r;
			uint32_t low = (uint16_t)jfr_varint(&next);

			if (!next.bad && low >= 0xdc00 && low < 0xe000) {
				u = 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00);
				r = next;
			}
		}
		if (u >= 0xd800 && u < 0xe000)
			u = 0xfffd;
		len += utf8_write(u, to + len);
	}
	*out = (struct str){ to, len };
	return ERR_OK;
}

static enum err_code jfr_pool_text(struct jfr_chunk *c, const struct jfr_field *f,
	const struct jfr_value *v, struct str *out, unsigned hops)
{
	struct jfr_value values[SLOTS] = { 0 };
	const struct jfr_class *class;
	const struct jfr_entry *e;
	struct cursor r;
	uint32_t to;

	if (f->kind == KIND_STRING && v->encoding != 2) {
		if (v->encoding > 3)
			return jfr_convert(c, v, out);
		if (v->bytes.len > c->d->limits->string_bytes_max)
			return err_set(c->d->err, ERR_LIMIT, "chunk %u: a string of %zu bytes, limit %u",
				c->number, v->bytes.len, c->d->limits->string_bytes_max);
		if (v->bytes.len)
			*out = v->bytes;
		return ERR_OK;
	}
	to = f->kind == KIND_STRING ? c->string_class : f->class;
	if (hops > JFR_NESTING_MAX || !(e = jfr_pool_find(c, to, v->n)))
		return ERR_OK;
	class = &c->classes[to];
	r = jfr_cursor(c->d, e->at, c->end);
	if (!jfr_constant(c, &r, class, values))
		return jfr_value_fail(c, e->at, "a constant");
	/* One long constant may be the text of a million methods. */
	c->d->text_bytes += jfr_offset(c->d, &r) - e->at;
	if (c->d->text_bytes > c->d->limits->text_bytes_max)
		return err_set(c->d->err, ERR_LIMIT, "texts of more than %zu bytes together",
			c->d->limits->text_bytes_max);
	if (class->role == ROLE_STRING)
		return jfr_pool_text(c, &(struct jfr_field){ .kind = KIND_STRING }, values, out, hops + 1);
	if (class->role != ROLE_TEXT || class->field_of[TEXT_TEXT] == JFR_NONE)
		return ERR_OK;
	f = &c->fields[class->field_of[TEXT_TEXT]];
	if (f->array || (f->kind != KIND_STRING && f->kind != KIND_REF))
		return ERR_OK;
	return jfr_pool_text(c, f, &values[TEXT_TEXT], out, hops + 1);
}

enum err_code jfr_text(struct jfr_chunk *c, const struct jfr_class *class, unsigned slot,
	const struct jfr_value *values, struct str *out)
{
	const struct jfr_field *f;

	*out = STR("");
	if (class->field_of[slot] == JFR_NONE)
		return ERR_OK;
	f = &c->fields[class->field_of[slot]];
	if (f->array || (f->kind != KIND_STRING && f->kind != KIND_REF))
		return ERR_OK;
	return jfr_pool_text(c, f, &values[slot], out, 0);
}
