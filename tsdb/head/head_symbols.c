#include <inttypes.h>

#include "tsdb/catalog/residents.h"
#include "tsdb/head/commit.h"
#include "tsdb/head/head_internal.h"
#include "tsdb/symbols/stored.h"

/* Symbols of a window's store, loaded into a partition when they are first needed. */

enum err_code head_next_symbol_record(
	struct store *s, uint32_t job, uint32_t epoch, uint32_t *out, struct err *err)
{
	struct key end = key_u32_u32_u32('y', job, epoch, UINT32_MAX);
	struct store_iter *it = store_iter_open(s, NULL);
	enum err_code rc;
	struct cursor in;
	struct str key;

	if (!it)
		return err_nomem(err, "symbols");
	*out = 0;
	store_iter_seek_before(it, key_str(&end));
	if (!(rc = store_iter_status(it, err)) && store_iter_valid(it)) {
		key = store_iter_key(it);
		if (key.len == end.len && memcmp(key.ptr, end.bytes, 9) == 0) {
			in = cursor_of((struct str){ key.ptr + 9, 4 });
			*out = cursor_u32be(&in) + 1;
		}
	}
	store_iter_close(it);
	return rc;
}

struct symbols_loading {
	struct stored_symbols *stored;
	struct arena scratch;
	uint32_t next; /* record */
	uint64_t lost;
	struct err first;
};

static void head_symbols_lost(struct symbols_loading *l, uint64_t n, const struct err *why)
{
	if (!l->lost)
		l->first = *why;
	l->lost += n;
}

static enum err_code head_symbols_load_record(struct symbols_loading *l, struct partition *p,
	struct store_iter *it, uint32_t number, struct err *err)
{
	uint64_t gone = 0;
	struct str value;
	enum err_code rc;

	if (l->stored) {
		l->stored->partition_stored = true;
		if (l->stored->seq <= number)
			l->stored->seq = number + 1;
	}
	if (!(rc = store_iter_value(it, &value, err)))
		rc = symbols_load_record(p, l->stored, value, &l->scratch, &gone, err);
	if (gone || rc == ERR_CORRUPT) {
		head_symbols_lost(l, gone + (rc == ERR_CORRUPT), err);
		rc = ERR_OK;
	}
	return rc;
}

static enum err_code head_symbols_load_records(
	struct symbols_loading *l, struct store *store, struct partition *p, struct err *err)
{
	struct store_iter *it = store_iter_open(store, NULL);
	struct key from = key_u32_u32_u32('y', p->id, p->epoch, l->next);
	enum err_code rc = ERR_OK;
	uint32_t number;
	struct cursor in;
	struct str key;

	if (!it)
		return err_nomem(err, "symbols");
	for (store_iter_seek(it, key_str(&from)); store_iter_valid(it) && !rc; store_iter_next(it)) {
		key = store_iter_key(it);
		if (key.len != from.len || memcmp(key.ptr, from.bytes, 9) != 0)
			break;
		in = cursor_of((struct str){ key.ptr + 9, 4 });
		number = cursor_u32be(&in);
		if (!(rc = head_symbols_load_record(l, p, it, number, err)))
			l->next = number + 1;
	}
	if (!rc && (rc = store_iter_status(it, err)) == ERR_CORRUPT) {
		head_symbols_lost(l, 1, err);
		rc = ERR_OK;
	}
	store_iter_close(it);
	return rc;
}

enum err_code head_load_symbols(
	struct db *db, struct window *w, struct partition *p, uint32_t *next, struct err *err)
{
	struct symbols_loading l = { .next = *next };
	enum err_code rc = ERR_OK;

	mutex_assert_held(&p->lock);
	/* Only a window that takes rows needs to know which symbols it has. */
	if (p->lookup && !w->sealed && !db->o.read_only)
		rc = stored_open(p, w->start_ns, &l.stored, err);
	if (rc)
		return rc;
	if (l.stored)
		l.stored->generation = commit_generation(db);
	arena_init(&l.scratch, 0);
	rc = head_symbols_load_records(&l, w->store, p, err);
	arena_release(&l.scratch);
	*next = l.next;
	if (rc || !l.lost)
		return rc;
	err_copy(err, &l.first);
	return err_wrap(
		err, ERR_CORRUPT, "store %s: %" PRIu64 " symbols are lost, the first", w->dir, l.lost);
}

/* Rows that cannot be read are not used. */
static enum err_code head_symbols_reserve_row(
	struct partition *p, const struct store_iter *it, struct arena *scratch, struct err *err)
{
	struct row_view *v = arena_new(scratch, struct row_view);
	uint32_t *stacks, *sets;
	struct str value;
	enum err_code rc;

	if (!v)
		return arena_fail(scratch, "symbols", err);
	if (store_iter_value(it, &value, NULL) || row_parse(value, 0, v, NULL) || v->epoch != p->epoch)
		return ERR_OK;
	stacks = arena_alloc_raw(scratch, (size_t)v->n + 1, sizeof(*stacks));
	sets = arena_alloc_raw(scratch, (size_t)v->n + 1, sizeof(*sets));
	if (!stacks || !sets)
		return arena_fail(scratch, "symbols", err);
	if ((rc = row_ids(v, stacks, sets, err)))
		return rc == ERR_CORRUPT ? ERR_OK : rc;
	sym_reserve(p, SYM_HEADER, v->header);
	if (v->n)
		sym_reserve(p, SYM_NODE, stacks[v->n - 1]);
	for (uint32_t i = 0; i < v->n; i++)
		sym_reserve(p, SYM_LABEL_SET, sets[i]);
	return ERR_OK;
}

enum err_code head_reserve_ids(
	struct db *db, struct window *w, struct partition *p, struct err *err)
{
	struct store_iter *it = store_iter_open(w->store, NULL);
	struct key from = key_of('r');
	enum err_code rc = ERR_OK;
	struct arena scratch;
	struct series *s;
	uint32_t id;
	int64_t ts;
	bool ours;

	mutex_assert_held(&p->lock);
	if (!it)
		return err_nomem(err, "symbols");
	arena_init(&scratch, 0);
	for (store_iter_seek(it, key_str(&from)); store_iter_valid(it) && !rc; store_iter_next(it)) {
		if (!key_parse_row(store_iter_key(it), &id, &ts))
			break;
		series_lock_read(db->series);
		ours = (s = series_by_id_locked(db->series, id)) && s->job == resident_of(p)->job;
		series_unlock(db->series);
		arena_reset(&scratch);
		if (ours)
			rc = head_symbols_reserve_row(p, it, &scratch, err);
	}
	store_iter_close(it);
	arena_release(&scratch);
	return rc;
}
