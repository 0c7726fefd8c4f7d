/*
 * libyaml's events become nodes in the caller's arena.
 *
 * The limits, and why they are enough:
 * - Bytes: checked before libyaml is called.
 * - Nesting: checked as events arrive. libyaml's cost per token grows with the flow depth (100,000
 *   "[" take 37 s), but it looks no further ahead than a simple key may reach, 1,024 characters; so
 *   the parse stops within that distance behind the first node that is too deep.
 * - Directives: libyaml compares each %TAG with all before it (1 MiB of them take 11 s) and does so
 *   before the first event, so lines that begin with % are counted before it starts.
 * - Nodes: an alias counts as many as its anchor each time it is used. It shares the children of
 * its anchor, so memory stays small, but whoever walks the tree walks them again.
 */
#include "base/yaml/yaml.h"

#include <assert.h>
#include <stdio.h>
#include <yaml.h>

#include "base/array.h"
#include "base/map.h"
#include "base/yaml/problems.h"

#define DIRECTIVES_MAX 16
#define KEYS_COMPARED_PAIRWISE 8 /* larger mappings need a table to find duplicate keys */

struct anchor {
	struct str name;
	struct yaml_node *node;
	size_t weight; /* nodes in the tree below and including node, aliases expanded */
	unsigned height; /* levels of that tree */
	bool open; /* still being read: an alias to it would be a cycle */
};

struct yaml_frame { /* a collection that is being read */
	struct yaml_node *node;
	struct yaml_node **tail;
	struct yaml_node *key; /* in a mapping: read, its value is awaited */
	size_t weight_before; /* reader's weight when it began */
	unsigned height; /* of its tallest child */
	uint32_t anchor; /* MAP_NONE: none */
};

struct yaml_reader {
	struct arena *arena;
	struct yaml_problems *problems; /* NULL: the first one ends it */
	const char *file;
	yaml_parser_t parser;
	struct yaml_frame frames[YAML_DEPTH_MAX];
	unsigned depth;
	size_t weight;
	struct yaml_node *root;
	struct anchor *anchors;
	uint32_t anchors_n, anchors_cap;
	struct map anchor_ids;
};

enum err_code yaml_err(
	const struct yaml_node *n, struct err *err, enum err_code code, const char *fmt, ...)
{
	va_list ap;
	char msg[sizeof(err->msg)];

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	if (!n || !n->file)
		return err_set(err, code, "%s", msg);
	return err_set(err, code, "%s:%u:%u: %s", n->file, n->line, n->column, msg);
}

struct yaml_node *yaml_get(const struct yaml_node *mapping, const char *key)
{
	struct yaml_node *c;

	if (!mapping || mapping->kind != YAML_MAPPING)
		return NULL;
	for (c = mapping->child; c; c = c->next)
		if (str_is(c->key->text, key))
			return c;
	return NULL;
}

bool yaml_is_null(const struct yaml_node *n)
{
	if (!n)
		return true;
	return n->kind == YAML_SCALAR && n->plain &&
		(n->text.len == 0 || str_is(n->text, "~") || str_is(n->text, "null") ||
			str_is(n->text, "Null") || str_is(n->text, "NULL"));
}

static enum err_code yaml_reader_error_at(const struct yaml_reader *r, yaml_mark_t at,
	struct err *err, enum err_code code, const char *msg)
{
	return err_set(err, code, "%s:%zu:%zu: %s", r->file, at.line + 1, at.column + 1, msg);
}

static enum err_code yaml_check_size(const char *file, struct str text, struct err *err)
{
	unsigned line = 1, directives = 0;
	size_t i;

	if (text.len > YAML_FILE_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "%s:1:1: file is %zu bytes, limit %u", file, text.len,
			YAML_FILE_BYTES_MAX);
	for (i = 0; i < text.len; i++) {
		if (text.ptr[i] == '%' && (i == 0 || text.ptr[i - 1] == '\n' || text.ptr[i - 1] == '\r') &&
			++directives > DIRECTIVES_MAX)
			return err_set(
				err, ERR_LIMIT, "%s:%u:1: more than %d directives", file, line, DIRECTIVES_MAX);
		line += text.ptr[i] == '\n';
	}
	return ERR_OK;
}

