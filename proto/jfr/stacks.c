/*
 * Names, functions, frames and stacks: each is kept once for the whole file, whatever chunk it
 * comes from. Methods and stacks of a chunk remember what they became (jfr_entry.memo).
 */
#include "base/array.h"
#include "proto/jfr/decoder.h"

/* In the memo of a stack, below its number. */
#define TRUNCATED 1u
#define EMPTY 2u
#define FLAGS 2

static enum err_code jfr_no_memory(struct jfr_decoder *d, const char *what)
{
	return arena_fail(&d->work, what, d->err);
}

static bool jfr_name_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct jfr_decoder *d = ctx;
	const struct str *s = key;

	return str_eq(d->names[id], *s);
}

enum err_code jfr_name(struct jfr_decoder *d, struct str s, uint32_t *out)
{
	uint64_t hash = hash_bytes(s.ptr, s.len, d->seed);
	struct str copy;

	*out = map_find(&d->names_map, hash, jfr_name_eq, d, &s);
	if (*out != MAP_NONE)
		return ERR_OK;
	copy = str_dup(&d->work, s);
	if (!copy.ptr || !arena_array_room(&d->work, &d->names, d->names_n, 1, &d->names_cap))
		return jfr_no_memory(d, "names");
	if (!map_add(&d->names_map, hash, d->names_n))
		return err_nomem(d->err, "names");
	d->names[d->names_n] = copy;
	*out = d->names_n++;
	return ERR_OK;
}

static bool jfr_function_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct jfr_decoder *d = ctx;

	return !memcmp(&d->functions[id], key, sizeof(struct jfr_function));
}

static enum err_code jfr_stacks_function(
	struct jfr_decoder *d, struct jfr_function f, uint32_t *out)
{
	uint64_t hash = hash_bytes(&f, sizeof(f), d->seed);

	*out = map_find(&d->functions_map, hash, jfr_function_eq, d, &f);
	if (*out != MAP_NONE)
		return ERR_OK;
	if (!arena_array_room(&d->work, &d->functions, d->functions_n, 1, &d->functions_cap))
		return jfr_no_memory(d, "functions");
	if (!map_add(&d->functions_map, hash, d->functions_n))
		return err_nomem(d->err, "functions");
	d->functions[d->functions_n] = f;
	*out = d->functions_n++;
	return ERR_OK;
}

static enum err_code jfr_unknown_function(struct jfr_decoder *d, uint32_t *out)
{
	struct jfr_function f = { 0 };
	enum err_code rc = jfr_name(d, STR("[unknown]"), &f.name);

	return rc ? rc : jfr_stacks_function(d, f, out);
}

static bool jfr_frame_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct jfr_decoder *d = ctx;

	return !memcmp(&d->frames[id], key, sizeof(struct jfr_frame));
}

static enum err_code jfr_stacks_frame(struct jfr_decoder *d, struct jfr_frame f, uint32_t *out)
{
	uint64_t hash = hash_bytes(&f, sizeof(f), d->seed);

	*out = map_find(&d->frames_map, hash, jfr_frame_eq, d, &f);
	if (*out != MAP_NONE)
		return ERR_OK;
	if (!arena_array_room(&d->work, &d->frames, d->frames_n, 1, &d->frames_cap))
		return jfr_no_memory(d, "frames");
	if (!map_add(&d->frames_map, hash, d->frames_n))
		return err_nomem(d->err, "frames");
	d->frames[d->frames_n] = f;
	*out = d->frames_n++;
	return ERR_OK;
}

struct stack_key {
	const uint32_t *frames;
	uint32_t n;
};

static bool jfr_stack_eq(const void *ctx, const void *key, uint32_t id)
{
	const struct jfr_decoder *d = ctx;
	const struct stack_key *k = key;
	const struct jfr_stack *s = &d->stacks[id];

	return s->n == k->n && !memcmp(d->stack_frames + s->first, k->frames, k->n * sizeof(uint32_t));
}

/* The last n of stack_frames as a stack, n > 0. They go again if there is one like it. */
static enum err_code jfr_stack(struct jfr_decoder *d, uint32_t n, uint32_t *out)
{
	struct stack_key key = { d->stack_frames + d->stack_frames_n - n, n };
	uint64_t hash = hash_bytes(key.frames, n * sizeof(uint32_t), d->seed);

