#include <stdlib.h>

#include "base/array.h"
#include "proto/annotation.h"
#include "tsdb/catalog/jobs.h"
#include "tsdb/catalog/window_epochs.h"
#include "tsdb/head/keys.h"
#include "tsdb/read/querier_internal.h"

/*
 * Names and values of labels: of the selected series, and of their samples. Without matchers and
 * deletions they come from the indexes of windows and blocks: no series is visited, and symbols are
 * loaded only for values of sample labels.
 *
 * Queries name a sample's label by its own name on series that lack a label of that name, and by
 * sample_<name> on series that have one. The lists do the same: a label of samples is listed under
 * one or both names.
 */

static int str_cmp_qsort(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Names are found by hash, so each is kept once, however often it comes. */
struct read_names {
	struct str name; /* empty: label names are wanted, else this label's values */
	struct arena *arena; /* of the answer, and without a limit of all that is found */
	struct arena texts; /* with a limit: texts found so far, also some that names_cut dropped */
	uint64_t limit; /* 0: none */
	struct str *v;
	size_t n, cap;
	struct str last; /* the name after the limit: it and later names are not added any more */
	struct map map;
	bool series_only; /* limits: labels of samples, which are stored per job, are left out */
	bool for_people; /* all names are listed; the name of marks is left out */
	struct read_names_part **parts; /* by index */
	uint32_t parts_n;
};

/* A label of a partition's samples, and whether it was listed by its name (plain) and as
 * sample_<name> (clashing). */
struct read_names_key {
	struct str key;
	bool plain, clashing;
};

struct read_names_part {
	struct read_names_key *keys; /* for values: only the keys that the label's name can mean */
	uint32_t n;
	size_t cap;
};

#define SAMPLE_PREFIX STR("sample_")
#define NAMES_MIN 1024u /* names_cut runs at twice the limit and this many more names */

static void names_init(struct read_names *r, struct str name, uint64_t limit, struct arena *a)
{
	/* A limit that cannot be reached counts as none. */
	*r = (struct read_names){ .name = name, .arena = a, .limit = limit < UINT32_MAX ? limit : 0 };
	map_init(&r->map);
	arena_init(&r->texts, a->budget_bytes);
	r->texts.shared = a->shared;
}

static void read_names_release(struct read_names *r)
{
	map_release(&r->map);
	arena_release(&r->texts);
	free(r->v);
	for (uint32_t i = 0; i < r->parts_n; i++) {
		if (r->parts[i])
			free(r->parts[i]->keys);
		free(r->parts[i]);
	}
	free(r->parts);
}

static bool read_names_same(const void *ctx, const void *key, uint32_t id)
{
	return str_eq(*(const struct str *)key, ((const struct read_names *)ctx)->v[id]);
}

static uint64_t name_hash(struct str s)
{
	return hash_bytes(s.ptr, s.len, 0);
}

/* Sorts and keeps limit + 1 names; the extra one tells the caller that there are more. */
static enum err_code names_cut(struct read_names *r, struct err *err)
{
	struct arena dropped = r->texts;

	if (r->n)
		qsort(r->v, r->n, sizeof(*r->v), str_cmp_qsort);
	if (!r->limit || r->n <= r->limit)
		return ERR_OK;
	arena_init(&r->texts, dropped.budget_bytes);
	r->texts.shared = dropped.shared;
	r->n = r->limit + 1;
	map_release(&r->map);
	map_init(&r->map);
	for (uint32_t i = 0; i < r->n; i++) {
		r->v[i] = str_dup(&r->texts, r->v[i]);
		if (!r->v[i].ptr || !map_add(&r->map, name_hash(r->v[i]), i)) {
			arena_release(&dropped);
			return arena_fail(&r->texts, "a list of names", err);
		}
	}
	arena_release(&dropped);
	r->last = r->v[r->limit];
	return ERR_OK;
}

/* s is copied. */
static enum err_code names_add(struct read_names *r, struct str s, struct err *err)
{
	struct arena *texts = r->limit ? &r->texts : r->arena;
	uint64_t hash = name_hash(s);
	enum err_code rc;

	if (!s.len || (r->last.ptr && str_cmp(s, r->last) >= 0) ||
		(r->for_people && str_is(s, ANNOTATION_NAME)) ||
		map_find(&r->map, hash, read_names_same, r, &s) != MAP_NONE)
		return ERR_OK;
	if (r->limit && r->n >= 2 * r->limit + NAMES_MIN && (rc = names_cut(r, err)))
		return rc;
	if (!array_room(&r->v, r->n, 1, &r->cap))
		return err_nomem(err, "label names");
	if (!(s = str_dup(texts, s)).ptr)
		return arena_fail(texts, "a list of names", err);
	if (!map_add(&r->map, hash, (uint32_t)r->n))
		return err_nomem(err, "label names");
	r->v[r->n++] = s;
	return ERR_OK;
}

static enum err_code read_names_add_series(
	struct read_names *r, const struct db_series *s, struct err *err)
{
	enum err_code rc = ERR_OK;

	if (r->name.len)
		return names_add(r, labels_get(s->labels, r->name), err);
	for (size_t k = 0; k < s->labels.n && !rc; k++)
		rc = names_add(r, s->labels.v[k].name, err);
	return rc;
}

/* ---- labels of samples ---- */

static enum err_code read_names_add_values(
	struct read_names *r, const struct partition *p, struct str key, struct err *err)
{
	struct buf text = { 0 };
	enum err_code rc = ERR_OK;

	for (uint32_t i = 0; !rc && (i = sym_next(p, SYM_LABEL_SET, i + 1)) != SYM_NONE;) {
		buf_clear(&text);
		sym_label_value(p, i, key, &text);
		rc = buf_failed(&text) ? err_nomem(err, "label names") : names_add(r, buf_str(&text), err);
	}
	buf_release(&text);
	return rc;
}

static bool read_names_take_prefix(struct str *name)
{
	if (!str_has_prefix(*name, SAMPLE_PREFIX))
		return false;
	name->ptr += SAMPLE_PREFIX.len;
	name->len -= SAMPLE_PREFIX.len;
	return true;
}

/* Labels made from service_name or job (label_is_service) come from the samples' service_name if
 * the series has neither. */
static struct str read_names_of_samples(const struct read_names *r)
{
	return label_is_service(r->name) ? STR(LABEL_SERVICE_NAME) : r->name;
}

/* True if the key itself is to be listed (without reserved names), or if values are asked for and
 * the label's name means this key. */
static bool read_names_wants_key(const struct read_names *r, struct str key, bool clashing)
{
	struct str name = read_names_of_samples(r);

	if (!name.len)
		return !str_has_prefix(key, STR("__"));
	if (clashing && !read_names_take_prefix(&name))
		return false;
	return str_eq(name, key);
}

static enum err_code read_names_add_key_name(
	struct read_names *r, struct str key, bool clashing, struct err *err)
{
	struct buf name = { 0 };
	enum err_code rc;

	if (!clashing)
		return names_add(r, key, err);
	buf_add_str(&name, SAMPLE_PREFIX);
	buf_add_str(&name, key);
	rc = buf_failed(&name) ? err_nomem(err, "label names") : names_add(r, buf_str(&name), err);
	buf_release(&name);
	return rc;
}

/* Lists a key of the partition's samples. clashing: it belongs to a series that has a label of that
 * name, so it is listed as sample_<name>. */
static enum err_code read_names_add_key(struct read_names *r, const struct partition *p,
	struct read_names_key *k, bool clashing, struct err *err)
{
	bool *done = clashing ? &k->clashing : &k->plain;

	if (*done)
		return ERR_OK;
	*done = true;
	if (!read_names_wants_key(r, k->key, clashing))
		return ERR_OK;
	if (!r->name.len)
		return read_names_add_key_name(r, k->key, clashing, err);
	if (clashing && sym_has_label_key(p, r->name)) /* samples have a label of this very name */
		return ERR_OK;
	return read_names_add_values(r, p, k->key, err);
}

static enum err_code read_names_part_add(
	struct read_names_part *part, struct str key, struct err *err)
{
	for (uint32_t i = 0; i < part->n; i++)
		if (str_eq(part->keys[i].key, key))
			return ERR_OK;
	if (!array_room(&part->keys, part->n, 1, &part->cap))
		return err_nomem(err, "label names");
	part->keys[part->n++] = (struct read_names_key){ .key = key };
	return ERR_OK;
}

static enum err_code read_names_list_keys(const struct read_names *r, const struct partition *p,
	struct read_names_part *part, struct err *err)
{
	struct str name = read_names_of_samples(r), inner = name;
	enum err_code rc = ERR_OK;

	if (label_is_service(r->name) && partition_name(p).len)
		return ERR_OK;
	if (name.len) {
		if (sym_has_label_key(p, name))
			rc = read_names_part_add(part, name, err);
		if (!rc && read_names_take_prefix(&inner) && sym_has_label_key(p, inner))
			rc = read_names_part_add(part, inner, err);
		return rc;
	}
	for (uint32_t i = 0; !rc && (i = sym_next(p, SYM_LABEL_SET, i + 1)) != SYM_NONE;) {
		struct sym_label_set set = sym_label_set(p, i);

		for (uint32_t k = 0; k < set.n && !rc; k++)
			rc = read_names_part_add(part, sym_string(p, set.v[k].key), err);
	}
	return rc;
}

/* Its keys are listed when it is asked for first. */
static enum err_code read_names_part_of(
	struct read_names *r, const struct partition *p, struct read_names_part **out, struct err *err)
{
	uint32_t at = partition_index(p), had = r->parts_n;

	if (at >= had) {
		if (!array_room(&r->parts, had, at - had + 1, &r->parts_n))
			return err_nomem(err, "label names");
		memset(r->parts + had, 0, (r->parts_n - had) * sizeof(struct read_names_part *));
	}
	*out = r->parts[at];
	if (*out)
		return ERR_OK;
	if (!(*out = r->parts[at] = calloc(1, sizeof(**out))))
		return err_nomem(err, "label names");
	return read_names_list_keys(r, p, *out, err);
}

/* ---- by series ---- */

static bool read_names_wants_series(void *ctx, struct labels labels)
{
	const struct read_names *x = ctx;
	struct str value = labels_get(labels, x->name);

	return !x->last.ptr || !x->name.len || !value.len || str_cmp(value, x->last) < 0;
}

static enum err_code read_names_take_series(void *ctx, const struct db_series *s, struct err *err)
{
	struct read_names *r = ctx;
	struct read_names_part *part;
	enum err_code rc = read_names_add_series(r, s, err);

	if (rc || s->numeric || r->series_only ||
		(rc = read_names_part_of(r, s->partition, &part, err)))
		return rc;
	for (uint32_t i = 0; i < part->n && !rc; i++)
		rc = read_names_add_key(
			r, s->partition, &part->keys[i], labels_has(s->labels, part->keys[i].key), err);
	return rc;
}

static enum err_code read_names_of_series(
	struct read_names *r, struct db_querier *q, const struct matcher *m, size_t n, struct err *err)
{
	const struct db_visitor visitor = { .wanted = read_names_wants_series,
		.sample_label = r->name,
		.early = true,
		.take = read_names_take_series,
		.ctx = r };

	return db_visit_series(q, DB_PROFILES | DB_NUMBERS, m, n, &visitor, err);
}

/* ---- by indexes ---- */

struct indexed {
	struct read_names *x;
	uint64_t names; /* a bit of each one's hash */
	enum err_code rc;
	struct err err;
};

static bool read_names_add_indexed(void *ctx, struct str name)
{
	struct indexed *t = ctx;

	t->names |= UINT64_C(1) << (name_hash(name) & 63);
	t->rc = names_add(t->x, name, &t->err);
	return !t->rc;
}

static bool read_names_add_of_block(void *ctx, struct str name, uint32_t series_n)
{
	return !series_n || read_names_add_indexed(ctx, name);
}

/* Lists labels of samples, by the series that the job has in a window. */
static enum err_code read_names_of_job(struct read_names *r, struct querier_source *s,
	const struct job *job, const struct partition *p, struct err *err)
{
	struct series_index *index = s->db->series;
	struct read_names_part *part;
	struct bits ids = { 0 };
	enum err_code rc = read_names_part_of(r, p, &part, err);
	uint32_t all, with;

	if (rc || !part->n || !s->w->series.words)
		return rc;
	if (!bits_reserve(&ids, (uint32_t)(s->w->series.words * 64 - 1)))
		return err_nomem(err, "label names");
	series_lock_read(index);
	memcpy(ids.w, s->w->series.w, s->w->series.words * sizeof(*ids.w));
	series_keep_job_locked(index, job, &ids);
	all = (uint32_t)bits_count(&ids);
	for (uint32_t i = 0; i < part->n && !rc; i++) {
		with = series_having_locked(index, part->keys[i].key, &ids);
		if (with)
			rc = read_names_add_key(r, p, &part->keys[i], true, err);
		if (!rc && with < all)
			rc = read_names_add_key(r, p, &part->keys[i], false, err);
	}
	series_unlock(index);
	bits_release(&ids);
	return rc;
}

static enum err_code read_names_of_window(
	struct read_names *r, struct db_querier *q, struct querier_source *s, struct err *err)
{
	struct indexed t = { .x = r };
	struct window_span span;
	struct partition *p;
	struct job *job;

	series_lock_read(s->db->series);
	if (!series_names_locked(s->db->series, r->name, &s->w->series, read_names_add_indexed, &t))
		t.rc = err_nomem(&t.err, "label names");
	series_unlock(s->db->series);
	for (uint32_t i = 0; !t.rc && (job = db_job_at(s->db, i)); i++)
		for (uint32_t k = 0; !t.rc && window_epoch_at(s->db, s->w, job, k, &span); k++)
			if (span.min_ns < q->max_ns && span.max_ns > q->min_ns &&
				!(t.rc = querier_window_partition(q, s, job, span.epoch, &p, &t.err)) && p)
				t.rc = read_names_of_job(r, s, job, p, &t.err);
	return t.rc ? err_copy(err, &t.err) : ERR_OK;
}

/* Lists a label of samples of one of a block's partitions. Values are read from the partition's
 * symbols. */
static enum err_code read_names_of_slot_key(struct read_names *r, struct db_querier *q,
	struct querier_source *s, uint32_t slot, struct str key, bool clashing, struct err *err)
{
	struct read_names_part *part;
	struct partition *p;
	enum err_code rc;

	if (!r->name.len)
		return read_names_add_key_name(r, key, clashing, err);
	rc = querier_partition(q, s, slot, false, &p, err);
	if (rc == ERR_EXISTS) /* querier_partition has warned */
		return ERR_OK;
	if (rc || (rc = read_names_part_of(r, p, &part, err)))
		return rc;
	for (uint32_t i = 0; i < part->n && !rc; i++)
		if (str_eq(part->keys[i].key, key))
			rc = read_names_add_key(r, p, &part->keys[i], clashing, err);
	return rc;
}

/* Lists labels of samples of a slot; their names come from the block's index. */
static enum err_code read_names_of_slot(struct read_names *r, struct db_querier *q,
	struct querier_source *s, uint32_t slot, uint64_t names, struct err *err)
{
	uint32_t with, without;
	const struct str *keys;
	enum err_code rc;
	struct err why;
	size_t n;

	if ((rc = block_sample_keys(s->b->block, slot, &keys, &n, err)))
		return rc;
	for (size_t i = 0; i < n && !rc; i++) {
		bool plain = read_names_wants_key(r, keys[i], false),
			 clashing = read_names_wants_key(r, keys[i], true);

		if (!plain && !clashing)
			continue;
		with = 0;
		without = 1;
		if (names >> (name_hash(keys[i]) & 63) & 1)
			rc = block_slot_having(s->b->block, slot, keys[i], &with, &without, &why);
		if (rc == ERR_CORRUPT) {
			querier_warn(q, s, &why);
			rc = ERR_OK;
			without = 1;
		} else if (rc) {
			err_copy(err, &why);
		}
		if (!rc && plain && without)
			rc = read_names_of_slot_key(r, q, s, slot, keys[i], false, err);
		if (!rc && clashing && with)
			rc = read_names_of_slot_key(r, q, s, slot, keys[i], true, err);
	}
	return rc;
}

static enum err_code read_names_of_block(
	struct read_names *r, struct db_querier *q, struct querier_source *s, struct err *err)
{
	struct indexed t = { .x = r };
	struct block *b = s->b->block;
	enum err_code rc;
	struct err why;

	rc = r->name.len ? block_label_values(b, r->name, read_names_add_of_block, &t, &why) :
					   block_label_names(b, read_names_add_of_block, &t, &why);
	if (rc == ERR_CORRUPT || r->name.len)
		t.names = UINT64_MAX; /* not all are known */
	if (rc == ERR_CORRUPT) {
		querier_warn(q, s, &why);
		rc = ERR_OK;
	}
	if (!rc && (rc = t.rc))
		why = t.err;
	if (rc)
		err_copy(err, &why);
	for (uint32_t slot = 0; slot < block_partitions_n(b) && !rc; slot++)
		rc = read_names_of_slot(r, q, s, slot, t.names, err);
	return rc;
}

/* Indexes ignore deletions and limits; with either, series are visited. */
static bool read_names_by_indexes(const struct db_querier *q)
{
	if (q->limits)
		return false;
	for (size_t i = 0; i < q->sources_n; i++)
		if (q->sources[i].deleted_n)
			return false;
	return true;
}

static enum err_code read_names_of_sources(
	struct read_names *r, struct db_querier *q, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < q->sources_n && !rc; i++) {
		struct querier_source *s = &q->sources[i];

		if (querier_canceled(q))
			rc = err_set(err, ERR_CANCELED, "query canceled");
		else if (s->b)
			rc = read_names_of_block(r, q, s, err);
		else if (s->snap)
			rc = read_names_of_window(r, q, s, err);
	}
	return rc;
}

