/* Tables: what was put comes back, damage is said and never read, the spare saves what is whole. */
#include "tsdb/store/table.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/map.h"
#include "tests/check.h"
#include "tests/tsdb/store/memory_range.h"
#include "tests/tsdb/store/table_scratch.h"

/* ---- what is written ---- */

struct record {
	char key[32];
	size_t len; /* of the value */
};

static char letters[400000]; /* values are parts of it */

static struct str value_of(size_t i, size_t len)
{
	if (!letters[0]) {
		uint64_t x = 88172645463325252u;

		for (size_t at = 0; at < sizeof(letters); at++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			letters[at] = (char)(x | 1);
		}
	}
	return (struct str){ letters + i * 7919 % (sizeof(letters) - len), len };
}

static struct record record_of(size_t i)
{
	struct record r;

	snprintf(r.key, sizeof(r.key), "k%07zu", i * 2);
	r.len = i % 1000 == 3 ? 200000 : i % 50 == 7 ? 20000 : i * 31 % 400;
	return r;
}

/* Three pages: small records, a large one, small ones. */
static struct record small_of(size_t i)
{
	struct record r;

	snprintf(r.key, sizeof(r.key), "key%zu", i);
	r.len = i == 5 ? TABLE_PAGE_BYTES : i * 9;
	return r;
}
#define SMALL 10u

static enum err_code write_table(struct fs *fs, struct record (*of)(size_t), size_t n,
	struct table_written *out, struct buf *spare, struct err *err)
{
	struct table_writer *w = NULL;
	enum err_code rc = table_writer_open(fs, path, &w, err);

	for (size_t i = 0; !rc && i < n; i++) {
		struct record r = of(i);

		rc = table_writer_put(w, str_of(r.key), value_of(i, r.len), err);
	}
	if (!rc)
		rc = table_writer_finish(w, out, spare, err);
	table_writer_close(w);
	return rc;
}

static bool make_table(struct record (*of)(size_t), size_t n, struct buf *file, struct buf *spare)
{
	struct table_written w;
	struct err err;

	scratch();
	CHECK_OK(write_table(&fs_posix, of, n, &w, spare, &err), &err);
	CHECK_OK(fs_read_file(path, 1u << 30, file, &err), &err);
	finish();
	CHECK_INT(file->len, w.bytes);
	CHECK(hash_bytes(file->ptr, file->len, 0) == w.hash);
	return check_failures == 0;
}

static bool is_record(struct table_iter *it, struct record r, size_t i)
{
	return str_is(table_iter_key(it), r.key) && str_eq(table_iter_value(it), value_of(i, r.len));
}

/* ---- tests ---- */

static void check_seeks(struct table *t, struct table_iter *it, size_t n)
{
	struct record r;
	char key[32];
	struct buf b = { 0 };
	struct err err;
	uint64_t before = 0;

	for (size_t i = 0; i < n; i += 97) {
		r = record_of(i);
		table_iter_seek(it, str_of(r.key));
		CHECK(table_iter_valid(it) && is_record(it, r, i));
		buf_clear(&b);
		CHECK_OK(table_get(t, str_of(r.key), &b, &err), &err);
		CHECK(str_eq(buf_str(&b), value_of(i, r.len)));
		CHECK(table_offset(t, str_of(r.key)) >= before);
		before = table_offset(t, str_of(r.key));
		/* Between two keys. */
		snprintf(key, sizeof(key), "k%07zu", i * 2 + 1);
		CHECK_ERR(table_get(t, str_of(key), &b, &err), &err, ERR_NOT_FOUND, "t.ldb: no such key");
		table_iter_seek(it, str_of(key));
		CHECK(table_iter_valid(it) == (i + 1 < n) &&
			(i + 1 == n || is_record(it, record_of(i + 1), i + 1)));
	}
	table_iter_seek(it, STR("z"));
	CHECK(!table_iter_valid(it));
	CHECK_OK(table_iter_status(it, &err), &err);
	buf_release(&b);
}

static void check_round_trip(
	struct buf *file, struct str spare, size_t n, struct store_cache *cache)
{
	struct memory m = memory_of(file->ptr, file->len);
	struct err err, damaged;
	struct table_iter *it;
	struct table *t;
	size_t i = 0;

