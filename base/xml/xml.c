#include "base/xml/xml.h"

#include <string.h>

#include "base/quote.h"

struct xml {
	struct arena *arena;
	struct str in;
	size_t at;
	char *texts; /* decoded, one after the other: decoding makes no text longer */
	size_t texts_n;
	size_t elements_n, elements_max;
	struct xml_node *open[XML_DEPTH_MAX]; /* from the root on */
	struct xml_node *last[XML_DEPTH_MAX]; /* child of each */
	unsigned depth;
	struct xml_node *root;
	struct err *err;
};

static enum err_code xml_bad(struct xml *x, const char *what)
{
	return err_set(x->err, ERR_INVALID, "XML: %s at byte %zu", what, x->at);
}

static bool xml_looks_at(const struct xml *x, const char *what)
{
	size_t n = strlen(what);

	return x->in.len - x->at >= n && memcmp(x->in.ptr + x->at, what, n) == 0;
}

static bool xml_is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool xml_is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
		c == ':' || c == '-' || c == '.' || (c & 0x80);
}

static void xml_skip_space(struct xml *x)
{
	while (x->at < x->in.len && xml_is_space(x->in.ptr[x->at]))
		x->at++;
}

/* Behind the next `end`. */
static enum err_code xml_skip_to(struct xml *x, const char *end, const char *what)
{
	size_t n = strlen(end);
	const char *p = memmem(x->in.ptr + x->at, x->in.len - x->at, end, n);

	if (!p)
		return xml_bad(x, what);
	x->at = (size_t)(p - x->in.ptr) + n;
	return ERR_OK;
}

static enum err_code xml_read_name(struct xml *x, struct str *out)
{
	size_t from = x->at;

	while (x->at < x->in.len && xml_is_name(x->in.ptr[x->at]))
		x->at++;
	*out = (struct str){ x->in.ptr + from, x->at - from };
	return out->len ? ERR_OK : xml_bad(x, "a name is missing");
}

/* ---- text ---- */

/* "#38", "#x26": the character, or 0. Control characters are taken: keys may hold them. */
static uint32_t xml_numeric(struct str s)
{
	bool hex = s.len > 1 && s.ptr[1] == 'x';
	uint32_t c = 0;

	s.ptr += hex ? 2 : 1;
	s.len -= hex ? 2 : 1;
	if (!s.len || s.len > 8)
		return 0;
	for (size_t i = 0; i < s.len; i++) {
		char d = s.ptr[i];

		if (d >= '0' && d <= '9')
			c = c * (hex ? 16 : 10) + (uint32_t)(d - '0');
		else if (hex && (d | 0x20) >= 'a' && (d | 0x20) <= 'f')
			c = c * 16 + (uint32_t)((d | 0x20) - 'a' + 10);
		else
			return 0;
	}
	return c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff) ? 0 : c;
}

static enum err_code xml_entity(struct xml *x)
{
	static const struct {
		struct str name;
		char c;
	} known[] = { { STR("amp"), '&' },
		{ STR("lt"), '<' }, { STR("gt"), '>' }, { STR("quot"), '"' }, { STR("apos"), '\'' } };
	size_t left = x->in.len - x->at - 1;
	const char *end = memchr(x->in.ptr + x->at + 1, ';', left < 12 ? left : 12);
	struct str name;
	uint32_t c = 0;

	if (!end)
		return xml_bad(x, "\"&\" without an entity");
	name = (struct str){ x->in.ptr + x->at + 1, (size_t)(end - x->in.ptr) - x->at - 1 };
	if (name.len && name.ptr[0] == '#')
		c = xml_numeric(name);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (str_eq(name, known[i].name))
			c = (unsigned char)known[i].c;
	if (!c)
		return xml_bad(x, "unknown entity");
	x->texts_n += utf8_write(c, x->texts + x->texts_n);
	x->at += name.len + 2;
	return ERR_OK;
}

