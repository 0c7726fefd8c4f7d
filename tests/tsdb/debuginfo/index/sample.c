#include "tests/tsdb/debuginfo/index/sample.h"

#include <stdio.h>

uint32_t sample_draw(struct sample *s, uint32_t below)
{
	s->state = s->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(s->state >> 33) % below;
}

static bool has_range(const struct sample *s, const struct sample_segment *g)
{
	for (uint32_t i = 0; i < s->segments; i++)
		if (s->segment[i].start == g->start && s->segment[i].end == g->end &&
			s->segment[i].quality == g->quality)
			return true;
	return false;
}

void sample_init(struct sample *s, uint64_t seed, uint32_t span, uint32_t segments, bool ties)
{
	static const uint64_t bases[] = { 0, 0x400000, UINT64_C(0xffffffff81000000) };

	*s = (struct sample){ .state = seed, .span = span };
	s->base = bases[seed % 3];
	for (uint32_t i = 0; i < SAMPLE_FRAMES; i++) {
		struct sample_frame *f = &s->frame[i];

		f->parent = i && sample_draw(s, 3) ? sample_draw(s, i) : SYMINDEX_NONE;
		f->depth = f->parent == SYMINDEX_NONE ? 1 : s->frame[f->parent].depth + 1;
		f->function = sample_draw(s, SAMPLE_FUNCTIONS);
		f->line = sample_draw(s, 10) ? sample_draw(s, 200) : sample_draw(s, UINT32_MAX);
	}
	for (uint32_t i = 0; i < segments; i++) {
		struct sample_segment g;
		uint32_t length = sample_draw(s, sample_draw(s, 8) ? 30 : span);

		g.start = s->base + sample_draw(s, span);
		g.end = g.start + length > s->base + span ? s->base + span : g.start + length;
		g.frame = sample_draw(s, SAMPLE_FRAMES);
		g.quality = SYMINDEX_SYMBOLS + sample_draw(s, 3);
		if (ties || !has_range(s, &g))
			s->segment[s->segments++] = g;
	}
}

/* A permutation of [0, n) for each order. */
static uint32_t permuted(uint64_t order, uint32_t i, uint32_t n)
{
	return order % 2 ? n - 1 - i : (uint32_t)((i + order) % n);
}

static void name_of(uint32_t function, char *text, size_t n)
{
	snprintf(text, n, function % 4 ? "_ZN2ns7Class%02u4nameEi" : "c_name_%u",
		10 + function / (function % 2 + 1));
}

static void file_of(uint32_t function, char *text, size_t n)
{
	snprintf(text, n, function % 5 ? "/src/%u.cc" : "", function % 7);
}

static enum err_code add_functions(struct symindex_builder *b, uint64_t order, uint32_t *files,
	uint32_t *functions, struct err *err)
{
	enum err_code rc;
	char text[64];

	for (uint32_t i = 0; i < SAMPLE_FUNCTIONS; i++) {
		uint32_t f = permuted(order, i, SAMPLE_FUNCTIONS);

		file_of(f, text, sizeof(text));
		files[f] = SYMINDEX_NONE;
		if (text[0] && (rc = symindex_file(b, str_of(text), &files[f], err)))
			return rc;
		name_of(f, text, sizeof(text));
		if ((rc = symindex_function(b, str_of(text), files[f], f * 3, &functions[f], err)))
			return rc;
	}
	return ERR_OK;
}

enum err_code sample_index(const struct sample *s, uint64_t order, struct buf *out, struct err *err)
{
	return sample_index_over(s, order, NULL, out, err);
}

