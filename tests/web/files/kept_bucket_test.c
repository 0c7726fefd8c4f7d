/*
 * Kept files of members over one bucket: what one keeps all open, what one removes is gone for all;
 * copies, damage, a bucket that is away.
 */
#include "tests/wait.h"
#include "tests/web/files/members.h"

TEST(a_file_of_one_member_opens_at_another_and_is_removed_for_both)
{
	struct kept_listing l;
	struct kept_file f;

	REQUIRE(begin() && member_open(&a) && member_open(&c));
	REQUIRE_OK(put(&a, "../a b", &f), &err);
	CHECK_OK(get(&c, f.id), &err);
	CHECK(has_copy(&a, f.id) && has_copy(&c, f.id));
	CHECK_INT(listed(&c, &l), 1);
	CHECK_STR(str_of(l.v[0].name), "..-a-b");
	CHECK_INT(l.v[0].bytes, BYTES.len);
	CHECK_INT(l.v[0].expires_ns, f.expires_ns);
	CHECK_INT(l.v[0].created_ns, f.created_ns);
	CHECK_STR(l.warning, "");
	/* The other one did not hear of it, and has a copy. */
	CHECK_OK(kept_delete(c.k, str_of(f.id), &err), &err);
	CHECK_INT(get(&a, f.id), ERR_NOT_FOUND);
	CHECK(!has_copy(&a, f.id) && !has_copy(&c, f.id));
	CHECK_INT(kept_delete(a.k, str_of(f.id), &err), ERR_NOT_FOUND);
	CHECK_INT(kept_delete(c.k, str_of(f.id), &err), ERR_NOT_FOUND);
	CHECK_INT(listed(&a, &l), 0);
	CHECK_INT(objects(), 0);
	end();
}

/* A copy costs a HEAD; a file of another member a list of one, and a GET. */
TEST(what_opening_costs)
{
	struct kept_file f;
	unsigned lists, gets, heads;

	REQUIRE(begin() && member_open(&a) && member_open(&c));
	REQUIRE(WAIT_FOR(requests(BUCKET_LISTS) == 2)); /* of the start */
	REQUIRE_OK(put(&a, "x", &f), &err);
	lists = requests(BUCKET_LISTS);
	gets = requests(BUCKET_GETS);
	heads = requests(BUCKET_HEADS);
	for (int i = 0; i < 3; i++)
		CHECK_OK(get(&c, f.id), &err);
	CHECK_INT(requests(BUCKET_LISTS), lists + 1);
	CHECK_INT(requests(BUCKET_GETS), gets + 1);
	CHECK_INT(requests(BUCKET_HEADS), heads + 2);
	/* What cannot be an id is not asked for. */
	CHECK_INT(get(&c, "x"), ERR_NOT_FOUND);
	CHECK_INT(requests(BUCKET_LISTS), lists + 1);
	end();
}

TEST(limits_count_what_others_keep)
{
	struct kept_file f, g;

	REQUIRE(begin());
	a.o.bytes_max = c.o.bytes_max = 20;
	REQUIRE(member_open(&a) && member_open(&c));
	REQUIRE_OK(put(&a, "a", &f), &err);
	REQUIRE_OK(put(&c, "b", &g), &err);
	CHECK_INT(put(&c, "c", &g), ERR_LIMIT);
	CHECK(strstr(err.msg,
		"the file has 9 bytes and 18 are kept already, limit 20 "
		"(--storage.files.max-size); the first of them expires at "));
	CHECK_INT(put(&a, "c", &g), ERR_LIMIT);
	CHECK_OK(kept_delete(c.k, str_of(f.id), &err), &err);
	CHECK_OK(put(&a, "c", &g), &err);
	end();
}

/* Objects as members whose clocks are wrong would have put them. */
static void put_object(const char *id, int64_t expires_ns)
{
	struct kept_head h = { .file = { .bytes = BYTES.len, .name = "x" } };
	struct buf key = { 0 }, whole = { 0 };

	memcpy(h.file.id, id, sizeof(h.file.id));
	h.file.created_ns = NS_PER_S;
	h.file.expires_ns = expires_ns / NS_PER_S * NS_PER_S;
	h.checksum = kept_checksum(&h.file, BYTES);
	kept_head_print(&h, &whole);
	buf_add_str(&whole, BYTES);
	kept_key_print(&h, &key);
	REQUIRE_OK(bucket_put(b, buf_str(&key), buf_str(&whole), BUCKET_ANY, NULL, NULL, &err), &err);
	buf_release(&key);
	buf_release(&whole);
}

#define OVER "00000000000000000000000000000001"
#define JUST "00000000000000000000000000000002"
#define LIVE "00000000000000000000000000000003"

