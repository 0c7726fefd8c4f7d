/*
 * Rule files: YAML to groups of rules.
 */
#include "promql/rules/rules.h"

#include <assert.h>
#include <glob.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/quote.h"
#include "base/yaml/problems.h"
#include "promql/rules/check.h"

#define ARENA_BYTES_MAX ((size_t)1 << 30)
#define INTERVAL_DEFAULT_NS NS_PER_MIN /* if neither group nor configuration has one */

struct rules_group_fields {
	struct str name;
	int64_t interval_ns, query_offset_ns;
	uint64_t limit;
	struct labels labels;
	const struct yaml_node *rules;
	bool offset_set;
};

struct rules_file_fields {
	const struct yaml_node *groups;
};

static enum err_code rules_keep_node(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	if (n->kind != YAML_SEQUENCE)
		return yaml_err(n, err, ERR_INVALID, "cannot unmarshal %s into a list", yaml_tag(n));
	*(const struct yaml_node **)field = n;
	return ERR_OK;
}

static const struct yaml_schema rules_group_schema, rules_rule_schema;

/* clang-format off */
#define AT(member) offsetof(struct rules_file_fields, member)
static const struct yaml_field file_table[] = {
	{ "groups", YAML_CUSTOM, AT(groups), &rules_group_schema, rules_keep_node, "Groups of rules.",
		0, .takes = "list of" },
};
#undef AT

#define AT(member) offsetof(struct rules_group_fields, member)
static const struct yaml_field group_table[] = {
	{ "name", YAML_STRING, AT(name), NULL, NULL, "The name of the group, once in its file.", 0,
		.unset = "required" },
	{ "interval", YAML_DURATION, AT(interval_ns), NULL, NULL, "How often the group is evaluated.",
		0, .unset = "`evaluation_interval` of `global`" },
	{ "query_offset", YAML_DURATION, AT(query_offset_ns), NULL, NULL,
		"How much earlier than now its queries look.",
		offsetof(struct rules_group_fields, offset_set) + 1,
		.unset = "`rule_query_offset` of `global`" },
	{ "limit", YAML_UINT, AT(limit), NULL, NULL,
		"The most alerts or series of one rule; more make the rule fail. 0: no limit.", 0 },
	{ "labels", YAML_STRING_MAP, AT(labels), NULL, NULL, "Labels that all rules of the group add.",
		0 },
	{ "rules", YAML_CUSTOM, AT(rules), &rules_rule_schema, rules_keep_node,
		"Rules, evaluated one after the other.", 0, .takes = "list of" },
};
#undef AT

#define AT(member) offsetof(struct rule_fields, member)
static const struct yaml_field rule_table[] = {
	{ "record", YAML_STRING, AT(record), NULL, NULL,
		"The name of the series that is recorded. Either this or `alert`.", 0,
		.example = "job:cpu:cores" },
	{ "alert", YAML_STRING, AT(alert), NULL, NULL,
		"The name of the alert. Either this or `record`.", 0 },
	{ "expr", YAML_STRING, AT(expr), NULL, NULL, "The query that is evaluated.", 0,
		.takes = "query", .unset = "required" },
	{ "for", YAML_DURATION, AT(for_ns), NULL, NULL,
		"How long the query must hold before the alert fires.", 0 },
	{ "keep_firing_for", YAML_DURATION, AT(keep_firing_for_ns), NULL, NULL,
		"How long the alert goes on after the query stopped to hold.", 0 },
	{ "labels", YAML_STRING_MAP, AT(labels), NULL, NULL,
		"Labels that are set on each series or alert. For alerts they are templates.", 0 },
	{ "annotations", YAML_STRING_MAP, AT(annotations), NULL, NULL,
		"Texts for people, as templates. Only for alerts.", 0,
		.example = "{summary: '{{ $labels.job }}'}" },
};
#undef AT
/* clang-format on */

#define TEST_FILE "this file is a test: read it with `epitool test rules`, not as rules"
static const struct yaml_foreign test_table[] = {
	{ "rule_files", YAML_FOREIGN_HINT, TEST_FILE },
	{ "evaluation_interval", YAML_FOREIGN_HINT, TEST_FILE },
	{ "group_eval_order", YAML_FOREIGN_HINT, TEST_FILE },
	{ "tests", YAML_FOREIGN_HINT, TEST_FILE },
	{ 0 },
};
static const struct yaml_foreign *const file_foreign[] = { test_table, NULL };

#define SCHEMA(id, text, type, table, others) \
	const struct yaml_schema id = { .name = (text), \
		.size = sizeof(struct type), \
		.fields = (table), \
		.fields_n = sizeof(table) / sizeof((table)[0]), \
		.foreign = (others) }
