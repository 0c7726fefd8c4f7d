/*
 * Certificates for tests: an authority and what it signs, made with GnuTLS and written as PEM.
 *
 * Ownership: the caller's memory; authority_close ends it.
 */
#ifndef TESTS_WEB_CERTS_H
#define TESTS_WEB_CERTS_H

#include <gnutls/x509.h>
#include <stdbool.h>

struct authority {
	gnutls_x509_crt_t cert;
	gnutls_x509_privkey_t key;
};

enum cert_use { CERT_SERVER, CERT_CLIENT, CERT_CLIENT_EXPIRED };

void authority_open(struct authority *a, const char *name);
void authority_close(struct authority *a);
void authority_write(const struct authority *a, const char *path);
/* A key pair and its certificate, signed by a, to the two files. */
void authority_sign(const struct authority *a, const char *name, enum cert_use use,
	const char *cert_path, const char *key_path);

#endif
