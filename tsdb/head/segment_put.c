#include "tsdb/head/segment_put.h"

#include <assert.h>
#include <inttypes.h>

#include "base/clock.h"
#include "tsdb/head/numbers.h"

#define PUT_BYTES (1u << 20) /* in one write */

enum err_code segment_put_init(struct segment_put *p, struct err *err)
{
	return (p->batch = store_batch_open()) ? ERR_OK : err_nomem(err, "segment");
}

void segment_put_release(struct segment_put *p)
{
	store_batch_close(p->batch);
	buf_release(&p->count_record);
	p->batch = NULL;
}

static enum err_code segment_put_corrupt(
	const struct segment_put *p, const char *what, struct err *err)
{
	return err_set(err, ERR_CORRUPT,
		"segment of window %" PRId64 ", batches %" PRIu64 " to %" PRIu64 ": %s",
		p->of.start_ns / NS_PER_S, p->of.first, p->of.last, what);
}

static enum err_code segment_put_flush(struct segment_put *p, size_t above, struct err *err)
{
	enum err_code rc = ERR_OK;

	if (store_batch_bytes(p->batch) > above) {
		rc = store_write(p->store, p->batch, err);
		store_batch_clear(p->batch);
	}
	return rc;
}

/* The series has a row at this time, and perhaps later ones. */
static void segment_put_note_time(struct db *db, uint32_t id, int64_t ts_ns)
{
	struct series *s;
	int64_t is;

	series_lock_read(db->series);
	if ((s = series_by_id_locked(db->series, id))) {
		is = atomic_load(&s->last_ts_ns);
		while (is < ts_ns && !atomic_compare_exchange_weak(&s->last_ts_ns, &is, ts_ns))
			;
	}
	series_unlock(db->series);
}

static bool segment_put_is_row(const struct segment_put *p, struct str key)
{
	uint32_t series;
	int64_t ts;

	if (!(key.ptr[0] == 'r' ? key_parse_row(key, &series, &ts) :
							  key_parse_number(key, &series, &ts)) ||
		ts <= p->of.start_ns || ts > p->of.end_ns)
		return false;
	if (p->db)
		segment_put_note_time(p->db, series, ts);
	return true;
}

static enum err_code segment_put_meta(struct segment_put *p, struct str value, struct err *err)
{
	struct window_meta m;
	enum err_code rc = head_parse_meta(value, "of a segment", &m, err);

	if (!rc &&
		(m.start_ns != p->of.start_ns || m.end_ns != p->of.end_ns || m.identity != p->of.identity))
		rc = segment_put_corrupt(p, "another window's meta", err);
	p->links |= !rc && m.links;
	return rc;
}

static enum err_code segment_put_take_count(
	struct segment_put *p, struct str record, struct str value, struct err *err)
{
	if (!head_parse_count(value, &p->count))
		return segment_put_corrupt(p, "a bad count", err);
	buf_clear(&p->count_record);
	buf_add_str(&p->count_record, record);
	return buf_failed(&p->count_record) ? err_nomem(err, "segment") : ERR_OK;
}

/* A record that is not a row or a value. */
static enum err_code segment_put_name(
	struct segment_put *p, struct str key, struct str record, struct str value, struct err *err)
{
	enum err_code rc = ERR_OK;

	switch (key.ptr[0]) {
	case 'c':
		return segment_put_take_count(p, record, value, err);
	case 'm':
		rc = segment_put_meta(p, value, err);
		break;
	case 'y':
		if (key.len != 13)
			return segment_put_corrupt(p, "a bad key of symbols", err);
		break;
	case 'p':
	case 's':
	case 't':
	case KEY_NUMBER_SERIES:
		if (p->index)
			rc = head_load_record(p->index, key, value, err);
		break;
	default:
		return segment_put_corrupt(p, "a record of no known kind", err);
	}
	if (rc)
		return rc;
	store_batch_put_record(p->batch, key, record);
	return segment_put_flush(p, PUT_BYTES, err);
}

static enum err_code put_record(
	struct segment_put *p, struct str key, struct str record, bool rows, struct err *err)
{
	struct str value;

	if ((key.ptr[0] == 'r' || key.ptr[0] == KEY_NUMBER) != rows)
		return ERR_OK;
	if (store_record_value(key, record, key.ptr[0] == 'm' ? 0 : p->of.identity, &value, err))
		return segment_put_corrupt(p, "a record's checksum is wrong", err);
	if (!rows)
		return segment_put_name(p, key, record, value, err);
	if (!segment_put_is_row(p, key))
		return segment_put_corrupt(p, "a row of another window", err);
	store_batch_put_record(p->batch, key, record);
	return segment_put_flush(p, PUT_BYTES, err);
}

static enum err_code segment_put_check_head(
	const struct segment_put *p, const struct segment *is, struct err *err)
{
	const struct segment *of = &p->of;

	if (!is->packed || is->start_ns != of->start_ns || is->end_ns != of->end_ns ||
		is->identity != of->identity || is->first != of->first || is->last != of->last)
		return segment_put_corrupt(p, "its head says that it is another one", err);
	return ERR_OK;
}

static enum err_code segment_put_walk(
	struct segment_put *p, struct str bytes, bool rows, struct err *err)
{
	struct segment_reader *r;
	struct segment_frame f;
	struct str key, record;
	enum err_code rc;

	store_batch_clear(p->batch);
	if ((rc = segment_reader_open(bytes, &r, err)))
		return rc;
	rc = segment_put_check_head(p, segment_reader_head(r), err);
	while (!rc && !(rc = segment_reader_next(r, &f, err)))
		while (!rc && f.last > p->seq && segment_record_next(&f.records, &key, &record))
			rc = put_record(p, key, record, rows, err);
	segment_reader_close(r);
	return rc == ERR_NOT_FOUND ? segment_put_flush(p, 0, err) : rc;
}

enum err_code segment_put_names(struct segment_put *p, struct str bytes, struct err *err)
{
	enum err_code rc;

	p->count.seq = 0;
	if ((rc = segment_put_walk(p, bytes, false, err)))
		return rc;
	if (p->of.last > p->seq && p->count.seq != p->of.last)
		return segment_put_corrupt(p, "its count is not that of its last batch", err);
	return ERR_OK;
}

enum err_code segment_put_rows(struct segment_put *p, struct str bytes, struct err *err)
{
	struct key key = key_of('c');
	enum err_code rc = segment_put_walk(p, bytes, true, err);

	if (rc)
		return rc;
	store_batch_put_record(p->batch, key_str(&key), buf_str(&p->count_record));
	rc = store_write(p->store, p->batch, err);
	store_batch_clear(p->batch);
	return rc;
}
