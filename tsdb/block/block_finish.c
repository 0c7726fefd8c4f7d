#include "tsdb/block/block_internal.h"

#include <stdlib.h>

/* The end of a block's files: small records, symbols, `spare`, meta.json. */

/* Sample label keys of the sets that are used, ascending. */
static int block_by_bytes(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static enum err_code block_finish_sample_keys(const struct partition *p, const struct bits *sets,
	struct arena *a, struct block_slot *out, struct err *err)
{
	struct bits keys = { 0 };
	enum err_code rc = ERR_OK;
	size_t n = 0;

	for (size_t w = 0; w < sets->words && !rc; w++)
		for (uint64_t left = sets->w[w]; left && !rc; left &= left - 1) {
			struct sym_label_set set = sym_label_set(
				p, (uint32_t)(w * 64 + (size_t)__builtin_ctzll(left)));

			for (uint32_t i = 0; i < set.n; i++) {
				if (!bits_reserve(&keys, set.v[i].key)) {
					rc = err_nomem(err, "write block");
					break;
				}
				n += !bits_get(&keys, set.v[i].key);
				bits_set(&keys, set.v[i].key);
			}
		}
	if (!rc && !(out->keys = arena_array(a, struct str, n + 1)))
		rc = arena_fail(a, "write block", err);
	for (size_t w = 0; w < keys.words && !rc; w++)
		for (uint64_t left = keys.w[w]; left; left &= left - 1)
			out->keys[out->keys_n++] = sym_string(
				p, (uint32_t)(w * 64 + (size_t)__builtin_ctzll(left)));
	bits_release(&keys);
	if (!rc && n)
		qsort(out->keys, n, sizeof(*out->keys), block_by_bytes);
	return rc;
}

/* ---- small records, which both rollups.ldb and `spare` have ---- */

static enum err_code block_put_id(struct table_writer *t, enum block_key_kind kind, uint32_t id,
	const struct buf *value, struct err *err)
{
	struct block_key key = block_key_id(kind, id);

	if (buf_failed(value))
		return err_nomem(err, "write block");
	return table_writer_put(t, block_key_str(&key), buf_str(value), err);
}

static enum err_code block_put_groups(
	struct block_writer *w, struct table_writer *t, struct buf *value, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (uint32_t i = 0; i < w->groups_n && !rc; i++) {
		uint32_t end = i + 1 < w->groups_n ? w->groups[i + 1] : w->series_at.n;

		buf_clear(value);
		buf_add_varint(value, w->groups[i]);
		buf_add_varint(value, end - w->groups[i]);
		rc = block_put_id(t, KEY_GROUP, i, value, err);
	}
	return rc;
}

static enum err_code block_put_postings(
	struct block_writer *w, struct table_writer *t, struct buf *value, struct err *err)
{
	enum err_code rc = ERR_OK;
	struct str key;

	for (size_t i = 0; i < postings_n(w->postings) && !rc; i++) {
		buf_clear(value);
		key = postings_at(w->postings, i, value);
		rc = buf_failed(value) ? err_nomem(err, "write block") :
								 table_writer_put(t, key, buf_str(value), err);
	}
	return rc;
}

static enum err_code block_put_meta(
	struct block_writer *w, struct table_writer *t, bool files, struct buf *value, struct err *err)
{
	const char letter = KEY_META;

	buf_clear(value);
	block_meta_print(value, &w->meta, files);
	if (buf_failed(value))
		return err_nomem(err, "write block");
	return table_writer_put(t, (struct str){ &letter, 1 }, buf_str(value), err);
}

/* One above the highest. */
static uint32_t bits_end(const struct bits *b)
{
	for (size_t w = b->words; w-- > 0;)
		if (b->w[w])
			return (uint32_t)(w * 64 + 64 - (size_t)__builtin_clzll(b->w[w]));
	return 0;
}

static enum err_code block_encode_slot(struct writer_slot *slot, struct err *err)
{
	struct block_slot s = {
		.p = { slot->p->id, slot->p->epoch, slot->p->name }, .first = slot->first, .n = slot->n
	};
	struct arena a;
	enum err_code rc;

	arena_init(&a, 0);
	memcpy(s.symbols, slot->symbols, sizeof(s.symbols));
	for (int k = 1; k < SYM_KINDS; k++)
		s.ends[k] = bits_end(&slot->bits[k]);
	if (!(rc = block_finish_sample_keys(slot->p, &slot->bits[SYM_LABEL_SET], &a, &s, err)))
		block_slot_encode(&slot->record, &s);
	arena_release(&a);
	return rc;
}

enum err_code block_writer_seal(struct block_writer *w, struct err *err)
{
	struct writer_slot *s = w->slots_n ? &w->slots[w->slots_n - 1] : NULL;
	enum err_code rc;

	if (!s || !s->p)
		return ERR_OK;
	s->pages = spill_bytes(&w->symbols);
	if ((rc = block_symbols_close(s->p, s->bits, s->tainted, s->symbols, err)) ||
		(rc = block_encode_slot(s, err)) ||
		(rc = block_symbols_pack(s->p, s->bits, &w->symbols, err)))
		return rc;
	s->pages_end = spill_bytes(&w->symbols);
	w->meta.nodes += s->symbols[SYM_NODE];
	w->meta.strings += s->symbols[SYM_STRING];
	for (int k = 0; k < SYM_KINDS; k++)
		bits_release(&s->bits[k]);
	s->p = NULL;
	return ERR_OK;
}

static enum err_code block_put_partitions(
	struct block_writer *w, struct table_writer *t, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (uint32_t i = 0; i < w->slots_n && !rc; i++)
		rc = block_put_id(t, KEY_PARTITION, i, &w->slots[i].record, err);
	return rc;
}

static enum err_code block_put_series(
	struct block_writer *w, struct table_writer *t, struct err *err)
{
	enum err_code rc = ERR_OK;
	size_t at = 0;

	for (uint32_t i = 0; i < w->series_at.n && !rc; at = w->series_at.at[i++]) {
		struct block_key key = block_key_id(KEY_SERIES, i);
		struct str value = { w->series.ptr + at, w->series_at.at[i] - at };

		rc = table_writer_put(t, block_key_str(&key), value, err);
	}
	return rc;
}

/* ---- files ---- */

static enum err_code finish_rows(struct block_writer *w, struct buf *end, struct err *err)
{
	struct table_written done;
	enum err_code rc;

	if (!w->rows)
		return ERR_OK;
	if ((rc = table_writer_finish(w->rows, &done, end, err)))
		return rc;
	w->meta.rows_file = (struct block_file){ done.bytes, done.hash };
	return ERR_OK;
}

static enum err_code finish_rollups(struct block_writer *w, struct buf *end, struct err *err)
{
	struct table_written done;
	struct buf value = { 0 };
	enum err_code rc;

	if (!(rc = block_put_groups(w, w->rollups, &value, err)) &&
		!(rc = block_put_postings(w, w->rollups, &value, err)) &&
		!(rc = block_put_meta(w, w->rollups, false, &value, err)) &&
		!(rc = block_put_partitions(w, w->rollups, err)))
		rc = block_put_series(w, w->rollups, err);
	for (uint32_t i = 0; i < w->slots_n && !rc; i++)
		rc = block_symbols_put(
			w->rollups, i, &w->symbols, w->slots[i].pages, w->slots[i].pages_end, err);
	if (!rc && !(rc = table_writer_finish(w->rollups, &done, end, err)))
		w->meta.rollups_file = (struct block_file){ done.bytes, done.hash };
	buf_release(&value);
	return rc;
}

static enum err_code block_put_end(
	struct table_writer *t, const char *name, const struct buf *end, struct err *err)
{
	struct buf key = { 0 };
	enum err_code rc;

	buf_add_char(&key, KEY_END);
	buf_add_cstr(&key, name);
	rc = buf_failed(&key) || buf_failed(end) ?
		err_nomem(err, "write block") :
		table_writer_put(t, buf_str(&key), buf_str(end), err);
	buf_release(&key);
	return rc;
}

static enum err_code block_write_spare(struct block_writer *w, const struct buf *rows_end,
	const struct buf *rollups_end, struct err *err)
{
	char *path = block_path(&w->arena, w->dir, "spare");
	struct table_writer *t = NULL;
	struct table_written done;
	struct buf value = { 0 };
	enum err_code rc;

	if (!path)
		return arena_fail(&w->arena, "write block", err);
	if ((rc = table_writer_open(w->o.fs, path, &t, err)))
		return rc;
	if (!(rc = block_identity_put(t, &w->o.ulid, "spare", err)) &&
		!(rc = block_put_groups(w, t, &value, err)) &&
		!(rc = block_put_postings(w, t, &value, err)) &&
		!(rc = block_put_end(t, "rollups.ldb", rollups_end, err)) &&
		!(rc = w->rows ? block_put_end(t, "rows.ldb", rows_end, err) : ERR_OK) &&
		!(rc = block_put_meta(w, t, true, &value, err)) && !(rc = block_put_partitions(w, t, err)))
		rc = block_put_series(w, t, err);
	buf_clear(&value); /* its own end has no copy: it is one */
	if (!rc && !(rc = table_writer_finish(t, &done, &value, err)))
		w->meta.spare_file = (struct block_file){ done.bytes, done.hash };
	table_writer_close(t);
	buf_release(&value);
	return rc;
}

/* Fills in what the caller does not know of the block. */
static enum err_code block_fill_meta(
	struct block_writer *w, const struct block_meta *from, struct err *err)
{
	struct block_meta *m = &w->meta;

	m->ulid = w->o.ulid;
	m->level = from->level;
	m->sources = from->sources;
	m->sources_n = from->sources_n;
	m->heads = from->heads;
	m->heads_n = from->heads_n;
	m->min_ns = w->o.min_ns;
	m->max_ns = w->o.max_ns;
	m->levels = w->o.levels;
	m->raw = w->rows != NULL;
	m->series = w->series_at.n;
	m->number_series = w->number_series;
	m->groups = w->groups_n;
	m->partitions = w->slots_n;
	if (m->sources_n > BLOCK_SOURCES_MAX || m->heads_n > BLOCK_HEADS_MAX)
		return err_set(err, ERR_LIMIT, "write block: it is joined from too many");
	return ERR_OK;
}

enum err_code block_writer_finish(struct block_writer *w, struct block_meta *meta, struct err *err)
{
	struct buf rows_end = { 0 }, rollups_end = { 0 };
	enum err_code rc;

	if ((rc = block_writer_end_series(w, err)) || (rc = block_writer_seal(w, err)) ||
		(rc = block_fill_meta(w, meta, err)))
		goto out;
	postings_seal(w->postings);
	if ((rc = finish_rows(w, &rows_end, err)) || (rc = finish_rollups(w, &rollups_end, err)) ||
		(rc = block_write_spare(w, &rows_end, &rollups_end, err)))
		goto out;
	/* Last, as it makes the block complete. It syncs the directory, and so the names of all files.
	 */
	if ((rc = block_write_meta(w->o.fs, w->dir, &w->meta, err)))
		goto out;
	*meta = w->meta;
out:
	buf_release(&rows_end);
	buf_release(&rollups_end);
	return rc ? err_wrap(err, rc, "write block %s", w->dir) : ERR_OK;
}
