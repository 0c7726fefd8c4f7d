#include <stdlib.h>

#include "tsdb/blocks.h"
#include "tsdb/numbers.h"
#include "tsdb/row.h"

/*
 * Selecting: series of each source that the matchers accept and that have rows in the window,
 * united by labels and partition. A head window is asked through the index in memory, a block
 * through its own postings.
 */

/* Partitions of a job in a head window, pinned by the querier, with symbols. */
struct window_parts {
	struct partition **v; /* NULL: cannot be used */
	uint32_t *epochs, n;
};

struct window_jobs {
	struct window_parts *v; /* by job->index */
	uint32_t n;
};

/* Whether samples of a job have a label, as far as it was asked. */
struct known_key {
	struct str job, key;
	bool has;
};

/* One series of one source. */
struct found {
	struct labels labels;
	struct partition *partition;
	struct job *job; /* a window's */
	struct str job_name; /* of profiles */
	struct series_place place;
};

struct selecting {
	struct db_querier *q;
	const struct matcher *m;
	size_t n;
	unsigned kinds; /* of enum db_kinds */
	struct arena *a;
	struct found *v;
	size_t found, cap;
	struct chunk *chunk; /* made when first wanted */
	struct window_jobs *jobs; /* by source; of windows */
	struct known_key *keys;
	uint32_t keys_n, keys_cap;
	struct map keys_map;
};

static enum err_code canceled(struct err *err)
{
	return err_set(err, ERR_CANCELED, "query canceled");
}

static enum err_code nomem(struct err *err)
{
	return err_set(err, ERR_NOMEM, "select: out of memory");
}

static enum err_code add_found(struct selecting *x, struct found f, struct err *err)
{
	size_t cap = x->cap ? x->cap * 2 : 64;
	struct found *v;

	if (x->found == x->cap) {
		if (!(v = realloc(x->v, cap * sizeof(*v))))
			return nomem(err);
		x->v = v;
		x->cap = cap;
	}
	x->v[x->found++] = f;
	return ERR_OK;
}

/* ---- head windows ---- */

/* In the ids of this epoch. */
static bool window_has_rows(
	struct db_querier *q, struct querier_source *s, uint32_t series, struct window_span span)
{
	struct deleted d = { s->deleted, s->deleted_n };
	const struct deleted_range *gone;
	size_t gone_n = deleted_of(d, series, &gone);
	int64_t from = q->min_ns > span.min_ns ? q->min_ns : span.min_ns,
		to = q->max_ns < span.max_ns ? q->max_ns : span.max_ns, ts;
	struct key key = key_row(series, from + 1);
	struct store_iter *it = querier_iter(s);
	bool has = false;
	uint32_t id, epoch;
	struct str bytes;

	if (!it || from >= to)
		return false;
	for (store_iter_seek(it, key_str(&key)); !has && store_iter_valid(it);
		store_iter_next(it)) {
		if (!key_parse_row(store_iter_key(it), &id, &ts) || id != series || ts > to)
			break;
		/* One that cannot be read may be of any epoch: whoever reads it tells. */
		has = !deleted_has(gone, gone_n, ts) &&
			(store_iter_value(it, &bytes, NULL) || !row_epoch(bytes, &epoch) ||
				epoch == span.epoch);
	}
	querier_check(q, s, it);
	return has;
}

/* Pinned until the querier closes, each once. */
static enum err_code keep_pinned(struct db_querier *q, struct partition *p, struct err *err)
{
	size_t cap = q->pinned_cap ? q->pinned_cap * 2 : 16;
	struct partition **v;

	for (size_t i = 0; i < q->pinned_n; i++)
		if (q->pinned[i] == p) {
			partition_unpin(q->db, p);
			return ERR_OK;
		}
	if (q->pinned_n == q->pinned_cap) {
		if (!(v = realloc(q->pinned, cap * sizeof(struct partition *)))) {
			partition_unpin(q->db, p);
			return nomem(err);
		}
		q->pinned = v;
		q->pinned_cap = cap;
	}
	q->pinned[q->pinned_n++] = p;
	return ERR_OK;
}

enum err_code querier_window_partition(struct db_querier *q, struct querier_source *s,
	struct job *job, uint32_t epoch, struct partition **out, struct err *err)
{
	struct partition *p;
	enum err_code rc;
	struct err why;

