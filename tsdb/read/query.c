#include <assert.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "tsdb/catalog/members.h"
#include "tsdb/catalog/residents.h"
#include "tsdb/head/epochs.h"
#include "tsdb/head/head.h"
#include "tsdb/read/twins.h"

/*
 * A querier pins what it may read in one step: head windows with a snapshot of each, and blocks.
 * Rows that come later, windows that are cut or dropped and blocks that are joined meanwhile do not
 * change what it sees.
 */

#define HEADS_BYTES_MAX ((size_t)8 << 20) /* of one querier: 1,400 chunks of 120 rows each */

/* ---- what it reads ---- */

static bool read_query_touches(const struct db_querier *q, int64_t min_ns, int64_t max_ns)
{
	return min_ns < q->max_ns && max_ns > q->min_ns;
}

/* from: the first source of its member; they are nearly in order. */
static void read_query_add_source(struct db_querier *q, size_t from, struct querier_source s)
{
	size_t i = q->sources_n++;

	assert(s.min_ns < s.max_ns && !s.w != !s.b);
	for (; i > from && q->sources[i - 1].min_ns > s.min_ns; i--)
		q->sources[i] = q->sources[i - 1];
	q->sources[i] = s;
}

static bool read_query_whole_hour(int64_t ts_ns)
{
	return ts_ns % NS_PER_HOUR == 0;
}

/* The block has only windows of whole hours. */
static bool read_query_is_regular(const struct block_meta *m)
{
	bool all = read_query_whole_hour(m->min_ns) && read_query_whole_hour(m->max_ns);

	for (uint32_t i = 0; i < m->heads_n && all; i++)
		all = read_query_whole_hour(m->heads[i]);
	return all;
}

static void read_query_pin_blocks(struct db_querier *q, uint32_t member, size_t from)
{
	struct db *db = q->members[member].db;

	mutex_assert_held(&db->lock);
	for (size_t i = 0; i < db->blocks_n; i++) {
		struct db_block *b = db->blocks[i];
		const struct block_meta *m = block_meta(b->block);

		if (!read_query_touches(q, m->min_ns, m->max_ns))
			continue;
		b->pins++;
		read_query_add_source(q, from,
			(struct querier_source){ .db = db,
				.member = member,
				.min_ns = m->min_ns,
				.max_ns = m->max_ns,
				.regular = read_query_is_regular(m),
				.b = b,
				.deleted = b->deleted,
				.deleted_n = b->deleted_n });
	}
}

static void read_query_pin_windows(struct db_querier *q, uint32_t member, size_t from)
{
	struct db *db = q->members[member].db;

	mutex_assert_held(&db->lock);
	for (size_t i = 0; i < db->windows_n; i++) {
		struct window *w = db->windows[i];

		if (!read_query_touches(q, w->start_ns, w->end_ns))
			continue;
		w->pins++; /* also while it drains: a pin keeps it from being dropped */
		read_query_add_source(q, from,
			(struct querier_source){ .db = db,
				.member = member,
				.min_ns = w->start_ns,
				.max_ns = w->end_ns,
				.regular = read_query_whole_hour(w->start_ns) && read_query_whole_hour(w->end_ns),
				.w = w,
				.deleted = w->deleted,
				.deleted_n = w->deleted_n });
	}
}

/* Reopening a window waits until nobody pins it. So we release our pin of a draining window, and
 * wait for it until the deadline. False: out of memory. */
static bool read_query_take_snapshots(
	struct db_querier *q, struct db *db, size_t from, int64_t deadline)
{
	mutex_assert_held(&db->lock);
	for (size_t i = from; i < q->sources_n; i++) {
		struct window *w = q->sources[i].w;

		if (!w)
			continue;
		if (w->draining) {
			assert(w->pins);
			w->pins--;
			w->waiting++;
			cond_broadcast(&db->changed);
			while (w->draining && cond_wait_until(&db->changed, &db->lock, deadline))
				;
			w->waiting--;
			w->pins++;
		}
		if (w->draining)
			continue;
		q->sources[i].store = w->store;
		if (!(q->sources[i].snap = store_snapshot_open(w->store)))
			return false;
	}
	return true;
}

