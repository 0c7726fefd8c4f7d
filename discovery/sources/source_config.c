#include "base/array.h"
#include "base/yaml/problems.h"
#include "discovery/sources/source.h"

#define TEXT "configuration"

/* Secrets included: another password is another source. It is never shown. */
static enum err_code source_config_make_identity(
	struct yaml_ctx *ctx, const struct yaml_node *n, struct str *out, struct err *err)
{
	struct buf b = { 0 };

	buf_add_lenstr(&b, ctx->dir);
	yaml_print(&b, n, NULL);
	*out = buf_failed(&b) ? (struct str){ 0 } : str_dup(ctx->arena, buf_str(&b));
	buf_release(&b);
	return out->ptr ? ERR_OK : arena_fail(ctx->arena, TEXT, err);
}

static enum err_code source_config_decode_entry(struct yaml_ctx *ctx, const struct yaml_node *n,
	const char *list, const struct source_ops *ops, const struct yaml_schema *schema,
	struct source_configs *out, struct err *err)
{
	struct source_config entry = { .ops = ops };
	enum err_code rc;
	void *config;

	if (yaml_is_null(n))
		return yaml_err(n, err, ERR_INVALID, "empty or null section in %s", list);
	config = arena_alloc(ctx->arena, schema->size);
	if (!config)
		return arena_fail(ctx->arena, TEXT, err);
	if ((rc = yaml_decode(ctx, schema, n, config, err)) ||
		(rc = source_config_make_identity(ctx, n, &entry.identity, err)))
		return rc;
	if (!arena_array_room(ctx->arena, &out->v, out->n, 1, &out->cap))
		return arena_fail(ctx->arena, TEXT, err);
	entry.config = config;
	out->v[out->n++] = entry;
	return ERR_OK;
}

enum err_code source_configs_decode(struct yaml_ctx *ctx, const struct yaml_node *n,
	const char *list, const struct source_ops *ops, const struct yaml_schema *schema,
	struct source_configs *out, struct err *err)
{
	size_t before = yaml_errors(ctx);
	const struct yaml_node *c;
	enum err_code rc;

	if (n->kind != YAML_SEQUENCE)
		return yaml_err(n, err, ERR_INVALID, "expected a list of %s", schema->name);
	for (c = n->child; c; c = c->next)
		if ((rc = source_config_decode_entry(ctx, c, list, ops, schema, out, err)) &&
			!yaml_goes_on(ctx, rc, err))
			return rc;
	return yaml_end(ctx, before, err);
}
