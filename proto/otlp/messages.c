#include "proto/otlp/messages.h"

#include <stdio.h>

#define NESTING_MAX 64
#define PATH_BYTES 256

#define MESSAGE_OF(m) \
	{ \
		m, sizeof(m) / sizeof((m)[0]) \
	}
#define REP OTLP_M_REPEATED
#define LOOSE OTLP_M_LOOSE

/* clang-format off */
static const struct otlp_message any_value, key_value;

static const struct otlp_member array_members[] = {
	{ 1, OTLP_T_MESSAGE, REP, "values", &any_value },
};
static const struct otlp_message array_value = MESSAGE_OF(array_members);
static const struct otlp_member map_members[] = {
	{ 1, OTLP_T_MESSAGE, REP, "values", &key_value },
};
static const struct otlp_message map_value = MESSAGE_OF(map_members);
static const struct otlp_member any_members[] = {
	{ 1, OTLP_T_STRING, 0, "stringValue", NULL },
	{ 2, OTLP_T_BOOL, 0, "boolValue", NULL },
	{ 3, OTLP_T_INT, 0, "intValue", NULL },
	{ 4, OTLP_T_DOUBLE, 0, "doubleValue", NULL },
	{ 5, OTLP_T_MESSAGE, 0, "arrayValue", &array_value },
	{ 6, OTLP_T_MESSAGE, 0, "kvlistValue", &map_value },
	{ 7, OTLP_T_BASE64, 0, "bytesValue", NULL },
	{ 8, OTLP_T_INT, 0, "stringValueStrindex", NULL },
};
static const struct otlp_message any_value = MESSAGE_OF(any_members);
static const struct otlp_member key_value_members[] = {
	{ 1, OTLP_T_STRING, 0, "key", NULL },
	{ 2, OTLP_T_MESSAGE, 0, "value", &any_value },
	{ 3, OTLP_T_INT, 0, "keyStrindex", NULL },
};
static const struct otlp_message key_value = MESSAGE_OF(key_value_members);

static const struct otlp_member resource_members[] = {
	{ 1, OTLP_T_MESSAGE, REP, "attributes", &key_value },
};
static const struct otlp_message resource = MESSAGE_OF(resource_members);
static const struct otlp_member scope_members[] = {
	{ 1, OTLP_T_STRING, 0, "name", NULL },
	{ 2, OTLP_T_STRING, 0, "version", NULL },
};
static const struct otlp_message scope = MESSAGE_OF(scope_members);
static const struct otlp_member value_type_members[] = {
	{ 1, OTLP_T_INT, 0, "typeStrindex", NULL },
	{ 2, OTLP_T_INT, 0, "unitStrindex", NULL },
	{ 3, OTLP_T_TEMPORALITY, 0, "aggregationTemporality", NULL }, /* 1.8 only */
};
static const struct otlp_message value_type = MESSAGE_OF(value_type_members);
static const struct otlp_member sample_members[] = { /* as numbered since 1.10 */
	{ 1, OTLP_T_INT, 0, "stackIndex", NULL },
	{ 2, OTLP_T_INT, REP | LOOSE, "attributeIndices", NULL },
	{ 3, OTLP_T_INT, LOOSE, "linkIndex", NULL },
	{ 4, OTLP_T_INT, REP | LOOSE, "values", NULL },
	{ 5, OTLP_T_FIXED, REP, "timestampsUnixNano", NULL },
	{ 0, OTLP_T_OLD, 0, "locationsStartIndex", NULL },
	{ 0, OTLP_T_OLD, 0, "locationsLength", NULL },
};
static const struct otlp_message sample = MESSAGE_OF(sample_members);
static const struct otlp_member profile_members[] = { /* as numbered since 1.9 */
	{ 1, OTLP_T_MESSAGE, 0, "sampleType", &value_type },
	{ 2, OTLP_T_MESSAGE, REP, "samples", &sample },
	{ 3, OTLP_T_FIXED, 0, "timeUnixNano", NULL },
	{ 4, OTLP_T_INT, 0, "durationNano", NULL },
	{ 5, OTLP_T_MESSAGE, 0, "periodType", &value_type },
	{ 6, OTLP_T_INT, 0, "period", NULL },
	{ 7, OTLP_T_HEX, LOOSE, "profileId", NULL },
	{ 8, OTLP_T_INT, LOOSE, "droppedAttributesCount", NULL },
	{ 9, OTLP_T_STRING, LOOSE, "originalPayloadFormat", NULL },
	{ 10, OTLP_T_BASE64, LOOSE, "originalPayload", NULL },
	{ 11, OTLP_T_INT, REP | LOOSE, "attributeIndices", NULL },
	{ 2, OTLP_T_MESSAGE, REP, "sample", &sample }, /* 1.8 */
	{ 0, OTLP_T_OLD, 0, "timeNanos", NULL },
	{ 0, OTLP_T_OLD, 0, "durationNanos", NULL },
	{ 0, OTLP_T_OLD, 0, "locationIndices", NULL },
	{ 0, OTLP_T_OLD, 0, "locationTable", NULL },
	{ 0, OTLP_T_OLD, 0, "stringTable", NULL },
};
static const struct otlp_message profile = MESSAGE_OF(profile_members);
static const struct otlp_member scope_profiles_members[] = {
	{ 1, OTLP_T_MESSAGE, 0, "scope", &scope },
	{ 2, OTLP_T_MESSAGE, REP, "profiles", &profile },
	{ 3, OTLP_T_STRING, 0, "schemaUrl", NULL },
};
static const struct otlp_message scope_profiles = MESSAGE_OF(scope_profiles_members);
static const struct otlp_member resource_profiles_members[] = {
	{ 1, OTLP_T_MESSAGE, 0, "resource", &resource },
	{ 2, OTLP_T_MESSAGE, REP, "scopeProfiles", &scope_profiles },
	{ 3, OTLP_T_STRING, 0, "schemaUrl", NULL },
};
static const struct otlp_message resource_profiles = MESSAGE_OF(resource_profiles_members);

