/* Calls: nodes by parent and frame, and a sample for each node with a value. */
#include "proto/folded/calls.h"

#include <assert.h>
#include <inttypes.h>

#include "base/array.h"

enum err_code calls_open(struct calls *c, struct arena *a, const struct folded_meaning *meaning,
	const struct pprof_limits *limits, struct err *err)
{
	enum err_code rc;

	assert(meaning->scale > 0);
	*c = (struct calls){
		.a = a, .limits = limits, .meaning = meaning, .err = err, .seed = hash_seed()
	};
	map_init(&c->children);
	if ((rc = pprof_builder_open(a, &c->b, err)))
		return rc;
	c->p = pprof_builder_profile(c->b);
	if (!arena_array_room(a, &c->nodes, 0, 1, &c->nodes_cap))
		return arena_fail(a, "profile", err);
	c->nodes[c->nodes_n++] = (struct folded_call){ 0 };
	pprof_builder_type(c->b, meaning->type, meaning->unit);
	c->p->period_type.type = pprof_builder_string(c->b, meaning->period_type);
	c->p->period_type.unit = pprof_builder_string(c->b, meaning->period_unit);
	c->p->period = meaning->period;
	c->p->time_nanos = meaning->time_nanos;
	c->p->duration_nanos = meaning->duration_nanos;
	return ERR_OK;
}

void calls_close(struct calls *c)
{
	map_release(&c->children);
}

enum err_code calls_frame_at(struct calls *c, struct str name, struct str file, int64_t line,
	int64_t column, uint32_t *frame)
{
	struct pprof_location l = { .mapping = PPROF_NONE };
	struct pprof_function f = { 0 };
	uint32_t before = c->p->locations_n;
	struct pprof_line at;

	if (name.len > FOLDED_NAME_BYTES_MAX || file.len > FOLDED_NAME_BYTES_MAX)
		return err_set(c->err, ERR_LIMIT, "a name of %zu bytes, limit %u",
			name.len > file.len ? name.len : file.len, FOLDED_NAME_BYTES_MAX);
	if (before >= c->limits->elements_max)
		return err_set(c->err, ERR_LIMIT, "profile has more than %" PRIu32 " frames, the limit",
			c->limits->elements_max);
	f.name = f.system_name = pprof_builder_string(c->b, name);
	f.filename = pprof_builder_string(c->b, file);
	at = (struct pprof_line){ pprof_builder_function(c->b, &f), line, column };
	if (c->p->functions_n != before + 1)
		return arena_fail(c->a, "profile", c->err);
	*frame = pprof_builder_location(c->b, l, &at, 1);
	return c->p->locations_n == before + 1 ? ERR_OK : arena_fail(c->a, "profile", c->err);
}

enum err_code calls_frame(struct calls *c, struct str name, uint32_t *frame)
{
	uint32_t string, n = c->by_string_cap;
	enum err_code rc;

	if (name.len > FOLDED_NAME_BYTES_MAX)
		return err_set(
			c->err, ERR_LIMIT, "a name of %zu bytes, limit %u", name.len, FOLDED_NAME_BYTES_MAX);
	string = pprof_builder_string(c->b, name);
	if (!string)
		return arena_fail(c->a, "profile", c->err);
	if (string >= n) {
		if (!arena_array_room(c->a, &c->by_string, n, string + 1 - n, &c->by_string_cap))
			return arena_fail(c->a, "profile", c->err);
		memset(c->by_string + n, 0, (c->by_string_cap - n) * sizeof(*c->by_string));
	}
	if (!c->by_string[string]) {
		if ((rc = calls_frame_at(c, name, STR(""), 0, 0, frame)))
			return rc;
		c->by_string[string] = *frame + 1;
	}
	*frame = c->by_string[string] - 1;
	return ERR_OK;
}

static bool calls_eq(const void *nodes, const void *key, uint32_t id)
{
	const struct folded_call *a = key, *b = (const struct folded_call *)nodes + id;

	return a->parent == b->parent && a->frame == b->frame;
}

