/*
 * From the configuration's section `bucket` to what the client takes.
 *
 * Errors:    ERR_INVALID with the section's place in the file.
 * Ownership: what is made points into the section.
 */
#ifndef CMD_SHARED_BUCKET_OPTIONS_H
#define CMD_SHARED_BUCKET_OPTIONS_H

#include "scrape/config/config.h"
#include "tsdb/bucket/bucket.h"

struct bucket_config bucket_options(const struct bucket_section *s);
struct bucket_prices bucket_option_prices(const struct bucket_section *s);
/* Names and URLs of the section, if there is one. It opens nothing, and asks nobody. */
MUST_CHECK enum err_code bucket_options_check(const struct bucket_section *s, struct err *err);

#endif
