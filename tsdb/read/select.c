#include <stdlib.h>

#include "base/array.h"

#include "tsdb/catalog/residents.h"
#include "tsdb/head/epochs.h"
#include "tsdb/read/select_internal.h"

/*
 * Selecting: series of each source that the matchers accept and that have rows in the window,
 * united by labels and partition. A head window is asked through the index in memory, a block
 * through its own postings.
 */

#define SAMPLED 1024u /* of series that may be too many */

static enum err_code read_select_refuse(struct selecting *x, size_t about, struct err *err)
{
	x->about = about;
	return err_set(err, ERR_LIMIT, "select: %zu series, limit %zu", about, x->series_max);
}

/*
 * Series of the other members at the time at which a source begins. One database that had all of
 * them would have them in one window.
 */
static size_t read_select_beside(const struct selecting *x, uint32_t source)
{
	const struct querier_source *s = &x->q->sources[source];
	size_t n = 0;

	for (uint32_t i = 0; x->latest && i < x->q->members_n; i++)
		if (i != s->member && x->latest[i].max_ns > s->min_ns)
			n += x->latest[i].n;
	return n;
}

static enum err_code read_select_hand_over(
	struct selecting *x, const struct read_select_found *f, struct err *err)
{
	struct db_series s = { .labels = f->labels,
		.partition = f->partition,
		.numeric = !f->partition,
		.places = &f->place,
		.places_n = 1 };

	return x->visitor->take(x->visitor->ctx, &s, err);
}

enum err_code select_add(struct selecting *x, struct read_select_found f, struct err *err)
{
	if (x->visitor)
		return read_select_hand_over(x, &f, err);
	if (!array_room(&x->v, x->found, 1, &x->cap))
		return err_nomem(err, "select");
	x->v[x->found++] = f;
	return ERR_OK;
}

/* ---- too many ---- */

/* Takes one of each stretch, at a place as if by chance, so that patterns do not bias the sample.
 */
static enum err_code read_select_sample(
	const struct bits *ids, size_t n, struct bits *out, struct err *err)
{
	size_t stretch = n / SAMPLED, at = 0;

	if (!bits_reserve(out, (uint32_t)(ids->words * 64 - 1)))
		return err_nomem(err, "select");
	for (size_t w = 0; w < ids->words; w++)
		for (uint64_t rest = ids->w[w]; rest; rest &= rest - 1, at++)
			if (at % stretch == map_hash_u64(at / stretch) % stretch)
				bits_set(out, (uint32_t)(w * 64 + (size_t)__builtin_ctzll(rest)));
	return ERR_OK;
}

/*
 * If a source's matchers accept very many series, their number says little: only series with rows
 * in the querier's time count. So rows of some series are looked up. The result may be wrong by a
 * few percent; the limit itself is checked when the series are really selected.
 */
static enum err_code read_select_check_some(struct selecting *x, uint32_t source,
	const struct bits *ids, size_t n, size_t others, select_look_fn look, struct err *err)
{
	size_t before = x->found, about;
	struct bits some = { 0 };
	enum err_code rc;

	if (!(rc = read_select_sample(ids, n, &some, err)) && !(rc = look(x, source, &some, err))) {
		about = (size_t)((double)(x->found - before) * (double)n / (double)bits_count(&some));
		if (about < n - n / SAMPLED)
			about -= about / 16;
		x->part = (double)about / (double)n;
		if (about + others > x->series_max)
			rc = read_select_refuse(x, about + others, err);
	}
	x->found = before;
	bits_release(&some);
	return rc;
}

enum err_code select_ids(struct selecting *x, uint32_t source, const struct bits *ids,
	select_look_fn look, struct err *err)
{
	const struct querier_source *s = &x->q->sources[source];
	size_t before = x->found, n = bits_count(ids), others = read_select_beside(x, source);
	enum err_code rc;

	if (x->too_many) {
		x->about += (size_t)((double)n * x->part);
		return ERR_OK;
	}
	if (x->series_max && n + others > x->series_max && n >= 2 * SAMPLED &&
		(rc = read_select_check_some(x, source, ids, n, others, look, err)))
		return rc;
	if ((rc = look(x, source, ids, err)))
		return rc;
	if (x->latest)
		x->latest[s->member] = (struct latest_count){ s->max_ns, x->found - before };
	others += x->found - before;
	x->part = n ? (double)(x->found - before) / (double)n : 0;
	return x->series_max && others > x->series_max ? read_select_refuse(x, others, err) : ERR_OK;
}

/* ---- labels that a series lacks and its samples may have ---- */