/* libyaml's own error, in our form. A reader error has an offset in bytes and no mark. */
static enum err_code yaml_reader_parser_error(
	const struct yaml_reader *r, struct str text, struct err *err)
{
	const yaml_parser_t *p = &r->parser;
	const char *problem = p->problem ? p->problem : "not YAML";
	size_t line = 1, column = 1, i;

	switch (p->error) {
	case YAML_MEMORY_ERROR:
		return err_nomem(err, r->file);
	case YAML_READER_ERROR:
		for (i = 0; i < p->problem_offset && i < text.len; i++) {
			column = text.ptr[i] == '\n' ? 1 : column + 1;
			line += text.ptr[i] == '\n';
		}
		return err_set(err, ERR_INVALID, "%s:%zu:%zu: %s", r->file, line, column, problem);
	default:
		break;
	}
	if (!p->context)
		return yaml_reader_error_at(r, p->problem_mark, err, ERR_INVALID, problem);
	return err_set(err, ERR_INVALID, "%s:%zu:%zu: %s (%s at %zu:%zu)", r->file,
		p->problem_mark.line + 1, p->problem_mark.column + 1, problem, p->context,
		p->context_mark.line + 1, p->context_mark.column + 1);
}

/* -------------------------------------------------------------------------------------------- */
/* Anchors */

static bool anchor_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct yaml_reader *r = ctx;
	const struct str *name = key;

	return str_eq(r->anchors[id].name, *name);
}

static uint32_t anchor_find(const struct yaml_reader *r, struct str name)
{
	return map_find(&r->anchor_ids, hash_bytes(name.ptr, name.len, 0), anchor_eq, r, &name);
}

/* A name that is used again means the newer node from here on. */
static enum err_code anchor_add(
	struct yaml_reader *r, const char *name, struct yaml_node *n, uint32_t *out, struct err *err)
{
	struct str s = str_of(name);
	uint32_t id = anchor_find(r, s);

	if (id == MAP_NONE) {
		if (!arena_array_room(r->arena, &r->anchors, r->anchors_n, 1, &r->anchors_cap))
			return arena_fail(r->arena, r->file, err);
		id = r->anchors_n;
		r->anchors[id].name = str_dup(r->arena, s);
		if (!r->anchors[id].name.ptr)
			return arena_fail(r->arena, r->file, err);
		if (!map_add(&r->anchor_ids, hash_bytes(s.ptr, s.len, 0), id))
			return err_nomem(err, r->file);
		r->anchors_n++;
	}
	r->anchors[id].node = n;
	r->anchors[id].weight = 1;
	r->anchors[id].height = 1;
	r->anchors[id].open = n->kind != YAML_SCALAR;
	*out = id;
	return ERR_OK;
}

/* -------------------------------------------------------------------------------------------- */
/* Building */

static enum err_code yaml_reader_add_weight(
	struct yaml_reader *r, size_t weight, yaml_mark_t at, struct err *err)
{
	r->weight += weight; /* both at most YAML_NODES_MAX, so no overflow */
	if (r->weight > YAML_NODES_MAX)
		return err_set(err, ERR_LIMIT, "%s:%zu:%zu: more than %u nodes, aliases expanded", r->file,
			at.line + 1, at.column + 1, YAML_NODES_MAX);
	return ERR_OK;
}

static enum err_code yaml_reader_node_new(struct yaml_reader *r, enum yaml_kind kind,
	yaml_mark_t at, struct yaml_node **out, struct err *err)
{
	struct yaml_node *n;
	enum err_code rc;

	if ((rc = yaml_reader_add_weight(r, 1, at, err)))
		return rc;
	n = arena_new(r->arena, struct yaml_node);
	if (!n)
		return arena_fail(r->arena, r->file, err);
	n->kind = kind;
	n->file = r->file;
	n->line = (uint32_t)at.line + 1;
	n->column = (uint32_t)at.column + 1;
	*out = n;
	return ERR_OK;
}