/* Nobody reads it any more; it goes when it is over by every clock, and with the flag alone. */
TEST(what_is_over_goes_from_the_bucket)
{
	struct kept_listing l;
	struct kept_file f;
	unsigned lists;

	REQUIRE(begin());
	put_object(OVER, now() - 11 * NS_PER_MIN);
	put_object(JUST, now() - 2 * NS_PER_S);
	put_object(LIVE, now() + DAY);
	c.o.removes = false;
	c.o.look_ns = c.o.list_ns = NS_PER_MS;
	REQUIRE(member_open(&c));
	CHECK_INT(get(&c, OVER), ERR_NOT_FOUND);
	CHECK_INT(get(&c, JUST), ERR_NOT_FOUND);
	CHECK_OK(get(&c, LIVE), &err);
	CHECK_INT(listed(&c, &l), 1);
	REQUIRE(WAIT_FOR(requests(BUCKET_LISTS) > 8));
	CHECK_INT(objects(), 3);
	a.o.look_ns = a.o.list_ns = NS_PER_MS;
	REQUIRE(member_open(&a));
	CHECK(WAIT_FOR(objects() == 2));
	/* Another one that has an old list removes what is gone: no harm. And new ones stay. */
	REQUIRE_OK(put(&c, "new", &f), &err);
	c.o.removes = true;
	member_close(&c);
	REQUIRE(member_open(&c));
	lists = requests(BUCKET_LISTS);
	REQUIRE(WAIT_FOR(requests(BUCKET_LISTS) > lists + 8));
	CHECK_OK(get(&a, f.id), &err);
	CHECK_OK(get(&c, LIVE), &err);
	CHECK_INT(objects(), 3);
	end();
}

/* Lists begin before and end after what another thread keeps: it stays known, and its copy too. */
TEST(a_list_that_is_old_takes_nothing_away)
{
	struct kept_file f;

	REQUIRE(begin());
	a.o.look_ns = a.o.list_ns = 1;
	fake.page_objects = 1;
	for (int i = 0; i < 5; i++) {
		char id[KEPT_ID_BYTES + 1];

		snprintf(id, sizeof(id), "%032x", i);
		put_object(id, now() + DAY);
	}
	REQUIRE(member_open(&a));
	for (int i = 0; i < 40; i++) {
		REQUIRE_OK(put(&a, "x", &f), &err);
		CHECK(has_copy(&a, f.id));
		CHECK_OK(get(&a, f.id), &err);
		CHECK(has_copy(&a, f.id));
		if (i % 2)
			CHECK_OK(kept_delete(a.k, str_of(f.id), &err), &err);
	}
	CHECK_INT(objects(), 25);
	end();
}

TEST(copies_are_bounded)
{
	struct kept_file f[4];
	int copies = 0;

	REQUIRE(begin());
	c.o.cache_bytes_max = 2 * BYTES.len;
	REQUIRE(member_open(&a) && member_open(&c));
	for (int i = 0; i < 4; i++) {
		REQUIRE_OK(put(&a, "x", &f[i]), &err);
		CHECK_OK(get(&c, f[i].id), &err);
		CHECK_OK(get(&c, f[0].id), &err); /* used again and again: it stays */
	}
	for (int i = 0; i < 4; i++)
		copies += has_copy(&c, f[i].id);
	CHECK_INT(copies, 2);
	CHECK(has_copy(&c, f[0].id) && has_copy(&c, f[3].id));
	CHECK_OK(get(&c, f[1].id), &err);
	end();
}

TEST(a_damaged_copy_is_taken_again)
{
	struct kept_file f;
	char path[200];

	REQUIRE(begin() && member_open(&a));
	REQUIRE_OK(put(&a, "x", &f), &err);
	path_of(&a, f.id, "cached", path);
	REQUIRE(flip(path));
	CHECK_OK(get(&a, f.id), &err);
	CHECK(has_copy(&a, f.id));
	/* Somebody removed it. */
	REQUIRE(!unlink(path));
	CHECK_OK(get(&a, f.id), &err);
	CHECK(has_copy(&a, f.id));
	/* Cut short: noticed at the start. */
	REQUIRE(!truncate(path, 3));
	member_close(&a);
	REQUIRE(member_open(&a));
	CHECK(!has_copy(&a, f.id));
	CHECK_OK(get(&a, f.id), &err);
	end();
}

