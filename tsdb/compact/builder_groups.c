#include <stdlib.h>

#include "base/array.h"

#include "tsdb/compact/builder_internal.h"

/* Adds rollups to the block: those of series as they are made, those of groups behind all series;
 * they wait in files until then. */

/* A waiting record: its place, its length, its bytes. */
struct waiting {
	uint32_t group, level;
	int64_t step_ns;
	uint64_t len;
};

static enum err_code builder_groups_wait_in(struct buf *b, uint32_t group, uint32_t level,
	int64_t step_ns, struct str bytes, struct err *err)
{
	struct waiting head = { group, level, step_ns, bytes.len };

	buf_add(b, &head, sizeof(head));
	buf_add_str(b, bytes);
	return buf_failed(b) ? err_nomem(err, "rollups") : ERR_OK;
}

/* ---- of series ---- */

static enum err_code builder_groups_note_record(
	struct block_builder *b, int64_t step_ns, struct str bytes, struct err *err)
{
	if (!array_room(&b->records, b->records_n, 1, &b->records_cap))
		return err_nomem(err, "rollups");
	b->records[b->records_n++] = (struct step_record){ step_ns, spill_bytes(&b->records_spill),
		(uint32_t)bytes.len };
	return spill_add(&b->records_spill, bytes, err);
}

enum err_code block_builder_emit_series(
	void *ctx, bool functions, uint32_t level, int64_t step_ns, struct str bytes, struct err *err)
{
	struct block_builder *m = ctx;
	enum err_code rc;

	if (level)
		return builder_groups_wait_in(&m->later, 0, level, step_ns, bytes, err);
	if ((rc = block_writer_rollup(m->writer, level, step_ns, bytes, err)))
		return rc;
	return m->given ? ERR_OK : builder_groups_note_record(m, step_ns, bytes, err);
}

/* Each waiting record of b, level after level. */
typedef enum err_code (*waiting_fn)(
	struct block_builder *m, const struct waiting *head, struct str bytes, struct err *err);

static enum err_code builder_groups_each_waiting(
	struct block_builder *builder, struct buf *b, waiting_fn fn, struct err *err)
{
	enum err_code rc = ERR_OK;
	struct waiting head;

	for (uint32_t level = 1; level < ROLLUP_LEVELS; level++)
		for (size_t at = 0; at < b->len && !rc; at += sizeof(head) + head.len) {
			memcpy(&head, b->ptr + at, sizeof(head));
			if (head.level == level)
				rc = fn(builder, &head, (struct str){ b->ptr + at + sizeof(head), head.len }, err);
		}
	buf_clear(b);
	return rc;
}

static enum err_code builder_groups_put_later(
	struct block_builder *b, const struct waiting *head, struct str bytes, struct err *err)
{
	return block_writer_rollup(b->writer, head->level, head->step_ns, bytes, err);
}

enum err_code block_builder_end_series(struct block_builder *b, struct err *err)
{
	enum err_code rc;

	if (!b->series_open)
		return ERR_OK;
	b->series_open = false;
	if ((rc = block_builder_flush(b, err)) || (rc = cascade_end(b->of_series, err)))
		return rc;
	return builder_groups_each_waiting(b, &b->later, builder_groups_put_later, err);
}

/* ---- of groups ---- */

static enum err_code spill_waiting(struct block_builder *b, struct spill *s, uint32_t level,
	int64_t step_ns, struct str bytes, struct err *err)
{
	enum err_code rc;

	buf_clear(&b->record);
	rc = builder_groups_wait_in(&b->record, b->group, level, step_ns, bytes, err);
	return rc ? rc : spill_add(s, buf_str(&b->record), err);
}

enum err_code block_builder_emit_group(
	void *ctx, bool functions, uint32_t level, int64_t step_ns, struct str bytes, struct err *err)
{
	struct block_builder *m = ctx;

	/* A group of one series shows that one's. */
	if (!functions && m->group_series_n == 1)
		return ERR_OK;
	if (level)
		return builder_groups_wait_in(functions ? &m->later_functions : &m->later_group, m->group,
			level, step_ns, bytes, err);
	return spill_waiting(
		m, functions ? &m->functions_spill : &m->group_spill, level, step_ns, bytes, err);
}

static int builder_groups_record_cmp(const void *a, const void *b)
{
	const struct step_record *x = a, *y = b;

	if (x->step_ns != y->step_ns)
		return x->step_ns < y->step_ns ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static enum err_code builder_groups_add_records(struct block_builder *b, struct err *err)
{
	struct buf bytes = { 0 };
	enum err_code rc = ERR_OK;

	if (b->records_n)
		qsort(b->records, b->records_n, sizeof(*b->records), builder_groups_record_cmp);
	for (size_t i = 0; i < b->records_n && !rc; i++) {
		const struct step_record *r = &b->records[i];

		if (!(rc = spill_read(&b->records_spill, r->at, r->len, &bytes, err)))
			rc = cascade_record(b->of_group, r->step_ns, buf_str(&bytes), (struct str){ 0 }, err);
	}
	buf_release(&bytes);
	return rc;
}

static enum err_code builder_groups_put_later_group(
	struct block_builder *b, const struct waiting *head, struct str bytes, struct err *err)
{
	return spill_waiting(b, &b->group_spill, head->level, head->step_ns, bytes, err);
}

static enum err_code builder_groups_put_later_functions(
	struct block_builder *b, const struct waiting *head, struct str bytes, struct err *err)
{
	return spill_waiting(b, &b->functions_spill, head->level, head->step_ns, bytes, err);
}

enum err_code block_builder_end_group(struct block_builder *b, struct err *err)
{
	enum err_code rc;

	if (!b->group_open)
		return ERR_OK;
	b->group_open = false;
	if ((rc = builder_groups_add_records(b, err)) || (rc = cascade_end(b->of_group, err)) ||
		(rc = builder_groups_each_waiting(
			 b, &b->later_group, builder_groups_put_later_group, err)) ||
		(rc = builder_groups_each_waiting(
			 b, &b->later_functions, builder_groups_put_later_functions, err)))
		return rc;
	b->records_n = 0;
	return spill_clear(&b->records_spill, err);
}

enum err_code block_builder_group_rollup(struct block_builder *b, int64_t step_ns, struct str bytes,
	struct str functions, struct err *err)
{
	enum err_code rc = block_builder_end_series(b, err);

	return rc ? rc : cascade_record(b->of_group, step_ns, bytes, functions, err);
}

static enum err_code builder_groups_write_spill(
	struct block_builder *b, struct spill *s, enum rollup_kind kind, struct err *err)
{
	struct waiting head;
	enum err_code rc = ERR_OK;

	for (uint64_t at = 0; at < spill_bytes(s) && !rc; at += sizeof(head) + head.len) {
		if ((rc = spill_read(s, at, sizeof(head), &b->bytes, err)))
			return rc;
		memcpy(&head, b->bytes.ptr, sizeof(head));
		if ((rc = spill_read(s, at + sizeof(head), head.len, &b->bytes, err)))
			return rc;
		rc = block_writer_group_rollup(
			b->writer, kind, head.group, head.level, head.step_ns, buf_str(&b->bytes), err);
	}
	return rc;
}

enum err_code block_builder_write_groups(struct block_builder *b, struct err *err)
{
	enum err_code rc = builder_groups_write_spill(b, &b->group_spill, ROLLUP_GROUP, err);

	return rc ? rc : builder_groups_write_spill(b, &b->functions_spill, ROLLUP_FUNCTIONS, err);
}
