/*
 * JSON writer: streams into a buf; commas and nesting are kept for the caller.
 * (jansson reads JSON.)
 *
 * Bytes of a string that are not UTF-8 become U+FFFD, so that the output is always valid JSON;
 * control characters are escaped, all of them.
 * Asserted: nesting of at most JSON_DEPTH_MAX, brackets in pairs, keys in objects only.
 *
 * json_object, json_array and json_null are macros: jansson, linked into the same program, has
 * functions of these names. A file that needs both headers includes jansson.h first.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "base/str.h"

#define JSON_DEPTH_MAX 256

struct json {
	struct buf *out;
	unsigned depth;
	bool first[JSON_DEPTH_MAX];
	char closing[JSON_DEPTH_MAX]; /* '}' or ']' of each level */
	bool after_key;
};

void json_init(struct json *j, struct buf *out);
#define json_object json_object_begin
#define json_array json_array_begin
#define json_null json_add_null
void json_object(struct json *j); /* { */
void json_object_end(struct json *j);
void json_array(struct json *j); /* [ */
void json_array_end(struct json *j);
void json_key(struct json *j, const char *key);
void json_key_str(struct json *j, struct str key);
void json_str(struct json *j, struct str s);
void json_cstr(struct json *j, const char *value);
void json_i64(struct json *j, int64_t value);
void json_i64s(struct json *j, const int64_t *values, size_t n); /* n elements of an array */
void json_u64(struct json *j, uint64_t value);
/* shortest form that reads back the same; NaN and Inf as null */
void json_double(struct json *j, double value);
void json_bool(struct json *j, bool value);
void json_null(struct json *j);
void json_raw(struct json *j, struct str s); /* already JSON */
/* "1.5" "NaN" "+Inf" "-Inf": a value as Prometheus's API gives it, shortest round-trip form. */
void json_sample_value(struct json *j, double value);
void buf_add_double(struct buf *b, double v); /* the same without quotes */

#endif