	*out = map_find(&d->stacks_map, hash, jfr_stack_eq, d, &key);
	if (*out != MAP_NONE) {
		d->stack_frames_n -= n;
		return ERR_OK;
	}
	if (!arena_array_room(&d->work, &d->stacks, d->stacks_n, 1, &d->stacks_cap))
		return jfr_no_memory(d, "stacks");
	if (!map_add(&d->stacks_map, hash, d->stacks_n))
		return err_nomem(d->err, "stacks");
	d->stacks[d->stacks_n] = (struct jfr_stack){ d->stack_frames_n - n, n, false };
	*out = d->stacks_n++;
	return ERR_OK;
}

static enum err_code jfr_push(struct jfr_decoder *d, uint32_t frame)
{
	if (d->stack_frames_n >= d->limits->frames_max)
		return err_set(
			d->err, ERR_LIMIT, "stacks of more than %u frames together", d->limits->frames_max);
	if (!arena_array_room(&d->work, &d->stack_frames, d->stack_frames_n, 1, &d->stack_frames_cap))
		return jfr_no_memory(d, "frames");
	d->stack_frames[d->stack_frames_n++] = frame;
	return ERR_OK;
}

static enum err_code jfr_unknown_stack(struct jfr_decoder *d, uint32_t *out)
{
	struct jfr_frame f = { 0 };
	enum err_code rc;
	uint32_t i;

	if (d->unknown_stack == JFR_NONE) {
		if ((rc = jfr_unknown_function(d, &f.function)) || (rc = jfr_stacks_frame(d, f, &i)) ||
			(rc = jfr_push(d, i)) || (rc = jfr_stack(d, 1, &d->unknown_stack)))
			return rc;
	}
	*out = d->unknown_stack;
	return ERR_OK;
}

/*
 * "class.method". A class with a dot that is no Java class (those have slashes) is a library; code
 * that belongs to no symbol has its library's path as the method.
 */
static enum err_code jfr_name_method(
	struct jfr_chunk *c, struct str class, struct str method, uint32_t *out)
{
	struct jfr_decoder *d = c->d;
	struct jfr_function f = { 0 };
	enum err_code rc;

	d->scratch.len = 0;
	jfr_add_class_name(&d->scratch, class);
	if (!memchr(class.ptr, '/', class.len) &&
		str_find(class, STR(".so")) > 0 && (rc = jfr_name(d, buf_str(&d->scratch), &f.library)))
		return rc;
	if (class.len) {
		buf_add_char(&d->scratch, '.');
		buf_add_str(&d->scratch, method.len ? method : STR("[unknown]"));
	} else {
		jfr_add_class_name(&d->scratch, method);
	}
	if (buf_failed(&d->scratch))
		return err_nomem(d->err, "names");
	if ((rc = jfr_name(d, buf_str(&d->scratch), &f.name)))
		return rc;
	return f.name ? jfr_stacks_function(d, f, out) : jfr_unknown_function(d, out);
}

/* The function of a frame. */
static enum err_code jfr_method(struct jfr_chunk *c, const struct jfr_class *frame_class,
	const struct jfr_value *values, uint32_t *out)
{
	struct jfr_entry *e = jfr_find(c, frame_class, FRAME_METHOD, values);
	struct jfr_value of[SLOTS] = { 0 };
	const struct jfr_class *class;
	struct str class_name = STR(""), method_name;
	struct cursor r;
	enum err_code rc;

	class = e ? &c->classes[c->fields[frame_class->field_of[FRAME_METHOD]].class] : NULL;
	if (!e || class->role != ROLE_METHOD) {
		c->d->file.frames_lost_n++;
		return jfr_unknown_function(c->d, out);
	}
	if (e->memo) {
		*out = e->memo - 1;
		return ERR_OK;
	}
	r = jfr_cursor(c->d, e->at, c->end);
	if (!jfr_constant(c, &r, class, of))
		return jfr_value_fail(c, e->at, "a method");
	if ((rc = jfr_text(c, class, METHOD_NAME, of, &method_name)) ||
		(rc = jfr_text(c, class, METHOD_TYPE, of, &class_name)) ||
		(rc = jfr_name_method(c, class_name, method_name, out)))
		return rc;
	e->memo = *out + 1;
	return ERR_OK;
}