enum err_code sample_index_over(const struct sample *s, uint64_t order,
	const struct symindex *older, struct buf *out, struct err *err)
{
	uint32_t files[SAMPLE_FUNCTIONS], functions[SAMPLE_FUNCTIONS], frames[SAMPLE_FRAMES];
	struct symindex_builder *b;
	enum err_code rc;

	if ((rc = symindex_builder_open(&symindex_limits_default, &b, err)))
		return rc;
	if ((rc = add_functions(b, order, files, functions, err)))
		goto out;
	/* Parents first: the least depth first, and in each in another order. */
	for (uint32_t depth = 1, left = SAMPLE_FRAMES; left; depth++)
		for (uint32_t i = 0; i < SAMPLE_FRAMES; i++) {
			uint32_t n = permuted(order, i, SAMPLE_FRAMES);
			const struct sample_frame *f = &s->frame[n];

			if (f->depth != depth)
				continue;
			left--;
			if ((rc = symindex_frame(b,
					 f->parent == SYMINDEX_NONE ? SYMINDEX_NONE : frames[f->parent],
					 functions[f->function], files[f->function], f->line, &frames[n], err)))
				goto out;
		}
	for (uint32_t i = 0; i < s->segments; i++) {
		const struct sample_segment *g = &s->segment[permuted(order, i, s->segments)];

		if ((rc = symindex_add(b, g->start, g->end, frames[g->frame], g->quality, err)))
			goto out;
	}
	for (uint32_t i = 0; i < SAMPLE_LOADS; i++) {
		uint32_t n = permuted(order, i, SAMPLE_LOADS);
		struct symindex_load l = {
			.offset = n << 12, .bytes = 4096, .address = s->base + (n << 16), .executable = n == 1
		};

		if ((rc = symindex_load(b, &l, err)))
			goto out;
	}
	if (older && (rc = symindex_add_index(b, older, err)))
		goto out;
	rc = symindex_finish(b, STR("\xab\xcd"), out, err);
out:
	symindex_builder_close(b);
	return rc;
}

static bool counts_more(
	const struct sample *s, const struct sample_segment *a, const struct sample_segment *b)
{
	if (a->quality != b->quality)
		return a->quality > b->quality;
	if (a->end - a->start != b->end - b->start)
		return a->end - a->start < b->end - b->start;
	return a->start > b->start;
}

static const struct sample_segment *best_at(const struct sample *s, uint64_t address)
{
	const struct sample_segment *best = NULL;

	for (uint32_t i = 0; i < s->segments; i++) {
		const struct sample_segment *g = &s->segment[i];

		if (g->start <= address && address < g->end && (!best || counts_more(s, g, best)))
			best = g;
	}
	return best;
}

enum symindex_quality sample_quality(const struct sample *s, uint64_t address)
{
	const struct sample_segment *best = best_at(s, address);

	return best ? best->quality : 0;
}

void sample_expect(const struct sample *s, uint64_t address, struct buf *text)
{
	const struct sample_segment *best = best_at(s, address);
	const struct sample_frame *f;
	char name[64], file[64];

	if (!best)
		return;
	for (uint32_t n = best->frame; n != SYMINDEX_NONE; n = f->parent) {
		f = &s->frame[n];
		name_of(f->function, name, sizeof(name));
		file_of(f->function, file, sizeof(file));
		if (name[0] == '_') /* as base/demangle shows it */
			buf_printf(text, "ns::Class%.2s::name=", name + 12);
		buf_printf(text, "%s %s:%u %u; ", name, file, f->line, f->function * 3);
	}
}

void sample_found(const struct symindex *x, uint64_t address, struct buf *text)
{
	static _Thread_local struct symindex_location v[SAMPLE_FRAMES];
	size_t n = symindex_find(x, address, v, SAMPLE_FRAMES);

	for (size_t i = 0; i < n; i++) {
		if (!str_eq(v[i].name, v[i].raw))
			buf_printf(text, STR_FMT "=", STR_ARG(v[i].name));
		buf_printf(text, STR_FMT " " STR_FMT ":%u %u; ", STR_ARG(v[i].raw), STR_ARG(v[i].file),
			v[i].line, v[i].start_line);
	}
}
