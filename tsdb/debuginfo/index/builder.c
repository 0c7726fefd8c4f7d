#include "tsdb/debuginfo/index/builder.h"

#include <assert.h>
#include <stdlib.h>

#include "base/map.h"

/* clang-format off */
const struct symindex_limits symindex_limits_default = {
	.strings_bytes_max = (size_t)512 << 20,
	.segments_max      = 64000000,
	.frames_max        = 32000000,
	.functions_max     = 8000000,
};
/* clang-format on */

/* Of 32 bits, SYMINDEX_NONE and what ids.c needs are not ids. */
#define IDS_MAX ((size_t)UINT32_MAX - 2)

static size_t symindex_smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void items_init(struct items *items, const char *what, size_t item_bytes, size_t max)
{
	*items = (struct items){ .what = what,
		.v.item_bytes = item_bytes,
		.seed = hash_seed(),
		.max = symindex_smaller(max, IDS_MAX) };
}

void items_release(struct items *items)
{
	vec_release(&items->v);
	ids_release(&items->ids);
}

static bool symindex_same(const void *ctx, uint32_t id, const void *key)
{
	const struct items *t = ctx;

	return !memcmp(vec_at(&t->v, id), key, t->v.item_bytes);
}

static uint64_t symindex_hash_of(const void *ctx, uint32_t id)
{
	const struct items *t = ctx;

	return hash_bytes(vec_at(&t->v, id), t->v.item_bytes, t->seed);
}

/* The id of an item; *is_new: it was not there. */
static enum err_code symindex_intern(
	struct items *items, const void *item, uint32_t *out, bool *is_new, struct err *err)
{
	uint64_t hash = hash_bytes(item, items->v.item_bytes, items->seed);

	*out = ids_find(&items->ids, hash, symindex_same, items, item);
	*is_new = *out == IDS_NONE;
	if (!*is_new)
		return ERR_OK;
	if (items->v.n >= items->max)
		return err_set(
			err, ERR_LIMIT, "symbol index: more than %zu %s, the limit", items->max, items->what);
	if (!vec_room(&items->v))
		return err_nomem(err, "symbol index");
	*out = (uint32_t)items->v.n;
	memcpy(vec_at(&items->v, items->v.n), item, items->v.item_bytes);
	if (!ids_add(&items->ids, hash, symindex_hash_of, items))
		return err_nomem(err, "symbol index");
	items->v.n++;
	return ERR_OK;
}

enum err_code symindex_builder_open(
	const struct symindex_limits *l, struct symindex_builder **out, struct err *err)
{
	struct symindex_builder *b = calloc(1, sizeof(*b));

	if (!b)
		return err_nomem(err, "symbol index");
	strings_init(&b->strings, symindex_smaller(l->strings_bytes_max, UINT32_MAX / 4));
	items_init(&b->files, "files", sizeof(struct file_item), l->functions_max);
	items_init(&b->functions, "functions", sizeof(struct function_item), l->functions_max);
	items_init(&b->scopes, "frames", sizeof(struct scope_item), l->frames_max);
	items_init(&b->frames, "frames", sizeof(struct frame_item), l->frames_max);
	b->scope_orders.item_bytes = sizeof(struct scope_order);
	b->segments_max = l->segments_max;
	*out = b;
	return ERR_OK;
}

void symindex_builder_close(struct symindex_builder *b)
{
	if (!b)
		return;
	strings_release(&b->strings);
	items_release(&b->files);
	items_release(&b->functions);
	items_release(&b->scopes);
	items_release(&b->frames);
	vec_release(&b->scope_orders);
	runs_release(&b->runs);
	free(b);
}

enum err_code symindex_file(
	struct symindex_builder *b, struct str path, uint32_t *out, struct err *err)
{
	struct file_item item;
	enum err_code rc;
	bool is_new;

	if ((rc = strings_intern(&b->strings, path, &item.path, err)))
		return rc;
	return symindex_intern(&b->files, &item, out, &is_new, err);
}

enum err_code symindex_function(struct symindex_builder *b, struct str raw, uint32_t file,
	uint32_t start_line, uint32_t *out, struct err *err)
{
	struct function_item item = { .file = file, .line = start_line };
	enum err_code rc;
	bool is_new;

	assert(file == SYMINDEX_NONE || file < b->files.v.n);
	if ((rc = strings_intern(&b->strings, raw, &item.raw, err)))
		return rc;
	return symindex_intern(&b->functions, &item, out, &is_new, err);
}

