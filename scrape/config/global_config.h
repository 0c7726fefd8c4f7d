/*
 * The section global of a configuration. Its schema is config_global_schema
 * (scrape/config/foreign.h).
 *
 * Threads: values.
 */
#ifndef SCRAPE_CONFIG_GLOBAL_CONFIG_H
#define SCRAPE_CONFIG_GLOBAL_CONFIG_H

#include "scrape/config/config.h"

/* Defaults in place of what the file does not say. */
void global_config_fill(struct global_config *g);

#endif
