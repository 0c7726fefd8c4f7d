#include "tsdb/block/block_internal.h"

#include <assert.h>
#include <stdlib.h>

/* Walking a block's tables: a damaged page is reported once, and the walk goes on behind it.
 */

enum err_code block_iter_open(struct block_iter *it, struct table *t, bool scan, struct err *err)
{
	*it = (struct block_iter){ .t = t, .scan = scan, .next = ITER_END };
	if (!(it->it = table_iter_open(t, scan)))
		return err_nomem(err, "block");
	return ERR_OK;
}

void block_iter_close(struct block_iter *it)
{
	table_iter_close(it->it);
	it->it = NULL;
	buf_release(&it->key);
}

void block_iter_seek(struct block_iter *it, struct str key, size_t prefix)
{
	it->next = ITER_SEEK;
	it->prefix = prefix;
	buf_clear(&it->key);
	buf_add_str(&it->key, key);
}

/*
 * A table iterator keeps the first damage that it passed over as its status. To learn of the next
 * damage, this begins a fresh one at the same place.
 */
static enum err_code block_iter_begin_anew(struct block_iter *it, struct err *err)
{
	struct table_iter *fresh;
	struct buf at = { 0 };

	it->next = ITER_END;
	if (table_iter_valid(it->it)) {
		buf_add_str(&at, table_iter_key(it->it));
		it->next = ITER_STAY;
	}
	if (buf_failed(&at) || !(fresh = table_iter_open(it->t, it->scan))) {
		buf_release(&at);
		it->next = ITER_END;
		return err_nomem(err, "block");
	}
	table_iter_close(it->it);
	it->it = fresh;
	if (it->next == ITER_STAY) {
		table_iter_seek(fresh, buf_str(&at));
		if (table_iter_status(fresh, NULL) || !table_iter_valid(fresh))
			it->next = ITER_END;
	}
	buf_release(&at);
	return ERR_OK;
}

enum err_code block_iter_next(
	struct block_iter *it, struct str *key, struct str *value, struct err *err)
{
	struct str prefix = { it->key.ptr, it->prefix };
	enum err_code rc = ERR_OK, again;

	if (buf_failed(&it->key))
		return err_nomem(err, "block");
	if (it->next == ITER_END)
		return ERR_NOT_FOUND;
	if (it->next == ITER_SEEK)
		table_iter_seek(it->it, buf_str(&it->key));
	else if (it->next == ITER_STEP)
		table_iter_next(it->it);
	if ((rc = table_iter_status(it->it, err))) {
		again = block_iter_begin_anew(it, err);
		return again ? again : rc;
	}
	it->next = ITER_END;
	if (!table_iter_valid(it->it) || !str_has_prefix(table_iter_key(it->it), prefix))
		return ERR_NOT_FOUND;
	it->next = ITER_STEP;
	*key = table_iter_key(it->it);
	*value = table_iter_value(it->it);
	return ERR_OK;
}

/* ---- small records ---- */

static struct table *block_other_index(struct block *b)
{
	return b->index == b->rollups ? block_spare(b, NULL) : b->rollups;
}

enum err_code index_get(struct block *b, struct str key, struct buf *out, struct err *err)
{
	size_t start = out->len;
	enum err_code rc = table_get(b->index, key, out, err), again;
	struct table *other;

	if (rc != ERR_CORRUPT || !(other = block_other_index(b)))
		return rc;
	out->len = start;
	again = table_get(other, key, out, NULL);
	return again == ERR_OK || again == ERR_NOT_FOUND ? again : rc;
}

enum err_code index_iter_open(
	struct index_iter *it, struct block *b, struct str prefix, struct err *err)
{
	enum err_code rc;

	*it = (struct index_iter){ .b = b, .prefix = prefix.len };
	buf_add_str(&it->from, prefix);
	if (buf_failed(&it->from))
		return err_nomem(err, "block");
	if ((rc = block_iter_open(&it->it, b->index, false, err)))
		index_iter_close(it);
	else
		block_iter_seek(&it->it, prefix, prefix.len);
	return rc;
}

void index_iter_close(struct index_iter *it)
{
	block_iter_close(&it->it);
	buf_release(&it->from);
}

