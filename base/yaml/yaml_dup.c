#include "base/labels.h"
#include "base/yaml/yaml.h"

#define TEXT "configuration"

static enum err_code dup_str(struct arena *a, struct str *s, struct err *err)
{
	struct str copy = { 0 };

	if (!s->ptr) /* a field that is missing */
		return ERR_OK;
	copy = str_dup(a, *s);
	if (!copy.ptr)
		return arena_fail(a, TEXT, err);
	*s = copy;
	return ERR_OK;
}

static enum err_code dup_fields(
	struct arena *a, const struct yaml_schema *schema, void *to, struct err *err);

static enum err_code dup_list(
	struct arena *a, const struct yaml_schema *schema, struct yaml_list *list, struct err *err)
{
	size_t size = schema ? schema->size : sizeof(struct str);
	enum err_code rc = ERR_OK;
	const void *from = list->v;
	char *at;

	if (!list->n)
		return ERR_OK;
	list->v = at = arena_alloc_raw(a, list->n, size);
	if (!at)
		return arena_fail(a, TEXT, err);
	memcpy(at, from, list->n * size);
	for (size_t i = 0; i < list->n && !rc; i++, at += size)
		rc = schema ? dup_fields(a, schema, at, err) : dup_str(a, (struct str *)(void *)at, err);
	return rc;
}

/* *to has the bytes of the original: its pointers become pointers to copies. */
static enum err_code dup_fields(
	struct arena *a, const struct yaml_schema *schema, void *to, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < schema->fields_n && !rc; i++) {
		const struct yaml_field *f = &schema->fields[i];
		char *at = (char *)to + f->offset;
		struct labels *map = (struct labels *)(void *)at;

		switch (f->type) {
		case YAML_STRING:
		case YAML_SECRET:
			rc = dup_str(a, (struct str *)(void *)at, err);
			break;
		case YAML_STRUCT:
			rc = dup_fields(a, f->schema, at, err);
			break;
		case YAML_LIST:
			rc = dup_list(a, f->schema, (struct yaml_list *)(void *)at, err);
			break;
		case YAML_STRING_MAP:
			*map = labels_dup(a, *map);
			if (map->n && !map->v)
				rc = arena_fail(a, TEXT, err);
			break;
		default: /* a number, or a custom field */
			break;
		}
	}
	return rc;
}

enum err_code yaml_dup(
	struct arena *a, const struct yaml_schema *schema, const void *from, void *to, struct err *err)
{
	memcpy(to, from, schema->size);
	return dup_fields(a, schema, to, err);
}