	REQUIRE_OK(table_open(&m.r, spare, cache, &t, &damaged, &err), &err);
	CHECK_INT(damaged.code, ERR_OK);
	CHECK_INT(m.reads, 2);
	it = table_iter_open(t, true);
	for (table_iter_seek(it, STR("")); table_iter_valid(it); table_iter_next(it), i++)
		CHECK(is_record(it, record_of(i), i));
	CHECK_INT(i, n);
	CHECK_OK(table_iter_status(it, &err), &err);
	table_iter_close(it);
	it = table_iter_open(t, false);
	check_seeks(t, it, n);
	table_iter_close(it);
	table_close(t);
	CHECK_INT(m.closed, 1);
}

TEST(what_is_written_is_read)
{
	struct store_cache *cache = store_cache_open(1u << 20);
	struct buf file = { 0 }, spare = { 0 };

	REQUIRE(make_table(record_of, 10000, &file, &spare));
	check_round_trip(&file, buf_str(&spare), 10000, cache);
	check_round_trip(&file, STR(""), 10000, NULL);
	store_cache_close(cache);
	buf_release(&file);
	buf_release(&spare);
}

TEST(a_page_in_the_cache_is_read_once_and_a_scan_leaves_the_cache_alone)
{
	struct store_cache *cache = store_cache_open(8u << 20);
	struct buf file = { 0 }, spare = { 0 }, b = { 0 };
	struct err err, damaged;
	struct table_iter *it;
	struct memory m;
	struct table *t;

	REQUIRE(make_table(small_of, SMALL, &file, &spare));
	m = memory_of(file.ptr, file.len);
	REQUIRE_OK(table_open(&m.r, STR(""), cache, &t, &damaged, &err), &err);
	for (int i = 0; i < 2; i++) {
		it = table_iter_open(t, true);
		for (table_iter_seek(it, STR("")); table_iter_valid(it); table_iter_next(it))
			continue;
		table_iter_close(it);
		CHECK_INT(m.reads, 2 + 3 * (i + 1));
	}
	for (int i = 0; i < 2; i++) {
		CHECK_OK(table_get(t, STR("key1"), &b, &err), &err);
		CHECK_INT(m.reads, 9);
	}
	/* A large value has a page of its own. */
	CHECK_OK(table_get(t, STR("key5"), &b, &err), &err);
	CHECK_INT(m.reads, 10);
	CHECK_OK(table_get(t, STR("key4"), &b, &err), &err);
	CHECK_INT(m.reads, 10);
	table_close(t);
	store_cache_close(cache);
	buf_release(&file);
	buf_release(&spare);
	buf_release(&b);
}

TEST(a_table_of_a_file)
{
	struct buf spare = { 0 }, b = { 0 };
	struct table_written w;
	struct range_reader *r;
	struct err err, damaged;
	struct table *t;
	char want[200];

	scratch();
	snprintf(want, sizeof(want), "%s: No such file or directory", path);
	CHECK_ERR(range_open_file(path, &r, &err), &err, ERR_NOT_FOUND, want);
	snprintf(want, sizeof(want), "%s: not a regular file", dir);
	CHECK_ERR(range_open_file(dir, &r, &err), &err, ERR_IO, want);
	REQUIRE_OK(write_table(&fs_posix, small_of, SMALL, &w, &spare, &err), &err);
	REQUIRE_OK(range_open_file(path, &r, &err), &err);
	CHECK_INT(r->bytes, w.bytes);
	REQUIRE_OK(table_open(r, STR(""), NULL, &t, &damaged, &err), &err);
	CHECK_OK(table_get(t, STR("key9"), &b, &err), &err);
	CHECK(str_eq(buf_str(&b), value_of(9, 81)));
	/* Cut off while it is open. */
	REQUIRE(truncate(path, 100) == 0);
	snprintf(want, sizeof(want), "%s: ends before the 126 bytes at 0", path);
	CHECK_ERR(table_get(t, STR("key1"), &b, &err), &err, ERR_CORRUPT, want);
	table_close(t);
	range_close(NULL);
	table_close(NULL);
	finish();
	buf_release(&spare);
	buf_release(&b);
}

