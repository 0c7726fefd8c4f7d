#include <inttypes.h>

#include "tsdb/block/block_verify.h"

static enum err_code block_check_links(struct verify *v, const struct block_series *s,
	struct str bytes, int64_t ts_ns, struct err *err)
{
	const struct row *row = &v->unpacked.row;
	enum err_code rc;

	if ((rc = links_unpack(&v->unpacked, bytes, ts_ns, err)) ||
		(rc = row_check_ids(v->partition, &v->unpacked.view, row->stacks, row->label_sets, err)))
		return rc;
	if (ts_ns < s->first_ns || ts_ns > s->last_ns)
		return err_set(err, ERR_CORRUPT, "links of a time without rows");
	return ERR_OK;
}

enum err_code verify_series_links(
	struct verify *v, uint32_t id, const struct block_series *s, struct err *err)
{
	struct str bytes;
	int64_t ts_ns;
	enum err_code rc;
	struct err why;

	if (!v->b->meta.links)
		return ERR_OK;
	block_chunks_seek(v->links, id, INT64_MIN, INT64_MAX);
	while ((rc = block_chunks_next(v->links, &bytes, &ts_ns, &why)) != ERR_NOT_FOUND) {
		if (!rc && !(rc = block_check_links(v, s, bytes, ts_ns, &why)))
			continue;
		err_wrap(&why, rc, "series %" PRIu32, id);
		if ((rc = verify_error(v, rc, &why, err)))
			return rc;
	}
	return ERR_OK;
}
