#include <inttypes.h>

#include "tsdb/compact/compact_internal.h"
#include "tsdb/symbols/translate.h"

/* Links go from block to block as they are, but where ids change. */

static enum err_code compact_links_translate(struct compact_joining *t, struct translation *tr,
	int64_t ts_ns, struct str *bytes, struct err *err)
{
	struct links_unpacked *u = &t->linked;
	const uint32_t *order;
	struct row row;
	enum err_code rc;
	uint32_t *of;

	if ((rc = links_unpack(u, *bytes, ts_ns, err)) ||
		(rc = join_translate(t, tr, &u->row, &row, &order, err)))
		return rc;
	of = u->ids; /* those of the stacks are translated by now */
	for (uint32_t i = 0; i < row.n; i++)
		of[i] = u->links.of[order[i]];
	u->links.of = of;
	buf_clear(&t->links);
	rc = links_encode(&u->links, &row, ts_ns, &t->links, err);
	*bytes = buf_str(&t->links);
	return rc;
}

enum err_code join_links(
	struct compact_joining *t, const struct compact_part *part, struct err *err)
{
	const struct compact_source *s = &t->sources[part->source];
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
				(rc = compact_links_translate(t, s->translation, ts_ns, &bytes, err))) ||
			(rc = join_begin(t, err)) || (rc = block_builder_links(t->m, ts_ns, bytes, err)))
			return rc;
	}
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}
