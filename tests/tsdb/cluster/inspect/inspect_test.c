/* What verify finds, and what a manifest made anew has. */
#include "tsdb/cluster/inspect/inspect.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "tests/check.h"
#include "tests/scratch.h"
#include "tests/tsdb/cluster/scene.h"

static struct scene s;
static struct buf findings, notes;

static void fill(int from_s, int to_s)
{
	town_fill(&s.town, 1, 1, T0 + from_s, T0 + to_s, 5);
}

static void on_finding(void *ctx, const char *line)
{
	buf_printf(&findings, "%s\n", line);
}

static void on_note(void *ctx, const char *line)
{
	buf_printf(&notes, "%s\n", line);
}

static struct inspect begin(const char *dir)
{
	buf_clear(&findings);
	buf_clear(&notes);
	return (
		struct inspect){ .bucket = s.bucket, .dir = dir, .finding = on_finding, .note = on_note };
}

static void end(void)
{
	buf_release(&findings);
	buf_release(&notes);
}

/* Two joined, one with deleted ranges, three windows; stopped, nothing is gone. */
static bool stopped_shard(void)
{
	if (!scene_open(&s))
		return false;
	s.o.delete_delay_ns = 1;
	fill(0, 60);
	town_compact(&s.town);
	if (!scene_start(&s))
		return false;
	scene_settle(&s);
	town_delete(&s.town, "job0", "i0", T0 + 12, T0 + 17);
	town_delete(&s.town, "job0", "i0", T0 + 42, T0 + 47);
	scene_settle(&s);
	scene_stop(&s);
	return true;
}
#define ALL "block 1; block 1 deleted; block 1; 30: 1-2; 40: 1-2 deleted; 50: 1-2"

static struct fake_object *object_with(const char *part)
{
	for (size_t i = 0; i < FAKE_OBJECTS_MAX; i++)
		if (s.fake.objects[i].used && str_find(buf_str(&s.fake.objects[i].key), str_of(part)) >= 0)
			return &s.fake.objects[i];
	return NULL;
}

static bool has(const struct buf *b, const char *part)
{
	bool is = str_find(buf_str(b), str_of(part)) >= 0;

	if (!is)
		printf("  \"%s\" is not in:\n" STR_FMT, part, STR_ARG(buf_str(b)));
	return is;
}

/* ---- verify ---- */

TEST(nothing_is_wrong)
{
	char dir[] = SCRATCH "epi-inspect-XXXXXX";
	struct inspect x;

	REQUIRE(scratch_dir(dir) != NULL);
	REQUIRE(stopped_shard());
	CHECK_SCENE(&s, ALL);
	for (unsigned deep = 0; deep < 2; deep++) {
		x = begin(deep ? dir : NULL);
		CHECK_OK(inspect_verify(&x, STR("a"), &s.err), &s.err);
		CHECK_STR(buf_str(&findings), "");
		CHECK_STR(buf_str(&notes), "");
		CHECK_INT(x.findings, 0);
		CHECK_INT(x.blocks, 3);
		REQUIRE(scene_look(&s));
		CHECK_INT(x.bytes, manifest_bytes(&s.m));
	}
	CHECK_INT(rmdir(dir), 0); /* copies are gone */
	end();
	SCENE_END(&s);
}

TEST(what_is_missing_or_changed_is_named)
{
	struct fake_object *o;
	struct inspect x;

	REQUIRE(stopped_shard());
	REQUIRE((o = object_with("/rollups.ldb")) != NULL);
	o->bytes.ptr[o->bytes.len / 2] ^= 1;
	o->hash[0] = '\0';
	REQUIRE((o = object_with("/spare")) != NULL);
	o->bytes.len--;
	REQUIRE((o = object_with("/head/")) != NULL);
	o->used = false;
	fake_put(&s.fake, "p/q/shards/a/files/ids-0000000000000000", STR("x"));
	x = begin(NULL);
	CHECK_OK(inspect_verify(&x, STR("a"), &s.err), &s.err);
	CHECK_INT(x.findings, 3);
	CHECK_INT(x.orphans, 1);
	CHECK(has(&findings, "/rollups.ldb: its hash is another one\n"));
	CHECK(has(&findings, " in the manifest\n"));
	CHECK(has(&findings, ": not there\n"));
	CHECK_STR(
		buf_str(&notes), "shards/a/files/ids-0000000000000000: no manifest names it (1 bytes)\n");
	end();
	SCENE_END(&s);
}