static uint32_t symindex_builder_string_hash(const struct symindex_builder *b, uint32_t string)
{
	return strings_at(&b->strings, string)->hash;
}

static uint32_t symindex_builder_file_hash(const struct symindex_builder *b, uint32_t file)
{
	const struct file_item *item;

	if (file == SYMINDEX_NONE)
		return 0;
	item = vec_at(&b->files.v, file);
	return symindex_builder_string_hash(b, item->path);
}

static enum err_code symindex_builder_add_scope_order(
	struct symindex_builder *b, const struct scope_item *item, struct err *err)
{
	const struct function_item *function = builder_function(b, item->function);
	uint32_t contents[6] = { symindex_builder_string_hash(b, function->raw),
		symindex_builder_file_hash(b, function->file), function->line,
		symindex_builder_file_hash(b, item->file), item->line };
	struct scope_order order = { .depth = 1 };

	if (item->parent != SYMINDEX_NONE) {
		const struct scope_order *parent = builder_scope_order(b, item->parent);

		order.depth += parent->depth;
		contents[5] = parent->hash;
	}
	order.hash = (uint32_t)hash_bytes(contents, sizeof(contents), order.depth);
	if (!vec_room(&b->scope_orders))
		return err_nomem(err, "symbol index");
	memcpy(vec_at(&b->scope_orders, b->scope_orders.n++), &order, sizeof(order));
	return ERR_OK;
}

enum err_code symindex_frame(struct symindex_builder *b, uint32_t parent, uint32_t function,
	uint32_t file, uint32_t line, uint32_t *out, struct err *err)
{
	struct scope_item scope = { SYMINDEX_NONE, 0, function, file };
	struct frame_item frame = { 0, line };
	enum err_code rc;
	bool is_new;

	assert(parent == SYMINDEX_NONE || parent < b->frames.v.n);
	assert(function < b->functions.v.n);
	assert(file == SYMINDEX_NONE || file < b->files.v.n);
	if (parent != SYMINDEX_NONE) {
		scope.parent = builder_frame(b, parent)->scope;
		scope.line = builder_frame(b, parent)->line;
		if (builder_scope_order(b, scope.parent)->depth >= SYMINDEX_DEPTH_MAX)
			return err_set(err, ERR_LIMIT, "symbol index: inlined calls nested more than %u deep",
				SYMINDEX_DEPTH_MAX);
	}
	if ((rc = symindex_intern(&b->scopes, &scope, &frame.scope, &is_new, err)))
		return rc;
	if (is_new && (rc = symindex_builder_add_scope_order(b, &scope, err)))
		return rc;
	return symindex_intern(&b->frames, &frame, out, &is_new, err);
}

enum err_code builder_add_segment(struct symindex_builder *b, uint64_t start, uint64_t end,
	uint32_t frame, enum symindex_quality q, bool own, struct err *err)
{
	struct symindex_segment s = { start, end, frame, (uint32_t)q * 2 + own };

	assert(frame < b->frames.v.n && q >= SYMINDEX_SYMBOLS && q <= SYMINDEX_DWARF);
	if (start >= end)
		return ERR_OK;
	if (b->segments >= b->segments_max)
		return err_set(
			err, ERR_LIMIT, "symbol index: more than %zu segments, the limit", b->segments_max);
	b->segments++;
	if (q > b->best)
		b->best = q;
	return runs_add(&b->runs, &s, err);
}

enum err_code symindex_add(struct symindex_builder *b, uint64_t start, uint64_t end, uint32_t frame,
	enum symindex_quality q, struct err *err)
{
	return builder_add_segment(b, start, end, frame, q, true, err);
}

enum err_code symindex_load(
	struct symindex_builder *b, const struct symindex_load *l, struct err *err)
{
	if (b->loads_n == SYMINDEX_LOADS_MAX)
		return err_set(err, ERR_LIMIT, "symbol index: more than %u loaded segments, the limit",
			SYMINDEX_LOADS_MAX);
	b->loads[b->loads_n++] = *l;
	return ERR_OK;
}

enum symindex_quality symindex_builder_best(const struct symindex_builder *b)
{
	return b->best;
}
