/*
 * A bucket of a program that went on in another directory. older_bucket.txt is one, as that program
 * wrote it: the shard has rows of the first 25 seconds and of the 55th to 60th, and entries of
 * another directory that are `apart`: its rows of 0 to 55, in three blocks and three windows. What
 * that program showed is shown; what it hid is named.
 */
#include <inttypes.h>
#include <openssl/evp.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "tests/tsdb/cluster/shard_world.h"
#include "tsdb/cluster/cluster.h"
#include "tsdb/lists/losses.h"

#define ROWS 6
#define HIDDEN 6

/* ---- the bucket ---- */

/* A line each: the key behind shards/a/, and the bytes in base64. */
static bool put_older(void)
{
	struct buf text = { 0 }, key = { 0 };
	unsigned char *bytes;
	struct str rest;
	int n;

	if (fs_read_file("tests/tsdb/cluster/older_bucket.txt", 1 << 20, &text, &err))
		return false;
	rest = buf_str(&text);
	while (rest.len) { /* a line each turn */
		const char *space = memchr(rest.ptr, ' ', rest.len),
				   *end = memchr(rest.ptr, '\n', rest.len);
		int len = (int)(end - space - 1);

		buf_clear(&key);
		buf_printf(&key, "p/q/shards/a/%.*s%c", (int)(space - rest.ptr), rest.ptr, '\0');
		bytes = malloc((size_t)len + 4);
		n = EVP_DecodeBlock(bytes, (const unsigned char *)space + 1, len);
		n -= (end[-1] == '=') + (end[-2] == '=');
		fake_put(&fake, key.ptr, (struct str){ (char *)bytes, (size_t)n });
		free(bytes);
		rest.len -= (size_t)(end + 1 - rest.ptr);
		rest.ptr = end + 1;
	}
	buf_release(&text);
	buf_release(&key);
	return true;
}

/* ---- what is shown, and what is told ---- */

static bool add_row(void *ctx, const struct db_series *series, const struct db_row *row)
{
	(void)series;
	(void)row;
	++*(size_t *)ctx;
	return true;
}

static size_t rows_of(struct db *db)
{
	size_t n = 0, warnings = 0;

	if (!rows_each(db, 0, INT64_MAX - 1, add_row, &n, &warnings, &err))
		CHECK_FAIL("rows: %s", err.msg);
	return n;
}

static void add_told(void *to, const char *text)
{
	if (str_find(str_of(text), STR("not shown")) >= 0)
		buf_printf(to, "%s\n", text);
}

static const char told[] =
	"shard a: profiles between 1970-01-13T12:00:00.000Z and 1970-01-13T12:00:30.000Z that the "
	"shard "
	"lost or that another data directory had are in the bucket and not shown\n"
	"shard a: profiles between 1970-01-13T12:00:30.000Z and 1970-01-13T12:01:00.000Z that the "
	"shard "
	"lost or that another data directory had are in the bucket and not shown\n";

static void check_older_node(const char *what)
{
	struct follower_options fo = {
		.bucket = bucket, .remote = remote_source(remote), .shard = "a"
	};
	struct follower *q = NULL;
	struct buf text = { 0 };
	char dir[96];

	snprintf(dir, sizeof(dir), "%s.follower", t.f.dir);
	fo.dir = dir;
	db_options_default(&fo.db);
	REQUIRE_OK(follower_open(&fo, &q, &err), &err);
	CHECK_OK(follower_round(q, &err), &err);
	if (rows_of(follower_db(q)) != ROWS)
		CHECK_FAIL("%s: %zu rows", what, rows_of(follower_db(q)));
	follower_tell(q, 0, INT64_MAX, add_told, &text);
	CHECK_STR(buf_str(&text), told);
	buf_clear(&text);
	follower_tell(q, (T0 + 60) * SEC, INT64_MAX, add_told, &text);
	CHECK_STR(buf_str(&text), "");
	buf_release(&text);
	follower_close(q);
}

/* Losses of what is passed over. */
static bool count_loss(void *ctx, const struct loss *l)
{
	*(size_t *)ctx += str_find(l->text, STR("it stays in the bucket")) > 0;
	return true;
}

static void check_shard(const char *what)
{
	size_t n = 0;

	if (rows_of(t.f.db) != ROWS)
		CHECK_FAIL("%s: %zu rows", what, rows_of(t.f.db));
	losses_each(t.f.db->losses, 0, LOSS_END, count_loss, &n);
	CHECK_INT(n, HIDDEN);
}

static void check_entries(uint32_t windows, uint32_t blocks)
{
	uint32_t apart = 0;

	REQUIRE(look_in_bucket());
	CHECK_INT(in_bucket.windows_n, windows);
	CHECK_INT(in_bucket.blocks_n, blocks);
	for (uint32_t i = 0; i < in_bucket.windows_n; i++)
		apart += in_bucket.windows[i].kept && in_bucket.windows[i].apart;
	for (uint32_t i = 0; i < in_bucket.blocks_n; i++)
		apart += in_bucket.blocks[i].kept && in_bucket.blocks[i].apart;
	CHECK_INT(apart, HIDDEN);
}

