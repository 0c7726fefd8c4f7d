/* A shard that follows: joins at once, others that are behind, dead, stopped or gone, a pause, the
 * file, owners of pushes. */
#include "tsdb/cluster/assignment/assignment_node.h"

#include <stdio.h>

#include "base/fs.h"
#include "base/map.h"
#include "base/thread.h"
#include "tests/scratch.h"
#include "tests/tsdb/bucket/world.h"
#include "tests/wait.h"
#include "tsdb/cluster/assignment/assignment_change.h"
#include "tsdb/cluster/lease.h"

#define LONG (1000 * NS_PER_S) /* never over in a test */
#define SHORT (300 * NS_PER_MS)
#define TOKEN "0123456789abcdef0123456789abcdef"

/* What `follow` and `followed` were called with. */
struct user {
	struct mutex lock;
	struct assignment_rule *rule;
	uint64_t followed;
	unsigned follows;
};

static void on_follow(void *ctx, struct assignment_rule *rule)
{
	struct user *u = ctx;

	mutex_lock(&u->lock);
	assignment_rule_unref(u->rule);
	u->rule = assignment_rule_ref(rule);
	u->follows++;
	mutex_unlock(&u->lock);
}

static void on_followed(void *ctx, uint64_t number)
{
	struct user *u = ctx;

	mutex_lock(&u->lock);
	u->followed = number;
	mutex_unlock(&u->lock);
}

static bool is_settled(struct user *u, uint64_t number)
{
	bool settled;

	mutex_lock(&u->lock);
	settled = u->rule && assignment_rule_is_settled(u->rule) && u->followed == number;
	mutex_unlock(&u->lock);
	return settled;
}

static unsigned follows(struct user *u)
{
	unsigned n;

	mutex_lock(&u->lock);
	n = u->follows;
	mutex_unlock(&u->lock);
	return n;
}

static void user_release(struct user *u)
{
	assignment_rule_unref(u->rule);
	mutex_destroy(&u->lock);
}

static struct assignment_node_options options_of(const char *shard, const char *dir)
{
	return (struct assignment_node_options){
		.bucket = b, .shard = shard, .dir = dir, .lease_ns = LONG, .look_ns = 20 * NS_PER_MS
	};
}

static struct assignment_node *open_node(struct assignment_node_options o)
{
	struct assignment_node *n = NULL;

	CHECK_OK(assignment_node_open(&o, &n, &err), &err);
	return n;
}

static void start_node(struct assignment_node *n, struct user *u)
{
	const struct assignment_node_user user = { on_follow, on_followed, u };

	mutex_init(&u->lock);
	CHECK_OK(assignment_node_start(n, &user, &err), &err);
}

static void end_node(struct assignment_node *n)
{
	assignment_node_end(n);
	assignment_node_close(n);
	bucket_cancel(b, INT64_MAX); /* the test has it too */
}

struct shard_says {
	uint64_t assignment;
	const char *address;
	bool stopped;
	int64_t lease_ns;
};

static void put_manifest(const char *shard, struct shard_says says)
{
	static uint64_t generation;
	const struct manifest m = { .shard = str_of(shard),
		.owner = STR(TOKEN),
			.session = STR(TOKEN),
				.host = STR("h"), .generation = ++generation, .since_ns = 1, .written_ns = 1,
					.stopped = says.stopped, .complete = says.stopped,
					.lease_ns = says.lease_ns ? says.lease_ns : LONG, .assignment = says.assignment,
					.address = str_of(says.address ? says.address : "") };
	struct manifest_key key = manifest_key_of(str_of(shard));
	struct buf text = { 0 };

	manifest_print(&text, &m);
	CHECK_OK(
		bucket_put(b, manifest_key_str(&key), buf_str(&text), BUCKET_ANY, NULL, NULL, &err), &err);
	buf_release(&text);
}

static uint64_t change(enum assignment_verb verb, const char *shard)
{
	const struct assignment_change c = { verb, str_of(shard), 0 };
	struct assignment s = { 0 };
	struct arena a;
	bool changed;

	arena_init(&a, 0);
	CHECK_OK(assignment_change(b, &c, &a, &s, NULL, &changed, &err), &err);
	arena_release(&a);
	return s.number;
}

