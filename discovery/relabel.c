#include "discovery/relabel.h"

#include <assert.h>
#include <nettle/md5.h>
#include <unicase.h>

#include "base/quote.h"
#include "base/yaml/problems.h"

#define RULES_MAX 10000u
#define SOURCE_LABELS_MAX 1000u

#define SEPARATOR_DEFAULT STR(";")
#define REGEX_DEFAULT STR("(.*)")
#define REPLACEMENT_DEFAULT STR("$1")
/* A template of a label's name: characters of names, and references to groups. */
#define NAME_TEMPLATE STR("(?:(?:[a-zA-Z_]|\\$(?:\\{\\w+\\}|\\w+))+\\w*)+")

static const char *const action_names[RELABEL_ACTIONS] = {
	[RELABEL_REPLACE] = "replace",
	[RELABEL_KEEP] = "keep",
	[RELABEL_DROP] = "drop",
	[RELABEL_KEEPEQUAL] = "keepequal",
	[RELABEL_DROPEQUAL] = "dropequal",
	[RELABEL_HASHMOD] = "hashmod",
	[RELABEL_LABELMAP] = "labelmap",
	[RELABEL_LABELDROP] = "labeldrop",
	[RELABEL_LABELKEEP] = "labelkeep",
	[RELABEL_LOWERCASE] = "lowercase",
	[RELABEL_UPPERCASE] = "uppercase",
};

const char *relabel_action_name(enum relabel_action a)
{
	assert(a < RELABEL_ACTIONS);
	return action_names[a];
}

/* ---- reading rules ---- */

struct sd_relabel_rule_fields { /* a rule and which of its fields the file sets */
	struct relabel_rule rule;
	bool regex_set, source_set;
};

static enum err_code sd_relabel_decode_action(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	enum relabel_action *out = field;

	for (size_t i = 0; n->kind == YAML_SCALAR && i < RELABEL_ACTIONS; i++)
		if (str_eq_nocase(n->text, str_of(action_names[i]))) {
			*out = (enum relabel_action)i;
			return ERR_OK;
		}
	return yaml_err(n, err, ERR_INVALID, "unknown relabel action %s", QUOTED(n->text));
}

static enum err_code sd_relabel_decode_source_labels(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err)
{
	struct relabel_rule *r = field;
	const struct yaml_node *c;

	if (yaml_is_null(n))
		return ERR_OK;
	if (n->kind != YAML_SEQUENCE)
		return yaml_err(n, err, ERR_INVALID, "expected a list of label names");
	if (n->n > SOURCE_LABELS_MAX)
		return yaml_err(n, err, ERR_LIMIT, "more than %u source labels", SOURCE_LABELS_MAX);
	r->source_labels = arena_array(ctx->arena, struct str, n->n);
	if (!r->source_labels)
		return arena_fail(ctx->arena, "configuration", err);
	for (c = n->child; c; c = c->next) {
		if (c->kind != YAML_SCALAR || !label_name_valid(c->text))
			return yaml_err(c, err, ERR_INVALID, "%s is not a valid label name: " LABEL_NAME_RULE,
				QUOTED(c->text));
		r->source_labels[r->source_labels_n++] = c->text;
	}
	return ERR_OK;
}

#define AT(member) offsetof(struct sd_relabel_rule_fields, rule.member)
/* clang-format off */
static const struct yaml_field rule_table[] = {
	{ "source_labels", YAML_CUSTOM, offsetof(struct sd_relabel_rule_fields, rule), NULL,
		sd_relabel_decode_source_labels, "Labels whose values are joined.",
		offsetof(struct sd_relabel_rule_fields, source_set) + 1, .takes = "list of label names" },
	{ "separator", YAML_STRING, AT(separator), NULL, NULL, "What stands between the joined values.",
		0 },
	{ "target_label", YAML_STRING, AT(target_label), NULL, NULL,
		"The label that is set. For `replace` groups such as `$1` are filled in.", 0,
		.unset = "required by the actions that set a label" },
	{ "regex", YAML_STRING, AT(regex_text), NULL, NULL,
		"What the joined values must match as a whole.",
		offsetof(struct sd_relabel_rule_fields, regex_set) + 1, .takes = "regular expression" },
	{ "modulus", YAML_UINT, AT(modulus), NULL, NULL,
		"What the hash is divided by. Only for `hashmod`.", 0 },
	{ "replacement", YAML_STRING, AT(replacement), NULL, NULL,
		"The new value. Groups such as `$1` and `${name}` are filled in.", 0 },
	{ "action", YAML_CUSTOM, AT(action), NULL, sd_relabel_decode_action, "What the rule does.", 0,
		.takes = "action", .unset = "`replace`",
		.limits = "`replace`, `keep`, `drop`, `keepequal`, `dropequal`, `hashmod`, `labelmap`, "
		"`labeldrop`, `labelkeep`, `lowercase` or `uppercase`" },
};
/* clang-format on */
#undef AT

