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
	struct block_builder *m, int64_t step_ns, struct str bytes, struct err *err)
{
	if (!array_room(&m->records, m->records_n, 1, &m->records_cap))
		return err_nomem(err, "rollups");
	m->records[m->records_n++] = (struct step_record){ step_ns, spill_bytes(&m->records_spill),
		(uint32_t)bytes.len };
	return spill_add(&m->records_spill, bytes, err);
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
	struct block_builder *m, struct buf *b, waiting_fn fn, struct err *err)
{
	enum err_code rc = ERR_OK;
	struct waiting head;

	for (uint32_t level = 1; level < ROLLUP_LEVELS; level++)
		for (size_t at = 0; at < b->len && !rc; at += sizeof(head) + head.len) {
			memcpy(&head, b->ptr + at, sizeof(head));
			if (head.level == level)
				rc = fn(m, &head, (struct str){ b->ptr + at + sizeof(head), head.len }, err);
		}
	buf_clear(b);
	return rc;
}

static enum err_code builder_groups_put_later(
	struct block_builder *m, const struct waiting *head, struct str bytes, struct err *err)
{
	return block_writer_rollup(m->writer, head->level, head->step_ns, bytes, err);
}

enum err_code block_builder_end_series(struct block_builder *m, struct err *err)
{
	enum err_code rc;

	if (!m->series_open)
		return ERR_OK;
	m->series_open = false;
	if ((rc = block_builder_flush(m, err)) || (rc = cascade_end(m->of_series, err)))
		return rc;
	return builder_groups_each_waiting(m, &m->later, builder_groups_put_later, err);
}

/* ---- of groups ---- */

static enum err_code spill_waiting(struct block_builder *m, struct spill *s, uint32_t level,
	int64_t step_ns, struct str bytes, struct err *err)
{
	enum err_code rc;

	buf_clear(&m->record);
	rc = builder_groups_wait_in(&m->record, m->group, level, step_ns, bytes, err);
	return rc ? rc : spill_add(s, buf_str(&m->record), err);
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

static enum err_code builder_groups_add_records(struct block_builder *m, struct err *err)
{
	struct buf bytes = { 0 };
	enum err_code rc = ERR_OK;

	if (m->records_n)
		qsort(m->records, m->records_n, sizeof(*m->records), builder_groups_record_cmp);
	for (size_t i = 0; i < m->records_n && !rc; i++) {
		const struct step_record *r = &m->records[i];

		if (!(rc = spill_read(&m->records_spill, r->at, r->len, &bytes, err)))
			rc = cascade_record(m->of_group, r->step_ns, buf_str(&bytes), (struct str){ 0 }, err);
	}
	buf_release(&bytes);
	return rc;
}

static enum err_code builder_groups_put_later_group(
	struct block_builder *m, const struct waiting *head, struct str bytes, struct err *err)
{
	return spill_waiting(m, &m->group_spill, head->level, head->step_ns, bytes, err);
}

static enum err_code builder_groups_put_later_functions(
	struct block_builder *m, const struct waiting *head, struct str bytes, struct err *err)
{
	return spill_waiting(m, &m->functions_spill, head->level, head->step_ns, bytes, err);
}

enum err_code block_builder_end_group(struct block_builder *m, struct err *err)
{
	enum err_code rc;

	if (!m->group_open)
		return ERR_OK;
	m->group_open = false;
	if ((rc = builder_groups_add_records(m, err)) || (rc = cascade_end(m->of_group, err)) ||
		(rc = builder_groups_each_waiting(
			 m, &m->later_group, builder_groups_put_later_group, err)) ||
		(rc = builder_groups_each_waiting(
			 m, &m->later_functions, builder_groups_put_later_functions, err)))
		return rc;
	m->records_n = 0;
	return spill_clear(&m->records_spill, err);
}

enum err_code block_builder_group_rollup(struct block_builder *m, int64_t step_ns, struct str bytes,
	struct str functions, struct err *err)
{
	enum err_code rc = block_builder_end_series(m, err);

	return rc ? rc : cascade_record(m->of_group, step_ns, bytes, functions, err);
}

static enum err_code builder_groups_write_spill(
	struct block_builder *m, struct spill *s, enum rollup_kind kind, struct err *err)
{
	struct waiting head;
	enum err_code rc = ERR_OK;

	for (uint64_t at = 0; at < spill_bytes(s) && !rc; at += sizeof(head) + head.len) {
		if ((rc = spill_read(s, at, sizeof(head), &m->bytes, err)))
			return rc;
		memcpy(&head, m->bytes.ptr, sizeof(head));
		if ((rc = spill_read(s, at + sizeof(head), head.len, &m->bytes, err)))
			return rc;
		rc = block_writer_group_rollup(
			m->writer, kind, head.group, head.level, head.step_ns, buf_str(&m->bytes), err);
	}
	return rc;
}

enum err_code block_builder_write_groups(struct block_builder *m, struct err *err)
{
	enum err_code rc = builder_groups_write_spill(m, &m->group_spill, ROLLUP_GROUP, err);

	return rc ? rc : builder_groups_write_spill(m, &m->functions_spill, ROLLUP_FUNCTIONS, err);
}
