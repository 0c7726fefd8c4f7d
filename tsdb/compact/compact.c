#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "tsdb/catalog/ids.h"
#include "tsdb/catalog/inventory_sync.h"
#include "tsdb/catalog/residents.h"
#include "tsdb/compact/compact_internal.h"
#include "tsdb/compact/compaction.h"
#include "tsdb/compact/group_rules.h"
#include "tsdb/compact/numbers.h"
#include "tsdb/head/epochs.h"
#include "tsdb/symbols/translate.h"

/*
 * Joining blocks into a longer one: job by job, group by group, series by series, in the order in
 * which the new block numbers them. The new block is not visible before it is whole (blocks.h);
 * until then queries read the sources.
 *
 * If a job has one epoch in all sources, its ids stay. Else the whole job is translated into a new
 * epoch, in which content has one id again.
 */
METRIC_HISTOGRAM(join_seconds, "epimetheus_tsdb_compaction_duration_seconds",
	"Time that joining blocks takes, by the new block's level.", "level");
METRIC_COUNTER(joined_total, "epimetheus_tsdb_compactions_total",
	"Times that blocks were joined, by the new block's level.", "level");
METRIC_COUNTER(dropped_records, "epimetheus_tsdb_dropped_rollups_total",
	"Rollups dropped because a part of what they sum was deleted and raw rows are gone.", NULL);

/* ---- sources ---- */

static enum err_code compact_open_source(
	struct compact_joining *c, struct compact_source *s, struct db_block *b, struct err *err)
{
	uint64_t n = block_meta(b->block)->series;
	enum err_code rc;

	s->b = b;
	mutex_lock(&c->db->lock);
	s->deleted = (struct deleted){ b->deleted, b->deleted_n };
	mutex_unlock(&c->db->lock);
	if (!(s->ids = malloc((n + 1) * sizeof(*s->ids))))
		return err_nomem(err, "join blocks");
	for (uint64_t i = 0; i < n; i++)
		s->ids[i] = UINT32_MAX;
	if ((c->raw && (rc = block_chunks_open(b->block, true, &s->chunks, err))) ||
		(c->raw && block_meta(b->block)->links &&
			(rc = block_links_open(b->block, true, &s->links, err))))
		return rc;
	if ((rc = block_rollups_open(b->block, true, &s->rollups, err)))
		return rc;
	return block_rollups_open(b->block, true, &s->functions, err);
}

static void compact_end_job(struct compact_joining *c)
{
	for (size_t i = 0; i < c->n; i++) {
		struct compact_source *s = &c->sources[i];

		if (s->has_job) {
			s->slot++;
			s->first += s->series_n;
		}
		translation_close(s->translation);
		if (s->from)
			partition_unpin(c->db, s->from);
		s->translation = NULL;
		s->from = NULL;
		s->has_job = false;
		s->series_n = 0;
	}
	if (c->p && !c->given)
		partition_unpin(c->db, c->p);
	c->p = NULL;
	c->given = false;
	c->parts_n = 0;
	arena_reset(&c->job_arena);
}

/* ---- symbols of a job ---- */

static enum err_code compact_need_symbols(
	struct compact_joining *c, struct compact_source *s, struct err *err)
{
	const struct block_partition *bp = block_partition(s->b->block, s->slot);
	enum err_code rc;

	if ((rc = partition_pin(c->db, bp->name, bp->id, bp->epoch, &s->from, err))) {
		s->from = NULL;
		return rc;
	}
	return partition_need_block(c->db, s->from, s->b, s->slot, BLOCK_STACKS, err);
}

/* One epoch for all that is joined. */
static enum err_code compact_choose_partition(struct compact_joining *c, struct err *err)
{
	struct compact_source *newest = NULL;
	bool differ = false;
	enum err_code rc;

	for (size_t i = 0; i < c->n; i++) {
		struct compact_source *s = &c->sources[i];

		if (!s->has_job)
			continue;
		if ((rc = compact_need_symbols(c, s, err)))
			return rc;
		differ |= newest && newest->from != s->from;
		newest = s;
	}
	if (!differ) {
		const struct block_partition *bp = block_partition(newest->b->block, newest->slot);

		return partition_pin(c->db, bp->name, bp->id, bp->epoch, &c->p, err);
	}
	if ((rc = partition_new_epoch(c->db, newest->from, &c->p, err)))
		return rc;
	for (size_t i = 0; i < c->n && !rc; i++)
		if (c->sources[i].has_job)
			rc = translation_open(c->sources[i].from, c->p, &c->sources[i].translation, err);
	return rc;
}

/* ---- series of a job ---- */

