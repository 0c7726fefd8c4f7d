/*
 * The decoder's quick ways against its careful ones. Each profile is written twice: as writers do,
 * and with tags of two bytes and ids packed singly, which no quick way takes. Both are decoded to
 * the same profile, or refused with the same words.
 */
#include "proto/pprof.h"
#include "tests/check.h"
#include "tests/draw.h"

#define FIELDS_MAX 8
#define TYPES_N 3
#define ONE_OF 60 /* that are wild, if any are */

enum kind { NONE, SAMPLE, LOCATION, FUNCTION, LINE, IDS, VALUES, LABEL, KINDS_N };
static const unsigned field_of_kind[KINDS_N] = { 0, 2, 4, 5, 4, 1, 2, 3 };

struct writer {
	struct draw d;
	struct buf *out;
	bool long_tags, padded; /* varints longer than need be, now and then */
	enum kind wild; /* its numbers are out of range or cut at times */
	uint32_t strings_n, functions_n, locations_n;
};

struct field {
	unsigned number;
	uint64_t v;
};

static void put_tag(struct writer *w, struct buf *out, unsigned number, unsigned type)
{
	unsigned char tag = (unsigned char)(number << 3 | type);

	buf_add_char(out, (char)(w->long_tags ? tag | 0x80 : tag));
	if (w->long_tags)
		buf_add_char(out, 0);
}

static void let_go_on(struct buf *varint)
{
	varint->ptr[varint->len - 1] = (char)(varint->ptr[varint->len - 1] | (char)0x80);
}

static void put_message(struct writer *w, struct buf *out, enum kind kind, struct buf *message)
{
	if (w->wild == kind && message->len && !draw(&w->d, ONE_OF))
		let_go_on(message); /* its last varint has no end */
	put_tag(w, out, field_of_kind[kind], 2);
	buf_add_lenstr(out, buf_str(message));
}

static void put_varint(struct writer *w, struct buf *out, uint64_t v)
{
	buf_add_varint(out, v);
	if (w->padded && v < UINT64_C(1) << 49 && !draw(&w->d, 40)) {
		let_go_on(out);
		buf_add(out, "\x80\x00", 2);
	}
}

/* Of 1, 2, 3 ... 10 bytes. */
static uint64_t draw_number(struct writer *w)
{
	uint64_t v = (uint64_t)draw(&w->d, UINT32_MAX) << 33 ^ (uint64_t)draw(&w->d, UINT32_MAX) << 5 ^
		draw(&w->d, 32);

	return v >> draw(&w->d, 64);
}

static uint64_t draw_index(struct writer *w, enum kind kind, uint64_t first, uint32_t n)
{
	if (w->wild == kind && !draw(&w->d, ONE_OF))
		return draw(&w->d, 2) ? first + n : draw(&w->d, 2) ? first - 1 : draw_number(w);
	return first + (n ? draw(&w->d, n) : 0);
}

/* In order, or with one left out, twice, or at another place. */
static void put_numbers(struct writer *w, struct buf *out, const struct field *f, unsigned n)
{
	unsigned odd = draw(&w->d, 20), at = draw(&w->d, n), other = draw(&w->d, n);
	struct field list[FIELDS_MAX];

	memcpy(list, f, n * sizeof(*f));
	if (odd == 0 && list[at].number != 1)
		list[at] = list[--n];
	else if (odd == 1)
		list[n++] = f[at];
	else if (odd == 2) {
		list[at] = f[other];
		list[other] = f[at];
	}
	for (unsigned i = 0; i < n; i++) {
		put_tag(w, out, list[i].number, 0);
		put_varint(w, out, list[i].v);
	}
}