static bool read_select_key_same(const void *ctx, const void *key, uint32_t id)
{
	const struct known_key *known = &((const struct selecting *)ctx)->keys[id], *k = key;

	return str_eq(known->job, k->job) && str_eq(known->key, k->key);
}

static bool read_select_slot_has_key(struct block *b, uint32_t slot, struct str key)
{
	const struct str *v;
	size_t n = 0;

	if (block_sample_keys(b, slot, &v, &n, NULL))
		return false;
	for (size_t i = 0; i < n; i++)
		if (str_eq(v[i], key))
			return true;
	return false;
}

/* In any epoch and source of the querier. */
static enum err_code read_select_look_for_key(
	struct selecting *x, struct str job, struct str key, bool *has, struct err *err)
{
	enum err_code rc = ERR_OK;

	*has = false;
	for (uint32_t i = 0; i < x->q->sources_n && !rc && !*has; i++) {
		const struct querier_source *s = &x->q->sources[i];

		if (x->jobs[i].n)
			rc = select_window_has_key(x, i, job, key, has, err);
		for (uint32_t k = 0; s->b && k < block_partitions_n(s->b->block) && !*has; k++)
			*has = str_eq(block_partition(s->b->block, k)->name, job) &&
				read_select_slot_has_key(s->b->block, k, key);
	}
	return rc;
}

enum err_code select_job_has_key(
	struct selecting *x, struct str job, struct str key, bool *out, struct err *err)
{
	struct known_key k = { job, key, false };
	uint64_t hash = hash_bytes(key.ptr, key.len, hash_bytes(job.ptr, job.len, 0));
	uint32_t at = map_find(&x->keys_map, hash, read_select_key_same, x, &k);
	enum err_code rc;

	if (at == MAP_NONE) {
		if ((rc = read_select_look_for_key(x, job, key, &k.has, err)))
			return rc;
		at = x->keys_n;
		if (!array_room(&x->keys, x->keys_n, 1, &x->keys_cap) || !map_add(&x->keys_map, hash, at))
			return err_nomem(err, "select");
		x->keys[x->keys_n++] = k;
	}
	*out = x->keys[at].has;
	return ERR_OK;
}

enum err_code select_wants(
	struct selecting *x, struct labels labels, struct str job, bool *out, struct err *err)
{
	const struct db_visitor *v = x->visitor;

	*out = !v || !v->wanted || v->wanted(v->ctx, labels);
	if (*out || !v->sample_label.len || !job.len)
		return ERR_OK;
	return select_job_has_key(x, job, v->sample_label, out, err);
}

enum err_code select_samples_may_match(
	struct selecting *x, const struct read_select_found *f, bool *out, struct err *err)
{
	struct str job = f->job_name;
	enum err_code rc = ERR_OK;

	*out = true;
	for (size_t i = 0; i < x->n && *out && !rc; i++) {
		struct str name = x->m[i].name, inner = { name.ptr + 7, name.len - 7 };

		if (labels_has(f->labels, name) || matcher_test(&x->m[i], STR("")))
			continue;
		rc = select_job_has_key(x, job, name, out, err);
		if (!rc && !*out && str_has_prefix(name, STR("sample_")) && labels_has(f->labels, inner))
			rc = select_job_has_key(x, job, inner, out, err);
	}
	return rc;
}

/* ---- blocks ---- */

struct block_keys {
	struct selecting *x;
	struct block *block;
	enum err_code rc; /* why a key could not be looked up */
	struct err err;
};

static bool block_has_key(void *ctx, uint32_t slot, struct str key)
{
	struct block_keys *k = ctx;
	bool has = false;

	if (!k->rc)
		k->rc = select_job_has_key(k->x, block_partition(k->block, slot)->name, key, &has, &k->err);
	return has;
}

/* Searches its rows, if its other facts do not decide. */
static enum err_code read_select_look_for_rows(struct selecting *x, struct querier_source *s,
	uint32_t series, const struct deleted_range *gone, size_t gone_n, bool *has, struct err *err)
{
	struct block_chunks *it = querier_chunks(s, err);
	int64_t min = x->q->min_ns, max = x->q->max_ns, first;
	struct str bytes;
	struct err why;
	enum err_code rc;

	if (!it || (!x->chunk && !(x->chunk = chunk_open())))
		return err_nomem(err, "select");
	*has = false;
	block_chunks_seek(it, series, min, max);
	while (!*has && (rc = block_chunks_next(it, &bytes, &first, &why)) != ERR_NOT_FOUND) {
		if (!rc)
			rc = chunk_parse(x->chunk, bytes, &why);
		if (rc == ERR_CORRUPT) {
			querier_warn(x->q, s, &why);
			continue;
		}
		if (rc)
			return err_copy(err, &why);
		for (uint32_t i = 0; i < chunk_rows_n(x->chunk) && !*has; i++) {
			int64_t ts = chunk_rows(x->chunk)[i].ts_ns;

			*has = ts > min && ts <= max && !deleted_has(gone, gone_n, ts);
		}
	}
	return ERR_OK;
}

