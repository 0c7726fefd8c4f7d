#include <inttypes.h>

#include "base/log.h"
#include "tsdb/db_internal.h"

/*
 * What a window's store holds, into memory: partitions, symbols under their ids, series. Rows stay
 * where they are, unless the store is damaged: then they are counted.
 */
#define META_VERSION 1

struct key key_of(char kind)
{
	return (struct key){ { kind }, 1 };
}

static void put_be32(char *to, uint32_t v)
{
	for (unsigned i = 0; i < 4; i++)
		to[i] = (char)(v >> (24 - 8 * i));
}

struct key key_u32(char kind, uint32_t id)
{
	struct key k = { { kind }, 5 };

	put_be32(k.bytes + 1, id);
	return k;
}

struct key key_u32_u32(char kind, uint32_t a, uint32_t b)
{
	struct key k = { { kind }, 9 };

	put_be32(k.bytes + 1, a);
	put_be32(k.bytes + 5, b);
	return k;
}

struct key key_row(uint32_t series, int64_t ts_ns)
{
	struct key k = { { 'r' }, 13 };

	put_be32(k.bytes + 1, series);
	put_be32(k.bytes + 5, (uint32_t)((uint64_t)ts_ns >> 32));
	put_be32(k.bytes + 9, (uint32_t)ts_ns);
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

enum err_code head_write_meta(struct store *s, int64_t start_ns, int64_t end_ns, struct err *err)
{
	struct store_batch *b = store_batch_open();
	struct key key = key_of('m');
	struct buf value = { 0 };
	enum err_code rc;

	if (!b)
		return err_set(err, ERR_NOMEM, "window: out of memory");
	buf_add_char(&value, META_VERSION);
	buf_add_u64be(&value, (uint64_t)start_ns);
	buf_add_u64be(&value, (uint64_t)end_ns);
	store_batch_put(b, key_str(&key), &value);
	rc = buf_failed(&value) ? err_set(err, ERR_NOMEM, "window: out of memory") :
				  store_write(s, b, err);
	store_batch_close(b);
	buf_release(&value);
	return rc;
}

enum err_code head_read_meta(struct store *s, int64_t *start_ns, int64_t *end_ns, struct err *err)
{
	struct key key = key_of('m');
	struct buf value = { 0 };
	struct cursor in;
	enum err_code rc;

	if ((rc = store_get(s, key_str(&key), &value, err)))
		goto out;
	if (value.len == 0 || value.ptr[0] != META_VERSION) {
		rc = err_set(err, ERR_UNSUPPORTED,
			"store %s has another format than this version's", store_dir(s));
		goto out;
	}
	in = cursor_of((struct str){ value.ptr + 1, value.len - 1 });
	*start_ns = (int64_t)cursor_u64be(&in);
	*end_ns = (int64_t)cursor_u64be(&in);
	if (in.bad || *start_ns < 0 || *end_ns <= *start_ns)
		rc = err_set(err, ERR_CORRUPT, "store %s: bad window", store_dir(s));
out:
	buf_release(&value);
	return rc;
}

enum err_code head_read_count(struct window *w, struct window_count *out, struct err *err)
{
	struct key key = key_of('c');
	struct buf value = { 0 };
	struct cursor in;
	enum err_code rc;

	*out = (struct window_count){ 0 };
	rc = store_get(w->store, key_str(&key), &value, err);
	if (!rc) {
		in = cursor_of(buf_str(&value));
		out->seq = cursor_varint(&in);
		out->rows = cursor_varint(&in);
		out->samples = cursor_varint(&in);
		out->min_ns = (int64_t)cursor_u64be(&in);
		out->max_ns = (int64_t)cursor_u64be(&in);
		if (in.bad)
			rc = err_set(err, ERR_CORRUPT, "store %s: bad count", w->dir);
	} else if (rc == ERR_NOT_FOUND) {
		rc = ERR_OK; /* no batch yet */
	}
	buf_release(&value);
	return rc;
}

enum err_code head_next_symbol_record(
	struct store *s, uint32_t partition, uint32_t *out, struct err *err)
{
	struct key end = key_u32_u32('y', partition, UINT32_MAX),
		   first = key_u32_u32('y', partition, 0);
	struct store_iter *it = store_iter_open(s, NULL);
	enum err_code rc;
	struct cursor in;
	struct str key;

