#include "tsdb/status.h"

#include <stdlib.h>

#include "base/metrics.h"
#include "tsdb/catalog/residents.h"
#include "tsdb/db.h"
#include "tsdb/head/head.h"
#include "tsdb/lists/losses.h"

/* Lists blocks and windows, for people, and counts what there is. */

METRIC_GAUGE(series_gauge, "epimetheus_tsdb_series", "Series in the index.", NULL);
METRIC_GAUGE(largest_job_gauge, "epimetheus_tsdb_largest_job_series",
	"Series in the index of the job that has most of them.", NULL);
METRIC_GAUGE(windows_gauge, "epimetheus_tsdb_windows", "Windows on disk.", NULL);
METRIC_GAUGE(blocks_gauge, "epimetheus_tsdb_blocks", "Blocks on disk.", NULL);
METRIC_GAUGE(
	partitions_gauge, "epimetheus_tsdb_partitions", "Partitions (epochs of jobs) in memory.", NULL);
METRIC_GAUGE(nodes_gauge, "epimetheus_tsdb_stack_nodes", "Stack nodes of all partitions.", NULL);
METRIC_GAUGE(strings_gauge, "epimetheus_tsdb_strings", "Strings of all partitions.", NULL);
METRIC_GAUGE(
	symbols_gauge, "epimetheus_tsdb_symbol_bytes", "Memory of all partitions' symbols.", NULL);
METRIC_GAUGE(
	disk_gauge, "epimetheus_tsdb_disk_bytes", "Bytes of all windows and blocks on disk.", NULL);
METRIC_GAUGE(in_use, "epimetheus_tsdb_symbol_used_bytes",
	"Symbols that cannot leave memory now: rows are added to them, or queries or delta bases "
	"need them.",
	NULL);
METRIC_GAUGE(
	losses_gauge, "epimetheus_tsdb_losses", "Unacknowledged losses of stored profiles.", NULL);
METRIC_GAUGE(remote_gauge, "epimetheus_tsdb_remote_bytes",
	"Bytes of the blocks that are read in a bucket.", NULL);
METRIC_GAUGE(unreachable_gauge, "epimetheus_tsdb_unreachable_blocks",
	"Blocks in a bucket that cannot be read: answers lack them, and say so.", NULL);
METRIC_GAUGE(oldest_gauge, "epimetheus_tsdb_oldest_row_seconds", "Time of the oldest row.", NULL);

/* ---- the list ---- */

static void db_status_of_block(const struct db_block *b, struct db_block_status *out)
{
	const struct block_meta *m = block_meta(b->block);

	*out = (struct db_block_status){ .min_ns = m->min_ns,
		.max_ns = m->max_ns,
		.level = m->level,
		.series = m->series,
		.rows = m->rows,
		.samples = m->samples,
		.numbers = m->numbers,
		.bytes = block_disk_bytes(b->block),
		.raw = block_has_raw(b->block),
		.damaged = b->damaged,
		.remote = b->remote };
	memcpy(out->ulid, m->ulid.text, sizeof(out->ulid));
}

/* Its series and files are counted without db->lock. */
static void db_status_of_window(struct db *db, const struct window *w, struct db_block_status *out)
{
	series_lock_read(db->series);
	for (size_t i = 0; i < w->series.words; i++)
		out->series += (uint64_t)__builtin_popcountll(w->series.w[i]);
	series_unlock(db->series);
	out->bytes = head_disk_bytes(db, w);
}

static enum err_code db_status_list_one(
	struct db *db, struct arena *a, struct db_block_status **out, size_t *n, struct err *err)
{
	struct window **windows;
	size_t *at, windows_n = 0, blocks = 0, heads = 0;

