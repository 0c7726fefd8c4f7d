#include "tsdb/block/block_internal.h"

#include <stdlib.h>

#include "base/array.h"

/* Keys and small records: series, partitions, postings. */

static void block_put_be(struct block_key *k, uint64_t value, unsigned bytes)
{
	for (unsigned i = bytes; i-- > 0;)
		k->at[k->len++] = (char)(value >> (8 * i));
}

struct block_key block_key_id(enum block_key_kind kind, uint32_t id)
{
	struct block_key k = { .at = { (char)kind }, .len = 1 };

	block_put_be(&k, id, 4);
	return k;
}

struct block_key block_key_rollup(
	enum block_key_kind kind, uint32_t id, uint32_t level, int64_t step_ns)
{
	struct block_key k = block_key_id(kind, id);

	block_put_be(&k, level, 1);
	block_put_be(&k, (uint64_t)step_ns, 8);
	return k;
}

struct block_key block_key_rows(uint32_t series, int64_t last_ns, int64_t first_ns)
{
	struct block_key k = block_key_id(KEY_ROWS, series);

	block_put_be(&k, (uint64_t)last_ns, 8);
	block_put_be(&k, (uint64_t)first_ns, 8);
	return k;
}

struct block_key block_key_numbers(uint32_t series, int64_t last_ns, int64_t first_ns)
{
	struct block_key k = block_key_rows(series, last_ns, first_ns);

	k.at[0] = KEY_NUMBERS;
	return k;
}

struct block_key block_key_links(uint32_t series, int64_t ts_ns)
{
	struct block_key k = block_key_rows(series, ts_ns, ts_ns);

	k.at[0] = KEY_LINKS;
	return k;
}

struct block_key block_key_symbols(uint32_t slot, enum sym_kind kind, uint32_t first)
{
	struct block_key k = block_key_id(KEY_SYMBOLS, slot);

	block_put_be(&k, kind, 1);
	block_put_be(&k, first, 4);
	return k;
}

/* A 0 byte inside must not end the name, and names must keep their order: 0 255 inside, 0 0 behind.
 */
static void block_add_escaped(struct buf *out, struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		buf_add_char(out, name.ptr[i]);
		if (!name.ptr[i])
			buf_add_char(out, (char)255);
	}
	buf_add(out, "\0", 2);
}

void block_key_name(struct buf *out, struct str name)
{
	buf_add_char(out, KEY_NAME);
	buf_add_str(out, name);
}

void block_key_value(struct buf *out, struct str name, struct str value)
{
	buf_add_char(out, KEY_VALUE);
	block_add_escaped(out, name);
	buf_add_str(out, value);
}

/* ---- partitions ---- */

void block_slot_encode(struct buf *out, const struct block_slot *s)
{
	buf_add_varint(out, s->p.id);
	buf_add_varint(out, s->p.epoch);
	buf_add_lenstr(out, s->p.name);
	buf_add_varint(out, s->first);
	buf_add_varint(out, s->n);
	for (int k = 1; k < SYM_KINDS; k++) {
		buf_add_varint(out, s->symbols[k]);
		buf_add_varint(out, s->ends[k]);
	}
	buf_add_varint(out, s->keys_n);
	for (size_t i = 0; i < s->keys_n; i++)
		buf_add_lenstr(out, s->keys[i]);
}

enum err_code block_slot_decode(
	struct str bytes, struct arena *a, struct block_slot *out, struct err *err)
{
	struct cursor in = cursor_of(bytes);
	uint64_t n;

