/*
 * --web.config.file: TLS settings, users, headers; Prometheus's format.
 *
 * The file and the certificates it names are looked at again when they change (at most once a
 * second), so a renewed certificate needs no restart. A changed file that is wrong is said in the
 * log once, and what was read last stays in force. Whether TLS is spoken at all, and its versions,
 * are fixed at start.
 *
 * Errors:    ERR_INVALID "FILE:LINE:COLUMN: message", ERR_UNSUPPORTED for settings that are known
 *            and not done here, ERR_NOT_FOUND, ERR_IO.
 * Ownership: web_config_open hands *out to the caller; no connection may be open any more when it
 *            is closed.
 * Threads:   any, after open. One configuration with TLS is open at a time (asserted): GnuTLS's
 *            callback has no context.
 * Source:    Prometheus, "HTTPS and authentication".
 */
#ifndef WEB_HTTP_CONFIG_H
#define WEB_HTTP_CONFIG_H

#include "web/http/http.h"

struct web_config;

/* path NULL or "": no TLS, no users. checks_per_address as in web/http/users.h. */
MUST_CHECK enum err_code web_config_open(
	const char *path, unsigned checks_per_address, struct web_config **out, struct err *err);
void web_config_close(struct web_config *c); /* NULL is fine */

bool web_config_tls(const struct web_config *c);
const char *web_config_priorities(const struct web_config *c); /* GnuTLS's priority string */
/*
 * A gnutls_certificate_retrieve_function2 that serves the open configuration, and asks the client
 * for a certificate where the configuration does.
 */
void *web_config_certificate_fn(void);
/*
 * Whether a request may go on: its client's certificate and its user. Otherwise *out is the answer
 * (401, 403, 429), or HTTP_ADMIT_LATER where a password must be verified and may_wait is false.
 * Adds the configured headers to *out either way.
 */
enum http_admission web_config_admit(
	struct web_config *c, struct http_in *in, struct http_out *out, bool may_wait);

/* Checks a web configuration file; for `epitool check web-config`. */
MUST_CHECK enum err_code web_config_check(const char *path, struct err *err);

#endif
