/*
 * Checks rules under an assumption: well-known names are profiles, and the name of a recording rule
 * means what that rule gives.
 */
#include "base/map.h"
#include "base/quote.h"
#include "base/yaml/problems.h"
#include "promql/rules/rules.h"
#include "promql/syntax/check.h"
#include "promql/syntax/type_names.h"

/* A name that rules record, and what it means. */
struct recorded {
	struct str name;
	unsigned types;
};

struct recordings {
	struct recorded *v;
	size_t n;
	struct map by_name;
};

static bool recorded_eq(const void *ctx, const void *key, uint32_t id)
{
	return str_eq(*(const struct str *)key, ((const struct recordings *)ctx)->v[id].name);
}

static struct recorded *recordings_find(const struct recordings *r, struct str name)
{
	uint32_t id = map_find(&r->by_name, hash_bytes(name.ptr, name.len, 0), recorded_eq, r, &name);

	return id == MAP_NONE ? NULL : &r->v[id];
}

/* The types that a name may mean; 0: not known. */
static unsigned check_names_kind_of(const void *ctx, struct str name)
{
	const struct recorded *known = recordings_find(ctx, name);
	struct type_pattern pattern;

	if (known) /* both: depends on the data */
		return known->types == (VALUE_COSTS | VALUE_PROFILES) ? 0 : known->types;
	return type_pattern_parse(name, &pattern) && type_pattern_known(&pattern) ? VALUE_PROFILES : 0;
}

static enum err_code recordings_note(
	struct recordings *r, struct str name, unsigned types, struct err *err)
{
	struct recorded *known = recordings_find(r, name);

	if (types & VALUE_SCALAR) /* a scalar is recorded as a number */
		types = (types & ~(unsigned)VALUE_SCALAR) | VALUE_COSTS;
	if (known) {
		known->types |= types;
		return ERR_OK;
	}
	r->v[r->n] = (struct recorded){ name, types };
	if (!map_add(&r->by_name, hash_bytes(name.ptr, name.len, 0), (uint32_t)r->n))
		return err_nomem(err, "rules");
	r->n++;
	return ERR_OK;
}

/* Gives the query the types of known names. If they do not fit it has the default ones; a later
 * check reports that. */
static enum err_code check_names_parse(struct arena *a, const struct recordings *known,
	const struct rule *r, struct parsed **out, struct err *err)
{
	struct check_names names = { .kind = check_names_kind_of, .ctx = known };
	enum err_code rc = parse_query(a, r->expr, out, NULL, err);

	if (rc || !check_query_names(*out, &names, NULL, NULL))
		return rc;
	return check_query(*out, NULL, err);
}

static enum err_code recordings_note_rule(
	struct recordings *to, const struct rule *r, struct err *err)
{
	struct parsed *q = NULL;
	struct arena a;
	enum err_code rc;

	if (r->kind == RULE_ALERT)
		return ERR_OK;
	arena_init(&a, 0);
	if (!(rc = check_names_parse(&a, to, r, &q, err)))
		rc = recordings_note(to, r->name, q->root->types, err);
	parsed_release(q);
	arena_release(&a);
	return rc;
}

/* "if cpu is a profile: ..." of a well-known name, "x is recorded as profiles: ..." of another. */
static enum err_code recordings_fault(const struct recordings *known, const struct rule *r,
	size_t number, struct str name, const char *what, struct err *err)
{
	const struct recorded *own = recordings_find(known, name);

	return err_set(err, ERR_INVALID,
		STR_FMT ":%u:%u: group %s, rule %zu, %s: %s" STR_FMT " is %s: %s", STR_ARG(r->group->file),
		r->line, r->column, QUOTED(r->group->name), number, QUOTED(r->name), own ? "" : "if ",
		STR_ARG(name),
		!own                         ? "a profile" :
			own->types & VALUE_COSTS ? "recorded as costs" :
									   "recorded as profiles",
		what);
}

static enum err_code check_rule(
	const struct recordings *known, const struct rule *r, size_t number, struct err *err)
{
	struct check_names names = { .kind = check_names_kind_of, .ctx = known };
	struct parsed *q = NULL;
	struct arena a;
	struct err why;
	enum err_code rc;

	arena_init(&a, 0);
	if ((rc = check_names_parse(&a, known, r, &q, err)))
		goto out;
	rc = check_query_names(q, &names, NULL, &why);
	if (!rc && r->kind == RULE_ALERT && !(q->root->types & VALUE_COSTS))
		rc = err_set(&why, ERR_INVALID, "an alert's expression must give costs");
	if (rc && names.assumed)
		rc = recordings_fault(known, r, number, names.assumed->selector.name, why.msg, err);
out:
	parsed_release(q);
	arena_release(&a);
	return rc;
}

static enum err_code check_names_of_rules(const struct rule_set *s, const struct recordings *known,
	struct yaml_problems *problems, struct err *err)
{
	struct yaml_ctx ctx = { .problems = problems };
	size_t before = yaml_errors(&ctx);
	enum err_code rc;

	for (size_t i = 0; i < s->groups_n; i++)
		for (size_t k = 0; k < s->groups[i].rules_n; k++)
			if ((rc = check_rule(known, &s->groups[i].rules[k], k + 1, err)) &&
				!yaml_goes_on(&ctx, rc, err))
				return rc;
	return yaml_end(&ctx, before, err);
}

enum err_code rule_set_check_names(
	const struct rule_set *s, struct yaml_problems *problems, struct err *err)
{
	struct recordings known = { 0 };
	enum err_code rc = ERR_OK;
	struct arena a;

	arena_init(&a, 0);
	map_init(&known.by_name);
	if (!(known.v = arena_array(&a, struct recorded, s->rules_n + 1)))
		rc = arena_fail(&a, "rules", err);
	for (size_t i = 0; i < s->groups_n && !rc; i++)
		for (size_t k = 0; k < s->groups[i].rules_n && !rc; k++)
			rc = recordings_note_rule(&known, &s->groups[i].rules[k], err);
	if (!rc)
		rc = check_names_of_rules(s, &known, problems, err);
	map_release(&known.by_name);
	arena_release(&a);
	return rc;
}
