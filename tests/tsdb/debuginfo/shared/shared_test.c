/*
 * Two members over one bucket: what one has the other gets; both halves of a binary's names become
 * one index at both; what is damaged in the bucket is not used, and healed.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "tests/tsdb/bucket/world.h"
#include "tests/wait.h"
#include "tsdb/debuginfo/index/symindex.h"
#include "tsdb/debuginfo/shared/shared.h"

#define ID "aa01"
#define KEY "p/q/symbols/gnu-" ID ".idx"

struct member {
	char dir[64];
	struct debuginfo *d;
	struct debuginfo_store *store;
	struct shared_symbols *s;
};

static bool member_open(struct member *m)
{
	struct debuginfo_service_options o = { .fs = &fs_posix, .dir = m->dir };
	struct shared_symbols_options so = {
		.bucket = b, .list_ns = 20 * NS_PER_MS, .look_ns = 5 * NS_PER_MS
	};

	if (!m->dir[0]) {
		snprintf(m->dir, sizeof(m->dir), "/tmp/epi_shared_XXXXXX");
		if (!mkdtemp(m->dir))
			abort();
	}
	if (debuginfo_service_open(&o, &m->d, &err))
		return false;
	m->store = debuginfo_store(m->d);
	so.debuginfo = m->d;
	return !shared_symbols_open(&so, &m->s, &err);
}

static void member_close(struct member *m)
{
	shared_symbols_close(m->s);
	debuginfo_service_close(m->d);
	m->s = NULL;
	m->d = NULL;
}

static void member_end(struct member *m)
{
	member_close(m);
	CHECK(!fs_remove_tree(&fs_posix, m->dir, NULL));
}

static struct debuginfo_id gnu(const char *text)
{
	struct debuginfo_id id;

	if (debuginfo_id_init(&id, DEBUGINFO_GNU, str_of(text), NULL))
		abort();
	return id;
}

/* An index with one name. */
static enum err_code build(const char *build_id, const char *name, uint64_t address,
	enum symindex_quality quality, struct buf *out)
{
	struct symindex_builder *builder;
	uint32_t function, frame;
	enum err_code rc = symindex_builder_open(&symindex_limits_default, &builder, &err);

	if (!rc)
		rc = symindex_function(builder, str_of(name), SYMINDEX_NONE, 0, &function, &err);
	if (!rc)
		rc = symindex_frame(builder, SYMINDEX_NONE, function, SYMINDEX_NONE, 7, &frame, &err);
	if (!rc)
		rc = symindex_add(builder, address, address + 0x100, frame, quality, &err);
	if (!rc)
		rc = symindex_finish(builder, str_of(build_id), out, &err);
	symindex_builder_close(builder);
	return rc;
}

/* It takes the place of what is there, as an extraction's index does. */
static bool publish(
	struct member *m, const char *name, uint64_t address, enum symindex_quality quality)
{
	const struct debuginfo_offer o = { .kind = DEBUGINFO_FULL,
		.origin = DEBUGINFO_UPLOAD,
		.path = STR("/bin/x"), .force = true };
	struct debuginfo_found found = { .quality = (enum debuginfo_quality)quality };
	struct debuginfo_id id = gnu(ID);
	struct debuginfo_job *j = NULL;
	struct buf index = { 0 };
	bool done = !build(ID, name, address, quality, &index);

	/* The member's own thread may have the key for a moment. */
	done = done &&
		WAIT_FOR(!debuginfo_job_begin(
			m->store, &id, &o, open("/dev/null", O_RDONLY | O_CLOEXEC), &j, &err)) &&
		write(j->out_fd, index.ptr, index.len) == (ssize_t)index.len &&
		!debuginfo_job_publish(j, &found, &err);
	buf_release(&index);
	return done;
}

/* "": none is known. */
static bool has_name(struct member *m, uint64_t address, const char *name)
{
	struct debuginfo_id id = gnu(ID);
	struct symindex_location v[1] = { { .name = STR("") } };
	struct debuginfo_index *x;
	struct symindex *s;
	bool is;

	if (debuginfo_open(m->store, &id, &x, &err))
		return !name[0];
	if (symindex_open(debuginfo_index_bytes(x), &s, &err))
		abort();
	(void)symindex_find(s, address, v, 1);
	is = str_is(v[0].name, name);
	symindex_close(s);
	debuginfo_index_close(x);
	return is;
}

static void want(struct member *m)
{
	struct debuginfo_id id = gnu(ID);

	debuginfo_want(m->d, &id, STR("/bin/x"));
}

