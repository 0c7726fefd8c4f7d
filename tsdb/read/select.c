#include <stdlib.h>

#include "base/array.h"
#include "proto/annotation.h"
#include "tsdb/catalog/residents.h"
#include "tsdb/head/epochs.h"
#include "tsdb/read/select_internal.h"

/*
 * Selecting: series of each source that the matchers accept and that have rows in the window,
 * united by labels and partition. A head window is asked through the index in memory, a block
 * through its own postings.
 */

#define SAMPLED 1024u /* of series that may be too many */

static enum err_code read_select_refuse(struct selecting *s, size_t about, struct err *err)
{
	s->about = about;
	return err_set(err, ERR_LIMIT, "select: %zu series, limit %zu", about, s->series_max);
}

/*
 * Counts the series that other members have at the begin of a source. A single database with the
 * same data would have all of them in one window, so the limit counts them together.
 */
static size_t read_select_beside(const struct selecting *selecting, uint32_t source)
{
	const struct querier_source *s = &selecting->q->sources[source];
	size_t n = 0;

	for (uint32_t i = 0; selecting->latest && i < selecting->q->members_n; i++)
		if (i != s->member && selecting->latest[i].max_ns > s->min_ns)
			n += selecting->latest[i].n;
	return n;
}

static enum err_code read_select_hand_over(
	struct selecting *selecting, const struct read_select_found *f, struct err *err)
{
	struct db_series s = { .labels = f->labels,
		.partition = f->partition,
		.numeric = !f->partition,
		.places = &f->place,
		.places_n = 1 };

	return selecting->visitor->take(selecting->visitor->ctx, &s, err);
}

enum err_code select_add(struct selecting *s, struct read_select_found f, struct err *err)
{
	if (s->visitor)
		return read_select_hand_over(s, &f, err);
	if (!array_room(&s->v, s->found, 1, &s->cap))
		return err_nomem(err, "select");
	s->v[s->found++] = f;
	return ERR_OK;
}

/* ---- too many ---- */

/* Takes one id of each stretch, at a pseudo-random place, so that patterns in the ids do not bias
 * the sample. */
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
 * Only series with rows in the querier's time count for the limit. If the matchers accept very many
 * series of a source, the rows of a sample of them are looked up, and the number is estimated. The
 * result may be wrong by a few percent; the limit itself is checked when the series are really
 * selected.
 */
static enum err_code read_select_check_some(struct selecting *s, uint32_t source,
	const struct bits *ids, size_t n, size_t others, select_look_fn look, struct err *err)
{
	size_t before = s->found, about;
	struct bits some = { 0 };
	enum err_code rc;

	if (!(rc = read_select_sample(ids, n, &some, err)) && !(rc = look(s, source, &some, err))) {
		about = (size_t)((double)(s->found - before) * (double)n / (double)bits_count(&some));
		if (about < n - n / SAMPLED)
			about -= about / 16;
		s->part = (double)about / (double)n;
		if (about + others > s->series_max)
			rc = read_select_refuse(s, about + others, err);
	}
	s->found = before;
	bits_release(&some);
	return rc;
}