	out->p.id = cursor_u32(&in);
	out->p.epoch = cursor_u32(&in);
	out->p.name = cursor_lenstr(&in);
	out->first = cursor_u32(&in);
	out->n = cursor_u32(&in);
	for (int k = 1; k < SYM_KINDS; k++) {
		out->symbols[k] = cursor_u32(&in);
		out->ends[k] = cursor_u32(&in);
	}
	n = cursor_varint(&in);
	if (in.bad || n > cursor_left(&in))
		return err_set(err, ERR_CORRUPT, "a partition's record is wrong");
	out->p.name = str_dup(a, out->p.name);
	out->keys = arena_array(a, struct str, n + 1);
	if (!out->p.name.ptr || !out->keys)
		return arena_fail(a, "partitions", err);
	out->keys_n = n;
	for (uint64_t i = 0; i < n; i++) {
		out->keys[i] = str_dup(a, cursor_lenstr(&in));
		if (!out->keys[i].ptr)
			return arena_fail(a, "partitions", err);
	}
	if (in.bad || cursor_left(&in))
		return err_set(err, ERR_CORRUPT, "a partition's record is wrong");
	return ERR_OK;
}

/* ---- series ---- */

void block_series_encode(struct buf *out, const struct block_series *s)
{
	uint32_t before = 0;

	buf_add_varint(out, s->slot);
	buf_add_varint(out, s->group);
	buf_add_varint(out, str_zigzag(s->first_ns));
	buf_add_varint(out, (uint64_t)s->last_ns - (uint64_t)s->first_ns);
	buf_add_varint(out, s->rows);
	buf_add_varint(out, s->samples);
	buf_add_varint(out, s->headers_n);
	for (uint32_t i = 0; i < s->headers_n; before = s->headers[i++])
		buf_add_varint(out, s->headers[i] - before);
	labels_encode(out, s->labels);
}

enum err_code block_series_decode(
	struct str bytes, struct arena *a, struct block_series *out, struct err *err)
{
	struct cursor in = cursor_of(bytes);
	uint32_t *headers = NULL;
	uint64_t id = 0, gap;
	enum err_code rc;

	out->slot = cursor_u32(&in);
	out->group = cursor_u32(&in);
	out->first_ns = str_unzigzag(cursor_varint(&in));
	out->last_ns = (int64_t)((uint64_t)out->first_ns + cursor_varint(&in));
	out->rows = cursor_varint(&in);
	out->samples = cursor_varint(&in);
	out->headers_n = cursor_u32(&in);
	if (in.bad || out->headers_n > cursor_left(&in))
		return err_set(err, ERR_CORRUPT, "a series' record is wrong");
	if (!(headers = arena_alloc_raw(a, out->headers_n + 1, sizeof(*headers))))
		return arena_fail(a, "series", err);
	for (uint32_t i = 0; i < out->headers_n; i++) {
		gap = cursor_varint(&in);
		if (gap >= SYM_NONE || (id += gap) >= SYM_NONE)
			return err_set(err, ERR_CORRUPT, "a series' record is wrong");
		headers[i] = (uint32_t)id;
	}
	out->headers = headers;
	if ((rc = labels_decode(a, &in, &out->labels, err)))
		return rc;
	if (in.bad || cursor_left(&in))
		return err_set(err, ERR_CORRUPT, "a series' record is wrong");
	return ERR_OK;
}

/* ---- postings, reading ---- */

enum err_code posting_open(
	struct posting_reader *r, struct str bytes, uint32_t series_max, struct err *err)
{
	*r = (struct posting_reader){ .in = cursor_of(bytes), .end = series_max };
	r->series_n = cursor_u32(&r->in);
	if (r->in.bad || r->series_n > series_max)
		return err_set(err, ERR_CORRUPT, "a posting is wrong");
	return ERR_OK;
}

bool posting_next(struct posting_reader *r, uint32_t *first, uint32_t *n)
{
	uint64_t gap, more = 0, at;

	if (!cursor_left(&r->in))
		return false;
	gap = cursor_varint(&r->in);
	if (gap & 1)
		more = cursor_varint(&r->in) + 1;
	at = r->at + (gap >> 1);
	if (r->in.bad || at >= r->end || more >= r->end - at) {
		r->in.bad = true;
		return false;
	}
	*first = (uint32_t)at;
	*n = (uint32_t)more + 1;
	r->at = *first + *n;
	return true;
}

/* ---- postings, writing ---- */

#define RUN_NONE UINT32_MAX

struct block_run {
	uint32_t first, n, next;
};