static unsigned count(enum bucket_kind kind)
{
	struct bucket_usage u;

	bucket_get_usage(b, &u);
	return (unsigned)u.kinds[kind].requests;
}

/* So many lists later nothing more is to be done. */
static bool settles(void)
{
	unsigned lists, busy;
	int64_t until_ns = 0;

	do {
		lists = count(BUCKET_LISTS);
		busy = count(BUCKET_PUTS) + count(BUCKET_GETS);
		if (!WAIT_FOR(count(BUCKET_LISTS) >= lists + 12))
			return false;
	} while (busy != count(BUCKET_PUTS) + count(BUCKET_GETS) && wait_more(&until_ns));
	return busy == count(BUCKET_PUTS) + count(BUCKET_GETS);
}

/* Nobody puts at that time. */
static void copy_object(const char *key, struct buf *out)
{
	const struct fake_object *o = fake_find(&fake, key);

	buf_add_str(out, o ? buf_str(&o->bytes) : STR(""));
}

static bool is_there(const char *key)
{
	return fake_find(&fake, key) != NULL;
}

static struct member a, c;

static bool begin(void)
{
	a = c = (struct member){ 0 };
	return world_start() && member_open(&a) && member_open(&c);
}

static void end(void)
{
	member_end(&a);
	member_end(&c);
	world_stop();
}

TEST(who_wants_an_index_gets_that_of_another_member)
{
	struct debuginfo_id id = gnu(ID);
	struct debuginfo_info info;

	REQUIRE(begin());
	REQUIRE(publish(&a, "main", 0x1000, SYMINDEX_DWARF));
	REQUIRE(WAIT_FOR(is_there(KEY)));
	REQUIRE(settles());
	CHECK(has_name(&c, 0x1000, "")); /* nobody asked */
	want(&c);
	CHECK(WAIT_FOR(has_name(&c, 0x1000, "main")));
	REQUIRE(debuginfo_find(c.store, &id, &info));
	CHECK(info.present && info.origin == DEBUGINFO_UPLOAD && info.quality == DEBUGINFO_DWARF);
	CHECK_INT(info.again_s, 0); /* a file may be sent at once */
	end();
}

TEST(a_member_that_asks_has_it_at_once)
{
	struct debuginfo_id id = gnu(ID), other = gnu("bb02");

	REQUIRE(begin());
	REQUIRE(publish(&a, "main", 0x1000, SYMINDEX_DWARF));
	REQUIRE(WAIT_FOR(is_there(KEY)));
	REQUIRE(settles());
	CHECK(WAIT_FOR(shared_symbols_fetch(c.s, &id)));
	CHECK(has_name(&c, 0x1000, "main"));
	CHECK(!shared_symbols_fetch(c.s, &other));
	end();
}

/* One that nobody had a short time ago is looked for by each list. */
TEST(what_was_missing_comes_later)
{
	struct debuginfo_id id = gnu(ID);

	REQUIRE(begin());
	debuginfo_set_missing(c.store, &id, clock_now_ns() / NS_PER_S + 3600);
	REQUIRE(publish(&a, "main", 0x1000, SYMINDEX_DWARF));
	CHECK(WAIT_FOR(has_name(&c, 0x1000, "main")));
	end();
}

TEST(halves_of_two_members_become_one)
{
	struct buf first = { 0 }, second = { 0 };

	REQUIRE(begin());
	REQUIRE(publish(&a, "left", 0x1000, SYMINDEX_DWARF) &&
		publish(&c, "right", 0x2000, SYMINDEX_SYMBOLS));
	for (int i = 0; i < 2; i++) {
		CHECK(WAIT_FOR(has_name(i ? &a : &c, 0x1000, "left")));
		CHECK(WAIT_FOR(has_name(i ? &a : &c, 0x2000, "right")));
	}
	REQUIRE(settles());
	copy_object(KEY, &first);
	REQUIRE(publish(&a, "better", 0x2000, SYMINDEX_DWARF)); /* alone, as if the rest had gone */
	CHECK(WAIT_FOR(has_name(&c, 0x2000, "better")));
	REQUIRE(settles());
	copy_object(KEY, &second);
	CHECK(!str_eq(buf_str(&first), buf_str(&second)));
	buf_release(&first);
	buf_release(&second);
	end();
}