enum err_code select_ids(struct selecting *selecting, uint32_t source, const struct bits *ids,
	select_look_fn look, struct err *err)
{
	const struct querier_source *s = &selecting->q->sources[source];
	size_t before = selecting->found, n = bits_count(ids),
		   others = read_select_beside(selecting, source);
	enum err_code rc;

	if (selecting->too_many) {
		selecting->about += (size_t)((double)n * selecting->part);
		return ERR_OK;
	}
	if (selecting->series_max && n + others > selecting->series_max && n >= 2 * SAMPLED &&
		(rc = read_select_check_some(selecting, source, ids, n, others, look, err)))
		return rc;
	if ((rc = look(selecting, source, ids, err)))
		return rc;
	if (selecting->latest)
		selecting->latest[s->member] = (struct latest_count){ s->max_ns,
			selecting->found - before };
	others += selecting->found - before;
	selecting->part = n ? (double)(selecting->found - before) / (double)n : 0;
	return selecting->series_max && others > selecting->series_max ?
		read_select_refuse(selecting, others, err) :
		ERR_OK;
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

/* Looks in all sources of the querier, and so in all epochs. */
static enum err_code read_select_look_for_key(
	struct selecting *selecting, struct str job, struct str key, bool *has, struct err *err)
{
	enum err_code rc = ERR_OK;

	*has = false;
	for (uint32_t i = 0; i < selecting->q->sources_n && !rc && !*has; i++) {
		const struct querier_source *s = &selecting->q->sources[i];

		if (selecting->jobs[i].n)
			rc = select_window_has_key(selecting, i, job, key, has, err);
		for (uint32_t k = 0; s->b && k < block_partitions_n(s->b->block) && !*has; k++)
			*has = str_eq(block_partition(s->b->block, k)->name, job) &&
				read_select_slot_has_key(s->b->block, k, key);
	}
	return rc;
}

enum err_code select_job_has_key(
	struct selecting *s, struct str job, struct str key, bool *out, struct err *err)
{
	struct known_key k = { job, label_is_service(key) ? STR(LABEL_SERVICE_NAME) : key, false };
	uint64_t hash = hash_bytes(k.key.ptr, k.key.len, hash_bytes(job.ptr, job.len, 0));
	uint32_t at = map_find(&s->keys_map, hash, read_select_key_same, s, &k);
	enum err_code rc;

	if (at == MAP_NONE) {
		if ((rc = read_select_look_for_key(s, job, k.key, &k.has, err)))
			return rc;
		at = s->keys_n;
		if (!array_room(&s->keys, s->keys_n, 1, &s->keys_cap) || !map_add(&s->keys_map, hash, at))
			return err_nomem(err, "select");
		s->keys[s->keys_n++] = k;
	}
	*out = s->keys[at].has;
	return ERR_OK;
}

enum err_code select_wants(
	struct selecting *s, struct labels labels, struct str job, bool *out, struct err *err)
{
	const struct db_visitor *v = s->visitor;

	*out = label_limits_admit(s->q->limits, labels) && (s->marks || !annotation_is(labels));
	if (!*out)
		return ERR_OK;
	*out = !v || !v->wanted || v->wanted(v->ctx, labels);
	if (*out || !v->sample_label.len || !job.len)
		return ERR_OK;
	return select_job_has_key(s, job, v->sample_label, out, err);
}

enum err_code select_samples_may_match(
	struct selecting *s, const struct read_select_found *f, bool *out, struct err *err)
{
	struct str job = f->job_name;
	enum err_code rc = ERR_OK;

	*out = true;
	for (size_t i = 0; i < s->n && *out && !rc; i++) {
		struct str name = s->m[i].name, inner = { name.ptr + 7, name.len - 7 };

		if (labels_has(f->labels, name) || matcher_test(&s->m[i], STR("")))
			continue;
		rc = select_job_has_key(s, job, name, out, err);
		if (!rc && !*out && str_has_prefix(name, STR("sample_")) && labels_has(f->labels, inner))
			rc = select_job_has_key(s, job, inner, out, err);
	}
	return rc;
}

/* ---- blocks ---- */

struct block_keys {
	struct selecting *x;
	struct block *block;
	enum err_code rc; /* set if a key could not be looked up */
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

/* Searches the series' rows, if its first and last times do not decide. */
static enum err_code read_select_look_for_rows(struct selecting *selecting,
	struct querier_source *s, uint32_t series, const struct deleted_range *gone, size_t gone_n,
	bool *has, struct err *err)
{
	struct block_chunks *it = querier_chunks(s, err);
	int64_t min = selecting->q->min_ns, max = selecting->q->max_ns, first;
	struct str bytes;
	struct err why;
	enum err_code rc;

	if (!it || (!selecting->chunk && !(selecting->chunk = chunk_open())))
		return err_nomem(err, "select");
	*has = false;
	block_chunks_seek(it, series, min, max);
	while (!*has && (rc = block_chunks_next(it, &bytes, &first, &why)) != ERR_NOT_FOUND) {
		if (!rc)
			rc = chunk_parse(selecting->chunk, bytes, &why);
		if (rc == ERR_CORRUPT) {
			querier_warn(selecting->q, s, &why);
			continue;
		}
		if (rc)
			return err_copy(err, &why);
		for (uint32_t i = 0; i < chunk_rows_n(selecting->chunk) && !*has; i++) {
			int64_t ts = chunk_rows(selecting->chunk)[i].ts_ns;

			*has = ts > min && ts <= max && !deleted_has(gone, gone_n, ts);
		}
	}
	return ERR_OK;
}

static enum err_code block_has_rows(struct selecting *selecting, struct querier_source *s,
	uint32_t id, const struct block_series *of, bool *has, struct err *err)
{
	struct deleted d = { s->deleted, s->deleted_n };
	const struct deleted_range *gone;
	size_t gone_n = deleted_of(d, id, &gone);
	int64_t min = selecting->q->min_ns, max = selecting->q->max_ns;

	*has = of->last_ns > min && of->first_ns <= max;
	if (!*has)
		return ERR_OK;
	if (!deleted_touches(gone, gone_n, of->first_ns - 1, of->last_ns) &&
		(of->first_ns > min || of->last_ns <= max))
		return ERR_OK;
	if (!block_has_raw(s->b->block))
		return ERR_OK;
	return read_select_look_for_rows(selecting, s, id, gone, gone_n, has, err);
}

static enum err_code read_select_add_block_series(
	struct selecting *selecting, uint32_t source, uint32_t id, struct err *err)
{
	struct querier_source *s = &selecting->q->sources[source];
	struct block_series of;
	struct partition *p;
	struct str job = { 0 };
	struct err why;
	enum err_code rc;
	bool has = false, wanted = true;

	if (!(selecting->kinds &
			(id < block_meta(s->b->block)->number_series ? DB_NUMBERS : DB_PROFILES)))
		return ERR_OK;
	if ((rc = block_series(s->b->block, id, selecting->a, &of, &why)) == ERR_CORRUPT) {
		querier_warn(selecting->q, s, &why);
		return ERR_OK;
	}
	if (rc)
		return err_copy(err, &why);
	if (of.slot != BLOCK_NUMERIC)
		job = block_partition(s->b->block, of.slot)->name;
	if ((rc = select_wants(selecting, of.labels, job, &wanted, err)) || !wanted)
		return rc;
	if (of.slot == BLOCK_NUMERIC) {
		rc = numbers_in_block(selecting->q, s, id, &of, &has, err);
		return rc || !has ?
			rc :
			select_add(selecting,
				(struct read_select_found){ .labels = of.labels, .place = { source, id } }, err);
	}
	if ((rc = block_has_rows(selecting, s, id, &of, &has, err)) || !has)
		return rc;
	rc = querier_partition(selecting->q, s, of.slot, false, &p, err);
	if (rc == ERR_EXISTS) /* its ids mean something else; there is a warning */
		return ERR_OK;
	if (rc)
		return rc;
	return select_add(selecting,
		(struct read_select_found){
			of.labels, p, NULL, partition_name(p), { source, id }, of.first_ns, of.last_ns },
		err);
}

static enum err_code read_select_look_in_block(
	struct selecting *s, uint32_t source, const struct bits *ids, struct err *err)
{
	enum err_code rc = ERR_OK;
	size_t done = 0;

	for (size_t w = 0; w < ids->words && !rc; w++)
		for (uint64_t rest = ids->w[w]; rest && !rc; rest &= rest - 1) {
			if (done++ % 64 == 0 && querier_canceled(s->q))
				return select_canceled(err);
			rc = read_select_add_block_series(
				s, source, (uint32_t)(w * 64 + (size_t)__builtin_ctzll(rest)), err);
			if (s->visitor && done % 64 == 0)
				arena_reset(s->a);
		}
	return rc;
}

/* Announces the names of all jobs, which are loaded one after the other below. In a bucket,
 * neighbouring ones become one request. */
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
			continue; /* reading the series later reports the error */
		has = partition_has_block(p, s->b, BLOCK_NAMES);
		partition_unpin(s->db, p);
		if (!has)
			block_symbols_expect(s->b->block, slot, BLOCK_NAMES);
	}
}

