/*
 * AWS: the region and the credentials of a source, got as AWS's programs do, and its requests
 * signed.
 *
 * Credentials come from the first of these that there is: the configuration; its profile; the
 * environment's keys; the environment's web identity; the profile of AWS_PROFILE or "default" in
 * the files of credentials and settings; the container's endpoint; the instance's metadata
 * (IMDSv2). With role_arn they are then exchanged for those of the role. What ends is got again
 * some minutes before.
 *
 * Errors:    as of base/net/http_client.h; ERR_INVALID where a source has no credentials. No
 * message holds a secret. Ownership: aws_close cancels what is under way. Keys are valid until the
 * loop runs again. Threads:   discovery's. Files are read at once, requests go by the event base.
 * Source:    "AWS SDKs and Tools Reference Guide"; "Use IMDSv2" in the EC2 user guide; AWS STS API
 *            reference, 2011-06-15.
 */
#ifndef DISCOVERY_APIS_AWS_H
#define DISCOVERY_APIS_AWS_H

#include "base/net/http_client.h"
#include "base/net/sigv4.h"

struct aws_config {
	const char *service; /* "ec2" */
	struct str region, access_key, secret_key, profile, role_arn, external_id; /* "": none */
	const struct http_config *http; /* for requests to AWS; not to the machine's own endpoints */
};

struct aws;
typedef void (*aws_ready_fn)(void *ctx, enum err_code rc, const struct err *err);

/* *c may be gone afterwards, its strings and http must stay. */
MUST_CHECK enum err_code aws_open(
	struct http_client *client, const struct aws_config *c, struct aws **out, struct err *err);
void aws_close(struct aws *a); /* NULL is fine */

/* Region and credentials are there, for some minutes at least. */
bool aws_is_ready(const struct aws *a);
/* Gets them and calls ready once, later or before it returns. One at a time. */
void aws_prepare(struct aws *a, aws_ready_fn ready, void *ctx);
/* The server does not take the credentials: the next aws_prepare gets others, if there are. */
void aws_forget(struct aws *a);

struct str aws_region(const struct aws *a);
/* "https://ec2.eu-west-2.amazonaws.com", or what the environment has instead. */
MUST_CHECK enum err_code aws_service_url(const struct aws *a, struct arena *arena,
	const char *service, struct str *out, struct err *err);
/* The headers of a form that is posted to url. */
MUST_CHECK enum err_code aws_sign(const struct aws *a, struct arena *arena, struct str url,
	struct str form, struct labels *out, struct err *err);

#endif