SCHEMA(rules_file_schema, "rule_groups", rules_file_fields, file_table, file_foreign);
static SCHEMA(rules_group_schema, "rule_group", rules_group_fields, group_table, NULL);
static SCHEMA(rules_rule_schema, "rule", rule_fields, rule_table, NULL);

/* ---- where an error is ---- */

struct loading {
	const struct rules_load *l;
	struct rule_set *set;
	size_t cap; /* of set->groups */
	struct yaml_ctx ctx;
};

static size_t loading_problems(const struct loading *l)
{
	return l->ctx.problems ? l->ctx.problems->n : 0;
}

/* "FILE:LINE:COLUMN: what" becomes "FILE:LINE:COLUMN: CONTEXT: what". */
static void rules_put_context(const char *file, const char *context, struct err *err)
{
	size_t n = strlen(file), place;
	struct err old = *err;

	if (strncmp(old.msg, file, n) != 0 || old.msg[n] != ':') {
		(void)err_set(err, old.code, "%s: %s: %s", file, context, old.msg);
		return;
	}
	place = n + 1 + strspn(old.msg + n + 1, "0123456789:");
	(void)err_set(err, old.code, "%.*s %s:%s", (int)place, old.msg, context, old.msg + place);
}

/* Of *err, and of the errors that were kept from number `from` on. */
static enum err_code rules_add_context(
	struct loading *l, size_t from, const char *file, const char *context, struct err *err)
{
	struct yaml_problems *p = l->ctx.problems;
	struct err one;
	char *text;

	if (!err)
		return ERR_INVALID;
	rules_put_context(file, context, err);
	for (size_t i = from; p && i < p->n; i++) {
		(void)err_set(&one, p->v[i].code, "%s", p->v[i].text);
		rules_put_context(file, context, &one);
		if ((text = arena_strndup(&p->arena, one.msg, strlen(one.msg))))
			p->v[i].text = text;
	}
	return err->code;
}

static enum err_code rules_in_group(struct loading *l, size_t from, const struct yaml_node *n,
	const struct rule_group *g, struct err *err)
{
	struct buf context = { 0 };
	enum err_code rc;

	buf_printf(&context, "group %s%c", QUOTED(g->name), '\0');
	rc = rules_add_context(l, from, n->file, buf_failed(&context) ? "group" : context.ptr, err);
	buf_release(&context);
	return rc;
}

static enum err_code rules_in_rule(struct loading *l, size_t from, const struct yaml_node *n,
	const struct rule_group *g, size_t number, const struct rule_fields *f, struct err *err)
{
	struct str name = f->alert.len ? f->alert : f->record;
	struct buf context = { 0 };
	enum err_code rc;

	buf_printf(&context, "group %s, rule %zu", QUOTED(g->name), number);
	if (name.len)
		buf_printf(&context, ", %s", QUOTED(name));
	buf_add_char(&context, '\0');
	rc = rules_add_context(l, from, n->file, buf_failed(&context) ? "rule" : context.ptr, err);
	buf_release(&context);
	return rc;
}

/* ---- loading ---- */

/* A rule whose fields are not all right is checked as far as it goes. */
static enum err_code rules_decode_rule(struct loading *l, const struct yaml_node *n,
	const struct rule_group *g, struct rule_fields *f, struct rule *out, struct err *err)
{
	size_t before = yaml_errors(&l->ctx);
	enum err_code rc;
	bool whole;

	*f = (struct rule_fields){ 0 };
	if (yaml_is_null(n))
		return yaml_err(n, err, ERR_INVALID, "empty or null rule");
	rc = yaml_decode(&l->ctx, &rules_rule_schema, n, f, err);
	whole = !rc;
	if (rc && (n->kind != YAML_MAPPING || !yaml_goes_on(&l->ctx, rc, err)))
		return rc;
	rc = rule_check(&l->ctx, n, f, g, whole, out, err);
	if (rc && !yaml_goes_on(&l->ctx, rc, err))
		return rc;
	return yaml_end(&l->ctx, before, err);
}

static enum err_code rules_decode(
	struct loading *l, const struct yaml_node *n, struct rule_group *g, struct err *err)
{
	size_t before = yaml_errors(&l->ctx), number = 0, from = loading_problems(l);
	struct arena *a = &l->set->arena;
	struct rule_fields f;
	enum err_code rc;

