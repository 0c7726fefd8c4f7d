/*
 * speedscope.app's file format: frames by name, and per profile a list of stacks and their
 * weights. Stacks are those of the flame graph: pruned, with inlined frames, merged by name.
 *
 * Source: https://www.speedscope.app/file-format-schema.json
 */
#include <assert.h>

#include "base/version.h"
#include "web/render/frame_tree.h"
#include "web/render/profile.h"
#include "web/render/render.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

/*
 * A profile of the file: an element, or one side of a diff. Weights cannot be negative, so
 * negative costs are a second profile. The two add up to what percentages refer to.
 */
struct sheet {
	const struct profile_value *p;
	struct str name;
	uint32_t root; /* its node in the tree */
	int sign; /* 0: costs above 0; 1: those below */
};

struct speedscope {
	const struct render_options *o;
	struct json j;
	struct frame_tree tree; /* elements side by side below its root */
	struct sheet *sheets;
	size_t sheets_n;
	uint32_t *root_of; /* per node: the root of its element */
	uint32_t *frame_of; /* per name: its index among the frames + 1; 0: only an element's root */
	uint32_t *path;
};

/* The units that the format knows; others are plain numbers. */
static const char *render_speedscope_unit_of(struct str unit)
{
	static const char *const known[] = { "nanoseconds", "microseconds", "milliseconds", "seconds",
		"bytes" };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (str_is(unit, known[i]))
			return known[i];
	return "none";
}

/* True if a side has negative costs. */
static bool render_speedscope_has_negative(const struct profile_value *p, int side)
{
	for (size_t i = 0; i < p->parts_n; i++)
		for (size_t k = 0; k < p->parts[i].n; k++) {
			const struct cell *c = &p->parts[i].cells[k];

			if ((side ? c->base : c->value) < 0)
				return true;
		}
	return false;
}

static enum err_code speedscope_add_side(struct speedscope *s, const struct profile_value *p,
	int side, struct str title, struct err *err)
{
	struct arena *a = s->o->arena;
	char *root = arena_printf(a, "%zu", s->sheets_n);
	int signs = 1 + render_speedscope_has_negative(p, side);
	uint32_t node;
	enum err_code rc;

	if (!root)
		return arena_fail(a, "answer", err);
	if ((rc = frame_tree_child(&s->tree, 0, str_of(root), &node, err)) ||
		(rc = frame_tree_add_signed(&s->tree, node, p, side, err)))
		return rc;
	for (int sign = 0; sign < signs; sign++) {
		char *name = arena_printf(a, STR_FMT "%s%s", STR_ARG(title),
			!p->is_diff ? "" :
				side    ? " (base)" :
						  " (new)",
			sign ? " (negative)" : "");

		if (!name)
			return arena_fail(a, "answer", err);
		s->sheets[s->sheets_n++] = (struct sheet){
			.p = p, .name = str_of(name), .root = node, .sign = sign
		};
	}
	return ERR_OK;
}

static enum err_code speedscope_add_sheets(
	struct speedscope *s, const struct profile_value *p, struct str labels, struct err *err)
{
	struct buf title = { 0 };
	enum err_code rc = ERR_OK;

	profile_type_print(&title, &p->type);
	if (labels.len)
		buf_printf(&title, " " STR_FMT, STR_ARG(labels));
	if (buf_failed(&title))
		rc = err_nomem(err, "answer");
	for (int side = p->is_diff ? 1 : 0; side >= 0 && !rc; side--)
		rc = speedscope_add_side(s, p, side, buf_str(&title), err);
	buf_release(&title);
	return rc;
}

/* Parents come before children. */
static enum err_code speedscope_find_roots(struct speedscope *s, struct err *err)
{
	const struct frame_tree *t = &s->tree;
	uint32_t frames = 0;

	s->root_of = arena_array(s->o->arena, uint32_t, t->n);
	s->path = arena_array(s->o->arena, uint32_t, t->n);
	s->frame_of = arena_array(s->o->arena, uint32_t, (size_t)t->names_n + 1);
	if (!s->root_of || !s->path || !s->frame_of)
		return arena_fail(s->o->arena, "answer", err);
	for (uint32_t i = 1; i < t->n; i++) {
		s->root_of[i] = t->nodes[i].parent ? s->root_of[t->nodes[i].parent] : i;
		if (t->nodes[i].parent)
			s->frame_of[t->nodes[i].name] = 1;
	}
	for (uint32_t i = 0; i < t->names_n; i++)
		if (s->frame_of[i])
			s->frame_of[i] = ++frames;
	return ERR_OK;
}

static enum err_code speedscope_write_frames(struct speedscope *s, struct err *err)
{
	enum err_code rc = ERR_OK;

	json_key(&s->j, "shared");
	json_object(&s->j);
	json_key(&s->j, "frames");
	json_array(&s->j);
	for (uint32_t i = 0; i < s->tree.names_n && !rc; i++) {
		if (!s->frame_of[i])
			continue;
		json_object(&s->j);
		json_key(&s->j, "name");
		json_str(&s->j, s->tree.names[i]);
		json_object_end(&s->j);
		rc = render_flush(s->o, s->j.out, err);
	}
	if (rc)
		return rc;
	json_array_end(&s->j);
	json_object_end(&s->j);
	return ERR_OK;
}

