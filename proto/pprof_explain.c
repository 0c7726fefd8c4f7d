/*
 * Explains why a body is not a profile. The decoder only notices that something is wrong; this
 * walks the same bytes by a table of the messages and says where. Bytes that are known to be
 * something else are named by foreign.c instead.
 */
#include "proto/wire.h"

#include <assert.h>
#include <stdio.h>

#define PATH_MAX_BYTES 96

struct message;

struct field {
	const char *name;
	enum wire_type type; /* WIRE_VARINT, or WIRE_BYTES */
	const struct message *message; /* WIRE_BYTES: a message, NULL: a string */
	bool repeated; /* of numbers: WIRE_BYTES is the packed form */
};

struct message {
	const struct field *fields; /* by number; 0 is not used */
	size_t fields_n;
};

#define NUMBER(name) \
	{ \
		name, WIRE_VARINT, NULL, false \
	}
#define NUMBERS(name) \
	{ \
		name, WIRE_VARINT, NULL, true \
	}
#define MESSAGE(name, m) \
	{ \
		name, WIRE_BYTES, m, true \
	}
#define MESSAGE_OF(f) \
	{ \
		f, sizeof(f) / sizeof((f)[0]) \
	}

/* clang-format off */
static const struct field value_type_fields[] = { { NULL }, NUMBER("type"), NUMBER("unit") };
static const struct message value_type = MESSAGE_OF(value_type_fields);
static const struct field label_fields[] = {
	{ NULL }, NUMBER("key"), NUMBER("str"), NUMBER("num"), NUMBER("num_unit"),
};
static const struct message label = MESSAGE_OF(label_fields);
static const struct field sample_fields[] = {
	{ NULL }, NUMBERS("location_id"), NUMBERS("value"), MESSAGE("label", &label),
};
static const struct message sample = MESSAGE_OF(sample_fields);
static const struct field mapping_fields[] = {
	{ NULL }, NUMBER("id"), NUMBER("memory_start"), NUMBER("memory_limit"), NUMBER("file_offset"),
	NUMBER("filename"), NUMBER("build_id"), NUMBER("has_functions"), NUMBER("has_filenames"),
	NUMBER("has_line_numbers"), NUMBER("has_inline_frames"),
};
static const struct message mapping = MESSAGE_OF(mapping_fields);
static const struct field line_fields[] = {
	{ NULL }, NUMBER("function_id"), NUMBER("line"), NUMBER("column"),
};
static const struct message line = MESSAGE_OF(line_fields);
static const struct field location_fields[] = {
	{ NULL }, NUMBER("id"), NUMBER("mapping_id"), NUMBER("address"), MESSAGE("line", &line),
	NUMBER("is_folded"),
};
static const struct message location = MESSAGE_OF(location_fields);
static const struct field function_fields[] = {
	{ NULL }, NUMBER("id"), NUMBER("name"), NUMBER("system_name"), NUMBER("filename"),
	NUMBER("start_line"),
};
static const struct message function = MESSAGE_OF(function_fields);
static const struct field profile_fields[] = {
	{ NULL }, MESSAGE("sample_type", &value_type), MESSAGE("sample", &sample),
	MESSAGE("mapping", &mapping), MESSAGE("location", &location), MESSAGE("function", &function),
	MESSAGE("string_table", NULL), NUMBER("drop_frames"), NUMBER("keep_frames"),
	NUMBER("time_nanos"),
	NUMBER("duration_nanos"), { "period_type", WIRE_BYTES, &value_type, false }, NUMBER("period"),
	NUMBERS("comment"), NUMBER("default_sample_type"), NUMBER("doc_url"),
};
static const struct message profile = MESSAGE_OF(profile_fields);
/* clang-format on */

#define FIELDS_MAX 16 /* no message above has more */

struct pprof_explain_walk {
	char path[PATH_MAX_BYTES];
	struct err *err;
};

static enum err_code pprof_explain_walk_packed(
	struct pprof_explain_walk *w, wire_pos at, wire_pos end)
{
	uint64_t ignored;

