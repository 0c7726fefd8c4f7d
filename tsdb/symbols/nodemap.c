#include "tsdb/symbols/nodemap.h"

static uint64_t nodemap_hash_of(const void *ctx, const struct idtable *idtable, uint32_t id)
{
	struct stack_node n = stack_node_at(*(const struct stack_nodes *)ctx, id);

	return nodemap_hash(n.parent, (n.tag >> 1) - 1);
}

bool nodemap_add(struct idtable *idtable, struct stack_nodes nodes, uint32_t id)
{
	if (stack_node_at(nodes, id).parent == id - 1)
		return true;
	return idtable_add(idtable, nodemap_hash_of(&nodes, idtable, id), id, nodemap_hash_of, &nodes);
}
