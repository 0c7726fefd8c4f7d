#include "web/http/users.h"

#include <assert.h>
#include <crypt.h>
#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/map.h"
#include "base/thread.h"

#define HASH_BYTES 60u /* "$2b$10$", 22 characters of salt, 31 of hash */
#define CREDENTIALS_BYTES_MAX 4096u
#define VERDICTS_MAX 256u /* of each kind: refusals never replace accepted users */
#define VERDICT_WAYS 8u /* places for a verdict: the least recently used is replaced */
#define RUNNING_MAX 2u
#define WAITING_MAX 16u
#define FOLLOWERS_MAX 32u
#define KEY_BYTES 32

struct users_cached_verdict {
	uint64_t used; /* users.clock when it was looked up last; 0: free */
	unsigned char key[KEY_BYTES];
};

/* A verification that runs or waits; on the stack of its thread. */
struct users_check {
	struct users_check *next; /* in the order of arrival */
	struct http_sender client;
	const unsigned char *key;
	bool running, ousted;
};

struct users {
	unsigned char secret[KEY_BYTES];
	struct mutex lock; /* guards the fields below */
	struct cond changed;
	struct users_cached_verdict good[VERDICTS_MAX], bad[VERDICTS_MAX];
	uint64_t clock;
	struct users_check *checks;
	unsigned running, waiting, followers;
	uint64_t computed;
	unsigned per_address;
};

enum err_code users_check_hash(struct str hash, struct err *err)
{
	unsigned cost;

	if (hash.len < 4 || hash.ptr[0] != '$' || hash.ptr[1] != '2' || !hash.ptr[2] ||
		!strchr("aby", hash.ptr[2]) || hash.ptr[3] != '$')
		return err_set(err, ERR_INVALID, "not a bcrypt hash ($2a$, $2b$ or $2y$)");
	if (hash.len != HASH_BYTES || hash.ptr[4] < '0' || hash.ptr[4] > '9' || hash.ptr[5] < '0' ||
		hash.ptr[5] > '9' || hash.ptr[6] != '$')
		return err_set(
			err, ERR_INVALID, "not a whole bcrypt hash: one has %u characters", HASH_BYTES);
	for (size_t i = 7; i < hash.len; i++) {
		char c = hash.ptr[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '.' && c <= '9')))
			return err_set(
				err, ERR_INVALID, "not a bcrypt hash: a character that bcrypt does not use");
	}
	cost = (unsigned)(hash.ptr[4] - '0') * 10 + (unsigned)(hash.ptr[5] - '0');
	if (cost < 4 || cost > USERS_BCRYPT_COST_MAX)
		return err_set(
			err, ERR_INVALID, "bcrypt of cost %u: 4 to %u are taken", cost, USERS_BCRYPT_COST_MAX);
	return ERR_OK;
}

enum err_code users_open(unsigned per_address, struct users **out, struct err *err)
{
	struct users *u = calloc(1, sizeof(*u));

	if (!u)
		return err_nomem(err, "users");
	u->per_address = per_address ? per_address : USERS_PER_ADDRESS_DEFAULT;
	mutex_init(&u->lock);
	cond_init(&u->changed);
	if (getrandom(u->secret, sizeof(u->secret), 0) != (ssize_t)sizeof(u->secret)) {
		users_close(u);
		return err_errno(err, errno, "users: random bytes");
	}
	*out = u;
	return ERR_OK;
}

void users_close(struct users *u)
{
	if (!u)
		return;
	cond_destroy(&u->changed);
	mutex_destroy(&u->lock);
	free(u);
}

/* ---- the header ---- */

/* "Basic base64(name:password)" into the arena. */
static bool users_parse(struct arena *a, struct str header, struct str *name, struct str *password)
{
	gnutls_datum_t coded, plain = { NULL, 0 };
	struct str text;
	const char *colon;
	int rc;

	if (header.len > CREDENTIALS_BYTES_MAX || !str_has_prefix_nocase(header, STR("Basic ")))
		return false;
	header = str_trim((struct str){ header.ptr + 6, header.len - 6 });
	coded = (gnutls_datum_t){ (unsigned char *)(uintptr_t)header.ptr, (unsigned)header.len };
	rc = gnutls_base64_decode2(&coded, &plain);
	if (rc || !plain.data)
		return false;
	text = str_dup(a, (struct str){ (const char *)plain.data, plain.size });
	gnutls_free(plain.data);
	colon = text.ptr ? memchr(text.ptr, ':', text.len) : NULL;
	if (!colon)
		return false;
	*name = (struct str){ text.ptr, (size_t)(colon - text.ptr) };
	*password = (struct str){ colon + 1, text.len - name->len - 1 };
	return true;
}