	mutex_lock(&db->lock);
	*n = db->blocks_n + db->windows_n;
	*out = arena_array(a, struct db_block_status, *n + 1);
	windows = arena_array(a, struct window *, db->windows_n + 1);
	at = arena_array(a, size_t, db->windows_n + 1);
	if (!*out || !windows || !at) {
		mutex_unlock(&db->lock);
		return arena_fail(a, "list", err);
	}
	for (size_t i = 0; i < *n; i++) {
		struct window *w = heads < db->windows_n ? db->windows[heads] : NULL;
		struct db_block *b = blocks < db->blocks_n ? db->blocks[blocks] : NULL;

		if (b && (!w || block_meta(b->block)->min_ns < w->start_ns)) {
			db_status_of_block(b, &(*out)[i]);
			blocks++;
			continue;
		}
		(*out)[i] = (struct db_block_status){ .min_ns = w->start_ns,
			.max_ns = w->end_ns,
			.rows = w->count.rows,
			.samples = w->count.samples,
			.numbers = w->count.numbers,
			.raw = true,
			.damaged = w->damaged };
		w->pins++;
		windows[windows_n] = w;
		at[windows_n++] = i;
		heads++;
	}
	mutex_unlock(&db->lock);
	for (size_t i = 0; i < windows_n; i++) {
		db_status_of_window(db, windows[i], &(*out)[at[i]]);
		head_unpin(db, windows[i]);
	}
	return ERR_OK;
}

/* As a querier has them. */
static int db_status_place_cmp(const void *a, const void *b)
{
	const struct db_block_status *x = a, *y = b;

	if (x->min_ns != y->min_ns)
		return x->min_ns < y->min_ns ? -1 : 1;
	return strcmp(x->shard, y->shard);
}

static enum err_code db_status_add_list(struct arena *a, const struct member *m,
	struct db_block_status **all, size_t *all_n, struct err *err)
{
	const char *shard = arena_strndup(a, m->name, strlen(m->name));
	struct db_block_status *v, *joined;
	enum err_code rc;
	size_t n;

	if (!shard)
		return arena_fail(a, "list", err);
	if ((rc = db_status_list_one(m->db, a, &v, &n, err)))
		return rc;
	if (!(joined = arena_array(a, struct db_block_status, *all_n + n + 1)))
		return arena_fail(a, "list", err);
	for (size_t i = 0; i < *all_n; i++)
		joined[i] = (*all)[i];
	for (size_t i = 0; i < n; i++) {
		joined[*all_n + i] = v[i];
		joined[*all_n + i].shard = shard;
	}
	*all = joined;
	*all_n += n;
	return ERR_OK;
}

enum err_code db_list(
	struct db *db, struct arena *a, struct db_block_status **out, size_t *n, struct err *err)
{
	struct db_block_status *all = NULL;
	struct member **members;
	size_t members_n, all_n = 0;
	enum err_code rc;

	if (!db->is_union)
		return db_status_list_one(db, a, out, n, err);
	if ((rc = members_pin(db, &members, &members_n, err)))
		return rc;
	for (size_t i = 0; i < members_n && !rc; i++)
		rc = db_status_add_list(a, members[i], &all, &all_n, err);
	members_unpin(db, members, members_n);
	if (rc)
		return rc;
	if (all_n)
		qsort(all, all_n, sizeof(*all), db_status_place_cmp);
	*out = all;
	*n = all_n;
	return ERR_OK;
}

/* ---- counts ---- */

static void db_status_count_one(struct db *db, struct db_status *out)
{
	*out = (struct db_status){ .rows = atomic_load(&db->rows),
		.samples = atomic_load(&db->samples),
		.numbers = atomic_load(&db->numbers) };
	out->series = series_n(db->series);
	out->series_max = db->o.series_max;
	out->job_series_max = db->o.job_series_max;
	out->largest_job_series = series_largest_job(db->series, NULL);
	out->index_bytes = series_index_bytes(db->series);
	out->losses = losses_open_n(db->losses);
	mutex_lock(&db->lock);
	out->delta_bytes = atomic_load(&db->delta_bytes);
	for (uint32_t i = 0; i < db->partitions_n; i++) {
		const struct partition *p = db->partitions[i];

		if (!p)
			continue;
		out->partitions++;
		out->nodes += sym_nodes_n(p) - 1;
		out->strings += sym_strings_n(p) - 1;
		out->symbol_bytes += partition_bytes(p);
	}
	out->symbol_used_bytes = atomic_load(&db->symbol_used_bytes);
	out->windows = db->windows_n;
	out->blocks = db->blocks_n;
	for (size_t i = 0; i < db->unreadable_n; i++)
		out->unreachable += db->unreadable[i].remote;
	for (size_t i = 0; i < db->blocks_n; i++) {
		const struct block_meta *m = block_meta(db->blocks[i]->block);

		if (db->blocks[i]->remote) {
			out->remote_blocks++;
			out->remote_bytes += block_disk_bytes(db->blocks[i]->block);
		} else {
			out->disk_bytes += block_disk_bytes(db->blocks[i]->block);
		}
		if (!out->min_ns || m->first_ns < out->min_ns)
			out->min_ns = m->first_ns;
		if (m->last_ns > out->max_ns)
			out->max_ns = m->last_ns;
	}
	for (size_t i = 0; i < db->windows_n; i++) {
		const struct window_count *c = &db->windows[i]->count;

		out->disk_bytes += head_disk_bytes(db, db->windows[i]);
		if (window_is_empty(c))
			continue;
		if (!out->min_ns || c->min_ns < out->min_ns)
			out->min_ns = c->min_ns;
		if (c->max_ns > out->max_ns)
			out->max_ns = c->max_ns;
	}
	mutex_unlock(&db->lock);
}

