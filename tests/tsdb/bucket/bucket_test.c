/* Objects: put, get, head, delete, list, conditions, names; against the fake store. */
#include <unistd.h>

#include "base/clock.h"
#include "tests/tsdb/bucket/world.h"

TEST(object_comes_back_as_it_was_put)
{
	struct bucket_info info;
	struct buf got = { 0 };
	char etag[BUCKET_ETAG_BYTES_MAX], want[96];

	REQUIRE(world_start());
	snprintf(want, sizeof(want), "http://127.0.0.1:%u/b/p/q", fake.server.port);
	CHECK_STR(bucket_name(b), want);
	CHECK_OK(bucket_put(
		b, STR("a b+c/%41\xc3\xa9(x).txt"), STR("hello"), BUCKET_ANY, NULL, etag, &err), &err);
	CHECK(fake_find(&fake, "p/q/a b+c/%41\xc3\xa9(x).txt") != NULL);
	CHECK_STR(str_of(etag), "\"5d41402abc4b2a76b9719d911017c592\"");
	CHECK_OK(
		bucket_get(b, STR("a b+c/%41\xc3\xa9(x).txt"), 0, BUCKET_TO_END, &got, &info, &err), &err);
	CHECK_STR(buf_str(&got), "hello");
	CHECK_INT(info.bytes, 5);
	CHECK_STR(str_of(info.etag), etag);
	CHECK_INT(info.modified_ns / NS_PER_S, 1795395723);
	CHECK_OK(bucket_head(b, STR("a b+c/%41\xc3\xa9(x).txt"), &info, &err), &err);
	CHECK_INT(info.bytes, 5);
	CHECK_OK(bucket_delete(b, STR("a b+c/%41\xc3\xa9(x).txt"), &err), &err);
	CHECK_OK(bucket_delete(b, STR("a b+c/%41\xc3\xa9(x).txt"), &err), &err);
	buf_release(&got);
	world_stop();
}

TEST(empty_object)
{
	struct bucket_info info;
	struct buf got = { 0 };

	REQUIRE(world_start());
	CHECK_OK(put_text("e", ""), &err);
	CHECK_OK(bucket_get(b, STR("e"), 0, BUCKET_TO_END, &got, &info, &err), &err);
	CHECK_INT(got.len, 0);
	CHECK_INT(info.bytes, 0);
	CHECK_ERR(bucket_get(b, STR("e"), 0, 1, &got, &info, &err), &err, ERR_INVALID,
		"bucket b: get p/q/e: the range begins behind the object's end");
	buf_release(&got);
	world_stop();
}

TEST(ranges)
{
	static const struct {
		uint64_t offset, len;
		const char *want;
	} rows[] = {
		{ 0, 1, "0" },
		{ 3, 4, "3456" },
		{ 8, 100, "89" },
		{ 9, BUCKET_TO_END, "9" },
		{ 0, 10, "0123456789" },
	};
	struct bucket_info info;
	struct buf got = { 0 };

	REQUIRE(world_start());
	CHECK_OK(put_text("r", "0123456789"), &err);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		buf_clear(&got);
		CHECK_OK(bucket_get(b, STR("r"), rows[i].offset, rows[i].len, &got, &info, &err), &err);
		CHECK_STR(buf_str(&got), rows[i].want);
		CHECK_INT(info.bytes, 10);
	}
	CHECK_OK(bucket_get(b, STR("r"), 0, 2, &got, NULL, &err), &err); /* appended */
	CHECK_STR(buf_str(&got), "012345678901");
	CHECK_ERR(bucket_get(b, STR("r"), 10, 1, &got, NULL, &err), &err, ERR_INVALID,
		"bucket b: get p/q/r: the range begins behind the object's end");
	fake.ignores_ranges = true;
	CHECK_ERR(bucket_get(b, STR("r"), 1, 1, &got, NULL, &err), &err, ERR_UNSUPPORTED,
		"bucket b: get p/q/r: the store ignores ranges");
	buf_release(&got);
	world_stop();
}

