#include "scrape/config/source_links.h"

#include "base/net/percent.h"
#include "base/quote.h"
#include "base/yaml/problems.h"

#define LINE "${line}"
#define PARTS_MAX 64u
#define LABELS_MAX 256u /* of all links */
#define KEPT "/:@" /* of values, besides what PERCENT_VALUE keeps */

/* ---- decoding ---- */

struct source_links_fields {
	struct str path, template;
	struct labels labels; /* name -> expression */
};

#define AT(member) offsetof(struct source_links_fields, member)
/* clang-format off */
static const struct yaml_field table[] = {
	{ "path", YAML_STRING, AT(path), NULL, NULL,
		"What the path of the file must match as a whole. Named groups can be used in the "
		"template.", 0, .takes = "regular expression", .unset = "any path" },
	{ "labels", YAML_STRING_MAP, AT(labels), NULL, NULL,
		"What labels of the series must match. Named groups can be used in the template.", 0,
		.takes = "map of labels to regular expressions", .limits = "at most 16" },
	{ "template", YAML_STRING, AT(template), NULL, NULL,
		"The link. `${path}`, `${line}`, groups and labels are filled in.", 0, .takes = "URL",
		.unset = "required", .example = "https://git.example/${path}#L${line}" },
};
/* clang-format on */
#undef AT

const struct yaml_schema source_link_schema = {
	.name = "source_link",
	.size = sizeof(struct source_links_fields),
	.fields = table,
	.fields_n = sizeof(table) / sizeof(table[0]),
};

static enum err_code source_links_compile(const struct yaml_node *n, const char *key,
	struct str pattern, struct regex **out, struct err *err)
{
	struct err why;
	enum err_code rc = regex_compile(pattern, REGEX_ANCHORED | REGEX_GROUPS, out, &why);

	if (rc)
		return yaml_err(yaml_get(n, key), err, rc, "%s: %s: %s", key, QUOTED(pattern), why.msg);
	if (regex_group_count(*out) < REGEX_GROUPS_MAX)
		return ERR_OK;
	return yaml_err(yaml_get(n, key), err, ERR_LIMIT, "%s: %s has more than %d groups", key,
		QUOTED(pattern), REGEX_GROUPS_MAX - 1);
}

static enum err_code source_links_compile_labels(struct yaml_ctx *ctx, const struct yaml_node *n,
	const struct source_links_fields *f, struct source_link *out, struct err *err)
{
	enum err_code rc;

	if (f->labels.n > SOURCE_LINK_LABELS_MAX)
		return yaml_err(
			yaml_get(n, "labels"), err, ERR_LIMIT, "more than %u labels", SOURCE_LINK_LABELS_MAX);
	if (!(out->labels = arena_array(ctx->arena, struct source_link_label, f->labels.n + 1)))
		return arena_fail(ctx->arena, "configuration", err);
	for (size_t i = 0; i < f->labels.n; i++) {
		struct source_link_label *l = &out->labels[out->labels_n++];

		l->name = f->labels.v[i].name;
		if (!label_name_valid(l->name))
			return yaml_err(yaml_get(n, "labels"), err, ERR_INVALID,
				"%s is not a valid label name: " LABEL_NAME_RULE, QUOTED(l->name));
		if ((rc = source_links_compile(n, "labels", f->labels.v[i].value, &l->re, err)))
			return rc;
	}
	return ERR_OK;
}

/* ---- the template ---- */

static struct source_link_part source_link_named(const struct source_link *l, struct str name)
{
	struct source_link_part p = { .what = SOURCE_LINK_GROUP };

	if (str_is(name, "path"))
		return (struct source_link_part){ .what = SOURCE_LINK_PATH };
	if (str_is(name, "line"))
		return (struct source_link_part){ .what = SOURCE_LINK_LINE };
	if (l->path && (p.group = regex_group_index(l->path, name)) > 0)
		return p;
	for (size_t i = 0; i < l->labels_n; i++) {
		p.of = i + 1;
		if ((p.group = regex_group_index(l->labels[i].re, name)) > 0)
			return p;
	}
	return (struct source_link_part){ .what = SOURCE_LINK_LABEL, .text = name };
}

/* One part at the beginning of *url, which it takes off. */
static enum err_code source_link_parse_part(const struct source_link *l, struct str *url,
	struct source_link_part *out, const struct yaml_node *n, struct err *err)
{
	const char *dollar = memchr(url->ptr, '$', url->len), *end;
	struct str name;
	size_t took = dollar ? (size_t)(dollar - url->ptr) : url->len;