static void xml_keep(struct xml *x, const char *p, size_t n)
{
	memcpy(x->texts + x->texts_n, p, n);
	x->texts_n += n;
}

/* What was decoded since `from` is text of the innermost element. */
static enum err_code xml_add_text(struct xml *x, size_t from)
{
	struct xml_node *n = x->depth ? x->open[x->depth - 1] : NULL;

	if (!n) {
		for (size_t i = from; i < x->texts_n; i++)
			if (!xml_is_space(x->texts[i]))
				return xml_bad(x, "text outside of the root element");
		x->texts_n = from;
		return ERR_OK;
	}
	if (n->child) {
		x->texts_n = from;
		return ERR_OK;
	}
	if (!n->text.len)
		n->text.ptr = x->texts + from;
	n->text.len += x->texts_n - from;
	return ERR_OK;
}

static enum err_code xml_read_text(struct xml *x)
{
	size_t from = x->texts_n;
	enum err_code rc;

	while (x->at < x->in.len && x->in.ptr[x->at] != '<') {
		if (x->in.ptr[x->at] == '&') {
			if ((rc = xml_entity(x)))
				return rc;
		} else {
			xml_keep(x, x->in.ptr + x->at++, 1);
		}
	}
	return xml_add_text(x, from);
}

static enum err_code xml_read_cdata(struct xml *x)
{
	size_t from = x->texts_n, begin;
	enum err_code rc;

	x->at += strlen("<![CDATA[");
	begin = x->at;
	if ((rc = xml_skip_to(x, "]]>", "CDATA has no end")))
		return rc;
	xml_keep(x, x->in.ptr + begin, x->at - begin - 3);
	return xml_add_text(x, from);
}

/* ---- elements ---- */

/* Without a namespace's prefix; so it has no colon. */
static enum err_code xml_read_local_name(struct xml *x, struct str *out)
{
	enum err_code rc = xml_read_name(x, out);
	const char *colon;

	if (!rc && (colon = memrchr(out->ptr, ':', out->len))) {
		out->len -= (size_t)(colon - out->ptr) + 1;
		out->ptr = colon + 1;
	}
	return rc || out->len ? rc : xml_bad(x, "a name is missing");
}

static enum err_code xml_skip_attributes(struct xml *x)
{
	struct str name;
	enum err_code rc;
	const char *end;
	char quote;

	for (;;) {
		xml_skip_space(x);
		if (x->at == x->in.len)
			return xml_bad(x, "an element has no end");
		if (x->in.ptr[x->at] == '>' || x->in.ptr[x->at] == '/')
			return ERR_OK;
		if ((rc = xml_read_name(x, &name)))
			return rc;
		xml_skip_space(x);
		if (!xml_looks_at(x, "="))
			return xml_bad(x, "an attribute has no value");
		x->at++;
		xml_skip_space(x);
		quote = x->at < x->in.len ? x->in.ptr[x->at] : '\0';
		if (quote != '"' && quote != '\'')
			return xml_bad(x, "an attribute's value is not quoted");
		x->at++;
		end = memchr(x->in.ptr + x->at, quote, x->in.len - x->at);
		if (!end)
			return xml_bad(x, "an attribute's value has no end");
		x->at = (size_t)(end - x->in.ptr) + 1;
	}
}

static enum err_code xml_add_node(struct xml *x, struct str name)
{
	struct xml_node *n, *parent = x->depth ? x->open[x->depth - 1] : NULL;

	if (x->depth == XML_DEPTH_MAX)
		return err_set(
			x->err, ERR_LIMIT, "XML: more than %d elements in one another", XML_DEPTH_MAX);
	if (x->elements_n++ == x->elements_max)
		return err_set(x->err, ERR_LIMIT, "XML: more than %zu elements", x->elements_max);
	if (!parent && x->root)
		return xml_bad(x, "a second root element");
	n = arena_new(x->arena, struct xml_node);
	if (!n)
		return arena_fail(x->arena, "XML", x->err);
	n->name = str_dup(x->arena, name);
	n->text = STR("");
	if (!n->name.ptr)
		return arena_fail(x->arena, "XML", x->err);
	if (!parent)
		x->root = n;
	else if (!parent->child)
		parent->child = n;
	else
		x->last[x->depth - 1]->next = n;
	if (parent) {
		x->last[x->depth - 1] = n;
		parent->text = STR("");
	}
	x->open[x->depth++] = n;
	return ERR_OK;
}

