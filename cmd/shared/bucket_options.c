#include "cmd/shared/bucket_options.h"

static struct bucket_credentials_config bucket_options_credentials(const struct bucket_section *s)
{
	static const enum bucket_credentials kinds[] = {
		[BUCKET_FROM_ENVIRONMENT] = BUCKET_ENVIRONMENT,
		[BUCKET_FROM_KEYS] = BUCKET_STATIC,
		[BUCKET_FROM_FILE] = BUCKET_FILE,
		[BUCKET_FROM_ROLE] = BUCKET_WEB_IDENTITY,
	};

	return (struct bucket_credentials_config){
		.kind = kinds[s->source],
		.access_key = s->access_key,
		.access_key_file = s->access_key_file,
		.secret_key = s->secret_key,
		.secret_key_file = s->secret_key_file,
		.session_token = s->session_token,
		.session_token_file = s->session_token_file,
		.file = s->credentials_file,
		.profile = s->profile,
		.role_arn = s->role_arn,
		.session_name = s->session_name,
		.token_file = s->token_file,
		.sts_endpoint = s->sts_endpoint,
	};
}

struct bucket_config bucket_options(const struct bucket_section *s)
{
	return (struct bucket_config){
		.endpoint = s->endpoint,
		.bucket = s->bucket,
		.prefix = s->prefix,
		.region = s->region,
		.virtual_host = s->virtual_host,
		.http = s->http,
		.credentials = bucket_options_credentials(s),
	};
}

struct bucket_prices bucket_option_prices(const struct bucket_section *s)
{
	return (struct bucket_prices){
		.put_per_million = s->prices.put_per_million,
		.get_per_million = s->prices.get_per_million,
		.storage_per_tb_month = s->prices.storage_per_tb_month,
	};
}

enum err_code bucket_options_check(const struct bucket_section *s, struct err *err)
{
	struct bucket_config c;

	if (!s->present)
		return ERR_OK;
	c = bucket_options(s);
	return bucket_section_err(s, bucket_config_check(&c, err), err);
}