void index_iter_seek(struct index_iter *it, struct str key)
{
	buf_clear(&it->from);
	buf_add_str(&it->from, key);
	block_iter_seek(&it->it, key, it->prefix);
}

enum err_code index_iter_next(
	struct index_iter *it, struct str *key, struct str *value, struct err *err)
{
	enum err_code rc = block_iter_next(&it->it, key, value, err);
	struct table *other;

	/* If the table is damaged, the walk goes on in the other, behind the last key. */
	if (rc == ERR_CORRUPT && !it->other && (other = block_other_index(it->b))) {
		it->other = true;
		block_iter_close(&it->it);
		if ((rc = block_iter_open(&it->it, other, false, err)))
			return rc;
		block_iter_seek(&it->it, buf_str(&it->from), it->prefix);
		rc = block_iter_next(&it->it, key, value, err);
	}
	if (rc)
		return rc;
	buf_clear(&it->from);
	buf_add_str(&it->from, *key);
	buf_add_char(&it->from, '\0');
	return buf_failed(&it->from) ? err_nomem(err, "block") : ERR_OK;
}

/* ---- chunks ---- */

struct block_chunks {
	struct block_iter it;
	enum block_key_kind kind;
	int64_t max_ns;
};

static enum err_code block_iter_chunks_open(struct table *t, enum block_key_kind kind, bool scan,
	struct block_chunks **out, struct err *err)
{
	struct block_chunks *it = calloc(1, sizeof(*it));
	enum err_code rc;

	if (!it)
		return err_nomem(err, "block");
	it->kind = kind;
	if ((rc = block_iter_open(&it->it, t, scan, err))) {
		free(it);
		return rc;
	}
	*out = it;
	return ERR_OK;
}

enum err_code block_chunks_open(
	struct block *b, bool scan, struct block_chunks **out, struct err *err)
{
	if (!b->rows)
		return err_set(err, ERR_NOT_FOUND, "block %s has no raw rows", b->dir);
	return block_iter_chunks_open(b->rows, KEY_ROWS, scan, out, err);
}

enum err_code block_numbers_open(
	struct block *b, bool scan, struct block_chunks **out, struct err *err)
{
	return block_iter_chunks_open(b->rollups, KEY_NUMBERS, scan, out, err);
}

enum err_code block_links_open(
	struct block *b, bool scan, struct block_chunks **out, struct err *err)
{
	if (!b->rows)
		return err_set(err, ERR_NOT_FOUND, "block %s has no raw rows", b->dir);
	return block_iter_chunks_open(b->rows, KEY_LINKS, scan, out, err);
}

void block_chunks_close(struct block_chunks *it)
{
	if (!it)
		return;
	block_iter_close(&it->it);
	free(it);
}

/* Keys have the time of a chunk's last row: the first one after min_ns is the first that counts. */
void block_chunks_seek(struct block_chunks *it, uint32_t series, int64_t min_ns, int64_t max_ns)
{
	struct block_key key = block_key_rows(series, min_ns < 0 ? 0 : min_ns + 1, 0);

	it->max_ns = max_ns;
	key.at[0] = (char)it->kind;
	block_iter_seek(&it->it, block_key_str(&key), BLOCK_KEY_ID_BYTES);
	if (min_ns >= max_ns)
		it->it.next = ITER_END;
}

/*
 * Where a chunk ends is where the next one begins. What comes behind a chunk that max_ns is in is
 * not looked for: of that one the bytes of a mean chunk are expected.
 */
void block_chunks_expect(
	struct block *b, uint32_t first, uint32_t n, int64_t min_ns, int64_t max_ns)
{
	const struct block_meta *m = &b->meta;
	uint64_t mean = m->chunks ? m->rows_file.bytes / m->chunks : 0;
	struct block_key from, to;

	if (!b->rows || min_ns >= max_ns || max_ns == INT64_MAX)
		return;
	for (uint32_t i = 0; i < n; i++) {
		from = block_key_rows(first + i, min_ns < 0 ? 0 : min_ns + 1, 0);
		to = block_key_rows(first + i, max_ns < 0 ? 0 : max_ns + 1, 0);
		table_expect(b->rows, block_key_str(&from), block_key_str(&to),
			max_ns < m->max_ns && max_ns % rollup_step_ns[0] ? mean : 0);
	}
}

