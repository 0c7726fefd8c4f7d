/*
 * Keys of a window's records.
 *
 * Source: tsdb/FORMAT.md, "Records".
 */
#ifndef TSDB_HEAD_KEYS_H
#define TSDB_HEAD_KEYS_H

#include "base/str.h"

#define KEY_MAX 16
struct key {
	char bytes[KEY_MAX];
	size_t len;
};
struct key key_of(char kind); /* 'c', 'm' */
struct key key_u32(char kind, uint32_t id); /* 's' */
struct key key_u32_u32(char kind, uint32_t a, uint32_t b); /* 'p' */
struct key key_u32_u32_u32(char kind, uint32_t a, uint32_t b, uint32_t third); /* 't', 'y' */
struct key key_row(uint32_t series, int64_t ts_ns); /* 'r' */
static inline struct str key_str(const struct key *k)
{
	return (struct str){ k->bytes, k->len };
}
bool key_parse_row(struct str key, uint32_t *series, int64_t *ts_ns);

struct key key_number(uint32_t series, int64_t ts_ns); /* 'v' */
bool key_parse_number(struct str key, uint32_t *series, int64_t *ts_ns);

#endif