static void put_function(struct writer *w, uint32_t i)
{
	struct buf m = { 0 };
	struct field f[] = { { 1, i + 1 }, { 2, draw_index(w, FUNCTION, 0, w->strings_n) },
		{ 3, draw_index(w, FUNCTION, 0, w->strings_n) },
		{ 4, draw_index(w, FUNCTION, 0, w->strings_n) },
		{ 5, draw(&w->d, 4) ? draw(&w->d, 3000) : draw_number(w) } };

	put_numbers(w, &m, f, 4 + draw(&w->d, 2));
	put_message(w, w->out, FUNCTION, &m);
	buf_release(&m);
}

static void put_line(struct writer *w, struct buf *out)
{
	struct buf m = { 0 };
	struct field f[] = { { 1, draw_index(w, LINE, 1, w->functions_n) },
		{ 2, draw(&w->d, 4) ? draw(&w->d, 3000) : draw_number(w) }, { 3, draw(&w->d, 200) } };

	put_numbers(w, &m, f, 2 + draw(&w->d, 2));
	put_message(w, out, LINE, &m);
	buf_release(&m);
}

/* The mapping before the address, or behind the lines as Go's runtime writes it. */
static void put_location(struct writer *w, uint32_t i)
{
	bool go = draw(&w->d, 2);
	uint32_t lines = draw(&w->d, 4);
	struct field f[] = { { 1, i + 1 }, { 2, draw(&w->d, 30) ? draw(&w->d, 3) : draw_number(w) },
		{ 3, draw_number(w) } };
	struct field folded = { 5, draw(&w->d, 2) };
	struct buf m = { 0 };

	if (go)
		f[1] = f[2];
	put_numbers(w, &m, f, go ? 2 : 3);
	while (lines--)
		put_line(w, &m);
	if (go)
		put_numbers(
			w, &m, &(struct field){ 2, draw(&w->d, 30) ? draw(&w->d, 3) : draw_number(w) }, 1);
	if (!draw(&w->d, 3))
		put_numbers(w, &m, &folded, 1);
	put_message(w, w->out, LOCATION, &m);
	buf_release(&m);
}

static void put_label(struct writer *w, struct buf *out)
{
	bool text = draw(&w->d, 2);
	struct field f[] = { { 1, draw_index(w, LABEL, 0, w->strings_n) },
		{ text ? 2 : 3, text ? draw_index(w, LABEL, 0, w->strings_n) : draw_number(w) },
		{ 4, draw_index(w, LABEL, 0, w->strings_n) } };
	struct buf m = { 0 };

	put_numbers(w, &m, f, 2 + draw(&w->d, 2));
	put_message(w, out, LABEL, &m);
	buf_release(&m);
}

/* Packed or each by itself. The careful form packs single ids, which no quick way takes. */
static void put_ids(struct writer *w, struct buf *out)
{
	uint32_t n = draw(&w->d, 3) ? draw(&w->d, 40) : 0, few = draw(&w->d, 2) ? 99 : UINT32_MAX;
	uint32_t max = w->locations_n < few ? w->locations_n : few;
	bool packed = draw(&w->d, 4);
	struct buf ids = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		uint64_t id = draw_index(w, IDS, 1, draw(&w->d, 9) ? max : w->locations_n);

		if (!packed)
			put_tag(w, out, field_of_kind[IDS], 0);
		put_varint(w, packed ? &ids : out, id);
		if (!packed || (!w->long_tags && i + 1 < n))
			continue;
		if (i + 1 == n)
			put_message(w, out, IDS, &ids);
		else {
			put_tag(w, out, field_of_kind[IDS], 2);
			buf_add_lenstr(out, buf_str(&ids));
		}
		ids.len = 0;
	}
	buf_release(&ids);
}

static void put_sample(struct writer *w)
{
	uint32_t labels = draw(&w->d, 4);
	struct buf m = { 0 }, values = { 0 };

	put_ids(w, &m);
	for (int i = 0; i < TYPES_N; i++) {
		bool packed = !w->long_tags || w->wild == VALUES;

		if (!packed)
			put_tag(w, &m, field_of_kind[VALUES], 0);
		put_varint(w, packed ? &values : &m, draw_number(w));
	}
	if (values.len)
		put_message(w, &m, VALUES, &values);
	while (labels--)
		put_label(w, &m);
	put_message(w, w->out, SAMPLE, &m);
	buf_release(&m);
	buf_release(&values);
}

