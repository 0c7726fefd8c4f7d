/*
 * Foreign fields: what people bring along from Prometheus, Parca, Pyroscope and Alloy that is not
 * ours. Each row says what to write instead, or what it does not do here.
 *
 * The schemas are for `epitool convert`, which keeps the fields that they have, and leaves out
 * those of the tables with the same words.
 */
#ifndef SCRAPE_CONFIG_FOREIGN_H
#define SCRAPE_CONFIG_FOREIGN_H

#include "base/yaml/yaml.h"

extern const struct yaml_foreign config_foreign[]; /* top level */
extern const struct yaml_foreign global_foreign[];
extern const struct yaml_foreign job_foreign[];
extern const struct yaml_foreign profiling_foreign[]; /* profiling_config */
extern const struct yaml_foreign profile_foreign[]; /* an entry of pprof_config */

extern const struct yaml_schema config_file_schema, config_global_schema, config_job_schema,
	config_profile_schema;

#endif
