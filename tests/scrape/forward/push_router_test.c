/* Which profiles go where, and what becomes of them when the shard that keeps them is away. */
#include "scrape/forward/push_router.h"

#include <glob.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/fs.h"
#include "scrape/forward/push_entries.h"
#include "tests/base/net/http_server.h"
#include "tests/base/net/identity.h"
#include "tests/check.h"
#include "tests/scratch.h"
#include "tests/wait.h"

#define SECRET "0123456789abcdef0123456789abcdef"
#define NOBODY "http://127.0.0.1:1" /* nothing listens on this port */

/* ---- a shard that answers as a test wants ---- */

enum mood { STORES, REFUSES, HANGS, BREAKS, SAYS_LESS, SAYS_MORE, IS_NOT_READY, SAYS_NONSENSE };

static struct {
	struct http_server server;
	char address[64];
	atomic_int mood;
	atomic_uint entries; /* that it answered */
	atomic_uint most; /* of one request */
} shard;

static void answer(struct peer *p, struct str body, unsigned skip, enum mood mood)
{
	struct buf answers = { 0 }, all = { 0 };
	struct sink_stored stored = { 3, true, 2 };
	struct cursor entries;
	struct sink_profile got;
	uint64_t assignment;
	struct arena a;
	struct err err;
	unsigned n = 0;

	arena_init(&a, 0);
	if (push_body_open(body, &entries, &n, &err))
		CHECK_FAIL("%s", err.msg);
	push_answers_begin(&answers);
	for (unsigned i = 0; i < n; i++) {
		if (push_entry_read(&a, push_body_next(&entries), &got, &assignment, &err))
			CHECK_FAIL("%s", err.msg);
		CHECK_INT(assignment, 42);
		err_set(&err, got.ts_ns % 2 ? ERR_EXISTS : ERR_UNAVAILABLE, "no %u", i);
		if (i >= skip)
			push_answer_add(&answers, mood == REFUSES ? err.code : ERR_OK, &err, &stored);
	}
	if (mood == SAYS_MORE)
		push_answer_add(&answers, ERR_OK, NULL, &stored);
	buf_printf(&all, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", answers.len);
	buf_add_str(&all, buf_str(&answers));
	if (atomic_load(&shard.most) < n)
		atomic_store(&shard.most, n);
	atomic_fetch_add(&shard.entries, n);
	(void)peer_write(p, buf_str(&all));
	buf_release(&answers);
	buf_release(&all);
	arena_release(&a);
}

static void shard_script(struct peer *p, void *ctx)
{
	(void)ctx;
	while (peer_read_request(p)) {
		struct str body = buf_str(&p->request);
		ptrdiff_t head = str_find(body, STR("\r\n\r\n"));
		enum mood mood = (enum mood)atomic_load(&shard.mood);

		CHECK(str_find(body, STR("Authorization: Bearer " SECRET "\r\n")) > 0);
		CHECK(str_has_prefix(body, STR("POST /p/api/v1/shard/profiles HTTP/1.1\r\n")));
		body = (struct str){ body.ptr + head + 4, body.len - (size_t)head - 4 };
		while (mood == HANGS && !atomic_load(&p->server->stopping) && !peer_gone(p)) {
			usleep(WAIT_STEP_US);
			mood = (enum mood)atomic_load(&shard.mood);
		}
		if (mood == HANGS)
			return;
		if (mood == BREAKS) {
			peer_reset(p);
			return;
		}
		if (mood == IS_NOT_READY)
			(void)peer_print(p,
				"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 23\r\n\r\n"
				"not ready: \x1bit restores\n");
		else if (mood == SAYS_NONSENSE)
			(void)peer_print(p, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
		else
			answer(p, body, mood == SAYS_LESS ? 1 : 0, mood);
	}
}

/* ---- the assignment: the time says whose a profile is ---- */

enum { OWN = 0, OTHER = 1, UNKNOWN = 2 };

static struct {
	struct mutex lock;
	char address[64]; /* of the other shard */
	uint64_t hash; /* of the last labels that were asked for */
	atomic_uint failed;
	bool no_secret;
} world = { .lock = MUTEX_INIT };

static enum err_code world_owner(
	void *ctx, uint64_t hash, int64_t ts_ns, struct push_owner *out, struct err *err)
{
	(void)ctx;
	*out = (struct push_owner){ .own = ts_ns % 10 == OWN, .assignment = 42 };
	if (ts_ns % 10 == UNKNOWN)
		return err_set(err, ERR_UNAVAILABLE, "the assignment was not read yet");
	mutex_lock(&world.lock);
	world.hash = hash;
	if (!out->own) {
		memcpy(out->name, "shard-1", sizeof("shard-1"));
		memcpy(out->address, world.address, sizeof(world.address));
	}
	mutex_unlock(&world.lock);
	return ERR_OK;
}

static void world_failed(void *ctx, const char *name)
{
	(void)ctx;
	CHECK_STR(str_of(name), "shard-1");
	atomic_fetch_add(&world.failed, 1);
}

static void world_secret(void *ctx, char out[PUSH_SECRET_BYTES])
{
	(void)ctx;
	memcpy(out, world.no_secret ? "" : SECRET, world.no_secret ? 1 : PUSH_SECRET_BYTES);
}

static const struct push_assignment assignment = { NULL, world_owner, world_failed, world_secret };

static void world_move(const char *address)
{
	mutex_lock(&world.lock);
	snprintf(world.address, sizeof(world.address), "%s", address);
	mutex_unlock(&world.lock);
}

/* ---- the router, and the sink behind it ---- */

static struct {
	struct sink sink;
	atomic_uint profiles, numbers;
} behind;

static enum err_code behind_append(
	struct sink *s, const struct sink_profile *p, sink_done_fn done, void *ctx, struct err *err)
{
	(void)s;
	(void)err;
	CHECK_INT(p->ts_ns % 10, OWN);
	atomic_fetch_add(&behind.profiles, 1);
	if (p->stored)
		*p->stored = (struct sink_stored){ .samples = 1 };
	done(ctx, ERR_OK, NULL);
	return ERR_OK;
}

static enum err_code behind_numbers(struct sink *s, const struct sink_number *v, size_t n,
	sink_done_fn done, void *ctx, struct err *err)
{
	(void)s;
	(void)v;
	(void)n;
	(void)err;
	atomic_fetch_add(&behind.numbers, 1);
	done(ctx, ERR_OK, NULL);
	return ERR_OK;
}

static const struct sink_ops behind_ops = { behind_append, behind_numbers };

static struct push_router router;
static struct arena arena;
static struct pprof *profile;
static const enum value_kind kinds[] = { KIND_DELTA };

static struct pprof *make_profile(size_t bytes)
{
	struct pprof_builder *b;
	struct pprof *p = NULL;
	struct err err;
	uint64_t state = 1;
	char *text = arena_alloc(&arena, bytes + 8);

	for (size_t i = 0; i < bytes; i += 8) { /* does not get shorter by gzip */
		state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		memcpy(text + i, &state, 8);
	}
	CHECK_OK(pprof_builder_open(&arena, &b, &err), &err);
	pprof_builder_type(b, STR("samples"), STR("count"));
	pprof_builder_comment(b, (struct str){ text, bytes });
	CHECK_OK(pprof_builder_finish(b, &p, &err), &err);
	return p;
}

static bool open_router(SSL_CTX *tls, const char *ca_file)
{
	/* A shard that hangs is awaited for as long as a slow machine needs to send the rest. */
	const struct push_router_options o = { &behind.sink, &assignment, ca_file, 10 * NS_PER_MIN };
	struct err err;

	memset(&shard, 0, sizeof(shard));
	memset(&behind, 0, sizeof(behind));
	behind.sink.ops = &behind_ops;
	atomic_store(&world.failed, 0);
	arena_init(&arena, 0);
	profile = make_profile(10);
	if (!http_server_start(&shard.server, shard_script, NULL, tls))
		return false;
	snprintf(shard.address, sizeof(shard.address), "%s://localhost:%u/p/", tls ? "https" : "http",
		shard.server.port);
	world_move(shard.address);
	CHECK_OK(push_router_open(&router, &o, &err), &err);
	return router.peers;
}

static void close_router(void)
{
	push_router_close(&router);
	http_server_stop(&shard.server);
	arena_release(&arena);
}

struct sent {
	atomic_uint calls;
	enum err_code rc; /* of append, or what done got */
	struct err err;
	struct sink_stored stored;
};

static void on_done(void *ctx, enum err_code rc, const struct err *err)
{
	struct sent *s = ctx;

	s->rc = rc;
	if (rc)
		s->err = *err;
	atomic_fetch_add(&s->calls, 1);
}

static bool send_of(struct sent *s, const struct pprof *p, int64_t ts_ns)
{
	static const struct label labels[] = {
		{ STR("__name__"), STR("cpu") }, { STR("job"), STR("shop") } };
	const struct sink_profile out = { .labels = { labels, 2 },
		.ts_ns = ts_ns,
		.interval_ns = NS_PER_S,
		.profile = p,
		.kinds = kinds,
		.stored = &s->stored };

	struct err err;
	enum err_code rc = router.sink.ops->append(&router.sink, &out, on_done, s, &err);

	if (!rc)
		return true; /* the rest is done's */
	s->rc = rc;
	s->err = err;
	return false;
}

/* Sends one and waits. */
static enum err_code send_one(struct sent *s, int64_t ts_ns)
{
	*s = (struct sent){ 0 };
	if (send_of(s, profile, ts_ns))
		CHECK(WAIT_FOR(atomic_load(&s->calls) == 1));
	else
		CHECK_INT(atomic_load(&s->calls), 0);
	return s->rc;
}

#define AWAY(address) \
	"shard shard-1, which keeps these profiles, cannot be reached at " address ": "

/* ---- where profiles go ---- */

TEST(own_ones_pass_others_are_sent)
{
	struct sink_number number = { .value = 1 };
	struct sent s;

	REQUIRE(open_router(NULL, NULL));
	CHECK_INT(send_one(&s, 10 + OWN), ERR_OK);
	CHECK_INT(s.stored.samples, 1);
	CHECK_INT(behind.profiles, 1);
	CHECK_INT(send_one(&s, 10 + OTHER), ERR_OK);
	CHECK(s.stored.samples == 3 && s.stored.overflow && s.stored.links_dropped == 2);
	CHECK_INT(behind.profiles, 1);
	CHECK_INT(atomic_load(&shard.entries), 1);
	CHECK_INT(send_one(&s, 10 + UNKNOWN), ERR_UNAVAILABLE);
	CHECK_STR(str_of(s.err.msg), "the assignment was not read yet");
	s = (struct sent){ 0 };
	CHECK_INT(router.sink.ops->append_numbers(&router.sink, &number, 1, on_done, &s, NULL), ERR_OK);
	CHECK_INT(behind.numbers, 1);
	for (int i = 0; i < 20; i++)
		CHECK_INT(send_one(&s, i),
			i % 10 == OWN         ? ERR_OK :
				i % 10 == UNKNOWN ? ERR_UNAVAILABLE :
									ERR_OK);
	CHECK_INT(behind.profiles, 3);
	CHECK_INT(atomic_load(&shard.entries), 17);
	CHECK_INT(atomic_load(&shard.server.connections), 1);
	CHECK_INT(atomic_load(&world.failed), 0);
	close_router();
}

/* All types of a process go to one shard; another label may go to another one. */
TEST(the_name_of_a_profile_does_not_count)
{
	static const struct label a[] = { { STR("__name__"), STR("cpu") }, { STR("job"), STR("ab") } },
		b[] = { { STR("__name__"), STR("memory") }, { STR("job"), STR("ab") } },
			c[] = { { STR("__name__"), STR("cpu") },
				{ STR("job"), STR("a") }, { STR("pod"), STR("b") } },
					d[] = { { STR("__name__"), STR("cpu") }, { STR("joba"), STR("b") } };

	CHECK(push_labels_hash((struct labels){ a, 2 }) == push_labels_hash((struct labels){ b, 2 }));
	CHECK(push_labels_hash((struct labels){ a, 2 }) != push_labels_hash((struct labels){ c, 3 }));
	CHECK(push_labels_hash((struct labels){ a, 2 }) != push_labels_hash((struct labels){ d, 2 }));
	/* Stable: servers of all versions and machines must agree. */
	CHECK_INT(push_labels_hash((struct labels){ a, 2 }) >> 1, INT64_C(370852293461945487));
}

TEST(errors_are_those_of_the_shard)
{
	struct sent s;

	REQUIRE(open_router(NULL, NULL));
	atomic_store(&shard.mood, REFUSES);
	CHECK_INT(send_one(&s, 11), ERR_EXISTS);
	CHECK_STR(str_of(s.err.msg), "no 0");
	CHECK_INT(send_one(&s, 14), ERR_UNAVAILABLE);
	CHECK_STR(str_of(s.err.msg), "shard shard-1, which keeps these profiles: no 0");
	CHECK_INT(atomic_load(&world.failed), 0); /* it was reached */
	close_router();
}

/* ---- the shard is away ---- */

static const struct {
	enum mood mood;
	const char *reason;
} rows[] = {
	{ BREAKS, NULL }, /* the answer is lost */
	{ IS_NOT_READY, "503 Service Unavailable: not ready: \\x1bit restores" },
	{ SAYS_NONSENSE, NULL },
	{ SAYS_LESS, "its answer is cut short" },
	{ SAYS_MORE, NULL },
};

/* Sends until it is stored again: for a second after a failure nothing is sent. */
static bool stores_again(void)
{
	struct sent s;

	return WAIT_FOR(send_one(&s, 11) == ERR_OK);
}

TEST(a_shard_that_is_away)
{
	char want[256];
	struct sent s;

	REQUIRE(open_router(NULL, NULL));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned failed = atomic_load(&world.failed);

		atomic_store(&shard.mood, (int)rows[i].mood);
		send_one(&s, 11);
		if (rows[i].mood == SAYS_MORE) { /* what it said of those that were asked counts */
			CHECK_INT(s.rc, ERR_OK);
		} else {
			CHECK_INT(s.rc, ERR_UNAVAILABLE);
			snprintf(want, sizeof(want), AWAY("%s") "%s", shard.address,
				rows[i].reason ? rows[i].reason : "");
			CHECK(str_has_prefix(str_of(s.err.msg), str_of(want)));
			if (rows[i].reason)
				CHECK_STR(str_of(s.err.msg), want);
		}
		CHECK(WAIT_FOR(atomic_load(&world.failed) == failed + 1));
		atomic_store(&shard.mood, STORES);
		CHECK(stores_again());
	}
	CHECK_INT(behind.profiles, 0);
	close_router();
}

TEST(a_shard_that_moved)
{
	struct sent s;

	REQUIRE(open_router(NULL, NULL));
	world_move(NOBODY);
	CHECK_INT(send_one(&s, 11), ERR_UNAVAILABLE);
	CHECK_STR(str_of(s.err.msg), AWAY(NOBODY) "connect 127.0.0.1:1: Connection refused");
	CHECK(WAIT_FOR(atomic_load(&world.failed) == 1));
	CHECK_INT(behind.profiles, 0);
	world_move(shard.address);
	CHECK(stores_again());
	world.no_secret = true;
	CHECK_INT(send_one(&s, 11), ERR_UNAVAILABLE);
	world.no_secret = false;
	CHECK(strstr(s.err.msg, ": the secret of the shards is not known yet"));
	CHECK(stores_again());
	close_router();
}

/* One call is tried; others do not wait for it. */
TEST(nobody_waits_for_a_shard_that_was_away)
{
	struct sent s, probe = { 0 };
	unsigned requests;

	REQUIRE(open_router(NULL, NULL));
	world_move(NOBODY);
	CHECK_INT(send_one(&s, 11), ERR_UNAVAILABLE);
	world_move(shard.address);
	atomic_store(&shard.mood, HANGS);
	requests = atomic_load(&shard.server.requests);
	CHECK(WAIT_FOR(send_of(&probe, profile, 11)));
	CHECK(WAIT_FOR(atomic_load(&shard.server.requests) == requests + 1));
	CHECK_INT(send_one(&s, 11), ERR_UNAVAILABLE);
	CHECK_STR(str_of(s.err.msg), AWAY(NOBODY) "connect 127.0.0.1:1: Connection refused");
	atomic_store(&shard.mood, STORES);
	CHECK(WAIT_FOR(atomic_load(&probe.calls) == 1));
	/* A slow machine may have let the call's time pass. */
	CHECK(probe.rc == ERR_OK || probe.rc == ERR_UNAVAILABLE);
	CHECK(stores_again());
	close_router();
}

/* ---- many ---- */

#define MANY 600u

TEST(what_waits_goes_together)
{
	static struct sent v[MANY];
	unsigned requests;

	REQUIRE(open_router(NULL, NULL));
	memset(v, 0, sizeof(v));
	atomic_store(&shard.mood, HANGS);
	CHECK(send_of(&v[0], profile, 11));
	CHECK(WAIT_FOR(atomic_load(&shard.server.requests) == 1));
	for (unsigned i = 1; i < MANY; i++)
		CHECK(send_of(&v[i], profile, 11));
	atomic_store(&shard.mood, STORES);
	for (unsigned i = 0; i < MANY; i++)
		CHECK(WAIT_FOR(atomic_load(&v[i].calls) == 1) && v[i].rc == ERR_OK);
	requests = atomic_load(&shard.server.requests);
	CHECK_INT(requests, 1 + (MANY - 1 + PUSH_ENTRIES_MAX - 1) / PUSH_ENTRIES_MAX);
	CHECK_INT(atomic_load(&shard.most), PUSH_ENTRIES_MAX);
	CHECK_INT(atomic_load(&shard.entries), MANY);
	close_router();
}

TEST(queues_are_bounded)
{
	static struct sent v[100];
	struct pprof *large;
	size_t bytes = 3u << 20;
	unsigned n = 0;

	REQUIRE(open_router(NULL, NULL));
	large = make_profile(bytes);
	memset(v, 0, sizeof(v));
	atomic_store(&shard.mood, HANGS);
	while (n < 100 && send_of(&v[n], large, 11))
		n++;
	CHECK_INT(n, PUSH_QUEUES_BYTES_MAX / bytes);
	CHECK_INT(v[n].rc, ERR_UNAVAILABLE);
	CHECK_STR(str_of(v[n].err.msg), "67108864 bytes of profiles wait for other shards");
	CHECK(send_of(&v[n + 1], profile, 11)); /* a small one has room */
	atomic_store(&shard.mood, STORES);
	for (unsigned i = 0; i < n; i++)
		CHECK(WAIT_FOR(atomic_load(&v[i].calls) == 1));
	CHECK(WAIT_FOR(atomic_load(&v[n + 1].calls) == 1));
	for (unsigned i = 0; i < n; i++)
		CHECK_INT(v[i].rc, ERR_OK);
	CHECK_INT(v[n + 1].rc, ERR_OK);
	CHECK(atomic_load(&shard.most) <= PUSH_BODY_BYTES / bytes + 1);
	close_router();
}

/* ---- closing ---- */

#define SENDERS 4u
#define EACH 3000u

struct sender_thread {
	struct thread thread;
	struct sent v[EACH];
	unsigned accepted;
};

static void sender_main(void *ctx)
{
	struct sender_thread *t = ctx;

	for (unsigned i = 0; i < EACH; i++)
		t->accepted += send_of(&t->v[i], profile, 10 + i % 2);
}

TEST(each_is_answered_once_whenever_it_is_stopped)
{
	static struct sender_thread threads[SENDERS];
	struct err err;

	for (int turn = 0; turn < 3; turn++) {
		unsigned accepted = 0;

		REQUIRE(open_router(NULL, NULL));
		memset(threads, 0, sizeof(threads));
		atomic_store(&shard.mood, turn == 1 ? HANGS : STORES);
		for (unsigned i = 0; i < SENDERS; i++)
			REQUIRE_OK(
				thread_start(&threads[i].thread, "sender", sender_main, &threads[i], &err), &err);
		if (turn)
			CHECK(WAIT_FOR(atomic_load(&shard.server.requests) > 0));
		push_router_stop(&router);
		for (unsigned i = 0; i < SENDERS; i++)
			thread_join(&threads[i].thread);
		for (unsigned i = 0; i < SENDERS * EACH; i++) {
			struct sent *s = &threads[i / EACH].v[i % EACH];

			accepted += atomic_load(&s->calls);
			CHECK(atomic_load(&s->calls) <= 1);
			CHECK(s->rc == ERR_OK || s->rc == ERR_UNAVAILABLE);
		}
		for (unsigned i = 0; i < SENDERS; i++)
			accepted -= threads[i].accepted;
		CHECK_INT(accepted, 0);
		CHECK(!send_of(&threads[0].v[0], profile, 11));
		CHECK_STR(str_of(threads[0].v[0].err.msg), "this server is ending");
		close_router();
	}
}

/* ---- TLS ---- */

TEST(certificates_are_verified)
{
	struct identity ca, stranger, leaf;
	char dir[] = SCRATCH "epi-forward-XXXXXX", path[2][64];
	struct arena a;
	struct err err;
	struct sent s;

	arena_init(&a, 0);
	REQUIRE(scratch_dir(dir));
	REQUIRE(identity_make(&ca, "test CA", NULL, NULL) &&
		identity_make(&stranger, "another CA", NULL, NULL) &&
		identity_make(&leaf, "server", &ca, "DNS:localhost"));
	for (int i = 0; i < 2; i++) {
		SSL_CTX *tls = identity_server(&leaf, NULL);

		snprintf(path[i], sizeof(path[i]), "%s/%d.pem", dir, i);
		REQUIRE_OK(
			fs_write_file(&fs_posix, path[i], identity_pem(&a, i ? &ca : &stranger, false), &err),
			&err);
		REQUIRE(open_router(tls, path[i]));
		CHECK_INT(send_one(&s, 11), i ? ERR_OK : ERR_UNAVAILABLE);
		if (!i)
			CHECK(strstr(s.err.msg, "certificate"));
		close_router();
		SSL_CTX_free(tls);
	}
	identity_release(&ca);
	identity_release(&stranger);
	identity_release(&leaf);
	CHECK_OK(fs_remove_tree(&fs_posix, dir, &err), &err);
	arena_release(&a);
}

TEST(a_file_of_authorities_is_read_at_the_start)
{
	const struct push_router_options o = { &behind.sink, &assignment, "/nowhere/ca.pem" };
	struct err err;

	CHECK_INT(push_router_open(&router, &o, &err), ERR_NOT_FOUND);
	CHECK(strstr(err.msg, "/nowhere/ca.pem"));
	push_router_close(&router);
}
