/*
 * A generation is the file and its certificates as they were read at one time. Requests and
 * handshakes take the current one. The files are looked at once a second at most; a change makes a
 * new generation. GnuTLS uses chain and key of a generation until the handshake ends and does not
 * tell when, so replaced generations are kept for RETIRED_NS, which no handshake lasts.
 */
#include "web/http/config.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/thread.h"
#include "web/http/config_file.h"
#include "web/http/sign_in.h"

METRIC_COUNTER(refused, "epimetheus_web_refused_total",
	"Requests refused for their certificate or their user.", "reason");
METRIC_COUNTER(reloads, "epimetheus_web_config_reloads_total",
	"Times the web configuration or its certificates were read again.", "result");

#define LOOK_NS NS_PER_S
#define RETIRED_NS NS_PER_HOUR
#define ARENA_BYTES_MAX (64u << 20)
#define MARKS_TLS 4u /* the file, certificate, key, client CA; tokens follow */
#define MARKS (MARKS_TLS + RIGHTS_TOKENS_MAX)

/* ---- generations ---- */

struct http_config_generation {
	atomic_uint refs;
	struct arena arena;
	struct web_file file;
	struct tls_keys *keys; /* NULL: no TLS */
	struct http_config_generation *older; /* retired before this one */
	int64_t retired_ns;
};

/* The state of a file when it was read. */
struct http_config_mark {
	char *path; /* NULL: not watched */
	bool there;
	struct timespec changed;
	off_t size;
	ino_t inode;
};

struct web_config {
	char *path; /* NULL: none */
	struct buf priorities;
	struct users *users;
	struct mutex lock; /* guards the fields below */
	struct http_config_generation *current, *retired;
	struct http_config_mark marks[MARKS];
	size_t tokens_n; /* marks of token files */
	int64_t looked_ns;
};

static _Atomic(struct web_config *) served; /* the configuration of the certificate callback */

static void http_config_generation_unref(struct http_config_generation *g)
{
	if (!g || atomic_fetch_sub(&g->refs, 1) > 1)
		return;
	tls_keys_close(g->keys);
	web_file_release(&g->file);
	arena_release(&g->arena);
	free(g);
}

static void http_config_mark_look(struct http_config_mark *m)
{
	struct stat st;

	m->there = m->path && stat(m->path, &st) == 0;
	m->changed = m->there ? st.st_mtim : (struct timespec){ 0 };
	m->size = m->there ? st.st_size : 0;
	m->inode = m->there ? st.st_ino : 0;
}

static void http_config_mark_set(struct http_config_mark *m, const char *path)
{
	free(m->path);
	m->path = path ? strdup(path) : NULL;
	http_config_mark_look(m);
}

static bool http_config_mark_differs(const struct http_config_mark *m)
{
	struct http_config_mark now = *m;

	if (!m->path)
		return false;
	http_config_mark_look(&now);
	return now.there != m->there || now.size != m->size || now.inode != m->inode ||
		now.changed.tv_sec != m->changed.tv_sec || now.changed.tv_nsec != m->changed.tv_nsec;
}

/*
 * Reads the files of tls_server_config, relative to the configuration's directory. Each is marked
 * before it is read, so that a change in between is seen.
 */
static enum err_code web_config_read_keys(
	struct web_config *c, struct http_config_generation *g, struct err *err)
{
	const struct tls_settings *t = &g->file.tls;
	struct str names[MARKS_TLS - 1] = { t->cert_file, t->key_file, t->client_ca_file };
	struct str dir = path_dir(str_of(c->path));
	const char *paths[MARKS_TLS - 1];
	enum err_code rc;

	for (size_t i = 0; i < MARKS_TLS - 1; i++) {
		paths[i] = names[i].len ? path_join(&g->arena, dir, names[i]) : NULL;
		if (names[i].len && !paths[i])
			return arena_fail(&g->arena, c->path, err);
		http_config_mark_set(&c->marks[i + 1], paths[i]);
	}
	rc = tls_keys_open(paths[0], paths[1], paths[2], &g->keys, err);
	return rc ? err_wrap(err, rc, "%s: tls_server_config", c->path) : ERR_OK;
}

static void web_config_mark_token(void *ctx, const char *path)
{
	struct web_config *c = ctx;

	assert(MARKS_TLS + c->tokens_n < MARKS);
	http_config_mark_set(&c->marks[MARKS_TLS + c->tokens_n++], path);
}

/* Those of users that are gone are watched no more. */
static enum err_code web_config_read_tokens(
	struct web_config *c, struct http_config_generation *g, struct err *err)
{
	size_t had = c->tokens_n;
	enum err_code rc;

	c->tokens_n = 0;
	rc = rights_read_tokens(&g->file.rights, &g->arena, c->path, web_config_mark_token, c, err);
	for (size_t i = c->tokens_n; i < had; i++)
		http_config_mark_set(&c->marks[MARKS_TLS + i], NULL);
	return rc;
}