	if (!it)
		return err_set(err, ERR_NOMEM, "symbols: out of memory");
	*out = 0;
	store_iter_seek_before(it, key_str(&end));
	if (!(rc = store_iter_status(it, err)) && store_iter_valid(it)) {
		key = store_iter_key(it);
		if (key.len == first.len && memcmp(key.ptr, first.bytes, 5) == 0) {
			in = cursor_of((struct str){ key.ptr + 5, 4 });
			*out = cursor_u32be(&in) + 1;
		}
	}
	store_iter_close(it);
	return rc;
}

/* ---- loading ---- */

struct loading {
	struct db *db;
	struct window *w;
	struct arena scratch;
	uint64_t lost_symbols, bad_records;
	struct err first; /* why the first of them was lost */
};

static void lost(struct loading *l, const struct err *why)
{
	if (!l->bad_records++)
		l->first = *why;
}

static enum err_code load_partition(
	struct loading *l, struct str key, struct str value, struct err *err)
{
	struct cursor k = cursor_of((struct str){ key.ptr + 1, key.len - 1 }),
		      in = cursor_of(value);
	uint32_t id = cursor_u32be(&k), epoch = cursor_u32(&in);
	struct str name = cursor_lenstr(&in);
	struct partition *p;
	enum err_code rc;

	if (k.bad || in.bad)
		return err_set(err, ERR_CORRUPT, "store %s: bad partition", l->w->dir);
	if ((rc = db_partition(l->db, name, id, &p, err)))
		return rc;
	p->epoch = epoch;
	return ERR_OK;
}

static enum err_code load_symbols(
	struct loading *l, struct str key, struct str value, struct err *err)
{
	struct cursor k = cursor_of((struct str){ key.ptr + 1, key.len - 1 });
	uint32_t id = cursor_u32be(&k), number = cursor_u32be(&k);
	struct partition *p = db_partition_by_id(l->db, id);
	uint64_t gone = 0;
	struct marks *m;
	enum err_code rc;
	struct err why;

	if (k.bad || !p)
		return err_set(
			err, ERR_CORRUPT, "store %s: symbols of an unknown partition", l->w->dir);
	if ((rc = marks_open(p, l->w->start_ns, &m, err)))
		return rc;
	m->partition_stored = true;
	if (m->seq <= number)
		m->seq = number + 1;
	rc = symbols_load_record(p, m, value, &l->scratch, &gone, &why);
	if (gone || rc == ERR_CORRUPT) {
		if (!l->lost_symbols)
			l->first = why;
		l->lost_symbols += gone + 1;
		atomic_store(&p->damaged, true);
		return ERR_OK;
	}
	if (rc && err)
		*err = why;
	return rc;
}

static enum err_code load_series(
	struct loading *l, struct str key, struct str value, struct err *err)
{
	struct cursor k = cursor_of((struct str){ key.ptr + 1, key.len - 1 }),
		      in = cursor_of(value);
	uint32_t id = cursor_u32be(&k);
	struct partition *p = db_partition_by_id(l->db, cursor_u32(&in));
	struct labels labels;
	struct series *s;
	enum err_code rc;

	arena_reset(&l->scratch);
	if (k.bad || in.bad || !p)
		return err_set(
			err, ERR_CORRUPT, "store %s: series of an unknown partition", l->w->dir);
	if ((rc = labels_decode(&l->scratch, &in, &labels, err)))
		return err_set(err, ERR_CORRUPT, "store %s: bad series", l->w->dir);
	series_lock_read(l->db->series);
	s = series_by_id_locked(l->db->series, id);
	series_unlock(l->db->series);
	if (s && !labels_eq(s->labels, labels))
		return err_set(err, ERR_EXISTS, "store %s: series %" PRIu32 " has two meanings",
			l->w->dir, id);
	if (!s) {
		if ((rc = series_add(l->db->series, labels, id, p, &s, err)))
			return rc;
		series_release(s);
		if (s->id != id)
			return err_set(err, ERR_EXISTS,
				"store %s: series %" PRIu32 " has another id, %" PRIu32, l->w->dir,
				s->id, id);
	}
	if (!bits_reserve(&l->w->series, id))
		return err_set(err, ERR_NOMEM, "window: out of memory");
	bits_set(&l->w->series, id);
	return ERR_OK;
}

static enum err_code load_types(
	struct loading *l, struct str key, struct str value, struct err *err)
{
	struct cursor k = cursor_of((struct str){ key.ptr + 1, key.len - 1 });
	uint32_t id = cursor_u32be(&k), header = cursor_u32be(&k), types;
	struct series *s;