/* ---- open, close ---- */

static enum err_code read_query_find_members(struct db_querier *q, struct err *err)
{
	enum err_code rc;

	q->members = &q->own;
	q->own.db = q->db;
	q->members_n = 1;
	if (!q->db->is_union)
		return ERR_OK;
	q->members_n = 0;
	if ((rc = members_pin(q->db, &q->of, &q->members_n, err)))
		return rc;
	if (!(q->members = calloc(q->members_n + 1, sizeof(*q->members)))) {
		members_unpin(q->db, q->of, q->members_n);
		return err_nomem(err, "query");
	}
	for (size_t i = 0; i < q->members_n; i++) {
		q->members[i].db = q->of[i]->db;
		q->members[i].records = q->db->union_records &&
			strcmp(q->db->union_records, q->of[i]->name) == 0;
	}
	return ERR_OK;
}

/* Takes a place among the queriers of the member, and pins what it has. False: out of memory. */
static bool read_query_join_member(
	struct db_querier *q, uint32_t member, size_t *cap, int64_t deadline)
{
	struct querier_turn *turn = &q->members[member].turn;
	struct db *db = q->members[member].db;
	size_t from = q->sources_n;
	bool whole;

	mutex_lock(&db->lock);
	if ((whole = array_room(&q->sources, from, db->windows_n + db->blocks_n + 1, cap))) {
		turn->number = ++db->queriers_opened;
		turn->older = db->queriers;
		if (turn->older)
			turn->older->newer = turn;
		db->queriers = turn;
		read_query_pin_blocks(q, member, from);
		read_query_pin_windows(q, member, from);
		querier_tell_unreadable_locked(q, member);
		querier_tell_future_locked(q, member, from);
		whole = read_query_take_snapshots(q, db, from, deadline);
	}
	mutex_unlock(&db->lock);
	return whole;
}

static int read_query_source_cmp(const void *a, const void *b)
{
	const struct querier_source *x = a, *y = b;

	if (x->min_ns != y->min_ns)
		return x->min_ns < y->min_ns ? -1 : 1;
	return (x->member > y->member) - (x->member < y->member);
}

/* Sorts the sources by time and links each to the next one of its member. */
static void read_query_order_sources(struct db_querier *q)
{
	if (q->members_n > 1 && q->sources_n)
		qsort(q->sources, q->sources_n, sizeof(*q->sources), read_query_source_cmp);
	for (uint32_t i = (uint32_t)q->sources_n; i-- > 0;) {
		struct querier_member *m = &q->members[q->sources[i].member];

		q->sources[i].next = m->first;
		m->first = i + 1;
	}
}

enum err_code db_querier_open(struct db *db, int64_t min_ns, int64_t max_ns,
	const atomic_bool *cancel, struct db_querier **out, struct err *err)
{
	return db_querier_open_limited(db, NULL, min_ns, max_ns, cancel, out, err);
}

enum err_code db_querier_open_limited(struct db *db, const struct label_limits *limits,
	int64_t min_ns, int64_t max_ns, const atomic_bool *cancel, struct db_querier **out,
	struct err *err)
{
	int64_t deadline = clock_monotonic_ns() + DB_REOPEN_WAIT_NS;
	struct db_querier *q = calloc(1, sizeof(*q));
	enum err_code rc;
	size_t cap = 0;

	if (!q)
		return err_nomem(err, "query");
	q->db = db;
	q->min_ns = min_ns < 0 ? 0 : min_ns;
	q->max_ns = max_ns < 0 ? 0 : max_ns;
	q->cancel = cancel;
	q->limits = limits;
	arena_init(&q->arena, 0);
	/* While members are pinned one by one, a member may get what it lacked, or lose more. So they
	 * are asked for warnings before and after. */
	querier_tell_union(q);
	if ((rc = read_query_find_members(q, err))) {
		arena_release(&q->arena);
		free(q);
		return rc;
	}
	if (q->members_n > 1 && !(q->twins = twins_open())) {
		db_querier_close(q);
		return err_nomem(err, "query");
	}
	querier_tell_members(q);
	for (uint32_t i = 0; i < q->members_n; i++)
		if (!read_query_join_member(q, i, &cap, deadline)) {
			db_querier_close(q);
			return err_nomem(err, "query");
		}
	read_query_order_sources(q);
	querier_tell_missing(q);
	querier_tell_losses(q);
	querier_tell_members(q);
	*out = q;
	return ERR_OK;
}

