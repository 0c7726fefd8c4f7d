/*
 * The file of --web.config.file, decoded and checked. Certificates are not read here.
 *
 * Errors:    ERR_INVALID "FILE:LINE:COLUMN: message", ERR_UNSUPPORTED, ERR_NOT_FOUND, ERR_IO,
 *            ERR_LIMIT.
 * Ownership: in the arena, but compiled matchers: web_file_release. After an error there are none.
 * Threads:   values.
 * Source:    Prometheus's exporter-toolkit, "web configuration".
 */
#ifndef WEB_HTTP_CONFIG_FILE_H
#define WEB_HTTP_CONFIG_FILE_H

#include "base/labels.h"
#include "web/http/rights.h"
#include "web/http/tls.h"

struct tls_settings {
	struct str cert_file, key_file, client_ca_file, client_auth_type, min_version, max_version;
	bool prefer_server_cipher_suites; /* accepted and ignored, as in Go */
	char unsupported;
	enum tls_client_auth auth;
	int min, max;
};

struct http_settings {
	bool http2; /* accepted and ignored: the server speaks HTTP/1.1 */
	struct labels headers;
};

struct web_file {
	struct tls_settings tls;
	bool has_tls;
	struct http_settings http;
	struct labels users; /* name to bcrypt hash */
	struct rights rights; /* tokens are not read here */
};

extern const struct yaml_schema web_file_schema;

MUST_CHECK enum err_code web_file_read(
	struct arena *a, const char *path, struct web_file *out, struct err *err);
MUST_CHECK enum err_code web_file_decode(
	struct arena *a, const char *name, struct str text, struct web_file *out, struct err *err);
void web_file_release(struct web_file *f);
/* The constant name of a header that may be set. */
const char *web_file_header(struct str name);

#endif
