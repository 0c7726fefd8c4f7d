#include "tsdb/block/block_verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

/* Compares all parts of a block: files, keys, series, postings, counts. */

void verify_find(struct verify *v, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(v->text, sizeof(v->text), fmt, args);
	va_end(args);
	v->findings++;
	if (v->fn)
		v->fn(v->ctx, v->text);
}

/* Errors that say nothing about the block end the work; others are findings. */
enum err_code verify_error(
	struct verify *v, enum err_code rc, const struct err *why, struct err *err)
{
	if (rc == ERR_NOMEM || rc == ERR_IO || range_unreachable(rc))
		return err_copy(err, why);
	if (rc)
		verify_find(v, "%s", why->msg);
	return ERR_OK;
}

/* ---- files ---- */

#define READ_BYTES (1u << 20)

static enum err_code block_hash_file(
	struct range_reader *r, XXH3_state_t *state, char *buffer, struct err *err)
{
	enum err_code rc = ERR_OK;

	for (uint64_t at = 0; at < r->bytes && !rc;) {
		size_t n = r->bytes - at < READ_BYTES ? (size_t)(r->bytes - at) : READ_BYTES;

		if (!(rc = r->ops->read(r, at, n, buffer, err)))
			XXH3_64bits_update(state, buffer, n);
		at += n;
	}
	return rc;
}

static enum err_code block_check_file(
	struct verify *v, const char *name, const struct block_file *want, struct err *err)
{
	char *path = block_path(&v->arena, v->b->dir, name), *buffer = malloc(READ_BYTES);
	XXH3_state_t *state = XXH3_createState();
	struct range_reader *r;
	enum err_code rc;
	struct err why;

	if (!path || !buffer || !state) {
		rc = err_nomem(err, "verify");
		goto out;
	}
	if ((rc = range_open(v->b->from, path, &r, &why))) {
		rc = verify_error(v, rc, &why, err);
		goto out;
	}
	XXH3_64bits_reset(state);
	rc = block_hash_file(r, state, buffer, &why);
	if (rc)
		rc = verify_error(v, rc, &why, err);
	else if (r->bytes != want->bytes)
		verify_find(v, "%s has %" PRIu64 " bytes, not %" PRIu64, name, r->bytes, want->bytes);
	else if (XXH3_64bits_digest(state) != want->hash)
		verify_find(v, "%s: its hash is not the one in meta.json", name);
	range_close(r);
out:
	XXH3_freeState(state);
	free(buffer);
	return rc;
}

static enum err_code block_check_files(struct verify *v, struct err *err)
{
	const struct block_meta *m = &v->b->meta;
	char *path = block_path(&v->arena, v->b->dir, "meta.json");
	struct block_meta parsed;
	struct buf text = { 0 };
	enum err_code rc;
	struct err why;

	if (!path)
		return arena_fail(&v->arena, "verify", err);
	if (!(rc = range_read_all(v->b->from, path, BLOCK_META_BYTES_MAX, &text, &why)))
		rc = block_meta_parse(buf_str(&text), &v->arena, &parsed, &why);
	buf_release(&text);
	if (rc) {
		if (range_unreachable(rc))
			return err_copy(err, &why);
		verify_find(v, "meta.json: %s", why.msg);
		return rc == ERR_NOMEM ? rc : ERR_OK;
	}
	if ((m->raw && (rc = block_check_file(v, "rows.ldb", &m->rows_file, err))) ||
		(rc = block_check_file(v, "rollups.ldb", &m->rollups_file, err)))
		return rc;
	return block_check_file(v, "spare", &m->spare_file, err);
}

/* ---- small records: rollups.ldb against `spare` ---- */

static bool block_is_small(struct str key)
{
	return key.len && key.ptr[0] >= KEY_GROUP && key.ptr[0] < KEY_SYMBOLS &&
		key.ptr[0] != KEY_END && key.ptr[0] != KEY_META;
}

/* Checks that every small record of `from` is in `in`, with the same value. */
static enum err_code block_check_copy(
	struct verify *v, struct table *from, struct table *in, const char *name, struct err *err)
{
	struct buf other = { 0 };
	struct str key, value;
	struct block_iter it;
	uint64_t differ = 0;
	enum err_code rc;
	struct err why;

	if ((rc = block_iter_open(&it, from, true, err)))
		return rc;
	block_iter_seek(&it, STR(""), 0);
	while ((rc = block_iter_next(&it, &key, &value, &why)) != ERR_NOT_FOUND) {
		if (rc) {
			if ((rc = verify_error(v, rc, &why, err)))
				break;
			continue;
		}
		if (!block_is_small(key))
			continue;
		buf_clear(&other);
		rc = table_get(in, key, &other, &why);
		if (rc == ERR_NOMEM)
			break;
		differ += rc || !str_eq(buf_str(&other), value);
	}
	if (differ)
		verify_find(v, "%" PRIu64 " records of %s are not the same in its copy", differ, name);
	block_iter_close(&it);
	buf_release(&other);
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

static enum err_code block_check_copies(struct verify *v, struct err *err)
{
	struct err why = { 0 };
	struct table *spare = block_spare(v->b, &why);
	enum err_code rc;

