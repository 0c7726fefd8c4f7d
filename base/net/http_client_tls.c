/*
 * TLS contexts. Making one means parsing certificates (the system's bundle has some 140), so they
 * are kept per settings; each use compares the state of the files they came from.
 *
 * We write to sockets through our own BIO, which sends with MSG_NOSIGNAL: OpenSSL's uses write(2),
 * which raises SIGPIPE when the peer has gone.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/net/http_client_internal.h"

#define CONTEXTS_MAX 256
#define PEM_BYTES_MAX (4u << 20)

enum { FILE_CA, FILE_CERT, FILE_KEY, FILES };

struct http_client_tls_stamp { /* of a file: equal means unchanged */
	bool exists;
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec mtime;
};

struct settings {
	struct str ca, ca_file, cert, cert_file, key, key_file, min_version, max_version;
	bool skip_verify;
};

struct http_client_tls_entry {
	TAILQ_ENTRY(http_client_tls_entry) link; /* most recently used first */
	struct arena arena; /* settings */
	struct settings settings;
	struct http_client_tls_stamp stamps[FILES];
	struct tls_context context;
};

TAILQ_HEAD(entry_list, http_client_tls_entry);

struct tls_cache {
	struct entry_list entries;
	size_t entries_n;
	uint64_t last_id;
};

/* -------------------------------------------------------------------------------------------- */
/* BIO */