bool users_name(struct arena *a, struct str authorization, struct str *name)
{
	struct str password;

	return users_parse(a, authorization, name, &password);
}

/* ---- verdicts ---- */

static bool users_make_key(const struct users *u, struct str name, struct str password,
	struct str hash, unsigned char key[KEY_BYTES])
{
	struct buf text = { 0 };
	bool ok;

	buf_add_lenstr(&text, name);
	buf_add_lenstr(&text, password);
	buf_add_lenstr(&text, hash);
	ok = !buf_failed(&text) &&
		gnutls_hmac_fast(
			GNUTLS_MAC_SHA256, u->secret, sizeof(u->secret), text.ptr, text.len, key) == 0;
	if (text.ptr)
		gnutls_memset(text.ptr, 0, text.len);
	buf_release(&text);
	return ok;
}

static struct users_cached_verdict *users_verdict_find(
	struct users_cached_verdict *table, const unsigned char *key)
{
	struct users_cached_verdict *v = &table[key[0] % (VERDICTS_MAX / VERDICT_WAYS) * VERDICT_WAYS];

	for (unsigned i = 0; i < VERDICT_WAYS; i++)
		if (v[i].used && !memcmp(v[i].key, key, KEY_BYTES))
			return &v[i];
	return NULL;
}

static bool users_recall(struct users *u, const unsigned char *key, bool *good)
{
	struct users_cached_verdict *v = users_verdict_find(u->good, key);

	mutex_assert_held(&u->lock);
	*good = v != NULL;
	if (!v)
		v = users_verdict_find(u->bad, key);
	if (v)
		v->used = ++u->clock;
	return v != NULL;
}

static void users_remember(struct users *u, const unsigned char *key, bool good)
{
	struct users_cached_verdict *table = good ? u->good : u->bad;
	struct users_cached_verdict *v = &table[key[0] % (VERDICTS_MAX / VERDICT_WAYS) * VERDICT_WAYS];
	struct users_cached_verdict *oldest = v;

	mutex_assert_held(&u->lock);
	for (unsigned i = 1; i < VERDICT_WAYS; i++)
		if (v[i].used < oldest->used)
			oldest = &v[i];
	oldest->used = ++u->clock;
	memcpy(oldest->key, key, KEY_BYTES);
}

/* ---- who is next ---- */

static unsigned users_count(const struct users *u, struct http_sender client, bool running_only)
{
	unsigned n = 0;

	mutex_assert_held(&u->lock);
	for (const struct users_check *c = u->checks; c; c = c->next)
		n += (c->running || (!running_only && !c->ousted)) && http_same_client(c->client, client);
	return n;
}

/* The first in the queue whose address has nothing running. */
static const struct users_check *users_next_to_run(const struct users *u)
{
	mutex_assert_held(&u->lock);
	for (const struct users_check *c = u->checks; c; c = c->next)
		if (!c->running && !c->ousted && !users_count(u, c->client, true))
			return c;
	return NULL;
}

/* The last in the queue of the address with most places, if it has more than `fair`. */
static struct users_check *users_greediest(const struct users *u, unsigned fair)
{
	struct users_check *worst = NULL;

	for (struct users_check *c = u->checks; c; c = c->next) {
		unsigned n = c->running || c->ousted ? 0 : users_count(u, c->client, false);

		if (n > fair && n >= (worst ? users_count(u, worst->client, false) : 0))
			worst = c;
	}
	return worst;
}

/* Joins the queue. False: the address has its share, or no other address has more. */
static bool users_join(struct users *u, struct users_check *c)
{
	struct users_check **at = &u->checks, *worst;
	unsigned mine = users_count(u, c->client, false);

	mutex_assert_held(&u->lock);
	if (mine >= u->per_address)
		return false;
	if (u->waiting == WAITING_MAX) {
		if (!(worst = users_greediest(u, mine + 1)))
			return false;
		worst->ousted = true;
		u->waiting--;
	}
	while (*at)
		at = &(*at)->next;
	*at = c;
	u->waiting++;
	cond_broadcast(&u->changed);
	return true;
}

static void users_part(struct users *u, const struct users_check *c)
{
	struct users_check **at = &u->checks;

	mutex_assert_held(&u->lock);
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	if (c->running)
		u->running--;
	else if (!c->ousted)
		u->waiting--;
	cond_broadcast(&u->changed);
}