/* Puts a node (with `height` levels, itself included) where the document is being read. */
static enum err_code yaml_reader_place(
	struct yaml_reader *r, struct yaml_node *n, unsigned height, yaml_mark_t at, struct err *err)
{
	struct yaml_frame *f = r->depth ? &r->frames[r->depth - 1] : NULL;

	if (r->depth + height > YAML_DEPTH_MAX)
		return err_set(err, ERR_LIMIT, "%s:%zu:%zu: nested too deeply, limit %d levels", r->file,
			at.line + 1, at.column + 1, YAML_DEPTH_MAX);
	if (!f) {
		r->root = n;
		return ERR_OK;
	}
	if (f->height < height)
		f->height = height;
	if (f->node->kind == YAML_MAPPING && !f->key) {
		if (n->kind != YAML_SCALAR)
			return yaml_reader_error_at(
				r, at, err, ERR_INVALID, "a mapping's key must be a scalar");
		f->key = n;
		return ERR_OK;
	}
	n->key = f->key;
	f->key = NULL;
	*f->tail = n;
	f->tail = &n->next;
	f->node->n++;
	return ERR_OK;
}

/* !!int "3" is as good as 3, and !!str 3 as good as "3"; tags of other kinds mean nothing to us. */
static enum err_code yaml_reader_read_tag(struct yaml_reader *r, const yaml_event_t *event,
	const char *tag, struct yaml_node *n, struct err *err)
{
	static const char core[] = "tag:yaml.org,2002:";
	static const struct {
		const char *name;
		enum yaml_kind kind;
		bool plain;
	} tags[] = {
		{ "str", YAML_SCALAR, false },
		{ "int", YAML_SCALAR, true },
		{ "bool", YAML_SCALAR, true },
		{ "float", YAML_SCALAR, true },
		{ "null", YAML_SCALAR, true },
		{ "seq", YAML_SEQUENCE, false },
		{ "map", YAML_MAPPING, false },
	};

	if (!tag)
		return ERR_OK;
	if (strcmp(tag, "!") == 0) {
		n->plain = false;
		return ERR_OK;
	}
	if (strncmp(tag, core, sizeof(core) - 1) == 0) {
		for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
			if (tags[i].kind == n->kind && strcmp(tag + sizeof(core) - 1, tags[i].name) == 0) {
				n->plain = tags[i].plain;
				return ERR_OK;
			}
		}
	}
	return err_set(err, ERR_INVALID, "%s:%zu:%zu: tag %.64s is not known here", r->file,
		event->start_mark.line + 1, event->start_mark.column + 1, tag);
}

static enum err_code yaml_reader_on_scalar(
	struct yaml_reader *r, const yaml_event_t *event, struct err *err)
{
	struct yaml_node *n;
	enum err_code rc;
	uint32_t id;

	if ((rc = yaml_reader_node_new(r, YAML_SCALAR, event->start_mark, &n, err)))
		return rc;
	n->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	n->text = str_dup(r->arena,
		(struct str){ (const char *)event->data.scalar.value, event->data.scalar.length });
	if (!n->text.ptr)
		return arena_fail(r->arena, r->file, err);
	if ((rc = yaml_reader_read_tag(r, event, (const char *)event->data.scalar.tag, n, err)))
		return rc;
	if (event->data.scalar.anchor &&
		(rc = anchor_add(r, (const char *)event->data.scalar.anchor, n, &id, err)))
		return rc;
	return yaml_reader_place(r, n, 1, event->start_mark, err);
}

static enum err_code yaml_reader_on_start(
	struct yaml_reader *r, const yaml_event_t *event, enum yaml_kind kind, struct err *err)
{
	bool seq = kind == YAML_SEQUENCE;
	const yaml_char_t *anchor = seq ? event->data.sequence_start.anchor :
									  event->data.mapping_start.anchor;
	const char *name = (const char *)anchor;
	const char *tag = (const char *)(seq ? event->data.sequence_start.tag :
										   event->data.mapping_start.tag);
	uint32_t id = MAP_NONE;
	struct yaml_node *n;
	enum err_code rc;

