#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tsdb/catalog/jobs.h"
#include "tsdb/catalog/window_epochs.h"
#include "tsdb/head/append_internal.h"
#include "tsdb/head/head_internal.h"
#include "tsdb/head/numbers.h"
#include "tsdb/lists/versions.h"
#include "tsdb/series/groups.h"

/*
 * Loads a window's small records into memory at the start: jobs with their epochs, series and their
 * types. Rows are not read, unless the store is damaged: then they are counted.
 *
 * Mostly the second copy has the same records. It is in memory, and was compared with the store, so
 * the store is not read again.
 */
#define META_VERSION_LINKS \
	4u /* rows may have links; a version before this one cannot read them \
		*/
#define META_VERSION 3u
#define META_VERSION_BEFORE 2u /* records have no identity */
#define SERIES_TOGETHER 32u

struct key key_of(char kind)
{
	return (struct key){ { kind }, 1 };
}

static void head_load_put_be32(char *to, uint32_t value)
{
	for (unsigned i = 0; i < 4; i++)
		to[i] = (char)(value >> (24 - 8 * i));
}

struct key key_u32(char kind, uint32_t id)
{
	struct key k = { { kind }, 5 };

	head_load_put_be32(k.bytes + 1, id);
	return k;
}

struct key key_u32_u32(char kind, uint32_t a, uint32_t b)
{
	struct key k = { { kind }, 9 };

	head_load_put_be32(k.bytes + 1, a);
	head_load_put_be32(k.bytes + 5, b);
	return k;
}

struct key key_u32_u32_u32(char kind, uint32_t a, uint32_t b, uint32_t third)
{
	struct key k = { { kind }, 13 };

	head_load_put_be32(k.bytes + 1, a);
	head_load_put_be32(k.bytes + 5, b);
	head_load_put_be32(k.bytes + 9, third);
	return k;
}

struct key key_row(uint32_t series, int64_t ts_ns)
{
	struct key k = { { 'r' }, 13 };

	head_load_put_be32(k.bytes + 1, series);
	head_load_put_be32(k.bytes + 5, (uint32_t)((uint64_t)ts_ns >> 32));
	head_load_put_be32(k.bytes + 9, (uint32_t)ts_ns);
	return k;
}

bool key_parse_row(struct str key, uint32_t *series, int64_t *ts_ns)
{
	struct cursor in = { (const unsigned char *)key.ptr + 1,
		(const unsigned char *)key.ptr + key.len, false };

	if (key.len != 13 || key.ptr[0] != 'r')
		return false;
	*series = cursor_u32be(&in);
	*ts_ns = (int64_t)cursor_u64be(&in);
	return true;
}

/* ---- single records ---- */

void head_encode_meta(const struct window *w, bool links, struct buf *out)
{
	buf_add_char(out,
		(char)(links        ? META_VERSION_LINKS :
				w->identity ? META_VERSION :
							  META_VERSION_BEFORE));
	buf_add_u64be(out, (uint64_t)w->start_ns);
	buf_add_u64be(out, (uint64_t)w->end_ns);
	if (links || w->identity)
		buf_add_u64be(out, w->identity);
}

void head_put_links_meta(const struct window *w, struct buf *value, struct store_batch *b)
{
	struct key key = key_of('m');

	buf_clear(value);
	head_encode_meta(w, true, value);
	store_batch_set_identity(b, 0);
	store_batch_put(b, key_str(&key), value);
	store_batch_set_identity(b, w->identity);
}

enum err_code head_write_meta(struct db *db, struct window *w, struct err *err)
{
	struct store_batch *b = store_batch_open();
	struct key key = key_of('m');
	struct buf value = { 0 };
	enum err_code rc;

	if (!b)
		return err_nomem(err, "window");
	head_encode_meta(w, w->links, &value);
	store_batch_put_twice(b, key_str(&key), &value); /* under identity 0: it is read first */
	rc = buf_failed(&value) ? err_nomem(err, "window") : store_write(w->store, b, err);
	if (!rc)
		head_names_append(db, w, store_batch_copies(b));
	store_batch_close(b);
	buf_release(&value);
	return rc;
}

