/*
 * XML: the answers of servers as trees, within limits. Expat reads them.
 *
 * Elements and their text; attributes, comments and processing instructions are read and dropped.
 * The five entities of XML and numeric ones are resolved; there are no others, since a document
 * type declaration is refused. A numeric one may be a control character, which XML 1.0 does not
 * allow: keys of object stores hold them. The text of an element that has children is dropped.
 *
 * Units:     the text is UTF-8, or ISO-8859-1, US-ASCII or UTF-16 if it says so; the tree is UTF-8.
 * Errors:    ERR_INVALID (with line and column), ERR_LIMIT, ERR_NOMEM,
 *            ERR_UNSUPPORTED (a document type).
 * Ownership: the tree lives in the arena; it does not point into the text.
 * Threads:   values.
 * Source:    Extensible Markup Language (XML) 1.0; expat.h.
 */
#ifndef BASE_XML_XML_H
#define BASE_XML_XML_H

#include "base/str.h"

#define XML_BYTES_MAX (16u << 20) /* 1,000 keys of 1,024 bytes, each byte an entity of six */
#define XML_DEPTH_MAX 16
#define XML_ELEMENTS_MAX 65536u

struct xml_node {
	struct str name; /* without a namespace's prefix */
	struct str text;
	struct xml_node *child, *next; /* in the order of the document */
};

MUST_CHECK enum err_code xml_parse(
	struct arena *a, struct str text, struct xml_node **root, struct err *err);
/* The same with another limit than XML_ELEMENTS_MAX. */
MUST_CHECK enum err_code xml_parse_up_to(
	struct arena *a, struct str text, size_t elements_max, struct xml_node **root, struct err *err);

/* The first child of that name, or NULL. n NULL: NULL. */
const struct xml_node *xml_child(const struct xml_node *n, const char *name);
/* The next sibling of the same name, or NULL. */
const struct xml_node *xml_next(const struct xml_node *n);
/* The text of the first child of that name, or "". n NULL: "". */
struct str xml_text(const struct xml_node *n, const char *name);

#endif