static enum err_code jfr_stacks_origin(struct jfr_chunk *c, const struct jfr_class *class,
	const struct jfr_value *values, enum jfr_origin *out)
{
	struct jfr_entry *e = jfr_find(c, class, FRAME_TYPE, values);
	enum err_code rc;
	struct str s;

	*out = ORIGIN_JAVA;
	if (!e || c->classes[c->fields[class->field_of[FRAME_TYPE]].class].role != ROLE_TEXT)
		return ERR_OK;
	if (!e->memo) {
		if ((rc = jfr_text(c, class, FRAME_TYPE, values, &s)))
			return rc;
		if (str_is(s, "Native") || str_is(s, "C++"))
			*out = ORIGIN_NATIVE;
		else if (str_is(s, "Kernel"))
			*out = ORIGIN_KERNEL;
		e->memo = (uint32_t)*out + 1;
	}
	if (e->memo <= ORIGIN_KERNEL + 1) /* or else it is of another use */
		*out = (enum jfr_origin)(e->memo - 1);
	return ERR_OK;
}

static enum err_code jfr_one_frame(
	struct jfr_chunk *c, struct cursor *cursor, const struct jfr_class *class)
{
	struct jfr_value values[SLOTS] = { 0 };
	struct jfr_frame f = { 0 };
	uint32_t at = jfr_offset(c->d, cursor), i;
	enum err_code rc;

	if (!jfr_object(c, cursor, class, values))
		return jfr_value_fail(c, at, "a frame");
	if ((rc = jfr_method(c, class, values, &f.function)) ||
		(rc = jfr_stacks_origin(c, class, values, &f.origin)))
		return rc;
	if (!jfr_number(c, class, values, FRAME_LINE, &f.line) || f.line < 0)
		f.line = 0;
	if (f.origin == ORIGIN_NATIVE && !c->d->functions[f.function].library)
		f.origin = ORIGIN_JAVA; /* a native method of a Java class */
	return (rc = jfr_stacks_frame(c->d, f, &i)) ? rc : jfr_push(c->d, i);
}

/* Decodes a stack to its number and whether it is cut. */
static enum err_code jfr_read_stack(
	struct jfr_chunk *c, struct jfr_entry *e, const struct jfr_class *class)
{
	const struct jfr_field *f = NULL;
	struct jfr_value values[SLOTS] = { 0 };
	struct jfr_decoder *d = c->d;
	int64_t truncated = 0;
	uint64_t n;
	struct cursor r = jfr_cursor(d, e->at, c->end);
	enum err_code rc;
	uint32_t id;

	if (class->field_of[TRACE_FRAMES] != JFR_NONE)
		f = &c->fields[class->field_of[TRACE_FRAMES]];
	if (!f || !f->array || f->kind != KIND_STRUCT || c->classes[f->class].role != ROLE_FRAME) {
		c->why = "jdk.types.StackTrace has no frames";
		return jfr_value_fail(c, e->at, "a stack");
	}
	if (!jfr_object(c, &r, class, values))
		return jfr_value_fail(c, e->at, "a stack");
	n = values[TRACE_FRAMES].n;
	if (n > d->limits->stack_depth_max)
		n = d->limits->stack_depth_max;
	r = cursor_of(values[TRACE_FRAMES].bytes);
	for (uint64_t i = 0; i < n; i++)
		if ((rc = jfr_one_frame(c, &r, &c->classes[f->class])))
			return rc;
	if ((rc = n ? jfr_stack(d, (uint32_t)n, &id) : jfr_unknown_stack(d, &id)))
		return rc;
	if (n < values[TRACE_FRAMES].n)
		d->stacks[id].is_cut = true;
	jfr_number(c, class, values, TRACE_TRUNCATED, &truncated);
	e->memo = (id << FLAGS | (truncated ? TRUNCATED : 0) | (values[TRACE_FRAMES].n ? 0 : EMPTY)) +
		1;
	return ERR_OK;
}

enum err_code jfr_stack_of(struct jfr_chunk *c, const struct jfr_class *class,
	const struct jfr_value *values, uint32_t *out, bool *truncated, bool *unknown)
{
	struct jfr_entry *e = jfr_find(c, class, EVENT_STACK, values);
	const struct jfr_class *trace;
	enum err_code rc;

	*truncated = false;
	*unknown = true;
	if (!e)
		return jfr_unknown_stack(c->d, out);
	trace = &c->classes[c->fields[class->field_of[EVENT_STACK]].class];
	if (trace->role != ROLE_TRACE)
		return jfr_unknown_stack(c->d, out);
	if (!e->memo && (rc = jfr_read_stack(c, e, trace)))
		return rc;
	*out = (e->memo - 1) >> FLAGS;
	*truncated = (e->memo - 1) & TRUNCATED;
	*unknown = (e->memo - 1) & EMPTY;
	return ERR_OK;
}
