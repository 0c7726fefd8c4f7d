/*
 * Parameters of a query string or of an application/x-www-form-urlencoded body.
 *
 * Source: WHATWG URL, "application/x-www-form-urlencoded parsing".
 */
#ifndef WEB_HTTP_FORM_H
#define WEB_HTTP_FORM_H

#include "web/http/http.h"

/* Adds the decoded name=value pairs of `text` to in->params. False: in->arena is used up. */
bool http_form_parse(struct http_in *in, struct str text);

#endif