	if (took) {
		*out = (struct source_link_part){ .what = SOURCE_LINK_TEXT, .text = { url->ptr, took } };
	} else {
		end = url->len > 1 && url->ptr[1] == '{' ? memchr(url->ptr, '}', url->len) : NULL;
		name = (struct str){ url->ptr + 2, end ? (size_t)(end - url->ptr) - 2 : 0 };
		if (!end || !label_name_valid(name))
			return yaml_err(n, err, ERR_INVALID,
				"template: a $ begins a name in braces, such as ${path}; one of the URL is %%24");
		*out = source_link_named(l, name);
		took = name.len + 3;
	}
	*url = (struct str){ url->ptr + took, url->len - took };
	return ERR_OK;
}

/* What is before the first variable holds the scheme and begins the host. */
static bool source_links_has_scheme(struct str url)
{
	return str_has_prefix(url, STR("http://")) || str_has_prefix(url, STR("https://"));
}

static enum err_code source_links_parse_url(struct yaml_ctx *ctx, const struct yaml_node *n,
	struct str url, struct source_link *out, struct err *err)
{
	const struct yaml_node *at = url.len ? yaml_get(n, "template") : n;
	enum err_code rc;

	if (!url.len)
		return yaml_err(at, err, ERR_INVALID, "template is missing");
	if (!source_links_has_scheme(url))
		return yaml_err(at, err, ERR_INVALID, "template: must begin with http:// or https://");
	for (size_t i = 0; i < url.len; i++)
		if ((unsigned char)url.ptr[i] <= ' ' || (unsigned char)url.ptr[i] >= 0x7f)
			return yaml_err(
				at, err, ERR_INVALID, "template: only printable ASCII without spaces is allowed");
	if (!(out->parts = arena_array(ctx->arena, struct source_link_part, PARTS_MAX)))
		return arena_fail(ctx->arena, "configuration", err);
	while (url.len) {
		if (out->parts_n == PARTS_MAX)
			return yaml_err(at, err, ERR_LIMIT, "template: more than %u parts", PARTS_MAX);
		if ((rc = source_link_parse_part(out, &url, &out->parts[out->parts_n++], at, err)))
			return rc;
	}
	return ERR_OK;
}

/* ---- all links ---- */

static enum err_code source_links_add_label(
	struct source_links *l, struct str name, const struct yaml_node *n, struct err *err)
{
	size_t at = 0;

	while (at < l->labels_n && str_cmp(l->labels[at], name) < 0)
		at++;
	if (at < l->labels_n && str_eq(l->labels[at], name))
		return ERR_OK;
	if (l->labels_n == LABELS_MAX)
		return yaml_err(n, err, ERR_LIMIT, "source_links: more than %u labels", LABELS_MAX);
	memmove(l->labels + at + 1, l->labels + at, (l->labels_n - at) * sizeof(*l->labels));
	l->labels[at] = name;
	l->labels_n++;
	return ERR_OK;
}

static enum err_code source_links_add_labels(struct source_links *l, const struct source_link *link,
	const struct yaml_node *n, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (size_t i = 0; !rc && i < link->labels_n; i++)
		rc = source_links_add_label(l, link->labels[i].name, n, err);
	for (size_t i = 0; !rc && i < link->parts_n; i++)
		if (link->parts[i].what == SOURCE_LINK_LABEL)
			rc = source_links_add_label(l, link->parts[i].text, n, err);
	return rc;
}

/* The caller releases what is there after a failure too. */
static enum err_code source_links_decode_link(
	struct yaml_ctx *ctx, const struct yaml_node *n, struct source_link *out, struct err *err)
{
	struct source_links_fields f = { 0 };
	enum err_code rc;

	if (yaml_is_null(n))
		return yaml_err(n, err, ERR_INVALID, "empty or null source_link section");
	if ((rc = yaml_decode(ctx, &source_link_schema, n, &f, err)) ||
		(f.path.len && (rc = source_links_compile(n, "path", f.path, &out->path, err))) ||
		(rc = source_links_compile_labels(ctx, n, &f, out, err)))
		return rc;
	return source_links_parse_url(ctx, n, f.template, out, err);
}

static enum err_code config_source_links_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, struct source_links *out, struct err *err)
{
	size_t before = yaml_errors(ctx);
	enum err_code rc;

