#include "tsdb/head/append.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/metrics.h"
#include "proto/pprof.h"
#include "tsdb/catalog/jobs.h"
#include "tsdb/catalog/members.h"
#include "tsdb/catalog/name_kind.h"
#include "tsdb/catalog/residents.h"
#include "tsdb/catalog/room.h"
#include "tsdb/catalog/window_epochs.h"
#include "tsdb/head/append_internal.h"
#include "tsdb/head/commit.h"
#include "tsdb/head/epochs.h"
#include "tsdb/head/head_internal.h"
#include "tsdb/series/groups.h"
#include "tsdb/symbols/stored.h"
#include "tsdb/symbols/translate.h"

/*
 * An append finds the series and the window. Under the job's lock it finds the window's partition
 * of the job and translates the delta base into its ids. Under the partition's lock it makes
 * symbols, deltas, the row and the records that the window lacks, all in one batch, and queues the
 * batch before it releases the lock. So a row is never committed before the symbols that it uses.
 */
METRIC_COUNTER(appends_failed, "epimetheus_tsdb_append_failures_total",
	"Profiles that could not be stored.", "reason");
METRIC_COUNTER(
	samples_total, "epimetheus_tsdb_samples_appended_total", "Samples of profiles appended.", NULL);
METRIC_COUNTER(folded_total, "epimetheus_tsdb_overflow_profiles_total",
	"Profiles whose sample labels were folded into __overflow__.", NULL);
METRIC_COUNTER(stacks_cut_total, "epimetheus_tsdb_stacks_cut_total",
	"Samples with more than 4096 frames, the limit: frames at the root are dropped.", NULL);

struct appending {
	struct db *db;
	const struct db_append *a;
	struct db_append own; /* *a where its interval is found here */
	struct db_append_stats *stats;
	uint64_t generation;
	struct window *window;
	struct series *series;
	struct job *job;
	struct partition *partition;
	struct scratch *scratch;
	enum value_kind kinds[SYM_TYPES_MAX];
	struct interned in;
	int64_t *values; /* column after column */
	uint64_t types; /* of the profile, whatever ids they have */
	struct delta_base next; /* for the next scrape; empty: not cumulative */
	bool stored; /* there is a row of this series and time: it is in scratch->there */
	struct duplicate_place at; /* where it is */
	struct duplicate_row there; /* the same under the ids of the partition */
};

static enum err_code db_append_check(const struct db_append *a, struct err *err)
{
	enum err_code rc = append_check_labels(a->labels, "profile", err);

	if (rc)
		return rc;
	if (a->ts_ns <= 0 || a->interval_ns <= 0)
		return err_set(err, ERR_INVALID, "a profile needs a time after 1970 and an interval");
	if (a->profile->types_n == 0)
		return err_set(err, ERR_INVALID, "profile has no sample type");
	if (a->profile->types_n > SYM_TYPES_MAX)
		return err_set(err, ERR_LIMIT, "profile has %" PRIu32 " sample types, limit %u",
			a->profile->types_n, SYM_TYPES_MAX);
	return ERR_OK;
}

static enum err_code append_find_series(struct appending *a, struct err *err)
{
	struct db *db = a->db;
	enum err_code rc;

	if (!(a->series = series_find(db->series, a->a->labels))) {
		if ((rc = name_kind_check(db, a->a->labels, SERIES_PROFILES, err)) ||
			(rc = db_job(db, job_name_of(a->a->labels), SYM_NONE, SYM_NONE, &a->job, err)))
			return rc;
		if ((rc = series_add(db->series, a->a->labels, SYM_NONE, a->job, &a->series, err))) {
			a->series = NULL;
			return rc;
		}
	}
	if (!(a->job = a->series->job)) /* numeric: the error names the name */
		return name_kind_check(db, a->a->labels, SERIES_PROFILES, err);
	return ERR_OK;
}

/* ---- delta bases ---- */

static enum err_code append_renumber(void *ctx, uint32_t *stack, uint32_t *set, struct err *err)
{
	enum err_code rc = translate_stack(ctx, *stack, stack, err);

	return rc ? rc : translate_label_set(ctx, *set, set, err);
}

/*
 * The window's epoch may be another than the base's, at an epoch's first scrape or where a late row
 * came in between: the base goes on under the new ids. Series of a job do so one after the other
 * and share what was looked up.
 */
static enum err_code append_carry_base(struct appending *a, struct err *err)
{
	struct delta_base *base = &a->series->base, was = { 0 };
	struct job *job = a->job;
	enum err_code rc;