static bool speedscope_has_stack(
	const struct speedscope *speedscope, const struct sheet *s, uint32_t node)
{
	return node != s->root && speedscope->root_of[node] == s->root &&
		speedscope->tree.nodes[node].self[s->sign] > 0;
}

static void speedscope_write_stack(
	struct speedscope *speedscope, const struct sheet *s, uint32_t node)
{
	uint32_t depth = 0;

	for (uint32_t at = node; at != s->root; at = speedscope->tree.nodes[at].parent)
		speedscope->path[depth++] = speedscope->tree.nodes[at].name;
	json_array(&speedscope->j);
	while (depth > 0)
		json_u64(&speedscope->j, speedscope->frame_of[speedscope->path[--depth]] - 1);
	json_array_end(&speedscope->j);
}

static enum err_code speedscope_write_sheet(
	struct speedscope *speedscope, const struct sheet *s, struct err *err)
{
	struct json *j = &speedscope->j;
	enum err_code rc;
	int64_t total = 0;

	json_object(j);
	json_key(j, "type");
	json_cstr(j, "sampled");
	json_key(j, "name");
	json_str(j, s->name);
	json_key(j, "unit");
	json_cstr(j, render_speedscope_unit_of(s->p->type.sample_unit));
	json_key(j, "samples");
	json_array(j);
	for (uint32_t i = 1; i < speedscope->tree.n; i++)
		if (speedscope_has_stack(speedscope, s, i)) {
			speedscope_write_stack(speedscope, s, i);
			if ((rc = render_flush(speedscope->o, j->out, err)))
				return rc;
		}
	json_array_end(j);
	json_key(j, "weights");
	json_array(j);
	for (uint32_t i = 1; i < speedscope->tree.n; i++)
		if (speedscope_has_stack(speedscope, s, i)) {
			json_i64(j, speedscope->tree.nodes[i].self[s->sign]);
			total += speedscope->tree.nodes[i].self[s->sign];
			if ((rc = render_flush(speedscope->o, j->out, err)))
				return rc;
		}
	json_array_end(j);
	json_key(j, "startValue");
	json_i64(j, 0);
	json_key(j, "endValue");
	json_i64(j, total);
	json_object_end(j);
	return ERR_OK;
}

/*
 * The format has no comments, so the first warning is in the name, which is shown above the
 * picture.
 */
static enum err_code speedscope_write_name(
	struct speedscope *s, const struct result *r, struct err *err)
{
	struct str name = s->sheets[0].name;

	assert(s->sheets_n > 0);
	if (r->warnings_n)
		name = str_of(arena_printf(s->o->arena, STR_FMT " - Warning: " STR_FMT "%s", STR_ARG(name),
			STR_ARG(r->warnings[0]), r->warnings_n > 1 ? "; ..." : ""));
	if (!name.ptr)
		return arena_fail(s->o->arena, "answer", err);
	json_key(&s->j, "name");
	json_str(&s->j, name);
	return ERR_OK;
}

static enum err_code speedscope_write_file(
	struct speedscope *s, const struct result *r, struct err *err)
{
	enum err_code rc;

	json_object(&s->j);
	json_key(&s->j, "$schema");
	json_cstr(&s->j, SCHEMA);
	json_key(&s->j, "exporter");
	json_cstr(&s->j, "epimetheus@" EPI_VERSION);
	if ((rc = speedscope_write_name(s, r, err)))
		return rc;
	json_key(&s->j, "activeProfileIndex");
	json_i64(&s->j, 0);
	if ((rc = speedscope_write_frames(s, err)))
		return rc;
	json_key(&s->j, "profiles");
	json_array(&s->j);
	for (size_t i = 0; i < s->sheets_n; i++)
		if ((rc = speedscope_write_sheet(s, &s->sheets[i], err)))
			return rc;
	json_array_end(&s->j);
	json_object_end(&s->j);
	buf_add_char(s->j.out, '\n');
	return buf_failed(s->j.out) ? err_nomem(err, "answer") : ERR_OK;
}

enum err_code render_speedscope(
	const struct result *r, const struct render_options *o, struct buf *out, struct err *err)
{
	struct speedscope x = { .o = o };
	const struct profile_value **v;
	struct str *labels, name = STR("");
	size_t n, labels_n;
	enum err_code rc;

	if ((rc = render_profiles_of(r, o->arena, "speedscope", &v, &n, err)) ||
		(rc = render_differing_labels(v, n, o->arena, &labels, &labels_n, err)))
		return rc;
	rc = frame_tree_init(&x.tree, o->arena, err);
	x.tree.canceled = o->canceled;
	if (rc)
		goto out;
	if (!(x.sheets = arena_array(o->arena, struct sheet, 4 * n))) {
		rc = arena_fail(o->arena, "answer", err);
		goto out;
	}
	for (size_t i = 0; i < n && !rc; i++) {
		if (n > 1)
			rc = render_element_name(v[i], labels, labels_n, o->arena, &name, err);
		if (!rc)
			rc = speedscope_add_sheets(&x, v[i], name, err);
	}
	assert(x.sheets_n <= 4 * n);
	if (rc || (rc = speedscope_find_roots(&x, err)))
		goto out;
	json_init(&x.j, out);
	rc = speedscope_write_file(&x, r, err);
out:
	frame_tree_release(&x.tree);
	return rc;
}
