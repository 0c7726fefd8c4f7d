#include "tsdb/debuginfo/store/stamps.h"

#include "base/clock.h"
#include "base/map.h"

#define MAGIC STR("epistmp1")

void stamps_begin(struct buf *out)
{
	buf_clear(out);
	buf_add_str(out, MAGIC);
}

void stamps_add(struct buf *out, const struct stamp *s)
{
	buf_add_varint(out, s->id.kind);
	buf_add_lenstr(out, debuginfo_id_text(&s->id));
	buf_add_varint(out, (uint64_t)s->used_s);
	buf_add_varint(out, (uint64_t)s->missing_end_s);
	buf_add_varint(out, (uint64_t)s->again_s);
	buf_add_varint(out, s->tried);
	buf_add_lenstr(out, str_of(s->why));
}

void stamps_end(struct buf *out)
{
	buf_add_u64be(out, hash_bytes(out->ptr, out->len, 0));
}

static enum err_code stamps_bad(struct err *err, const char *what)
{
	return err_set(err, ERR_CORRUPT, "stamps: %s", what);
}

static bool stamps_time_ok(uint64_t seconds)
{
	return seconds <= (uint64_t)(TIME_MAX_NS / NS_PER_S);
}

static enum err_code stamp_read(struct cursor *c, struct stamp *s, struct err *err)
{
	uint64_t kind = cursor_varint(c), used, missing, again, tried;
	struct str text = cursor_lenstr(c), why;

	used = cursor_varint(c);
	missing = cursor_varint(c);
	again = cursor_varint(c);
	tried = cursor_varint(c);
	why = cursor_lenstr(c);
	if (c->bad)
		return stamps_bad(err, "cut off");
	if (kind >= DEBUGINFO_ID_KINDS ||
		debuginfo_id_init(&s->id, (enum debuginfo_id_kind)kind, text, NULL) ||
		!str_eq(debuginfo_id_text(&s->id), text))
		return stamps_bad(err, "bad key");
	if (!stamps_time_ok(used) || !stamps_time_ok(missing) || !stamps_time_ok(again))
		return stamps_bad(err, "bad time");
	if (tried >= DEBUGINFO_KINDS || why.len > STAMP_WHY_BYTES_MAX || !str_is_utf8(why) ||
		memchr(why.len ? why.ptr : "", '\0', why.len))
		return stamps_bad(err, "bad text");
	s->used_s = (int64_t)used;
	s->missing_end_s = (int64_t)missing;
	s->again_s = (int64_t)again;
	s->tried = (enum debuginfo_kind)tried;
	memset(s->why, 0, sizeof(s->why));
	memcpy(s->why, why.len ? why.ptr : "", why.len);
	return ERR_OK;
}

enum err_code stamps_decode(struct str bytes, stamp_fn fn, void *ctx, struct err *err)
{
	struct str body = { bytes.ptr, bytes.len < 8 ? 0 : bytes.len - 8 };
	struct cursor c, sum;
	struct stamp t;
	enum err_code rc = ERR_OK;

	if (!str_has_prefix(body, MAGIC))
		return stamps_bad(err, "not a file of stamps");
	sum = cursor_of((struct str){ bytes.ptr + body.len, 8 });
	if (cursor_u64be(&sum) != hash_bytes(body.ptr, body.len, 0))
		return stamps_bad(err, "checksum");
	c = cursor_of(body);
	(void)cursor_bytes(&c, MAGIC.len);
	while (!rc && cursor_left(&c))
		if (!(rc = stamp_read(&c, &t, err)))
			rc = fn(ctx, &t, err);
	return rc;
}
