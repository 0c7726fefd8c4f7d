#include "web/render/notices.h"

#include <assert.h>

#include "base/quote.h"
#include "proto/pprof.h"

#define WARNING_CODE "299"
#define INFO_CODE "199"

struct notice {
	bool is_info;
	struct str text; /* on one line */
};

struct notice_list {
	struct notice v[NOTICES_MAX + 2];
	size_t n;
};

/* ---- which ones ---- */

static enum err_code notice_list_add_kind(struct notice_list *l, bool is_info, const struct str *s,
	size_t n, struct arena *a, struct err *err)
{
	size_t room = l->n < NOTICES_MAX ? NOTICES_MAX - l->n : 0;
	size_t shown = n < room ? n : room;
	struct notice *to;

	for (size_t i = 0; i < shown; i++) {
		to = &l->v[l->n++];
		*to = (struct notice){ is_info, str_printable(a, s[i]) };
		if (!to->text.ptr)
			return arena_fail(a, "warnings", err);
	}
	if (shown == n)
		return ERR_OK;
	to = &l->v[l->n++];
	*to = (struct notice){ is_info,
		str_of(arena_printf(a, "and %zu more %s%s", n - shown, is_info ? "info" : "warning",
			n - shown == 1 ? "" : "s")) };
	return to->text.ptr ? ERR_OK : arena_fail(a, "warnings", err);
}

static enum err_code notices_list(
	const struct notices *n, struct arena *a, struct notice_list *out, struct err *err)
{
	enum err_code rc;

	out->n = 0;
	assert((n->warnings || !n->warnings_n) && (n->infos || !n->infos_n));
	rc = notice_list_add_kind(out, false, n->warnings, n->warnings_n, a, err);
	if (!rc)
		rc = notice_list_add_kind(out, true, n->infos, n->infos_n, a, err);
	assert(out->n <= NOTICES_MAX + 2);
	return rc;
}

/* ---- the header ---- */

/*
 * Appends a code point as ASCII for a quoted string. Returns its length in s, which is printable
 * and not empty.
 */
static size_t notices_add_ascii(struct buf *out, struct str s)
{
	uint32_t code;
	size_t n = utf8_decode(s, &code);

	if (code >= 0x80)
		buf_printf(out, code < 0x10000 ? "\\\\u%04x" : "\\\\U%08x", code);
	else if (code == '"' || code == '\\')
		buf_printf(out, "\\%c", (char)code);
	else
		buf_add_char(out, (char)code);
	return n;
}

static void notices_add_quoted(struct buf *out, struct str s)
{
	size_t from, n;

	buf_add_char(out, '"');
	from = out->len;
	while (s.len) {
		size_t before = out->len;

		n = notices_add_ascii(out, s);
		if (out->len - from > NOTICE_BYTES_MAX - 3 && s.len > n) {
			out->len = before;
			buf_add_cstr(out, "...");
			break;
		}
		s = (struct str){ s.ptr + n, s.len - n };
	}
	buf_add_char(out, '"');
}

enum err_code notices_add_header(
	const struct notices *n, struct arena *a, struct http_out *out, struct err *err)
{
	struct notice_list l;
	struct buf value = { 0 };
	struct str copy = { 0 };
	enum err_code rc = notices_list(n, a, &l, err);

	if (rc || !l.n)
		return rc;
	for (size_t i = 0; i < l.n; i++) {
		buf_printf(&value, "%s%s - ", i ? ", " : "", l.v[i].is_info ? INFO_CODE : WARNING_CODE);
		notices_add_quoted(&value, l.v[i].text);
	}
	if (!buf_failed(&value))
		copy = str_dup(a, buf_str(&value));
	buf_release(&value);
	if (!copy.ptr)
		return arena_fail(a, "warnings", err);
	http_add_header(out, "Warning", copy);
	return ERR_OK;
}

static bool notices_take(struct str *s, char c)
{
	if (!s->len || s->ptr[0] != c)
		return false;
	*s = (struct str){ s->ptr + 1, s->len - 1 };
	return true;
}

/* Takes a word and the blank behind it. */
static bool notices_take_word(struct str *s, struct str *word)
{
	const char *blank = s->len ? memchr(s->ptr, ' ', s->len) : NULL;

	if (!blank || blank == s->ptr)
		return false;
	*word = (struct str){ s->ptr, (size_t)(blank - s->ptr) };
	*s = (struct str){ blank + 1, s->len - word->len - 1 };
	return true;
}

static bool notices_take_quoted(struct str *s, struct buf *text)
{
	if (!notices_take(s, '"'))
		return false;
	while (s->len && s->ptr[0] != '"') {
		if (notices_take(s, '\\') && !s->len)
			return false;
		buf_add_char(text, s->ptr[0]);
		*s = (struct str){ s->ptr + 1, s->len - 1 };
	}
	return notices_take(s, '"');
}

bool notices_read(struct str *rest, bool *is_info, struct buf *text)
{
	struct buf date = { 0 };
	struct str s = str_trim(*rest), code, agent;
	size_t before = text->len;
	bool ok;

	while (notices_take(&s, ','))
		s = str_trim(s);
	ok = notices_take_word(&s, &code) && code.len == 3 && notices_take_word(&s, &agent) &&
		notices_take_quoted(&s, text);
	s = str_trim(s);
	if (ok && s.len && s.ptr[0] == '"')
		ok = notices_take_quoted(&s, &date);
	buf_release(&date);
	s = str_trim(s);
	if (!ok || (s.len && s.ptr[0] != ',')) {
		text->len = before;
		return false;
	}
	*is_info = str_is(code, INFO_CODE);
	*rest = s;
	return true;
}

/* ---- comments and lines ---- */

static const char *notice_kind_of(const struct notice *n)
{
	return n->is_info ? "Info: " : "Warning: ";
}

enum err_code notices_add_comments(
	const struct notices *n, struct arena *a, struct pprof *p, struct err *err)
{
	struct notice_list l;
	struct str *strings;
	uint32_t *comments;
	enum err_code rc = notices_list(n, a, &l, err);

	if (rc || !l.n)
		return rc;
	strings = arena_array(a, struct str, (size_t)p->strings_n + l.n);
	comments = arena_array(a, uint32_t, (size_t)p->comments_n + l.n);
	if (!strings || !comments)
		return arena_fail(a, "warnings", err);
	memcpy(strings, p->strings, p->strings_n * sizeof(*strings));
	if (p->comments_n)
		memcpy(comments, p->comments, p->comments_n * sizeof(*comments));
	for (size_t i = 0; i < l.n; i++) {
		struct str *to = &strings[p->strings_n];

		*to = str_of(arena_printf(a, "%s" STR_FMT, notice_kind_of(&l.v[i]), STR_ARG(l.v[i].text)));
		if (!to->ptr)
			return arena_fail(a, "warnings", err);
		comments[p->comments_n++] = p->strings_n++;
	}
	p->strings = strings;
	p->comments = comments;
	return ERR_OK;
}

enum err_code notices_print(
	const struct notices *n, const char *prefix, struct arena *a, struct buf *out, struct err *err)
{
	struct notice_list l;
	enum err_code rc = notices_list(n, a, &l, err);

	for (size_t i = 0; i < l.n && !rc; i++)
		buf_printf(out, "%s%s" STR_FMT "\n", prefix, notice_kind_of(&l.v[i]), STR_ARG(l.v[i].text));
	return rc;
}
