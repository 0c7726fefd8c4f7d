/*
 * File discovery: documents of target groups, found by paths and patterns. They are read again when
 * inotify reports a change, and every refresh_interval.
 *
 * A document that cannot be read or parsed keeps its last groups. One that is deleted has none.
 *
 * Threads:   discovery's.
 * Source:    Prometheus's file_sd; __meta_filepath.
 */
#ifndef DISCOVERY_SOURCES_FILE_SD_H
#define DISCOVERY_SOURCES_FILE_SD_H

#include "base/yaml/yaml.h"

#define FILE_SD_FILES_MAX 4096u /* matched by one entry */
#define FILE_SD_REFRESH_DEFAULT_NS (5 * INT64_C(60) * 1000000000)

extern const struct yaml_schema file_sd_schema; /* of one entry */
/* A YAML_CUSTOM decoder of file_sd_configs into a struct source_configs. */
enum err_code file_sd_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *sources, struct err *err);

#endif
