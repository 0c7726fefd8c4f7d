/*
 * Credentials are got once and kept. If they end, one thread renews them some minutes before, while
 * others go on with the old ones. A file is read again when it has changed.
 */
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/net/aws_profile.h"
#include "tsdb/bucket/internal.h"

#define FILE_BYTES_MAX (1u << 20)
#define KEY_BYTES_MAX (64u << 10)
#define FILES_MAX 3
#define RENEW_BEFORE_NS (5 * NS_PER_MIN) /* at most half of their life */
#define RENEW_PAUSE_NS (10 * NS_PER_S) /* after a failure, while the old ones hold */
#define LAST_MOMENT_NS (10 * NS_PER_S) /* a request takes its time */

struct credentials {
	struct bucket_credentials_config c; /* kind is never ENVIRONMENT; in the bucket's arena */
	struct mutex lock; /* guards what follows */
	struct cond renewed;
	bool renewing; /* a thread renews them, without the lock */
	uint64_t serial; /* of what is kept; 0: nothing is */
	struct arena arena;
	struct sigv4_credentials keys; /* in the arena */
	int64_t until_ns, renew_ns; /* since 1970 */
	struct watched {
		const char *path;
		struct timespec time;
		int64_t bytes; /* -1: not read yet */
	} files[FILES_MAX]; /* that are read again when they change */
	size_t files_n;
};

/* ---- sources ---- */

static struct str credentials_environment(const char *name)
{
	const char *value = getenv(name);

	return str_of(value ? value : "");
}

/* Credentials by variables of the environment, in the order of AWS's programs. */
static enum err_code bucket_from_environment(
	struct bucket *b, struct bucket_credentials_config *c, struct err *err)
{
	struct bucket_credentials_config e = {
		.access_key = credentials_environment("AWS_ACCESS_KEY_ID"),
		.secret_key = credentials_environment("AWS_SECRET_ACCESS_KEY"),
		.session_token = credentials_environment("AWS_SESSION_TOKEN"),
		.token_file = credentials_environment("AWS_WEB_IDENTITY_TOKEN_FILE"),
		.role_arn = credentials_environment("AWS_ROLE_ARN"),
		.session_name = credentials_environment("AWS_ROLE_SESSION_NAME"),
		.file = credentials_environment("AWS_SHARED_CREDENTIALS_FILE"),
		.profile = credentials_environment("AWS_PROFILE"),
		.sts_endpoint = c->sts_endpoint,
	};
	struct str *const texts[] = { &e.access_key, &e.secret_key, &e.session_token, &e.token_file,
		&e.role_arn, &e.session_name, &e.file, &e.profile };

	if (e.access_key.len && e.secret_key.len)
		e.kind = BUCKET_STATIC;
	else if (e.token_file.len && e.role_arn.len)
		e.kind = BUCKET_WEB_IDENTITY;
	else if (e.file.len)
		e.kind = BUCKET_FILE;
	else
		return err_set(err, ERR_INVALID,
			"credentials: the environment has none (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
			"AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, or AWS_SHARED_CREDENTIALS_FILE)");
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		*texts[i] = str_dup(&b->arena, *texts[i]);
		if (!texts[i]->ptr)
			return arena_fail(&b->arena, "credentials", err);
	}
	*c = e;
	return ERR_OK;
}

static enum err_code credentials_read_file(const struct bucket_credentials_config *c,
	struct arena *a, struct credentials_got *out, struct err *err)
{
	struct str profile = c->profile.len ? c->profile : STR("default");
	struct aws_profile p = { 0 };
	struct buf text = { 0 };
	enum err_code rc;

	/* c->file ends in NUL: it is a copy */
	if (!(rc = fs_read_file(c->file.ptr, FILE_BYTES_MAX, &text, err))) {
		aws_profile_read(buf_str(&text), profile, &p);
		if ((rc = aws_profile_keys(a, &p, profile, &out->keys, err)))
			rc = err_wrap(err, rc, STR_FMT, STR_ARG(c->file));
	}
	buf_release(&text);
	return rc;
}

/* A key: the text, or the one line of the file. */
static enum err_code credentials_read_key(
	struct arena *a, struct str text, struct str file, struct str *out, struct err *err)
{
	struct buf content = { 0 };
	enum err_code rc;