TEST(a_damaged_object_is_named)
{
	struct kept_file f, g;
	struct kept_listing l;
	struct buf whole = { 0 };
	char key[400], other[400];

	REQUIRE(begin() && member_open(&a) && member_open(&c));
	REQUIRE_OK(put(&a, "x", &f), &err);
	REQUIRE_OK(put(&a, "y", &g), &err);
	key_of(f.id, key);
	key_of(g.id, other);
	buf_add_str(&whole, buf_str(&fake_find(&fake, key)->bytes));
	for (size_t i = 0; i < whole.len; i++) {
		whole.ptr[i] ^= 1;
		fake_put(&fake, key, buf_str(&whole));
		whole.ptr[i] ^= 1;
		if (get(&c, f.id) != ERR_CORRUPT || !strstr(err.msg, strstr(key, "files/")) ||
			!strstr(err.msg, "is damaged"))
			CHECK_FAIL("byte %zu: %s", i, err.msg);
	}
	for (size_t len = 0; len < whole.len; len++) {
		fake_put(&fake, key, (struct str){ whole.ptr, len });
		if (get(&c, f.id) != ERR_CORRUPT || !strstr(err.msg, "is damaged"))
			CHECK_FAIL("cut at %zu: %s", len, err.msg);
	}
	CHECK_INT(listed(&c, &l), 2);
	CHECK_INT(l.v[0].damaged + l.v[1].damaged, 1);
	/* One in the place of the other. */
	fake_put(&fake, key, buf_str(&fake_find(&fake, other)->bytes));
	CHECK_INT(get(&c, f.id), ERR_CORRUPT);
	CHECK(strstr(err.msg, "it is another file") || strstr(err.msg, "is damaged"));
	CHECK_OK(get(&a, f.id), &err); /* its copy is sound */
	CHECK_OK(kept_delete(c.k, str_of(f.id), &err), &err);
	CHECK_INT(objects(), 1);
	buf_release(&whole);
	end();
}

TEST(objects_of_others_are_passed_over)
{
	static const char *const keys[] = { "files/x", "files/a/b",
		"files/0000000000000000000000000000000g-1-2-3-0000000000000004-x",
		"files/00000000000000000000000000000004-1-2-3-0000000000000004-x\xc3\xa4" };
	struct kept_listing l;
	struct kept_file f;

	REQUIRE(begin());
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		REQUIRE_OK(put_text(keys[i], "x"), &err);
	a.o.look_ns = a.o.list_ns = NS_PER_MS;
	REQUIRE(member_open(&a) && member_open(&c));
	CHECK_INT(listed(&a, &l), 0);
	CHECK_OK(put(&a, "x", &f), &err);
	CHECK_INT(listed(&c, &l), 1);
	CHECK_INT(objects(), sizeof(keys) / sizeof(keys[0]) + 1);
	end();
}

TEST(the_bucket_is_away)
{
	struct kept_file f, g;
	struct kept_listing l;

	REQUIRE(begin_impatient() && member_open(&a) && member_open(&c));
	REQUIRE_OK(put(&a, "x", &f), &err);
	REQUIRE_OK(put(&c, "y", &g), &err);
	CHECK_INT(listed(&a, &l), 2);
	store_is_away(true);
	CHECK_OK(get(&a, f.id), &err);
	CHECK_INT(get(&a, g.id), ERR_UNAVAILABLE);
	CHECK(strstr(err.msg, "the bucket of kept files cannot be used: ") == err.msg);
	CHECK_INT(put(&a, "z", &g), ERR_UNAVAILABLE);
	CHECK(strstr(err.msg, "the file cannot be kept in the bucket: ") == err.msg);
	CHECK_INT(kept_delete(a.k, str_of(f.id), &err), ERR_UNAVAILABLE);
	CHECK_INT(listed(&a, &l), 2);
	CHECK(str_has_prefix(l.warning, STR("the bucket of kept files cannot be listed (")));
	CHECK(str_find(l.warning, STR("): the files as of 20")) > 0);
	/* After a start it knows of its copies alone. */
	member_close(&a);
	REQUIRE(member_open(&a));
	CHECK_OK(get(&a, f.id), &err);
	CHECK_INT(listed(&a, &l), 1);
	CHECK(str_has_suffix(l.warning, STR("): the files on this server's disk")));
	store_is_away(false);
	CHECK_INT(listed(&a, &l), 2);
	CHECK_STR(l.warning, "");
	CHECK_OK(put(&a, "z", &g), &err);
	end();
}

/* It is left alone for a while, so that nobody waits for each answer that does not come. */
TEST(a_bucket_that_failed_is_not_asked_at_once)
{
	struct kept_file f;
	unsigned before;

	REQUIRE(begin_impatient());
	a.o.rest_ns = 3600 * NS_PER_S;
	REQUIRE(member_open(&a));
	REQUIRE_OK(put(&a, "x", &f), &err);
	store_is_away(true);
	CHECK_OK(get(&a, f.id), &err);
	before = requests(BUCKET_HEADS) + requests(BUCKET_LISTS);
	for (int i = 0; i < 5; i++) {
		CHECK_OK(get(&a, f.id), &err);
		CHECK_INT(put(&a, "y", &f) == ERR_OK, 0);
	}
	CHECK_INT(requests(BUCKET_HEADS) + requests(BUCKET_LISTS), before);
	end();
}
