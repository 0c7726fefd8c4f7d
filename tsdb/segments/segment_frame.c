#include <assert.h>

#include "base/map.h"
#include "tsdb/segments/segments_internal.h"
#include "tsdb/store/store_crc.h"

/* Heads of segments, and frames: what writers and readers share. */

static const char magic[4] = { 'E', 'P', 'S', 'G' };

void segment_encode_head(const struct segment *s, struct buf *out)
{
	size_t at = out->len;

	buf_add(out, magic, sizeof(magic));
	buf_add_char(out, SEGMENT_VERSION);
	buf_add_char(out, s->packed);
	buf_add_u64be(out, (uint64_t)s->start_ns);
	buf_add_u64be(out, (uint64_t)s->end_ns);
	buf_add_u64be(out, s->identity);
	buf_add_u64be(out, s->first);
	buf_add_u64be(out, s->packed ? s->last : 0);
	if (!buf_failed(out))
		buf_add_u64be(out, hash_bytes(out->ptr + at, out->len - at, 0));
}

enum err_code segment_parse_head(struct str bytes, struct segment *out, struct err *err)
{
	struct cursor in;
	uint64_t hash;
	char packed;

	if (bytes.len < SEGMENT_HEAD_BYTES || memcmp(bytes.ptr, magic, sizeof(magic)) != 0)
		return err_set(err, ERR_CORRUPT, "segment: no head");
	packed = bytes.ptr[5];
	in = cursor_of((struct str){ bytes.ptr + 6, SEGMENT_HEAD_BYTES - 6 });
	*out = (struct segment){ .packed = packed };
	out->start_ns = (int64_t)cursor_u64be(&in);
	out->end_ns = (int64_t)cursor_u64be(&in);
	out->identity = cursor_u64be(&in);
	out->first = cursor_u64be(&in);
	out->last = cursor_u64be(&in);
	hash = cursor_u64be(&in);
	if (in.bad || hash != hash_bytes(bytes.ptr, SEGMENT_HEAD_BYTES - 8, 0))
		return err_set(err, ERR_CORRUPT, "segment: its head's checksum is wrong");
	if (bytes.ptr[4] != SEGMENT_VERSION)
		return err_set(err, ERR_UNSUPPORTED, "segment: version %d, not %d",
			(unsigned char)bytes.ptr[4], SEGMENT_VERSION);
	if ((packed != 0 && packed != 1) || out->start_ns < 0 || out->start_ns >= out->end_ns ||
		out->first == 0 || out->last == UINT64_MAX ||
		(packed ? out->last < out->first : out->last != 0))
		return err_set(err, ERR_CORRUPT, "segment: its head makes no sense");
	return ERR_OK;
}

/* ---- frames ---- */

static void segment_frame_begin(struct segment_batch *b)
{
	static const char zeros[FRAME_HEAD_BYTES];

	b->at = b->out->len;
	buf_add(b->out, zeros, sizeof(zeros));
}

static void segment_frame_put_u32be(char *to, uint32_t value)
{
	for (unsigned i = 0; i < 4; i++)
		to[i] = (char)(value >> (24 - 8 * i));
}

static void segment_frame_put_u64be(char *to, uint64_t value)
{
	segment_frame_put_u32be(to, (uint32_t)(value >> 32));
	segment_frame_put_u32be(to + 4, (uint32_t)value);
}

uint32_t segment_frame_crc(const char *frame, size_t bytes)
{
	uint32_t crc = store_crc32c(0, frame, FRAME_CRC_AT);

	return store_crc32c(crc, frame + FRAME_HEAD_BYTES, bytes - FRAME_HEAD_BYTES);
}

static void segment_frame_end(struct segment_batch *b, bool more)
{
	size_t bytes = b->out->len - b->at;
	char *frame = b->out->ptr + b->at;

	if (buf_failed(b->out))
		return;
	segment_frame_put_u32be(frame, (uint32_t)(bytes - FRAME_HEAD_BYTES));
	frame[FRAME_FLAGS_AT] = more ? FRAME_MORE : 0;
	segment_frame_put_u64be(frame + FRAME_FIRST_AT, b->first);
	segment_frame_put_u64be(frame + FRAME_LAST_AT, b->last);
	segment_frame_put_u32be(frame + FRAME_CRC_AT, segment_frame_crc(frame, bytes));
}

void segment_batch_begin(struct segment_batch *b, struct buf *out, uint64_t first, uint64_t last)
{
	assert(first && first <= last);
	*b = (struct segment_batch){ .out = out, .first = first, .last = last };
	segment_frame_begin(b);
}

void segment_batch_add(struct segment_batch *b, struct str key, struct str record)
{
	assert(key.len && key.len <= SEGMENT_KEY_MAX);
	if (record.len > SEGMENT_RECORD_BYTES_MAX) {
		b->out->failed = true;
		return;
	}
	if (b->out->len - b->at > SEGMENT_FRAME_BYTES) {
		segment_frame_end(b, true);
		segment_frame_begin(b);
	}
	buf_add_lenstr(b->out, key);
	buf_add_lenstr(b->out, record);
}

void segment_batch_end(struct segment_batch *b)
{
	segment_frame_end(b, false);
}

bool segment_record_next(struct str *records, struct str *key, struct str *record)
{
	struct cursor in = cursor_of(*records);

	if (!records->len)
		return false;
	*key = cursor_lenstr(&in);
	*record = cursor_lenstr(&in);
	if (in.bad || !key->len || key->len > SEGMENT_KEY_MAX || record->len > SEGMENT_RECORD_BYTES_MAX)
		return false;
	*records = (struct str){ (const char *)in.at, cursor_left(&in) };
	return true;
}