	if (!n)
		return ERR_OK;
	if (l->set->rules_n + n->n > RULES_MAX) {
		yaml_err(n, err, ERR_LIMIT, "more than %u rules", RULES_MAX);
		return rules_in_group(l, from, n, g, err);
	}
	if (!(g->rules = arena_array(a, struct rule, n->n + 1)))
		return arena_fail(a, "rules", err);
	for (const struct yaml_node *c = n->child; c; c = c->next) {
		from = loading_problems(l);
		rc = rules_decode_rule(l, c, g, &f, &g->rules[g->rules_n], err);
		number++;
		g->rules_n += !rc;
		if (rc && (rc = rules_in_rule(l, from, c, g, number, &f, err)) &&
			!yaml_goes_on(&l->ctx, rc, err))
			return rc;
	}
	if ((rc = yaml_end(&l->ctx, before, err)))
		return rc;
	l->set->rules_n += g->rules_n;
	return ERR_OK;
}

static enum err_code rules_new_group(struct loading *l, struct rule_group **out, struct err *err)
{
	struct rule_set *s = l->set;

	if (!arena_array_room(&s->arena, &s->groups, s->groups_n, 1, &l->cap))
		return arena_fail(&s->arena, "rules", err);
	*out = &s->groups[s->groups_n];
	**out = (struct rule_group){ 0 };
	return ERR_OK;
}

/* The group's own fields; `first`: the file's first group. */
static enum err_code rules_decode_group_fields(struct loading *l, const struct yaml_node *n,
	size_t first, struct rules_group_fields *f, struct rule_group *g, struct err *err)
{
	const struct yaml_node *name = yaml_get(n, "name"), *labels = yaml_get(n, "labels");
	size_t from = loading_problems(l);
	enum err_code rc;

	if (name && name->kind == YAML_SCALAR)
		g->name = name->text;
	if ((rc = yaml_decode(&l->ctx, &rules_group_schema, n, f, err)))
		return g->name.len ? rules_in_group(l, from, n, g, err) : rc;
	if (!f->name.len)
		return yaml_err(n, err, ERR_INVALID, "Groupname must not be empty");
	for (size_t i = first; i < l->set->groups_n; i++)
		if (str_eq(l->set->groups[i].name, f->name))
			return yaml_err(name, err, ERR_INVALID, "groupname: %s is repeated in the same file",
				QUOTED(f->name));
	if (labels && (rc = rule_labels_check(&l->ctx, labels, f->labels, err)))
		return rules_in_group(l, from, n, g, err);
	return ERR_OK;
}

static enum err_code rules_decode_group(
	struct loading *l, const struct yaml_node *n, size_t first, struct str file, struct err *err)
{
	struct rules_group_fields f = { 0 };
	size_t before = yaml_errors(&l->ctx);
	struct rule_group *g;
	enum err_code rc;

	if (yaml_is_null(n))
		return yaml_err(n, err, ERR_INVALID, "empty or null rule group");
	if ((rc = rules_new_group(l, &g, err)))
		return rc;
	rc = rules_decode_group_fields(l, n, first, &f, g, err);
	if (rc && (n->kind != YAML_MAPPING || !yaml_goes_on(&l->ctx, rc, err)))
		return rc;
	*g = (struct rule_group){
		.file = file,
		.name = g->name,
		.interval_ns = f.interval_ns ? f.interval_ns : l->l->interval_ns,
		.query_offset_ns = f.offset_set ? f.query_offset_ns : l->l->query_offset_ns,
		.limit = f.limit,
		.labels = f.labels,
		.line = n->line,
		.column = n->column,
	};
	if (!g->interval_ns)
		g->interval_ns = INTERVAL_DEFAULT_NS;
	rc = rules_decode(l, f.rules, g, err);
	if (rc && !yaml_goes_on(&l->ctx, rc, err))
		return rc;
	l->set->groups_n++; /* a set with errors is dropped; until then its names are taken */
	return yaml_end(&l->ctx, before, err);
}

static enum err_code rules_load_text(
	struct loading *l, const char *name, struct str text, struct err *err)
{
	struct rule_set *s = l->set;
	struct rules_file_fields f = { 0 };
	struct str file = str_dup(&s->arena, str_of(name));
	size_t first = s->groups_n, before = yaml_errors(&l->ctx);
	struct yaml_node *root;
	enum err_code rc;

	assert(s->files_n < RULES_FILES_MAX);
	if (!file.ptr)
		return arena_fail(&s->arena, "rules", err);
	l->ctx.dir = path_dir(str_of(name));
	if ((rc = yaml_parse_all(&s->arena, name, text, l->ctx.problems, &root, err)))
		return rc;
	rc = yaml_decode(&l->ctx, &rules_file_schema, root, &f, err);
	if (rc && !yaml_goes_on(&l->ctx, rc, err))
		return rc;
	s->files[s->files_n++] = file;
	for (const struct yaml_node *c = f.groups ? f.groups->child : NULL; c; c = c->next)
		if ((rc = rules_decode_group(l, c, first, file, err)) && !yaml_goes_on(&l->ctx, rc, err))
			return rc;
	return yaml_end(&l->ctx, before, err);
}

