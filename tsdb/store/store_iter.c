#include <assert.h>
#include <stdlib.h>

#include "tsdb/store/store_internal.h"

/*
 * Iterators. A seek asks each table of the store, and reads a page of each that is not in the
 * cache. Whoever asks for one series after the other is mostly there already or a few steps before
 * it, so a seek looks first where it is.
 */
#define ITER_KEY_MAX 32u /* longer ones are sought each time */
#define ITER_NEAR 4u /* steps that cost less than to seek */

struct store_iter {
	leveldb_iterator_t *it;
	leveldb_readoptions_t *read;
	const struct store *s;
	/* No key is between this one and the iterator's; nor is this one a key if it was sought. */
	char before[ITER_KEY_MAX];
	size_t before_len;
	bool is_known, was_sought; /* whether `before` is */
};

static struct store_iter *store_iter_begin(
	struct store *s, const struct store_snapshot *snap, bool keep)
{
	struct store_iter *it = malloc(sizeof(*it));

	if (!it)
		return NULL;
	it->s = s;
	it->is_known = false;
	it->read = leveldb_readoptions_create();
	leveldb_readoptions_set_verify_checksums(it->read, 1);
	leveldb_readoptions_set_fill_cache(it->read, keep);
	if (snap)
		leveldb_readoptions_set_snapshot(it->read, snap->s);
	it->it = leveldb_create_iterator(s->db, it->read);
	return it;
}

struct store_iter *store_iter_open(struct store *s, const struct store_snapshot *snap)
{
	return store_iter_begin(s, snap, true);
}

struct store_iter *store_scan_open(struct store *s, const struct store_snapshot *snap)
{
	return store_iter_begin(s, snap, false);
}

void store_iter_close(struct store_iter *it)
{
	if (!it)
		return;
	leveldb_iter_destroy(it->it);
	leveldb_readoptions_destroy(it->read);
	free(it);
}

static void store_iter_note(struct store_iter *it, struct str before, bool was_sought)
{
	it->is_known = before.len <= sizeof(it->before);
	it->was_sought = was_sought;
	it->before_len = before.len;
	if (it->is_known && before.len)
		memcpy(it->before, before.ptr, before.len);
}

/* Moves to the first key at or after this one if it is at it, or a few steps before it. */
static bool store_iter_step_to(struct store_iter *it, struct str key)
{
	struct str before = { it->before, it->before_len };
	int order;

	for (unsigned steps = 0; steps <= ITER_NEAR; steps++) {
		if (!leveldb_iter_valid(it->it))
			return false;
		if ((order = str_cmp(store_iter_key(it), key)) >= 0)
			return order == 0 || steps > 0 ||
				(it->is_known && str_cmp(before, key) < (it->was_sought ? 1 : 0));
		if (steps < ITER_NEAR)
			store_iter_next(it);
	}
	return false;
}

void store_iter_seek(struct store_iter *it, struct str key)
{
	if (!store_iter_step_to(it, key))
		leveldb_iter_seek(it->it, key.ptr, key.len);
	store_iter_note(it, key, true);
}

void store_iter_seek_before(struct store_iter *it, struct str key)
{
	it->is_known = false;
	leveldb_iter_seek(it->it, key.ptr, key.len);
	if (leveldb_iter_valid(it->it))
		leveldb_iter_prev(it->it);
	else
		leveldb_iter_seek_to_last(it->it);
}

void store_iter_next(struct store_iter *it)
{
	store_iter_note(it, store_iter_key(it), false);
	leveldb_iter_next(it->it);
}

bool store_iter_valid(const struct store_iter *it)
{
	return leveldb_iter_valid(it->it);
}

struct str store_iter_key(const struct store_iter *it)
{
	struct str key;

	assert(store_iter_valid(it));
	key.ptr = leveldb_iter_key(it->it, &key.len);
	return key;
}

struct str store_iter_record(const struct store_iter *it)
{
	struct str record;

	assert(store_iter_valid(it));
	record.ptr = leveldb_iter_value(it->it, &record.len);
	return record;
}

enum err_code store_iter_value(const struct store_iter *it, struct str *out, struct err *err)
{
	return store_open_record(it->s, store_iter_key(it), store_iter_record(it), out, err);
}

enum err_code store_iter_status(const struct store_iter *it, struct err *err)
{
	char *msg = NULL;

	leveldb_iter_get_error(it->it, &msg);
	return store_error_of(msg, it->s->dir, err);
}
