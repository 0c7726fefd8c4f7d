/*
 * Strings with a length, and a growable byte buffer.
 *
 * A struct str does not own its bytes, need not end in NUL and may hold any byte. A struct buf owns
 * its bytes; a failed allocation is remembered in it (buf_failed) so that a long run of appends
 * needs one check at its end, and appends after a failure do nothing.
 *
 * Threads: values; no sharing.
 */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"

struct str {
	const char *ptr;
	size_t len;
};

#define STR(lit) ((struct str){ "" lit, sizeof(lit) - 1 })
#define STR_FMT "%.*s"
#define STR_ARG(s) (int)((s).len), ((s).len ? (s).ptr : "")

static inline struct str str_of(const char *text)
{
	return (struct str){ text, text ? strlen(text) : 0 };
}

static inline bool str_eq(struct str a, struct str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool str_is(struct str a, const char *b)
{
	return str_eq(a, str_of(b));
}

int str_cmp(struct str a, struct str b); /* byte order, shorter first */
bool str_has_prefix(struct str s, struct str prefix);
/* The same without regard to case, ASCII only. */
bool str_eq_nocase(struct str a, struct str b);
bool str_has_prefix_nocase(struct str s, struct str prefix);
bool str_has_suffix(struct str s, struct str suffix);
struct str str_base_name(struct str path); /* behind the last '/' */
struct str str_trim(struct str s); /* without ASCII white space at both ends */
struct str str_without_bom(struct str s); /* UTF-8's byte order mark at the beginning */
ptrdiff_t str_find(struct str s, struct str what); /* offset of the first occurrence, or -1 */
struct str str_dup(
	struct arena *a, struct str s); /* ptr is NUL-terminated; NULL and empty when the arena fails */
bool str_is_utf8(struct str s); /* well-formed UTF-8, surrogates and > U+10FFFF refused */

struct str str_ending_digits(struct str s); /* "epi-12": "12"; "a": "" */

/* Decimal without sign, the whole string, no overflow; false otherwise. */
bool str_to_u64(struct str s, uint64_t *out);
bool str_to_i64(struct str s, int64_t *out);

/*
 * The name that is nearest to one that was not found, for "did you mean". Distance is the number of
 * bytes to insert, remove, change or swap with a neighbour, without regard to case (optimal string
 * alignment). At most a third of the wanted name may differ; names above 80 bytes are not compared.
 */
struct nearest {
	struct str wanted;
	struct str name; /* empty: none is near; of equals the first that was tried */
	unsigned distance; /* a nearer name has less */
};
struct nearest nearest_to(struct str wanted);
void nearest_try(struct nearest *n, struct str name); /* name must outlive n */

struct buf {
	char *ptr;
	size_t len, cap;
	bool failed;
};

void buf_release(struct buf *b); /* frees; the buf is empty and usable again */
void buf_clear(struct buf *b); /* len = 0, memory and failed kept as they are */
static inline bool buf_failed(const struct buf *b)
{
	return b->failed;
}
/*
 * The number of buffers of this thread that have failed. A request that prints many small texts
 * compares it before and after, and so notices when one of them is missing.
 */
uint64_t buf_failures(void);
static inline struct str buf_str(const struct buf *b)
{
	return (struct str){ b->ptr, b->len };
}

bool buf_reserve(struct buf *b, size_t more); /* room for `more` bytes at ptr + len */
void buf_add(struct buf *b, const void *bytes, size_t n);
void buf_add_str(struct buf *b, struct str s);
void buf_add_cstr(struct buf *b, const char *text);
void buf_add_char(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_add_i64(struct buf *b, int64_t value); /* decimal, quicker than printf */
void buf_add_i64s(struct buf *b, const int64_t *values, size_t n); /* with commas between them */
void buf_add_u64(struct buf *b, uint64_t value);

/* LEB128, as in protobuf and LevelDB. */
void buf_add_varint(struct buf *b, uint64_t value);
void buf_add_u32be(struct buf *b, uint32_t value);
void buf_add_u64be(struct buf *b, uint64_t value);
/* A varint length, then the bytes. */
void buf_add_lenstr(struct buf *b, struct str s);

static inline uint64_t str_zigzag(int64_t value)
{
	return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

static inline int64_t str_unzigzag(uint64_t value)
{
	return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

/*
 * Reads forward over bytes. A read past the end sets `bad` and gives 0 or an empty string, so that
 * a decoder checks once per record. No read ever touches a byte outside [at, end).
 */
struct cursor {
	const unsigned char *at, *end;
	bool bad;
};

static inline struct cursor cursor_of(struct str s)
{
	return (
		struct cursor){ (const unsigned char *)s.ptr, (const unsigned char *)s.ptr + s.len, false };
}

uint64_t cursor_varint_slow(struct cursor *c);

static inline uint64_t cursor_varint(struct cursor *c)
{
	if (__builtin_expect(c->at < c->end && *c->at < 0x80, 1))
		return *c->at++;
	return cursor_varint_slow(c);
}

uint32_t cursor_u32(struct cursor *c); /* a varint; above UINT32_MAX is bad */
uint32_t cursor_u32be(struct cursor *c);
uint64_t cursor_u64be(struct cursor *c);
struct str cursor_bytes(struct cursor *c, size_t n); /* points into the input */
struct str cursor_lenstr(struct cursor *c);
static inline size_t cursor_left(const struct cursor *c)
{
	return (size_t)(c->end - c->at);
}

/* Bytes for people: "75.64GiB", and "256MiB" if there is no remainder. */
struct str_size {
	char text[24];
};
struct str_size str_size_of(uint64_t bytes);

#endif
