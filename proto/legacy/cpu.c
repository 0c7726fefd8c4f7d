/*
 * CPU profiles of gperftools: words of 32 or 64 bits, in either byte order.
 *
 *	0, 3, 0, period in microseconds, 0
 *	count, depth, address...            for each stack, leaf first
 *	0, 1, 0                             the end
 *
 * The memory map follows as text. Addresses but the leaf are of returns.
 *
 * If nearly all stacks have the same second frame, it is the signal handler's and is left out; so
 * once more. Which it is must be known before the first stack is kept, so stacks are found first
 * and kept in a second pass over the words.
 */
#include <inttypes.h>

#include "base/array.h"
#include "proto/legacy/reader.h"

#define HEADER_WORDS 5u
#define HANDLER_FRAMES_MAX 2u
#define SIMILAR 32u /* one of so many stacks may lack the handler's frame */

struct words {
	struct str raw;
	unsigned bytes; /* of a word */
	bool high_first;
	uint64_t n;
};

struct cpu {
	struct words words;
	uint64_t *stacks; /* words where they begin: count, depth, addresses */
	uint32_t stacks_n, stacks_cap;
	uint64_t end; /* the word after the end marker */
	uint64_t handler[HANDLER_FRAMES_MAX]; /* addresses that are left out as second frame */
	uint32_t handler_n;
};

static uint64_t legacy_word(const struct words *w, uint64_t i)
{
	const char *p = w->raw.ptr + i * w->bytes;
	uint32_t v32;
	uint64_t v;

	if (w->bytes == 4) {
		memcpy(&v32, p, 4);
		return w->high_first ? __builtin_bswap32(v32) : v32;
	}
	memcpy(&v, p, 8);
	return w->high_first ? __builtin_bswap64(v) : v;
}

/* 0, 3, 0 (1: Java), period, 0 */
static bool legacy_is_header(const struct words *w)
{
	return w->n >= HEADER_WORDS && legacy_word(w, 0) == 0 && legacy_word(w, 1) == 3 &&
		legacy_word(w, 2) <= 1 && legacy_word(w, 3) > 0 && legacy_word(w, 4) == 0;
}

static bool legacy_find_form(struct str raw, struct words *w)
{
	for (unsigned form = 0; form < 4; form++) {
		*w = (struct words){ .raw = raw, .bytes = form & 2 ? 8 : 4, .high_first = form & 1 };
		w->n = raw.len / w->bytes;
		if (legacy_is_header(w))
			return true;
	}
	return false;
}

static enum err_code legacy_cut(struct legacy_reader *r, uint32_t sample)
{
	return err_set(r->err, ERR_INVALID, "%s: sample[%" PRIu32 "] is cut off", r->name, sample);
}

static enum err_code legacy_find_stacks(struct legacy_reader *r, struct cpu *c)
{
	const struct words *w = &c->words;
	uint64_t i = HEADER_WORDS;

	for (;;) {
		uint64_t depth;

		if (i == w->n && w->raw.len % w->bytes == 0)
			return err_set(r->err, ERR_INVALID, "%s: the end marker is missing", r->name);
		if (w->n - i < 2)
			return legacy_cut(r, c->stacks_n);
		depth = legacy_word(w, i + 1);
		if (depth > w->n - i - 2)
			return legacy_cut(r, c->stacks_n);
		if (legacy_word(w, i) == 0 && depth == 1 && legacy_word(w, i + 2) == 0)
			break;
		if (c->stacks_n >= r->limits->samples_max)
			return reader_limit(r, "samples", r->limits->samples_max);
		if (!arena_array_room(r->a, &c->stacks, c->stacks_n, 1, &c->stacks_cap))
			return arena_fail(r->a, "profile", r->err);
		c->stacks[c->stacks_n++] = i;
		i += 2 + depth;
	}
	c->end = i + 3;
	return ERR_OK;
}

/* How many frames after the leaf are the handler's. */
static uint32_t legacy_handler_frames(const struct cpu *c, uint64_t stack)
{
	uint64_t depth = legacy_word(&c->words, stack + 1);
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->handler_n; i++)
		n += depth > n + 1 && legacy_word(&c->words, stack + 3 + n) == c->handler[i];
	return n;
}