TEST(a_better_one_comes_by_itself)
{
	REQUIRE(begin());
	REQUIRE(publish(&a, "name", 0x1000, SYMINDEX_SYMBOLS));
	want(&c);
	CHECK(WAIT_FOR(has_name(&c, 0x1000, "name")));
	REQUIRE(publish(&a, "function", 0x1000, SYMINDEX_DWARF));
	CHECK(WAIT_FOR(has_name(&c, 0x1000, "function")));
	end();
}

TEST(what_is_damaged_is_healed_and_not_used)
{
	struct buf sound = { 0 }, now = { 0 }, damaged = { 0 };

	REQUIRE(begin());
	REQUIRE(publish(&a, "main", 0x1000, SYMINDEX_DWARF));
	REQUIRE(WAIT_FOR(is_there(KEY)));
	REQUIRE(settles());
	copy_object(KEY, &sound);
	member_close(&a);
	buf_add_str(&damaged, buf_str(&sound));
	damaged.ptr[damaged.len / 3] ^= 1;
	REQUIRE_OK(bucket_put(
		b, STR("symbols/gnu-" ID ".idx"), buf_str(&damaged), BUCKET_ANY, NULL, NULL, &err), &err);
	want(&c);
	REQUIRE(settles());
	CHECK(has_name(&c, 0x1000, ""));
	REQUIRE(member_open(&a));
	CHECK(WAIT_FOR(has_name(&c, 0x1000, "main")));
	copy_object(KEY, &now);
	CHECK(str_eq(buf_str(&now), buf_str(&sound)));
	buf_release(&sound);
	buf_release(&damaged);
	buf_release(&now);
	end();
}

TEST(an_index_of_another_binary_is_not_used)
{
	struct debuginfo_id other = gnu("bb02");
	struct debuginfo_info info;
	struct buf file = { 0 };

	REQUIRE(begin());
	REQUIRE(publish(&a, "main", 0x1000, SYMINDEX_DWARF));
	REQUIRE(WAIT_FOR(is_there(KEY)));
	copy_object(KEY, &file);
	REQUIRE_OK(bucket_put(
		b, STR("symbols/gnu-bb02.idx"), buf_str(&file), BUCKET_ANY, NULL, NULL, &err), &err);
	REQUIRE_OK(put_text("symbols/gnu-cc03.idx", "no index"), &err);
	REQUIRE_OK(put_text("symbols/what is this", "no index"), &err);
	debuginfo_want(c.d, &other, STR("/bin/y"));
	REQUIRE(settles());
	CHECK(!debuginfo_find(c.store, &other, &info) || !info.present);
	buf_release(&file);
	end();
}

TEST(a_restart_reads_and_puts_nothing)
{
	unsigned busy;

	REQUIRE(begin());
	REQUIRE(publish(&a, "main", 0x1000, SYMINDEX_DWARF));
	want(&c);
	CHECK(WAIT_FOR(has_name(&c, 0x1000, "main")));
	REQUIRE(settles());
	member_close(&a);
	member_close(&c);
	busy = count(BUCKET_PUTS) + count(BUCKET_GETS);
	REQUIRE(member_open(&a) && member_open(&c));
	REQUIRE(settles());
	CHECK_INT(count(BUCKET_PUTS) + count(BUCKET_GETS), busy);
	end();
}

TEST(a_bucket_that_fails_has_it_later)
{
	REQUIRE(world_fake());
	config.attempts_max = 1;
	REQUIRE_OK(bucket_open(&config, &b, &err), &err);
	a = c = (struct member){ 0 };
	fake_fault(&fake,
		(struct fake_fault){
			.kind = FAULT_STATUS, .line = "PUT ", .times = 3, .status = 503, .code = "SlowDown" });
	REQUIRE(member_open(&a) && member_open(&c));
	REQUIRE(publish(&a, "main", 0x1000, SYMINDEX_DWARF));
	CHECK(WAIT_FOR(is_there(KEY)));
	/* It is gone there: whoever has it puts it again. */
	REQUIRE_OK(bucket_delete(b, STR("symbols/gnu-" ID ".idx"), &err), &err);
	CHECK(WAIT_FOR(is_there(KEY)));
	end();
}

TEST(what_was_here_before_is_put)
{
	REQUIRE(begin());
	shared_symbols_close(a.s);
	a.s = NULL;
	REQUIRE(publish(&a, "main", 0x1000, SYMINDEX_DWARF));
	member_close(&a);
	CHECK(!is_there(KEY));
	REQUIRE(member_open(&a));
	CHECK(WAIT_FOR(is_there(KEY)));
	end();
}