static enum err_code xml_read_open(struct xml *x)
{
	struct str name;
	enum err_code rc;

	x->at++;
	if ((rc = xml_read_local_name(x, &name)) || (rc = xml_add_node(x, name)) ||
		(rc = xml_skip_attributes(x)))
		return rc;
	if (xml_looks_at(x, "/")) {
		x->at++;
		x->depth--;
	}
	if (!xml_looks_at(x, ">"))
		return xml_bad(x, "an element has no end");
	x->at++;
	return ERR_OK;
}

static enum err_code xml_read_close(struct xml *x)
{
	struct str name;
	enum err_code rc;

	x->at += 2;
	if ((rc = xml_read_local_name(x, &name)))
		return rc;
	if (!x->depth || !str_eq(name, x->open[x->depth - 1]->name))
		return xml_bad(x, "an end that belongs to no element");
	xml_skip_space(x);
	if (!xml_looks_at(x, ">"))
		return xml_bad(x, "an element has no end");
	x->at++;
	x->depth--;
	return ERR_OK;
}

static enum err_code xml_read_markup(struct xml *x)
{
	if (xml_looks_at(x, "<![CDATA["))
		return xml_read_cdata(x);
	if (xml_looks_at(x, "<!--"))
		return xml_skip_to(x, "-->", "a comment has no end");
	if (xml_looks_at(x, "<?"))
		return xml_skip_to(x, "?>", "a processing instruction has no end");
	if (xml_looks_at(x, "<!"))
		return err_set(x->err, ERR_UNSUPPORTED, "XML: a document type declaration");
	return xml_looks_at(x, "</") ? xml_read_close(x) : xml_read_open(x);
}

enum err_code xml_parse(struct arena *a, struct str text, struct xml_node **root, struct err *err)
{
	return xml_parse_up_to(a, text, XML_ELEMENTS_MAX, root, err);
}

enum err_code xml_parse_up_to(
	struct arena *a, struct str text, size_t elements_max, struct xml_node **root, struct err *err)
{
	struct xml x = { .arena = a, .in = text, .elements_max = elements_max, .err = err };
	enum err_code rc = ERR_OK;

	if (text.len > XML_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "XML: %zu bytes, limit %u", text.len, XML_BYTES_MAX);
	x.texts = arena_alloc_raw(a, text.len + 1, 1);
	if (!x.texts)
		return arena_fail(a, "XML", err);
	if (xml_looks_at(&x, "\xef\xbb\xbf"))
		x.at = 3;
	while (!rc && x.at < text.len) /* each turn takes at least a byte */
		rc = text.ptr[x.at] == '<' ? xml_read_markup(&x) : xml_read_text(&x);
	if (rc)
		return rc;
	if (x.depth)
		return xml_bad(&x, "the document ends within an element");
	if (!x.root)
		return xml_bad(&x, "no element");
	*root = x.root;
	return ERR_OK;
}

/* ---- for readers ---- */

static const struct xml_node *xml_node_find(const struct xml_node *n, struct str name)
{
	while (n && !str_eq(n->name, name))
		n = n->next;
	return n;
}

const struct xml_node *xml_child(const struct xml_node *n, const char *name)
{
	return n ? xml_node_find(n->child, str_of(name)) : NULL;
}

const struct xml_node *xml_next(const struct xml_node *n)
{
	return xml_node_find(n->next, n->name);
}

struct str xml_text(const struct xml_node *n, const char *name)
{
	n = xml_child(n, name);
	return n ? n->text : STR("");
}
