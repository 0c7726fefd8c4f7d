/*
 * Hidden: URLs, parameters and labels without their secrets, for people to see.
 *
 * A parameter's value may be a key to somewhere, so only the values of Go's profiles are shown
 * (seconds, debug, gc): "http://xxxxx@host/path?token=xxxxx&seconds=9". The user information of a
 * URL and its fragment are hidden as a whole.
 *
 * Threads: values.
 */
#ifndef BASE_HIDDEN_H
#define BASE_HIDDEN_H

#include "base/labels.h"

#define HIDDEN_VALUE "<secret>" /* in place of a whole value */

bool hidden_param(struct str name); /* its value is not shown */

/* Takes addresses without a scheme too: "user@host:port". */
void hidden_print_url(struct buf *out, struct str url);
/* Gives the URL itself when nothing of it is hidden; ptr NULL: out of memory. */
struct str hidden_url(struct arena *a, struct str url);

/* A label before relabelling: hides __param_NAME, and parts of __address__ and __meta_url. */
struct str hidden_label(struct arena *a, struct str name, struct str value);
/* Gives the labels themselves when nothing is hidden; v NULL: out of memory. */
struct labels hidden_labels(struct arena *a, struct labels l);

#endif