TEST(what_is_not_there)
{
	struct bucket_info info;
	struct buf got = { 0 };

	REQUIRE(world_start());
	CHECK_ERR(get_text("no", &got), &err, ERR_NOT_FOUND, "bucket b: get p/q/no: no such object");
	CHECK_ERR(bucket_head(b, STR("no"), &info, &err), &err, ERR_NOT_FOUND,
		"bucket b: head p/q/no: no such object");
	CHECK_INT(atomic_load(&fake.requests), 2);
	world_stop();
}

TEST(conditions)
{
	char etag[BUCKET_ETAG_BYTES_MAX], other[BUCKET_ETAG_BYTES_MAX];
	struct buf got = { 0 };

	REQUIRE(world_start());
	CHECK_ERR(bucket_put(b, STR("c"), STR("0"), BUCKET_IF_ETAG, "\"x\"", NULL, &err), &err,
		ERR_EXISTS, "bucket b: put p/q/c: no such object");
	CHECK_OK(bucket_put(b, STR("c"), STR("1"), BUCKET_IF_ABSENT, NULL, etag, &err), &err);
	CHECK_ERR(bucket_put(b, STR("c"), STR("2"), BUCKET_IF_ABSENT, NULL, NULL, &err), &err,
		ERR_EXISTS, "bucket b: put p/q/c: the condition does not hold");
	CHECK_OK(bucket_put(b, STR("c"), STR("3"), BUCKET_IF_ETAG, etag, other, &err), &err);
	CHECK_ERR(bucket_put(b, STR("c"), STR("4"), BUCKET_IF_ETAG, etag, NULL, &err), &err, ERR_EXISTS,
		"bucket b: put p/q/c: the condition does not hold");
	CHECK_OK(bucket_put(b, STR("c"), STR("5"), BUCKET_IF_ETAG, other, NULL, &err), &err);
	/* The very bytes that are there are somebody else's all the same. */
	CHECK_INT(bucket_put(b, STR("c"), STR("5"), BUCKET_IF_ABSENT, NULL, NULL, &err), ERR_EXISTS);
	CHECK_OK(get_text("c", &got), &err);
	CHECK_STR(buf_str(&got), "5");
	buf_release(&got);
	world_stop();
}

/* A store that wants ETags without quotes shows it at the first condition that should have held. */
TEST(conditions_of_bare_etags)
{
	char etag[BUCKET_ETAG_BYTES_MAX], other[BUCKET_ETAG_BYTES_MAX];

	REQUIRE(world_start());
	fake.bare_etags = true;
	CHECK_OK(bucket_put(b, STR("c"), STR("1"), BUCKET_IF_ABSENT, NULL, etag, &err), &err);
	CHECK_OK(bucket_put(b, STR("c"), STR("2"), BUCKET_IF_ETAG, etag, other, &err), &err);
	CHECK_INT(atomic_load(&fake.requests), 4); /* put; put, head, put */
	CHECK_ERR(bucket_put(b, STR("c"), STR("3"), BUCKET_IF_ETAG, etag, NULL, &err), &err, ERR_EXISTS,
		"bucket b: put p/q/c: the condition does not hold");
	CHECK_OK(bucket_put(b, STR("c"), STR("4"), BUCKET_IF_ETAG, other, NULL, &err), &err);
	CHECK_INT(atomic_load(&fake.requests), 7);
	CHECK_OK(bucket_probe(b, &err), &err);
	world_stop();
}