enum err_code head_parse_meta(
	struct str value, const char *dir, struct window_meta *out, struct err *err)
{
	struct cursor in;
	unsigned version = value.len ? (unsigned char)value.ptr[0] : 0;

	if (version > META_VERSION_LINKS)
		return versions_refuse(dir, version, META_VERSION_LINKS, err);
	if (version < META_VERSION_BEFORE)
		return err_set(err, ERR_UNSUPPORTED,
			"%s: version %u was written by an older program; this one reads versions from %u", dir,
			version, META_VERSION_BEFORE);
	in = cursor_of((struct str){ value.ptr + 1, value.len - 1 });
	out->start_ns = (int64_t)cursor_u64be(&in);
	out->end_ns = (int64_t)cursor_u64be(&in);
	out->identity = version >= META_VERSION ? cursor_u64be(&in) : 0;
	out->links = version == META_VERSION_LINKS;
	if (in.bad || out->start_ns < 0 || out->end_ns <= out->start_ns)
		return err_set(err, ERR_CORRUPT, "store %s: bad window", dir);
	return ERR_OK;
}

enum err_code head_read_meta(struct store *s, struct window_meta *out, struct err *err)
{
	struct key key = key_of('m');
	struct buf value = { 0 };
	enum err_code rc = store_get(s, key_str(&key), &value, err);

	if (!rc)
		rc = head_parse_meta(buf_str(&value), store_dir(s), out, err);
	buf_release(&value);
	return rc;
}

bool head_parse_count(struct str value, struct window_count *out)
{
	struct cursor in = cursor_of(value);

	*out = (struct window_count){ 0 };
	out->seq = cursor_varint(&in);
	out->rows = cursor_varint(&in);
	out->samples = cursor_varint(&in);
	out->min_ns = (int64_t)cursor_u64be(&in);
	out->max_ns = (int64_t)cursor_u64be(&in);
	if (cursor_left(&in))
		out->numbers = cursor_varint(&in);
	if (cursor_left(&in))
		out->symbols = cursor_varint(&in);
	return !in.bad;
}

enum err_code head_read_count(struct window *w, struct window_count *out, struct err *err)
{
	struct key key = key_of('c');
	struct buf value = { 0 };
	enum err_code rc;

	*out = (struct window_count){ 0 };
	rc = store_get(w->store, key_str(&key), &value, err);
	if (!rc) {
		if (!head_parse_count(buf_str(&value), out))
			rc = err_set(err, ERR_CORRUPT, "store %s: bad count", w->dir);
	} else if (rc == ERR_NOT_FOUND) {
		rc = ERR_OK; /* no batch yet */
	}
	buf_release(&value);
	return rc;
}

/* ---- loading ---- */

struct head_loading {
	struct db *db;
	struct window *w;
	const struct names_file *same; /* has the store's records; NULL: it has others */
	struct arena scratch; /* labels of the batch */
	struct series_stored batch[SERIES_TOGETHER];
	size_t batch_n;
	struct job *job; /* of the latest series, with this id and epoch */
	uint32_t job_id, epoch;
	uint64_t bad_records;
	bool lost_series; /* or jobs */
	struct err first; /* why the first of them was lost */
};

static void head_load_lost(struct head_loading *l, const struct err *why)
{
	if (!l->bad_records++)
		l->first = *why;
}

static enum err_code load_job(
	struct head_loading *l, struct str key, struct str value, struct err *err)
{
	struct cursor k = cursor_of((struct str){ key.ptr + 1, key.len - 1 }), in = cursor_of(value);
	uint32_t id = cursor_u32be(&k), epoch = cursor_u32be(&k);
	struct str name = cursor_lenstr(&in);
	struct job *job;
	enum err_code rc;

