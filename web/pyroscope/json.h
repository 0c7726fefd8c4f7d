/*
 * Messages of protobuf-c as JSON and back, by their descriptors, as proto3 defines it: names in
 * camelCase (snake_case is accepted too), 64 bits as strings, enums by name, bytes in base64;
 * fields with their default are left out, unknown ones ignored.
 *
 * Errors:    ERR_INVALID (names the field), ERR_LIMIT and ERR_NOMEM from the arena.
 * Ownership: messages read live in the arena.
 * Threads:   any.
 */
#ifndef WEB_PYROSCOPE_JSON_H
#define WEB_PYROSCOPE_JSON_H

#include <protobuf-c/protobuf-c.h>

#include "base/str.h"

struct json;

MUST_CHECK enum err_code pyroscope_json_read(struct arena *a,
	const ProtobufCMessageDescriptor *descriptor, struct str body, ProtobufCMessage **out,
	struct err *err);

/* The strings of a pprof profile are bytes in proto/profile.proto; here they are text. */
void pyroscope_json_write(struct json *j, const ProtobufCMessage *message);

#endif
