#include "tsdb/debuginfo/index/strings.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/map.h"
#include "tsdb/debuginfo/index/symindex.h"

#define PIECE_BYTES (1u << 20)

void strings_init(struct strings *s, size_t bytes_max)
{
	*s = (struct strings){
		.v.item_bytes = sizeof(struct string), .seed = hash_seed(), .bytes_max = bytes_max
	};
}

void strings_release(struct strings *s)
{
	for (size_t i = 0; i < s->pieces; i++)
		free(s->piece[i]);
	free(s->piece);
	vec_release(&s->v);
	ids_release(&s->ids);
	s->piece = NULL;
	s->pieces = s->pieces_cap = s->used = s->bytes = 0;
}

static bool symindex_strings_same(const void *ctx, uint32_t id, const void *key)
{
	const struct string *have = strings_at(ctx, id);
	const struct str *text = key;

	return have->len == text->len && !memcmp(have->ptr, text->ptr, text->len);
}

static uint64_t symindex_strings_hash_of(const void *ctx, uint32_t id)
{
	const struct strings *s = ctx;
	const struct string *have = strings_at(s, id);

	return hash_bytes(have->ptr, have->len, s->seed);
}

static char *symindex_keep(struct strings *s, struct str text)
{
	char *to;

	if (!s->pieces || PIECE_BYTES - s->used < text.len) {
		if (!array_room(&s->piece, s->pieces, 1, &s->pieces_cap) || !(to = malloc(PIECE_BYTES)))
			return NULL;
		s->piece[s->pieces++] = to;
		s->used = 0;
	}
	to = s->piece[s->pieces - 1] + s->used;
	if (text.len)
		memcpy(to, text.ptr, text.len);
	s->used += text.len;
	return to;
}

enum err_code strings_intern(struct strings *s, struct str text, uint32_t *out, struct err *err)
{
	struct string *item;
	uint64_t hash;
	char *bytes;

	if (!text.len)
		text.ptr = "";
	if (text.len > SYMINDEX_STRING_MAX)
		text.len = SYMINDEX_STRING_MAX;
	hash = hash_bytes(text.ptr, text.len, s->seed);
	*out = ids_find(&s->ids, hash, symindex_strings_same, s, &text);
	if (*out != IDS_NONE)
		return ERR_OK;
	if (s->bytes_max - s->bytes < text.len)
		return err_set(err, ERR_LIMIT,
			"symbol index: names and paths of more than %zu bytes, the limit", s->bytes_max);
	if (!vec_room(&s->v) || !(bytes = symindex_keep(s, text)))
		return err_nomem(err, "symbol index: strings");
	item = vec_at(&s->v, s->v.n);
	*item = (struct string){ bytes, (uint32_t)text.len,
		(uint32_t)hash_bytes(text.ptr, text.len, 0) };
	*out = (uint32_t)s->v.n;
	if (!ids_add(&s->ids, hash, symindex_strings_hash_of, s))
		return err_nomem(err, "symbol index: strings");
	s->v.n++;
	s->bytes += text.len;
	return ERR_OK;
}