TEST(keys)
{
	static const struct {
		struct str key;
		const char *msg;
	} rows[] = {
		{ STR(""), "key \"\" has an empty part, or \".\" or \"..\"" },
			{ STR("/a"), "key \"/a\" has an empty part, or \".\" or \"..\"" },
				{ STR("a//b"), "key \"a//b\" has an empty part, or \".\" or \"..\"" },
					{ STR("a/"), "key \"a/\" has an empty part, or \".\" or \"..\"" },
						{ STR("a/../b"), "key \"a/../b\" has an empty part, or \".\" or \"..\"" },
							{ STR("./b"), "key \"./b\" has an empty part, or \".\" or \"..\"" },
								{ STR("a\nb"), "key with a control character" },
									{ STR("a\0b"), "key with a control character" },
										{ STR("\xff"), "key is not UTF-8" },
									};
	char text[BUCKET_KEY_BYTES_MAX + 2];
	struct buf got = { 0 };

	REQUIRE(world_start());
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_ERR(
			bucket_get(b, rows[i].key, 0, 1, &got, NULL, &err), &err, ERR_INVALID, rows[i].msg);
	memset(text, 'k', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	CHECK_ERR(put_text(text, "x"), &err, ERR_INVALID, "key of 513 bytes, limit 512");
	text[BUCKET_KEY_BYTES_MAX] = '\0';
	CHECK_OK(put_text(text, "x"), &err);
	CHECK_OK(get_text(text, &got), &err);
	buf_release(&got);
	world_stop();
}

TEST(configuration)
{
	static const struct {
		struct str endpoint, bucket, prefix;
		const char *msg;
	} rows[] = {
		{ STR("ftp://h"), STR("b"), STR(""), NULL },
			{ STR("http://"), STR("b"), STR(""), NULL },
				{ STR("http://h?a"),
					STR("b"),
						STR(""),
							"bucket: endpoint: a query, a fragment or a \"%\" cannot be in it" },
					{ STR("http://h"),
						STR(""),
							STR(""),
								"bucket: a bucket name is missing, too long or begins with \".\"" },
						{ STR("http://h"),
							STR("a/b"), STR(""), "bucket: bucket name with a \"/\"" },
							{ STR("http://h"),
								STR("b"),
									STR("a//b"),
										"bucket: prefix \"a//b\" has an empty part, or \".\" or "
										"\"..\"" },
							};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		config = (struct bucket_config){
			.endpoint = rows[i].endpoint, .bucket = rows[i].bucket, .prefix = rows[i].prefix
		};
		CHECK_INT(bucket_open(&config, &b, &err), ERR_INVALID);
		if (rows[i].msg)
			CHECK_STR(str_of(err.msg), rows[i].msg);
	}
	b = NULL;
}

/* "localhost" and all names below it are this machine. */
TEST(virtual_hosts)
{
	char endpoint[64], want[64];

	REQUIRE(world_fake());
	snprintf(endpoint, sizeof(endpoint), "http://LocalHost:%u/b/", fake.server.port);
	config.endpoint = str_of(endpoint);
	config.bucket = STR("My.bucket");
	config.virtual_host = true;
	REQUIRE_OK(bucket_open(&config, &b, &err), &err);
	CHECK_OK(put_text("k", "x"), &err);
	snprintf(want, sizeof(want), "\r\nHost: my.bucket.localhost:%u\r\n", fake.server.port);
	CHECK(strstr(fake.last_head, want) != NULL);
	CHECK(fake_find(&fake, "p/q/k") != NULL);
	bucket_close(b);
	config.bucket = STR("B");
	config.virtual_host = false;
	config.prefix = STR("");
	REQUIRE_OK(bucket_open(&config, &b, &err), &err);
	CHECK_OK(put_text("k", "x"), &err); /* a path before the bucket */
	CHECK(fake_find(&fake, "B/k") != NULL);
	world_stop();
}

/* ---- lists ---- */

static enum err_code add_key(void *ctx, const struct bucket_object *o, struct err *e)
{
	struct buf *out = ctx;

	buf_printf(out, STR_FMT, STR_ARG(o->key));
	if (!o->is_prefix)
		buf_printf(out, ":%d", (int)o->info.bytes);
	buf_add_char(out, ' ');
	return ERR_OK;
}

