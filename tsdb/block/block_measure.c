#include "tsdb/block/block_internal.h"

/* Sums a block's bytes by what they are for. */

static void measure_record(struct block_sizes *s, struct str key, uint64_t bytes)
{
	struct cursor in = cursor_of(key);
	uint32_t at; /* level, or kind of symbols */

	(void)cursor_bytes(&in, BLOCK_KEY_ID_BYTES);
	at = cursor_left(&in) ? *in.at : 0;
	switch (key.len ? key.ptr[0] : 0) {
	case KEY_ROLLUP_SERIES:
		s->rollups_series[at < ROLLUP_LEVELS ? at : 0] += bytes;
		break;
	case KEY_ROLLUP_GROUP:
		s->rollups_group[at < ROLLUP_LEVELS ? at : 0] += bytes;
		break;
	case KEY_FUNCTIONS:
		s->functions[at < ROLLUP_LEVELS ? at : 0] += bytes;
		break;
	case KEY_NAME:
	case KEY_VALUE:
		s->postings += bytes;
		break;
	case KEY_SERIES:
	case KEY_GROUP:
		s->series += bytes;
		break;
	case KEY_SYMBOLS:
		s->symbols[at < SYM_KINDS ? at : 0] += bytes;
		break;
	case KEY_NUMBERS:
		s->numbers += bytes;
		break;
	case KEY_ROWS:
		s->rows += bytes;
		break;
	case KEY_LINKS:
		s->links += bytes;
		break;
	default:
		s->meta += bytes;
	}
}

static enum err_code block_add_chunk(
	struct chunk *c, struct str bytes, struct chunk_sizes *sum, struct err *err)
{
	struct chunk_sizes one = { 0 };
	enum err_code rc;

	if ((rc = chunk_parse(c, bytes, err)) || (rc = chunk_measure(c, &one, err)))
		return rc;
	sum->heads += one.heads;
	sum->ids += one.ids;
	sum->positions += one.positions;
	sum->values += one.values;
	sum->sums += one.sums;
	sum->total += one.total;
	sum->rows += one.rows;
	sum->entries += one.entries;
	sum->samples += one.samples;
	return ERR_OK;
}

static enum err_code measure_table(
	struct table *t, struct chunk *c, struct block_sizes *s, struct err *err)
{
	struct str key, value;
	struct block_iter it;
	enum err_code rc;

	if ((rc = block_iter_open(&it, t, true, err)))
		return rc;
	block_iter_seek(&it, STR(""), 0);
	/* Damaged records count as overhead of the files. */
	while (!(rc = block_iter_next(&it, &key, &value, err)) || rc == ERR_CORRUPT) {
		if (rc)
			continue;
		measure_record(s, key, key.len + value.len);
		if (key.len && key.ptr[0] == KEY_ROWS &&
			(rc = block_add_chunk(c, value, &s->chunks, err)) && rc != ERR_CORRUPT)
			break;
	}
	block_iter_close(&it);
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

enum err_code block_measure(struct block *b, struct block_sizes *out, struct err *err)
{
	struct chunk *c = chunk_open();
	uint64_t records = 0, disk = block_disk_bytes(b);
	enum err_code rc;

	if (!c)
		return err_nomem(err, "block");
	*out = (struct block_sizes){ 0 };
	rc = b->rows ? measure_table(b->rows, c, out, err) : ERR_OK;
	if (!rc)
		rc = measure_table(b->rollups, c, out, err);
	chunk_close(c);
	records = out->rows + out->links + out->numbers + out->series + out->postings + out->meta;
	for (size_t i = 0; i < ROLLUP_LEVELS; i++)
		records += out->rollups_series[i] + out->rollups_group[i] + out->functions[i];
	for (size_t i = 0; i < SYM_KINDS; i++)
		records += out->symbols[i];
	out->overhead = disk > records ? disk - records : 0;
	return rc;
}

uint64_t block_rollups_bytes(const struct block *b, enum block_rollups_kind kind)
{
	static const enum block_key_kind kinds[] = { [BLOCK_ROLLUPS_SERIES] = KEY_ROLLUP_SERIES,
		[BLOCK_ROLLUPS_GROUP] = KEY_ROLLUP_GROUP,
		[BLOCK_ROLLUPS_FUNCTIONS] = KEY_FUNCTIONS };
	struct block_key first = block_key_id(kinds[kind], 0),
					 end = block_key_id(kinds[kind], UINT32_MAX);

	return table_offset(b->rollups, block_key_str(&end)) -
		table_offset(b->rollups, block_key_str(&first));
}