/* Bytes that are as they were put, and wrong. */
TEST(damage_from_before_the_bucket_is_found_by_reading)
{
	char dir[] = SCRATCH "epi-inspect-XXXXXX";
	struct manifest_block *b;
	struct fake_object *o;
	struct buf text = { 0 };
	struct inspect x;

	REQUIRE(scratch_dir(dir) != NULL);
	REQUIRE(stopped_shard());
	REQUIRE(scene_look(&s));
	b = &s.m.blocks[1];
	REQUIRE((o = object_with("/rollups.ldb")) != NULL);
	for (uint32_t i = 0; i < s.m.blocks_n; i++)
		if (str_find(buf_str(&o->key), str_of(s.m.blocks[i].ulid.text)) >= 0)
			b = &s.m.blocks[i];
	o->bytes.ptr[o->bytes.len / 2] ^= 1;
	o->hash[0] = '\0';
	b->rollups.hash = hash_bytes(o->bytes.ptr, o->bytes.len, 0);
	manifest_print(&text, &s.m);
	fake_put(&s.fake, "p/q/shards/a/manifest", buf_str(&text));
	x = begin(NULL);
	CHECK_OK(inspect_verify(&x, STR("a"), &s.err), &s.err);
	CHECK_INT(x.findings, 0);
	x = begin(dir);
	CHECK_OK(inspect_verify(&x, STR("a"), &s.err), &s.err);
	CHECK(x.findings > 0);
	CHECK(has(&findings, b->ulid.text));
	CHECK_INT(rmdir(dir), 0);
	buf_release(&text);
	end();
	SCENE_END(&s);
}

TEST(a_manifest_that_is_missing_or_damaged_is_a_finding)
{
	struct inspect x;

	REQUIRE(stopped_shard());
	x = begin(NULL);
	CHECK_OK(inspect_verify(&x, STR("z"), &s.err), &s.err);
	CHECK_INT(x.findings, 1);
	CHECK(has(&findings, "shards/z/manifest"));
	fake_put(&s.fake, "p/q/shards/a/manifest", STR("{}"));
	x = begin(NULL);
	CHECK_OK(inspect_verify(&x, STR("a"), &s.err), &s.err);
	CHECK_INT(x.findings, 1);
	CHECK(has(&findings, "shards/a/manifest: only 2 bytes"));
	CHECK_INT(inspect_verify(&x, STR("../a"), &s.err), ERR_INVALID);
	end();
	SCENE_END(&s);
}

TEST(a_manifest_of_another_shard_is_a_finding)
{
	struct inspect x;
	struct fake_object *a;

	REQUIRE(stopped_shard());
	a = fake_find(&s.fake, "p/q/shards/a/manifest");
	REQUIRE(a != NULL);
	fake_put(&s.fake, "p/q/shards/b/manifest", buf_str(&a->bytes));
	x = begin(NULL);
	CHECK_OK(inspect_verify(&x, STR("b"), &s.err), &s.err);
	CHECK_INT(x.findings, 1);
	CHECK(has(&findings, "shards/b/manifest: it is the manifest of shard a"));
	end();
	SCENE_END(&s);
}

/* ---- repair ---- */

static void forget_manifest(void)
{
	struct fake_object *o = fake_find(&s.fake, "p/q/shards/a/manifest");

	if (o)
		o->used = false;
}

TEST(a_lost_manifest_is_made_anew)
{
	struct inspect x;

	REQUIRE(stopped_shard());
	forget_manifest();
	x = begin(NULL);
	CHECK_OK(inspect_repair(&x, STR("a"), 20 * NS_PER_MS, &s.err), &s.err);
	CHECK_STR(buf_str(&notes), "");
	CHECK_SCENE(&s, ALL);
	REQUIRE(scene_look(&s));
	CHECK(s.m.stopped && !s.m.complete);
	CHECK_INT(s.m.through_ns, (T0 + 50) * SEC);
	scene_check_objects(&s, "repaired", true);
	scene_check_rows(&s, "repaired");
	CHECK_INT(inspect_repair(&x, STR("a"), -1, &s.err), ERR_INVALID);
	CHECK_STR(str_of(s.err.msg), "shards/a/manifest is there and can be read");
	end();
	SCENE_END(&s);
}

