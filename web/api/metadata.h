/*
 * Metadata: what a profile type is, in the words that Prometheus has for a metric.
 *
 * Threads: any.
 */
#ifndef WEB_API_METADATA_H
#define WEB_API_METADATA_H

#include "base/json.h"

struct profile_type;

/* Members of an open object: Prometheus's type, unit and help, and the profile's type. */
void metadata_write(struct json *j, const struct profile_type *t);

#endif
