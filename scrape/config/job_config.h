/*
 * Jobs: decodes one entry of scrape_configs and its profiling_config. For scrape/config/config.c.
 *
 * Errors:    ERR_INVALID with the place in the file.
 * Ownership: everything is in ctx->arena, except compiled relabelling rules: job_config_release.
 */
#ifndef SCRAPE_CONFIG_JOB_CONFIG_H
#define SCRAPE_CONFIG_JOB_CONFIG_H

#include "scrape/config/config.h"

/*
 * Release *out even if this fails. global NULL: it is wrong, so that what depends on it is not
 * checked.
 */
MUST_CHECK enum err_code job_config_decode(struct yaml_ctx *ctx, const struct yaml_node *n,
	const struct global_config *global, struct scrape_config *out, struct err *err);
void job_config_release(struct scrape_config *c);

extern const struct yaml_schema profiling_config_schema;
/* Decodes profiling_config into a struct scrape_config: the defaults, and the file's over them. */
enum err_code profiling_config_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *job, struct err *err);
MUST_CHECK enum err_code profiling_config_default(
	struct yaml_ctx *ctx, struct scrape_config *job, struct err *err);
/* Call it once the job's own times are known. */
MUST_CHECK enum err_code profiling_config_check(const struct scrape_config *job, struct err *err);

/* A map of names to lists of values into a struct params_config. */
enum err_code params_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err);

#endif