	if ((rc = yaml_reader_node_new(r, kind, event->start_mark, &n, err)) ||
		(rc = yaml_reader_read_tag(r, event, tag, n, err)) ||
		(name && (rc = anchor_add(r, name, n, &id, err))) ||
		(rc = yaml_reader_place(r, n, 1, event->start_mark, err)))
		return rc;
	r->frames[r->depth++] = (struct yaml_frame){
		.node = n, .tail = &n->child, .weight_before = r->weight - 1, .anchor = id
	};
	return ERR_OK;
}

/* The first of them counts. With all problems wanted, the file is read on. */
static enum err_code yaml_reader_key_twice(struct yaml_reader *r, const struct yaml_node *first,
	const struct yaml_node *again, struct err *err)
{
	struct err why;
	enum err_code rc;

	rc = yaml_err(again->key, &why, ERR_INVALID, "mapping key \"%.*s\" already defined at line %u",
		(int)(again->key->text.len < 128 ? again->key->text.len : 128), again->key->text.ptr,
		first->key->line);
	if (r->problems) {
		yaml_problems_add(r->problems, &why);
		if (r->problems->errors_n < YAML_PROBLEMS_MAX)
			return ERR_OK;
		r->problems->noted = true;
	}
	return err_set(err, rc, "%s", why.msg);
}

static bool yaml_key_eq(const void *ctx, const void *key, uint32_t id)
{
	struct yaml_node *const *members = ctx;
	const struct str *k = key;

	return str_eq(members[id]->key->text, *k);
}

/* The member before y with y's key; NULL: there is none. */
static const struct yaml_node *yaml_node_find_before(
	const struct yaml_node *mapping, const struct yaml_node *y)
{
	for (const struct yaml_node *d = mapping->child; d != y; d = d->next)
		if (str_eq(y->key->text, d->key->text))
			return d;
	return NULL;
}

/* Takes members out whose key was there already. */
static enum err_code yaml_reader_check_keys(
	struct yaml_reader *r, struct yaml_node *mapping, struct err *err)
{
	bool pairwise = mapping->n <= KEYS_COMPARED_PAIRWISE;
	struct yaml_node **members = NULL, **link = &mapping->child, *c;
	const struct yaml_node *first;
	enum err_code rc = ERR_OK;
	struct map seen;
	uint32_t n = 0;

	if (!pairwise && !(members = arena_array(r->arena, struct yaml_node *, mapping->n)))
		return arena_fail(r->arena, r->file, err);
	map_init(&seen);
	while (!rc && (c = *link)) {
		uint64_t hash = pairwise ? 0 : hash_bytes(c->key->text.ptr, c->key->text.len, 0);
		uint32_t id = pairwise ? MAP_NONE :
								 map_find(&seen, hash, yaml_key_eq, members, &c->key->text);

		first = pairwise ? yaml_node_find_before(mapping, c) : id == MAP_NONE ? NULL : members[id];
		if (first) {
			rc = yaml_reader_key_twice(r, first, c, err);
			*link = c->next;
			mapping->n--;
			continue;
		}
		link = &c->next;
		if (pairwise)
			continue;
		members[n] = c;
		if (!map_add(&seen, hash, n++))
			rc = err_nomem(err, r->file);
	}
	map_release(&seen);
	return rc;
}

static enum err_code yaml_reader_on_end(struct yaml_reader *r, struct err *err)
{
	struct yaml_frame f, *parent;

	assert(r->depth > 0); /* libyaml pairs its events */
	f = r->frames[--r->depth];
	parent = r->depth ? &r->frames[r->depth - 1] : NULL;
	assert(f.node->kind != YAML_SCALAR && !f.key && f.weight_before <= r->weight);
	if (parent && parent->height < f.height + 1)
		parent->height = f.height + 1;
	/* The name may have passed to a newer node inside this one. */
	if (f.anchor != MAP_NONE && r->anchors[f.anchor].node == f.node) {
		r->anchors[f.anchor].weight = r->weight - f.weight_before;
		r->anchors[f.anchor].height = f.height + 1;
		r->anchors[f.anchor].open = false;
	}
	return f.node->kind == YAML_MAPPING ? yaml_reader_check_keys(r, f.node, err) : ERR_OK;
}