	if (k.bad || in.bad || epoch == SYM_NONE)
		return err_set(err, ERR_CORRUPT, "store %s: bad job", l->w->dir);
	if ((rc = db_job(l->db, name, id, epoch, &job, err)))
		return rc;
	return window_epoch_found(l->db, l->w, job, epoch, err);
}

/* The job of a series; the job's record says the same and more, if it can be read. */
static enum err_code head_load_job_of(struct head_loading *l, uint32_t id, uint32_t epoch,
	struct labels labels, struct job **out, struct err *err)
{
	enum err_code rc;

	if (l->job && l->job_id == id && l->epoch == epoch) {
		*out = l->job;
		return ERR_OK;
	}
	*out = db_job_by_id(l->db, id);
	if (!*out && (rc = db_job(l->db, job_name_of(labels), id, epoch, out, err)))
		return rc;
	if ((rc = window_epoch_found(l->db, l->w, *out, epoch, err)))
		return rc;
	l->job = *out;
	l->job_id = id;
	l->epoch = epoch;
	return ERR_OK;
}

static enum err_code head_load_add_batch(struct head_loading *l, struct err *err)
{
	enum err_code rc = series_add_stored(l->db->series, l->batch, l->batch_n, err);

	if (rc == ERR_EXISTS)
		return err_wrap(err, rc, "store %s", l->w->dir);
	series_lock_write(l->db->series);
	for (size_t i = 0; i < l->batch_n && !rc; i++) {
		if (!bits_reserve(&l->w->series, l->batch[i].id))
			rc = err_nomem(err, "window");
		else
			bits_set(&l->w->series, l->batch[i].id);
	}
	series_unlock(l->db->series);
	l->batch_n = 0;
	arena_reset(&l->scratch);
	return rc;
}

/* The labels live in l->scratch until the batch is added. */
static enum err_code head_load_add_series(
	struct head_loading *l, uint32_t id, struct labels labels, struct job *job, struct err *err)
{
	l->batch[l->batch_n++] = (struct series_stored){ labels, job, id };
	return l->batch_n == SERIES_TOGETHER ? head_load_add_batch(l, err) : ERR_OK;
}

static enum err_code load_series(
	struct head_loading *l, struct str key, struct str value, struct err *err)
{
	struct cursor k = cursor_of((struct str){ key.ptr + 1, key.len - 1 }), in = cursor_of(value);
	uint32_t id = cursor_u32be(&k), job_id = cursor_u32(&in), epoch;
	struct labels labels;
	struct job *job;
	enum err_code rc;

	if (k.bad || in.bad || labels_decode(&l->scratch, &in, &labels, NULL))
		return err_set(err, ERR_CORRUPT, "store %s: bad series", l->w->dir);
	epoch = cursor_u32(&in);
	if (in.bad || epoch == SYM_NONE)
		return err_set(err, ERR_CORRUPT, "store %s: bad series", l->w->dir);
	if ((rc = head_load_job_of(l, job_id, epoch, labels, &job, err)))
		return rc;
	return head_load_add_series(l, id, labels, job, err);
}

static enum err_code load_number_series(
	struct head_loading *l, struct str key, struct str value, struct err *err)
{
	struct cursor k = cursor_of((struct str){ key.ptr + 1, key.len - 1 }), in = cursor_of(value);
	uint32_t id = cursor_u32be(&k);
	struct labels labels;

	if (k.bad || labels_decode(&l->scratch, &in, &labels, NULL) || in.bad)
		return err_set(err, ERR_CORRUPT, "store %s: bad series", l->w->dir);
	return head_load_add_series(l, id, labels, NULL, err);
}

static enum err_code load_types(
	struct head_loading *l, struct str key, struct str value, struct err *err)
{
	struct cursor k = cursor_of((struct str){ key.ptr + 1, key.len - 1 });
	uint32_t id = cursor_u32be(&k), epoch = cursor_u32be(&k), header = cursor_u32be(&k), known;
	struct series *s;