	if (base->partition == a->partition || base->types != a->types ||
		!delta_base_young(base, a->a->ts_ns, a->a->interval_ns))
		return ERR_OK;
	if (!translation_is(job->carry, base->partition, a->partition)) {
		translation_close(job->carry);
		job->carry = NULL;
		if ((rc = translation_open(base->partition, a->partition, &job->carry, err)))
			return rc;
	}
	/* The base is counted off last: a partition without bases may leave memory at any time. */
	was.partition = base->partition;
	was.bytes.cap = base->bytes.cap;
	/* If the base's stacks do not fit, the profile's do not either: it is refused. */
	if ((rc = delta_base_renumber(base, append_renumber, job->carry, &a->scratch->arena, err)))
		return rc;
	base->partition = a->partition;
	base_account(a->db, base, true);
	if (atomic_load(&resident_of(was.partition)->bases) ==
		1) { /* the last one that is carried over */
		translation_close(job->carry);
		job->carry = NULL;
	}
	base_account(a->db, &was, false);
	return ERR_OK;
}

/* No scrape will be compared with this base any more: its epoch's symbols may leave memory. */
static void append_drop_stale_base(struct appending *a)
{
	struct series *s = a->series;

	if (!s->base.bytes.len || s->base.types == a->types ||
		delta_base_young(&s->base, a->a->ts_ns, a->a->interval_ns) ||
		a->a->ts_ns <= atomic_load(&s->base_until_ns))
		return;
	base_release(a->db, &s->base);
	series_note_base(s);
}

/* Hashes the names of the columns, not their ids: ids differ between epochs. */
static uint64_t append_hash_types(const struct pprof *p, const enum value_kind *kinds)
{
	struct str unit = p->strings[p->period_type.unit], type = p->strings[p->period_type.type];
	uint64_t h = hash_bytes(unit.ptr, unit.len, hash_bytes(type.ptr, type.len, p->types_n));

	for (uint32_t c = 0; c < p->types_n; c++) {
		type = p->strings[p->types[c].type];
		unit = p->strings[p->types[c].unit];
		h = hash_bytes(type.ptr, type.len, h + (uint64_t)kinds[c]);
		h = hash_bytes(unit.ptr, unit.len, h);
	}
	return h;
}

/* ---- values ---- */

static enum err_code append_take_values(struct appending *a, struct err *err)
{
	const struct pprof *f = a->a->profile;
	uint32_t n = a->in.n, columns = f->types_n;
	int64_t *v = arena_alloc_raw(&a->scratch->arena, (size_t)n * columns + 1, sizeof(*v));

	if (!v)
		return arena_fail(&a->scratch->arena, "storing a profile", err);
	for (uint32_t i = 0; i < n; i++) {
		const int64_t *from = f->values + (size_t)a->in.samples[i] * columns;

		for (uint32_t c = 0; c < columns; c++)
			v[(size_t)c * n + i] = from[c];
	}
	a->values = v;
	return ERR_OK;
}

/* Entries that became 0 in all columns go. */
static void append_drop_zeros(struct appending *a)
{
	uint32_t n = a->in.n, columns = a->a->profile->types_n, kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		int64_t any = 0;

		for (uint32_t c = 0; c < columns; c++)
			any |= a->values[(size_t)c * n + i];
		if (!any)
			continue;
		a->in.keys[kept] = a->in.keys[i];
		/* samples has done its work: it holds what is kept now. */
		a->in.samples[kept++] = i;
	}
	if (kept == n)
		return;
	for (uint32_t c = 0; c < columns; c++)
		for (uint32_t i = 0; i < kept; i++)
			a->values[(size_t)c * kept + i] = a->values[(size_t)c * n + a->in.samples[i]];
	a->in.n = kept;
}

static enum err_code append_encode(
	struct appending *appending, const uint32_t *links, struct err *err)
{
	const struct pprof *f = appending->a->profile;
	struct row r = { .header = appending->in.header,
		.interval_ns = appending->a->interval_ns,
		.time_nanos = f->time_nanos,
		.duration_nanos = f->duration_nanos,
		.period = f->period,
		.columns_n = f->types_n };
	const struct linking l = { &appending->scratch->arena, f, links, &appending->in,
		appending->values, r, appending->a->ts_ns };
	enum err_code rc = links ?
		append_links_encode(&l, &appending->scratch->links, appending->stats, err) :
		ERR_OK;
	struct arena *a = &appending->scratch->arena;
	uint32_t *stacks = arena_alloc_raw(a, (size_t)appending->in.n + 1, sizeof(*stacks));
	uint32_t *sets = arena_alloc_raw(a, (size_t)appending->in.n + 1, sizeof(*sets));