	if (!spare) {
		verify_find(v, "spare: %s", why.code ? why.msg : "not readable");
		return ERR_OK;
	}
	if ((rc = block_check_copy(v, v->b->rollups, spare, "rollups.ldb", err)))
		return rc;
	return block_check_copy(v, spare, v->b->rollups, "spare", err);
}

/* ---- postings: made again from the series' labels ---- */

static enum err_code block_check_postings(struct verify *v, struct err *err)
{
	struct buf want = { 0 };
	uint64_t i = 0, differ = 0;
	struct str key, value, want_key;
	struct block_iter it;
	enum err_code rc;
	struct err why;

	postings_seal(v->postings);
	if ((rc = block_iter_open(&it, v->b->rollups, true, err)))
		return rc;
	block_iter_seek(&it, STR("e"), 0);
	while ((rc = block_iter_next(&it, &key, &value, &why)) != ERR_NOT_FOUND) {
		if (rc == ERR_CORRUPT)
			continue; /* reported before */
		if (rc) {
			rc = verify_error(v, rc, &why, err);
			break;
		}
		if (key.ptr[0] != KEY_NAME && key.ptr[0] != KEY_VALUE)
			break;
		if (i < postings_n(v->postings)) {
			buf_clear(&want);
			want_key = postings_at(v->postings, i, &want);
			differ += !str_eq(want_key, key) || !str_eq(buf_str(&want), value);
		}
		i++;
	}
	if (differ || i != postings_n(v->postings))
		verify_find(v, "postings are not those of the series' labels");
	block_iter_close(&it);
	buf_release(&want);
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

/* ---- keys: none too many ---- */

static const char *const known_keys = "ANabcdefmpsy";

/* ids of keys are below n; the table iterator saw that they ascend. */
static enum err_code block_check_keys(struct verify *v, struct table *t, bool rows, struct err *err)
{
	const struct block_meta *m = &v->b->meta;
	uint64_t strangers = 0, chunks = 0, links = 0;
	struct buf before = { 0 };
	struct str key, value;
	struct block_iter it;
	enum err_code rc;
	struct err why;

	if ((rc = block_iter_open(&it, t, true, err)))
		return rc;
	block_iter_seek(&it, STR(""), 0);
	while ((rc = block_iter_next(&it, &key, &value, &why)) != ERR_NOT_FOUND) {
		struct cursor in = cursor_of(key);
		uint32_t id;
		char letter;

		if (rc) {
			if ((rc = verify_error(v, rc, &why, err)))
				break;
			continue;
		}
		letter = key.len ? key.ptr[0] : 0;
		(void)cursor_bytes(&in, 1);
		id = cursor_u32be(&in);
		if (before.len && str_cmp(buf_str(&before), key) >= 0)
			verify_find(v, "keys are out of order");
		buf_clear(&before);
		buf_add_str(&before, key);
		chunks += letter == KEY_ROWS;
		links += letter == KEY_LINKS;
		if (rows ? letter != KEY_ROWS && letter != KEY_LINKS && letter != KEY_IDENTITY :
				   !letter || !strchr(known_keys, letter))
			strangers++;
		else if ((letter == KEY_ROWS || letter == KEY_LINKS || letter == KEY_ROLLUP_SERIES ||
					 letter == KEY_SERIES) &&
			(in.bad || id >= m->series))
			strangers++;
		else if (letter == KEY_NUMBERS && (in.bad || id >= m->number_series))
			strangers++;
		else if (letter >= KEY_ROLLUP_GROUP && letter <= KEY_GROUP && (in.bad || id >= m->groups))
			strangers++;
	}
	if (strangers)
		verify_find(v, "%" PRIu64 " records belong to nothing", strangers);
	if (rows && chunks != m->chunks)
		verify_find(v, "%" PRIu64 " chunks, and meta.json says %" PRIu64, chunks, m->chunks);
	if (rows && links != m->links)
		verify_find(v, "links of %" PRIu64 " rows, and meta.json says %" PRIu64, links, m->links);
	block_iter_close(&it);
	buf_release(&before);
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

/* ---- series ---- */

static void block_check_counts(struct verify *v)
{
	const struct block_meta *m = &v->b->meta, *c = &v->counted;
	const struct {
		const char *name;
		uint64_t got, want;
	} counts[] = {
		{ "groups", c->groups, m->groups },
		{ "rows", c->rows, m->rows },
		{ "numbers", c->numbers, m->numbers },
		{ "samples", c->samples, m->samples },
		{ "nodes", c->nodes, m->nodes },
		{ "strings", c->strings, m->strings },
		{ "first_ns", (uint64_t)c->first_ns, (uint64_t)m->first_ns },
		{ "last_ns", (uint64_t)c->last_ns, (uint64_t)m->last_ns },
	};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		if (counts[i].got != counts[i].want)
			verify_find(v, "%s: %" PRIu64 " are there, and meta.json says %" PRIu64, counts[i].name,
				counts[i].got, counts[i].want);
}

static void block_count_times(struct verify *v, const struct block_series *s)
{
	if (s->rows && (!v->counted.first_ns || s->first_ns < v->counted.first_ns))
		v->counted.first_ns = s->first_ns;
	if (s->rows && s->last_ns > v->counted.last_ns)
		v->counted.last_ns = s->last_ns;
}

static void block_number_finding(void *ctx, const char *what)
{
	verify_find(ctx, "%s", what);
}

static enum err_code block_verify_check_numbers(
	struct verify *v, uint32_t id, const struct block_series *s, struct err *err)
{
	enum err_code rc;
	struct err why;