static enum err_code compact_add_part(
	struct compact_joining *c, struct compact_part part, struct err *err)
{
	if (!array_room(&c->parts, c->parts_n, 1, &c->parts_cap))
		return err_nomem(err, "join blocks");
	c->parts[c->parts_n++] = part;
	return ERR_OK;
}

static enum err_code compact_collect_source(struct compact_joining *c, uint32_t at, struct err *err)
{
	struct compact_source *s = &c->sources[at];
	uint64_t n = block_meta(s->b->block)->series;
	struct block_series series;
	struct arena a;
	enum err_code rc = ERR_OK;

	arena_init(&a, 0);
	for (uint64_t id = s->first; id < n && !rc; id++) {
		struct compact_part part = { .source = at, .id = (uint32_t)id };

		arena_reset(&a);
		if ((rc = block_series(s->b->block, (uint32_t)id, &a, &series, err)) ||
			series.slot != s->slot)
			break;
		part.group = series.group;
		part.labels = labels_dup(&c->job_arena, series.labels);
		if (series.labels.n && !part.labels.v)
			rc = err_nomem(err, "join blocks");
		else
			rc = compact_add_part(c, part, err);
		s->series_n++;
	}
	arena_release(&a);
	return rc;
}

static int compact_part_cmp(const void *a, const void *b, void *ctx)
{
	const struct compact_part *x = a, *y = b;
	const struct compact_joining *t = ctx;
	int c = group_cmp(&t->rules, job_name_of(x->labels), x->labels, y->labels);

	return c ? c : x->source < y->source ? -1 : x->source > y->source;
}

/* ---- joining ---- */

/* The job with the smallest id of those that are left. */
static enum err_code compact_join_job(struct compact_joining *c, bool *any, struct err *err)
{
	uint32_t job = UINT32_MAX;
	struct str name;
	enum err_code rc = ERR_OK;
	size_t next;

	for (size_t i = 0; i < c->n; i++) {
		struct compact_source *s = &c->sources[i];

		if (s->slot < block_partitions_n(s->b->block) &&
			block_partition(s->b->block, s->slot)->id < job)
			job = block_partition(s->b->block, s->slot)->id;
	}
	*any = job != UINT32_MAX;
	for (size_t i = 0; i < c->n && !rc && *any; i++) {
		struct compact_source *s = &c->sources[i];

		s->has_job = s->slot < block_partitions_n(s->b->block) &&
			block_partition(s->b->block, s->slot)->id == job;
		if (s->has_job)
			rc = compact_collect_source(c, (uint32_t)i, err);
	}
	if (!*any || rc || (rc = compact_choose_partition(c, err)))
		return rc;
	qsort_r(c->parts, c->parts_n, sizeof(*c->parts), compact_part_cmp, c);
	name = c->parts_n ? job_name_of(c->parts[0].labels) : (struct str){ 0 };
	for (size_t i = 0; i < c->parts_n && !rc; i = next) {
		for (next = i + 1; next < c->parts_n &&
			 group_same(&c->rules, name, c->parts[i].labels, c->parts[next].labels);)
			next++;
		rc = join_group(c, i, next, err);
	}
	return rc;
}

/* Before the jobs: numeric series come first in a block. */
static enum err_code compact_join_numbers(struct compact_joining *c, struct err *err)
{
	struct number_source *v = calloc(c->n, sizeof(*v));
	uint64_t want = 0;
	bool deleted = false;
	enum err_code rc;

	if (!v)
		return err_nomem(err, "join blocks");
	for (size_t i = 0; i < c->n; i++) {
		struct compact_source *s = &c->sources[i];

		v[i] = (struct number_source){ s->b->block, s->deleted, s->ids };
		s->first = (uint32_t)block_meta(s->b->block)->number_series;
		want += block_meta(s->b->block)->numbers;
		deleted |= s->deleted.n > 0;
	}
	rc = numbers_join(c->db, v, c->n, c->m, err);
	free(v);
	if (!rc && !deleted && want != block_builder_numbers(c->m))
		rc = err_set(err, ERR_CORRUPT, "%" PRIu64 " numbers were read, the blocks say %" PRIu64,
			block_builder_numbers(c->m), want);
	return rc;
}

static enum err_code compact_join_all(
	struct compact_joining *c, const struct plan *plan, struct err *err)
{
	const struct block_meta *first = block_meta(plan->v[0]->block),
							*last = block_meta(plan->v[plan->n - 1]->block);
	struct block_builder_options o = { first->min_ns, last->max_ns, first->raw, { 0 } };
	uint64_t bytes = 0;
	enum err_code rc;
	bool any = true;