enum err_code db_querier_fork(struct db_querier *q, struct db_querier **out, struct err *err)
{
	struct db_querier *f = calloc(1, sizeof(*f));

	if (!f || !(f->sources = calloc(q->sources_n + 1, sizeof(*f->sources)))) {
		free(f);
		return err_nomem(err, "query");
	}
	assert(!q->fork);
	f->db = q->db;
	f->members = q->members;
	f->members_n = q->members_n;
	f->of = q->of;
	f->min_ns = q->min_ns;
	f->max_ns = q->max_ns;
	f->cancel = q->cancel;
	f->limits = q->limits;
	f->fork = true;
	f->twins = q->twins;
	f->in_steps = q->in_steps;
	f->adjoin = q->adjoin;
	f->heads_bytes_max = q->heads_bytes_max;
	arena_init(&f->arena, 0);
	for (; f->sources_n < q->sources_n; f->sources_n++) {
		const struct querier_source *s = &q->sources[f->sources_n];

		f->sources[f->sources_n] = (struct querier_source){ .db = s->db,
			.member = s->member,
			.next = s->next,
			.min_ns = s->min_ns,
			.max_ns = s->max_ns,
			.regular = s->regular,
			.w = s->w,
			.store = s->store,
			.snap = s->snap,
			.b = s->b,
			.deleted = s->deleted,
			.deleted_n = s->deleted_n,
			.warned = s->warned };
	}
	*out = f;
	return ERR_OK;
}

void db_querier_in_steps(struct db_querier *q, bool adjoin)
{
	q->in_steps = true;
	q->adjoin = adjoin;
	q->heads_bytes_max = HEADS_BYTES_MAX;
}

void db_querier_join(struct db_querier *q, const struct db_querier *fork)
{
	for (size_t i = 0; i < fork->infos_n; i++)
		querier_info(q, STR_FMT, STR_ARG(fork->infos[i]));
}

/* The first end of a source inside (min, max); max: there is none. */
static int64_t read_query_next_end(const struct db_querier *q, int64_t min_ns, int64_t max_ns)
{
	for (size_t i = 0; i < q->sources_n; i++) {
		int64_t end = q->sources[i].max_ns;

		if (end > min_ns && end < max_ns)
			max_ns = end;
	}
	return max_ns;
}

size_t db_querier_cuts(
	const struct db_querier *q, int64_t min_ns, int64_t max_ns, bool levels, int64_t *out, size_t n)
{
	struct cover_window w = cover_window_of(min_ns, max_ns);
	int64_t end = min_ns;
	size_t k = 0;

	while (k < n && (end = read_query_next_end(q, end, max_ns)) < max_ns)
		if (!levels || (end >= w.hours_min_ns && end < w.hours_max_ns))
			out[k++] = end;
	return k;
}

static void read_query_close_source(struct db_querier *q, struct querier_source *s)
{
	uint32_t slots = s->b ? block_partitions_n(s->b->block) : 0;

	store_iter_close(s->it);
	block_chunks_close(s->chunks);
	block_chunks_close(s->numbers);
	block_rollups_close(s->rollups);
	for (uint32_t i = 0; i < slots && s->need; i++)
		if (s->need[i])
			partition_unpin(s->db, s->need[i]);
	free(s->need);
	free(s->stacks);
	if (q->fork) /* pins and snapshots belong to the querier that it is a part of */
		return;
	if (s->w) {
		store_snapshot_close(s->store, s->snap);
		head_unpin(s->db, s->w);
	} else {
		blocks_unpin(s->db, s->b);
	}
}