	if (k.bad || header >= SERIES_TYPES_MANY)
		return err_set(err, ERR_CORRUPT, "store %s: bad types", l->w->dir);
	series_lock_read(l->db->series);
	s = series_by_id_locked(l->db->series, id);
	series_unlock(l->db->series);
	if (!s || !s->job) /* a loss already */
		return ERR_OK;
	/* Symbols are not here yet: two headers may or may not have the same types. */
	known = window_types(l->db, l->w, s->job, epoch, id);
	if (known != SYM_NONE && known != header)
		header = SERIES_TYPES_MANY;
	if (known != header && !window_set_types(l->db, l->w, s->job, epoch, id, header))
		return err_nomem(err, "window");
	return ERR_OK;
}

typedef enum err_code (*load_fn)(
	struct head_loading *l, struct str key, struct str value, struct err *err);

/* A damaged record is counted and passed over; other errors end the loading. */
static enum err_code head_load_one(
	struct head_loading *l, struct str key, struct str value, load_fn fn, struct err *err)
{
	enum err_code rc = fn(l, key, value, err);

	if (rc == ERR_CORRUPT) {
		head_load_lost(l, err);
		rc = ERR_OK;
	}
	return rc;
}

static enum err_code load_stored(struct head_loading *l, char kind, load_fn fn, struct err *err)
{
	struct store_iter *it = store_iter_open(l->w->store, NULL);
	struct key from = key_of(kind);
	enum err_code rc = ERR_OK;
	struct str key, value;

	if (!it)
		return err_nomem(err, "window");
	for (store_iter_seek(it, key_str(&from)); store_iter_valid(it) && !rc; store_iter_next(it)) {
		key = store_iter_key(it);
		if (key.len == 0 || key.ptr[0] != kind)
			break;
		if (store_iter_value(it, &value, err))
			head_load_lost(l, err);
		else
			rc = head_load_one(l, key, value, fn, err);
	}
	if (!rc && (rc = store_iter_status(it, err)) == ERR_CORRUPT) {
		head_load_lost(l, err);
		rc = ERR_OK;
	}
	store_iter_close(it);
	return rc;
}

/* All of one kind. The file is in memory, and its checksums were compared. */
static enum err_code head_load_kind(struct head_loading *l, char kind, load_fn fn, struct err *err)
{
	const struct names_file *f = l->same;
	enum err_code rc = f ? ERR_OK : load_stored(l, kind, fn, err);

	for (size_t i = f ? head_names_first(f, kind) : 0; f && i < f->n && !rc; i++) {
		struct head_name n = head_names_at(f, i);

		if (n.key.ptr[0] != kind)
			break;
		rc = head_load_one(l, n.key, store_record_known(n.record), fn, err);
	}
	return rc ? rc : head_load_add_batch(l, err);
}

/*
 * If records of jobs or series were lost, some rows cannot be understood: the window ends behind
 * its last row, and takes no more.
 */
static enum err_code head_load_end_early(struct head_loading *l, struct err *err)
{
	struct window *w = l->w;
	int64_t end = !window_is_empty(&w->count) ?
		(w->count.max_ns + NS_PER_S - 1) / NS_PER_S * NS_PER_S :
		w->start_ns + NS_PER_S;

	w->sealed = true;
	if (l->db->o.read_only || end >= w->end_ns)
		return ERR_OK;
	w->end_ns = end;
	return head_write_meta(l->db, w, err);
}

/* Something cannot be read, or was repaired: counts the records and reports the missing ones. */
static enum err_code head_load_look_closer(struct head_loading *l, struct window_opening *o,
	const struct window_count *acked, struct err *err)
{
	bool rows_only = o->mark.rows_only && o->mark.count.seq > l->w->count.seq;
	struct window_found found;
	enum err_code rc;

	if ((rc = head_recount(l->db, l->w, &found, err)))
		return rc;
	found.count.seq = acked->seq;
	found.count.samples = acked->samples ? acked->samples : l->w->count.samples;
	l->w->count = found.count;
	if (!head_tell_lost(l->db, l->w, acked, rows_only, &found, &o->why))
		db_damage(l->db, l->w, "damaged, and nothing is lost", &o->why);
	return l->lost_series ? head_load_end_early(l, err) : ERR_OK;
}

