/*
 * Hidden: what of URLs, parameters and labels is shown to people.
 *
 * A parameter's value may be a key to somewhere, so none is shown but those that Go's profiles are
 * known to take (seconds, debug, gc): "http://xxxxx@host/path?token=xxxxx&seconds=9". The user
 * information of a URL is hidden as a whole, and so is what stands behind "#".
 *
 * Threads: values.
 */
#ifndef BASE_HIDDEN_H
#define BASE_HIDDEN_H

#include "base/labels.h"

#define HIDDEN_VALUE "<secret>" /* in the place of a whole value */

bool hidden_param(struct str name); /* its value is not shown */

/* Takes addresses without a scheme too: "user@host:port". */
void hidden_print_url(struct buf *out, struct str url);
/* The URL itself where nothing of it is hidden; ptr NULL: out of memory. */
struct str hidden_url(struct arena *a, struct str url);

/* What is shown of a label before relabelling: of __param_NAME, __address__ and __meta_url. */
struct str hidden_label(struct arena *a, struct str name, struct str value);
/* The labels themselves where nothing is hidden; v NULL: out of memory. */
struct labels hidden_labels(struct arena *a, struct labels l);

#endif
