/*
 * The messages of a request as a table: names, numbers, types. JSON is read by it, and faults of
 * the wire format are explained by it. Private to proto/otlp.
 */
#ifndef PROTO_OTLP_MESSAGES_H
#define PROTO_OTLP_MESSAGES_H

#include "base/str.h"
#include "proto/wire.h"

enum otlp_type {
	OTLP_T_INT, /* int32, int64, uint64: varints */
	OTLP_T_FIXED, /* fixed64 */
	OTLP_T_DOUBLE,
	OTLP_T_BOOL,
	OTLP_T_STRING,
	OTLP_T_BASE64, /* bytes */
	OTLP_T_HEX, /* bytes, in JSON as hex: ids */
	OTLP_T_MESSAGE,
	OTLP_T_TEMPORALITY, /* an enum: a number, in JSON its name too */
	OTLP_T_OLD /* JSON only: a member of requests before 1.8 */
};

enum { OTLP_M_REPEATED = 1, OTLP_M_LOOSE = 2 }; /* LOOSE: another version has another type there */

struct otlp_message;

struct otlp_member {
	unsigned char number; /* 0: in JSON alone */
	unsigned char type, flags;
	const char *name; /* JSON's; a message's own name has "_" before what is upper case here */
	const struct otlp_message *message; /* OTLP_T_MESSAGE */
};

struct otlp_message {
	const struct otlp_member *members;
	size_t members_n;
};

extern const struct otlp_message otlp_request_message;

/* NULL: unknown. The lower_case name of the member is accepted too. */
const struct otlp_member *otlp_member_by_name(const struct otlp_message *m, struct str name);

/* Sets *err to the place where a request breaks the wire format, and returns ERR_INVALID. */
enum err_code otlp_explain(struct str raw, struct err *err);

#endif