static void read_query_leave_member(struct querier_member *m)
{
	if (!m->turn.number) /* the querier did not join this member */
		return;
	mutex_lock(&m->db->lock);
	if (m->turn.newer)
		m->turn.newer->older = m->turn.older;
	else
		m->db->queriers = m->turn.older;
	if (m->turn.older)
		m->turn.older->newer = m->turn.newer;
	mutex_unlock(&m->db->lock);
	partitions_evict(m->db);
}

static void read_query_leave_members(struct db_querier *q)
{
	for (size_t i = 0; i < q->members_n; i++)
		read_query_leave_member(&q->members[i]);
	if (!querier_is_union(q))
		return;
	free(q->members);
	members_unpin(q->db, q->of, q->members_n);
}

void db_querier_close(struct db_querier *q)
{
	if (!q)
		return;
	for (size_t i = 0; i < q->sources_n; i++)
		read_query_close_source(q, &q->sources[i]);
	for (size_t i = 0; i < q->pinned_n; i++)
		partition_unpin(resident_of(q->pinned[i])->db, q->pinned[i]);
	if (!q->fork)
		read_query_leave_members(q);
	if (!q->fork)
		twins_close(q->twins);
	sum_scratch_close(q->scratch);
	arena_release(&q->arena);
	free(q->pinned);
	free(q->sources);
	free(q->stacks);
	free(q->sets);
	free(q->values);
	free(q);
}

bool querier_canceled(const struct db_querier *q)
{
	return q->cancel && atomic_load_explicit(q->cancel, memory_order_relaxed);
}

void querier_check(struct db_querier *q, struct querier_source *s, const struct store_iter *it)
{
	struct err why;

	if (store_iter_status(it, &why))
		querier_warn(q, s, &why);
}

/* ---- iterators and symbols of a source ---- */

struct store_iter *querier_iter(struct querier_source *s)
{
	if (!s->it && s->snap)
		s->it = store_iter_open(s->store, s->snap);
	return s->it;
}

struct block_chunks *querier_chunks(struct querier_source *s, struct err *err)
{
	if (!s->chunks && block_chunks_open(s->b->block, false, &s->chunks, err))
		s->chunks = NULL;
	return s->chunks;
}

struct block_rollups *querier_rollups(struct querier_source *s, struct err *err)
{
	if (!s->rollups && block_rollups_open(s->b->block, false, &s->rollups, err))
		s->rollups = NULL;
	return s->rollups;
}

/* Lost symbols are a warning; rows that use them are refused one by one. */
static enum err_code read_query_need(struct db_querier *q, struct querier_source *s,
	struct partition *p, uint32_t slot, enum block_stage stage, struct err *err)
{
	struct err why;
	enum err_code rc = partition_need_block(s->db, p, s->b, slot, stage, &why);

	if (rc == ERR_CORRUPT || rc == ERR_EXISTS)
		querier_warn(q, s, &why);
	if (rc == ERR_CORRUPT)
		return ERR_OK;
	return rc ? err_copy(err, &why) : ERR_OK;
}

enum err_code querier_partition(struct db_querier *q, struct querier_source *s, uint32_t slot,
	bool stacks, struct partition **out, struct err *err)
{
	const struct block_partition *of = block_partition(s->b->block, slot);
	uint32_t n = block_partitions_n(s->b->block);
	struct partition *p;
	enum err_code rc;

	assert(s->b && slot < n);
	if (!s->need) {
		s->need = calloc(n, sizeof(struct partition *));
		s->stacks = calloc(n, sizeof(*s->stacks));
		if (!s->need || !s->stacks)
			return err_nomem(err, "select");
	}
	if (!s->need[slot]) {
		if ((rc = partition_pin(s->db, of->name, of->id, of->epoch, &p, err)))
			return rc;
		if ((rc = read_query_need(q, s, p, slot, BLOCK_NAMES, err))) {
			partition_unpin(s->db, p);
			return rc;
		}
		s->need[slot] = p;
	}
	if (stacks && !s->stacks[slot]) {
		if ((rc = read_query_need(q, s, s->need[slot], slot, BLOCK_STACKS, err)))
			return rc;
		s->stacks[slot] = true;
	}
	*out = s->need[slot];
	return ERR_OK;
}