	if (rc)
		return rc;
	if (!stacks || !sets)
		return arena_fail(a, "storing a profile", err);
	for (uint32_t i = 0; i < appending->in.n; i++) {
		stacks[i] = (uint32_t)(appending->in.keys[i] >> 32);
		sets[i] = (uint32_t)appending->in.keys[i];
	}
	r.n = appending->in.n;
	r.stacks = stacks;
	r.label_sets = sets;
	r.values = appending->values;
	r.epoch = appending->partition->epoch;
	r.links = buf_str(&appending->scratch->links);
	return row_encode(&r, appending->a->ts_ns, &appending->scratch->row, err);
}

/* ---- the batch ---- */

static void append_put_series(struct appending *a, struct store_batch *b)
{
	struct buf *v = &a->scratch->record;
	struct key key = key_u32('s', a->series->id);

	buf_clear(v);
	buf_add_varint(v, a->partition->id);
	labels_encode(v, a->series->labels);
	buf_add_varint(v, a->partition->epoch);
	store_batch_put_twice(b, key_str(&key), v);
	key = key_u32_u32_u32('t', a->series->id, a->partition->epoch, a->in.header);
	buf_clear(v);
	store_batch_put_twice(b, key_str(&key), v);
}

static void append_put_records(
	struct appending *a, struct stored_symbols *stored, bool new_series, struct store_batch *b)
{
	struct buf *v = &a->scratch->record;
	struct key key = key_u32_u32('p', a->partition->id, a->partition->epoch);

	if (!stored->partition_stored) {
		buf_clear(v);
		buf_add_lenstr(v, a->partition->name);
		store_batch_put_twice(b, key_str(&key), v);
	}
	if (new_symbols_any(&a->scratch->new_symbols)) {
		buf_clear(v);
		symbols_encode(a->partition, &a->scratch->new_symbols, v);
		key = key_u32_u32_u32('y', a->partition->id, a->partition->epoch, stored->seq);
		store_batch_put(b, key_str(&key), v);
	}
	if (new_series)
		append_put_series(a, b);
	if (a->scratch->links.len && !a->window->links)
		head_put_links_meta(a->window, v, b);
	key = key_row(a->series->id, a->a->ts_ns);
	store_batch_put(b, key_str(&key), &a->scratch->row);
}

/* Stored symbols of another generation may include records that never reached the disk. */
static enum err_code append_get_stored(
	struct appending *a, struct stored_symbols **out, struct err *err)
{
	struct partition *p = a->partition;
	struct stored_symbols *stored = stored_find(p, a->window->start_ns);
	enum err_code rc;

	if (stored && stored->generation != a->generation) {
		stored_drop(p, a->window->start_ns);
		stored = NULL;
	}
	if (!stored) {
		if ((rc = stored_open(p, a->window->start_ns, &stored, err)))
			return rc;
		if ((rc = head_next_symbol_record(a->window->store, p->id, p->epoch, &stored->seq, err))) {
			stored_drop(p, a->window->start_ns);
			return rc;
		}
		stored->generation = a->generation;
	}
	*out = stored;
	return ERR_OK;
}

/* Makes the row findable in the window, before it is queued: its series and types. */
static enum err_code append_announce(struct appending *a, uint32_t header, struct err *err)
{
	struct window *w = a->window;
	struct series *s = a->series;
	struct partition *p = a->partition;
	uint32_t known = window_types(a->db, w, a->job, p->epoch, s->id),
			 of_types = sym_typeset_header(p, header);
	bool there, ok = true;

	series_lock_read(a->db->series);
	there = bits_get(&w->series, s->id);
	series_unlock(a->db->series);
	/* A header that was read with the window: its symbols are here by now. */
	if (known < SERIES_TYPES_MANY && known != of_types && sym_exists(p, SYM_HEADER, known))
		known = sym_typeset_header(p, known);
	if (known != of_types && known != SERIES_TYPES_MANY)
		ok = window_set_types(
			a->db, w, a->job, p->epoch, s->id, known == SYM_NONE ? of_types : SERIES_TYPES_MANY);
	if (!there && ok) {
		series_lock_write(a->db->series);
		if ((ok = bits_reserve(&w->series, s->id)))
			bits_set(&w->series, s->id);
		series_unlock(a->db->series);
	}
	return ok ? ERR_OK : err_nomem(err, "storing a profile");
}

