/*
 * --web.config.file: TLS settings, users, headers; Prometheus's format.
 *
 * The file and the certificates it names are looked at again when they change (at most once a second), so a
 * renewed certificate needs no restart. A changed file that is wrong is said in the log once, and what was read
 * last stays in force. Whether TLS is spoken at all, and its versions, are fixed at start.
 *
 * Errors:    ERR_INVALID "FILE:LINE:COLUMN: message", ERR_NOT_FOUND, ERR_IO.
 * Ownership: web_config_open hands *out to the caller.
 * Threads:   any, after open.
 * Source:    Prometheus, "HTTPS and authentication".
 */
#ifndef WEB_WEB_CONFIG_H
#define WEB_WEB_CONFIG_H

#include "base/labels.h"
#include "web/http.h"

struct web_config;

/* path NULL or "": no TLS, no users. */
MUST_CHECK enum err_code web_config_open(const char *path, struct web_config **out, struct err *err);
void web_config_close(struct web_config *c); /* NULL is fine; no connection may be open any more */

bool web_config_tls(const struct web_config *c);
bool web_config_asks_client(const struct web_config *c);
const char *web_config_priorities(const struct web_config *c); /* GnuTLS's priority string */
/* For gnutls_certificate_set_retrieve_function2; serves the configuration opened last. */
void *web_config_certificate_fn(void);
/*
 * Whether a request may go on: its client's certificate and its user. Otherwise *out is the answer (401, 403) and
 * false is returned. Adds the configured headers to *out either way.
 */
bool web_config_admit(struct web_config *c, const struct http_in *in, struct http_out *out);

#endif