TEST(an_empty_table)
{
	struct buf file = { 0 }, spare = { 0 };
	struct err err, damaged;
	struct table_iter *it;
	struct memory m;
	struct table *t;

	REQUIRE(make_table(small_of, 0, &file, &spare));
	m = memory_of(file.ptr, file.len);
	REQUIRE_OK(table_open(&m.r, buf_str(&spare), NULL, &t, &damaged, &err), &err);
	it = table_iter_open(t, true);
	table_iter_seek(it, STR(""));
	CHECK(!table_iter_valid(it));
	CHECK_OK(table_iter_status(it, &err), &err);
	table_iter_close(it);
	CHECK_ERR(table_get(t, STR(""), &spare, &err), &err, ERR_NOT_FOUND, "t.ldb: no such key");
	table_close(t);
	buf_release(&file);
	buf_release(&spare);
}

/* ---- damage ---- */

/* All records read were put, in order; if some are missing, the status says so. */
static void check_honest(struct table *t, bool whole, const char *what, size_t at)
{
	struct table_iter *it = table_iter_open(t, true);
	struct buf b = { 0 };
	enum err_code rc;
	struct err err;
	size_t i = 0, seen = 0;

	for (table_iter_seek(it, STR("")); table_iter_valid(it); table_iter_next(it), i++, seen++) {
		while (i < SMALL && !str_is(table_iter_key(it), small_of(i).key))
			i++;
		if (i == SMALL || !is_record(it, small_of(i), i))
			break;
	}
	if (i > SMALL || table_iter_valid(it))
		CHECK_FAIL("%s %zu: a wrong record", what, at);
	rc = table_iter_status(it, &err);
	if ((rc ? rc != ERR_CORRUPT || whole : seen != SMALL) || (rc && seen == SMALL))
		CHECK_FAIL("%s %zu: %zu records and %s", what, at, seen, err_code_name(rc));
	for (i = 0; i < SMALL; i++) {
		buf_clear(&b);
		rc = table_get(t, str_of(small_of(i).key), &b, &err);
		if (rc ? rc != ERR_CORRUPT : !str_eq(buf_str(&b), value_of(i, small_of(i).len)))
			CHECK_FAIL("%s %zu: get %zu: %s", what, at, i, err_code_name(rc));
	}
	table_iter_close(it);
	buf_release(&b);
}

static size_t next_place(size_t i)
{
	return i > 400 && i < TABLE_PAGE_BYTES ? i + 61 : i + 1; /* the large value is one page */
}

static size_t index_at(const struct buf *file, const struct buf *spare)
{
	return file->len - (spare->len - 16);
}

TEST(each_byte_flipped)
{
	struct buf file = { 0 }, spare = { 0 };
	struct err err, damaged;
	struct memory m;
	struct table *t;
	size_t end;

	REQUIRE(make_table(small_of, SMALL, &file, &spare));
	end = index_at(&file, &spare);
	for (size_t i = 0; i < file.len; i = next_place(i)) {
		file.ptr[i] ^= (char)(1 << i % 8);
		m = memory_of(file.ptr, file.len);
		REQUIRE_OK(table_open(&m.r, buf_str(&spare), NULL, &t, &damaged, &err), &err);
		CHECK_INT(damaged.code, i >= end ? ERR_CORRUPT : ERR_OK);
		CHECK(!damaged.code || str_has_prefix(str_of(damaged.msg), STR("t.ldb: ")));
		check_honest(t, i >= end, "byte", i);
		table_close(t);
		m = memory_of(file.ptr, file.len);
		if (!table_open(&m.r, STR(""), NULL, &t, &damaged, &err)) {
			check_honest(t, false, "byte without spare", i);
			table_close(t);
		} else {
			CHECK(i >= end && err.code == ERR_CORRUPT);
			CHECK(str_has_prefix(str_of(err.msg), STR("t.ldb: ")));
		}
		CHECK_INT(m.closed, 1);
		file.ptr[i] ^= (char)(1 << i % 8);
	}
	/* A damaged spare does not matter to a table, but is said. */
	for (size_t i = 0; i < spare.len; i++) {
		spare.ptr[i] ^= (char)(1 << i % 8);
		m = memory_of(file.ptr, file.len);
		REQUIRE_OK(table_open(&m.r, buf_str(&spare), NULL, &t, &damaged, &err), &err);
		CHECK_STR(str_of(damaged.msg), "t.ldb: the copy of its index page is damaged");
		check_honest(t, true, "byte of the spare", i);
		table_close(t);
		spare.ptr[i] ^= (char)(1 << i % 8);
	}
	buf_release(&file);
	buf_release(&spare);
}

