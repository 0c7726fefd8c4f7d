/*
 * --web.config.file: TLS settings, users, headers; Prometheus's format.
 *
 * A changed file, certificate or token is read again, at most once a second, so a renewed one needs
 * no restart. If a changed file is wrong, the log says so once and the old configuration
 * stays in force. TLS itself and its versions are fixed at start.
 *
 * Errors:    ERR_INVALID "FILE:LINE:COLUMN: message", ERR_UNSUPPORTED for settings of Prometheus
 *            that are not supported here, ERR_NOT_FOUND, ERR_IO.
 * Ownership: web_config_open hands *out to the caller; close it after the last connection.
 * Threads:   any, after open. One configuration with TLS is open at a time (asserted): GnuTLS's
 *            callback has no context.
 * Source:    Prometheus, "HTTPS and authentication"; web/http/rights.h.
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
/* Requests are of users: the file has passwords, tokens or a proxy that says who they are. */
bool web_config_has_users(struct web_config *c);
const char *web_config_priorities(const struct web_config *c); /* GnuTLS's priority string */
/*
 * A gnutls_certificate_retrieve_function2 that serves the open configuration and requests a
 * certificate of the client if it says so.
 */
void *web_config_certificate_fn(void);
/*
 * Checks the client's certificate and the user, and says in in->user who it is. HTTP_ANSWERED: *out
 * is the answer (401, 403, 429). HTTP_ADMIT_LATER: a password must be verified and may_wait is
 * false. open: a request without credentials is admitted, its user has no role and a `why`. Always
 * adds the configured headers to *out.
 */
enum http_admission web_config_admit(
	struct web_config *c, struct http_in *in, struct http_out *out, bool may_wait, bool open);

/* Checks a web configuration file; for `epitool check web-config`. */
MUST_CHECK enum err_code web_config_check(const char *path, struct err *err);

#endif