static enum err_code stop_at_b(void *ctx, const struct bucket_object *o, struct err *e)
{
	return str_is(o->key, "b") ? err_set(e, ERR_CANCELED, "enough") : add_key(ctx, o, e);
}

TEST(lists)
{
	static const struct {
		const char *prefix, *delimiter, *after, *want;
	} rows[] = {
		{ "", "", "", "a:1 b:2 d&<e>:0 d/1:1 d/2:1 d/f/3:1 e:1 " },
		{ "", "/", "", "a:1 b:2 d&<e>:0 d/ e:1 " },
		{ "d/", "", "", "d/1:1 d/2:1 d/f/3:1 " },
		{ "d/", "/", "", "d/1:1 d/2:1 d/f/ " },
		{ "d", "/", "", "d&<e>:0 d/ " },
		{ "", "", "b", "d&<e>:0 d/1:1 d/2:1 d/f/3:1 e:1 " },
		{ "d/", "", "d/1", "d/2:1 d/f/3:1 " },
		{ "x", "", "", "" },
	};
	static const char *const keys[] = { "e", "d/2", "d/f/3", "d/1", "d&<e>", "a", "b" };
	struct buf got = { 0 };

	REQUIRE(world_start());
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		CHECK_OK(put_text(keys[i], i == 4 ? "" : i == 6 ? "xx" : "x"), &err);
	fake_put(&fake, "p/other", STR("x"));
	for (unsigned page = 0; page < 4; page++) {
		fake.page_objects = page;
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			buf_clear(&got);
			CHECK_OK(bucket_list(b, str_of(rows[i].prefix), str_of(rows[i].delimiter),
						 str_of(rows[i].after), add_key, &got, &err),
				&err);
			CHECK_STR(buf_str(&got), rows[i].want);
		}
	}
	buf_clear(&got);
	CHECK_ERR(bucket_list(
		b, STR(""), STR(""), STR(""), stop_at_b, &got, &err), &err, ERR_CANCELED, "enough");
	CHECK_STR(buf_str(&got), "a:1 ");
	buf_release(&got);
	world_stop();
}

/* ---- the probe ---- */

TEST(probe)
{
	char want[256];

	REQUIRE(world_start());
	CHECK_OK(bucket_probe(b, &err), &err);
	fake.ignores_conditions = true;
	snprintf(want, sizeof(want),
		"probe of http://127.0.0.1:%u/b/p/q: the store ignores If-None-Match on puts: several "
		"servers "
		"must not share this bucket",
		fake.server.port);
	CHECK_ERR(bucket_probe(b, &err), &err, ERR_UNSUPPORTED, want);
	fake.ignores_conditions = false;
	fake.no_meta = true;
	CHECK_OK(bucket_probe(b, &err), &err);
	fake.other_etags = true;
	CHECK_OK(bucket_probe(b, &err), &err);
	for (size_t i = 0; i < FAKE_OBJECTS_MAX; i++)
		CHECK(!fake.objects[i].used); /* nothing stays */
	fake.ahead_s = 600;
	CHECK_INT(bucket_probe(b, &err), ERR_UNAVAILABLE);
	CHECK(
		strstr(err.msg, "our clock is slow by 9m") || strstr(err.msg, "our clock is slow by 10m"));
	world_stop();
}

/* ---- large files ---- */

static int file_of(size_t n)
{
	char path[] = "/tmp/epi-bucket-XXXXXX";
	int fd = mkstemp(path);

	unlink(path);
	for (size_t i = 0; i < n; i++) {
		char c = (char)(i * 31 % 251);

		if (write(fd, &c, 1) != 1)
			return -1;
	}
	return fd;
}

static void check_file(const char *key, size_t n)
{
	struct buf got = { 0 };

	CHECK_OK(get_text(key, &got), &err);
	CHECK_INT(got.len, n);
	for (size_t i = 0; i < got.len; i++)
		if (got.ptr[i] != (char)(i * 31 % 251)) {
			CHECK_FAIL("byte %zu", i);
			break;
		}
	buf_release(&got);
}

