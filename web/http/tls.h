/*
 * TLS of the server: certificate, key and the authorities of clients, read together from PEM files
 * and never changed; and the checks of a client's certificate.
 *
 * Errors:    ERR_INVALID (names the file), ERR_NOT_FOUND, ERR_IO, ERR_LIMIT.
 * Ownership: tls_keys_open hands *out to the caller. GnuTLS uses chain and key during a handshake
 *            only; keep replaced keys until no handshake can use them.
 * Threads:   immutable once open.
 * Source:    GnuTLS's manual; Go's crypto/tls for what the client_auth_types mean.
 */
#ifndef WEB_HTTP_TLS_H
#define WEB_HTTP_TLS_H

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>

#include "base/str.h"

#define TLS_CHAIN_MAX 16u
#define TLS_FILE_BYTES_MAX (1u << 20)

enum tls_client_auth {
	TLS_NO_CLIENT_CERT,
	TLS_REQUEST_CLIENT_CERT, /* request one, accept any */
	TLS_REQUIRE_ANY_CLIENT_CERT, /* require one, accept any */
	TLS_VERIFY_CLIENT_CERT_IF_GIVEN,
	TLS_REQUIRE_AND_VERIFY_CLIENT_CERT,
};

bool tls_client_auth_parse(struct str name, enum tls_client_auth *out);
static inline bool tls_client_auth_verifies(enum tls_client_auth a)
{
	return a >= TLS_VERIFY_CLIENT_CERT_IF_GIVEN;
}

/* "TLS10".."TLS13" to 0..3. */
bool tls_version_parse(struct str name, int *out);
/* GnuTLS's priority string for versions min..max. */
void tls_priorities(struct buf *out, int min, int max);

struct tls_keys {
	gnutls_pcert_st chain[TLS_CHAIN_MAX];
	unsigned chain_n;
	gnutls_privkey_t key;
	gnutls_x509_trust_list_t trust; /* NULL: no authorities */
};

/* ca_file NULL: none. */
MUST_CHECK enum err_code tls_keys_open(const char *cert_file, const char *key_file,
	const char *ca_file, struct tls_keys **out, struct err *err);
void tls_keys_close(struct tls_keys *k); /* NULL is fine */

/* True if the client's certificate satisfies `auth`; if not, `why` says what is wrong. */
bool tls_client_allowed(
	const struct tls_keys *k, enum tls_client_auth auth, gnutls_session_t session, struct buf *why);

#endif