	*out = NULL;
	if ((rc = partition_pin(q->db, job->name, job->id, epoch, &p, err)) ||
		(rc = keep_pinned(q, p, err)))
		return rc;
	if ((rc = partition_need_window(q->db, p, s->w, &why)))
		querier_warn(q, s, &why);
	if (rc && rc != ERR_CORRUPT && rc != ERR_EXISTS && rc != ERR_UNAVAILABLE) {
		if (err)
			*err = why;
		return rc;
	}
	if (rc != ERR_EXISTS)
		*out = p;
	return ERR_OK;
}

static enum err_code list_jobs(struct selecting *x, struct window_jobs *j, struct err *err)
{
	while (db_job_at(x->q->db, j->n))
		j->n++;
	return (j->v = calloc(j->n + 1, sizeof(*j->v))) ? ERR_OK : nomem(err);
}

static void release_jobs(struct window_jobs *j)
{
	for (uint32_t i = 0; i < j->n && j->v; i++) {
		free(j->v[i].v);
		free(j->v[i].epochs);
	}
	free(j->v);
}

/* The partition of an epoch; NULL: it cannot be used. It is asked for once. */
static enum err_code part_of(struct selecting *x, uint32_t source, struct job *job, uint32_t epoch,
	struct partition **out, struct err *err)
{
	struct window_parts *j = &x->jobs[source].v[job->index];
	struct partition **v;
	uint32_t *epochs;
	enum err_code rc;

	for (uint32_t i = 0; i < j->n; i++)
		if (j->epochs[i] == epoch) {
			*out = j->v[i];
			return ERR_OK;
		}
	if ((v = realloc(j->v, (j->n + 1) * sizeof(*v))))
		j->v = v;
	if ((epochs = realloc(j->epochs, (j->n + 1) * sizeof(*epochs))))
		j->epochs = epochs;
	if (!v || !epochs)
		return nomem(err);
	if ((rc = querier_window_partition(
		     x->q, &x->q->sources[source], job, epoch, out, err)))
		return rc;
	v[j->n] = *out;
	epochs[j->n++] = epoch;
	return ERR_OK;
}

/* ---- labels that a series lacks and its samples may have ---- */

static bool key_same(const void *ctx, const void *key, uint32_t id)
{
	const struct known_key *known = &((const struct selecting *)ctx)->keys[id], *k = key;

	return str_eq(known->job, k->job) && str_eq(known->key, k->key);
}

static bool slot_has_key(struct block *b, uint32_t slot, struct str key)
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

/* Samples of the job in this window have the label: all its symbols are loaded for that. */
static enum err_code window_has_key(struct selecting *x, uint32_t source, struct str name,
	struct str key, bool *has, struct err *err)
{
	const struct querier_source *s = &x->q->sources[source];
	struct window_span span;
	struct partition *p;
	struct job *job;
	enum err_code rc = ERR_OK;

	for (uint32_t i = 0; i < x->jobs[source].n && !rc && !*has; i++) {
		job = db_job_at(x->q->db, i);
		if (!str_eq(job->name, name))
			continue;
		for (uint32_t k = 0; window_epoch_at(x->q->db, s->w, job, k, &span); k++) {
			if (span.min_ns >= x->q->max_ns || span.max_ns <= x->q->min_ns)
				continue;
			rc = part_of(x, source, job, span.epoch, &p, err);
			if (rc || (*has = p && sym_has_label_key(p, key)))
				break;
		}
	}
	return rc;
}

/* In whichever epoch and source of the querier. */
static enum err_code look_for_key(
	struct selecting *x, struct str job, struct str key, bool *has, struct err *err)
{
	enum err_code rc = ERR_OK;

	*has = false;
	for (uint32_t i = 0; i < x->q->sources_n && !rc && !*has; i++) {
		const struct querier_source *s = &x->q->sources[i];

		if (x->jobs[i].n)
			rc = window_has_key(x, i, job, key, has, err);
		for (uint32_t k = 0; s->b && k < block_partitions_n(s->b->block) && !*has; k++)
			*has = str_eq(block_partition(s->b->block, k)->name, job) &&
				slot_has_key(s->b->block, k, key);
	}
	return rc;
}

/* Samples of the job have the label. Answered once per job and key, so that it does not depend on
 * which epochs of a job have it. */