/* The row keeps the previous delta base until it is stored. */
static enum err_code append_enqueue(struct appending *a, struct commit_row *row, struct err *err)
{
	struct series *s = a->series;
	enum err_code rc;

	if (a->next.bytes.len) {
		row->has_before = true;
		row->before = s->base;
		s->base = a->next;
		series_note_base(s);
		a->next = (struct delta_base){ 0 };
	}
	row->bytes = store_batch_bytes(row->batch) + sizeof(*row) + row->before.bytes.cap;
	if (!(rc = commit_enqueue(a->db, row, a->generation, err)) || !row->has_before)
		return rc;
	a->next = s->base;
	s->base = row->before;
	series_note_base(s);
	row->has_before = false;
	row->before = (struct delta_base){ 0 };
	return rc;
}

static enum err_code append_queue(struct appending *a, struct commit_row *row, struct err *err)
{
	uint32_t typeset = sym_header_typeset(a->partition, a->in.header);
	int64_t window_ns = a->window->start_ns; /* once queued, its pin is the commit thread's */
	struct series *s = a->series;
	struct stored_symbols *stored;
	enum err_code rc;
	bool new_series, new_symbols;

	if ((rc = append_get_stored(a, &stored, err)))
		return rc;
	if ((rc = stored_add(a->partition, stored, a->in.header, a->in.keys, a->in.n,
			 &a->scratch->new_symbols, err)))
		return rc;
	row->symbols = new_symbols = new_symbols_any(&a->scratch->new_symbols);
	new_series = s->stored_window_ns != window_ns || s->stored_generation != a->generation ||
		s->stored_typeset != typeset || s->stored_epoch != a->partition->epoch;
	append_put_records(a, stored, new_series, row->batch);
	if (buf_failed(&a->scratch->record) || buf_failed(&a->scratch->row))
		rc = err_nomem(err, "storing a profile");
	if (rc || (rc = append_announce(a, a->in.header, err)) || (rc = append_enqueue(a, row, err))) {
		stored_rollback(stored, &a->scratch->new_symbols);
		return rc;
	}
	stored->partition_stored = true;
	stored->seq += new_symbols;
	s->stored_window_ns = window_ns;
	s->stored_generation = a->generation;
	s->stored_typeset = typeset;
	s->stored_epoch = a->partition->epoch;
	return ERR_OK;
}

/* Under the partition's lock. */
static enum err_code append_symbols(
	struct appending *appending, struct commit_row *row, struct err *err)
{
	const struct db_append *a = appending->a;
	uint32_t *links = NULL;
	struct delta_input d;
	enum err_code rc;

	if ((rc = sym_intern_profile(appending->partition, a->profile, appending->kinds,
			 &appending->scratch->arena, &appending->in, err)) ||
		(rc = append_take_values(appending, err)))
		return rc;
	if (a->profile->sample_links &&
		!(links = append_links_find(a->profile, &appending->in, &appending->scratch->arena)))
		return arena_fail(&appending->scratch->arena, "storing a profile", err);
	d = (struct delta_input){ .ts_ns = a->ts_ns,
		.interval_ns = a->interval_ns,
		.kinds = appending->kinds,
		.types = appending->types,
		.n = appending->in.n,
		.columns_n = a->profile->types_n,
		.keys = appending->in.keys,
		.values = appending->values };
	partition_note_row(appending->partition, a->ts_ns, a->interval_ns);
	if ((rc = delta_apply(&appending->series->base, &d, &appending->scratch->arena,
			 &appending->next, &appending->stats->first, err)))
		return rc;
	if (appending->next.bytes.len) {
		appending->next.partition = appending->partition;
		base_account(appending->db, &appending->next, true);
	}
	append_drop_zeros(appending);
	if ((rc = append_encode(appending, links, err)))
		return rc;
	if (appending->stored && (rc = duplicate_check(&appending->there, a, appending->scratch, err)))
		return rc;
	appending->stats->samples = appending->in.n;
	appending->stats->overflow = appending->in.overflow;
	row->samples = appending->in.n;
	return appending->stored ? ERR_OK : append_queue(appending, row, err);
}

/* A scrape never comes again as the same row: its counts since the scrape before differ. */
static enum err_code append_find_again(struct appending *appending, struct err *err)
{
	const struct db_append *a = appending->a;
	enum err_code rc;

