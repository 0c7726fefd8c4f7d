#include "tests/web/http/certs.h"

#include <gnutls/gnutls.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define DAY 86400

static void must(int rc, const char *what)
{
	if (rc < 0)
		printf("  certificates: %s: %s\n", what, gnutls_strerror(rc));
}

static void begin(
	gnutls_x509_crt_t *cert, gnutls_x509_privkey_t *key, const char *name, bool expired)
{
	static unsigned serial;
	time_t now = time(NULL);
	unsigned char bytes[4];

	serial++;
	for (int i = 0; i < 4; i++)
		bytes[i] = (unsigned char)(serial >> (24 - 8 * i));
	gnutls_x509_privkey_init(key);
	must(gnutls_x509_privkey_generate(
			 *key, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0),
		"key");
	gnutls_x509_crt_init(cert);
	gnutls_x509_crt_set_version(*cert, 3);
	gnutls_x509_crt_set_serial(*cert, bytes, sizeof(bytes));
	gnutls_x509_crt_set_activation_time(*cert, now - 10 * DAY);
	gnutls_x509_crt_set_expiration_time(*cert, expired ? now - DAY : now + DAY);
	gnutls_x509_crt_set_dn_by_oid(
		*cert, GNUTLS_OID_X520_COMMON_NAME, 0, name, (unsigned)strlen(name));
	must(gnutls_x509_crt_set_key(*cert, *key), "set key");
}

void authority_open(struct authority *a, const char *name)
{
	begin(&a->cert, &a->key, name, false);
	gnutls_x509_crt_set_basic_constraints(a->cert, 1, -1);
	gnutls_x509_crt_set_key_usage(a->cert, GNUTLS_KEY_KEY_CERT_SIGN);
	must(gnutls_x509_crt_sign2(a->cert, a->cert, a->key, GNUTLS_DIG_SHA256, 0), "sign");
}

void authority_close(struct authority *a)
{
	gnutls_x509_crt_deinit(a->cert);
	gnutls_x509_privkey_deinit(a->key);
}

static void write_file(const char *path, const gnutls_datum_t *text)
{
	FILE *f = fopen(path, "w");

	if (!f || fwrite(text->data, 1, text->size, f) != text->size)
		printf("  certificates: cannot write %s\n", path);
	if (f)
		fclose(f);
}

static void write_cert(gnutls_x509_crt_t cert, const char *path)
{
	gnutls_datum_t text = { NULL, 0 };

	must(gnutls_x509_crt_export2(cert, GNUTLS_X509_FMT_PEM, &text), "export");
	write_file(path, &text);
	gnutls_free(text.data);
}

void authority_write(const struct authority *a, const char *path)
{
	write_cert(a->cert, path);
}

void authority_sign(const struct authority *a, const char *name, enum cert_use use,
	const char *cert_path, const char *key_path)
{
	gnutls_x509_privkey_t key;
	gnutls_x509_crt_t cert;
	gnutls_datum_t text = { NULL, 0 };

	begin(&cert, &key, name, use == CERT_CLIENT_EXPIRED);
	gnutls_x509_crt_set_key_usage(cert, GNUTLS_KEY_DIGITAL_SIGNATURE);
	must(gnutls_x509_crt_set_key_purpose_oid(
			 cert, use == CERT_SERVER ? GNUTLS_KP_TLS_WWW_SERVER : GNUTLS_KP_TLS_WWW_CLIENT, 0),
		"purpose");
	must(gnutls_x509_crt_sign2(cert, a->cert, a->key, GNUTLS_DIG_SHA256, 0), "sign");
	write_cert(cert, cert_path);
	must(gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &text), "export");
	write_file(key_path, &text);
	gnutls_free(text.data);
	gnutls_x509_crt_deinit(cert);
	gnutls_x509_privkey_deinit(key);
}