static enum err_code job_has_key(
	struct selecting *x, struct str job, struct str key, bool *out, struct err *err)
{
	struct known_key k = { job, key, false }, *v;
	uint64_t hash = hash_bytes(key.ptr, key.len, hash_bytes(job.ptr, job.len, 0));
	uint32_t at = map_find(&x->keys_map, hash, key_same, x, &k);
	uint32_t cap = x->keys_cap ? x->keys_cap * 2 : 16;
	enum err_code rc;

	if (at == MAP_NONE) {
		if ((rc = look_for_key(x, job, key, &k.has, err)))
			return rc;
		at = x->keys_n;
		if (at == x->keys_cap) {
			if (!(v = realloc(x->keys, cap * sizeof(*v))))
				return nomem(err);
			x->keys = v;
			x->keys_cap = cap;
		}
		if (!map_add(&x->keys_map, hash, at))
			return nomem(err);
		x->keys[x->keys_n++] = k;
	}
	*out = x->keys[at].has;
	return ERR_OK;
}

/*
 * Samples of the series may pass the matchers about labels that it lacks: those that do not accept
 * "" need samples with the label, by its own name or as sample_<name> where the series has a label
 * of that name.
 */
static enum err_code samples_may_match(
	struct selecting *x, const struct found *f, bool *out, struct err *err)
{
	struct str job = f->job_name;
	enum err_code rc = ERR_OK;

	*out = true;
	for (size_t i = 0; i < x->n && *out && !rc; i++) {
		struct str name = x->m[i].name, inner = { name.ptr + 7, name.len - 7 };

		if (labels_has(f->labels, name) || matcher_test(&x->m[i], STR("")))
			continue;
		rc = job_has_key(x, job, name, out, err);
		if (!rc && !*out &&
			str_has_prefix(name, STR("sample_")) && labels_has(f->labels, inner))
			rc = job_has_key(x, job, inner, out, err);
	}
	return rc;
}

/* Numbers have no samples: a label that is not there is "". */
static bool numbers_match(const struct selecting *x, const struct found *f)
{
	bool all = true;

	for (size_t i = 0; i < x->n && all; i++)
		all = matcher_test_labels(&x->m[i], f->labels);
	return all;
}

/* Series of the window by their ids. */
static enum err_code list_window_series(
	struct selecting *x, uint32_t source, const struct bits *ids, struct err *err)
{
	struct series_index *index = x->q->db->series;
	enum err_code rc = ERR_OK;

	series_lock_read(index);
	for (size_t w = 0; w < ids->words && !rc; w++)
		for (uint64_t rest = ids->w[w]; rest && !rc; rest &= rest - 1) {
			uint32_t id = (uint32_t)(w * 64 + (size_t)__builtin_ctzll(rest));
			struct series *of = series_by_id_locked(index, id);

			/* One that is out of the index has rows no more; its memory is the
			 * querier's as long as it lives. */
			if (!of || (of->job ? of->job->index >= x->jobs[source].n :
					      !(x->kinds & DB_NUMBERS)))
				continue;
			rc = add_found(x,
				(struct found){ of->labels, NULL, of->job,
					of->job ? of->job->name : (struct str){ 0 },
					{ source, id } },
				err);
		}
	series_unlock(index);
	return rc;
}

/* One entry per epoch that has rows of it. */
static enum err_code add_epochs(
	struct selecting *x, uint32_t source, struct found f, struct err *err)
{
	struct querier_source *s = &x->q->sources[source];
	struct window_span span;
	enum err_code rc = ERR_OK;

	for (uint32_t i = 0; window_epoch_at(x->q->db, s->w, f.job, i, &span) && !rc; i++) {
		if (!window_has_rows(x->q, s, f.place.id, span))
			continue;
		rc = part_of(x, source, f.job, span.epoch, &f.partition, err);
		if (!rc && f.partition)
			rc = add_found(x, f, err);
	}
	return rc;
}

static enum err_code add_window_series(struct selecting *x, struct querier_source *s,
	uint32_t source, const struct bits *ids, struct err *err)
{
	size_t from = x->found, n;
	enum err_code rc = list_window_series(x, source, ids, err);
	bool may = false;

	n = x->found - from;
	for (size_t i = from; i < from + n && !rc; i++) {
		struct found f = x->v[i];

		if (i % 64 == 0 && querier_canceled(x->q))
			return canceled(err);
		if (!f.job && numbers_match(x, &f) && numbers_in_window(x->q, s, f.place.id))
			rc = add_found(x, f, err);
		else if (f.job && !(rc = samples_may_match(x, &f, &may, err)) && may)
			rc = add_epochs(x, source, f, err);
	}
	/* What was listed makes room for what is taken. */
	memmove(x->v + from, x->v + from + n, (x->found - from - n) * sizeof(*x->v));
	x->found -= n;
	return rc;
}