static enum err_code yaml_reader_on_alias(
	struct yaml_reader *r, const yaml_event_t *event, struct err *err)
{
	struct str name = str_of((const char *)event->data.alias.anchor);
	uint32_t id = anchor_find(r, name);
	const struct anchor *a = id == MAP_NONE ? NULL : &r->anchors[id];
	struct yaml_node *n;
	enum err_code rc;

	if (!a || a->open)
		return err_set(err, ERR_INVALID, "%s:%zu:%zu: %s \"%.64s\" %s", r->file,
			event->start_mark.line + 1, event->start_mark.column + 1,
			a ? "anchor" : "unknown anchor", name.ptr, a ? "contains itself" : "referenced");
	if ((rc = yaml_reader_add_weight(r, a->weight, event->start_mark, err)))
		return rc;
	n = arena_new(r->arena, struct yaml_node);
	if (!n)
		return arena_fail(r->arena, r->file, err);
	*n = *a->node; /* shares children and their places: errors show the place of the anchor */
	n->key = n->next = NULL;
	return yaml_reader_place(r, n, a->height, event->start_mark, err);
}

static enum err_code yaml_reader_on_event(
	struct yaml_reader *r, const yaml_event_t *event, struct err *err)
{
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (r->root)
			return yaml_reader_error_at(
				r, event->start_mark, err, ERR_INVALID, "expected one document");
		return ERR_OK;
	case YAML_ALIAS_EVENT:
		return yaml_reader_on_alias(r, event, err);
	case YAML_SCALAR_EVENT:
		return yaml_reader_on_scalar(r, event, err);
	case YAML_SEQUENCE_START_EVENT:
		return yaml_reader_on_start(r, event, YAML_SEQUENCE, err);
	case YAML_MAPPING_START_EVENT:
		return yaml_reader_on_start(r, event, YAML_MAPPING, err);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		return yaml_reader_on_end(r, err);
	default:
		return ERR_OK;
	}
}

enum err_code yaml_parse(
	struct arena *a, const char *file, struct str text, struct yaml_node **out, struct err *err)
{
	return yaml_parse_all(a, file, text, NULL, out, err);
}

enum err_code yaml_parse_all(struct arena *a, const char *file, struct str text,
	struct yaml_problems *problems, struct yaml_node **out, struct err *err)
{
	struct yaml_reader r = { .arena = a, .problems = problems };
	bool end = false;
	yaml_event_t e;
	enum err_code rc;

	if ((rc = yaml_check_size(file, text, err)))
		return rc;
	r.file = arena_strndup(a, file, strlen(file));
	if (!r.file)
		return arena_fail(a, file, err);
	if (!yaml_parser_initialize(&r.parser))
		return err_nomem(err, file);
	map_init(&r.anchor_ids);
	yaml_parser_set_input_string(
		&r.parser, (const unsigned char *)(text.len ? text.ptr : ""), text.len);
	while (!rc && !end) { /* each event takes input or closes a collection */
		if (!yaml_parser_parse(&r.parser, &e)) {
			rc = yaml_reader_parser_error(&r, text, err);
			break;
		}
		end = e.type == YAML_STREAM_END_EVENT;
		rc = yaml_reader_on_event(&r, &e, err);
		yaml_event_delete(&e);
	}
	if (!rc && !r.root &&
		!(rc = yaml_reader_node_new(&r, YAML_SCALAR, (yaml_mark_t){ 0 }, &r.root, err)))
		r.root->plain = true; /* an empty file is null */
	yaml_parser_delete(&r.parser);
	map_release(&r.anchor_ids);
	assert(rc || (r.root && !r.depth && r.weight <= YAML_NODES_MAX));
	if (!rc)
		*out = r.root;
	return rc;
}
