#include "web/http/tls.h"

#include <gnutls/x509.h>
#include <stdlib.h>

#include "base/fs.h"

#define KEY_ID_BYTES_MAX 64

bool tls_client_auth_parse(struct str name, enum tls_client_auth *out)
{
	static const struct {
		const char *name;
		enum tls_client_auth auth;
	} names[] = {
		{ "NoClientCert", TLS_NO_CLIENT_CERT },
		{ "RequestClientCert", TLS_REQUEST_CLIENT_CERT },
		{ "RequireAnyClientCert", TLS_REQUIRE_ANY_CLIENT_CERT },
		{ "RequireClientCert", TLS_REQUIRE_ANY_CLIENT_CERT }, /* an old name, still taken */
		{ "VerifyClientCertIfGiven", TLS_VERIFY_CLIENT_CERT_IF_GIVEN },
		{ "RequireAndVerifyClientCert", TLS_REQUIRE_AND_VERIFY_CLIENT_CERT },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_is(name, names[i].name)) {
			*out = names[i].auth;
			return true;
		}
	return false;
}

bool tls_version_parse(struct str name, int *out)
{
	if (name.len != 5 ||
		!str_has_prefix(name, STR("TLS1")) || name.ptr[4] < '0' || name.ptr[4] > '3')
		return false;
	*out = name.ptr[4] - '0';
	return true;
}

void tls_priorities(struct buf *out, int min, int max)
{
	buf_add_cstr(out, "NORMAL:-VERS-ALL");
	for (int v = max; v >= min; v--)
		buf_printf(out, ":+VERS-TLS1.%d", v);
	buf_add_char(out, '\0');
}

/* ---- reading ---- */

static enum err_code tls_read_pem(
	const char *path, struct buf *text, gnutls_datum_t *out, struct err *err)
{
	enum err_code rc = fs_read_file(path, TLS_FILE_BYTES_MAX, text, err);

	*out = (gnutls_datum_t){ (unsigned char *)text->ptr, (unsigned)text->len };
	return rc;
}

static enum err_code tls_keys_read_chain(struct tls_keys *k, const char *path, struct err *err)
{
	struct buf text = { 0 };
	gnutls_datum_t pem;
	unsigned n = TLS_CHAIN_MAX;
	enum err_code rc = tls_read_pem(path, &text, &pem, err);
	int got;

	if (!rc) {
		got = gnutls_pcert_list_import_x509_raw(
			k->chain, &n, &pem, GNUTLS_X509_FMT_PEM, GNUTLS_X509_CRT_LIST_SORT);
		if (got < 0)
			rc = err_set(err, ERR_INVALID, "certificate %s: %s", path, gnutls_strerror(got));
		else
			k->chain_n = n;
	}
	buf_release(&text);
	return rc;
}

static enum err_code tls_keys_read_key(struct tls_keys *k, const char *path, struct err *err)
{
	struct buf text = { 0 };
	gnutls_datum_t pem;
	enum err_code rc = tls_read_pem(path, &text, &pem, err);
	int got;

	if (!rc && str_find(buf_str(&text), STR("PRIVATE KEY-----")) < 0)
		rc = err_set(err, ERR_INVALID, "private key %s: no key in it", path);
	if (!rc && !(got = gnutls_privkey_init(&k->key)))
		got = gnutls_privkey_import_x509_raw(k->key, &pem, GNUTLS_X509_FMT_PEM, NULL, 0);
	if (!rc && got < 0)
		rc = err_set(err, ERR_INVALID, "private key %s: %s", path, gnutls_strerror(got));
	if (text.ptr)
		gnutls_memset(text.ptr, 0, text.len);
	buf_release(&text);
	return rc;
}

static enum err_code tls_keys_read_authorities(
	struct tls_keys *k, const char *path, struct err *err)
{
	struct buf text = { 0 };
	gnutls_datum_t pem;
	enum err_code rc = tls_read_pem(path, &text, &pem, err);
	int got;

	if (!rc && !(got = gnutls_x509_trust_list_init(&k->trust, 0)))
		got = gnutls_x509_trust_list_add_trust_mem(k->trust, &pem, NULL, GNUTLS_X509_FMT_PEM, 0, 0);
	if (!rc && got <= 0)
		rc = err_set(err, ERR_INVALID, "client CA %s: %s", path,
			got ? gnutls_strerror(got) : "no certificate in it");
	buf_release(&text);
	return rc;
}