static enum err_code select_window(struct selecting *x, uint32_t source, struct err *err)
{
	struct querier_source *s = &x->q->sources[source];
	struct bits ids = { 0 };
	enum err_code rc;

	if (!s->snap)
		return ERR_OK;
	series_lock_read(x->q->db->series);
	rc = series_match_locked(
		x->q->db->series, x->m, x->n, &s->w->series, NULL, NULL, &ids, err);
	series_unlock(x->q->db->series);
	if (!rc)
		rc = add_window_series(x, s, source, &ids, err);
	bits_release(&ids);
	return rc;
}

/* ---- blocks ---- */

struct block_keys {
	struct selecting *x;
	struct block *block;
	enum err_code rc; /* what kept a key from being looked for */
	struct err err;
};

static bool block_has_key(void *ctx, uint32_t slot, struct str key)
{
	struct block_keys *k = ctx;
	bool has = false;

	if (!k->rc)
		k->rc = job_has_key(
			k->x, block_partition(k->block, slot)->name, key, &has, &k->err);
	return has;
}

/* By its rows, where what is known of the series does not tell. */
static enum err_code look_for_rows(struct selecting *x, struct querier_source *s, uint32_t series,
	const struct deleted_range *gone, size_t gone_n, bool *has, struct err *err)
{
	struct block_chunks *it = querier_chunks(s, err);
	int64_t min = x->q->min_ns, max = x->q->max_ns, first;
	struct str bytes;
	struct err why;
	enum err_code rc;

	if (!it || (!x->chunk && !(x->chunk = chunk_open())))
		return nomem(err);
	*has = false;
	block_chunks_seek(it, series, min, max);
	while (!*has && (rc = block_chunks_next(it, &bytes, &first, &why)) != ERR_NOT_FOUND) {
		if (!rc)
			rc = chunk_parse(x->chunk, bytes, &why);
		if (rc == ERR_CORRUPT) {
			querier_warn(x->q, s, &why);
			continue;
		}
		if (rc) {
			if (err)
				*err = why;
			return rc;
		}
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
	return look_for_rows(x, s, id, gone, gone_n, has, err);
}

static enum err_code add_block_series(
	struct selecting *x, uint32_t source, uint32_t id, struct err *err)
{
	struct querier_source *s = &x->q->sources[source];
	struct block_series of;
	struct partition *p;
	struct err why;
	enum err_code rc;
	bool has = false;

	if (!(x->kinds & (id < block_meta(s->b->block)->number_series ? DB_NUMBERS : DB_PROFILES)))
		return ERR_OK;
	if ((rc = block_series(s->b->block, id, x->a, &of, &why)) == ERR_CORRUPT) {
		querier_warn(x->q, s, &why);
		return ERR_OK;
	}
	if (rc) {
		if (err)
			*err = why;
		return rc;
	}
	if (of.slot == BLOCK_NUMERIC) {
		rc = numbers_in_block(x->q, s, id, &of, &has, err);
		return rc || !has ?
			rc :
			add_found(x, (struct found){ .labels = of.labels, .place = { source, id } },
				err);
	}
	if ((rc = block_has_rows(x, s, id, &of, &has, err)) || !has)
		return rc;
	rc = querier_partition(x->q, s, of.slot, false, &p, err);
	if (rc == ERR_EXISTS) /* its ids mean something else: told already */
		return ERR_OK;
	if (rc)
		return rc;
	return add_found(x,
		(struct found){ of.labels, p, NULL, partition_name(p), { source, id } }, err);
}

static enum err_code select_block(struct selecting *x, uint32_t source, struct err *err)
{
	struct querier_source *s = &x->q->sources[source];
	struct block_keys keys = { .x = x, .block = s->b->block };
	struct bits ids = { 0 };
	enum err_code rc;
	struct err why;
	size_t done = 0;

	rc = block_match(s->b->block, x->m, x->n, block_has_key, &keys, &ids, &why);
	if (rc == ERR_CORRUPT) { /* what could be matched is in ids */
		querier_warn(x->q, s, &why);
		rc = ERR_OK;
	}
	if (!rc && (rc = keys.rc))
		why = keys.err;
	if (rc && err)
		*err = why;
	for (size_t w = 0; w < ids.words && !rc; w++)
		for (uint64_t rest = ids.w[w]; rest && !rc; rest &= rest - 1) {
			if (done++ % 64 == 0 && querier_canceled(x->q))
				rc = canceled(err);
			else
				rc = add_block_series(x, source,
					(uint32_t)(w * 64 + (size_t)__builtin_ctzll(rest)), err);
		}
	bits_release(&ids);
	return rc;
}

/* ---- uniting ---- */

static int found_cmp(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	int c = labels_cmp(x->labels, y->labels);

	if (c)
		return c;
	if (x->partition != y->partition) /* numbers first */
		return !x->partition ||
				(y->partition && x->partition->index < y->partition->index) ?
			-1 :
			1;
	return (x->place.source > y->place.source) - (x->place.source < y->place.source);
}

/* Newest first: by where their last rows are, and by when they began. */
static int age_cmp(const void *a, const void *b)
{
	const struct db_series *x = a, *y = b;
	uint32_t i = x->places[x->places_n - 1].source, k = y->places[y->places_n - 1].source;

	if (i != k || !x->partition || !y->partition)
		return (i < k) - (i > k);
	return (x->partition->epoch < y->partition->epoch) -
		(x->partition->epoch > y->partition->epoch);
}

static void link_epochs(struct db_series *v, size_t n)
{
	for (size_t i = 0, k; i < n; i = k) {
		for (k = i + 1; k < n && labels_eq(v[i].labels, v[k].labels); k++)
			;
		if (k - i > 1)
			qsort(v + i, k - i, sizeof(*v), age_cmp);
		for (size_t at = i; at < k && k - i > 1; at++)
			v[at].other = at == i ? &v[k - 1] : &v[at - 1];
	}
}

static enum err_code unite(
	struct selecting *x, struct db_series **out, size_t *out_n, struct err *err)
{
	struct series_place *places = arena_array(x->a, struct series_place, x->found + 1);
	struct db_series *v = arena_array(x->a, struct db_series, x->found + 1);
	size_t n = 0;

	if (!places || !v)
		return arena_fail(x->a, "select", err);
	if (x->found)
		qsort(x->v, x->found, sizeof(*x->v), found_cmp);
	for (size_t i = 0; i < x->found; i++) {
		const struct found *f = &x->v[i];

		places[i] = f->place;
		if (n && v[n - 1].partition == f->partition &&
			labels_eq(v[n - 1].labels, f->labels)) {
			v[n - 1].places_n++;
			continue;
		}
		v[n] = (struct db_series){ .labels = labels_dup(x->a, f->labels),
			.partition = f->partition,
			.numeric = !f->partition,
			.places = &places[i],
			.places_n = 1 };
		if (!v[n].labels.v)
			return arena_fail(x->a, "select", err);
		n++;
	}
	link_epochs(v, n);
	*out = v;
	*out_n = n;
	return ERR_OK;
}

enum err_code db_select(struct db_querier *q, const struct matcher *m, size_t n, struct arena *a,
	struct db_series **out, size_t *out_n, struct err *err)
{
	return db_select_kinds(q, DB_PROFILES | DB_NUMBERS, m, n, a, out, out_n, err);
}

enum err_code db_select_kinds(struct db_querier *q, unsigned kinds, const struct matcher *m,
	size_t n, struct arena *a, struct db_series **out, size_t *out_n, struct err *err)
{
	struct selecting x = { .q = q, .m = m, .n = n, .kinds = kinds, .a = a };
	enum err_code rc = ERR_OK;

	map_init(&x.keys_map);
	if (!(x.jobs = calloc(q->sources_n + 1, sizeof(*x.jobs))))
		rc = nomem(err);
	for (size_t i = 0; i < q->sources_n && !rc; i++)
		if (q->sources[i].snap && (kinds & DB_PROFILES))
			rc = list_jobs(&x, &x.jobs[i], err);
	for (uint32_t i = 0; i < q->sources_n && !rc; i++)
		rc = q->sources[i].w ? select_window(&x, i, err) : select_block(&x, i, err);
	if (!rc)
		rc = unite(&x, out, out_n, err);
	for (size_t i = 0; x.jobs && i < q->sources_n; i++)
		release_jobs(&x.jobs[i]);
	free(x.jobs);
	free(x.keys);
	map_release(&x.keys_map);
	chunk_close(x.chunk);
	free(x.v);
	return rc;
}