static enum err_code select_block(struct selecting *selecting, uint32_t source, struct err *err)
{
	struct querier_source *s = &selecting->q->sources[source];
	struct block_keys keys = { .x = selecting, .block = s->b->block };
	struct bits ids = { 0 };
	enum err_code rc;
	struct err why;

	rc = block_match(s->b->block, selecting->m, selecting->n, block_has_key, &keys, &ids, &why);
	if (rc == ERR_CORRUPT) { /* ids has the series that could be matched */
		querier_warn(selecting->q, s, &why);
		rc = ERR_OK;
	}
	if (!rc && (rc = keys.rc))
		why = keys.err;
	if (rc)
		err_copy(err, &why);
	if (!rc && s->b->remote && (selecting->kinds & DB_PROFILES))
		read_select_expect_names(s, &ids);
	if (!rc)
		rc = select_ids(selecting, source, &ids, read_select_look_in_block, err);
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

/*
 * If the limits are one set of matchers, the set is added to the query's matchers, so that indexes
 * apply it too. A matcher also accepts series that lack its label if samples may have it;
 * select_wants refuses those.
 */
static enum err_code read_select_add_limits(struct selecting *s, struct err *err)
{
	const struct label_limits *l = s->q->limits;
	const struct matcher_set *set = l && l->n == 1 ? &l->sets[0] : NULL;