/* Blocks and windows that were replaced are there still, and are not taken. */
TEST(what_was_replaced_is_not_taken)
{
	struct inspect x;

	REQUIRE(scene_open(&s)); /* nothing is removed */
	fill(0, 60);
	town_compact(&s.town);
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	fill(60, 150);
	scene_settle(&s);
	town_compact(&s.town);
	scene_settle(&s);
	CHECK_SCENE(&s, "block 3; 120: 1-2; 130: 1-2; 140: 1-2");
	scene_stop(&s);
	fake_put(&s.fake, "p/q/shards/a/manifest", STR("damaged"));
	x = begin(NULL);
	CHECK_OK(inspect_repair(&x, STR("a"), -1, &s.err), &s.err);
	CHECK_SCENE(&s, "block 3; 120: 1-2; 130: 1-2; 140: 1-2");
	CHECK(has(&notes, " has replaced it\n"));
	CHECK(has(&notes, "not taken: a block has this window\n"));
	scene_check_objects(&s, "repaired", false);
	scene_check_rows(&s, "repaired");
	end();
	SCENE_END(&s);
}

TEST(what_cannot_be_taken_is_named)
{
	struct fake_object *o;
	struct inspect x;
	char path[256];

	REQUIRE(stopped_shard());
	forget_manifest();
	REQUIRE((o = object_with("/rows.ldb")) != NULL);
	o->used = false;
	snprintf(path, sizeof(path), "/head/%d-", T0 + 50);
	REQUIRE((o = object_with(path)) != NULL);
	snprintf(path, sizeof(path), STR_FMT, STR_ARG(buf_str(&o->key)));
	o->used = false;
	fake_put(&s.fake, path, STR("other bytes"));
	snprintf(path, sizeof(path), "p/q/shards/a/head/%d-0123456789abcdef/x", T0 + 90);
	fake_put(&s.fake, path, STR("x"));
	fake_put(&s.fake, "p/q/shards/a/blocks/01ARZ3NDEKTSV4RRFFQ69G5FAV/rows.ldb", STR("x"));
	fake_put(&s.fake, "p/q/shards/a/strange", STR("x"));
	x = begin(NULL);
	CHECK_OK(inspect_repair(&x, STR("a"), -1, &s.err), &s.err);
	CHECK_SCENE(&s, "block 1 deleted; block 1; 30: 1-2; 40: 1-2 deleted");
	CHECK(has(&notes, "/meta.json: not taken: rows.ldb is not there\n"));
	CHECK(has(&notes, "not taken: its hash is another one\n"));
	CHECK(has(&notes, "/x: not taken: not a key of a shard's object\n"));
	CHECK(has(
		&notes, "shards/a/blocks/01ARZ3NDEKTSV4RRFFQ69G5FAV: not taken: it has no meta.json\n"));
	CHECK(has(&notes, "shards/a/strange: not taken: not a key of a shard's object\n"));
	scene_check_objects(&s, "repaired", false);
	end();
	SCENE_END(&s);
}

/* Segments with a hole in between: what is before it is taken. */
TEST(a_gap_ends_a_window)
{
	struct inspect x;
	struct manifest_key key;

	REQUIRE(scene_open(&s));
	REQUIRE(scene_start(&s));
	for (int i = 0; i < 9; i += 2) {
		town_append(&s.town, town_labels(&s.town, "job0", "i0"), T0 + 1 + i);
		CHECK_OK(publisher_round(s.p, &s.err), &s.err);
	}
	CHECK_SCENE(&s, "0: 1-1 2-2 3-3 4-4 5-5");
	scene_stop(&s);
	REQUIRE(scene_look(&s));
	key = manifest_key_segment(s.m.shard, &s.m.windows[0], &s.m.windows[0].segments[2]);
	REQUIRE(scene_object(&s, &key) != NULL);
	scene_object(&s, &key)->used = false;
	forget_manifest();
	x = begin(NULL);
	CHECK_OK(inspect_repair(&x, STR("a"), -1, &s.err), &s.err);
	CHECK_SCENE(&s, "0: 1-1 2-2");
	CHECK(has(&notes, "not taken: batches before it are missing\n"));
	end();
	SCENE_END(&s);
}

static bool write_meanwhile(void *ctx)
{
	struct err err;

	if (publisher_round(s.p, &err))
		town_failed("%s", err.msg);
	return false;
}

TEST(a_shard_that_runs_is_not_repaired)
{
	struct inspect x;

	REQUIRE(stopped_shard());
	REQUIRE(scene_start(&s));
	scene_settle(&s);
	forget_manifest();
	x = begin(NULL);
	x.stop = write_meanwhile;
	CHECK_INT(inspect_repair(&x, STR("a"), 20 * NS_PER_MS, &s.err), ERR_EXISTS);
	CHECK_STR(str_of(s.err.msg), "shard a is in use: its manifest was written meanwhile");
	CHECK_SCENE(&s, ALL);
	end();
	SCENE_END(&s);
}
