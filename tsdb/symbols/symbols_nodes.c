#include "tsdb/symbols/partition.h"

/*
 * Loading many nodes at once. A query over blocks waits for nodes more than for all other symbols:
 * there are ten to a hundred times as many. Nearly all are new or known with the same content; what
 * is neither, and what a partition with maps needs, is left to sym_load.
 */

/* A node, not there yet, that refers to what is there. */
static bool symbols_nodes_can_be_put(const struct partition *p, const struct sym_stored_node *s)
{
	return !p->lookup && s->id && s->id != SYM_NONE && s->parent < s->id &&
		segvec_has(&p->vec[SYM_NODE], s->parent) && segvec_has(&p->vec[SYM_LOCATION], s->location);
}

static bool symbols_nodes_is_same(const struct partition *p, const struct sym_stored_node *s)
{
	struct stack_node n = stack_node_at(partition_nodes(p), s->id);

	return s->id && n.parent == s->parent && n.tag >> 1 == s->location + 1;
}

static enum err_code symbols_nodes_load_one(
	struct partition *p, const struct sym_stored_node *s, struct err *err)
{
	const struct sym_node node = { s->parent, s->location };

	if (segvec_has(&p->vec[SYM_NODE], s->id)) {
		if (symbols_nodes_is_same(p, s)) {
			sym_reserve(p, SYM_NODE, s->id);
			return ERR_OK;
		}
	} else if (symbols_nodes_can_be_put(p, s)) {
		sym_reserve(p, SYM_NODE, s->id);
		return sym_put_node(p, s->id, &node, s->recursive) ? ERR_OK : err_nomem(err, "symbols");
	}
	return sym_load(p, SYM_NODE, s->id, &(union sym_content){ .node = node }, s->recursive, err);
}

enum err_code sym_load_nodes(struct partition *p, const struct sym_stored_node *s, size_t n,
	uint64_t *loaded, struct err *err)
{
	enum err_code rc, lost = ERR_OK;

	for (size_t i = 0; i < n; i++) {
		rc = symbols_nodes_load_one(p, &s[i], err);
		if (rc == ERR_CORRUPT)
			lost = rc;
		else if (rc)
			return rc;
		else
			++*loaded;
	}
	return lost;
}
