#include "base/str.h"

#include <inttypes.h>

#include <strings.h>

#include <stdio.h>
#include <stdlib.h>

int str_cmp(struct str a, struct str b)
{
	size_t n = a.len < b.len ? a.len : b.len;
	int c = n ? memcmp(a.ptr, b.ptr, n) : 0;

	return c ? c : (a.len > b.len) - (a.len < b.len);
}

bool str_has_prefix_nocase(struct str s, struct str prefix)
{
	return s.len >= prefix.len && (!prefix.len || !strncasecmp(s.ptr, prefix.ptr, prefix.len));
}

bool str_eq_nocase(struct str a, struct str b)
{
	return a.len == b.len && str_has_prefix_nocase(a, b);
}

bool str_has_prefix(struct str s, struct str prefix)
{
	return s.len >= prefix.len && str_eq((struct str){ s.ptr, prefix.len }, prefix);
}

bool str_has_suffix(struct str s, struct str suffix)
{
	return s.len >= suffix.len &&
		str_eq((struct str){ s.ptr + (s.len - suffix.len), suffix.len }, suffix);
}

struct str str_base_name(struct str path)
{
	const char *slash = path.len ? memrchr(path.ptr, '/', path.len) : NULL;
	size_t at = slash ? (size_t)(slash - path.ptr) + 1 : 0;

	return (struct str){ path.ptr + at, path.len - at };
}

static bool str_is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

struct str str_trim(struct str s)
{
	while (s.len && str_is_space(s.ptr[0]))
		s.ptr++, s.len--;
	while (s.len && str_is_space(s.ptr[s.len - 1]))
		s.len--;
	return s;
}

struct str str_without_bom(struct str s)
{
	const struct str bom = STR("\xef\xbb\xbf");

	return str_has_prefix(s, bom) ? (struct str){ s.ptr + bom.len, s.len - bom.len } : s;
}

ptrdiff_t str_find(struct str s, struct str what)
{
	const char *p = what.len && s.len ? memmem(s.ptr, s.len, what.ptr, what.len) : NULL;

	if (what.len == 0)
		return 0;
	return p ? p - s.ptr : -1;
}

struct str str_dup(struct arena *a, struct str s)
{
	const char *copy = arena_strndup(a, s.ptr, s.len);

	return (struct str){ copy, copy ? s.len : 0 };
}