static enum err_code web_config_generation_read(
	struct web_config *c, struct http_config_generation **out, struct err *err)
{
	struct http_config_generation *g = calloc(1, sizeof(*g));
	enum err_code rc;

	if (!g)
		return err_nomem(err, "web configuration");
	atomic_init(&g->refs, 1);
	arena_init(&g->arena, ARENA_BYTES_MAX);
	if (c->path) {
		http_config_mark_set(&c->marks[0], c->path);
		if ((rc = web_file_read(&g->arena, c->path, &g->file, err)))
			goto fail;
		if (g->file.has_tls && (rc = web_config_read_keys(c, g, err)))
			goto fail;
		if ((rc = web_config_read_tokens(c, g, err)))
			goto fail;
	}
	*out = g;
	return ERR_OK;
fail:
	http_config_generation_unref(g);
	return rc;
}

/* ---- opening ---- */

static enum err_code config_open(
	const char *path, unsigned checks_per_address, struct web_config **out, struct err *err)
{
	struct web_config *c = calloc(1, sizeof(*c));
	enum err_code rc;

	if (!c)
		return err_nomem(err, "web configuration");
	mutex_init(&c->lock);
	if (path && path[0] && !(c->path = strdup(path))) {
		rc = err_nomem(err, "web configuration");
		goto fail;
	}
	if ((rc = users_open(checks_per_address, &c->users, err)))
		goto fail;
	if ((rc = web_config_generation_read(c, &c->current, err)))
		goto fail;
	c->looked_ns = clock_monotonic_ns();
	if (c->current->keys)
		tls_priorities(&c->priorities, c->current->file.tls.min, c->current->file.tls.max);
	if (buf_failed(&c->priorities)) {
		rc = err_nomem(err, "web configuration");
		goto fail;
	}
	*out = c;
	return ERR_OK;
fail:
	web_config_close(c);
	return rc;
}

enum err_code web_config_open(
	const char *path, unsigned checks_per_address, struct web_config **out, struct err *err)
{
	struct web_config *none = NULL;
	enum err_code rc = config_open(path, checks_per_address, out, err);
	bool alone;

	if (rc || !(*out)->current->keys)
		return rc;
	alone = atomic_compare_exchange_strong(&served, &none, *out);
	assert(alone);
	(void)alone;
	return ERR_OK;
}

void web_config_close(struct web_config *c)
{
	struct web_config *self = c;

	if (!c)
		return;
	atomic_compare_exchange_strong(&served, &self, NULL);
	http_config_generation_unref(c->current);
	while (c->retired) {
		struct http_config_generation *g = c->retired;

		c->retired = g->older;
		http_config_generation_unref(g);
	}
	for (size_t i = 0; i < MARKS; i++)
		free(c->marks[i].path);
	users_close(c->users);
	buf_release(&c->priorities);
	mutex_destroy(&c->lock);
	free(c->path);
	free(c);
}

enum err_code web_config_check(const char *path, struct err *err)
{
	struct web_config *c = NULL;
	enum err_code rc = config_open(path, 0, &c, err);

	if (!rc)
		web_config_close(c);
	return rc;
}

bool web_config_tls(const struct web_config *c)
{
	return c->priorities.len > 0;
}

bool web_config_has_users(struct web_config *c)
{
	bool has;

	mutex_lock(&c->lock);
	has = c->current &&
		sign_in_is_asked(
			&(struct sign_in){ c->users, c->current->file.users, &c->current->file.rights });
	mutex_unlock(&c->lock);
	return has;
}

const char *web_config_priorities(const struct web_config *c)
{
	return c->priorities.ptr;
}

/* ---- looking again ---- */

static void web_config_retire(struct web_config *c, struct http_config_generation *fresh)
{
	int64_t now = clock_monotonic_ns();
	struct http_config_generation **at = &c->retired;

	mutex_assert_held(&c->lock);
	c->current->retired_ns = now;
	c->current->older = c->retired;
	c->retired = c->current;
	c->current = fresh;
	while (*at && now - (*at)->retired_ns < RETIRED_NS)
		at = &(*at)->older;
	while (*at) { /* all behind it are older */
		struct http_config_generation *g = *at;

		*at = g->older;
		http_config_generation_unref(g);
	}
}

static enum err_code web_config_read_again(struct web_config *c, struct err *err)
{
	struct http_config_generation *fresh;
	enum err_code rc = web_config_generation_read(c, &fresh, err);

	if (rc)
		return rc;
	if ((fresh->keys != NULL) != web_config_tls(c)) {
		http_config_generation_unref(fresh);
		return err_set(
			err, ERR_INVALID, "%s: TLS cannot be turned on or off without a restart", c->path);
	}
	web_config_retire(c, fresh);
	return ERR_OK;
}

