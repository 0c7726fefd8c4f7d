/*
 * Messages of protobuf-c as JSON and back, by their descriptors, as proto3 lays it down: names in
 * camelCase (snake_case is taken too), 64 bits as strings, enums by name, bytes in base64, fields
 * that have their default left out, unknown ones passed over.
 *
 * Errors:    ERR_INVALID (names the field), ERR_LIMIT and ERR_NOMEM from the arena.
 * Ownership: a message that was read lives in the arena.
 * Threads:   any.
 */
#ifndef WEB_PYROSCOPE_JSON_H
#define WEB_PYROSCOPE_JSON_H

#include <protobuf-c/protobuf-c.h>

#include "base/str.h"

struct json;

MUST_CHECK enum err_code pyroscope_json_read(struct arena *a, const ProtobufCMessageDescriptor *d,
	struct str body, ProtobufCMessage **out, struct err *err);

/* The strings of a pprof profile are bytes in proto/profile.proto; here they are text. */
void pyroscope_json_write(struct json *j, const ProtobufCMessage *m);

#endif
