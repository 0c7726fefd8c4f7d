/*
 * AWS's files of credentials and settings: sections in brackets, one of them the profile, with
 * lines NAME = VALUE. The file of settings has the same form with "profile" before the name.
 *
 * Errors:    ERR_INVALID: what is missing, without what is there; ERR_NOMEM, ERR_LIMIT (the arena).
 * Ownership: what is read points into the text; aws_profile_keys copies.
 * Threads:   values.
 * Source:    "Configuration and credential file settings in the AWS CLI".
 */
#ifndef BASE_NET_AWS_PROFILE_H
#define BASE_NET_AWS_PROFILE_H

#include "base/net/sigv4.h"

struct aws_profile {
	bool found;
	struct sigv4_credentials keys;
	struct str region;
	struct str elsewhere; /* a setting by which the profile has its keys from somewhere else */
};

/* Adds what the file says of the profile to what is known of it; what is known already stays. */
void aws_profile_read(struct str text, struct str profile, struct aws_profile *p);
/* Its keys, as copies. */
MUST_CHECK enum err_code aws_profile_keys(struct arena *a, const struct aws_profile *p,
	struct str profile, struct sigv4_credentials *out, struct err *err);

#endif