	*out = text;
	if (!file.len)
		return ERR_OK;
	if (!(rc = fs_read_file(file.ptr, KEY_BYTES_MAX, &content, err))) {
		*out = str_dup(a, str_trim(buf_str(&content)));
		if (!out->ptr)
			rc = arena_fail(a, "credentials", err);
	}
	for (size_t i = 0; !rc && i < out->len; i++)
		if ((unsigned char)out->ptr[i] <= ' ' || out->ptr[i] == '\177')
			rc = err_set(err, ERR_INVALID, STR_FMT ": not one word", STR_ARG(file));
	if (!rc && !out->len)
		rc = err_set(err, ERR_INVALID, STR_FMT ": it is empty", STR_ARG(file));
	buf_release(&content);
	return rc;
}

static enum err_code credentials_read_keys(const struct bucket_credentials_config *c,
	struct arena *a, struct credentials_got *out, struct err *err)
{
	enum err_code rc;

	if ((rc = credentials_read_key(
			 a, c->access_key, c->access_key_file, &out->keys.access_key, err)) ||
		(rc = credentials_read_key(
			 a, c->secret_key, c->secret_key_file, &out->keys.secret_key, err)))
		return rc;
	return credentials_read_key(
		a, c->session_token, c->session_token_file, &out->keys.session_token, err);
}

static enum err_code bucket_ask(struct bucket *b, struct credentials *c, struct arena *a,
	struct credentials_got *out, struct err *err)
{
	switch (c->c.kind) {
	case BUCKET_FILE:
		return credentials_read_file(&c->c, a, out, err);
	case BUCKET_WEB_IDENTITY:
		return web_identity_get(b, &c->c, a, out, err);
	default:
		return credentials_read_keys(&c->c, a, out, err);
	}
}

/* ---- what is kept ---- */

static void credentials_watch(struct credentials *c, struct str path)
{
	if (path.len) /* it ends in NUL: it is a copy */
		c->files[c->files_n++] = (struct watched){ .path = path.ptr, .bytes = -1 };
}

static void credentials_forget_files(struct credentials *c)
{
	for (size_t i = 0; i < c->files_n; i++)
		c->files[i].bytes = -1;
}

static bool credentials_files_changed(struct credentials *c)
{
	bool changed = false;
	struct watched *f;
	struct stat st;

	mutex_assert_held(&c->lock);
	for (size_t i = 0; i < c->files_n; i++) {
		f = &c->files[i];
		if (stat(f->path, &st) ||
			(st.st_mtim.tv_sec == f->time.tv_sec && st.st_mtim.tv_nsec == f->time.tv_nsec &&
				st.st_size == f->bytes))
			continue;
		f->time = st.st_mtim; /* taken before it is read: a change meanwhile is seen */
		f->bytes = st.st_size;
		changed = true;
	}
	return changed;
}

static void credentials_keep(
	struct credentials *c, struct arena *a, const struct credentials_got *got)
{
	int64_t now_ns = clock_system_ns(), life_ns = got->until_ns - now_ns;

	mutex_assert_held(&c->lock);
	arena_release(&c->arena);
	c->arena = *a; /* moved */
	c->keys = got->keys;
	c->until_ns = got->until_ns;
	c->renew_ns = INT64_MAX;
	if (got->until_ns != INT64_MAX)
		c->renew_ns = got->until_ns -
			(life_ns / 2 < RENEW_BEFORE_NS ? life_ns / 2 : RENEW_BEFORE_NS);
	c->serial++;
}

/* The lock is held, and released meanwhile. */
static enum err_code bucket_renew(struct bucket *b, struct credentials *c, struct err *err)
{
	struct credentials_got got = { .until_ns = INT64_MAX };
	struct arena a;
	struct err why;
	enum err_code rc;

	mutex_assert_held(&c->lock);
	c->renewing = true;
	mutex_unlock(&c->lock);
	arena_init(&a, 0);
	rc = bucket_ask(b, c, &a, &got, &why);
	mutex_lock(&c->lock);
	c->renewing = false;
	cond_broadcast(&c->renewed);
	if (!rc) {
		credentials_keep(c, &a, &got);
		return ERR_OK;
	}
	arena_release(&a);
	if (c->serial && c->until_ns - clock_system_ns() > LAST_MOMENT_NS) {
		c->renew_ns = clock_system_ns() + RENEW_PAUSE_NS;
		log_warn("bucket", "credentials were not renewed", LOG_E(&why));
		return ERR_OK;
	}
	credentials_forget_files(c);
	err_copy(err, &why);
	if (rc == ERR_NOT_FOUND) /* a file; for callers it is an object */
		rc = ERR_IO;
	return err_wrap(err, rc, "credentials");
}