TEST(each_length_cut_off)
{
	struct buf file = { 0 }, spare = { 0 };
	struct err err, damaged;
	struct memory m;
	struct table *t;
	size_t meta;

	REQUIRE(make_table(small_of, SMALL, &file, &spare));
	meta = index_at(&file, &spare) - 13; /* an empty page: one restart point, the trailer */
	for (size_t n = 0; n < file.len; n = next_place(n)) {
		char *exact = memcpy(malloc(n + 1), file.ptr, n);

		m = memory_of(exact, n);
		REQUIRE_OK(table_open(&m.r, buf_str(&spare), NULL, &t, &damaged, &err), &err);
		CHECK_INT(damaged.code, ERR_CORRUPT);
		check_honest(t, n >= meta, "length", n);
		table_close(t);
		m = memory_of(exact, n);
		CHECK_INT(table_open(&m.r, STR(""), NULL, &t, &damaged, &err), ERR_CORRUPT);
		CHECK(m.closed == 1 && m.reads <= 2);
		free(exact);
	}
	for (size_t n = 1; n < spare.len; n++) {
		m = memory_of(file.ptr, file.len - 1);
		CHECK_ERR(table_open(&m.r, (struct str){ spare.ptr, n }, NULL, &t, &damaged, &err), &err,
			ERR_CORRUPT, "t.ldb: footer: not that of a table; its copy is damaged, too");
	}
	buf_release(&file);
	buf_release(&spare);
}

TEST(what_is_said_about_damage)
{
	enum where { DATA, INDEX, FOOTER, LONGER };
	static const struct {
		enum where where;
		const char *open, *damaged, *get; /* without the spare, with it, of "key1" */
	} cases[] = {
		{ DATA, "", "", "t.ldb: block checksum mismatch" },
		{ INDEX, "t.ldb: index page: block checksum mismatch",
			"t.ldb: index page: block checksum mismatch; its copy is used", "" },
		{ FOOTER, "t.ldb: footer: not that of a table",
			"t.ldb: footer: not that of a table; its copy is used", "" },
		{ LONGER, "t.ldb: footer: not that of a table",
			"t.ldb: footer: not that of a table; its copy is used", "" },
	};
	struct buf file = { 0 }, spare = { 0 }, b = { 0 };
	struct err err, damaged;
	struct memory m;
	struct table *t;

	REQUIRE(make_table(small_of, SMALL, &file, &spare));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		size_t n = file.len + (cases[i].where == LONGER ? 10 : 0);
		size_t at = cases[i].where == DATA ? 20 :
			cases[i].where == INDEX        ? index_at(&file, &spare) + 3 :
											 file.len - 1;
		char *copy = calloc(1, n);

		memcpy(copy, file.ptr, file.len);
		copy[at] ^= cases[i].where == LONGER ? 0 : 1;
		m = memory_of(copy, n);
		err.msg[0] = '\0';
		if (!table_open(&m.r, STR(""), NULL, &t, &damaged, &err))
			table_close(t);
		CHECK_STR(str_of(err.msg), cases[i].open);
		m = memory_of(copy, n);
		REQUIRE_OK(table_open(&m.r, buf_str(&spare), NULL, &t, &damaged, &err), &err);
		CHECK_STR(str_of(damaged.msg), cases[i].damaged);
		if (table_get(t, STR("key1"), &b, &err))
			CHECK_STR(str_of(err.msg), cases[i].get);
		else
			CHECK_STR(STR(""), cases[i].get);
		table_close(t);
		free(copy);
	}
	buf_release(&file);
	buf_release(&spare);
	buf_release(&b);
}

/* A later seek over whole pages does not make it forgotten. */
TEST(an_iterator_remembers_what_it_passed_over)
{
	struct buf file = { 0 }, spare = { 0 };
	struct err err, damaged;
	struct table_iter *it;
	struct memory m;
	struct table *t;

	REQUIRE(make_table(small_of, SMALL, &file, &spare));
	file.ptr[1000] ^= 1; /* the large value, key5 */
	m = memory_of(file.ptr, file.len);
	REQUIRE_OK(table_open(&m.r, buf_str(&spare), NULL, &t, &damaged, &err), &err);
	it = table_iter_open(t, false);
	table_iter_seek(it, STR("key1"));
	CHECK_OK(table_iter_status(it, &err), &err);
	table_iter_seek(it, STR("key5"));
	CHECK_STR(table_iter_key(it), "key6");
	for (int i = 0; i < 3; i++) {
		CHECK_ERR(table_iter_status(it, &err), &err, ERR_CORRUPT, "t.ldb: block checksum mismatch");
		table_iter_seek(it, STR("key7"));
		CHECK_STR(table_iter_key(it), "key7");
	}
	table_iter_seek(it, STR("keyz"));
	CHECK(!table_iter_valid(it));
	CHECK_INT(table_iter_status(it, &err), ERR_CORRUPT);
	table_iter_close(it);
	table_close(t);
	buf_release(&file);
	buf_release(&spare);
}