static enum err_code block_has_rows(struct selecting *x, struct querier_source *s, uint32_t id,
	const struct block_series *of, bool *has, struct err *err)
{
	struct deleted d = { s->deleted, s->deleted_n };
	const struct deleted_range *gone;
	size_t gone_n = deleted_of(d, id, &gone);
	int64_t min = x->q->min_ns, max = x->q->max_ns;

	*has = of->last_ns > min && of->first_ns <= max;
	if (!*has)
		return ERR_OK;
	if (!deleted_touches(gone, gone_n, of->first_ns - 1, of->last_ns) &&
		(of->first_ns > min || of->last_ns <= max))
		return ERR_OK;
	if (!block_has_raw(s->b->block))
		return ERR_OK;
	return read_select_look_for_rows(x, s, id, gone, gone_n, has, err);
}

static enum err_code read_select_add_block_series(
	struct selecting *x, uint32_t source, uint32_t id, struct err *err)
{
	struct querier_source *s = &x->q->sources[source];
	struct block_series of;
	struct partition *p;
	struct str job = { 0 };
	struct err why;
	enum err_code rc;
	bool has = false, wanted = true;

	if (!(x->kinds & (id < block_meta(s->b->block)->number_series ? DB_NUMBERS : DB_PROFILES)))
		return ERR_OK;
	if ((rc = block_series(s->b->block, id, x->a, &of, &why)) == ERR_CORRUPT) {
		querier_warn(x->q, s, &why);
		return ERR_OK;
	}
	if (rc)
		return err_copy(err, &why);
	if (of.slot != BLOCK_NUMERIC)
		job = block_partition(s->b->block, of.slot)->name;
	if ((rc = select_wants(x, of.labels, job, &wanted, err)) || !wanted)
		return rc;
	if (of.slot == BLOCK_NUMERIC) {
		rc = numbers_in_block(x->q, s, id, &of, &has, err);
		return rc || !has ?
			rc :
			select_add(
				x, (struct read_select_found){ .labels = of.labels, .place = { source, id } }, err);
	}
	if ((rc = block_has_rows(x, s, id, &of, &has, err)) || !has)
		return rc;
	rc = querier_partition(x->q, s, of.slot, false, &p, err);
	if (rc == ERR_EXISTS) /* its ids mean something else; there is a warning */
		return ERR_OK;
	if (rc)
		return rc;
	return select_add(x,
		(struct read_select_found){ of.labels, p, NULL, partition_name(p), { source, id } }, err);
}

static enum err_code read_select_look_in_block(
	struct selecting *x, uint32_t source, const struct bits *ids, struct err *err)
{
	enum err_code rc = ERR_OK;
	size_t done = 0;

	for (size_t w = 0; w < ids->words && !rc; w++)
		for (uint64_t rest = ids->w[w]; rest && !rc; rest &= rest - 1) {
			if (done++ % 64 == 0 && querier_canceled(x->q))
				return select_canceled(err);
			rc = read_select_add_block_series(
				x, source, (uint32_t)(w * 64 + (size_t)__builtin_ctzll(rest)), err);
			if (x->visitor && done % 64 == 0)
				arena_reset(x->a);
		}
	return rc;
}

/* Names of all jobs are loaded one after the other: of a bucket, all that is near in one request.
 */
static void read_select_expect_names(struct querier_source *s, const struct bits *ids)
{
	const struct block_partition *of;
	struct partition *p;
	bool has;

	for (uint32_t slot = 0; slot < block_partitions_n(s->b->block); slot++) {
		if ((s->need && s->need[slot]) || !block_slot_has_any(s->b->block, slot, ids))
			continue;
		of = block_partition(s->b->block, slot);
		if (partition_pin(s->db, of->name, of->id, of->epoch, &p, NULL))
			continue; /* reading it gives the error */
		has = partition_has_block(p, s->b, BLOCK_NAMES);
		partition_unpin(s->db, p);
		if (!has)
			block_symbols_expect(s->b->block, slot, BLOCK_NAMES);
	}
}

static enum err_code select_block(struct selecting *x, uint32_t source, struct err *err)
{
	struct querier_source *s = &x->q->sources[source];
	struct block_keys keys = { .x = x, .block = s->b->block };
	struct bits ids = { 0 };
	enum err_code rc;
	struct err why;