	block_count_times(v, s);
	v->counted.numbers += s->rows;
	if (!v->numbers && (rc = block_numbers_open(v->b, true, &v->numbers, err))) {
		v->numbers = NULL;
		return rc;
	}
	rc = block_check_numbers(v->b, id, s, v->numbers, block_number_finding, v, &why);
	return rc ? verify_error(v, rc, &why, err) : ERR_OK;
}

/* Checks its place among the others: slot, group, order. */
static enum err_code block_check_place(
	struct verify *v, uint32_t id, const struct block_series *s, struct err *err)
{
	const struct block_slot *slot = &v->b->slots[s->slot];
	uint32_t first, n;
	enum err_code rc;
	struct err why;

	block_count_times(v, s);
	if (id < slot->first || id - slot->first >= slot->n)
		verify_find(v, "series %" PRIu32 ": partition %" PRIu32 " does not have it", id, s->slot);
	if ((rc = block_group(v->b, s->group, &first, &n, &why)))
		return verify_error(v, rc, &why, err);
	if (id < first || id - first >= n)
		verify_find(v, "series %" PRIu32 ": group %" PRIu32 " does not have it", id, s->group);
	if (id == first)
		v->counted.groups++;
	v->counted.rows += s->rows;
	v->counted.samples += s->samples;
	return ERR_OK;
}

static enum err_code block_check_series(struct verify *v, struct err *err)
{
	struct labels before = { 0 };
	struct arena arenas[2];
	uint32_t group = SYM_NONE;
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < 2; i++)
		arena_init(&arenas[i], 0);
	for (uint32_t id = 0; id < v->b->meta.series && !rc; id++) {
		struct arena *a = &arenas[id & 1];
		struct block_series s = { 0 };
		struct err why;

		arena_reset(a);
		if ((rc = block_series(v->b, id, a, &s, &why))) {
			rc = verify_error(v, rc, &why, err);
			continue;
		}
		if (!postings_add(v->postings, id, s.labels))
			rc = err_nomem(err, "verify");
		if (group == s.group && labels_cmp(before, s.labels) >= 0)
			verify_find(v, "series %" PRIu32 " is out of order", id);
		group = s.group;
		before = s.labels;
		if (!rc && s.slot == BLOCK_NUMERIC)
			rc = block_verify_check_numbers(v, id, &s, err);
		else if (!rc && !(rc = block_check_place(v, id, &s, err)))
			rc = verify_series_rows(v, id, &s, err);
	}
	for (size_t i = 0; i < 2; i++)
		arena_release(&arenas[i]);
	return rc;
}

enum err_code block_verify(struct block *b, block_finding_fn fn, void *ctx, struct err *err)
{
	struct verify v = { .b = b, .fn = fn, .ctx = ctx };
	enum err_code rc;

	arena_init(&v.arena, 0);
	v.postings = postings_open();
	v.slot = SYM_NONE;
	rc = v.postings ? ERR_OK : err_nomem(err, "verify");
	if (b->meta.raw && !b->rows)
		verify_find(&v, "rows.ldb cannot be read");
	if (!rc && !(rc = block_check_files(&v, err)) && !(rc = block_check_copies(&v, err)) &&
		!(rc = block_check_keys(&v, b->rollups, false, err)) &&
		!(rc = b->rows ? block_check_keys(&v, b->rows, true, err) : ERR_OK) &&
		!(rc = verify_rows_open(&v, err)) && !(rc = block_check_series(&v, err)) &&
		!(rc = verify_groups(&v, err)))
		rc = block_check_postings(&v, err);
	if (!rc)
		block_check_counts(&v);
	verify_rows_close(&v);
	block_chunks_close(v.numbers);
	postings_close(v.postings);
	arena_release(&v.arena);
	if (!rc && v.findings)
		rc = err_set(err, ERR_CORRUPT, "block %s: %" PRIu64 " findings", b->dir, v.findings);
	return rc;
}