TEST(a_bucket_of_an_older_program)
{
	REQUIRE(open_world());
	REQUIRE(put_older());
	check_older_node("as it was");
	REQUIRE(start());
	check_shard("restored");
	settle();
	check_entries(7, 3);
	check_older_node("taken over");
	crash();
	REQUIRE(start());
	settle();
	check_shard("the same directory");
	crash();
	REQUIRE(wipe());
	REQUIRE(start());
	check_shard("restored again");
	settle();
	check_entries(7, 3);
	check_older_node("restored again");
	close_world();
}

/* They leave the bucket by retention, as all else. */
TEST(what_is_hidden_goes_when_it_is_too_old)
{
	REQUIRE(open_world());
	REQUIRE(put_older());
	o.db.retention_ns = 100 * SEC;
	REQUIRE(start());
	fill(155, 175);
	town_compact(&t);
	settle();
	REQUIRE(look_in_bucket());
	for (uint32_t i = 0; i < in_bucket.windows_n; i++)
		CHECK(!in_bucket.windows[i].apart);
	for (uint32_t i = 0; i < in_bucket.blocks_n; i++)
		CHECK(!in_bucket.blocks[i].apart || in_bucket.blocks[i].max_ns > (T0 + 75) * SEC);
	CHECK(in_bucket.windows_n > 0);
	t.n = 0;
	close_world();
}

/* ---- a shard that is still run by such a program ---- */

static void change_manifest(const char *from, const char *to)
{
	struct fake_object *object = fake_find(&fake, "p/q/shards/a/manifest");
	struct str was = buf_str(&object->bytes);
	ptrdiff_t at = str_find(was, str_of(from)), sum = str_find(was, STR("\"checksum\""));
	struct buf text = { 0 };

	if (at < 0 || sum < 0) {
		CHECK_FAIL("not in the manifest: %s", from);
		return;
	}
	buf_add(&text, was.ptr, (size_t)at);
	buf_add_cstr(&text, to);
	buf_add(&text, was.ptr + at + strlen(from), (size_t)(sum - at) - strlen(from));
	buf_printf(&text, "\"checksum\":\"%016" PRIx64 "\"}\n", hash_bytes(text.ptr, text.len, 0));
	fake_put(&fake, "p/q/shards/a/manifest", buf_str(&text));
	buf_release(&text);
}

/* The second follower has its own folder, and the first one's is gone. */
static bool read_anew(const char *dir)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/a/2", dir);
	return fs_exists(path);
}

/* It went on in another directory: what a query node has learned of the shard means nothing now. */
TEST(a_shard_goes_on_in_another_directory)
{
	struct cluster_options co = { .poll_ns = 20 * NS_PER_MS, .workers = 2 };
	struct cluster *c = NULL;
	char dir[96];

	REQUIRE(open_world());
	REQUIRE(put_older());
	snprintf(dir, sizeof(dir), "%s.cluster", t.f.dir);
	co.bucket = bucket;
	co.remote = remote_source(remote);
	co.dir = dir;
	db_options_default(&co.db);
	REQUIRE_OK(cluster_open(&co, &c, &err), &err);
	while (rows_of(cluster_db(c)) != ROWS) /* windows come after blocks */
		usleep(5000);
	change_manifest("\"lives\":1", "\"lives\":2");
	while (!read_anew(dir)) /* for as long as it takes */
		usleep(5000);
	while (rows_of(cluster_db(c)) != ROWS) /* windows come after blocks */
		usleep(5000);
	cluster_close(c);
	close_world();
}

/* It was ended before it had compared its directory with the bucket: no directory is the one. */
TEST(a_manifest_that_was_not_compared)
{
	struct buf owner = { 0 };
	char path[128];

	REQUIRE(open_world());
	REQUIRE(put_older());
	change_manifest("\"stopped\":true", "\"stopped\":true,\"uncompared\":true");
	REQUIRE(look_in_bucket());
	CHECK_STR(in_bucket.owner, "00000000000000000000000000000000");
	buf_printf(&owner, "8d44ff293cc91df824fdb2cb547366c2 %u\n", 1000000);
	CHECK_OK(fs_mkdir_all(&fs_posix, t.f.dir, &err), &err);
	snprintf(path, sizeof(path), "%s/" LEASE_OWNER_FILE, t.f.dir);
	CHECK_OK(fs_write_file(&fs_posix, path, buf_str(&owner), &err), &err);
	snprintf(path, sizeof(path), "%s/head/7", t.f.dir); /* it has data */
	CHECK_OK(fs_mkdir_all(&fs_posix, path, &err), &err);
	REQUIRE(start());
	CHECK_INT(rows_of(t.f.db), ROWS);
	CHECK(publisher_taken(shard_publisher(s))->windows_n == 7);
	snprintf(path, sizeof(path), "%s/head/7", t.f.dir);
	CHECK(!fs_exists(path)); /* it was set aside */
	buf_release(&owner);
	close_world();
}
