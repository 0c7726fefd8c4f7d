#include "base/quote.h"
#include "web/render/frame_tree.h"
#include "web/render/profile.h"
#include "web/render/render.h"

/*
 * Readers of the format split a line at each ';' and know no escape, so in a name it becomes ':',
 * as in the collapsers of perf's output. Other bytes that do not print are escaped. This is done
 * once per name, since a name is in many lines.
 */
static enum err_code render_folded_make_names(
	struct frame_tree *t, struct arena *a, struct err *err)
{
	for (uint32_t i = 0; i < t->names_n; i++) {
		struct str name = str_printable(a, t->names[i]);
		char *copy, *at;

		if (name.len && memchr(name.ptr, ';', name.len)) {
			copy = arena_strndup(a, name.ptr, name.len);
			for (at = copy; at && (at = strchr(at, ';'));)
				*at = ':';
			name.ptr = copy;
		}
		if (!name.ptr)
			return arena_fail(a, "answer", err);
		t->names[i] = name;
	}
	return ERR_OK;
}

static enum err_code render_folded_print_tree(const struct frame_tree *t, bool is_diff,
	const struct render_options *o, struct buf *out, struct err *err)
{
	uint32_t *path = arena_array(o->arena, uint32_t, t->n), depth;
	enum err_code rc;

	if (!path)
		return arena_fail(o->arena, "answer", err);
	for (uint32_t i = 1; i < t->n; i++) {
		const struct tree_node *node = &t->nodes[i];

		if (node->self[0] == 0 && node->self[1] == 0)
			continue;
		depth = 0;
		for (uint32_t at = i; at != 0; at = t->nodes[at].parent)
			path[depth++] = t->nodes[at].name;
		while (depth-- > 0) {
			buf_add_str(out, t->names[path[depth]]);
			buf_add_char(out, depth ? ';' : ' ');
		}
		if (is_diff) {
			buf_add_i64(out, node->self[1]);
			buf_add_char(out, ' ');
		}
		buf_add_i64(out, node->self[0]);
		buf_add_char(out, '\n');
		if ((rc = render_flush(o, out, err)))
			return rc;
	}
	return buf_failed(out) ? err_nomem(err, "answer") : ERR_OK;
}

enum err_code render_folded(
	const struct result *r, const struct render_options *o, struct buf *out, struct err *err)
{
	const struct profile_value **v;
	struct frame_tree t;
	struct str *labels, name;
	size_t n, labels_n;
	uint32_t below = 0;
	bool is_diff = false;
	enum err_code rc;

	if ((rc = render_profiles_of(r, o->arena, "folded", &v, &n, err)) ||
		(rc = render_differing_labels(v, n, o->arena, &labels, &labels_n, err)))
		return rc;
	if ((rc = frame_tree_init(&t, o->arena, err)))
		goto out;
	t.canceled = o->canceled;
	for (size_t i = 0; i < n; i++) {
		if (n > 1 &&
			((rc = render_element_name(v[i], labels, labels_n, o->arena, &name, err)) ||
				(rc = frame_tree_child(&t, 0, name, &below, err))))
			goto out;
		if ((rc = frame_tree_add(&t, below, v[i], err)))
			goto out;
		is_diff |= v[i]->is_diff;
	}
	if (!(rc = render_folded_make_names(&t, o->arena, err)))
		rc = render_folded_print_tree(&t, is_diff, o, out, err);
out:
	frame_tree_release(&t);
	return rc;
}
