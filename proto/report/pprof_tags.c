#include "proto/report/pprof_tags.h"

#include "proto/report/frame_text.h"
#include "proto/report/pprof_unit.h"

/* Takes the next key off a list by comma; empty ones are none. */
static bool pprof_tags_next_key(struct str *list, struct str *key)
{
	while (list->len > 0) {
		size_t n = 0;

		while (n < list->len && list->ptr[n] != ',')
			n++;
		*key = (struct str){ list->ptr, n };
		n += n < list->len;
		*list = (struct str){ list->ptr + n, list->len - n };
		if (key->len > 0)
			return true;
	}
	return false;
}

static uint32_t pprof_tags_count_keys(struct str list)
{
	struct str key;
	uint32_t n = 0;

	while (pprof_tags_next_key(&list, &key))
		n++;
	return n;
}

static bool pprof_tags_is_number(const struct pprof_label *l)
{
	return !l->str && (l->num || l->num_unit);
}

/*
 * A sample's values of a key: its texts, then its numbers, by comma. If some number has a unit,
 * those without one are shown in the report's, as the tool has it.
 */
static void pprof_tags_add_values(
	const struct pprof_graph *g, const struct pprof_sample *s, struct str key, struct buf *out)
{
	const struct pprof *p = g->p;
	const struct pprof_label *labels = s->label_n ? &p->labels[s->label_first] : NULL;
	bool any = false, has_unit = false;

	for (uint32_t i = 0; i < s->label_n; i++) {
		if (!str_eq(p->strings[labels[i].key], key))
			continue;
		has_unit |= pprof_tags_is_number(&labels[i]) && labels[i].num_unit;
		if (!labels[i].str)
			continue;
		if (any)
			buf_add_char(out, ',');
		buf_add_str(out, p->strings[labels[i].str]);
		any = true;
	}
	for (uint32_t i = 0; i < s->label_n; i++) {
		if (!pprof_tags_is_number(&labels[i]) || !str_eq(p->strings[labels[i].key], key))
			continue;
		if (any)
			buf_add_char(out, ',');
		pprof_unit_print(
			out, labels[i].num, p->strings[labels[i].num_unit], has_unit ? g->o->unit : STR(""));
		any = true;
	}
}

static enum err_code pprof_tags_find(struct pprof_graph *g, const struct pprof_sample *s,
	struct str key, struct str file, struct buf *scratch, uint32_t *out, struct err *err)
{
	struct pprof_graph_node node;

	buf_clear(scratch);
	pprof_tags_add_values(g, s, key, scratch);
	if (buf_failed(scratch))
		return err_nomem(err, "report");
	node = pprof_graph_frame(g, buf_str(scratch), file);
	return pprof_graph_find_node(g, &node, true, out, err);
}

static enum err_code pprof_tags_add_list(
	struct pprof_graph *g, struct str list, uint32_t first, struct buf *scratch, struct err *err)
{
	uint32_t tags_n = g->roots_n + g->leaves_n;
	struct str key, file;
	enum err_code rc;

	for (uint32_t at = first; pprof_tags_next_key(&list, &key); at++) {
		if (!frame_file_clean(
				g->arena, frame_file_cut(key, g->o->trim_path, g->o->source_path), &file))
			return arena_fail(g->arena, "report", err);
		for (uint32_t i = 0; i < g->p->samples_n; i++)
			if ((rc = pprof_tags_find(g, &g->p->samples[i], key, file, scratch,
					 &g->tag_nodes[(size_t)i * tags_n + at], err)))
				return rc;
	}
	return ERR_OK;
}

enum err_code pprof_graph_add_tags(struct pprof_graph *g, struct err *err)
{
	struct buf scratch = { 0 };
	enum err_code rc;

	g->roots_n = pprof_tags_count_keys(g->o->tagroot);
	g->leaves_n = pprof_tags_count_keys(g->o->tagleaf);
	if (g->roots_n + g->leaves_n == 0)
		return ERR_OK;
	g->tag_nodes = arena_calloc(
		g->arena, (size_t)g->p->samples_n + 1, (g->roots_n + g->leaves_n) * sizeof(uint32_t));
	if (!g->tag_nodes)
		return arena_fail(g->arena, "report", err);
	rc = pprof_tags_add_list(g, g->o->tagroot, 0, &scratch, err);
	if (!rc)
		rc = pprof_tags_add_list(g, g->o->tagleaf, g->roots_n, &scratch, err);
	buf_release(&scratch);
	return rc;
}
