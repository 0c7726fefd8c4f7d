/* The parts of aws.h: aws.c asks and keeps, aws_local.c reads the environment and its files. */
#ifndef DISCOVERY_APIS_AWS_INTERNAL_H
#define DISCOVERY_APIS_AWS_INTERNAL_H

#include "discovery/apis/aws.h"

enum aws_source {
	AWS_KEYS, /* they are there at once */
	AWS_WEB_IDENTITY,
	AWS_CONTAINER,
	AWS_INSTANCE,
};

/* What the configuration, the environment and its files say; in the arena. */
struct aws_local {
	enum aws_source source;
	struct sigv4_credentials keys; /* AWS_KEYS */
	struct str role_arn, session_name, token; /* AWS_WEB_IDENTITY */
	struct str url, authorization; /* AWS_CONTAINER */
	struct str region; /* "": none of them has one */
};

MUST_CHECK enum err_code aws_local_read(
	const struct aws_config *c, struct arena *a, struct aws_local *out, struct err *err);
struct str aws_environment(const char *name); /* "" if it is not set */

#endif
