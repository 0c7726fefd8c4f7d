/* Passwords: verdicts, and the order of many verifications. */
#include "web/http/users.h"

#include <gnutls/gnutls.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/thread.h"
#include "tests/check.h"
#include "tests/web/http/bcrypt.h"

static enum users_verdict verdict_of(
	struct users *u, struct labels known, struct str authorization, struct arena *a)
{
	const struct users_request r = { .authorization = authorization, .may_wait = true };

	return users_verify(u, known, &r, a);
}

TEST(verdicts_are_kept_and_an_unknown_name_costs_a_hash_too)
{
	struct label users_of[1] = { { STR("alice"), { NULL, 0 } } };
	struct labels known = { users_of, 1 };
	struct users *u = NULL;
	struct arena a;
	struct err err;

	arena_init(&a, 1 << 20);
	users_of[0].value = str_of(hash_of("secret", SALT));
	REQUIRE_OK(users_open(0, &u, &err), &err);
	for (int i = 0; i < 3; i++)
		CHECK_INT(verdict_of(u, known, STR("Basic YWxpY2U6c2VjcmV0"), &a), USERS_OK);
	CHECK_INT(users_computed(u), 1);
	for (int i = 0; i < 3; i++) /* alice:wrong */
		CHECK_INT(verdict_of(u, known, STR("basic YWxpY2U6d3Jvbmc="), &a), USERS_REFUSED);
	CHECK_INT(users_computed(u), 2);
	for (int i = 0; i < 3; i++) /* carol:secret, the right password of somebody else */
		CHECK_INT(verdict_of(u, known, STR("Basic Y2Fyb2w6c2VjcmV0"), &a), USERS_REFUSED);
	CHECK_INT(users_computed(u), 3);
	/* alice:secret, a NUL, more: crypt(3) sees the same string */
	CHECK_INT(verdict_of(u, known, STR("Basic YWxpY2U6c2VjcmV0AHg="), &a), USERS_REFUSED);
	CHECK_INT(users_computed(u), 4);
	users_close(u);
	arena_release(&a);
}

struct guessing {
	struct users *users;
	struct labels known;
	bool same; /* one password for all */
	atomic_uint next, busy;
	atomic_bool stop;
};

/* As client number `address`, the password `n`. */
static enum users_verdict sign_in(
	struct guessing *g, unsigned char address, const char *name, unsigned n, bool may_wait)
{
	struct users_request r = { .client = { .bytes = { address } }, .may_wait = may_wait };
	enum users_verdict verdict;
	struct arena a;
	char plain[32], header[128];
	gnutls_datum_t text, coded = { NULL, 0 };

	arena_init(&a, 1 << 20);
	snprintf(plain, sizeof(plain), "%s:%u", name, n);
	text = (gnutls_datum_t){ (unsigned char *)plain, (unsigned)strlen(plain) };
	gnutls_base64_encode2(&text, &coded);
	snprintf(header, sizeof(header), "Basic %.*s", (int)coded.size, coded.data);
	gnutls_free(coded.data);
	r.authorization = str_of(header);
	verdict = users_verify(g->users, g->known, &r, &a);
	arena_release(&a);
	return verdict;
}

static void guess(void *ctx)
{
	struct guessing *g = ctx;
	unsigned n = atomic_fetch_add(&g->next, 1);

	if (sign_in(g, 1, "x", g->same ? 0 : n, true) == USERS_BUSY)
		atomic_fetch_add(&g->busy, 1);
}

TEST(guessing_does_not_take_all_workers)
{
	struct label users_of[1] = { { STR("alice"), { NULL, 0 } } };
	struct guessing g = { .known = { users_of, 1 } };
	struct thread threads[40] = { 0 };
	struct err err;

	users_of[0].value = str_of(hash_of("secret", "$2b$11$abcdefghijklmnopqrstuu"));
	REQUIRE_OK(users_open(0, &g.users, &err), &err);
	for (int i = 0; i < 40; i++)
		REQUIRE_OK(thread_start(&threads[i], "guess", guess, &g, &err), &err);
	for (int i = 0; i < 40; i++)
		thread_join(&threads[i]);
	CHECK_INT(users_computed(g.users) + atomic_load(&g.busy), 40);
	CHECK(atomic_load(&g.busy) > 0);
	CHECK(users_computed(g.users) >= USERS_PER_ADDRESS_DEFAULT);
	users_close(g.users);
}