/* ---- changes ---- */

struct racer {
	struct thread thread;
	char name[16];
	enum err_code rc;
	struct err err;
};

static void race(void *ctx)
{
	struct racer *r = ctx;
	const struct assignment_change c = { ASSIGNMENT_JOIN, str_of(r->name), 0 };
	struct assignment s;
	struct arena a;
	bool changed;

	arena_init(&a, 0);
	r->rc = assignment_change(b, &c, &a, &s, NULL, &changed, &r->err);
	arena_release(&a);
}

/* Of those who join at once each is in, and each has its own number. */
TEST(joins_at_once)
{
	struct racer racers[8];
	struct assignment s;
	struct arena a;

	REQUIRE(world_start());
	for (size_t i = 0; i < 8; i++) {
		snprintf(racers[i].name, sizeof(racers[i].name), "s-%zu", i);
		REQUIRE_OK(thread_start(&racers[i].thread, "race", race, &racers[i], &err), &err);
	}
	for (size_t i = 0; i < 8; i++) {
		thread_join(&racers[i].thread);
		CHECK_OK(racers[i].rc, &racers[i].err);
	}
	arena_init(&a, 0);
	REQUIRE_OK(assignment_get(b, &a, &s, NULL, &err), &err);
	CHECK_INT(s.number, 8);
	CHECK_INT(assignment_newest(&s)->n, 8);
	arena_release(&a);
	world_stop();
}

/* ---- following ---- */

TEST(alone_then_another_one)
{
	char template[] = SCRATCH "assignment.XXXXXX", *dir = scratch_dir(template);
	struct assignment_node *n;
	struct user u = { 0 };

	REQUIRE(world_start());
	REQUIRE(dir);
	REQUIRE((n = open_node(options_of("a", dir))) != NULL);
	CHECK_OK(assignment_node_join(n, &err), &err);
	start_node(n, &u);
	CHECK(WAIT_FOR(is_settled(&u, 1)));
	put_manifest("b", (struct shard_says){ .assignment = 1, .address = "http://b:1" });
	CHECK_INT(change(ASSIGNMENT_JOIN, "b"), 2);
	/* It is followed, and b is new: it is behind by its manifest, and had nothing by number 1. */
	CHECK(WAIT_FOR(assignment_node_number(n) == 2));
	put_manifest("b", (struct shard_says){ .assignment = 2, .address = "http://b:1" });
	CHECK(WAIT_FOR(is_settled(&u, 2)));
	CHECK_INT(change(ASSIGNMENT_DRAIN, "b"), 3);
	CHECK(WAIT_FOR(assignment_node_number(n) == 3));
	CHECK(!is_settled(&u, 3)); /* b may still scrape what it had */
	put_manifest("b", (struct shard_says){ .assignment = 3 });
	CHECK(WAIT_FOR(is_settled(&u, 3)));
	end_node(n);
	user_release(&u);
	CHECK_OK(fs_remove_tree(&fs_posix, dir, &err), &err);
	world_stop();
}