enum err_code calls_child(struct calls *c, uint32_t parent, uint32_t frame, uint32_t *node)
{
	struct folded_call key = { .parent = parent, .frame = frame };
	uint64_t hash = map_hash_u64(((uint64_t)parent << 32 | frame) ^ c->seed);

	*node = map_find(&c->children, hash, calls_eq, c->nodes, &key);
	if (*node != MAP_NONE)
		return ERR_OK;
	if (c->nodes_n >= c->limits->elements_max)
		return err_set(c->err, ERR_LIMIT, "profile has more than %" PRIu32 " calls, the limit",
			c->limits->elements_max);
	if (!arena_array_room(c->a, &c->nodes, c->nodes_n, 1, &c->nodes_cap))
		return arena_fail(c->a, "profile", c->err);
	key.depth = c->nodes[parent].depth + 1;
	if (!map_add(&c->children, hash, c->nodes_n))
		return err_nomem(c->err, "profile");
	*node = c->nodes_n;
	c->nodes[c->nodes_n++] = key;
	return ERR_OK;
}

enum err_code calls_path(struct calls *c, uint32_t parent, struct str path, uint32_t *node)
{
	enum err_code rc;

	*node = parent;
	while (path.len) {
		const char *end = memchr(path.ptr, ';', path.len);
		size_t n = end ? (size_t)(end - path.ptr) : path.len;
		uint32_t frame;

		if (n &&
			((rc = calls_frame(c, (struct str){ path.ptr, n }, &frame)) ||
				(rc = calls_child(c, *node, frame, node))))
			return rc;
		n += end != NULL;
		path = (struct str){ path.ptr + n, path.len - n };
	}
	return ERR_OK;
}

enum err_code calls_add(struct calls *c, uint32_t node, int64_t value, int64_t scale)
{
	assert(value >= 0 && scale > 0 && node < c->nodes_n);
	if (__builtin_mul_overflow(value, scale, &value) ||
		__builtin_add_overflow(value, c->nodes[node].value, &c->nodes[node].value))
		return err_set(c->err, ERR_INVALID, "the value of a stack has more than 64 bits");
	return ERR_OK;
}

/* Of a stack: those at the root are left out. */
static uint32_t calls_kept(const struct calls *c, uint32_t node)
{
	uint32_t depth = c->nodes[node].depth, max = c->limits->stack_depth_max;

	return depth < max ? depth : max;
}

/* The sum of all samples must fit too, or a total would be wrong. */
static enum err_code calls_check_sums(struct calls *c)
{
	uint64_t frames = 0, max = (uint64_t)c->limits->elements_max * 16;
	uint32_t samples = 0;
	int64_t sum = 0;

	for (uint32_t i = 0; i < c->nodes_n; i++) {
		if (!c->nodes[i].value)
			continue;
		samples++;
		frames += calls_kept(c, i);
		if (__builtin_add_overflow(sum, c->nodes[i].value, &sum))
			return err_set(c->err, ERR_INVALID, "the total of all stacks has more than 64 bits");
	}
	if (samples > c->limits->samples_max)
		return err_set(c->err, ERR_LIMIT, "profile has more than %" PRIu32 " samples, the limit",
			c->limits->samples_max);
	if (frames > max)
		return err_set(
			c->err, ERR_LIMIT, "all stacks have more than %" PRIu64 " frames, the limit", max);
	return ERR_OK;
}

enum err_code calls_finish(struct calls *c, struct pprof **out)
{
	uint32_t *stack = arena_array(c->a, uint32_t, (size_t)c->limits->stack_depth_max + 1), n;
	enum err_code rc;

	if (!stack)
		return arena_fail(c->a, "profile", c->err);
	if ((rc = calls_check_sums(c)))
		return rc;
	for (uint32_t i = 0; i < c->nodes_n; i++) {
		if (!c->nodes[i].value)
			continue;
		n = 0;
		for (uint32_t at = i; n < calls_kept(c, i); at = c->nodes[at].parent)
			stack[n++] = c->nodes[at].frame;
		c->p->stacks_cut += n < c->nodes[i].depth;
		pprof_builder_sample(c->b, stack, n, NULL, 0, &c->nodes[i].value);
	}
	return pprof_builder_finish(c->b, out, c->err);
}
