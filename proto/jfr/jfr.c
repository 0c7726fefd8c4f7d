/*
 * The file: chunks one after the other, each complete in itself. A header of 68 bytes, big-endian:
 *
 *	0   "FLR\0"
 *	4   version: two u16
 *	8   u64 size; of an unfinished chunk 0
 *	16  u64 place of the last checkpoint, 24 of the metadata
 *	32  u64 start and 40 duration, in nanoseconds
 *	48  u64 start in ticks, 56 ticks of a second
 *	64  state and flags; bit 0: integers are compressed
 */
#include <assert.h>
#include <sys/random.h>

#include "proto/jfr/decoder.h"

#define HEADER_BYTES 68
#define MAGIC STR("FLR\0")

const struct jfr_limits jfr_limits_default = {
	.raw_bytes_max = 128u << 20,
	.chunks_max = 1024,
	.events_max = 16u << 20,
	.elements_max = 4u << 20,
	.samples_max = 1u << 20,
	.frames_max = 16u << 20,
	.stack_depth_max = PPROF_STACK_DEPTH_MAX,
	.string_bytes_max = 64u << 10,
	.text_bytes_max = 256u << 20,
	.labels_max = 128,
	.arena_bytes_max = 1u << 30,
};

bool jfr_recognized(struct str raw)
{
	return str_has_prefix(raw, MAGIC);
}

static enum err_code jfr_header_fail(struct jfr_chunk *c, const char *why)
{
	return err_set(c->d->err, ERR_INVALID, "chunk %u at byte %u: %s", c->number, c->at, why);
}

/* The rest of the body is the beginning of a chunk: the recording ended, or its copy, too early. */
static enum err_code jfr_cut(struct jfr_chunk *c, const char *why)
{
	c->is_cut = true;
	return jfr_header_fail(c, why);
}

static bool jfr_begins_chunk(struct str bytes)
{
	struct str magic = MAGIC;

	if (magic.len > bytes.len)
		magic.len = bytes.len;
	return str_has_prefix(bytes, magic);
}

static enum err_code jfr_read_header(struct jfr_chunk *c)
{
	uint32_t left = (uint32_t)c->d->raw.len - c->at;
	struct cursor r = jfr_cursor(c->d, c->at, (uint32_t)c->d->raw.len);
	uint64_t size, checkpoint, metadata;
	uint32_t version, flags;

	if (left < HEADER_BYTES && jfr_begins_chunk((struct str){ c->d->raw.ptr + c->at, left }))
		return jfr_cut(c, "its header is cut off");
	if (left < HEADER_BYTES || !str_eq(cursor_bytes(&r, 4), MAGIC))
		return jfr_header_fail(c, "does not begin with FLR");
	version = cursor_u32be(&r);
	size = cursor_u64be(&r);
	checkpoint = cursor_u64be(&r);
	metadata = cursor_u64be(&r);
	c->start_ns = cursor_u64be(&r);
	c->duration_ns = cursor_u64be(&r);
	cursor_u64be(&r);
	c->ticks_per_s = cursor_u64be(&r);
	flags = cursor_u32be(&r);
	if (version >> 16 != 1 && version >> 16 != 2)
		return err_set(c->d->err, ERR_UNSUPPORTED,
			"chunk %u at byte %u: version %u.%u of Java Flight Recorder, 2 is known", c->number,
			c->at, version >> 16, version & 0xffff);
	if (!(flags & 1))
		return err_set(c->d->err, ERR_UNSUPPORTED,
			"chunk %u at byte %u: its integers are not compressed", c->number, c->at);
	if (!size)
		return jfr_cut(c, "is not finished");
	if (size > left)
		return jfr_cut(c, "is cut off");
	if (size <= HEADER_BYTES || metadata < HEADER_BYTES || metadata >= size ||
		(checkpoint && checkpoint < HEADER_BYTES) || checkpoint >= size)
		return jfr_header_fail(c, "has places in its header that are not in it");
	if (c->start_ns > INT64_MAX || c->duration_ns > INT64_MAX - c->start_ns)
		return jfr_header_fail(c, "has no sensible time");
	if (!c->ticks_per_s)
		return jfr_header_fail(c, "has 0 ticks in a second");
	c->end = c->at + (uint32_t)size;
	c->body = c->at + HEADER_BYTES;
	c->checkpoint_at = c->at + (uint32_t)checkpoint;
	c->metadata_at = c->at + (uint32_t)metadata;
	return ERR_OK;
}