	appending->at = (struct duplicate_place){ appending->window, appending->series, a->ts_ns,
		key_row(appending->series->id, a->ts_ns), appending->generation };
	if ((rc = duplicate_check_deleted(
			 appending->db, appending->window, appending->series, a->ts_ns, "profile", err)) ||
		!duplicate_possible(appending->db, appending->series, a->ts_ns))
		return rc;
	rc = duplicate_find(appending->db, &appending->at, &appending->scratch->there, err);
	appending->stored = rc == ERR_OK;
	if (appending->stored && a->convert)
		return duplicate_refuse("profile", a->labels, a->ts_ns, err);
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

/* Under the job's lock. */
static enum err_code append_locked(
	struct appending *appending, struct commit_row *row, struct err *err)
{
	const struct db_append *a = appending->a;
	enum err_code rc;

	for (uint32_t c = 0; c < a->profile->types_n; c++)
		appending->kinds[c] = a->kinds[c] == KIND_CUMULATIVE && !a->convert ? KIND_DELTA :
																			  a->kinds[c];
	appending->types = append_hash_types(a->profile, appending->kinds);
	if ((rc = append_find_again(appending, err)))
		return rc;
	append_drop_stale_base(appending);
	if ((rc = window_partition_take(appending->db, appending->window, appending->job, a->ts_ns,
			 &appending->partition, err)) ||
		(rc = append_carry_base(appending, err)))
		return rc;
	if (appending->stored &&
		(rc = duplicate_unpack(appending->db, &appending->at, appending->scratch,
			 appending->partition, &appending->there, err)))
		return rc;
	mutex_lock(&appending->partition->lock);
	rc = append_symbols(appending, row, err);
	mutex_unlock(&appending->partition->lock);
	base_release(appending->db, &appending->next); /* not taken over */
	return rc;
}

static enum err_code append_row(struct appending *a, db_acked_fn acked, void *ctx, struct err *err)
{
	struct commit_row *row = NULL;
	enum err_code rc;

	if (a->db->o.read_only)
		return err_set(err, ERR_UNAVAILABLE, "the database is open for reading only");
	if ((rc = db_append_check(a->a, err)))
		return rc;
	/* Read before the state, so that a failure in between shows when the row is queued. */
	a->generation = commit_generation(a->db);
	if ((rc = append_check_state(a->db, err)) ||
		(rc = append_check_time(a->db, a->a->ts_ns, "profile", err)) ||
		(rc = head_pin(a->db, a->a->ts_ns, &a->window, err)) || (rc = append_find_series(a, err)) ||
		(rc = append_gap(a->window, a->series, &a->own, &a->a, err)))
		return rc;
	row = calloc(1, sizeof(*row));
	a->scratch = scratch_take(a->db);
	if (!row || !a->scratch || !(row->batch = store_batch_open())) {
		free(row);
		return err_nomem(err, "storing a profile");
	}
	row->window = a->window;
	store_batch_set_identity(row->batch, a->window->identity);
	row->series = a->series;
	atomic_fetch_add(&a->series->uses, 1);
	row->ts_ns = a->a->ts_ns;
	row->acked = acked;
	row->ctx = ctx;
	mutex_lock(&a->job->lock);
	if (!(rc = append_locked(a, row, err)) && !a->stored)
		duplicate_note(a->series, a->a->ts_ns);
	mutex_unlock(&a->job->lock);
	if (rc || a->stored) {
		series_release(a->series);
		store_batch_close(row->batch);
		free(row);
	} else {
		a->window = NULL;
	}
	return rc;
}

enum err_code db_append(struct db *db, const struct db_append *a, struct db_append_stats *stats,
	db_acked_fn acked, void *ctx, struct err *err)
{
	struct db_append_stats none;
	struct appending t = { .db = db, .a = a, .stats = stats ? stats : &none };
	struct err here;
	enum err_code rc;

	*t.stats = (struct db_append_stats){ 0 };
	assert(acked);
	if ((rc = members_refuse(db, "append", err)))
		return rc;
	if (!err)
		err = &here;
	rc = room_explain(db, append_row(&t, acked, ctx, err), err);
	if (t.scratch)
		scratch_put(db, t.scratch);
	if (t.series)
		series_release(t.series);
	if (t.window)
		head_unpin_writer(db, t.window);
	if (rc) {
		metric_add(&appends_failed, err_code_name(rc), 1);
		return rc;
	}
	if (t.stored) {
		acked(ctx, ERR_OK, NULL);
		return ERR_OK;
	}
	metric_add(&samples_total, NULL, t.stats->samples);
	if (a->profile->stacks_cut)
		metric_add(&stacks_cut_total, NULL, a->profile->stacks_cut);
	append_links_count(t.stats);
	if (t.stats->overflow)
		metric_add(&folded_total, NULL, 1);
	return ERR_OK;
}
