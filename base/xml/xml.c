/*
 * Expat's events become nodes in the caller's arena.
 *
 * The limits:
 * - Bytes: checked before Expat is called.
 * - Nesting and elements: checked as each element begins.
 * - Entities: a document type is refused before its first declaration, so no entity can expand.
 * - Expat's own memory is not the arena's. It is at most about ten times the text: 160 MiB for
 *   16 MiB of attributes with different names. It is freed before we return.
 *
 * Control characters: keys in object stores may hold them, and stores write them as references,
 * "&#1;". XML 1.0 does not have these characters, so Expat refuses the document. We hide them: in a
 * copy of the text, "&#1;" becomes "&_1;", an entity that nobody declares. Expat takes that for an
 * entity of an external document type, and skips it: xml_on_entity adds the character. A real
 * "&_1;" is an error; the original text tells them apart.
 */
#include "base/xml/xml.h"

#include <assert.h>
#include <expat.h>

struct xml {
	struct arena *arena;
	struct str in;
	XML_Parser parser;
	struct buf text; /* of the innermost element; not used once it has a child */
	size_t elements_n, elements_max;
	struct xml_node *open[XML_DEPTH_MAX]; /* from the root on */
	struct xml_node *last[XML_DEPTH_MAX]; /* child of each */
	unsigned depth;
	struct xml_node *root;
	enum err_code rc; /* set by a handler; Expat may call more of them, which do nothing */
	struct err *err;
};

static enum err_code xml_bad(struct xml *x, const char *what)
{
	return err_set(x->err, ERR_INVALID, "XML: %lu:%lu: %s",
		(unsigned long)XML_GetCurrentLineNumber(x->parser),
		(unsigned long)XML_GetCurrentColumnNumber(x->parser) + 1, what);
}

static void xml_stop(struct xml *x, enum err_code rc)
{
	x->rc = rc;
	XML_StopParser(x->parser, XML_FALSE);
}

/* ---- control characters ---- */

/* "1", "x1F", as in a reference: the character, or 0 if it is none that Expat refuses. */
static char xml_control(struct str s)
{
	bool hex = s.len && s.ptr[0] == 'x';
	unsigned base = hex ? 16 : 10, c = 0, digit;

	for (size_t i = hex; i < s.len; i++) {
		unsigned char d = (unsigned char)s.ptr[i];

		if (d >= '0' && d <= '9')
			digit = d - '0';
		else if (hex && (d | 0x20) >= 'a' && (d | 0x20) <= 'f')
			digit = (d | 0x20) - 'a' + 10u;
		else
			return 0;
		c = c * base + digit;
		if (c >= ' ')
			return 0;
	}
	return c == '\t' || c == '\n' || c == '\r' ? 0 : (char)c;
}

/* In UTF-16 the same bytes are other characters. */
static bool xml_is_utf16(struct str s)
{
	return s.len >= 2 && (!s.ptr[0] || !s.ptr[1] || (unsigned char)s.ptr[0] >= 0xfe);
}

/* s begins with "&#1;" or the like. */
static bool xml_is_control(struct str s)
{
	const char *end = memchr(s.ptr, ';', s.len < 14 ? s.len : 14);

	return end && end - s.ptr > 2 && s.ptr[0] == '&' && s.ptr[1] == '#' &&
		xml_control((struct str){ s.ptr + 2, (size_t)(end - s.ptr) - 2 });
}

/* Gives the text itself, or a copy without references to control characters. */
static enum err_code xml_hide_controls(struct xml *x, struct str *out)
{
	char *copy = NULL;

	*out = x->in;
	if (xml_is_utf16(x->in))
		return ERR_OK;
	for (size_t i = 0; i < x->in.len; i++) {
		struct str left = { x->in.ptr + i, x->in.len - i };
		ptrdiff_t cdata_end;

		if (left.ptr[0] == '<' && str_has_prefix(left, STR("<![CDATA["))) {
			if ((cdata_end = str_find(left, STR("]]>"))) < 0)
				break;
			i += (size_t)cdata_end; /* it has no references */
		} else if (left.ptr[0] == '&' && xml_is_control(left)) {
			if (!copy && !(copy = arena_strndup(x->arena, x->in.ptr, x->in.len)))
				return arena_fail(x->arena, "XML", x->err);
			copy[i + 1] = '_';
			out->ptr = copy;
		}
	}
	return ERR_OK;
}

/* ---- Expat's handlers ---- */

static void XMLCALL xml_on_text(void *ctx, const XML_Char *text, int n)
{
	struct xml *x = ctx;

	if (x->rc || x->open[x->depth - 1]->child)
		return;
	buf_add(&x->text, text, (size_t)n);
	if (buf_failed(&x->text))
		xml_stop(x, err_nomem(x->err, "XML"));
}

