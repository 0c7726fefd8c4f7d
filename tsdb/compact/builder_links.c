#include <inttypes.h>

#include "base/map.h"
#include "tsdb/compact/builder_internal.h"

/* Links of rows: they wait in a file until all chunks are written, as they come behind them. */

struct waiting_links {
	uint32_t series;
	uint32_t len;
	int64_t ts_ns;
};

static uint64_t builder_links_hash(uint32_t series, int64_t ts_ns, struct str bytes)
{
	return hash_bytes(bytes.ptr, bytes.len, map_hash_u64((uint64_t)ts_ns ^ map_hash_u64(series)));
}

enum err_code block_builder_links(
	struct block_builder *b, int64_t ts_ns, struct str bytes, struct err *err)
{
	const struct waiting_links head = { b->id, (uint32_t)bytes.len, ts_ns };

	buf_clear(&b->record);
	buf_add(&b->record, &head, sizeof(head));
	buf_add_str(&b->record, bytes);
	if (buf_failed(&b->record))
		return err_nomem(err, "links");
	b->links_n++;
	b->links_hash += builder_links_hash(b->id, ts_ns, bytes);
	return spill_add(&b->links_spill, buf_str(&b->record), err);
}

uint64_t block_builder_links_n(const struct block_builder *b)
{
	return b->links_n;
}

enum err_code block_builder_write_links(struct block_builder *b, struct err *err)
{
	struct spill *s = &b->links_spill;
	struct waiting_links head;
	enum err_code rc = ERR_OK;

	for (uint64_t at = 0; at < spill_bytes(s) && !rc; at += sizeof(head) + head.len) {
		if ((rc = spill_read(s, at, sizeof(head), &b->bytes, err)))
			return rc;
		memcpy(&head, b->bytes.ptr, sizeof(head));
		if ((rc = spill_read(s, at + sizeof(head), head.len, &b->bytes, err)))
			return rc;
		rc = block_writer_links(b->writer, head.series, head.ts_ns, buf_str(&b->bytes), err);
	}
	return rc;
}

enum err_code block_builder_verify_links(
	struct block_builder *builder, struct block *b, struct err *err)
{
	uint64_t n = 0, hash = 0, series = builder->links_n ? builder->checks_n : 0;
	struct block_chunks *it = NULL;
	enum err_code rc = ERR_OK;
	struct str bytes;
	int64_t ts_ns;

	if (series && (rc = block_links_open(b, true, &it, err)))
		return rc;
	for (uint32_t id = (uint32_t)builder->number_series; id < series && !rc; id++) {
		block_chunks_seek(it, id, builder->o.min_ns, builder->o.max_ns);
		for (; !(rc = block_chunks_next(it, &bytes, &ts_ns, err)); n++)
			hash += builder_links_hash(id, ts_ns, bytes);
		rc = rc == ERR_NOT_FOUND ? ERR_OK : rc;
	}
	block_chunks_close(it);
	if (!rc && (n != builder->links_n || hash != builder->links_hash || block_meta(b)->links != n))
		rc = err_set(err, ERR_CORRUPT,
			"%s, read back: links of %" PRIu64 " rows are not what was written", builder->tmp,
			builder->links_n);
	return rc;
}
