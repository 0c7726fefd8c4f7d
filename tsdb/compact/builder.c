#include "tsdb/compact/builder.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/self/heap.h"
#include "tsdb/catalog/residents.h"
#include "tsdb/compact/builder_internal.h"
#include "tsdb/compact/compaction.h"

/* The finest always, others where the block is as long as their step. */
static unsigned compact_builder_levels_of(int64_t range_ns)
{
	unsigned levels = 1;

	for (unsigned i = 1; i < ROLLUP_LEVELS; i++)
		if (rollup_step_ns[i] <= range_ns)
			levels |= 1u << i;
	return levels;
}

static enum err_code compact_builder_open_writer(struct block_builder *m, struct err *err)
{
	struct fs *fs = m->db->o.fs;
	const char *blocks = m->db->blocks_dir;
	struct block_write_options w;
	char *spill[4];

	m->ulid = ulid_new(clock_now_ns());
	m->dir = arena_printf(&m->paths, "%s/%s", blocks, m->ulid.text);
	m->tmp = arena_printf(&m->paths, "%s" BLOCK_TMP, m->dir);
	for (int i = 0; i < 4; i++)
		spill[i] = arena_printf(&m->paths, "%s/%s.%d" BLOCK_TMP, blocks, m->ulid.text, i);
	m->chunk = chunk_open();
	if (!m->dir || !m->tmp || !spill[0] || !spill[1] || !spill[2] || !spill[3] || !m->chunk)
		return err_nomem(err, "make block");
	spill_init(&m->records_spill, fs, spill[0]);
	spill_init(&m->group_spill, fs, spill[1]);
	spill_init(&m->functions_spill, fs, spill[2]);
	spill_init(&m->links_spill, fs, spill[3]);
	w = (struct block_write_options){ .fs = fs,
		.dir = m->tmp,
		.ulid = m->ulid,
		.min_ns = m->o.min_ns,
		.max_ns = m->o.max_ns,
		.levels = m->levels,
		.raw = m->o.raw };
	return block_writer_open(&w, &m->writer, err);
}

enum err_code block_builder_open(struct db *db, const struct block_builder_options *o,
	struct block_builder **out, struct err *err)
{
	struct block_builder *m = calloc(1, sizeof(*m));
	enum err_code rc;

	if (!m)
		return err_nomem(err, "make block");
	heap_trim(); /* what ingest freed; else the peak has it too */
	m->db = db;
	m->o = *o;
	m->levels = compact_builder_levels_of(o->max_ns - o->min_ns);
	arena_init(&m->paths, 0);
	arena_init(&m->rows_arena, 0);
	arena_init(&m->scratch, 0);
	arena_init(&m->group_arena, 0);
	spill_init(&m->records_spill, NULL, NULL);
	spill_init(&m->group_spill, NULL, NULL);
	spill_init(&m->functions_spill, NULL, NULL);
	spill_init(&m->links_spill, NULL, NULL);
	if ((rc = compact_builder_open_writer(m, err)))
		block_builder_close(m);
	else
		*out = m;
	return rc;
}

void block_builder_close(struct block_builder *m)
{
	struct err err;

	if (!m)
		return;
	block_writer_close(m->writer);
	if (!m->published && m->tmp && fs_exists(m->tmp) && fs_remove_tree(m->db->o.fs, m->tmp, &err))
		log_warn("tsdb", "unfinished block not removed", LOG_S("path", m->tmp), LOG_E(&err));
	cascade_close(m->of_series);
	cascade_close(m->of_group);
	if (m->p)
		partition_unpin(m->db, m->p);
	spill_release(&m->records_spill);
	spill_release(&m->group_spill);
	spill_release(&m->functions_spill);
	spill_release(&m->links_spill);
	free(m->records);
	free(m->checks);
	free(m->numbers);
	free(m->ts);
	free(m->rows);
	chunk_close(m->chunk);
	buf_release(&m->later);
	buf_release(&m->later_group);
	buf_release(&m->later_functions);
	buf_release(&m->bytes);
	buf_release(&m->record);
	arena_release(&m->paths);
	arena_release(&m->rows_arena);
	arena_release(&m->scratch);
	arena_release(&m->group_arena);
	free(m);
}

static enum err_code compact_builder_end_open(struct block_builder *m, struct err *err)
{
	enum err_code rc = block_builder_end_series(m, err);

	return rc ? rc : block_builder_end_group(m, err);
}

enum err_code block_builder_partition(struct block_builder *m, struct partition *p, struct err *err)
{
	enum err_code rc;
	uint32_t slot;

