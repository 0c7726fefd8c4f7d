/* Certificates for tests of TLS, made on the spot. */
#ifndef TESTS_BASE_IDENTITY_H
#define TESTS_BASE_IDENTITY_H

#include <openssl/ssl.h>

#include "base/str.h"

struct identity {
	X509 *cert;
	EVP_PKEY *key;
};

/* A certificate for `name`. issuer NULL: self-signed. san NULL: a CA. */
bool identity_make(
	struct identity *out, const char *name, const struct identity *issuer, const char *san);
void identity_release(struct identity *id);
struct str identity_pem(struct arena *arena, const struct identity *id, bool key);
/* A server with the identity `id`; with client_ca it wants a client's certificate of that CA. */
SSL_CTX *identity_server(const struct identity *id, const struct identity *client_ca);

#endif
