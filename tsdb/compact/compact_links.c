#include <inttypes.h>

#include "tsdb/compact/compact_internal.h"
#include "tsdb/symbols/translate.h"

/* Links go from block to block as they are, but where ids change. */

static enum err_code compact_links_translate(struct compact_joining *c, struct translation *tr,
	int64_t ts_ns, struct str *bytes, struct err *err)
{
	struct links_unpacked *u = &c->linked;
	const uint32_t *order;
	struct row row;
	enum err_code rc;
	uint32_t *of;

	if ((rc = links_unpack(u, *bytes, ts_ns, err)) ||
		(rc = join_translate(c, tr, &u->row, &row, &order, err)))
		return rc;
	of = u->ids; /* those of the stacks are translated by now */
	for (uint32_t i = 0; i < row.n; i++)
		of[i] = u->links.of[order[i]];
	u->links.of = of;
	buf_clear(&c->links);
	rc = links_encode(&u->links, &row, ts_ns, &c->links, err);
	*bytes = buf_str(&c->links);
	return rc;
}

enum err_code join_links(
	struct compact_joining *c, const struct compact_part *part, struct err *err)
{
	const struct compact_source *s = &c->sources[part->source];
	const struct block_meta *m = block_meta(s->b->block);
	const struct deleted_range *deleted;
	size_t deleted_n = deleted_of(s->deleted, part->id, &deleted);
	struct str bytes;
	int64_t ts_ns;
	enum err_code rc;

	if (!s->links)
		return ERR_OK;
	block_chunks_seek(s->links, part->id, m->min_ns, m->max_ns);
	while (!(rc = block_chunks_next(s->links, &bytes, &ts_ns, err))) {
		if (deleted_has(deleted, deleted_n, ts_ns))
			continue;
		if ((s->translation &&
				(rc = compact_links_translate(c, s->translation, ts_ns, &bytes, err))) ||
			(rc = join_begin(c, err)) || (rc = block_builder_links(c->m, ts_ns, bytes, err)))
			return rc;
	}
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}