TEST(reads_that_fail)
{
	struct buf file = { 0 }, spare = { 0 }, b = { 0 };
	struct err err, damaged;
	struct table_iter *it;
	struct memory m;
	struct table *t;

	REQUIRE(make_table(small_of, SMALL, &file, &spare));
	for (int from = 1; from <= 2; from++) {
		m = memory_of(file.ptr, file.len);
		m.fail_from = from;
		CHECK_ERR(table_open(&m.r, STR(""), NULL, &t, &damaged, &err), &err, ERR_IO,
			"t.ldb: no reading today");
		CHECK_INT(m.closed, 1);
		m = memory_of(file.ptr, file.len);
		m.fail_from = from;
		REQUIRE_OK(table_open(&m.r, buf_str(&spare), NULL, &t, &damaged, &err), &err);
		CHECK_INT(damaged.code, ERR_IO);
		CHECK_STR(str_of(damaged.msg), "t.ldb: no reading today; its copy is used");
		m.fail_from = 0;
		check_honest(t, true, "read", (size_t)from);
		m.fail_from = 1;
		CHECK_ERR(table_get(t, STR("key1"), &b, &err), &err, ERR_IO, "t.ldb: no reading today");
		it = table_iter_open(t, true);
		table_iter_seek(it, STR(""));
		CHECK(!table_iter_valid(it));
		CHECK_ERR(table_iter_status(it, &err), &err, ERR_IO, "t.ldb: no reading today");
		table_iter_close(it);
		table_close(t);
	}
	buf_release(&file);
	buf_release(&spare);
	buf_release(&b);
}

TEST(what_is_expected_is_the_pages_from_one_key_to_the_other)
{
	struct buf file = { 0 }, spare = { 0 };
	struct err err, damaged;
	uint64_t from, to;
	struct memory m;
	struct table *t;

	REQUIRE(make_table(record_of, 1000, &file, &spare));
	m = memory_of(file.ptr, file.len);
	REQUIRE_OK(table_open(&m.r, STR(""), NULL, &t, &damaged, &err), &err);
	from = table_offset(t, STR("k0000600"));
	to = table_offset(t, STR("k0001200"));
	REQUIRE(from < to);
	table_expect(t, STR("k0000600"), STR("k0001200"), 0);
	CHECK_INT(m.expected_from, from);
	CHECK_INT(m.expected_n, to - from);
	table_expect(t, STR("k0000600"), STR("k0001200"), 77);
	CHECK_INT(m.expected_n, to - from + 77);
	table_expect(t, STR("k0000600"), STR("k0001200"), UINT64_C(1) << 40); /* to the end at most */
	CHECK_INT(m.expected_n, file.len - from);
	m.expected_n = 5;
	table_expect(t, STR("k0001200"), STR("k0000600"), 0); /* nothing */
	CHECK_INT(m.expected_n, 5);
	CHECK_INT(m.reads, 2);
	table_close(t);
	buf_release(&file);
	buf_release(&spare);
}

TEST(a_file_may_be_expected_or_not)
{
	struct range_reader *r = NULL, none;
	char bytes[8] = { 0 };
	struct err err;

	scratch();
	CHECK_OK(fs_write_file(&fs_posix, path, (struct str){ "12345678", 8 }, &err), &err);
	REQUIRE_OK(range_open_file(path, &r, &err), &err);
	range_expect(r, 0, 100);
	range_expect(r, 100, 1);
	range_expect(r, 3, 0);
	CHECK_OK(r->ops->read(r, 4, 4, bytes, &err), &err);
	CHECK(!memcmp(bytes, "5678", 4));
	none = (struct range_reader){ &(struct range_ops){ NULL, NULL, NULL }, 8, "" };
	range_expect(&none, 0, 8);
	range_close(r);
	finish();
}