/* Label names (name empty) or one label's values, of the selected series and of their samples. */
static enum err_code read_names_of(struct db_querier *q, struct str name, const struct matcher *m,
	size_t n, uint64_t limit, struct arena *a, struct str **out, size_t *out_n, struct err *err)
{
	struct read_names x;
	enum err_code rc;

	names_init(&x, name, limit, a);
	x.series_only = q->limits;
	x.for_people = !n && str_is(name, LABEL_NAME);
	rc = !n && read_names_by_indexes(q) ? read_names_of_sources(&x, q, err) :
										  read_names_of_series(&x, q, m, n, err);
	if (!rc)
		rc = names_cut(&x, err);
	if (!rc && !(*out = arena_array(a, struct str, x.n + 1)))
		rc = arena_fail(a, "a list of names", err);
	for (size_t i = 0; i < x.n && !rc; i++) {
		(*out)[i] = x.limit ? str_dup(a, x.v[i]) : x.v[i];
		if (!(*out)[i].ptr)
			rc = arena_fail(a, "a list of names", err);
	}
	*out_n = x.n;
	read_names_release(&x);
	return rc;
}

enum err_code db_label_names(struct db_querier *q, const struct matcher *m, size_t n,
	uint64_t limit, struct arena *a, struct str **out, size_t *out_n, struct err *err)
{
	return read_names_of(q, (struct str){ 0 }, m, n, limit, a, out, out_n, err);
}

enum err_code db_label_values(struct db_querier *q, struct str name, const struct matcher *m,
	size_t n, uint64_t limit, struct arena *a, struct str **out, size_t *out_n, struct err *err)
{
	return read_names_of(q, name, m, n, limit, a, out, out_n, err);
}
