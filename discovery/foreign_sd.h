/*
 * Foreign discovery: mechanisms of Prometheus that are not here, and what to write instead. For the
 * schemas of what has SD_CONFIG_FIELDS.
 */
#ifndef DISCOVERY_FOREIGN_SD_H
#define DISCOVERY_FOREIGN_SD_H

#include "base/yaml/yaml.h"

extern const struct yaml_foreign sd_foreign[];

#endif