/* Length of the well-formed sequence at bytes, or 0. RFC 3629 has the bounds per first byte. */
static size_t str_utf8_sequence(const unsigned char *bytes, size_t n)
{
	unsigned lo = 0x80, hi = 0xbf;
	size_t len, i;

	if (bytes[0] < 0x80)
		return 1;
	if (bytes[0] >= 0xc2 && bytes[0] <= 0xdf)
		len = 2;
	else if (bytes[0] >= 0xe0 && bytes[0] <= 0xef)
		len = 3;
	else if (bytes[0] >= 0xf0 && bytes[0] <= 0xf4)
		len = 4;
	else
		return 0;
	if (n < len)
		return 0;
	if (bytes[0] == 0xe0)
		lo = 0xa0;
	else if (bytes[0] == 0xed)
		hi = 0x9f;
	else if (bytes[0] == 0xf0)
		lo = 0x90;
	else if (bytes[0] == 0xf4)
		hi = 0x8f;
	if (bytes[1] < lo || bytes[1] > hi)
		return 0;
	for (i = 2; i < len; i++)
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

bool str_is_utf8(struct str s)
{
	const unsigned char *p = (const unsigned char *)s.ptr;
	size_t i = 0, step;

	for (; i < s.len; i += step)
		if (!(step = str_utf8_sequence(p + i, s.len - i)))
			return false;
	return true;
}

/* ---- the nearest name ---- */

#define NEAREST_BYTES_MAX 80u /* longer names are not compared */

static inline char str_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static unsigned str_least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Rows of the usual table: the distances of the first bytes of a to all beginnings of b. */
static unsigned str_distance(struct str a, struct str b)
{
	unsigned rows[3][NEAREST_BYTES_MAX + 1];
	unsigned *before = rows[0], *last = rows[1], *now = rows[2], *oldest;

	for (unsigned j = 0; j <= b.len; j++)
		last[j] = j;
	for (unsigned i = 1; i <= a.len; i++) {
		now[0] = i;
		for (unsigned j = 1; j <= b.len; j++) {
			char x = str_lower(a.ptr[i - 1]), y = str_lower(b.ptr[j - 1]);

			now[j] = str_least(last[j - 1] + (x != y), str_least(last[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && x == str_lower(b.ptr[j - 2]) && y == str_lower(a.ptr[i - 2]))
				now[j] = str_least(now[j], before[j - 2] + 1);
		}
		oldest = before;
		before = last;
		last = now;
		now = oldest;
	}
	return last[b.len];
}

struct nearest nearest_to(struct str wanted)
{
	unsigned most = wanted.len < 3 ? 1 : (unsigned)(wanted.len / 3);

	return (struct nearest){ wanted, { 0 }, most + 1 };
}

void nearest_try(struct nearest *n, struct str name)
{
	size_t longer = n->wanted.len > name.len ? n->wanted.len - name.len : name.len - n->wanted.len;
	unsigned d;

	if (n->wanted.len > NEAREST_BYTES_MAX || name.len > NEAREST_BYTES_MAX || !name.len ||
		longer >= n->distance)
		return;
	d = str_distance(n->wanted, name);
	/* Nothing of the name may be left to see: "up" is not "cd". */
	if (d >= n->distance || d >= name.len)
		return;
	n->distance = d;
	n->name = name;
}

struct str str_ending_digits(struct str s)
{
	size_t from = s.len;

	while (from && s.ptr[from - 1] >= '0' && s.ptr[from - 1] <= '9')
		from--;
	return (struct str){ s.ptr + from, s.len - from };
}

bool str_to_u64(struct str s, uint64_t *out)
{
	uint64_t v = 0;
	size_t i;

	if (!s.len)
		return false;
	for (i = 0; i < s.len; i++) {
		unsigned d = (unsigned char)s.ptr[i] - (unsigned)'0';

		if (d > 9 || __builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, d, &v))
			return false;
	}
	*out = v;
	return true;
}

bool str_to_i64(struct str s, int64_t *out)
{
	bool negative = s.len && s.ptr[0] == '-';
	uint64_t v;

	if (negative)
		s.ptr++, s.len--;
	if (!str_to_u64(s, &v) || v > (uint64_t)INT64_MAX + negative)
		return false;
	*out = negative ? (int64_t)(0 - v) : (int64_t)v;
	return true;
}

void buf_release(struct buf *b)
{
	free(b->ptr);
	*b = (struct buf){ 0 };
}

void buf_clear(struct buf *b)
{
	b->len = 0;
}

static _Thread_local uint64_t failures;

uint64_t buf_failures(void)
{
	return failures;
}

static void str_fail(struct buf *b)
{
	b->failed = true;
	failures++;
}

bool buf_reserve(struct buf *b, size_t more)
{
	size_t need, cap;
	char *p;

	if (b->failed)
		return false;
	if (b->cap - b->len >= more)
		return true;
	if (__builtin_add_overflow(b->len, more, &need) || need > PTRDIFF_MAX / 2) {
		str_fail(b);
		return false;
	}
	cap = b->cap ? b->cap : 128;
	while (cap < need)
		cap += cap / 2 + 64;
	p = realloc(b->ptr, cap);
	if (!p) {
		str_fail(b);
		return false;
	}
	b->ptr = p;
	b->cap = cap;
	return true;
}

void buf_add(struct buf *b, const void *bytes, size_t n)
{
	if (!n || !buf_reserve(b, n))
		return;
	memcpy(b->ptr + b->len, bytes, n);
	b->len += n;
}

void buf_add_str(struct buf *b, struct str s)
{
	buf_add(b, s.ptr, s.len);
}

void buf_add_cstr(struct buf *b, const char *text)
{
	buf_add(b, text, strlen(text));
}

void buf_add_char(struct buf *b, char c)
{
	if (buf_reserve(b, 1))
		b->ptr[b->len++] = c;
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || !buf_reserve(b, (size_t)n + 1)) {
		str_fail(b);
		return;
	}
	va_start(ap, fmt);
	vsnprintf(b->ptr + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

#define DECIMAL_MAX 20u /* digits, or a minus sign and 19 */

static size_t str_digits_n(uint64_t value)
{
	static const uint64_t powers[] = { 0, 10, 100, 1000, 10000, 100000, 1000000, 10000000,
		100000000, 1000000000, 10000000000, 100000000000, 1000000000000, 10000000000000,
		100000000000000, 1000000000000000, 10000000000000000, 100000000000000000,
		1000000000000000000, UINT64_C(10000000000000000000) };
	/* The logarithm: bits * log10(2), at most one too many. */
	unsigned n = (64u - (unsigned)__builtin_clzll(value | 1)) * 1233 >> 12;

	return n + (value >= powers[n]);
}

/* Returns the end. There is room for DECIMAL_MAX. */
static char *str_put_u64(char *to, uint64_t value)
{
	static const char pairs[] = "0001020304050607080910111213141516171819"
								"2021222324252627282930313233343536373839"
								"4041424344454647484950515253545556575859"
								"6061626364656667686970717273747576777879"
								"8081828384858687888990919293949596979899";
	char *end = to + str_digits_n(value), *at = end;

	for (; value >= 100; value /= 100)
		memcpy(at -= 2, pairs + value % 100 * 2, 2);
	if (value >= 10)
		memcpy(to, pairs + value * 2, 2);
	else
		*to = (char)('0' + value);
	return end;
}

static char *str_put_i64(char *to, int64_t value)
{
	*to = '-';
	return value < 0 ? str_put_u64(to + 1, 0 - (uint64_t)value) : str_put_u64(to, (uint64_t)value);
}

void buf_add_u64(struct buf *b, uint64_t value)
{
	if (buf_reserve(b, DECIMAL_MAX))
		b->len = (size_t)(str_put_u64(b->ptr + b->len, value) - b->ptr);
}

void buf_add_i64(struct buf *b, int64_t value)
{
	buf_add_i64s(b, &value, 1);
}

void buf_add_i64s(struct buf *b, const int64_t *values, size_t n)
{
	char *at;

	if (!n || !buf_reserve(b, n * (DECIMAL_MAX + 1)))
		return;
	at = str_put_i64(b->ptr + b->len, values[0]);
	for (size_t i = 1; i < n; i++) {
		*at++ = ',';
		at = str_put_i64(at, values[i]);
	}
	b->len = (size_t)(at - b->ptr);
}

void buf_add_varint(struct buf *b, uint64_t value)
{
	unsigned char bytes[10];
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		bytes[n++] = (unsigned char)(value | 0x80);
	bytes[n++] = (unsigned char)value;
	buf_add(b, bytes, n);
}

void buf_add_u32be(struct buf *b, uint32_t value)
{
	value = __builtin_bswap32(value);
	buf_add(b, &value, sizeof(value));
}

void buf_add_u64be(struct buf *b, uint64_t value)
{
	value = __builtin_bswap64(value);
	buf_add(b, &value, sizeof(value));
}

void buf_add_lenstr(struct buf *b, struct str s)
{
	buf_add_varint(b, s.len);
	buf_add_str(b, s);
}

uint64_t cursor_varint_slow(struct cursor *c)
{
	uint64_t v = 0;
	unsigned shift;

	for (shift = 0; shift < 64 && c->at < c->end; shift += 7) {
		unsigned char byte = *c->at++;

		if (shift == 63 && byte > 1) /* a tenth byte holds one bit */
			break;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return v;
	}
	c->bad = true;
	c->at = c->end;
	return 0;
}

uint32_t cursor_u32(struct cursor *c)
{
	uint64_t v = cursor_varint(c);

	if (v > UINT32_MAX) {
		c->bad = true;
		return 0;
	}
	return (uint32_t)v;
}

struct str cursor_bytes(struct cursor *c, size_t n)
{
	struct str s = { (const char *)c->at, n };

	if (cursor_left(c) < n) {
		c->bad = true;
		c->at = c->end;
		return (struct str){ "", 0 };
	}
	c->at += n;
	return s;
}

uint32_t cursor_u32be(struct cursor *c)
{
	struct str s = cursor_bytes(c, 4);
	uint32_t v = 0;

	if (s.len == 4)
		memcpy(&v, s.ptr, 4);
	return __builtin_bswap32(v);
}

uint64_t cursor_u64be(struct cursor *c)
{
	struct str s = cursor_bytes(c, 8);
	uint64_t v = 0;

	if (s.len == 8)
		memcpy(&v, s.ptr, 8);
	return __builtin_bswap64(v);
}

struct str cursor_lenstr(struct cursor *c)
{
	uint64_t n = cursor_varint(c);

	return cursor_bytes(c, n > SIZE_MAX ? SIZE_MAX : (size_t)n);
}

struct str_size str_size_of(uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	struct str_size out;
	uint64_t unit = 1;
	size_t i = 0;

	while (bytes / unit >= 1024) {
		unit *= 1024;
		i++;
	}
	if (bytes % unit)
		snprintf(out.text, sizeof(out.text), "%.2f%s", (double)bytes / (double)unit, units[i]);
	else
		snprintf(out.text, sizeof(out.text), "%" PRIu64 "%s", bytes / unit, units[i]);
	return out;
}