/* The second frame of a stack as it is now. False: there is none. */
static bool legacy_second_frame(const struct cpu *c, uint64_t stack, uint64_t *out)
{
	uint32_t skip = legacy_handler_frames(c, stack);

	if (legacy_word(&c->words, stack + 1) <= skip + 1)
		return false;
	*out = legacy_word(&c->words, stack + 3 + skip);
	return true;
}

/* A frame of more than half of the stacks outlives the others' votes; then it is counted. */
static bool legacy_find_handler(const struct cpu *c, uint64_t *out)
{
	uint64_t candidate = 0, address;
	uint32_t votes = 0, n = 0;

	for (uint32_t i = 0; i < c->stacks_n; i++)
		if (legacy_second_frame(c, c->stacks[i], &address)) {
			if (!votes)
				candidate = address;
			votes += address == candidate ? 1 : -1u;
		}
	for (uint32_t i = 0; i < c->stacks_n; i++)
		n += legacy_second_frame(c, c->stacks[i], &address) && address == candidate;
	*out = candidate;
	return n && n >= c->stacks_n - c->stacks_n / SIMILAR;
}

static enum err_code legacy_keep(struct legacy_reader *r, const struct cpu *c, uint64_t stack)
{
	uint64_t count = legacy_word(&c->words, stack), depth = legacy_word(&c->words, stack + 1);
	uint32_t skip = legacy_handler_frames(c, stack);
	int64_t values[2] = { (int64_t)count };
	enum err_code rc;

	if (count > INT64_MAX || __builtin_mul_overflow(values[0], r->p->period, &values[1]))
		return err_set(r->err, ERR_INVALID,
			"%s: sample[%" PRIu32 "]: %" PRIu64 " times the period is more than 64 bits", r->name,
			r->p->samples_n, count);
	sample_begin(r);
	for (uint64_t i = 0; i < depth; i++) {
		if (i > 0 && i <= skip)
			continue;
		if ((rc = sample_address(r, legacy_word(&c->words, stack + 2 + i), i > 0)))
			return rc;
	}
	return sample_end(r, values, 0);
}

static enum err_code legacy_period(struct legacy_reader *r, uint64_t microseconds)
{
	if (microseconds > INT64_MAX / 1000)
		return err_set(r->err, ERR_INVALID, "%s: the period is %" PRIu64 " microseconds", r->name,
			microseconds);
	r->p->period = (int64_t)microseconds * 1000;
	r->p->period_type.type = pprof_builder_string(r->b, STR("cpu"));
	r->p->period_type.unit = pprof_builder_string(r->b, STR("nanoseconds"));
	pprof_builder_type(r->b, STR("samples"), STR("count"));
	pprof_builder_type(r->b, STR("cpu"), STR("nanoseconds"));
	return ERR_OK;
}

enum err_code legacy_cpu(struct legacy_reader *r, struct str raw, bool *is)
{
	struct cpu c = { 0 };
	enum err_code rc;
	size_t end;

	r->name = "CPU profile of gperftools";
	if (!(*is = legacy_find_form(raw, &c.words)))
		return ERR_OK;
	if (legacy_word(&c.words, 2))
		return err_set(r->err, ERR_UNSUPPORTED, "a CPU profile of Java (binary) is not supported");
	if ((rc = legacy_period(r, legacy_word(&c.words, 3))) || (rc = legacy_find_stacks(r, &c)))
		return rc;
	while (c.handler_n < HANDLER_FRAMES_MAX && legacy_find_handler(&c, &c.handler[c.handler_n]))
		c.handler_n++;
	for (uint32_t i = 0; i < c.stacks_n; i++)
		if ((rc = legacy_keep(r, &c, c.stacks[i])))
			return rc;
	end = (size_t)c.end * c.words.bytes;
	r->rest = (struct str){ raw.ptr + end, raw.len - end };
	if ((rc = reader_maps(r)))
		return rc;
	reader_drop_repeated_leaves(r);
	return ERR_OK;
}
