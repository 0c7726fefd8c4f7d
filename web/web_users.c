#include "web/web_users.h"

#include <crypt.h>
#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/random.h>

#include "base/map.h"
#include "base/thread.h"

#define HASH_BYTES 60u /* "$2b$10$", 22 characters of salt, 31 of hash */
#define CREDENTIALS_BYTES_MAX 4096u
#define VERDICTS_MAX 256u /* of each kind: refusals never push out those who are let in */
#define RUNNING_MAX 2u
#define WAITING_MAX 16u
#define KEY_BYTES 32

struct verdict {
	bool used;
	unsigned char key[KEY_BYTES];
};

struct users {
	unsigned char secret[KEY_BYTES];
	struct mutex lock; /* guards what follows */
	struct cond changed;
	struct verdict good[VERDICTS_MAX], bad[VERDICTS_MAX];
	unsigned running, waiting;
	uint64_t computed;
};

enum err_code users_check_hash(struct str hash, struct err *err)
{
	unsigned cost;

	if (hash.len < 4 || hash.ptr[0] != '$' || hash.ptr[1] != '2' || !hash.ptr[2] ||
		!strchr("aby", hash.ptr[2]) || hash.ptr[3] != '$')
		return err_set(err, ERR_INVALID, "not a bcrypt hash ($2a$, $2b$ or $2y$)");
	if (hash.len != HASH_BYTES || hash.ptr[4] < '0' || hash.ptr[4] > '9' || hash.ptr[5] < '0' ||
		hash.ptr[5] > '9' || hash.ptr[6] != '$')
		return err_set(err, ERR_INVALID, "not a whole bcrypt hash: it has %u characters",
			HASH_BYTES);
	for (size_t i = 7; i < hash.len; i++) {
		char c = hash.ptr[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '.' && c <= '9')))
			return err_set(err, ERR_INVALID,
				"not a bcrypt hash: a character that is none of its");
	}
	cost = (unsigned)(hash.ptr[4] - '0') * 10 + (unsigned)(hash.ptr[5] - '0');
	if (cost < 4 || cost > USERS_BCRYPT_COST_MAX)
		return err_set(err, ERR_INVALID, "bcrypt of cost %u: 4 to %u are taken", cost,
			USERS_BCRYPT_COST_MAX);
	return ERR_OK;
}

enum err_code users_open(struct users **out, struct err *err)
{
	struct users *u = calloc(1, sizeof(*u));

	if (!u)
		return err_set(err, ERR_NOMEM, "users: out of memory");
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
static bool parse(struct arena *a, struct str header, struct str *name, struct str *password)
{
	gnutls_datum_t coded, plain = { NULL, 0 };
	struct str text;
	const char *colon;
	int rc;

	if (header.len < 6 || header.len > CREDENTIALS_BYTES_MAX ||
		strncasecmp(header.ptr, "Basic ", 6))
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

/* ---- verdicts ---- */

static bool make_key(const struct users *u, struct str name, struct str password, struct str hash,
	unsigned char key[KEY_BYTES])
{
	struct buf text = { 0 };
	bool ok;

	buf_add_lenstr(&text, name);
	buf_add_lenstr(&text, password);
	buf_add_lenstr(&text, hash);
	ok = !buf_failed(&text) &&
		gnutls_hmac_fast(GNUTLS_MAC_SHA256, u->secret, sizeof(u->secret), text.ptr,
			text.len, key) == 0;
	if (text.ptr)
		gnutls_memset(text.ptr, 0, text.len);
	buf_release(&text);
	return ok;
}

static struct verdict *slot(struct verdict *table, const unsigned char *key)
{
	return &table[key[0] % VERDICTS_MAX];
}

static bool recall(struct users *u, const unsigned char *key, bool *good)
{
	const struct verdict *g = slot(u->good, key), *b = slot(u->bad, key);

	*good = g->used && !memcmp(g->key, key, KEY_BYTES);
	return *good || (b->used && !memcmp(b->key, key, KEY_BYTES));
}

static void remember(struct users *u, const unsigned char *key, bool good)
{
	struct verdict *v = slot(good ? u->good : u->bad, key);

	v->used = true;
	memcpy(v->key, key, KEY_BYTES);
}

/* password is NUL-terminated; one that holds a NUL itself is never right, at the same cost. */
static bool compute(struct str password, struct str hash, bool *good)
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

/* With the lock held on entry and return. */
static enum users_verdict verify(
	struct users *u, const unsigned char *key, struct str password, struct str hash)
{
	bool good, done;

	if (recall(u, key, &good))
		return good ? USERS_OK : USERS_REFUSED;
	if (u->waiting == WAITING_MAX)
		return USERS_BUSY;
	u->waiting++;
	while (u->running == RUNNING_MAX)
		cond_wait(&u->changed, &u->lock);
	u->waiting--;
	if (recall(u, key, &good)) { /* the one before had the same */
		cond_signal(&u->changed);
		return good ? USERS_OK : USERS_REFUSED;
	}
	u->running++;
	mutex_unlock(&u->lock);
	done = compute(password, hash, &good);
	mutex_lock(&u->lock);
	u->running--;
	u->computed++;
	cond_signal(&u->changed);
	if (!done)
		return USERS_BUSY;
	remember(u, key, good);
	return good ? USERS_OK : USERS_REFUSED;
}

enum users_verdict users_verify(
	struct users *u, struct labels known, struct str authorization, struct arena *scratch)
{
	unsigned char key[KEY_BYTES];
	struct str name, password, hash;
	enum users_verdict verdict;
	bool is_known;

	if (!parse(scratch, authorization, &name, &password))
		return USERS_REFUSED;
	hash = labels_get(known, name);
	is_known = hash.len == HASH_BYTES;
	if (!is_known)
		hash = known.v[hash_bytes(name.ptr, name.len, 0) % known.n].value;
	/* A name that is not known gets a verdict of its own: never that of whose hash it borrows.
	 */
	if (!make_key(u, name, password, hash, key))
		return USERS_BUSY;
	mutex_lock(&u->lock);
	verdict = verify(u, key, password, hash);
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