static enum err_code rules_begin(
	struct loading *loading, const struct rules_load *l, struct err *err)
{
	struct rule_set *s = calloc(1, sizeof(*s));

	*loading = (struct loading){ .l = l, .set = s, .ctx.problems = l->problems };
	if (!s)
		return err_nomem(err, "rules");
	loading->ctx.arena = &s->arena;
	atomic_init(&s->refs, 1);
	arena_init(&s->arena, ARENA_BYTES_MAX);
	s->files = arena_array(&s->arena, struct str, RULES_FILES_MAX);
	return s->files ? ERR_OK : arena_fail(&s->arena, "rules", err);
}

static enum err_code rules_end(struct loading *l, enum err_code rc, struct rule_set **out)
{
	struct rule_set *s = l->set;

	if (rc) {
		rule_set_unref(s);
		return rc;
	}
	for (size_t i = 0; i < s->groups_n; i++) /* groups moved while the array grew */
		for (size_t k = 0; k < s->groups[i].rules_n; k++)
			s->groups[i].rules[k].group = &s->groups[i];
	*out = s;
	return ERR_OK;
}

enum err_code rule_set_load_text(const char *name, struct str text, const struct rules_load *l,
	struct rule_set **out, struct err *err)
{
	struct loading x;
	enum err_code rc = rules_begin(&x, l, err);

	if (!rc)
		rc = rules_load_text(&x, name, text, err);
	return rules_end(&x, rc, out);
}

/* True: the file is loaded already, as two patterns match it. */
static bool rules_has_file(const struct rule_set *s, const char *path)
{
	for (size_t i = 0; i < s->files_n; i++)
		if (str_is(s->files[i], path))
			return true;
	return false;
}

static enum err_code rules_check_files(const struct rule_set *s, struct err *err)
{
	return s->files_n < RULES_FILES_MAX ?
		ERR_OK :
		err_set(err, ERR_LIMIT, "more than %u rule files", RULES_FILES_MAX);
}

static enum err_code rules_load_last(struct loading *l, struct err *err)
{
	enum err_code rc;

	if (rules_has_file(l->set, l->l->last_name))
		return ERR_OK;
	rc = rules_check_files(l->set, err);
	return rc ? rc : rules_load_text(l, l->l->last_name, l->l->last, err);
}

static enum err_code rules_load_file(struct loading *l, const char *path, struct err *err)
{
	struct buf text = { 0 };
	enum err_code rc;

	if (rules_has_file(l->set, path))
		return ERR_OK;
	if ((rc = rules_check_files(l->set, err)))
		return rc;
	rc = fs_read_file(path, RULES_FILE_BYTES_MAX, &text, err);
	if (rc)
		rc = err_wrap(err, rc, "rule file");
	else
		rc = rules_load_text(l, path, buf_str(&text), err);
	buf_release(&text);
	return rc;
}

/* A pattern may match nothing; a name without wildcards must exist. */
static enum err_code rules_load_pattern(struct loading *l, struct str pattern, struct err *err)
{
	struct str path = str_dup(&l->set->arena, pattern);
	enum err_code rc = ERR_OK;
	glob_t found;
	int failed;

	if (!path.ptr)
		return arena_fail(&l->set->arena, "rules", err);
	if (!strpbrk(path.ptr, "*?["))
		return rules_load_file(l, path.ptr, err);
	failed = glob(path.ptr, 0, NULL, &found);
	if (failed == GLOB_NOMATCH)
		return ERR_OK;
	if (failed)
		return err_set(err, failed == GLOB_NOSPACE ? ERR_NOMEM : ERR_IO,
			"rule files %s: cannot be listed", path.ptr);
	for (size_t i = 0; i < found.gl_pathc && !rc; i++)
		rc = rules_load_file(l, found.gl_pathv[i], err);
	globfree(&found);
	return rc;
}

enum err_code rule_set_load(const struct rules_load *l, struct rule_set **out, struct err *err)
{
	struct loading x;
	enum err_code rc = rules_begin(&x, l, err);

	for (size_t i = 0; i < l->patterns_n && !rc; i++)
		rc = rules_load_pattern(&x, l->patterns[i], err);
	if (!rc && l->last_name)
		rc = rules_load_last(&x, err);
	return rules_end(&x, rc, out);
}

struct rule_set *rule_set_ref(struct rule_set *s)
{
	unsigned before = atomic_fetch_add(&s->refs, 1);

	assert(before); /* the caller has a reference */
	(void)before;
	return s;
}

void rule_set_unref(struct rule_set *s)
{
	if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	arena_release(&s->arena);
	free(s);
}