/* Each of these ends the wait for b. */
TEST(who_is_not_waited_for)
{
	static const struct {
		const char *what;
		bool gone;
		struct shard_says says;
	} cases[] = {
		{ "stopped", false, { .assignment = 1, .stopped = true } },
		{ "gone", true, { 0 } },
		{ "dead", false, { .assignment = 1, .lease_ns = SHORT } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char template[] = SCRATCH "assignment.XXXXXX", *dir = scratch_dir(template);
		struct assignment_node *n;
		struct user u = { 0 };

		REQUIRE(world_start());
		REQUIRE(dir);
		change(ASSIGNMENT_JOIN, "b");
		put_manifest("b", (struct shard_says){ .assignment = 1 });
		REQUIRE((n = open_node(options_of("a", dir))) != NULL);
		CHECK_OK(assignment_node_join(n, &err), &err);
		start_node(n, &u);
		CHECK(WAIT_FOR(follows(&u) >= 2)); /* b was looked at: it is behind */
		CHECK(!is_settled(&u, 2));
		if (cases[i].gone)
			CHECK_OK(bucket_delete(b, STR("shards/b/manifest"), &err), &err);
		else
			put_manifest("b", cases[i].says);
		if (!WAIT_FOR(is_settled(&u, 2)))
			CHECK_FAIL("%s", cases[i].what);
		end_node(n);
		user_release(&u);
		CHECK_OK(fs_remove_tree(&fs_posix, dir, &err), &err);
		world_stop();
	}
}

/* A start without the bucket follows the file, and waits for nobody who was waited for before. */
TEST(start_without_the_bucket)
{
	char template[] = SCRATCH "assignment.XXXXXX", *dir = scratch_dir(template);
	struct assignment_rule *rule;
	struct assignment_node *n;
	struct user u = { 0 };

	REQUIRE(world_start());
	REQUIRE(dir);
	put_manifest("b", (struct shard_says){ .assignment = 2 });
	change(ASSIGNMENT_JOIN, "b");
	REQUIRE((n = open_node(options_of("a", dir))) != NULL);
	CHECK_OK(assignment_node_join(n, &err), &err);
	start_node(n, &u);
	CHECK(WAIT_FOR(is_settled(&u, 2)));
	end_node(n);
	user_release(&u);
	bucket_cancel(b, 1); /* the bucket is away */
	REQUIRE((n = open_node(options_of("a", dir))) != NULL);
	rule = assignment_node_rule(n);
	CHECK_INT(assignment_rule_of(rule)->number, 2);
	CHECK(assignment_rule_is_settled(rule));
	assignment_rule_unref(rule);
	assignment_node_close(n);
	/* Another directory knows nothing, and has nothing. */
	CHECK_OK(fs_remove_tree(&fs_posix, dir, &err), &err);
	CHECK_OK(fs_mkdir_all(&fs_posix, dir, &err), &err);
	REQUIRE((n = open_node(options_of("a", dir))) != NULL);
	rule = assignment_node_rule(n);
	CHECK_INT(assignment_rule_of(rule)->number, 0);
	assignment_rule_unref(rule);
	assignment_node_close(n);
	CHECK_OK(fs_remove_tree(&fs_posix, dir, &err), &err);
	world_stop();
}

/* ---- what may be stored ---- */

/* Without a look for the lease's time the answer of a new one counts. */
TEST(after_a_pause)
{
	char template[] = SCRATCH "assignment.XXXXXX", *dir = scratch_dir(template);
	struct assignment_node_options o;
	struct assignment_node *n;
	struct user u = { 0 };

	REQUIRE(world_start());
	REQUIRE(dir);
	o = options_of("a", dir);
	o.lease_ns = 1; /* each check is one after a pause */
	o.look_ns = LONG;
	change(ASSIGNMENT_JOIN, "a");
	REQUIRE((n = open_node(o)) != NULL);
	start_node(n, &u);
	CHECK(WAIT_FOR(is_settled(&u, 1)));
	mutex_lock(&u.lock); /* follow waits here, as for what is being stored */
	change(ASSIGNMENT_JOIN, "b");
	CHECK_ERR(assignment_node_check(n, &err), &err, ERR_CANCELED,
		"not stored: the shards have assignment 2 since, this one followed 1");
	mutex_unlock(&u.lock);
	CHECK(WAIT_FOR(assignment_node_number(n) == 2));
	assignment_node_end(n);
	CHECK_OK(assignment_node_check(n, &err), &err); /* it waits for nothing */
	end_node(n);
	user_release(&u);
	CHECK_OK(fs_remove_tree(&fs_posix, dir, &err), &err);
	world_stop();
}

/* ---- pushes ---- */

/* A hash that the shard owns. */
static uint64_t hash_of(struct assignment_node *n, const char *shard)
{
	struct assignment_rule *rule = assignment_node_rule(n);
	const struct assignment_version *v = assignment_newest(assignment_rule_of(rule));
	uint64_t hash = 1;

	while (!str_is(v->shards[assignment_owner(v, hash)], shard))
		hash++;
	assignment_rule_unref(rule);
	return hash;
}

TEST(owner_of_a_push)
{
	char template[] = SCRATCH "assignment.XXXXXX", *dir = scratch_dir(template);
	struct assignment_owner owner;
	struct assignment_node *n;
	struct user u = { 0 };
	uint64_t hash;

	REQUIRE(world_start());
	REQUIRE(dir);
	change(ASSIGNMENT_JOIN, "a");
	change(ASSIGNMENT_JOIN, "b");
	put_manifest("b", (struct shard_says){ .assignment = 2, .address = "http://b:1" });
	REQUIRE((n = open_node(options_of("a", dir))) != NULL);
	CHECK_OK(assignment_push_owner(n, hash_of(n, "a"), TIME_MAX_NS, &owner, &err), &err);
	CHECK(owner.own && !strcmp(owner.name, "a"));
	hash = hash_of(n, "b");
	CHECK_OK(assignment_push_owner(n, hash, TIME_MAX_NS, &owner, &err), &err);
	CHECK(!owner.own && !strcmp(owner.name, "b") && !strcmp(owner.address, "http://b:1"));
	/* Before the change took effect a kept it. */
	CHECK_OK(assignment_push_owner(n, hash, clock_now_ns(), &owner, &err), &err);
	CHECK(owner.own);
	/* It moved: the address is read again after a call that failed, and a look. */
	put_manifest("b", (struct shard_says){ .assignment = 2, .address = "http://b:2" });
	CHECK_OK(assignment_push_owner(n, hash, TIME_MAX_NS, &owner, &err), &err);
	CHECK(!strcmp(owner.address, "http://b:1"));
	assignment_forget_address(n, "b");
	start_node(n, &u);
	CHECK(WAIT_FOR(!assignment_push_owner(n, hash, TIME_MAX_NS, &owner, &err)));
	CHECK(!strcmp(owner.address, "http://b:2"));
	/* It is in no list any more, and has ended: the owner by the newest version keeps it. */
	change(ASSIGNMENT_DRAIN, "b");
	put_manifest("b", (struct shard_says){ .assignment = 3, .stopped = true });
	CHECK(WAIT_FOR(assignment_node_number(n) == 3));
	assignment_forget_address(n, "b");
	CHECK(WAIT_FOR(!assignment_push_owner(n, hash, TIME_MAX_NS, &owner, &err) && owner.own));
	end_node(n);
	user_release(&u);
	CHECK_OK(fs_remove_tree(&fs_posix, dir, &err), &err);
	world_stop();
}

TEST(owner_is_not_known)
{
	char template[] = SCRATCH "assignment.XXXXXX", *dir = scratch_dir(template);
	struct assignment_node_options o;
	struct assignment_owner owner;
	struct assignment_node *n;

	REQUIRE(world_start());
	REQUIRE(dir);
	REQUIRE((n = open_node(options_of("a", dir))) != NULL);
	CHECK_ERR(assignment_push_owner(n, 1, 1, &owner, &err), &err, ERR_UNAVAILABLE,
		"the assignment of shards is not known yet");
	assignment_node_close(n);
	bucket_cancel(b, INT64_MAX);
	change(ASSIGNMENT_JOIN, "a");
	change(ASSIGNMENT_JOIN, "b");
	put_manifest("b", (struct shard_says){ .assignment = 2 });
	REQUIRE((n = open_node(options_of("a", dir))) != NULL);
	CHECK_ERR(assignment_push_owner(n, hash_of(n, "b"), TIME_MAX_NS, &owner, &err), &err,
		ERR_UNAVAILABLE, "shard b, which keeps these profiles, has no address in its manifest");
	assignment_node_close(n);
	bucket_cancel(b, INT64_MAX);
	o = options_of("a", dir);
	o.lease_ns = 1;
	REQUIRE((n = open_node(o)) != NULL);
	CHECK_ERR(assignment_push_owner(n, 1, 1, &owner, &err), &err, ERR_UNAVAILABLE,
		"the assignment of shards was not read for the time of the lease: the bucket is away");
	assignment_node_close(n);
	CHECK_OK(fs_remove_tree(&fs_posix, dir, &err), &err);
	world_stop();
}