	c->raw = first->raw;
	for (size_t i = 0; i < plan->n; i++)
		bytes += block_disk_bytes(plan->v[i]->block);
	c->sources = calloc(plan->n, sizeof(*c->sources));
	c->chunk = chunk_open();
	c->view = rollup_view_open();
	if (!c->sources || !c->chunk || !c->view)
		return err_nomem(err, "join blocks");
	c->n = plan->n;
	if ((rc = compaction_room(c->db, bytes, err)) ||
		(rc = group_rules_copy(c->db, &c->a, &c->rules, err)))
		return rc;
	o.rules = c->rules;
	for (size_t i = 0; i < plan->n && !rc; i++)
		rc = compact_open_source(c, &c->sources[i], plan->v[i], err);
	if (rc || (rc = block_builder_open(c->db, &o, &c->m, err)))
		return rc;
	if ((rc = compact_join_numbers(c, err)))
		return rc;
	while (any && !rc) { /* a job per turn */
		rc = compact_join_job(c, &any, err);
		compact_end_job(c);
	}
	return rc;
}

/* ---- the new block's record of itself ---- */

static int compact_head_cmp(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Names the sources of the sources too: if one could not be renamed away, it must not come back. */
static enum err_code compact_describe(
	const struct plan *plan, struct arena *a, struct block_meta *out, struct err *err)
{
	size_t sources = plan->n, heads = 0;

	*out = (struct block_meta){ 0 };
	for (size_t i = 0; i < plan->n; i++) {
		const struct block_meta *m = block_meta(plan->v[i]->block);

		sources += m->sources_n;
		heads += m->heads_n;
		out->level = m->level >= out->level ? m->level + 1 : out->level;
	}
	out->sources = arena_array(a, struct ulid, sources + 1);
	out->heads = arena_array(a, int64_t, heads + 1);
	if (!out->sources || !out->heads)
		return arena_fail(a, "join blocks", err);
	for (size_t i = 0; i < plan->n; i++)
		out->sources[out->sources_n++] = block_meta(plan->v[i]->block)->ulid;
	for (size_t i = 0; i < plan->n; i++) {
		const struct block_meta *m = block_meta(plan->v[i]->block);

		for (uint32_t k = 0; k < m->sources_n && out->sources_n < BLOCK_SOURCES_MAX; k++)
			out->sources[out->sources_n++] = m->sources[k];
		for (uint32_t k = 0; k < m->heads_n; k++)
			out->heads[out->heads_n++] = m->heads[k];
	}
	if (heads)
		qsort(out->heads, heads, sizeof(*out->heads), compact_head_cmp);
	return ERR_OK;
}

/* ---- the swap ---- */

/* Deletions that came while the block was made. db->blocks_files is held. */
static enum err_code compact_carry_deleted(struct compact_joining *c, struct err *err)
{
	struct deleted_range *out;
	size_t n = 0, kept = 0;
	bool changed = false;
	enum err_code rc;

	mutex_assert_held(&c->db->blocks_files);
	for (size_t i = 0; i < c->n; i++) {
		changed |= c->sources[i].b->deleted != c->sources[i].deleted.v;
		n += c->sources[i].b->deleted_n;
	}
	if (!changed)
		return ERR_OK;
	if (!(out = malloc((n + 1) * sizeof(*out))))
		return err_nomem(err, "join blocks");
	for (size_t i = 0; i < c->n; i++) {
		const struct compact_source *s = &c->sources[i];

		for (size_t k = 0; k < s->b->deleted_n; k++) {
			out[kept] = s->b->deleted[k];
			if (out[kept].series >= block_meta(s->b->block)->series)
				continue;
			out[kept].series = s->ids[out[kept].series];
			kept += out[kept].series != UINT32_MAX;
		}
	}
	rc = block_builder_set_deleted(c->m, out, kept, err);
	free(out);
	return rc;
}

/* by NULL: all rows of the sources were deleted. */
static void compact_replace(struct compact_joining *c, const struct plan *plan, struct db_block *by)
{
	struct db *db = c->db;

	mutex_lock(&db->lock);
	blocks_swap_locked(db, plan->v, plan->n, NULL, by);
	mutex_unlock(&db->lock);
	for (size_t i = 0; i < plan->n; i++)
		blocks_retire(db, plan->v[i], false);
}

static enum err_code compact_swap(
	struct compact_joining *c, const struct plan *plan, struct err *err)
{
	struct db *db = c->db;
	struct db_block *b = NULL;
	enum err_code rc;

	mutex_lock(&db->blocks_files);
	rc = blocks_reserve(db, "join blocks", err);
	if (!rc && block_builder_series_n(c->m) && !(rc = compact_carry_deleted(c, err)))
		rc = block_builder_publish(c->m, &b, err);
	if (!rc && !(rc = inventory_sync_swap(db, plan->v, plan->n, NULL, b, err)))
		compact_replace(c, plan, b);
	mutex_unlock(&db->blocks_files);
	return rc;
}

static enum err_code compact_join(
	struct compact_joining *c, const struct plan *plan, struct err *err)
{
	uint64_t rows = 0, links = 0;
	bool all = c->raw;
	struct block_meta meta;
	enum err_code rc;

	if ((rc = compact_join_all(c, plan, err)))
		return rc;
	for (size_t i = 0; i < c->n; i++) {
		rows += block_meta(plan->v[i]->block)->rows;
		links += block_meta(plan->v[i]->block)->links;
		all &= !c->sources[i].deleted.n;
	}
	all &= c->raw;
	if (all && rows != block_builder_rows(c->m))
		return err_set(err, ERR_CORRUPT, "%" PRIu64 " rows were read, the blocks say %" PRIu64,
			block_builder_rows(c->m), rows);
	if (all && links != block_builder_links_n(c->m))
		return err_set(err, ERR_CORRUPT, "links of %" PRIu64 " rows were read, not %" PRIu64,
			block_builder_links_n(c->m), links);
	if (block_builder_series_n(c->m) &&
		((rc = ids_save(c->db, err)) || (rc = compact_describe(plan, &c->a, &meta, err)) ||
			(rc = block_builder_finish(c->m, &meta, err))))
		return rc;
	return compact_swap(c, plan, err);
}

static void compact_release(struct compact_joining *c)
{
	compact_end_job(c);
	for (size_t i = 0; i < c->n; i++) {
		block_chunks_close(c->sources[i].chunks);
		block_chunks_close(c->sources[i].links);
		block_rollups_close(c->sources[i].rollups);
		block_rollups_close(c->sources[i].functions);
		free(c->sources[i].ids);
	}
	free(c->sources);
	free(c->parts);
	block_builder_close(c->m);
	join_release(c);
	arena_release(&c->job_arena);
	arena_release(&c->a);
}

static void compact_report(
	const struct compact_joining *c, const struct plan *plan, int64_t took_ns)
{
	uint32_t level = 0;
	char text[12];

	for (size_t i = 0; i < plan->n; i++)
		if (block_meta(plan->v[i]->block)->level >= level)
			level = block_meta(plan->v[i]->block)->level + 1;
	snprintf(text, sizeof(text), "%" PRIu32, level);
	metric_add(&joined_total, text, 1);
	metric_observe(&join_seconds, text, (double)took_ns / 1e9);
	metric_add(&dropped_records, NULL, (double)c->dropped_records);
	log_info("tsdb", "blocks joined", LOG_I("blocks", plan->n), LOG_I("level", level),
		LOG_I("series", block_builder_series_n(c->m)), LOG_I("rows", block_builder_rows(c->m)),
		LOG_D("elapsed", took_ns));
}

/* Finds the damaged source: the one whose check fails. It is not joined again. */
static void compact_pass_over(void *ctx, const char *what) {}

static void compact_note_damage(
	struct compact_joining *c, const struct plan *plan, const struct err *why)
{
	for (size_t i = 0; i < plan->n; i++) {
		struct err found;

		if (block_verify(plan->v[i]->block, compact_pass_over, NULL, &found))
			blocks_damage(c->db, plan->v[i], "not joined", why);
	}
}

/* The blocks have too many symbols for one epoch: the next try takes fewer blocks. */
static void compact_set_apart(const struct plan *plan, const struct err *why)
{
	plan->v[plan->n / 2]->apart = true;
	log_warn("tsdb", "blocks are not joined", LOG_I("blocks", plan->n), LOG_E(why));
}

enum err_code compact_some(struct db *db, bool *did, struct err *err)
{
	int64_t start = clock_monotonic_ns();
	struct compact_joining t = { .db = db };
	struct plan plan;
	enum err_code rc;

	plan_join(db, &plan);
	*did = plan.n > 0;
	if (!*did)
		return ERR_OK;
	arena_init(&t.a, 0);
	arena_init(&t.job_arena, 0);
	rc = compact_join(&t, &plan, err);
	if (!rc)
		compact_report(&t, &plan, clock_monotonic_ns() - start);
	else if (rc == ERR_CORRUPT)
		compact_note_damage(&t, &plan, err);
	if (rc == ERR_LIMIT) {
		compact_set_apart(&plan, err);
		rc = ERR_OK;
	}
	compact_release(&t);
	for (size_t i = 0; i < plan.n; i++) {
		blocks_end_work(db, plan.v[i]);
		blocks_unpin(db, plan.v[i]);
	}
	return rc ? err_wrap(err, rc, "join %zu blocks", plan.n) : ERR_OK;
}