static void sd_relabel_rule_defaults(struct yaml_ctx *ctx, void *out)
{
	*(struct sd_relabel_rule_fields *)out = (struct sd_relabel_rule_fields){
		.rule.separator = SEPARATOR_DEFAULT,
		.rule.replacement = REPLACEMENT_DEFAULT,
		.rule.regex_text = REGEX_DEFAULT,
	};
}

static bool sd_relabel_is_name_template(struct str s)
{
	struct regex *re;
	bool ok;

	if (regex_compile(NAME_TEMPLATE, REGEX_ANCHORED, &re, NULL))
		return false;
	ok = regex_match(re, s);
	regex_free(re);
	return ok;
}

static enum err_code sd_relabel_check_target(
	const struct yaml_node *n, const struct relabel_rule *r, struct err *err)
{
	const char *action = action_names[r->action];
	bool template = r->action == RELABEL_REPLACE && str_find(r->target_label, STR("$")) >= 0;

	if (!r->target_label.len)
		return yaml_err(n, err, ERR_INVALID,
			"relabel configuration for %s action requires 'target_label' value", action);
	if (template ? !sd_relabel_is_name_template(r->target_label) :
				   !label_name_valid(r->target_label))
		return yaml_err(n, err, ERR_INVALID, "%s is invalid 'target_label' for %s action",
			QUOTED(r->target_label), action);
	return ERR_OK;
}

static enum err_code sd_relabel_rule_check(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	const struct sd_relabel_rule_fields *f = out;
	const struct relabel_rule *r = &f->rule;
	const char *action = action_names[r->action];
	bool separator_set = !str_eq(r->separator, SEPARATOR_DEFAULT);
	bool replacement_set = !str_eq(r->replacement, REPLACEMENT_DEFAULT);
	enum err_code rc;

	if (r->action == RELABEL_HASHMOD && r->modulus == 0)
		return yaml_err(
			n, err, ERR_INVALID, "relabel configuration for hashmod requires non-zero modulus");
	switch (r->action) {
	case RELABEL_LOWERCASE:
	case RELABEL_UPPERCASE:
	case RELABEL_KEEPEQUAL:
	case RELABEL_DROPEQUAL:
		if ((rc = sd_relabel_check_target(n, r, err)))
			return rc;
		if (replacement_set)
			return yaml_err(
				n, err, ERR_INVALID, "'replacement' can not be set for %s action", action);
		if ((r->action == RELABEL_KEEPEQUAL || r->action == RELABEL_DROPEQUAL) &&
			(f->regex_set || r->modulus || separator_set))
			return yaml_err(n, err, ERR_INVALID,
				"%s action requires only 'source_labels' and "
				"`target_label`, and no other fields",
				action);
		return ERR_OK;
	case RELABEL_REPLACE:
	case RELABEL_HASHMOD:
		return sd_relabel_check_target(n, r, err);
	case RELABEL_LABELMAP:
		if (!sd_relabel_is_name_template(r->replacement))
			return yaml_err(n, err, ERR_INVALID, "%s is invalid 'replacement' for %s action",
				QUOTED(r->replacement), action);
		return ERR_OK;
	case RELABEL_LABELDROP:
	case RELABEL_LABELKEEP:
		if (f->source_set || r->target_label.len || r->modulus || separator_set || replacement_set)
			return yaml_err(n, err, ERR_INVALID,
				"%s action requires only 'regex', and no other fields", action);
		return ERR_OK;
	default:
		return ERR_OK;
	}
}

const struct yaml_schema relabel_rule_schema = {
	.name = "relabel_config",
	.size = sizeof(struct sd_relabel_rule_fields),
	.fields = rule_table,
	.fields_n = sizeof(rule_table) / sizeof(rule_table[0]),
	.defaults = sd_relabel_rule_defaults,
	.check = sd_relabel_rule_check,
};

static enum err_code sd_relabel_decode_rule(
	struct yaml_ctx *ctx, const struct yaml_node *n, struct relabel_rule *out, struct err *err)
{
	const struct yaml_node *at;
	struct sd_relabel_rule_fields f;
	struct err why;
	enum err_code rc;
	unsigned groups;