static bool credentials_is_usable(const struct credentials *c, int64_t now_ns)
{
	return c->serial && (c->until_ns == INT64_MAX || c->until_ns - now_ns > LAST_MOMENT_NS);
}

static enum err_code credentials_copy(struct credentials *c, struct arena *a,
	struct sigv4_credentials *out, uint64_t *serial, struct err *err)
{
	mutex_assert_held(&c->lock);
	out->access_key = str_dup(a, c->keys.access_key);
	out->secret_key = str_dup(a, c->keys.secret_key);
	out->session_token = str_dup(a, c->keys.session_token);
	*serial = c->serial;
	if (!out->access_key.ptr || !out->secret_key.ptr || !out->session_token.ptr)
		return arena_fail(a, "credentials", err);
	return ERR_OK;
}

enum err_code credentials_get(struct bucket *b, struct arena *a, struct sigv4_credentials *out,
	uint64_t *serial, struct err *err)
{
	struct credentials *k = b->credentials;
	enum err_code rc = ERR_OK;
	int64_t now_ns;

	mutex_lock(&k->lock);
	for (;;) {
		now_ns = clock_system_ns();
		if (k->renewing && credentials_is_usable(k, now_ns))
			break;
		if (!k->renewing) {
			if (!credentials_is_usable(k, now_ns) || now_ns >= k->renew_ns ||
				credentials_files_changed(k))
				rc = bucket_renew(b, k, err);
			break;
		}
		cond_wait(&k->renewed, &k->lock);
	}
	if (!rc)
		rc = credentials_copy(k, a, out, serial, err);
	mutex_unlock(&k->lock);
	return rc;
}

bool credentials_refused(struct bucket *b, uint64_t serial)
{
	struct credentials *k = b->credentials;
	bool others;

	mutex_lock(&k->lock);
	others = k->c.kind == BUCKET_WEB_IDENTITY || k->files_n;
	if (others && k->serial == serial) { /* nobody else has noticed yet */
		k->until_ns = 0;
		credentials_forget_files(k);
	}
	mutex_unlock(&k->lock);
	return others;
}

enum err_code credentials_open(
	struct bucket *b, const struct bucket_credentials_config *c, struct err *err)
{
	struct credentials *k = calloc(1, sizeof(*k));
	enum err_code rc = ERR_OK;

	if (!k)
		return err_nomem(err, "credentials");
	k->c = *c;
	mutex_init(&k->lock);
	cond_init(&k->renewed);
	arena_init(&k->arena, 0);
	b->credentials = k;
	if (c->kind == BUCKET_ENVIRONMENT)
		rc = bucket_from_environment(b, &k->c, err);
	c = &k->c;
	if (!rc && c->kind == BUCKET_STATIC &&
		((!c->access_key.len && !c->access_key_file.len) ||
			(!c->secret_key.len && !c->secret_key_file.len)))
		rc = err_set(err, ERR_INVALID, "credentials: an access key and a secret key are needed");
	if (!rc && k->c.kind == BUCKET_FILE && !k->c.file.len)
		rc = err_set(err, ERR_INVALID, "credentials: a file is needed");
	if (!rc && k->c.kind == BUCKET_WEB_IDENTITY && (!k->c.role_arn.len || !k->c.token_file.len))
		rc = err_set(err, ERR_INVALID, "credentials: a role and a token's file are needed");
	if (c->kind == BUCKET_FILE)
		credentials_watch(k, c->file);
	if (c->kind == BUCKET_STATIC) {
		credentials_watch(k, c->access_key_file);
		credentials_watch(k, c->secret_key_file);
		credentials_watch(k, c->session_token_file);
	}
	return rc; /* bucket_close frees it */
}

void credentials_close(struct credentials *c)
{
	if (!c)
		return;
	arena_release(&c->arena);
	cond_destroy(&c->renewed);
	mutex_destroy(&c->lock);
	free(c);
}