/* *cut: what is left is not a whole chunk, and nothing of it was read. */
static enum err_code jfr_read_chunk(struct jfr_decoder *d, uint32_t *at, bool *cut)
{
	struct jfr_chunk c = { .d = d, .number = ++d->file.chunks_n, .at = *at };
	enum err_code rc;

	if (c.number > d->limits->chunks_max)
		return err_set(
			d->err, ERR_LIMIT, "recording of more than %u chunks", d->limits->chunks_max);
	arena_reset(&d->chunk_arena);
	rc = jfr_read_header(&c);
	*cut = c.is_cut;
	if (rc || (rc = jfr_metadata(&c)) || (rc = jfr_roles(&c)))
		return rc;
	if (c.number == 1 || (int64_t)c.start_ns < d->start_ns)
		d->start_ns = (int64_t)c.start_ns;
	if ((int64_t)(c.start_ns + c.duration_ns) > d->end_ns)
		d->end_ns = (int64_t)(c.start_ns + c.duration_ns);
	*at = c.end;
	return jfr_events(&c);
}

static enum err_code jfr_decode_chunks(struct jfr_decoder *d, struct jfr_file *file)
{
	uint32_t at = 0, empty;
	enum err_code rc;
	bool cut = false;

	if (d->raw.len > d->limits->raw_bytes_max)
		return err_set(d->err, ERR_LIMIT, "recording is %zu bytes, limit %zu", d->raw.len,
			d->limits->raw_bytes_max);
	if ((rc = jfr_name(d, STR(""), &empty)) || (rc = jfr_labels_open(d)))
		return rc;
	do {
		rc = jfr_read_chunk(d, &at, &cut);
		if (rc && !(cut && at))
			return rc;
		if (rc) {
			d->file.chunks_n--;
			d->file.cut_bytes = d->raw.len - at;
		}
	} while (!rc && at < d->raw.len);
	if ((rc = jfr_events_finish(d)))
		return rc;
	return jfr_rows_finish(d, file);
}

static void jfr_init_arena(struct arena *a, const struct arena *of, size_t bytes_max)
{
	if (of->shared)
		arena_init_shared(a, of->shared);
	else
		arena_init(a, bytes_max);
}

enum err_code jfr_decode(struct arena *a, struct str raw, const struct jfr_options *options,
	struct jfr_file **out, struct err *err)
{
	struct jfr_decoder d = { .a = a,
		.limits = options->limits,
		.options = options,
		.raw = raw.len ? raw : STR(""), .err = err, .unknown_stack = JFR_NONE };
	struct map *maps[] = { &d.names_map, &d.functions_map, &d.frames_map, &d.stacks_map,
		&d.rows_map, &d.label_sets_map };
	struct jfr_file *file = arena_new(a, struct jfr_file);
	enum err_code rc;

	assert(options->sample_rate_hz && options->sample_rate_hz <= 1000000000);
	assert(options->limits->raw_bytes_max <= UINT32_MAX && options->limits->frames_max < 1u << 29);
	if (!file)
		return arena_fail(a, "recording", err);
	if (getrandom(&d.seed, sizeof(d.seed), GRND_NONBLOCK) != (ssize_t)sizeof(d.seed))
		d.seed = map_hash_u64((uint64_t)(uintptr_t)file); /* early in boot: use the address */
	jfr_init_arena(&d.work, a, options->limits->arena_bytes_max);
	jfr_init_arena(&d.chunk_arena, a, options->limits->arena_bytes_max);
	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++)
		map_init(maps[i]);
	rc = jfr_decode_chunks(&d, file);
	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++)
		map_release(maps[i]);
	arena_release(&d.work);
	arena_release(&d.chunk_arena);
	buf_release(&d.scratch);
	if (!rc)
		*out = file;
	return rc;
}