	if (yaml_is_null(n))
		return yaml_err(n, err, ERR_INVALID, "empty or null relabeling rule");
	if ((rc = yaml_decode(ctx, &relabel_rule_schema, n, &f, err)))
		return rc;
	groups = f.rule.action == RELABEL_REPLACE || f.rule.action == RELABEL_LABELMAP ? REGEX_GROUPS :
																					 0;
	rc = regex_compile(f.rule.regex_text, REGEX_ANCHORED | groups, &f.rule.regex, &why);
	if (rc) {
		at = yaml_get(n, "regex");
		return yaml_err(at ? at : n, err, rc, "%s", why.msg);
	}
	*out = f.rule;
	return ERR_OK;
}

enum err_code relabel_rules_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *rules, struct err *err)
{
	struct relabel_rules *out = rules, made = { 0 };
	size_t before = yaml_errors(ctx);
	const struct yaml_node *c;
	enum err_code rc;

	if (yaml_is_null(n))
		return ERR_OK;
	if (n->kind != YAML_SEQUENCE)
		return yaml_err(n, err, ERR_INVALID, "expected a list of relabelling rules");
	if (n->n > RULES_MAX)
		return yaml_err(n, err, ERR_LIMIT, "more than %u relabelling rules", RULES_MAX);
	made.v = arena_array(ctx->arena, struct relabel_rule, n->n);
	if (!made.v)
		return arena_fail(ctx->arena, "configuration", err);
	for (c = n->child; c; c = c->next, made.n += !rc)
		if ((rc = sd_relabel_decode_rule(ctx, c, &made.v[made.n], err)) &&
			!yaml_goes_on(ctx, rc, err))
			goto fail;
	if ((rc = yaml_end(ctx, before, err)))
		goto fail;
	*out = made;
	return ERR_OK;
fail:
	relabel_rules_release(&made);
	return rc;
}

void relabel_rules_release(struct relabel_rules *r)
{
	for (size_t i = 0; i < r->n; i++)
		regex_free(r->v[i].regex);
	r->n = 0;
}

/* ---- applying them ---- */

static uint64_t sd_relabel_hash_of(struct str s)
{
	struct md5_ctx md5;
	uint8_t digest[MD5_DIGEST_SIZE];
	uint64_t h = 0;

	md5_init(&md5);
	md5_update(&md5, s.len, (const uint8_t *)s.ptr);
	md5_digest(&md5, sizeof(digest), digest);
	for (size_t i = 8; i < sizeof(digest); i++)
		h = h << 8 | digest[i];
	return h;
}

/* One code point at a time, as Go's strings.ToLower. A broken byte becomes U+FFFD. */
static void buf_add_cased(struct buf *b, struct str s, bool upper)
{
	uint32_t c;
	size_t n;

	while (s.len) {
		n = utf8_decode(s, &c);
		if (n == 0) {
			c = 0xfffd;
			n = 1;
		}
		buf_add_utf8(b, upper ? uc_toupper(c) : uc_tolower(c));
		s.ptr += n;
		s.len -= n;
	}
}

/* Sets the label to the bytes of scratch. The strings are in the builder's arena. */
static enum err_code sd_relabel_set_from(
	struct labels_builder *b, struct str name, const struct buf *scratch, struct err *err)
{
	struct str n, v;

	if (buf_failed(scratch))
		return err_nomem(err, "relabelling");
	n = str_dup(b->arena, name);
	v = str_dup(b->arena, buf_str(scratch));
	if (!n.ptr || !v.ptr)
		return arena_fail(b->arena, "relabelling", err);
	labels_builder_set(b, n, v);
	return ERR_OK;
}

static enum err_code relabel_rule_apply_replace(
	const struct relabel_rule *r, struct labels_builder *b, struct str joined, struct err *err)
{
	struct str group[REGEX_GROUPS_MAX];
	struct buf name = { 0 }, value = { 0 };
	enum err_code rc = ERR_OK;

	if (!regex_groups(r->regex, joined, group))
		return ERR_OK;
	regex_expand(r->regex, r->target_label, group, &name);
	regex_expand(r->regex, r->replacement, group, &value);
	if (buf_failed(&name))
		rc = err_nomem(err, "relabelling");
	else if (label_name_valid(buf_str(&name)))
		rc = sd_relabel_set_from(b, buf_str(&name), &value, err);
	buf_release(&name);
	buf_release(&value);
	return rc;
}