TEST(requests_with_one_password_share_its_verdict)
{
	struct label users_of[1] = { { STR("alice"), { NULL, 0 } } };
	struct guessing g = { .known = { users_of, 1 }, .same = true };
	struct thread threads[20] = { 0 };
	struct err err;

	users_of[0].value = str_of(hash_of("secret", "$2b$11$abcdefghijklmnopqrstuu"));
	REQUIRE_OK(users_open(0, &g.users, &err), &err);
	for (int i = 0; i < 20; i++)
		REQUIRE_OK(thread_start(&threads[i], "guess", guess, &g, &err), &err);
	for (int i = 0; i < 20; i++)
		thread_join(&threads[i]);
	CHECK_INT(atomic_load(&g.busy), 0);
	CHECK_INT(users_computed(g.users), 1);
	users_close(g.users);
}

static void flood(void *ctx)
{
	struct guessing *g = ctx;

	while (!atomic_load(&g->stop))
		guess(g);
}

/* Ten users of another address, none of whom has a verdict yet, beside 40 threads that guess. */
TEST(a_flood_of_guesses_does_not_keep_others_from_signing_in)
{
	static char names[10][16], hashes[10][100];
	const unsigned others = check_is_short() ? 4 : 10;
	struct label users_of[10];
	struct guessing g = { .known = { users_of, others } };
	struct thread threads[40] = { 0 };
	struct err err;

	for (unsigned i = 0; i < others; i++) {
		snprintf(names[i], sizeof(names[i]), "user%u", i);
		snprintf(hashes[i], sizeof(hashes[i]), "%s",
			hash_of((char[2]){ (char)('0' + i), '\0' }, "$2b$08$abcdefghijklmnopqrstuu"));
		users_of[i] = (struct label){ str_of(names[i]), str_of(hashes[i]) };
	}
	REQUIRE_OK(users_open(0, &g.users, &err), &err);
	for (int i = 0; i < 40; i++)
		REQUIRE_OK(thread_start(&threads[i], "guess", flood, &g, &err), &err);
	while (!atomic_load(&g.busy)) /* the flood has its share */
		usleep(1000);
	for (unsigned i = 0; i < others; i++) {
		CHECK_INT(sign_in(&g, 2, names[i], i, false), USERS_LATER);
		CHECK_INT(sign_in(&g, 2, names[i], i, true), USERS_OK);
		CHECK_INT(sign_in(&g, 2, names[i], i, false), USERS_OK);
	}
	atomic_store(&g.stop, true);
	for (int i = 0; i < 40; i++)
		thread_join(&threads[i]);
	for (unsigned i = 0; i < others; i++) /* none of their verdicts was replaced */
		CHECK_INT(sign_in(&g, 2, names[i], i, false), USERS_OK);
	users_close(g.users);
}

struct crowd {
	struct guessing *g;
	unsigned char address;
};

static void flood_from(void *ctx)
{
	struct crowd *c = ctx;

	while (!atomic_load(&c->g->stop))
		if (sign_in(c->g, c->address, "x", atomic_fetch_add(&c->g->next, 1), true) == USERS_BUSY)
			atomic_fetch_add(&c->g->busy, 1);
}

/* Many addresses take all places: an address that asks once still gets its turn. */
TEST(a_flood_from_many_addresses_leaves_a_place_for_one_more)
{
	struct label users_of[1] = { { STR("alice"), { NULL, 0 } } };
	struct guessing g = { .known = { users_of, 1 } };
	struct thread threads[40] = { 0 };
	struct crowd crowds[40];
	struct err err;

	users_of[0].value = str_of(hash_of("7", "$2b$08$abcdefghijklmnopqrstuu"));
	REQUIRE_OK(users_open(0, &g.users, &err), &err);
	for (int i = 0; i < 40; i++) {
		crowds[i] = (struct crowd){ &g, (unsigned char)(10 + i % 6) };
		REQUIRE_OK(thread_start(&threads[i], "guess", flood_from, &crowds[i], &err), &err);
	}
	while (atomic_load(&g.busy) < 100)
		usleep(1000);
	CHECK_INT(sign_in(&g, 2, "alice", 7, true), USERS_OK);
	atomic_store(&g.stop, true);
	for (int i = 0; i < 40; i++)
		thread_join(&threads[i]);
	users_close(g.users);
}