	series_lock_read(l->db->series);
	s = series_by_id_locked(l->db->series, id);
	series_unlock(l->db->series);
	if (k.bad || !s || !sym_exists(s->partition, SYM_HEADER, header)) {
		if (s)
			atomic_store(&s->typeset, SERIES_TYPES_MANY);
		return err_set(err, ERR_CORRUPT, "store %s: types of an unknown series or header",
			l->w->dir);
	}
	types = sym_header_typeset(s->partition, header);
	if (atomic_load(&s->typeset) == SYM_NONE)
		atomic_store(&s->typeset, types);
	else if (atomic_load(&s->typeset) != types)
		atomic_store(&s->typeset, SERIES_TYPES_MANY);
	return ERR_OK;
}

static enum err_code count_rows(
	struct loading *l, struct str key, struct str value, struct err *err)
{
	struct window_count *c = &l->w->count;
	uint32_t series;
	int64_t ts;

	if (!key_parse_row(key, &series, &ts))
		return err_set(err, ERR_CORRUPT, "store %s: bad row key", l->w->dir);
	if (c->rows == 0 || ts < c->min_ns)
		c->min_ns = ts;
	if (c->rows == 0 || ts > c->max_ns)
		c->max_ns = ts;
	c->rows++;
	return ERR_OK;
}

typedef enum err_code (*load_fn)(
	struct loading *l, struct str key, struct str value, struct err *err);

/* All records of one kind. What is damaged is counted and passed over; other errors end the
 * loading. */
static enum err_code load_kind(struct loading *l, char kind, load_fn fn, struct err *err)
{
	struct store_iter *it = store_iter_open(l->w->store, NULL);
	struct key from = key_of(kind);
	enum err_code rc = ERR_OK;
	struct str key, value;

	if (!it)
		return err_set(err, ERR_NOMEM, "window: out of memory");
	for (store_iter_seek(it, key_str(&from)); store_iter_valid(it); store_iter_next(it)) {
		key = store_iter_key(it);
		if (key.len == 0 || key.ptr[0] != kind)
			break;
		if (!(rc = store_iter_value(it, &value, err)))
			rc = fn(l, key, value, err);
		if (rc == ERR_CORRUPT)
			lost(l, err);
		else if (rc)
			break;
		rc = ERR_OK;
	}
	if (!rc && (rc = store_iter_status(it, err)) == ERR_CORRUPT) {
		lost(l, err);
		rc = ERR_OK;
	}
	store_iter_close(it);
	return rc;
}

static void report(struct loading *l)
{
	struct err why = l->first;

	if (!l->lost_symbols && !l->bad_records)
		return;
	err_wrap(&why, why.code,
		"%" PRIu64 " symbols and %" PRIu64 " records cannot be used, the first because",
		l->lost_symbols, l->bad_records);
	db_damage(l->db, l->w, "damaged records", &why);
	/* Any row of this database may want what is gone. */
	for (uint32_t i = 0; i < l->db->partitions_n; i++)
		atomic_store(&l->db->partitions[i]->damaged, true);
}

enum err_code head_load(struct db *db, struct window *w, struct err *err)
{
	struct loading l = { .db = db, .w = w };
	enum err_code rc;
	struct err why;

	arena_init(&l.scratch, 0);
	if ((rc = head_read_count(w, &w->count, &why)) == ERR_CORRUPT) {
		w->damaged = true;
		lost(&l, &why);
		rc = ERR_OK;
	}
	if (rc || (rc = load_kind(&l, 'p', load_partition, &why)) ||
		(rc = load_kind(&l, 'y', load_symbols, &why)) ||
		(rc = load_kind(&l, 's', load_series, &why)) ||
		(rc = load_kind(&l, 't', load_types, &why))) {
		if (err)
			*err = why;
		goto out;
	}
	if (w->damaged || l.bad_records) {
		uint64_t seq = w->count.seq, samples = w->count.samples;

		w->count = (struct window_count){ .seq = seq, .samples = samples };
		rc = load_kind(&l, 'r', count_rows, err);
	}
	report(&l);
out:
	arena_release(&l.scratch);
	return rc;
}