TEST(files)
{
	static const size_t sizes[] = { 0, 1, 1000, 1001, 2000, 2500 };

	REQUIRE(world_fake());
	config.part_bytes = 1000;
	REQUIRE_OK(bucket_open(&config, &b, &err), &err);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		int fd = file_of(sizes[i]);

		struct bucket_info info;

		CHECK_OK(bucket_put_file(b, STR("f"), fd, &err), &err);
		check_file("f", sizes[i]);
		CHECK_OK(bucket_head(b, STR("f"), &info, &err), &err);
		CHECK_INT(info.bytes, sizes[i]);
		CHECK_INT(strlen(info.hash), BUCKET_HASH_LEN);
		close(fd);
	}
	CHECK_INT(fake.uploads, 3);
	CHECK_INT(fake.aborts, 0);
	world_stop();
}

TEST(upload_in_parts_that_fails_is_removed)
{
	int fd = file_of(2500);

	REQUIRE(world_fake());
	config.part_bytes = 1000;
	config.attempts_max = 3;
	REQUIRE_OK(bucket_open(&config, &b, &err), &err);
	fake_fault(
		&fake, (struct fake_fault){ FAULT_STATUS, "partNumber=2", 3, 500, "InternalError", NULL });
	CHECK_ERR(bucket_put_file(b, STR("f"), fd, &err), &err, ERR_UNAVAILABLE,
		"bucket b: put_part p/q/f: after 3 attempts: the store answers 500 InternalError: a & b");
	CHECK_INT(fake.aborts, 1);
	CHECK(!fake_find(&fake, "p/q/f"));
	/* the answer to the end is lost: the parts are joined all the same */
	fake_fault(&fake, (struct fake_fault){ FAULT_RESET_LATER, "POST /b/p/q/f?uploadId", 1 });
	CHECK_OK(bucket_put_file(b, STR("f"), fd, &err), &err);
	check_file("f", 2500);
	CHECK_INT(fake.aborts, 1);
	close(fd);
	world_stop();
}

TEST(upload_whose_end_fails_in_an_answer_200)
{
	int fd = file_of(2500);

	REQUIRE(world_fake());
	config.part_bytes = 1000;
	REQUIRE_OK(bucket_open(&config, &b, &err), &err);
	fake_fault(&fake,
		(struct fake_fault){
			FAULT_STATUS, "POST /b/p/q/f?uploadId", 1, 200, "InternalError", NULL });
	CHECK_OK(bucket_put_file(b, STR("f"), fd, &err), &err);
	check_file("f", 2500);
	close(fd);
	world_stop();
}

/* The hash of the whole is kept with it, also where parts were joined. */
TEST(large_file_that_is_damaged)
{
	struct buf got = { 0 };
	int fd = file_of(2500);

	REQUIRE(world_fake());
	config.part_bytes = 1000;
	config.attempts_max = 2;
	REQUIRE_OK(bucket_open(&config, &b, &err), &err);
	CHECK_OK(bucket_put_file(b, STR("f"), fd, &err), &err);
	fake_fault(&fake, (struct fake_fault){ FAULT_DAMAGE, "GET", 2 });
	CHECK_ERR(get_text("f", &got), &err, ERR_CORRUPT,
		"bucket b: get p/q/f: after 2 attempts: its SHA-256 is not that of what was put");
	close(fd);
	world_stop();
}

TEST(foreign_objects_have_no_hash)
{
	struct bucket_info info;

	REQUIRE(world_start());
	fake_put(&fake, "p/q/k", STR("x"));
	CHECK_OK(bucket_head(b, STR("k"), &info, &err), &err);
	CHECK_STR(str_of(info.hash), "");
	snprintf(fake_find(&fake, "p/q/k")->hash, 80, "%064X", 0xabcu); /* of another program */
	CHECK_OK(bucket_head(b, STR("k"), &info, &err), &err);
	CHECK_STR(str_of(info.hash), "");
	world_stop();
}