struct block_posting {
	struct str key;
	uint32_t series_n, head, tail; /* runs */
};

/* Series of a group are neighbours, so most postings are few runs. A run costs 12 bytes, however
 * long it is. */
struct postings {
	struct arena arena; /* keys */
	struct map by_key;
	struct block_posting *v;
	uint32_t n, cap;
	struct block_run *runs;
	uint32_t runs_n, runs_cap;
	struct buf key;
};

struct postings *postings_open(void)
{
	struct postings *p = calloc(1, sizeof(*p));

	if (p) {
		arena_init(&p->arena, 0);
		map_init(&p->by_key);
	}
	return p;
}

void postings_close(struct postings *p)
{
	if (!p)
		return;
	arena_release(&p->arena);
	map_release(&p->by_key);
	free(p->v);
	free(p->runs);
	buf_release(&p->key);
	free(p);
}

static bool block_key_eq(const void *ctx, const void *key, uint32_t id)
{
	return str_eq(((const struct postings *)ctx)->v[id].key, *(const struct str *)key);
}

static bool block_add_run(struct postings *p, struct block_posting *at, uint32_t series)
{
	if (!array_room(&p->runs, p->runs_n, 1, &p->runs_cap))
		return false;
	p->runs[p->runs_n] = (struct block_run){ series, 1, RUN_NONE };
	if (at->head == RUN_NONE)
		at->head = p->runs_n;
	else
		p->runs[at->tail].next = p->runs_n;
	at->tail = p->runs_n++;
	return true;
}

static bool block_add_key(struct postings *p, uint32_t series)
{
	struct str key = buf_str(&p->key);
	uint64_t hash = hash_bytes(key.ptr, key.len, 0);
	struct block_posting *at;
	struct block_run *run;
	uint32_t id;

	if (buf_failed(&p->key))
		return false;
	if ((id = map_find(&p->by_key, hash, block_key_eq, p, &key)) == MAP_NONE) {
		if (!array_room(&p->v, p->n, 1, &p->cap))
			return false;
		key = str_dup(&p->arena, key);
		if (!key.ptr || !map_add(&p->by_key, hash, p->n))
			return false;
		id = p->n++;
		p->v[id] = (struct block_posting){ key, 0, RUN_NONE, RUN_NONE };
	}
	at = &p->v[id];
	run = at->tail == RUN_NONE ? NULL : &p->runs[at->tail];
	if (run && run->first + run->n == series)
		run->n++;
	else if (!block_add_run(p, at, series))
		return false;
	at->series_n++;
	return true;
}

bool postings_add(struct postings *p, uint32_t series, struct labels labels)
{
	bool ok = true;

	for (size_t i = 0; i < labels.n && ok; i++) {
		buf_clear(&p->key);
		block_key_name(&p->key, labels.v[i].name);
		ok = block_add_key(p, series);
		buf_clear(&p->key);
		block_key_value(&p->key, labels.v[i].name, labels.v[i].value);
		ok = ok && block_add_key(p, series);
	}
	return ok;
}

static int block_by_key(const void *a, const void *b)
{
	return str_cmp(((const struct block_posting *)a)->key, ((const struct block_posting *)b)->key);
}

void postings_seal(struct postings *p)
{
	map_release(&p->by_key); /* ids are places that now change */
	map_init(&p->by_key);
	if (p->n)
		qsort(p->v, p->n, sizeof(*p->v), block_by_key);
}

size_t postings_n(const struct postings *p)
{
	return p->n;
}

struct str postings_at(const struct postings *p, size_t i, struct buf *out)
{
	uint32_t end = 0;

	buf_add_varint(out, p->v[i].series_n);
	for (uint32_t r = p->v[i].head; r != RUN_NONE; r = p->runs[r].next) {
		const struct block_run *run = &p->runs[r];

		buf_add_varint(out, (uint64_t)(run->first - end) << 1 | (run->n > 1));
		if (run->n > 1)
			buf_add_varint(out, run->n - 2);
		end = run->first + run->n;
	}
	return p->v[i].key;
}
