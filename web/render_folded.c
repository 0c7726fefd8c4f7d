#include "web/frame_tree.h"
#include "web/render.h"
#include "web/render_profile.h"

/* Separators inside a name are escaped, and line ends made blanks. */
static void add_name(struct buf *out, struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];

		if (c == ';')
			buf_add_char(out, '\\');
		buf_add_char(out, c == '\n' || c == '\r' ? ' ' : c);
	}
}

/* "job=api version=v2" of what tells an element from the others. */
static enum err_code element_name(const struct profile_value *p, const struct str *labels, size_t n,
	struct arena *a, struct str *out, struct err *err)
{
	struct buf text = { 0 };

	for (size_t i = 0; i < n; i++) {
		struct str value = labels_get(p->metric, labels[i]);

		if (value.len > 0)
			buf_printf(&text, "%s" STR_FMT "=" STR_FMT, text.len ? " " : "",
				STR_ARG(labels[i]), STR_ARG(value));
	}
	*out = text.len ? str_dup(a, buf_str(&text)) : STR("{}");
	buf_release(&text);
	return out->ptr ? ERR_OK : arena_fail(a, "answer", err);
}

static enum err_code print_tree(
	const struct frame_tree *t, struct arena *a, struct buf *out, struct err *err)
{
	uint32_t *path = arena_array(a, uint32_t, t->n), depth;
	int64_t cost;

	if (!path)
		return arena_fail(a, "answer", err);
	for (uint32_t i = 1; i < t->n; i++) {
		cost = t->nodes[i].self[0] - t->nodes[i].self[1];
		if (cost == 0)
			continue;
		depth = 0;
		for (uint32_t at = i; at != 0; at = t->nodes[at].parent)
			path[depth++] = t->nodes[at].name;
		while (depth-- > 0) {
			add_name(out, t->names[path[depth]]);
			buf_add_char(out, depth ? ';' : ' ');
		}
		buf_add_i64(out, cost);
		buf_add_char(out, '\n');
	}
	return buf_failed(out) ? err_set(err, ERR_NOMEM, "answer: out of memory") : ERR_OK;
}

enum err_code render_folded(
	const struct result *r, const struct render_options *o, struct buf *out, struct err *err)
{
	const struct profile_value **v;
	struct frame_tree t;
	struct str *labels, name;
	size_t n, labels_n;
	uint32_t below = 0;
	enum err_code rc;

	if ((rc = render_profiles_of(r, o->arena, "folded", &v, &n, err)) ||
		(rc = render_differing_labels(v, n, o->arena, &labels, &labels_n, err)))
		return rc;
	if ((rc = frame_tree_init(&t, o->arena, err)))
		goto out;
	for (size_t i = 0; i < n; i++) {
		if (n > 1 &&
			((rc = element_name(v[i], labels, labels_n, o->arena, &name, err)) ||
				(rc = frame_tree_child(&t, 0, name, &below, err))))
			goto out;
		if ((rc = frame_tree_add(&t, below, v[i], err)))
			goto out;
	}
	rc = print_tree(&t, o->arena, out, err);
out:
	frame_tree_release(&t);
	return rc;
}
