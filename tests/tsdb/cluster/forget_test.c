/* A shard whose old blocks are in the bucket alone comes back, and the caretaker has dropped them.
 */
#include "base/clock.h"
#include "tests/tsdb/cluster/shard_world.h"
#include "tsdb/cluster/caretaker.h"

#define NEVER (1000 * NS_PER_HOUR)

/* Another shard that has rows until then. */
static void other_shard(int newest_s)
{
	struct manifest_block b = { .min_ns = (T0 + newest_s - 10) * SEC,
		.max_ns = (T0 + newest_s) * SEC,
		.level = 1,
		.rollups = { 1, 1 },
		.spare = { 1, 1 },
		.meta = { 1, 1 } };
	struct manifest m = {
		.shard = STR("b"),
			.owner = STR("0123456789abcdef0123456789abcdef"),
				.session = STR("0123456789abcdef0123456789abcdef"),
					.host = STR("b"), .interval_ns = NS_PER_S, .blocks = &b, .blocks_n = 1 };
	struct buf text = { 0 };

	REQUIRE(ulid_parse(STR("01ARZ3NDEKTSV4RRFFQ69G5FAV"), &b.ulid));
	manifest_print(&text, &m);
	fake_put(&fake, "p/q/shards/b/manifest", buf_str(&text));
	buf_release(&text);
}

static void care(struct caretaker_options with, unsigned rounds)
{
	struct caretaker *c;

	with.bucket = bucket;
	with.abandoned_ns = with.lease_ns = NEVER;
	with.delete_delay_ns = with.poll_ns = 1;
	with.no_probe = with.no_thread = true;
	REQUIRE_OK(caretaker_open(&with, &c, &err), &err);
	for (unsigned i = 0; i < rounds; i++)
		CHECK_OK(caretaker_round(c, &err), &err);
	caretaker_close(c);
}

static void check_no_loss(const char *layout)
{
	struct arena a;
	struct loss *v;
	size_t n = 1;

	arena_init(&a, 0);
	CHECK_OK(db_losses(t.f.db, &a, &v, &n, &err), &err);
	CHECK_INT(n, 0);
	arena_release(&a);
	CHECK_INT(t.f.db->unreadable_n, 0);
	CHECK_LAYOUT(&t, layout);
}

/* The two oldest blocks are in the bucket alone; the shard has stopped. */
static bool stopped_shard(void)
{
	if (!open_world())
		return false;
	o.local_retention_ns = 15 * SEC;
	o.delete_delay_ns = 1;
	if (!start())
		return false;
	fill(0, 60);
	town_compact(&t);
	settle();
	CHECK_INT(shard_swap(s, (T0 + 36) * SEC), 2);
	settle();
	stop();
	return true;
}

TEST(dropped_by_age)
{
	REQUIRE(stopped_shard());
	other_shard(1000);
	care((struct caretaker_options){ .retention_ns = 975 * SEC }, 4);
	REQUIRE(start());
	town_forget_until(&t, T0 + 20);
	check_no_loss("1 head head head");
	TOWN_CHECK(&t, "came back");
	settle();
	crash();
	REQUIRE(start()); /* once is enough */
	check_no_loss("1 head head head");
	TOWN_CHECK(&t, "again");
	close_world();
}

TEST(dropped_by_size)
{
	REQUIRE(stopped_shard());
	care((struct caretaker_options){ .retention_bytes = 1 }, 2);
	REQUIRE(start());
	town_forget_until(&t, T0 + 20);
	check_no_loss("1 head head head");
	TOWN_CHECK(&t, "came back");
	settle(); /* what it has is put again */
	CHECK(fake_find(&fake, "p/q/shards/a/manifest") != NULL);
	CHECK_INT(shard_swap(s, (T0 + 1000) * SEC), 1);
	TOWN_CHECK(&t, "in the bucket again");
	close_world();
}

/* What the manifest lacks for another reason stays, and is a loss where it cannot be read. */
TEST(not_dropped)
{
	struct buf text = { 0 };
	struct manifest m;
	struct arena a;

	REQUIRE(stopped_shard());
	arena_init(&a, 0);
	REQUIRE_OK(manifest_get(bucket, STR("shards/a/manifest"), &a, &m, NULL, &err), &err);
	m.blocks++;
	m.blocks_n--;
	m.dropped_ns = m.blocks[0].max_ns - 11 * SEC;
	manifest_print(&text, &m);
	fake_put(&fake, "p/q/shards/a/manifest", buf_str(&text));
	REQUIRE(start());
	CHECK_LAYOUT(&t, "1 1 1 head head head");
	TOWN_CHECK(&t, "all are there");
	arena_release(&a);
	buf_release(&text);
	close_world();
}
