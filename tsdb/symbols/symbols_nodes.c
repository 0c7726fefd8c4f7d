#include "tsdb/symbols/partition.h"

/*
 * Loading many nodes at once. A query over blocks waits for nodes more than for all other symbols:
 * there are ten to a hundred times as many. Nearly all are new or known with the same content; what
 * is neither, and what a partition with maps needs, is left to sym_load.
 */

/* A node, not there yet, that refers to what is there. */
static bool symbols_nodes_can_be_put(const struct partition *p, const struct sym_stored_node *v)
{
	return !p->lookup && v->id && v->id != SYM_NONE && v->parent < v->id &&
		segvec_has(&p->vec[SYM_NODE], v->parent) && segvec_has(&p->vec[SYM_LOCATION], v->location);
}

static bool symbols_nodes_is_same(const struct partition *p, const struct sym_stored_node *v)
{
	struct stack_node n = stack_node_at(partition_nodes(p), v->id);

	return v->id && n.parent == v->parent && n.tag >> 1 == v->location + 1;
}

static enum err_code symbols_nodes_load_one(
	struct partition *p, const struct sym_stored_node *v, struct err *err)
{
	const struct sym_node node = { v->parent, v->location };

	if (segvec_has(&p->vec[SYM_NODE], v->id)) {
		if (symbols_nodes_is_same(p, v)) {
			sym_reserve(p, SYM_NODE, v->id);
			return ERR_OK;
		}
	} else if (symbols_nodes_can_be_put(p, v)) {
		sym_reserve(p, SYM_NODE, v->id);
		return sym_put_node(p, v->id, &node, v->recursive) ? ERR_OK : err_nomem(err, "symbols");
	}
	return sym_load(p, SYM_NODE, v->id, &(union sym_content){ .node = node }, v->recursive, err);
}

enum err_code sym_load_nodes(struct partition *p, const struct sym_stored_node *v, size_t n,
	uint64_t *loaded, struct err *err)
{
	enum err_code rc, lost = ERR_OK;

	for (size_t i = 0; i < n; i++) {
		rc = symbols_nodes_load_one(p, &v[i], err);
		if (rc == ERR_CORRUPT)
			lost = rc;
		else if (rc)
			return rc;
		else
			++*loaded;
	}
	return lost;
}