static bool tls_key_id(gnutls_pubkey_t key, unsigned char id[KEY_ID_BYTES_MAX], size_t *n)
{
	*n = KEY_ID_BYTES_MAX;
	return gnutls_pubkey_get_key_id(key, GNUTLS_KEYID_USE_SHA256, id, n) == 0;
}

static bool tls_keys_belong_together(const struct tls_keys *k)
{
	unsigned char certified[KEY_ID_BYTES_MAX], own[KEY_ID_BYTES_MAX];
	size_t certified_n, own_n;
	gnutls_pubkey_t key;
	bool same;

	if (gnutls_pubkey_init(&key))
		return false;
	same = gnutls_pubkey_import_privkey(key, k->key, 0, 0) == 0 && tls_key_id(key, own, &own_n) &&
		tls_key_id(k->chain[0].pubkey, certified, &certified_n) && own_n == certified_n &&
		!memcmp(own, certified, own_n);
	gnutls_pubkey_deinit(key);
	return same;
}

enum err_code tls_keys_open(const char *cert_file, const char *key_file, const char *ca_file,
	struct tls_keys **out, struct err *err)
{
	struct tls_keys *k = calloc(1, sizeof(*k));
	enum err_code rc;

	if (!k)
		return err_set(err, ERR_NOMEM, "certificate %s: out of memory", cert_file);
	if ((rc = tls_keys_read_chain(k, cert_file, err)))
		goto fail;
	if ((rc = tls_keys_read_key(k, key_file, err)))
		goto fail;
	if (!tls_keys_belong_together(k)) {
		rc = err_set(err, ERR_INVALID, "private key %s does not belong to certificate %s", key_file,
			cert_file);
		goto fail;
	}
	if (ca_file && (rc = tls_keys_read_authorities(k, ca_file, err)))
		goto fail;
	*out = k;
	return ERR_OK;
fail:
	tls_keys_close(k);
	return rc;
}

void tls_keys_close(struct tls_keys *k)
{
	if (!k)
		return;
	for (unsigned i = 0; i < k->chain_n; i++)
		gnutls_pcert_deinit(&k->chain[i]);
	if (k->key)
		gnutls_privkey_deinit(k->key);
	if (k->trust)
		gnutls_x509_trust_list_deinit(k->trust, 1);
	free(k);
}

/* ---- clients ---- */

static bool tls_keys_verify(
	const struct tls_keys *k, gnutls_x509_crt_t *certs, unsigned n, struct buf *why)
{
	gnutls_typed_vdata_st purpose = { GNUTLS_DT_KEY_PURPOSE_OID,
		(unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT, 0 };
	gnutls_datum_t text = { NULL, 0 };
	unsigned status = 0;
	int rc = gnutls_x509_trust_list_verify_crt2(k->trust, certs, n, &purpose, 1, 0, &status, NULL);

	if (rc < 0) {
		buf_add_cstr(why, gnutls_strerror(rc));
		return false;
	}
	if (!status)
		return true;
	if (!gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0) &&
		text.data)
		buf_add_str(why, str_trim((struct str){ (char *)text.data, text.size }));
	gnutls_free(text.data);
	return false;
}

bool tls_client_allowed(
	const struct tls_keys *k, enum tls_client_auth auth, gnutls_session_t session, struct buf *why)
{
	gnutls_x509_crt_t certs[TLS_CHAIN_MAX];
	const gnutls_datum_t *raw;
	unsigned raw_n = 0, n = 0;
	bool allowed;

	if (auth == TLS_NO_CLIENT_CERT || auth == TLS_REQUEST_CLIENT_CERT)
		return true;
	raw = gnutls_certificate_get_peers(session, &raw_n);
	if (!raw || !raw_n) {
		buf_add_cstr(why, "a client certificate is required");
		return auth == TLS_VERIFY_CLIENT_CERT_IF_GIVEN;
	}
	if (!tls_client_auth_verifies(auth))
		return true;
	allowed = raw_n <= TLS_CHAIN_MAX;
	while (allowed && n < raw_n) {
		if (gnutls_x509_crt_init(&certs[n]))
			break;
		n++;
		allowed = gnutls_x509_crt_import(certs[n - 1], &raw[n - 1], GNUTLS_X509_FMT_DER) == 0;
	}
	allowed = allowed && n == raw_n;
	if (!allowed)
		buf_add_cstr(why, "the certificate chain is not readable");
	else
		allowed = tls_keys_verify(k, certs, n, why);
	while (n)
		gnutls_x509_crt_deinit(certs[--n]);
	return allowed;
}
