#include <stdlib.h>

#include "base/map.h"
#include "tsdb/compact/builder_internal.h"
#include "tsdb/compact/compaction.h"

/* Numbers into chunks. All but a series' last chunk have NUMBERS_A_CHUNK values. */
#define NUMBERS_A_CHUNK 1000u

/* The hash depends on order: values of a series have one order only. */
void builder_numbers_check_number(struct series_check *c, int64_t ts_ns, double value)
{
	c->hash = map_hash_u64(c->hash ^ map_hash_u64((uint64_t)ts_ns) ^ number_bits(value)) +
		UINT64_C(0x9e3779b97f4a7c15);
	c->rows++;
}

enum err_code block_builder_flush_numbers(struct block_builder *b, struct err *err)
{
	enum err_code rc;

	if (!b->numbers || !b->numbers->n)
		return ERR_OK;
	rc = block_writer_numbers(b->writer, b->numbers, err);
	b->numbers->n = 0;
	return rc;
}

enum err_code block_builder_number_series(
	struct block_builder *b, struct labels labels, uint32_t *id, struct err *err)
{
	enum err_code rc;

	if (!b->numbers && !(b->numbers = calloc(1, sizeof(*b->numbers))))
		return err_nomem(err, "make block");
	if ((rc = compaction_pause(b->db, err)) || (rc = block_builder_flush_numbers(b, err)) ||
		(rc = block_builder_reserve_check(b, err)) ||
		(rc = block_writer_number_series(b->writer, labels, id, err)))
		return rc;
	b->number_series++;
	b->checks_n++;
	return ERR_OK;
}

enum err_code block_builder_number(
	struct block_builder *b, int64_t ts_ns, double value, struct err *err)
{
	struct number_chunk *c = b->numbers;
	enum err_code rc;

	if (c->n == NUMBERS_A_CHUNK && (rc = block_builder_flush_numbers(b, err)))
		return rc;
	c->ts[c->n] = ts_ns;
	c->values[c->n++] = value;
	builder_numbers_check_number(&b->checks[b->checks_n - 1], ts_ns, value);
	b->numbers_n++;
	return ERR_OK;
}

enum err_code block_builder_read_numbers(struct block_builder *b, struct block_chunks *it,
	uint32_t id, struct series_check *got, struct err *err)
{
	struct number_chunk *c = b->numbers;
	struct str bytes;
	int64_t first;
	enum err_code rc;

	block_chunks_seek(it, id, b->o.min_ns, b->o.max_ns);
	while (!(rc = block_chunks_next(it, &bytes, &first, err))) {
		if ((rc = number_chunk_decode(bytes, c, err)))
			return rc;
		for (uint32_t i = 0; i < c->n; i++)
			builder_numbers_check_number(got, c->ts[i], c->values[i]);
	}
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

uint64_t block_builder_numbers(const struct block_builder *b)
{
	return b->numbers_n;
}
