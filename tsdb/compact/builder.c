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

static enum err_code compact_builder_open_writer(struct block_builder *b, struct err *err)
{
	struct fs *fs = b->db->o.fs;
	const char *blocks = b->db->blocks_dir;
	struct block_write_options w;
	char *spill[4];

	b->ulid = ulid_new(clock_now_ns());
	b->dir = arena_printf(&b->paths, "%s/%s", blocks, b->ulid.text);
	b->tmp = arena_printf(&b->paths, "%s" BLOCK_TMP, b->dir);
	for (int i = 0; i < 4; i++)
		spill[i] = arena_printf(&b->paths, "%s/%s.%d" BLOCK_TMP, blocks, b->ulid.text, i);
	b->chunk = chunk_open();
	if (!b->dir || !b->tmp || !spill[0] || !spill[1] || !spill[2] || !spill[3] || !b->chunk)
		return err_nomem(err, "make block");
	spill_init(&b->records_spill, fs, spill[0]);
	spill_init(&b->group_spill, fs, spill[1]);
	spill_init(&b->functions_spill, fs, spill[2]);
	spill_init(&b->links_spill, fs, spill[3]);
	w = (struct block_write_options){ .fs = fs,
		.dir = b->tmp,
		.ulid = b->ulid,
		.min_ns = b->o.min_ns,
		.max_ns = b->o.max_ns,
		.levels = b->levels,
		.raw = b->o.raw };
	return block_writer_open(&w, &b->writer, err);
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

void block_builder_close(struct block_builder *b)
{
	struct err err;

	if (!b)
		return;
	block_writer_close(b->writer);
	if (!b->published && b->tmp && fs_exists(b->tmp) && fs_remove_tree(b->db->o.fs, b->tmp, &err))
		log_warn("tsdb", "unfinished block not removed", LOG_S("path", b->tmp), LOG_E(&err));
	cascade_close(b->of_series);
	cascade_close(b->of_group);
	if (b->p)
		partition_unpin(b->db, b->p);
	spill_release(&b->records_spill);
	spill_release(&b->group_spill);
	spill_release(&b->functions_spill);
	spill_release(&b->links_spill);
	free(b->records);
	free(b->checks);
	free(b->numbers);
	free(b->ts);
	free(b->rows);
	chunk_close(b->chunk);
	buf_release(&b->later);
	buf_release(&b->later_group);
	buf_release(&b->later_functions);
	buf_release(&b->bytes);
	buf_release(&b->record);
	arena_release(&b->paths);
	arena_release(&b->rows_arena);
	arena_release(&b->scratch);
	arena_release(&b->group_arena);
	free(b);
}

static enum err_code compact_builder_end_open(struct block_builder *b, struct err *err)
{
	enum err_code rc = block_builder_end_series(b, err);

	return rc ? rc : block_builder_end_group(b, err);
}

enum err_code block_builder_partition(struct block_builder *b, struct partition *p, struct err *err)
{
	enum err_code rc;
	uint32_t slot;

	if (!(rc = block_builder_flush_numbers(b, err)))
		rc = compact_builder_end_open(b, err);
	cascade_close(b->of_series);
	cascade_close(b->of_group);
	b->of_series = b->of_group = NULL;
	/* The writer takes what it needs of the one before. */
	if (!rc)
		rc = block_writer_partition(b->writer, p, &slot, err);
	if (b->p)
		partition_unpin(b->db, b->p);
	b->p = p;
	b->partitions_n++;
	if (rc ||
		(rc = cascade_open(p, b->levels, false, block_builder_emit_series, b, &b->of_series, err)))
		return rc;
	return cascade_open(p, b->levels, true, block_builder_emit_group, b, &b->of_group, err);
}

enum err_code block_builder_reserve_check(struct block_builder *b, struct err *err)
{
	if (!array_room(&b->checks, b->checks_n, 1, &b->checks_cap))
		return err_nomem(err, "make block");
	b->checks[b->checks_n] = (struct series_check){ 0 };
	return ERR_OK;
}

enum err_code block_builder_series(
	struct block_builder *b, struct labels labels, bool given, uint32_t *id, struct err *err)
{
	struct labels of_group;
	enum err_code rc;
	uint32_t group;

