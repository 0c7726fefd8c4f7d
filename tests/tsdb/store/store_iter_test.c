/* A seek from wherever an iterator is finds what a new iterator finds. */
#include "base/fs.h"
#include "base/map.h"
#include "tests/check.h"
#include "tests/scratch.h"
#include "tsdb/store/store.h"

#define KEYS 6000u
#define LONG_KEY 40u /* beyond what an iterator remembers */

static uint64_t state;

static uint64_t draw(uint64_t below)
{
	state += UINT64_C(0x9e3779b97f4a7c15);
	return map_hash_u64(state) % below;
}

/* Keys have gaps, so a seek often ends behind what it asked for. Some are long. */
static struct str key_of(char *space, uint64_t number)
{
	int n = snprintf(space, 64, "k%06llu", (unsigned long long)number);

	if (number % 7 == 3)
		memset(space + n, 'x', LONG_KEY);
	return (struct str){ space, (size_t)n + (number % 7 == 3 ? LONG_KEY : 0) };
}

/* In several tables and the log. */
static void fill(struct store *s)
{
	struct store_batch *b = store_batch_open();
	struct buf value = { 0 };
	struct err err;
	char key[64];

	for (uint64_t i = 0; i < KEYS; i++) {
		buf_clear(&value);
		for (uint64_t k = 0; k < 400; k++)
			buf_add_u64be(&value, map_hash_u64(i * 1000 + k));
		store_batch_put(b, key_of(key, map_hash_u64(i) % (3 * KEYS)), &value);
		if (i % 100 < 99)
			continue;
		CHECK_OK(store_write(s, b, &err), &err);
		store_batch_clear(b);
	}
	buf_release(&value);
	store_batch_close(b);
}

static void check_at(struct store_iter *it, struct store_iter *fresh, int turn)
{
	bool valid = store_iter_valid(it);
	struct str got, want;
	struct err err;

	CHECK_INT(valid, store_iter_valid(fresh));
	if (valid && store_iter_valid(fresh) &&
		!str_eq(got = store_iter_key(it), want = store_iter_key(fresh)))
		CHECK_FAIL("turn %d: at " STR_FMT ", want " STR_FMT, turn, STR_ARG(got), STR_ARG(want));
	CHECK_OK(store_iter_status(it, &err), &err);
}

TEST(seeks_from_anywhere)
{
	static char dir[] = SCRATCH "epimetheus-iter-XXXXXX";
	const int turns = check_is_short() ? 1000 : 20000;
	struct store_iter *it, *fresh;
	struct store *s;
	struct err err;
	char key[64];

	REQUIRE(scratch_dir(dir));
	REQUIRE_OK(store_open(dir, NULL, NULL, &s, &err), &err);
	fill(s);
	it = store_iter_open(s, NULL);
	for (int i = 0; i < turns; i++) {
		uint64_t near = draw(3 * KEYS + 2);

		if (draw(4) && store_iter_valid(it))
			near = strtoull(store_iter_key(it).ptr + 1, NULL, 10) + draw(12) - (draw(4) ? 0 : 4);
		fresh = store_iter_open(s, NULL);
		if (draw(9) == 0) {
			store_iter_seek_before(it, key_of(key, near));
			store_iter_seek_before(fresh, key_of(key, near));
		} else {
			store_iter_seek(it, key_of(key, near));
			store_iter_seek(fresh, key_of(key, near));
		}
		check_at(it, fresh, i);
		for (uint64_t n = draw(5); n && store_iter_valid(it); n--) {
			store_iter_next(it);
			store_iter_next(fresh);
			check_at(it, fresh, i);
		}
		store_iter_close(fresh);
	}
	store_iter_close(it);
	store_close(s);
	CHECK_OK(fs_remove_tree(&fs_posix, dir, NULL), &err);
}