enum err_code block_chunks_next(
	struct block_chunks *it, struct str *bytes, int64_t *first_ts_ns, struct err *err)
{
	struct cursor in;
	struct str key;
	enum err_code rc;

	*first_ts_ns = INT64_MAX;
	if ((rc = block_iter_next(&it->it, &key, bytes, err)))
		return rc;
	in = cursor_of(key);
	(void)cursor_bytes(&in, BLOCK_KEY_ID_BYTES + 8);
	*first_ts_ns = (int64_t)cursor_u64be(&in);
	if (!in.bad && *first_ts_ns <= it->max_ns)
		return ERR_OK;
	it->it.next = ITER_END;
	return ERR_NOT_FOUND;
}

/* ---- rollups ---- */

struct block_rollups {
	struct block *b;
	struct block_iter it;
	int64_t to_ns;
	enum err_code rc; /* of the seek: the next step returns it */
	struct err why;
};

enum err_code block_rollups_open(
	struct block *b, bool scan, struct block_rollups **out, struct err *err)
{
	struct block_rollups *it = calloc(1, sizeof(*it));
	enum err_code rc;

	if (!it)
		return err_nomem(err, "block");
	it->b = b;
	if ((rc = block_iter_open(&it->it, b->rollups, scan, err))) {
		free(it);
		return rc;
	}
	*out = it;
	return ERR_OK;
}

void block_rollups_close(struct block_rollups *it)
{
	if (!it)
		return;
	block_iter_close(&it->it);
	free(it);
}

static const enum block_key_kind letters[] = { KEY_ROLLUP_SERIES, KEY_ROLLUP_GROUP, KEY_FUNCTIONS };

void block_rollups_expect(struct block *b, enum rollup_kind kind, uint32_t id, uint32_t level,
	int64_t from_ns, int64_t to_ns)
{
	struct block_key from = block_key_rollup(letters[kind], id, level, from_ns < 0 ? 0 : from_ns);
	struct block_key to = block_key_rollup(letters[kind], id, level, to_ns < 0 ? 0 : to_ns);

	if (from_ns < to_ns)
		table_expect(b->rollups, block_key_str(&from), block_key_str(&to), 1);
}

void block_rollups_seek(struct block_rollups *it, enum rollup_kind kind, uint32_t id,
	uint32_t level, int64_t from_ns, int64_t to_ns)
{
	enum block_key_kind letter = letters[kind];
	struct block_key key;
	uint32_t first, n;

	assert(kind <= ROLLUP_FUNCTIONS && level < ROLLUP_LEVELS);
	it->rc = ERR_OK;
	it->to_ns = to_ns;
	if (kind == ROLLUP_GROUP) {
		it->rc = block_group(it->b, id, &first, &n, &it->why);
		if (!it->rc && n == 1) {
			letter = KEY_ROLLUP_SERIES;
			id = first;
		}
	}
	key = block_key_rollup(letter, id, level, from_ns < 0 ? 0 : from_ns);
	block_iter_seek(&it->it, block_key_str(&key), BLOCK_KEY_ID_BYTES + 1);
	if (from_ns >= to_ns || it->rc)
		it->it.next = ITER_END;
}

enum err_code block_rollups_next(
	struct block_rollups *it, struct str *bytes, int64_t *step_ns, struct err *err)
{
	enum err_code rc = it->rc;
	struct cursor in;
	struct str key;

	it->rc = ERR_OK;
	if (rc) {
		err_copy(err, &it->why);
		return rc;
	}
	if ((rc = block_iter_next(&it->it, &key, bytes, err)))
		return rc;
	in = cursor_of(key);
	(void)cursor_bytes(&in, BLOCK_KEY_ID_BYTES + 1);
	*step_ns = (int64_t)cursor_u64be(&in);
	if (!in.bad && *step_ns < it->to_ns)
		return ERR_OK;
	it->it.next = ITER_END;
	return ERR_NOT_FOUND;
}