static int http_client_tls_bio_write(BIO *b, const char *text, int n)
{
	ssize_t done = send((int)(intptr_t)BIO_get_data(b), text, n < 0 ? 0 : (size_t)n, MSG_NOSIGNAL);

	BIO_clear_retry_flags(b);
	if (done < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_write(b);
	return (int)done;
}

static int http_client_tls_bio_read(BIO *b, char *text, int n)
{
	ssize_t done = recv((int)(intptr_t)BIO_get_data(b), text, n < 0 ? 0 : (size_t)n, 0);

	BIO_clear_retry_flags(b);
	if (done < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_read(b);
	return (int)done;
}

/* We do not report the end of file, so OpenSSL reports a system error with errno 0. */
static long http_client_tls_bio_ctrl(BIO *b, int cmd, long n, void *bytes)
{
	return cmd == BIO_CTRL_FLUSH;
}

static BIO_METHOD *bio_method;

static void http_client_tls_make_bio_method(void)
{
	bio_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket without signals");
	if (bio_method &&
		(!BIO_meth_set_write(bio_method, http_client_tls_bio_write) ||
			!BIO_meth_set_read(bio_method, http_client_tls_bio_read) ||
			!BIO_meth_set_ctrl(bio_method, http_client_tls_bio_ctrl))) {
		BIO_meth_free(bio_method);
		bio_method = NULL;
	}
}

/* -------------------------------------------------------------------------------------------- */
/* Making a context */

/* Takes OpenSSL's last error off its queue, as text. */
static const char *http_client_tls_last_problem(void)
{
	unsigned long code = ERR_peek_last_error();
	const char *reason = code ? ERR_reason_error_string(code) : NULL;

	ERR_clear_error();
	return reason ? reason : "unknown error";
}

/* Never asks on the terminal: an encrypted key is an error. */
static int http_client_tls_no_password(char *buf, int size, int rwflag, void *ctx)
{
	return 0;
}

/* PEM from the configuration itself or from the file, as a BIO over b. */
static enum err_code http_client_tls_open_pem(
	struct str text, struct str file, struct buf *b, BIO **out, struct err *err)
{
	enum err_code rc;

	if (text.len)
		buf_add_str(b, text);
	else if ((rc = fs_read_file(file.ptr, PEM_BYTES_MAX, b, err)))
		return rc;
	*out = b->len ? BIO_new_mem_buf(b->ptr, (int)b->len) : BIO_new(BIO_s_mem());
	return *out && !buf_failed(b) ? ERR_OK : err_set(err, ERR_NOMEM, "out of memory");
}

static void http_client_tls_close_pem(struct buf *b, BIO *bio)
{
	BIO_free(bio);
	if (b->ptr)
		OPENSSL_cleanse(b->ptr, b->cap); /* it may have been a key */
	buf_release(b);
	ERR_clear_error(); /* the end of a PEM file is an error to OpenSSL */
}

static const char *http_client_tls_where(struct str file, const char *what)
{
	return file.len ? file.ptr : what;
}

static enum err_code http_client_tls_load_ca(
	SSL_CTX *ctx, const struct settings *s, struct str file, struct err *err)
{
	X509_STORE *store = SSL_CTX_get_cert_store(ctx);
	struct buf b = { 0 };
	BIO *bio = NULL;
	enum err_code rc;
	size_t n = 0;
	X509 *x;

	if ((rc = http_client_tls_open_pem(s->ca, file, &b, &bio, err)))
		goto out;
	while ((x = PEM_read_bio_X509(bio, NULL, http_client_tls_no_password, NULL))) {
		n += X509_STORE_add_cert(store, x) == 1;
		X509_free(x);
	}
	if (!n)
		rc = err_set(err, ERR_INVALID, "no certificate found");
out:
	http_client_tls_close_pem(&b, bio);
	return rc ?
		err_wrap(err, rc, "tls ca %s", http_client_tls_where(file, "in the configuration")) :
		ERR_OK;
}

static enum err_code http_client_tls_load_cert(
	SSL_CTX *ctx, const struct settings *s, struct err *err)
{
	struct buf b = { 0 };
	BIO *bio = NULL;
	enum err_code rc;
	X509 *x = NULL;

	if ((rc = http_client_tls_open_pem(s->cert, s->cert_file, &b, &bio, err)))
		goto out;
	x = PEM_read_bio_X509(bio, NULL, http_client_tls_no_password, NULL);
	if (!x || SSL_CTX_use_certificate(ctx, x) != 1) {
		rc = err_set(
			err, ERR_INVALID, "%s", x ? http_client_tls_last_problem() : "no certificate found");
		goto out;
	}
	X509_free(x);
	while ((x = PEM_read_bio_X509(
				bio, NULL, http_client_tls_no_password, NULL))) { /* the chain behind it */
		if (SSL_CTX_add1_chain_cert(ctx, x) != 1) {
			rc = err_set(err, ERR_INVALID, "%s", http_client_tls_last_problem());
			goto out;
		}
		X509_free(x);
	}
out:
	X509_free(x);
	http_client_tls_close_pem(&b, bio);
	return rc ? err_wrap(err, rc, "tls cert %s",
					http_client_tls_where(s->cert_file, "in the configuration")) :
				ERR_OK;
}

static enum err_code http_client_tls_load_key(
	SSL_CTX *ctx, const struct settings *s, struct err *err)
{
	struct buf b = { 0 };
	EVP_PKEY *key = NULL;
	BIO *bio = NULL;
	enum err_code rc;

	if ((rc = http_client_tls_open_pem(s->key, s->key_file, &b, &bio, err)))
		goto out;
	key = PEM_read_bio_PrivateKey(bio, NULL, http_client_tls_no_password, NULL);
	if (!key)
		rc = err_set(err, ERR_INVALID, "no private key found, or an encrypted one");
	else if (SSL_CTX_use_PrivateKey(ctx, key) != 1)
		rc = err_set(err, ERR_INVALID, "%s", http_client_tls_last_problem());
out:
	EVP_PKEY_free(key);
	http_client_tls_close_pem(&b, bio);
	return rc ? err_wrap(err, rc, "tls key %s",
					http_client_tls_where(s->key_file, "in the configuration")) :
				ERR_OK;
}

static enum err_code http_client_tls_version_of(
	struct str name, int missing, int *out, struct err *err)
{
	/* clang-format off */
	static const struct {
		const char *name;
		int version;
	} rows[] = {
		{ "TLS10", TLS1_VERSION }, { "TLS11", TLS1_1_VERSION }, { "TLS12", TLS1_2_VERSION },
		{ "TLS13", TLS1_3_VERSION },
	};
	/* clang-format on */

	*out = missing;
	if (!name.len)
		return ERR_OK;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (str_is(name, rows[i].name)) {
			*out = rows[i].version;
			return ERR_OK;
		}
	return err_set(err, ERR_INVALID, "unknown TLS version: " STR_FMT, STR_ARG(name));
}

static enum err_code http_client_tls_set_versions(
	SSL_CTX *ctx, const struct settings *s, struct err *err)
{
	enum err_code rc;
	int min, max;

	if ((rc = http_client_tls_version_of(s->min_version, TLS1_2_VERSION, &min, err)) ||
		(rc = http_client_tls_version_of(s->max_version, 0, &max, err)))
		return rc;
	if (max && max < min && !s->min_version.len)
		min = max;
	if (min < TLS1_2_VERSION) /* asked for by name: their hashes are below the default level */
		SSL_CTX_set_security_level(ctx, 0);
	if (SSL_CTX_set_min_proto_version(ctx, min) != 1 ||
		SSL_CTX_set_max_proto_version(ctx, max) != 1)
		return err_set(err, ERR_INVALID, "TLS versions: %s", http_client_tls_last_problem());
	return ERR_OK;
}

static enum err_code settings_make_context(
	const struct settings *s, struct str ca_file, SSL_CTX **out, struct err *err)
{
	static const unsigned char alpn[] = "\x08http/1.1";
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	enum err_code rc;

	if (!ctx)
		return err_set(err, ERR_NOMEM, "tls: %s", http_client_tls_last_problem());
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_mode(ctx,
		SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
			SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_verify(ctx, s->skip_verify ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_alpn_protos(ctx, alpn, sizeof(alpn) - 1);
	if ((rc = http_client_tls_set_versions(ctx, s, err)) ||
		((s->ca.len || ca_file.len) && (rc = http_client_tls_load_ca(ctx, s, ca_file, err))))
		goto fail;
	if (s->cert.len || s->cert_file.len) {
		if ((rc = http_client_tls_load_cert(ctx, s, err)) ||
			(rc = http_client_tls_load_key(ctx, s, err)))
			goto fail;
		if (SSL_CTX_check_private_key(ctx) != 1) {
			rc = err_set(err, ERR_INVALID, "tls cert and key: %s", http_client_tls_last_problem());
			goto fail;
		}
	}
	*out = ctx;
	return ERR_OK;
fail:
	SSL_CTX_free(ctx);
	return rc;
}

/* -------------------------------------------------------------------------------------------- */
/* Cache */

/* The system's bundle, in the usual places of distributions. "": none; nothing will verify. */
static struct str http_client_tls_system_ca(void)
{
	static const char *const paths[] = { "/etc/ssl/certs/ca-certificates.crt",
		"/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem" };
	const char *env = getenv("SSL_CERT_FILE");

	if (env && *env)
		return str_of(env);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (fs_exists(paths[i]))
			return str_of(paths[i]);
	return STR("");
}

static struct http_client_tls_stamp http_client_tls_stamp_of(struct str file)
{
	struct stat st;

	if (!file.len || stat(file.ptr, &st) != 0)
		return (struct http_client_tls_stamp){ 0 };
	return (struct http_client_tls_stamp){ true, st.st_dev, st.st_ino, st.st_size, st.st_mtim };
}

static bool http_client_tls_stamp_eq(
	const struct http_client_tls_stamp *a, const struct http_client_tls_stamp *b)
{
	return a->exists == b->exists && a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
		a->mtime.tv_sec == b->mtime.tv_sec && a->mtime.tv_nsec == b->mtime.tv_nsec;
}

static bool settings_eq(const struct settings *a, const struct settings *b)
{
	return str_eq(a->ca, b->ca) && str_eq(a->ca_file, b->ca_file) && str_eq(a->cert, b->cert) &&
		str_eq(a->cert_file, b->cert_file) && str_eq(a->key, b->key) &&
		str_eq(a->key_file, b->key_file) && str_eq(a->min_version, b->min_version) &&
		str_eq(a->max_version, b->max_version) && a->skip_verify == b->skip_verify;
}

static struct settings settings_of(const struct http_config *c, bool client_cert)
{
	struct settings s = { 0 };

	if (!c)
		return s;
	s = (struct settings){ .ca = c->tls_ca,
		.ca_file = c->tls_ca_file,
		.min_version = c->tls_min_version,
		.max_version = c->tls_max_version,
		.skip_verify = c->tls_insecure_skip_verify };
	if (client_cert) {
		s.cert = c->tls_cert;
		s.cert_file = c->tls_cert_file;
		s.key = c->tls_key;
		s.key_file = c->tls_key_file;
	}
	return s;
}

enum err_code tls_cache_open(struct tls_cache **out, struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct tls_cache *c = calloc(1, sizeof(*c));

	pthread_once(&once, http_client_tls_make_bio_method);
	if (!c || !bio_method) {
		free(c);
		return err_nomem(err, "tls");
	}
	TAILQ_INIT(&c->entries);
	*out = c;
	return ERR_OK;
}

static void tls_cache_entry_free(struct tls_cache *c, struct http_client_tls_entry *e)
{
	TAILQ_REMOVE(&c->entries, e, link);
	c->entries_n--;
	SSL_CTX_free(e->context.ctx); /* sessions under way hold their own reference */
	arena_release(&e->arena);
	free(e);
}

void tls_cache_close(struct tls_cache *c)
{
	struct http_client_tls_entry *e;

	if (!c)
		return;
	while ((e = TAILQ_FIRST(&c->entries)))
		tls_cache_entry_free(c, e);
	free(c);
}

static struct http_client_tls_entry *tls_cache_entry_new(
	struct tls_cache *c, const struct settings *s)
{
	struct http_client_tls_entry *e = calloc(1, sizeof(*e));
	const struct str *from[] = { &s->ca, &s->ca_file, &s->cert, &s->cert_file, &s->key,
		&s->key_file, &s->min_version, &s->max_version };
	struct str *to[8];

	if (!e)
		return NULL;
	arena_init(&e->arena, 0);
	e->settings.skip_verify = s->skip_verify;
	to[0] = &e->settings.ca, to[1] = &e->settings.ca_file, to[2] = &e->settings.cert;
	to[3] = &e->settings.cert_file, to[4] = &e->settings.key, to[5] = &e->settings.key_file;
	to[6] = &e->settings.min_version, to[7] = &e->settings.max_version;
	for (size_t i = 0; i < 8; i++) {
		*to[i] = str_dup(&e->arena, *from[i]);
		if (!to[i]->ptr) {
			arena_release(&e->arena);
			free(e);
			return NULL;
		}
	}
	TAILQ_INSERT_HEAD(&c->entries, e, link);
	if (++c->entries_n > CONTEXTS_MAX)
		tls_cache_entry_free(c, TAILQ_LAST(&c->entries, entry_list));
	return e;
}

enum err_code tls_cache_get(struct tls_cache *c, const struct http_config *config, bool client_cert,
	struct tls_context *out, struct err *err)
{
	struct settings s = settings_of(config, client_cert);
	struct http_client_tls_stamp now[FILES];
	struct str ca_file;
	enum err_code rc;
	struct http_client_tls_entry *e;
	SSL_CTX *ctx = NULL;

	TAILQ_FOREACH (e, &c->entries, link)
		if (settings_eq(&e->settings, &s))
			break;
	if (!e && !(e = tls_cache_entry_new(c, &s)))
		return err_nomem(err, "tls");
	TAILQ_REMOVE(&c->entries, e, link);
	TAILQ_INSERT_HEAD(&c->entries, e, link);
	s = e->settings; /* NUL-terminated copies */
	ca_file = s.ca.len || s.skip_verify ? STR("") :
	s.ca_file.len                       ? s.ca_file :
										  http_client_tls_system_ca();
	now[FILE_CA] = http_client_tls_stamp_of(ca_file);
	now[FILE_CERT] = http_client_tls_stamp_of(s.cert_file);
	now[FILE_KEY] = http_client_tls_stamp_of(s.key_file);
	if (!e->context.ctx || !http_client_tls_stamp_eq(&now[0], &e->stamps[0]) ||
		!http_client_tls_stamp_eq(&now[1], &e->stamps[1]) ||
		!http_client_tls_stamp_eq(&now[2], &e->stamps[2])) {
		if ((rc = settings_make_context(&s, ca_file, &ctx, err)))
			return rc;
		SSL_CTX_free(e->context.ctx);
		memcpy(e->stamps, now, sizeof(now));
		e->context = (struct tls_context){ ctx, ++c->last_id, s.skip_verify };
	}
	*out = e->context;
	return ERR_OK;
}

/* -------------------------------------------------------------------------------------------- */
/* Sessions */

static bool http_client_tls_expect_name(SSL *ssl, const char *name)
{
	unsigned char ip[16];
	char host[256];
	size_t n = strlen(name);

	if (inet_pton(AF_INET, name, ip) == 1 || inet_pton(AF_INET6, name, ip) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
	if (n && name[n - 1] == '.') /* the dot of the root is not in certificates */
		n--;
	if (!n || n >= sizeof(host))
		return false;
	memcpy(host, name, n);
	host[n] = '\0';
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

enum err_code tls_session(const struct tls_context *t, int fd, SSL *through, const char *name,
	bool http2, SSL **out, struct err *err)
{
	static const unsigned char both[] = "\x02h2\x08http/1.1";
	SSL *ssl = SSL_new(t->ctx);
	BIO *bio = ssl ? BIO_new(through ? BIO_f_ssl() : bio_method) : NULL;

	if (!bio) {
		SSL_free(ssl);
		return err_set(err, ERR_NOMEM, "%s", http_client_tls_last_problem());
	}
	if (through) {
		BIO_set_ssl(bio, through, BIO_NOCLOSE);
	} else {
		BIO_set_data(bio, (void *)(intptr_t)fd);
		BIO_set_init(bio, 1);
	}
	SSL_set_bio(ssl, bio, bio);
	if (!http_client_tls_expect_name(ssl, name)) {
		SSL_free(ssl);
		return err_set(err, ERR_INVALID, "invalid server name \"%s\": %s", name,
			http_client_tls_last_problem());
	}
	if (http2 && SSL_set_alpn_protos(ssl, both, sizeof(both) - 1)) {
		SSL_free(ssl);
		return err_nomem(err, "tls");
	}
	SSL_set_connect_state(ssl);
	*out = ssl;
	return ERR_OK;
}

bool tls_chose_http2(const SSL *ssl)
{
	const unsigned char *name = NULL;
	unsigned n = 0;

	SSL_get0_alpn_selected(ssl, &name, &n);
	return n == 2 && memcmp(name, "h2", 2) == 0;
}

void tls_describe(SSL *ssl, int ssl_error, int errno_value, const char *name, struct buf *out)
{
	long verify = SSL_get_verify_result(ssl);

	if (ssl_error == SSL_ERROR_SSL && verify != X509_V_OK &&
		SSL_get_verify_mode(ssl) != SSL_VERIFY_NONE) {
		buf_printf(out, "certificate verify failed: %s", X509_verify_cert_error_string(verify));
		if (verify == X509_V_ERR_HOSTNAME_MISMATCH || verify == X509_V_ERR_IP_ADDRESS_MISMATCH)
			buf_printf(out, " (it is not for %s)", name);
		ERR_clear_error();
	} else if (ssl_error == SSL_ERROR_SSL) {
		buf_add_cstr(out, http_client_tls_last_problem());
	} else if (ssl_error == SSL_ERROR_SYSCALL && errno_value) {
		buf_add_cstr(out, strerror(errno_value));
	} else {
		buf_add_cstr(out, "connection closed");
	}
}