/* Waits for its turn. False: it lost its place to another address. */
static bool users_take_turn(struct users *u, struct users_check *c)
{
	while (!c->ousted && (u->running == RUNNING_MAX || users_next_to_run(u) != c))
		cond_wait(&u->changed, &u->lock);
	if (c->ousted)
		return false;
	assert(u->waiting && u->running < RUNNING_MAX);
	c->running = true;
	u->waiting--;
	u->running++;
	cond_broadcast(&u->changed); /* the other core may have a turn for the next */
	return true;
}

/* password is NUL-terminated. One that contains a NUL is always wrong, and takes as long. */
static bool users_compute(struct str password, struct str hash, bool *good)
{
	struct crypt_data *data = calloc(1, sizeof(*data));
	char setting[HASH_BYTES + 1];
	const char *got;

	if (!data)
		return false;
	memcpy(setting, hash.ptr, HASH_BYTES);
	setting[HASH_BYTES] = '\0';
	got = crypt_r(password.ptr, setting, data);
	*good = got && strlen(got) == HASH_BYTES && !gnutls_memcmp(got, setting, HASH_BYTES) &&
		!memchr(password.ptr, '\0', password.len);
	gnutls_memset(data, 0, sizeof(*data));
	free(data);
	return true;
}

/* ---- verifying ---- */

static bool users_is_checked(const struct users *u, const unsigned char *key)
{
	mutex_assert_held(&u->lock);
	for (const struct users_check *c = u->checks; c; c = c->next)
		if (!c->ousted && !memcmp(c->key, key, KEY_BYTES))
			return true;
	return false;
}

/* A page sends many requests with one password at once: they share one verdict. */
static enum users_verdict users_follow(struct users *u, const unsigned char *key)
{
	bool good;

	if (u->followers == FOLLOWERS_MAX)
		return USERS_BUSY;
	u->followers++;
	while (users_is_checked(u, key))
		cond_wait(&u->changed, &u->lock);
	u->followers--;
	if (!users_recall(u, key, &good))
		return USERS_BUSY;
	return good ? USERS_OK : USERS_REFUSED;
}

/* c is in the queue. The lock is free while the hash is computed. */
static enum users_verdict users_verify_in_turn(
	struct users *u, struct users_check *c, struct str password, struct str hash)
{
	bool good, done;

	if (!users_take_turn(u, c))
		return USERS_BUSY;
	mutex_unlock(&u->lock);
	done = users_compute(password, hash, &good);
	mutex_lock(&u->lock);
	u->computed++;
	if (!done)
		return USERS_BUSY;
	users_remember(u, c->key, good);
	return good ? USERS_OK : USERS_REFUSED;
}

static enum users_verdict http_users_verify(struct users *u, const struct users_request *r,
	const unsigned char *key, struct str password, struct str hash)
{
	struct users_check c = { .client = r->client, .key = key };
	enum users_verdict verdict;
	bool good;

	if (users_recall(u, key, &good))
		return good ? USERS_OK : USERS_REFUSED;
	if (!r->may_wait)
		return USERS_LATER;
	if (users_is_checked(u, key))
		return users_follow(u, key);
	if (!users_join(u, &c))
		return USERS_BUSY;
	verdict = users_verify_in_turn(u, &c, password, hash);
	users_part(u, &c);
	return verdict;
}

enum users_verdict users_verify(
	struct users *u, struct labels known, const struct users_request *r, struct arena *scratch)
{
	unsigned char key[KEY_BYTES];
	struct str name, password, hash;
	enum users_verdict verdict;
	bool is_known;

	assert(known.n);
	if (!users_parse(scratch, r->authorization, &name, &password))
		return USERS_REFUSED;
	hash = labels_get(known, name);
	is_known = hash.len == HASH_BYTES;
	if (!is_known)
		hash = known.v[hash_bytes(name.ptr, name.len, 0) % known.n].value;
	/* An unknown name is verified against another user's hash, and has a verdict of its own. */
	if (!users_make_key(u, name, password, hash, key))
		return USERS_BUSY;
	mutex_lock(&u->lock);
	verdict = http_users_verify(u, r, key, password, hash);
	mutex_unlock(&u->lock);
	return verdict == USERS_OK && !is_known ? USERS_REFUSED : verdict;
}

uint64_t users_computed(struct users *u)
{
	uint64_t n;

	mutex_lock(&u->lock);
	n = u->computed;
	mutex_unlock(&u->lock);
	return n;
}
