/*
 * Jobs: the decoding of one entry of scrape_configs and of its profiling_config. Used by
 * scrape/config/config.c.
 *
 * Errors:    ERR_INVALID with the place in the file.
 * Ownership: everything in ctx->arena, but the compiled relabelling rules: job_config_release.
 */
#ifndef SCRAPE_CONFIG_JOB_CONFIG_H
#define SCRAPE_CONFIG_JOB_CONFIG_H

#include "scrape/config/config.h"

/* *out may be released whether this failed or not. */
MUST_CHECK enum err_code job_config_decode(struct yaml_ctx *ctx, const struct yaml_node *n,
	const struct global_config *global, struct scrape_config *out, struct err *err);
void job_config_release(struct scrape_config *c);

/*
 * profiling_config: the defaults and, where n is not NULL, what the file says, into a struct
 * scrape_config.
 */
enum err_code profiling_config_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *job, struct err *err);
MUST_CHECK enum err_code profiling_config_default(
	struct yaml_ctx *ctx, struct scrape_config *job, struct err *err);
/* After the job's own times are known. */
MUST_CHECK enum err_code profiling_config_check(const struct scrape_config *job, struct err *err);

/* A map of names to lists of values into a struct params_config. */
enum err_code params_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *field, struct err *err);

#endif