static const struct otlp_member mapping_members[] = {
	{ 1, OTLP_T_INT, 0, "memoryStart", NULL },
	{ 2, OTLP_T_INT, 0, "memoryLimit", NULL },
	{ 3, OTLP_T_INT, 0, "fileOffset", NULL },
	{ 4, OTLP_T_INT, 0, "filenameStrindex", NULL },
	{ 5, OTLP_T_INT, REP, "attributeIndices", NULL },
};
static const struct otlp_message mapping = MESSAGE_OF(mapping_members);
static const struct otlp_member line_members[] = {
	{ 1, OTLP_T_INT, 0, "functionIndex", NULL },
	{ 2, OTLP_T_INT, 0, "line", NULL },
	{ 3, OTLP_T_INT, 0, "column", NULL },
};
static const struct otlp_message line = MESSAGE_OF(line_members);
static const struct otlp_member location_members[] = {
	{ 1, OTLP_T_INT, 0, "mappingIndex", NULL },
	{ 2, OTLP_T_INT, 0, "address", NULL },
	{ 3, OTLP_T_MESSAGE, REP, "lines", &line },
	{ 4, OTLP_T_INT, REP, "attributeIndices", NULL },
	{ 3, OTLP_T_MESSAGE, REP, "line", &line }, /* 1.8 */
};
static const struct otlp_message location = MESSAGE_OF(location_members);
static const struct otlp_member function_members[] = {
	{ 1, OTLP_T_INT, 0, "nameStrindex", NULL },
	{ 2, OTLP_T_INT, 0, "systemNameStrindex", NULL },
	{ 3, OTLP_T_INT, 0, "filenameStrindex", NULL },
	{ 4, OTLP_T_INT, 0, "startLine", NULL },
};
static const struct otlp_message function = MESSAGE_OF(function_members);
static const struct otlp_member link_members[] = {
	{ 1, OTLP_T_HEX, 0, "traceId", NULL },
	{ 2, OTLP_T_HEX, 0, "spanId", NULL },
};
static const struct otlp_message link_message = MESSAGE_OF(link_members);
static const struct otlp_member attribute_members[] = {
	{ 1, OTLP_T_INT, 0, "keyStrindex", NULL },
	{ 2, OTLP_T_MESSAGE, 0, "value", &any_value },
	{ 3, OTLP_T_INT, 0, "unitStrindex", NULL },
	{ 0, OTLP_T_OLD, 0, "key", NULL },
};
static const struct otlp_message attribute = MESSAGE_OF(attribute_members);
static const struct otlp_member stack_members[] = {
	{ 1, OTLP_T_INT, REP, "locationIndices", NULL },
};
static const struct otlp_message stack = MESSAGE_OF(stack_members);
static const struct otlp_member dictionary_members[] = {
	{ 1, OTLP_T_MESSAGE, REP, "mappingTable", &mapping },
	{ 2, OTLP_T_MESSAGE, REP, "locationTable", &location },
	{ 3, OTLP_T_MESSAGE, REP, "functionTable", &function },
	{ 4, OTLP_T_MESSAGE, REP, "linkTable", &link_message },
	{ 5, OTLP_T_STRING, REP, "stringTable", NULL },
	{ 6, OTLP_T_MESSAGE, REP, "attributeTable", &attribute },
	{ 7, OTLP_T_MESSAGE, REP, "stackTable", &stack },
	{ 0, OTLP_T_OLD, 0, "attributeUnits", NULL },
};
static const struct otlp_message dictionary = MESSAGE_OF(dictionary_members);
static const struct otlp_member request_members[] = {
	{ 1, OTLP_T_MESSAGE, REP, "resourceProfiles", &resource_profiles },
	{ 2, OTLP_T_MESSAGE, 0, "dictionary", &dictionary },
};
const struct otlp_message otlp_request_message = MESSAGE_OF(request_members);
/* clang-format on */

static bool otlp_is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

/* "timeUnixNano" is also found as "time_unix_nano". */
static bool otlp_has_name(const char *name, struct str given)
{
	size_t i = 0;

	for (; *name; name++, i++) {
		if (otlp_is_upper(*name) && i + 1 < given.len && given.ptr[i] == '_' &&
			given.ptr[i + 1] == *name - 'A' + 'a')
			i++;
		else if (i >= given.len || given.ptr[i] != *name)
			return false;
	}
	return i == given.len;
}