/* Compares the store with the acknowledged counts, as far as the mark has them. */
static void head_load_tell_cut(struct head_loading *l, struct window_opening *o)
{
	const struct window_count *acked = &o->mark.count;
	struct window_found found = { .count = l->w->count };
	struct err why;

	if (acked->seq <= found.count.seq)
		return;
	found.count.symbols = acked->symbols; /* those of the rows that are gone */
	err_set(&why, ERR_CORRUPT,
		"batches %" PRIu64 " to %" PRIu64 " are missing, as when a log is"
		" cut short or removed",
		found.count.seq + 1, acked->seq);
	(void)!head_tell_lost(l->db, l->w, acked, o->mark.rows_only, &found, &why);
}

/* Puts small records back that only the second copy has. */
static enum err_code load_small(struct head_loading *l, struct window_opening *o, struct err *err)
{
	enum err_code rc;
	uint64_t before;

	if ((rc = head_load_kind(l, 'p', load_job, err)) ||
		(rc = head_load_kind(l, 's', load_series, err)) ||
		(rc = head_load_kind(l, KEY_NUMBER_SERIES, load_number_series, err)))
		return rc;
	/* A repaired store may lack records without a trace. */
	l->lost_series = (l->bad_records > 0 || o->damaged) && !o->names.whole;
	before = l->bad_records;
	if ((rc = head_load_kind(l, 't', load_types, err)))
		return rc;
	l->w->types_lost = (l->bad_records > before || o->damaged) && !o->names.whole;
	if (l->bad_records)
		head_suspect(o, &l->first);
	return ERR_OK;
}

enum err_code head_load(struct db *db, struct window *w, struct window_opening *o, struct err *err)
{
	struct head_loading l = { .db = db, .w = w, .same = o->names_same ? &o->names : NULL };
	const struct window_count *acked = &w->count;
	enum err_code rc;
	struct err why;

	arena_init(&l.scratch, 0);
	if ((rc = head_read_count(w, &w->count, &why)) == ERR_CORRUPT) {
		head_suspect(o, &why);
		rc = ERR_OK;
	}
	if (!rc && !(rc = load_small(&l, o, &why))) {
		if (o->mark.whole && o->mark.count.seq > w->count.seq)
			acked = &o->mark.count;
		if (o->damaged) {
			struct window_count copy = *acked;

			rc = head_load_look_closer(&l, o, &copy, &why);
		} else {
			head_load_tell_cut(&l, o);
		}
	}
	if (rc)
		err_copy(err, &why);
	arena_release(&l.scratch);
	return rc;
}

/* ---- one by one ---- */

enum err_code head_load_open(
	struct db *db, struct window *w, struct head_loading **out, struct err *err)
{
	struct head_loading *l = calloc(1, sizeof(*l));

	if (!l)
		return err_nomem(err, "window");
	l->db = db;
	l->w = w;
	arena_init(&l->scratch, 0);
	*out = l;
	return ERR_OK;
}

enum err_code head_load_record(
	struct head_loading *l, struct str key, struct str value, struct err *err)
{
	enum err_code rc;

	switch (key.ptr[0]) {
	case 'p':
		return load_job(l, key, value, err);
	case 's':
		return load_series(l, key, value, err);
	case KEY_NUMBER_SERIES:
		return load_number_series(l, key, value, err);
	case 't': /* its series must be found */
		rc = head_load_add_batch(l, err);
		return rc ? rc : load_types(l, key, value, err);
	default:
		return ERR_OK;
	}
}

enum err_code head_load_close(struct head_loading *l, struct err *err)
{
	enum err_code rc = head_load_add_batch(l, err);

	arena_release(&l->scratch);
	free(l);
	return rc;
}