	if (!set || !set->n)
		return ERR_OK;
	if (!(s->limited = calloc(s->n + set->n, sizeof(*s->limited))))
		return err_nomem(err, "select");
	if (s->n)
		memcpy(s->limited, s->m, s->n * sizeof(*s->m));
	memcpy(s->limited + s->n, set->m, set->n * sizeof(*set->m));
	s->m = s->limited;
	s->n += set->n;
	return ERR_OK;
}

/*
 * Marks of time lines (proto/annotation.h) are selected by their name alone: whoever posts one must
 * not change what a selector without a name selects.
 */
static bool select_names_marks(const struct matcher *m, size_t n)
{
	struct str listed;

	for (size_t i = 0; i < n; i++) {
		if ((m[i].op != MATCH_EQ && m[i].op != MATCH_RE) || !str_is(m[i].name, LABEL_NAME))
			continue;
		for (size_t k = 0; matcher_listed(&m[i], k, &listed); k++)
			if (str_is(listed, ANNOTATION_NAME))
				return true;
	}
	return false;
}

enum err_code select_begin(struct selecting *s, struct err *err)
{
	struct db_querier *q = s->q;
	enum err_code rc = ERR_OK;

	map_init(&s->keys_map);
	s->marks = select_names_marks(s->m, s->n);
	if ((rc = read_select_add_limits(s, err)))
		return rc;
	if (!(s->jobs = calloc(q->sources_n + 1, sizeof(*s->jobs))) ||
		(s->series_max && q->members_n > 1 &&
			!(s->latest = calloc(q->members_n, sizeof(*s->latest)))))
		rc = err_nomem(err, "select");
	for (size_t i = 0; i < q->sources_n && !rc; i++)
		if (q->sources[i].snap && (s->kinds & DB_PROFILES))
			rc = select_list_jobs(q->sources[i].db, &s->jobs[i], err);
	return rc;
}

void select_end(struct selecting *s)
{
	for (size_t i = 0; s->jobs && i < s->q->sources_n; i++)
		select_release_jobs(&s->jobs[i]);
	free(s->jobs);
	free(s->keys);
	map_release(&s->keys_map);
	chunk_close(s->chunk);
	free(s->v);
	free(s->latest);
	free(s->limited);
}

static enum err_code select_source(struct selecting *s, uint32_t source, struct err *err)
{
	if (s->q->sources[source].b)
		return select_block(s, source, err);
	return s->visitor && s->visitor->blocks_only ? ERR_OK : select_window(s, source, err);
}

/* The limit is exceeded. Adds the members that were not looked at yet to the estimate, from their
 * indexes alone. */
static enum err_code read_select_count_rest(struct selecting *s, uint32_t refused, struct err *err)
{
	const struct querier_source *v = s->q->sources;
	int64_t min_ns = v[refused].min_ns, max_ns = v[refused].max_ns;
	enum err_code rc = ERR_OK;

	s->too_many = true;
	s->latest[v[refused].member].max_ns = max_ns;
	for (uint32_t i = refused + 1; i < s->q->sources_n && v[i].min_ns < max_ns && !rc; i++) {
		if (s->latest[v[i].member].max_ns > min_ns)
			continue;
		s->latest[v[i].member].max_ns = max_ns;
		rc = select_source(s, i, err);
	}
	return rc ? rc : read_select_refuse(s, s->about, err);
}

/* In all sources. */
static enum err_code read_select_find(struct selecting *s, struct err *err)
{
	enum err_code rc = select_begin(s, err);

	for (uint32_t i = 0; i < s->q->sources_n && !rc; i++) {
		rc = select_source(s, i, err);
		if (rc && s->about && s->latest)
			rc = read_select_count_rest(s, i, err);
	}
	return rc;
}

/*
 * May the selection have recorded numbers? The newest ones may be missing. A selection by name may
 * have some if the member has a series of that name, or if nobody has one: then the series may be
 * new.
 */
static bool select_may_be_recorded(const struct selecting *s)
{
	const struct db_querier *q = s->q;
	bool named = false;

	if (!(s->kinds & DB_NUMBERS))
		return false;
	for (size_t i = 0; i < s->n && !named; i++)
		named = s->m[i].op == MATCH_EQ && str_eq(s->m[i].name, STR(LABEL_NAME));
	for (size_t i = 0; i < s->found && named; i++)
		if (q->members[q->sources[s->v[i].place.source].member].records)
			return true;
	return !named || !s->found;
}

enum err_code db_select_within(struct db_querier *q, unsigned kinds, const struct matcher *m,
	size_t n, size_t series_max, size_t *about, struct arena *a, struct db_series **out,
	size_t *out_n, struct err *err)
{
	struct selecting x = {
		.q = q, .series_max = series_max, .m = m, .n = n, .kinds = kinds, .a = a
	};
	enum err_code rc = read_select_find(&x, err);

	querier_note_selected(q, select_may_be_recorded(&x));
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
	querier_note_selected(q, kinds & DB_NUMBERS);
	rc = read_select_find(&x, err);
	select_end(&x);
	arena_release(&scratch);
	return rc;
}