const struct otlp_member *otlp_member_by_name(const struct otlp_message *m, struct str name)
{
	for (size_t i = 0; i < m->members_n; i++)
		if (otlp_has_name(m->members[i].name, name))
			return &m->members[i];
	return NULL;
}

/* ------------------------------------------------------------------------------------------------
 * Explaining. */

struct otlp_place {
	const struct otlp_place *in; /* NULL: the request */
	const struct otlp_member *member;
	wire_pos begin, at; /* of the message that it is in, and its own: its index is counted late */
};

static uint64_t otlp_place_index_of(const struct otlp_place *p)
{
	uint64_t n = 0, tag;

	for (wire_pos at = p->begin; at < p->at;) {
		at = wire_varint(at, p->at, &tag);
		n += tag >> 3 == p->member->number;
		at = wire_skip(tag, at, p->at);
	}
	return n;
}

static void otlp_add_place(struct buf *b, const struct otlp_place *p)
{
	if (!p->in)
		return;
	otlp_add_place(b, p->in);
	buf_printf(b, "%s%s", p->in->in ? "." : "", p->member->name);
	if (p->member->flags & REP)
		buf_printf(b, "[%llu]", (unsigned long long)otlp_place_index_of(p));
}

static enum err_code otlp_place_fault(const struct otlp_place *p, struct err *err, const char *what)
{
	struct buf b = { 0 };
	enum err_code rc;

	otlp_add_place(&b, p);
	if (b.len > PATH_BYTES)
		b.len = PATH_BYTES;
	rc = err_set(err, ERR_INVALID, "request is not well-formed%s" STR_FMT ": %s",
		b.len ? " at " : "", STR_ARG(buf_str(&b)), what);
	buf_release(&b);
	return rc;
}

static enum wire_type otlp_member_wire_of(const struct otlp_member *m)
{
	switch (m->type) {
	case OTLP_T_INT:
	case OTLP_T_BOOL:
	case OTLP_T_TEMPORALITY:
		return WIRE_VARINT;
	case OTLP_T_FIXED:
	case OTLP_T_DOUBLE:
		return WIRE_FIXED64;
	default:
		return WIRE_BYTES;
	}
}

/* NULL: the field is unknown, or its type is not checked. */
static const struct otlp_member *otlp_message_by_number(
	const struct otlp_message *m, uint64_t number)
{
	for (size_t i = 0; i < m->members_n; i++)
		if (m->members[i].number && m->members[i].number == number)
			return m->members[i].flags & LOOSE ? NULL : &m->members[i];
	return NULL;
}

static bool otlp_are_numbers(wire_pos at, wire_pos end, enum wire_type type)
{
	uint64_t v;

	if (type == WIRE_FIXED64)
		return (end - at) % 8 == 0;
	while (at && at < end)
		at = wire_varint(at, end, &v);
	return at;
}

static enum err_code otlp_messages_explain(wire_pos at, wire_pos end, const struct otlp_message *m,
	const struct otlp_place *in, struct err *err, int depth)
{
	wire_pos begin = at;
	enum err_code rc;

	while (at < end) {
		const struct otlp_member *member;
		struct otlp_place here = { .in = in, .begin = begin, .at = at };
		wire_pos value;
		enum wire_type type;
		uint64_t tag;
		size_t len;

		if (!(value = wire_varint(at, end, &tag)))
			return otlp_place_fault(in, err, "the tag of a field is cut off");
		member = otlp_message_by_number(m, tag >> 3);
		here.member = member;
		if (!(at = wire_skip(tag, value, end)))
			return otlp_place_fault(in, err, "a field is cut off, or of an unknown wire type");
		if (!member)
			continue;
		type = otlp_member_wire_of(member);
		if ((tag & 7) != type && !((tag & 7) == WIRE_BYTES && (member->flags & REP)))
			return otlp_place_fault(&here, err, "wrong wire type");
		if ((tag & 7) != WIRE_BYTES)
			continue;
		value = wire_bytes(value, end, &len);
		if (type != WIRE_BYTES && !otlp_are_numbers(value, at, type))
			return otlp_place_fault(&here, err, "a number is cut off");
		if (member->type == OTLP_T_MESSAGE && depth >= NESTING_MAX)
			return otlp_place_fault(&here, err, "nested too deeply");
		if (member->type == OTLP_T_MESSAGE &&
			(rc = otlp_messages_explain(value, at, member->message, &here, err, depth + 1)))
			return rc;
	}
	return ERR_OK;
}

enum err_code otlp_explain(struct str raw, struct err *err)
{
	const struct otlp_place request = { 0 };
	wire_pos at = (wire_pos)raw.ptr;
	enum err_code rc;

	rc = otlp_messages_explain(at, at + raw.len, &otlp_request_message, &request, err, 0);
	return rc ? rc : err_set(err, ERR_INVALID, "request is not well-formed");
}