	assert(b->partitions_n); /* its partition has begun */
	if ((rc = compaction_pause(b->db, err)) || (rc = block_builder_end_series(b, err)))
		return rc;
	arena_reset(&b->scratch);
	if ((rc = group_labels(&b->o.rules, labels, &b->scratch, &of_group, err)) ||
		(rc = block_builder_reserve_check(b, err)))
		return rc;
	/* The writer finds out whether a group begins; the one before must be complete by then. */
	if (b->group_open && (labels_cmp(b->now_group, of_group) || b->now_p != b->p) &&
		(rc = block_builder_end_group(b, err)))
		return rc;
	if ((rc = block_writer_series(
			 b->writer, b->partitions_n - 1, labels, of_group, &b->id, &group, err)))
		return rc;
	if (!b->group_open) {
		b->group_open = true;
		b->group = group;
		b->given = given;
		b->group_series_n = 0;
		b->now_p = b->p;
		arena_reset(&b->group_arena);
		b->now_group = labels_dup(&b->group_arena, of_group);
		if (of_group.n && !b->now_group.v)
			return err_nomem(err, "make block");
	}
	b->group_series_n++;
	assert(b->id == b->checks_n); /* a check has its series' number */
	b->checks_n++;
	b->series_open = true;
	*id = b->id;
	return ERR_OK;
}

enum err_code block_builder_rollup(
	struct block_builder *b, int64_t step_ns, struct str bytes, struct err *err)
{
	enum err_code rc;

	assert(b->series_open);
	rc = block_builder_flush(b, err);
	return rc ? rc : cascade_record(b->of_series, step_ns, bytes, (struct str){ 0 }, err);
}

enum err_code block_builder_finish(
	struct block_builder *b, struct block_meta *meta, struct err *err)
{
	enum err_code rc;

	if ((rc = block_builder_flush_numbers(b, err)) || (rc = compact_builder_end_open(b, err)) ||
		(rc = block_builder_write_groups(b, err)) || (rc = block_builder_write_links(b, err)))
		return rc;
	if ((rc = block_writer_finish(b->writer, meta, err)))
		return rc;
	block_writer_close(b->writer);
	b->writer = NULL;
	return block_builder_verify(b, err);
}

enum err_code block_builder_set_deleted(
	struct block_builder *b, struct deleted_range *r, size_t n, struct err *err)
{
	char *path = block_deleted_path(b->tmp);
	struct deleted d = { 0 };
	enum err_code rc;

	if (!path)
		return err_nomem(err, "make block");
	if (!(rc = deleted_make(r, n, (struct deleted){ 0 }, &d, err)))
		rc = deleted_save(b->db, path, str_of(b->ulid.text), d, err);
	deleted_release(d.v);
	free(path);
	return rc;
}

enum err_code block_builder_publish(struct block_builder *b, struct db_block **out, struct err *err)
{
	struct fs *fs = b->db->o.fs;
	enum err_code rc;

	mutex_assert_held(&b->db->blocks_files);
	assert(!b->published && !b->writer); /* finished, and not yet in place */
	if ((rc = fs->ops->rename(fs, b->tmp, b->dir, err)))
		return rc;
	if (!(rc = fs->ops->sync_dir(fs, b->db->blocks_dir, err)) &&
		!(rc = blocks_open(b->db, b->dir, out, err))) {
		b->published = true;
		return ERR_OK;
	}
	/* Rename it back: its sources stay in use, and a start must not remove them. */
	if (fs->ops->rename(fs, b->dir, b->tmp, NULL)) {
		b->published = true;
		log_error("tsdb", "block was made, cannot be used, and cannot be taken back",
			LOG_S("block", b->dir), LOG_E(err));
	}
	return rc;
}

uint64_t block_builder_rows(const struct block_builder *b)
{
	return b->rows_n;
}

uint64_t block_builder_series_n(const struct block_builder *b)
{
	return b->checks_n;
}
