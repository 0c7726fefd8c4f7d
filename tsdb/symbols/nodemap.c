#include "tsdb/symbols/nodemap.h"

#include <stdlib.h>

#define FIRST_LOG2 8

static void place(struct nodemap *m, struct stack_nodes nodes, uint32_t id)
{
	struct stack_node n = stack_node_at(nodes, id);
	uint64_t hash = nodemap_hash(n.parent, (n.tag >> 1) - 1);
	size_t mask = ((size_t)1 << (64 - m->shift)) - 1, i = hash >> m->shift;

	while (m->slots[i])
		i = (i + 1) & mask;
	m->slots[i] = hash << 32 | id;
}

static bool grow(struct nodemap *m, struct stack_nodes nodes)
{
	size_t n = m->slots ? (size_t)1 << (64 - m->shift) : 0;
	struct nodemap wide = { .shift = m->slots ? m->shift - 1 : 64 - FIRST_LOG2, .used = m->used };

	if (!(wide.slots = calloc((size_t)1 << (64 - wide.shift), sizeof(*wide.slots))))
		return false;
	for (size_t i = 0; i < n; i++)
		if (m->slots[i])
			place(&wide, nodes, (uint32_t)m->slots[i]);
	free(m->slots);
	*m = wide;
	return true;
}

bool nodemap_add(struct nodemap *m, struct stack_nodes nodes, uint32_t id)
{
	size_t n = m->slots ? (size_t)1 << (64 - m->shift) : 0;

	if (stack_node_at(nodes, id).parent == id - 1)
		return true;
	/* Four fifths: 13 looks for what is not there, and 20 bytes an entry at worst. */
	if ((m->used + 1) * 5 > n * 4 && !grow(m, nodes))
		return false;
	place(m, nodes, id);
	m->used++;
	return true;
}

void nodemap_release(struct nodemap *m)
{
	free(m->slots);
	*m = (struct nodemap){ 0 };
}
