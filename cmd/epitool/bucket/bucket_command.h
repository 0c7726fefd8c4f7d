/* What commands of the bucket share. */
#ifndef CMD_EPITOOL_BUCKET_BUCKET_COMMAND_H
#define CMD_EPITOOL_BUCKET_BUCKET_COMMAND_H

#include "tsdb/bucket/bucket.h"

#define CONFIG_FLAG(field) \
	{ \
		"config.file", FLAG_STRING, (field), "epimetheus.yml", "Configuration file with `bucket`." \
	}

/* The bucket of a configuration file. */
MUST_CHECK enum err_code bucket_of_config(const char *file, struct bucket **out, struct err *err);
int bucket_command_failed(const struct err *err); /* says it; the exit code */

#endif
