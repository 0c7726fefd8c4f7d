/*
 * Bucket: the section `bucket`, the object store that several servers share.
 *
 * One source of credentials at most: `access_key` and `secret_key` (each, and `session_token`, may
 * be a file's content), `credentials_file`, or `web_identity`. Without one the environment has
 * them. Only what is wrong with single fields is found here; names and URLs are checked by those
 * who open the bucket, with bucket_section_err.
 *
 * Units:     prices in the currency of the bill.
 * Errors:    ERR_INVALID at a place in the file.
 * Ownership: everything is in the configuration's arena; strings end in NUL.
 * Threads:   immutable.
 */
#ifndef SCRAPE_CONFIG_BUCKET_SECTION_H
#define SCRAPE_CONFIG_BUCKET_SECTION_H

#include "base/net/http_client.h"
#include "base/yaml/yaml.h"

enum bucket_source {
	BUCKET_FROM_ENVIRONMENT,
	BUCKET_FROM_KEYS,
	BUCKET_FROM_FILE,
	BUCKET_FROM_ROLE
};

extern const struct yaml_schema bucket_section_schema;

struct bucket_section {
	bool present;
	struct str endpoint, bucket, prefix, region;
	bool virtual_host; /* the bucket is part of the host, not of the path */
	enum bucket_source source;
	/* KEYS: of each pair one at most is set */
	struct str access_key, access_key_file, secret_key, secret_key_file, session_token,
		session_token_file;
	struct str credentials_file, profile; /* FILE */
	struct str role_arn, session_name, token_file, sts_endpoint; /* ROLE */
	struct http_config http;
	struct {
		double put_per_million, get_per_million, storage_per_tb_month;
	} prices;
	const struct yaml_node *at; /* in the file, for messages */
};

/* n NULL: no section. */
MUST_CHECK enum err_code bucket_section_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, struct bucket_section *out, struct err *err);
/* Puts the section's place in front of an error about it. */
enum err_code bucket_section_err(const struct bucket_section *s, enum err_code rc, struct err *err);
/* Every setting but the prices, so that equal bytes are the same bucket. They hold secrets. */
void bucket_section_encode(struct buf *out, const struct bucket_section *s);
/* For `check config`: files of credentials can be read. */
MUST_CHECK enum err_code bucket_section_check_files(
	const struct bucket_section *s, struct err *err);

#endif
