#include "web/push/multipart.h"

#define BOUNDARY_BYTES_MAX 70u

static struct str push_multipart_rest_of(struct str s, size_t from)
{
	return (struct str){ s.ptr + from, s.len - from };
}

static bool push_multipart_begins_nocase(struct str s, const char *prefix)
{
	struct str want = str_of(prefix);

	return s.len >= want.len && str_eq_nocase((struct str){ s.ptr, want.len }, want);
}

/* The value of a parameter of a header, quoted or not: name="x"; empty if there is none. */
static struct str push_multipart_parameter(struct str header, const char *name)
{
	ptrdiff_t semicolon;
	struct str value;

	while ((semicolon = str_find(header, STR(";"))) >= 0) {
		header = str_trim(push_multipart_rest_of(header, (size_t)semicolon + 1));
		if (!push_multipart_begins_nocase(header, name) || header.len <= strlen(name) ||
			header.ptr[strlen(name)] != '=')
			continue;
		value = push_multipart_rest_of(header, strlen(name) + 1);
		if (value.len && value.ptr[0] == '"') {
			const char *end = memchr(value.ptr + 1, '"', value.len - 1);

			return end ? (struct str){ value.ptr + 1, (size_t)(end - value.ptr) - 1 } : STR("");
		}
		if ((semicolon = str_find(value, STR(";"))) >= 0)
			value.len = (size_t)semicolon;
		return str_trim(value);
	}
	return STR("");
}

/* Reads a part's head up to the empty line; *at moves behind it. */
static enum err_code push_multipart_read_head(
	struct str *at, size_t number, struct multipart_part *p, struct err *err)
{
	const struct str disposition = STR("content-disposition:");
	const char *from = at->ptr;
	ptrdiff_t end;

	*p = (struct multipart_part){ .name = STR(""), .file_name = STR("") };
	for (;;) {
		if ((end = str_find(*at, STR("\r\n"))) < 0)
			return err_set(
				err, ERR_INVALID, "multipart: the head of part %zu does not end", number);
		if ((size_t)(at->ptr - from) + (size_t)end > MULTIPART_HEAD_BYTES_MAX)
			return err_set(err, ERR_LIMIT,
				"multipart: the head of part %zu is longer than %u bytes", number,
				MULTIPART_HEAD_BYTES_MAX);
		if (end && push_multipart_begins_nocase(*at, disposition.ptr)) {
			p->name = push_multipart_parameter((struct str){ at->ptr, (size_t)end }, "name");
			p->file_name = push_multipart_parameter(
				(struct str){ at->ptr, (size_t)end }, "filename");
		}
		*at = push_multipart_rest_of(*at, (size_t)end + 2);
		if (!end)
			break;
	}
	return p->name.len ? ERR_OK :
						 err_set(err, ERR_INVALID, "multipart: part %zu has no name", number);
}

enum err_code multipart_parse(
	struct str content_type, struct str body, struct multipart *out, struct err *err)
{
	struct str boundary = push_multipart_parameter(content_type, "boundary"), at = body, line;
	char text[BOUNDARY_BYTES_MAX + 5];
	enum err_code rc;
	ptrdiff_t end;

	*out = (struct multipart){ .n = 0 };
	if (!boundary.len || boundary.len > BOUNDARY_BYTES_MAX)
		return err_set(err, ERR_INVALID, "multipart: Content-Type has no boundary of 1 to %u bytes",
			BOUNDARY_BYTES_MAX);
	memcpy(text, "\r\n--", 4);
	memcpy(text + 4, boundary.ptr, boundary.len);
	line = (struct str){ text, boundary.len + 4 };
	/* The first boundary may begin the body. */
	if (str_has_prefix(at, push_multipart_rest_of(line, 2)))
		at = push_multipart_rest_of(at, line.len - 2);
	else if ((end = str_find(at, line)) >= 0)
		at = push_multipart_rest_of(at, (size_t)end + line.len);
	else
		return err_set(err, ERR_INVALID, "multipart: the boundary is not in the body");
	while (!str_has_prefix(at, STR("--"))) {
		struct multipart_part *p = &out->v[out->n];

		if (!str_has_prefix(at, STR("\r\n")))
			return err_set(err, ERR_INVALID,
				"multipart: part %zu does not begin on a line of its own", out->n);
		if (out->n == MULTIPART_PARTS_MAX)
			return err_set(err, ERR_LIMIT, "multipart: more than %u parts", MULTIPART_PARTS_MAX);
		at = push_multipart_rest_of(at, 2);
		if ((rc = push_multipart_read_head(&at, out->n, p, err)))
			return rc;
		if ((end = str_find(at, line)) < 0)
			return err_set(err, ERR_INVALID, "multipart: part %zu is cut short", out->n);
		p->body = (struct str){ at.ptr, (size_t)end };
		at = push_multipart_rest_of(at, (size_t)end + line.len);
		out->n++;
	}
	return ERR_OK;
}

const struct str *multipart_get(const struct multipart *m, const char *name)
{
	for (size_t i = 0; i < m->n; i++)
		if (str_is(m->v[i].name, name))
			return &m->v[i].body;
	return NULL;
}