static void db_status_add_counts(struct db_status *to, const struct db_status *from)
{
	to->series += from->series;
	if (from->largest_job_series > to->largest_job_series)
		to->largest_job_series = from->largest_job_series;
	to->partitions += from->partitions;
	to->nodes += from->nodes;
	to->strings += from->strings;
	to->symbol_bytes += from->symbol_bytes;
	to->symbol_used_bytes += from->symbol_used_bytes;
	to->windows += from->windows;
	to->blocks += from->blocks;
	to->disk_bytes += from->disk_bytes;
	to->remote_blocks += from->remote_blocks;
	to->remote_bytes += from->remote_bytes;
	to->unreachable += from->unreachable;
	to->delta_bytes += from->delta_bytes;
	to->index_bytes += from->index_bytes;
	if (from->min_ns && (!to->min_ns || from->min_ns < to->min_ns))
		to->min_ns = from->min_ns;
	if (from->max_ns > to->max_ns)
		to->max_ns = from->max_ns;
	to->rows += from->rows;
	to->samples += from->samples;
	to->numbers += from->numbers;
	to->losses += from->losses;
}

void db_status(struct db *db, struct db_status *out)
{
	struct db_status of;
	struct member **v;
	size_t n;

	if (!db->is_union) {
		db_status_count_one(db, out);
		return;
	}
	*out = (struct db_status){ 0 };
	if (members_pin(db, &v, &n, NULL))
		return;
	for (size_t i = 0; i < n; i++) {
		db_status_count_one(v[i]->db, &of);
		db_status_add_counts(out, &of);
	}
	members_unpin(db, v, n);
}

void db_largest_job(struct db *db, struct buf *name)
{
	if (!db->is_union)
		(void)series_largest_job(db->series, name);
}

/* ---- metrics ---- */

static void db_status_collect(void *ctx)
{
	struct db_status s;

	db_status(ctx, &s);
	metric_set(&series_gauge, NULL, (double)s.series);
	metric_set(&largest_job_gauge, NULL, (double)s.largest_job_series);
	metric_set(&windows_gauge, NULL, (double)s.windows);
	metric_set(&blocks_gauge, NULL, (double)s.blocks);
	metric_set(&partitions_gauge, NULL, (double)s.partitions);
	metric_set(&nodes_gauge, NULL, (double)s.nodes);
	metric_set(&strings_gauge, NULL, (double)s.strings);
	metric_set(&symbols_gauge, NULL, (double)s.symbol_bytes);
	metric_set(&disk_gauge, NULL, (double)s.disk_bytes);
	metric_set(&remote_gauge, NULL, (double)s.remote_bytes);
	metric_set(&unreachable_gauge, NULL, (double)s.unreachable);
	metric_set(&oldest_gauge, NULL, (double)s.min_ns / 1e9);
	metric_set(&in_use, NULL, (double)s.symbol_used_bytes);
	metric_set(&losses_gauge, NULL, (double)s.losses);
}

void db_gauges_begin(struct db *db)
{
	metric_collector_add(db_status_collect, db);
}

void db_gauges_end(struct db *db)
{
	metric_collector_remove(db_status_collect, db);
}

/* ---- members ---- */

enum err_code db_union_add(struct db *d, const char *name, struct db *member, db_member_fn tell,
	void *ctx, struct err *err)
{
	enum err_code rc = members_add(d, name, member, tell, ctx, err);

	if (!rc)
		db_gauges_end(member);
	return rc;
}

void db_union_remove(struct db *d, const char *name)
{
	struct db *member = members_remove(d, name);

	if (member && !member->o.follower)
		db_gauges_begin(member);
}