/* Works on a copy of the labels, so that new ones are not mapped again. */
static enum err_code relabel_rule_apply_labelmap(
	const struct relabel_rule *r, struct labels_builder *b, struct err *err)
{
	struct str group[REGEX_GROUPS_MAX];
	size_t n = b->n;
	struct label *old = arena_alloc_raw(b->arena, n, sizeof(*old));
	struct buf name = { 0 };
	struct str copy;

	if (!old)
		return arena_fail(b->arena, "relabelling", err);
	if (n)
		memcpy(old, b->v, n * sizeof(*old));
	for (size_t i = 0; i < n; i++) {
		if (!regex_groups(r->regex, old[i].name, group))
			continue;
		buf_clear(&name);
		regex_expand(r->regex, r->replacement, group, &name);
		if (name.len == 0)
			continue;
		copy = str_dup(b->arena, buf_str(&name));
		if (buf_failed(&name) || !copy.ptr) {
			buf_release(&name);
			return arena_fail(b->arena, "relabelling", err);
		}
		labels_builder_set(b, copy, old[i].value);
	}
	buf_release(&name);
	return ERR_OK;
}

/* Deletes labels by name, from the end, so that indexes stay valid. */
static void relabel_rule_apply_names(
	const struct relabel_rule *r, struct labels_builder *b, bool drop_matching)
{
	for (size_t i = b->n; i-- > 0;)
		if (regex_match(r->regex, b->v[i].name) == drop_matching)
			labels_builder_del(b, b->v[i].name);
}

static enum err_code relabel_rule_apply(const struct relabel_rule *r, struct labels_builder *b,
	struct str joined, bool *keep, struct err *err)
{
	struct buf out = { 0 };
	enum err_code rc = ERR_OK;

	switch (r->action) {
	case RELABEL_KEEP:
		*keep = regex_match(r->regex, joined);
		break;
	case RELABEL_DROP:
		*keep = !regex_match(r->regex, joined);
		break;
	case RELABEL_KEEPEQUAL:
		*keep = str_eq(labels_builder_get(b, r->target_label), joined);
		break;
	case RELABEL_DROPEQUAL:
		*keep = !str_eq(labels_builder_get(b, r->target_label), joined);
		break;
	case RELABEL_REPLACE:
		return relabel_rule_apply_replace(r, b, joined, err);
	case RELABEL_HASHMOD:
		assert(r->modulus > 0);
		buf_add_u64(&out, sd_relabel_hash_of(joined) % r->modulus);
		rc = sd_relabel_set_from(b, r->target_label, &out, err);
		break;
	case RELABEL_LOWERCASE:
	case RELABEL_UPPERCASE:
		buf_add_cased(&out, joined, r->action == RELABEL_UPPERCASE);
		rc = sd_relabel_set_from(b, r->target_label, &out, err);
		break;
	case RELABEL_LABELMAP:
		return relabel_rule_apply_labelmap(r, b, err);
	case RELABEL_LABELDROP:
	case RELABEL_LABELKEEP:
		relabel_rule_apply_names(r, b, r->action == RELABEL_LABELDROP);
		break;
	case RELABEL_ACTIONS:
		break;
	}
	buf_release(&out);
	return rc;
}

enum err_code relabel_apply_rule(
	const struct relabel_rule *r, struct labels_builder *b, bool *keep, struct err *err)
{
	struct buf joined = { 0 };
	enum err_code rc;

	*keep = true;
	for (size_t i = 0; i < r->source_labels_n; i++) {
		if (i)
			buf_add_str(&joined, r->separator);
		buf_add_str(&joined, labels_builder_get(b, r->source_labels[i]));
	}
	if (buf_failed(&joined))
		rc = err_nomem(err, "relabelling");
	else
		rc = relabel_rule_apply(r, b, buf_str(&joined), keep, err);
	buf_release(&joined);
	return rc;
}

enum err_code relabel_walk(const struct relabel_rules *rules, struct labels_builder *b,
	relabel_step_fn step, void *ctx, bool *keep, size_t *dropped_by, struct err *err)
{
	enum err_code rc;

	*keep = true;
	for (size_t i = 0; i < rules->n && *keep; i++) {
		if ((rc = relabel_apply_rule(&rules->v[i], b, keep, err)) ||
			(step && (rc = step(ctx, i, b, *keep, err))))
			return rc;
		if (!*keep && dropped_by)
			*dropped_by = i;
	}
	return ERR_OK;
}

enum err_code relabel_apply(const struct relabel_rules *rules, struct labels_builder *b, bool *keep,
	size_t *dropped_by, struct err *err)
{
	return relabel_walk(rules, b, NULL, NULL, keep, dropped_by, err);
}
