/*
 * fuzz: web/push
 * A multipart body of any bytes: its first line is the Content-Type, the rest the body. Parts lie
 * in the body, in order and apart, and a body written of them gives the same parts again.
 */
#include "tests/fuzz/fuzz.h"
#include "web/push/multipart.h"

static void check_again(const struct multipart *m)
{
	const struct str type = STR("multipart/form-data; boundary=\"=a boundary of our own=\"");
	struct multipart again;
	struct buf text = { 0 };
	struct err err;

	for (size_t i = 0; i < m->n; i++) {
		/* A body may hold our boundary, and a name what ends it. */
		if (str_find(m->v[i].body, STR("boundary of our own")) >= 0 ||
				(m->v[i].name.len && memchr(m->v[i].name.ptr, '"', m->v[i].name.len)))
			goto out;
		buf_printf(&text,
			"--=a boundary of our own=\r\nContent-Disposition: x; name=\"" STR_FMT "\"\r\n\r\n",
			STR_ARG(m->v[i].name));
		buf_add_str(&text, m->v[i].body);
		buf_add_cstr(&text, "\r\n");
	}
	buf_add_cstr(&text, "--=a boundary of our own=--");
	for (size_t i = 0; i < m->n; i++)
		if (m->v[i].name.len && memchr(m->v[i].name.ptr, '\0', m->v[i].name.len))
			goto out; /* printf ends there */
	require(!multipart_parse(type, buf_str(&text), &again, &err));
	require(again.n == m->n);
	for (size_t i = 0; i < m->n; i++)
		require(str_eq(again.v[i].name, m->v[i].name) && str_eq(again.v[i].body, m->v[i].body));
out:
	buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str body = { (const char *)data, size }, type = body;
	const char *end = size ? memchr(data, '\n', size) : NULL, *at;
	struct multipart m;
	struct err err;

	if (!end)
		return 0;
	type.len = (size_t)(end - body.ptr);
	body = (struct str){ end + 1, size - type.len - 1 };
	if (multipart_parse(type, body, &m, &err)) {
		require(err.msg[0] != '\0');
		return 0;
	}
	at = body.ptr;
	for (size_t i = 0; i < m.n; i++) {
		require(m.v[i].name.len && m.v[i].body.ptr >= at);
		at = m.v[i].body.ptr + m.v[i].body.len;
		require(at <= body.ptr + body.len);
	}
	check_again(&m);
	return 0;
}