static void put_strings(struct writer *w)
{
	char text[200];

	memset(text, 'x', sizeof(text));
	for (uint32_t i = 0; i < w->strings_n; i++) {
		uint32_t len = !i ? 0 : draw(&w->d, 8) ? draw(&w->d, 40) : draw(&w->d, sizeof(text));

		put_tag(w, w->out, 6, 2);
		buf_add_lenstr(w->out, (struct str){ text, len });
	}
}

/* What follows the messages is short at times, then quick ways would read beyond the body. */
static void write_profile(uint64_t seed, bool long_tags, struct buf *out)
{
	struct writer w = { .d = { seed }, .out = out, .long_tags = long_tags };
	uint32_t i, order = draw(&w.d, 3), samples = draw(&w.d, 30);

	w.wild = draw(&w.d, 2) ? NONE : draw(&w.d, KINDS_N);
	w.padded = draw(&w.d, 2);
	w.strings_n = 1 + (draw(&w.d, 4) ? draw(&w.d, 300) : draw(&w.d, 17000));
	w.functions_n = draw(&w.d, 200);
	w.locations_n = 1 + draw(&w.d, 400);
	for (i = 0; i < TYPES_N; i++) {
		put_tag(&w, out, 1, 2);
		buf_add_char(out, 0);
	}
	put_tag(&w, out, 3, 2);
	buf_add(out, "\x02\x08\x01", 3);
	if (order == 0)
		put_strings(&w);
	for (i = 0; i < w.functions_n; i++)
		put_function(&w, i);
	for (i = 0; i < samples && order == 1; i++)
		put_sample(&w);
	for (i = 0; i < w.locations_n; i++)
		put_location(&w, i);
	for (i = 0; i < samples && order != 1; i++)
		put_sample(&w);
	if (order != 0)
		put_strings(&w);
}

static enum err_code decode(
	struct arena *a, const struct buf *raw, struct buf *out, struct err *err)
{
	char *copy = malloc(raw->len); /* exactly: a read beyond is found */
	struct pprof *p;
	enum err_code rc;

	arena_reset(a);
	memcpy(copy, raw->ptr, raw->len);
	err->msg[0] = '\0';
	rc = pprof_decode(a, (struct str){ copy, raw->len }, &pprof_limits_default, &p, err);
	out->len = 0;
	if (!rc)
		CHECK_OK(pprof_encode(p, out, err), err);
	free(copy);
	return rc;
}

TEST(quick_and_careful)
{
	struct buf raw = { 0 }, careful = { 0 }, x = { 0 }, y = { 0 };
	uint32_t taken = 0, refused = 0;
	struct err err, want;
	enum err_code rc;
	struct arena a;

	arena_init(&a, 0);
	for (uint64_t seed = 1; seed <= 3000; seed += CHECK_STEP) {
		raw.len = careful.len = 0;
		write_profile(seed, false, &raw);
		write_profile(seed, true, &careful);
		rc = decode(&a, &careful, &x, &want);
		taken += !rc;
		refused += rc != ERR_OK;
		CHECK_INT(decode(&a, &raw, &y, &err), rc);
		if (!str_is(str_of(err.msg), want.msg))
			CHECK_FAIL("seed %" PRIu64 ": \"%s\", want \"%s\"", seed, err.msg, want.msg);
		if (!str_eq(buf_str(&x), buf_str(&y)))
			CHECK_FAIL("seed %" PRIu64 ": another profile", seed);
	}
	CHECK(taken > 1000 / CHECK_STEP && refused > 500 / CHECK_STEP);
	buf_release(&raw);
	buf_release(&careful);
	buf_release(&x);
	buf_release(&y);
	arena_release(&a);
}