	while (at < end)
		if (!(at = wire_varint(at, end, &ignored)))
			return err_set(w->err, ERR_INVALID, "%s: bad varint", w->path);
	return ERR_OK;
}

static enum err_code message_walk(
	struct pprof_explain_walk *w, const struct message *m, wire_pos at, wire_pos end);

/* Checks one field's value against the table; `at` is behind the tag. */
static enum err_code field_walk(
	struct pprof_explain_walk *w, const struct field *f, uint64_t tag, wire_pos at, wire_pos end)
{
	unsigned type = (unsigned)(tag & 7);
	size_t len;

	if (type == 3 || type == 4 || type >= 6)
		return err_set(w->err, ERR_INVALID, "%s: unknown wire type %u", w->path, type);
	if (!wire_skip(tag, at, end)) {
		if (type == WIRE_VARINT)
			return err_set(w->err, ERR_INVALID, "%s: bad varint", w->path);
		return err_set(w->err, ERR_INVALID, "%s: truncated", w->path);
	}
	if (!f || !f->name)
		return ERR_OK;
	if (type != f->type && !(type == WIRE_BYTES && f->type == WIRE_VARINT && f->repeated))
		return err_set(
			w->err, ERR_INVALID, "%s: wire type %u, want %u", w->path, type, (unsigned)f->type);
	if (type != WIRE_BYTES)
		return ERR_OK;
	at = wire_bytes(at, end, &len);
	if (f->type == WIRE_VARINT)
		return pprof_explain_walk_packed(w, at, at + len);
	return f->message ? message_walk(w, f->message, at, at + len) : ERR_OK;
}

static enum err_code message_walk(
	struct pprof_explain_walk *w, const struct message *m, wire_pos at, wire_pos end)
{
	uint32_t seen[FIELDS_MAX] = { 0 };
	size_t path_len = strlen(w->path);
	enum err_code rc;

	assert(m->fields_n <= FIELDS_MAX);
	while (at < end) {
		const struct field *f = NULL;
		const char *dot = path_len ? "." : "";
		uint64_t tag, number;

		w->path[path_len] = '\0';
		if (!(at = wire_varint(at, end, &tag)))
			return err_set(w->err, ERR_INVALID, "%s: bad varint instead of a field's tag",
				path_len ? w->path : "profile");
		number = tag >> 3;
		if (number < m->fields_n)
			f = &m->fields[number];
		if (f && f->name && f->type == WIRE_BYTES && f->repeated)
			snprintf(w->path + path_len, sizeof(w->path) - path_len, "%s%s[%u]", dot, f->name,
				seen[number]++);
		else if (f && f->name)
			snprintf(w->path + path_len, sizeof(w->path) - path_len, "%s%s", dot, f->name);
		else
			snprintf(w->path + path_len, sizeof(w->path) - path_len, "%sfield %llu", dot,
				(unsigned long long)number);
		if ((rc = field_walk(w, f, tag, at, end)))
			return rc;
		at = wire_skip(tag, at, end);
	}
	w->path[path_len] = '\0';
	return ERR_OK;
}

/*
 * The length of printable text that the body begins with; 0 if it is not text. A wrong path often
 * answers a legacy text profile or "404 page not found".
 */
static size_t pprof_explain_text_prefix(struct str raw)
{
	size_t n = 0;

	while (n < raw.len && n < 40 && raw.ptr[n] >= ' ' && raw.ptr[n] <= '~')
		n++;
	if (n < 4)
		return 0;
	return n == raw.len || n >= 16 || raw.ptr[n] == '\n' || raw.ptr[n] == '\r' ? n : 0;
}

enum err_code pprof_explain(struct str raw, struct err *err)
{
	struct pprof_explain_walk w = { .err = err };
	wire_pos at = (wire_pos)raw.ptr;
	size_t text = pprof_explain_text_prefix(raw);

	if (text)
		return err_set(
			err, ERR_INVALID, "not a pprof profile: it begins with \"%.*s\"", (int)text, raw.ptr);
	if (!message_walk(&w, &profile, at, at + raw.len))
		return err_set(err, ERR_INVALID, "profile: not well-formed");
	return ERR_INVALID;
}