static void web_config_look(struct web_config *c)
{
	int64_t now = clock_monotonic_ns();
	bool differs = false;
	struct err err;

	mutex_assert_held(&c->lock);
	if (!c->path || now - c->looked_ns < LOOK_NS)
		return;
	c->looked_ns = now;
	for (size_t i = 0; i < MARKS; i++)
		differs |= http_config_mark_differs(&c->marks[i]);
	if (!differs)
		return;
	if (web_config_read_again(c, &err)) {
		metric_add(&reloads, "failed", 1);
		log_error("web", "web configuration is wrong, kept the old one", LOG_E(&err));
	} else {
		metric_add(&reloads, "ok", 1);
		log_info("web", "web configuration read again", LOG_S("file", c->path));
	}
}

static struct http_config_generation *web_config_generation_take(struct web_config *c)
{
	struct http_config_generation *g;

	mutex_lock(&c->lock);
	web_config_look(c);
	g = c->current;
	atomic_fetch_add(&g->refs, 1);
	mutex_unlock(&c->lock);
	return g;
}

static int http_config_retrieve(gnutls_session_t session, const gnutls_datum_t *authorities,
	int authorities_n, const gnutls_pk_algorithm_t *algorithms, int algorithms_n,
	gnutls_pcert_st **chain, unsigned *chain_n, gnutls_privkey_t *key)
{
	struct web_config *c = atomic_load(&served);
	struct http_config_generation *g;

	(void)authorities;
	(void)authorities_n;
	(void)algorithms;
	(void)algorithms_n;
	if (!c)
		return -1;
	g = web_config_generation_take(c);
	if (g->file.tls.auth != TLS_NO_CLIENT_CERT)
		gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUEST);
	*chain = g->keys->chain;
	*chain_n = g->keys->chain_n;
	*key = g->keys->key;
	http_config_generation_unref(g); /* current or retired: it outlives the handshake */
	return 0;
}

void *web_config_certificate_fn(void)
{
	return (void *)http_config_retrieve;
}

/* ---- requests ---- */

static void http_config_generation_add_headers(
	const struct http_config_generation *g, struct http_in *in, struct http_out *out)
{
	struct labels h = labels_dup(&in->arena, g->file.http.headers);

	for (size_t i = 0; h.v && i < h.n; i++)
		http_add_header(out, web_file_header(h.v[i].name), str_dup(&in->arena, h.v[i].value));
}

static bool http_config_generation_admit_client(
	const struct http_config_generation *g, const struct http_in *in, struct http_out *out)
{
	struct buf why = { 0 };
	bool allowed;

	if (!g->keys)
		return true;
	allowed = in->tls_session &&
		tls_client_allowed(g->keys, g->file.tls.auth, in->tls_session, &why);
	if (!allowed) {
		metric_add(&refused, "certificate", 1);
		http_text(out, 403, "Forbidden: " STR_FMT, STR_ARG(buf_str(&why)));
	}
	buf_release(&why);
	return allowed;
}

static void http_config_generation_leave(void *held)
{
	http_config_generation_unref(held);
}

/* The user points into the generation until the request ends. */
static enum http_admission web_config_admit_user(struct web_config *c,
	struct http_config_generation *g, struct http_in *in, struct http_out *out, bool may_wait,
	bool open)
{
	const struct sign_in s = { c->users, g->file.users, &g->file.rights };

	http_user_leave(&in->user); /* admission may run twice */
	atomic_fetch_add(&g->refs, 1);
	in->user.release = http_config_generation_leave;
	in->user.held = g;
	if (!sign_in_is_asked(&s)) {
		in->user.roles = ROLES_ALL;
		return HTTP_ADMITTED;
	}
	switch (sign_in_verify(&s, in, may_wait)) {
	case USERS_OK:
		return HTTP_ADMITTED;
	case USERS_LATER:
		return HTTP_ADMIT_LATER;
	case USERS_BUSY:
		metric_add(&refused, "busy", 1);
		http_text(out, 429,
			"too many password checks at once: try again later "
			"(--web.max-password-checks-per-address)");
		http_add_header(out, "Retry-After", STR("1"));
		return HTTP_ANSWERED;
	case USERS_UNNAMED:
		if (open)
			return HTTP_ADMITTED;
		break;
	case USERS_REFUSED:
		break;
	}
	metric_add(&refused, "user", 1);
	http_text(out, 401, "Unauthorized");
	sign_in_challenge(&s, out);
	return HTTP_ANSWERED;
}

enum http_admission web_config_admit(
	struct web_config *c, struct http_in *in, struct http_out *out, bool may_wait, bool open)
{
	struct http_config_generation *g = web_config_generation_take(c);
	enum http_admission admission = HTTP_ANSWERED;

	http_config_generation_add_headers(g, in, out);
	if (http_config_generation_admit_client(g, in, out))
		admission = web_config_admit_user(c, g, in, out, may_wait, open);
	http_config_generation_unref(g);
	return admission;
}
