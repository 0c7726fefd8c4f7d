/* What commands of the bucket share. */
#ifndef CMD_EPITOOL_BUCKET_BUCKET_COMMAND_H
#define CMD_EPITOOL_BUCKET_BUCKET_COMMAND_H

#include "cmd/epitool/bucket/place.h"

#define CONFIG_FLAG(field) \
	{ \
		"config.file", FLAG_STRING, (field), "epimetheus.yml", "Configuration file with `bucket`." \
	}

/* The bucket of a configuration file. */
MUST_CHECK enum err_code bucket_of_config(const char *file, struct bucket **out, struct err *err);

/* A place as typed: a directory; "bucket:a" is all keys below "a/". */
struct bucket_place {
	struct place is;
	char *path; /* of malloc */
};
MUST_CHECK enum err_code bucket_place_open(
	const char *text, const char *config_file, struct bucket_place *out, struct err *err);
void bucket_place_close(struct bucket_place *p); /* a zeroed or half-opened one is fine */

int bucket_command_failed(const struct err *err); /* says it; the exit code */

#endif