	if (!(rc = block_builder_flush_numbers(m, err)))
		rc = compact_builder_end_open(m, err);
	cascade_close(m->of_series);
	cascade_close(m->of_group);
	m->of_series = m->of_group = NULL;
	/* The writer takes what it needs of the one before. */
	if (!rc)
		rc = block_writer_partition(m->writer, p, &slot, err);
	if (m->p)
		partition_unpin(m->db, m->p);
	m->p = p;
	m->partitions_n++;
	if (rc ||
		(rc = cascade_open(p, m->levels, false, block_builder_emit_series, m, &m->of_series, err)))
		return rc;
	return cascade_open(p, m->levels, true, block_builder_emit_group, m, &m->of_group, err);
}

enum err_code block_builder_reserve_check(struct block_builder *m, struct err *err)
{
	if (!array_room(&m->checks, m->checks_n, 1, &m->checks_cap))
		return err_nomem(err, "make block");
	m->checks[m->checks_n] = (struct series_check){ 0 };
	return ERR_OK;
}

enum err_code block_builder_series(
	struct block_builder *m, struct labels labels, bool given, uint32_t *id, struct err *err)
{
	struct labels of_group;
	enum err_code rc;
	uint32_t group;

	assert(m->partitions_n); /* its partition has begun */
	if ((rc = compaction_pause(m->db, err)) || (rc = block_builder_end_series(m, err)))
		return rc;
	arena_reset(&m->scratch);
	if ((rc = group_labels(&m->o.rules, labels, &m->scratch, &of_group, err)) ||
		(rc = block_builder_reserve_check(m, err)))
		return rc;
	/* The writer finds out whether a group begins; the one before must be complete by then. */
	if (m->group_open && (labels_cmp(m->now_group, of_group) || m->now_p != m->p) &&
		(rc = block_builder_end_group(m, err)))
		return rc;
	if ((rc = block_writer_series(
			 m->writer, m->partitions_n - 1, labels, of_group, &m->id, &group, err)))
		return rc;
	if (!m->group_open) {
		m->group_open = true;
		m->group = group;
		m->given = given;
		m->group_series_n = 0;
		m->now_p = m->p;
		arena_reset(&m->group_arena);
		m->now_group = labels_dup(&m->group_arena, of_group);
		if (of_group.n && !m->now_group.v)
			return err_nomem(err, "make block");
	}
	m->group_series_n++;
	assert(m->id == m->checks_n); /* a check has its series' number */
	m->checks_n++;
	m->series_open = true;
	*id = m->id;
	return ERR_OK;
}

enum err_code block_builder_rollup(
	struct block_builder *m, int64_t step_ns, struct str bytes, struct err *err)
{
	enum err_code rc;

	assert(m->series_open);
	rc = block_builder_flush(m, err);
	return rc ? rc : cascade_record(m->of_series, step_ns, bytes, (struct str){ 0 }, err);
}

enum err_code block_builder_finish(
	struct block_builder *m, struct block_meta *meta, struct err *err)
{
	enum err_code rc;

	if ((rc = block_builder_flush_numbers(m, err)) || (rc = compact_builder_end_open(m, err)) ||
		(rc = block_builder_write_groups(m, err)) || (rc = block_builder_write_links(m, err)))
		return rc;
	if ((rc = block_writer_finish(m->writer, meta, err)))
		return rc;
	block_writer_close(m->writer);
	m->writer = NULL;
	return block_builder_verify(m, err);
}

enum err_code block_builder_set_deleted(
	struct block_builder *m, struct deleted_range *v, size_t n, struct err *err)
{
	char *path = block_deleted_path(m->tmp);
	struct deleted d = { 0 };
	enum err_code rc;

	if (!path)
		return err_nomem(err, "make block");
	if (!(rc = deleted_make(v, n, (struct deleted){ 0 }, &d, err)))
		rc = deleted_save(m->db, path, str_of(m->ulid.text), d, err);
	deleted_release(d.v);
	free(path);
	return rc;
}

enum err_code block_builder_publish(struct block_builder *m, struct db_block **out, struct err *err)
{
	struct fs *fs = m->db->o.fs;
	enum err_code rc;

	mutex_assert_held(&m->db->blocks_files);
	assert(!m->published && !m->writer); /* finished, and not yet in place */
	if ((rc = fs->ops->rename(fs, m->tmp, m->dir, err)))
		return rc;
	if (!(rc = fs->ops->sync_dir(fs, m->db->blocks_dir, err)) &&
		!(rc = blocks_open(m->db, m->dir, out, err))) {
		m->published = true;
		return ERR_OK;
	}
	/* Rename it back: its sources stay in use, and a start must not remove them. */
	if (fs->ops->rename(fs, m->dir, m->tmp, NULL)) {
		m->published = true;
		log_error("tsdb", "block was made, cannot be used, and cannot be taken back",
			LOG_S("block", m->dir), LOG_E(err));
	}
	return rc;
}

uint64_t block_builder_rows(const struct block_builder *m)
{
	return m->rows_n;
}

uint64_t block_builder_series_n(const struct block_builder *m)
{
	return m->checks_n;
}