	if (n->n > SOURCE_LINKS_MAX)
		return yaml_err(n, err, ERR_LIMIT, "more than %u source_links", SOURCE_LINKS_MAX);
	out->v = arena_array(ctx->arena, struct source_link, n->n + 1);
	out->labels = arena_array(ctx->arena, struct str, LABELS_MAX);
	if (!out->v || !out->labels)
		return arena_fail(ctx->arena, "configuration", err);
	for (const struct yaml_node *at = n->child; at; at = at->next) {
		struct source_link *link = &out->v[out->n++]; /* counted first: what is compiled is freed */

		if (!(rc = source_links_decode_link(ctx, at, link, err)))
			rc = source_links_add_labels(out, link, at, err);
		if (rc && !yaml_goes_on(ctx, rc, err))
			return rc;
	}
	return yaml_end(ctx, before, err);
}

enum err_code source_links_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, struct source_links *out, struct err *err)
{
	enum err_code rc = ERR_OK;

	*out = (struct source_links){ 0 };
	if (n && (rc = config_source_links_decode(ctx, n, out, err)))
		source_links_release(out);
	return rc;
}

void source_links_release(struct source_links *l)
{
	for (size_t i = 0; i < l->n; i++) {
		regex_free(l->v[i].path);
		for (size_t k = 0; k < l->v[i].labels_n; k++)
			regex_free(l->v[i].labels[k].re);
	}
	*l = (struct source_links){ 0 };
}

/* ---- URLs ---- */

static bool source_links_has_dot_dot(struct str s)
{
	for (size_t i = 0, n; i < s.len; i += n + 1) {
		for (n = 0; i + n < s.len && s.ptr[i + n] != '/'; n++)
			;
		if (n == 2 && s.ptr[i] == '.' && s.ptr[i + 1] == '.')
			return true;
	}
	return false;
}

/* False: the value is none for a URL. */
static bool source_links_add_value(struct buf *out, struct str value)
{
	if (!value.len || source_links_has_dot_dot(value))
		return false;
	for (size_t i = 0; i < value.len; i++)
		if (value.ptr[i] && strchr(KEPT, value.ptr[i]))
			buf_add_char(out, value.ptr[i]);
		else
			percent_encode(out, (struct str){ value.ptr + i, 1 }, PERCENT_VALUE);
	return true;
}

struct source_links_match { /* of one link */
	const struct source_link *link;
	struct str path, line;
	struct labels labels;
};

static struct str source_links_match_group_of(
	const struct source_links_match *m, const struct source_link_part *p)
{
	struct str group[REGEX_GROUPS_MAX] = { { 0 } }, value = m->path;
	const struct regex *re = m->link->path;

	if (p->of) {
		re = m->link->labels[p->of - 1].re;
		value = labels_get(m->labels, m->link->labels[p->of - 1].name);
	}
	return regex_groups(re, value, group) ? group[p->group] : (struct str){ 0 };
}

static bool source_links_add_part(
	struct buf *out, const struct source_links_match *m, const struct source_link_part *p)
{
	switch (p->what) {
	case SOURCE_LINK_TEXT:
		buf_add_str(out, p->text);
		return true;
	case SOURCE_LINK_PATH:
		return source_links_add_value(out, m->path);
	case SOURCE_LINK_LINE:
		buf_add_str(out, m->line.len ? m->line : STR(LINE));
		return true;
	case SOURCE_LINK_GROUP:
		return source_links_add_value(out, source_links_match_group_of(m, p));
	case SOURCE_LINK_LABEL:
		return source_links_add_value(out, labels_get(m->labels, p->text));
	}
	return false;
}

static bool source_links_match_fits(const struct source_links_match *m)
{
	const struct source_link *l = m->link;

	if (l->path && !regex_match(l->path, m->path))
		return false;
	for (size_t i = 0; i < l->labels_n; i++)
		if (!regex_match(l->labels[i].re, labels_get(m->labels, l->labels[i].name)))
			return false;
	return true;
}

static bool source_links_add_url(struct buf *out, const struct source_links_match *m)
{
	size_t before = out->len;
	bool whole = source_links_match_fits(m);

	for (size_t i = 0; whole && i < m->link->parts_n; i++)
		whole = source_links_add_part(out, m, &m->link->parts[i]);
	if (whole && !buf_failed(out) && out->len - before <= SOURCE_LINK_URL_BYTES_MAX)
		return true;
	out->len = before;
	return false;
}

bool source_links_url(const struct source_links *l, struct str path, struct str line,
	struct labels labels, struct buf *out)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct source_links_match m = { &l->v[i], path, line, labels };

		if (source_links_add_url(out, &m))
			return true;
	}
	return false;
}
