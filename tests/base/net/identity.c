#include "tests/base/net/identity.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

static bool add_extension(X509 *x, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *e;
	bool ok;

	X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	ok = e && X509_add_ext(x, e, -1);
	X509_EXTENSION_free(e);
	return ok;
}

bool identity_make(
	struct identity *out, const char *name, const struct identity *issuer, const char *san)
{
	X509 *x = X509_new();
	EVP_PKEY *key = EVP_EC_gen("P-256");
	bool ok = x && key;

	X509_set_version(x, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(x), (long)(1 + (random() & 0xffffff)));
	X509_gmtime_adj(X509_getm_notBefore(x), -3600);
	X509_gmtime_adj(X509_getm_notAfter(x), 3600);
	X509_set_pubkey(x, key);
	ok = ok &&
		X509_NAME_add_entry_by_txt(
			X509_get_subject_name(x), "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
	X509_set_issuer_name(x, X509_get_subject_name(issuer ? issuer->cert : x));
	ok = ok &&
		(san ? add_extension(x, issuer ? issuer->cert : x, NID_subject_alt_name, san) :
			   add_extension(x, x, NID_basic_constraints, "critical,CA:TRUE"));
	ok = ok && X509_sign(x, issuer ? issuer->key : key, EVP_sha256());
	*out = (struct identity){ x, key };
	return ok;
}

struct str identity_pem(struct arena *arena, const struct identity *id, bool key)
{
	BIO *bio = BIO_new(BIO_s_mem());
	struct str s;
	char *p;

	if (key)
		PEM_write_bio_PrivateKey(bio, id->key, NULL, NULL, 0, NULL, NULL);
	else
		PEM_write_bio_X509(bio, id->cert);
	s.len = (size_t)BIO_get_mem_data(bio, &p);
	s.ptr = p;
	s = str_dup(arena, s);
	BIO_free(bio);
	return s;
}

SSL_CTX *identity_server(const struct identity *id, const struct identity *client_ca)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	SSL_CTX_use_certificate(ctx, id->cert);
	SSL_CTX_use_PrivateKey(ctx, id->key);
	if (client_ca) {
		SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
		X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), client_ca->cert);
	}
	return ctx;
}

void identity_release(struct identity *id)
{
	X509_free(id->cert);
	EVP_PKEY_free(id->key);
}