	rc = block_match(s->b->block, x->m, x->n, block_has_key, &keys, &ids, &why);
	if (rc == ERR_CORRUPT) { /* what could be matched is in ids */
		querier_warn(x->q, s, &why);
		rc = ERR_OK;
	}
	if (!rc && (rc = keys.rc))
		why = keys.err;
	if (rc)
		err_copy(err, &why);
	if (!rc && s->b->remote && (x->kinds & DB_PROFILES))
		read_select_expect_names(s, &ids);
	if (!rc)
		rc = select_ids(x, source, &ids, read_select_look_in_block, err);
	bits_release(&ids);
	return rc;
}

/* ---- selecting ---- */

enum err_code db_select(struct db_querier *q, const struct matcher *m, size_t n, struct arena *a,
	struct db_series **out, size_t *out_n, struct err *err)
{
	return db_select_kinds(q, DB_PROFILES | DB_NUMBERS, m, n, a, out, out_n, err);
}

enum err_code db_select_kinds(struct db_querier *q, unsigned kinds, const struct matcher *m,
	size_t n, struct arena *a, struct db_series **out, size_t *out_n, struct err *err)
{
	return db_select_within(q, kinds, m, n, 0, NULL, a, out, out_n, err);
}

enum err_code select_begin(struct selecting *x, struct err *err)
{
	struct db_querier *q = x->q;
	enum err_code rc = ERR_OK;

	map_init(&x->keys_map);
	if (!(x->jobs = calloc(q->sources_n + 1, sizeof(*x->jobs))) ||
		(x->series_max && q->members_n > 1 &&
			!(x->latest = calloc(q->members_n, sizeof(*x->latest)))))
		rc = err_nomem(err, "select");
	for (size_t i = 0; i < q->sources_n && !rc; i++)
		if (q->sources[i].snap && (x->kinds & DB_PROFILES))
			rc = select_list_jobs(q->sources[i].db, &x->jobs[i], err);
	return rc;
}

void select_end(struct selecting *x)
{
	for (size_t i = 0; x->jobs && i < x->q->sources_n; i++)
		select_release_jobs(&x->jobs[i]);
	free(x->jobs);
	free(x->keys);
	map_release(&x->keys_map);
	chunk_close(x->chunk);
	free(x->v);
	free(x->latest);
}

static enum err_code select_source(struct selecting *x, uint32_t source, struct err *err)
{
	if (x->q->sources[source].b)
		return select_block(x, source, err);
	return x->visitor && x->visitor->blocks_only ? ERR_OK : select_window(x, source, err);
}

/* Members that were not looked at yet are in the estimate too; only their indexes are read. */
static enum err_code read_select_count_rest(struct selecting *x, uint32_t refused, struct err *err)
{
	const struct querier_source *v = x->q->sources;
	int64_t min_ns = v[refused].min_ns, max_ns = v[refused].max_ns;
	enum err_code rc = ERR_OK;

	x->too_many = true;
	x->latest[v[refused].member].max_ns = max_ns;
	for (uint32_t i = refused + 1; i < x->q->sources_n && v[i].min_ns < max_ns && !rc; i++) {
		if (x->latest[v[i].member].max_ns > min_ns)
			continue;
		x->latest[v[i].member].max_ns = max_ns;
		rc = select_source(x, i, err);
	}
	return rc ? rc : read_select_refuse(x, x->about, err);
}

/* In all sources. */
static enum err_code read_select_find(struct selecting *x, struct err *err)
{
	enum err_code rc = select_begin(x, err);

	for (uint32_t i = 0; i < x->q->sources_n && !rc; i++) {
		rc = select_source(x, i, err);
		if (rc && x->about && x->latest)
			rc = read_select_count_rest(x, i, err);
	}
	return rc;
}

enum err_code db_select_within(struct db_querier *q, unsigned kinds, const struct matcher *m,
	size_t n, size_t series_max, size_t *about, struct arena *a, struct db_series **out,
	size_t *out_n, struct err *err)
{
	struct selecting x = {
		.q = q, .series_max = series_max, .m = m, .n = n, .kinds = kinds, .a = a
	};
	enum err_code rc = read_select_find(&x, err);

	if (!rc)
		rc = select_unite(&x, out, out_n, err);
	if (about)
		*about = x.about;
	select_end(&x);
	return rc;
}

enum err_code db_visit_series(struct db_querier *q, unsigned kinds, const struct matcher *m,
	size_t n, const struct db_visitor *v, struct err *err)
{
	struct selecting x = { .q = q, .visitor = v, .m = m, .n = n, .kinds = kinds };
	struct arena scratch;
	enum err_code rc;

	arena_init(&scratch, 0);
	x.a = &scratch;
	rc = read_select_find(&x, err);
	select_end(&x);
	arena_release(&scratch);
	return rc;
}