/* An entity that is not declared: a control character that we hid. */
static void XMLCALL xml_on_entity(void *ctx, const XML_Char *name, int is_parameter)
{
	struct xml *x = ctx;
	const char *at = x->in.ptr + XML_GetCurrentByteIndex(x->parser);
	char c = xml_control(str_of(name + 1));

	if (x->rc)
		return;
	if (at[1] == '#')
		xml_on_text(x, &c, 1);
	else
		xml_stop(x, xml_bad(x, XML_ErrorString(XML_ERROR_UNDEFINED_ENTITY)));
}

/* Before any declaration in it. */
static void XMLCALL xml_on_doctype(
	void *ctx, const XML_Char *name, const XML_Char *system, const XML_Char *public, int has_more)
{
	struct xml *x = ctx;

	xml_stop(x, err_set(x->err, ERR_UNSUPPORTED, "XML: a document type declaration"));
}

static enum err_code xml_add_node(struct xml *x, struct str name)
{
	struct xml_node *n, *parent = x->depth ? x->open[x->depth - 1] : NULL;

	if (x->depth == XML_DEPTH_MAX)
		return err_set(
			x->err, ERR_LIMIT, "XML: more than %d elements in one another", XML_DEPTH_MAX);
	if (x->elements_n++ == x->elements_max)
		return err_set(x->err, ERR_LIMIT, "XML: more than %zu elements", x->elements_max);
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
	if (parent)
		x->last[x->depth - 1] = n;
	buf_clear(&x->text);
	x->open[x->depth++] = n;
	return ERR_OK;
}

static void XMLCALL xml_on_open(void *ctx, const XML_Char *name, const XML_Char **attributes)
{
	struct xml *x = ctx;
	const char *colon = strrchr(name, ':');
	struct str local = str_of(colon ? colon + 1 : name);
	enum err_code rc;

	if (x->rc)
		return;
	if ((rc = local.len ? xml_add_node(x, local) : xml_bad(x, "a name is missing")))
		xml_stop(x, rc);
}

/* Expat has compared the names. */
static void XMLCALL xml_on_close(void *ctx, const XML_Char *name)
{
	struct xml *x = ctx;
	struct xml_node *n;

	if (x->rc)
		return;
	n = x->open[--x->depth];
	if (n->child || !x->text.len)
		return;
	n->text = str_dup(x->arena, buf_str(&x->text));
	if (!n->text.ptr)
		xml_stop(x, arena_fail(x->arena, "XML", x->err));
}

/* ---- documents ---- */

static enum err_code xml_read(struct xml *x, struct str text)
{
	enum XML_Error why;

	XML_SetUserData(x->parser, x);
	XML_SetElementHandler(x->parser, xml_on_open, xml_on_close);
	XML_SetCharacterDataHandler(x->parser, xml_on_text);
	XML_SetStartDoctypeDeclHandler(x->parser, xml_on_doctype);
	XML_SetSkippedEntityHandler(x->parser, xml_on_entity);
	XML_UseForeignDTD(x->parser, XML_TRUE); /* else it does not skip: see above */
	if (XML_Parse(x->parser, text.ptr, (int)text.len, XML_TRUE) == XML_STATUS_OK || x->rc)
		return x->rc;
	why = XML_GetErrorCode(x->parser);
	if (why == XML_ERROR_NO_MEMORY)
		return err_nomem(x->err, "XML");
	if (why == XML_ERROR_NO_ELEMENTS && x->depth) /* Expat's words would be "no element found" */
		return xml_bad(x, "the document ends within an element");
	return xml_bad(x, XML_ErrorString(why));
}

enum err_code xml_parse(struct arena *a, struct str text, struct xml_node **root, struct err *err)
{
	return xml_parse_up_to(a, text, XML_ELEMENTS_MAX, root, err);
}

enum err_code xml_parse_up_to(
	struct arena *a, struct str text, size_t elements_max, struct xml_node **root, struct err *err)
{
	struct xml x = { .arena = a, .elements_max = elements_max, .err = err };
	enum err_code rc;

	if (text.len > XML_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "XML: %zu bytes, limit %u", text.len, XML_BYTES_MAX);
	/*
	 * A store that works long sends white space meanwhile, so that the connection stays. Expat
	 * refuses an XML declaration behind it. Places in errors are counted from there.
	 */
	x.in.ptr = str_trim(text).ptr;
	x.in.len = text.len - (size_t)(x.in.ptr - text.ptr);
	if ((rc = xml_hide_controls(&x, &text)))
		return rc;
	x.parser = XML_ParserCreate(NULL);
	if (!x.parser)
		return err_nomem(err, "XML");
	rc = xml_read(&x, text);
	XML_ParserFree(x.parser);
	buf_release(&x.text);
	if (rc)
		return rc;
	assert(x.root && !x.depth);
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
