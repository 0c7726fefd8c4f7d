/*
 * Debuginfod: the sections `debuginfod` and `debug_directories`, where debug data of binaries is
 * looked for whose addresses have no names.
 *
 * Off where the sections are missing. A server learns build ids, so each may have a list of the
 * binaries that it is asked for.
 *
 * Units:     nanoseconds, bytes.
 * Errors:    ERR_INVALID, ERR_LIMIT at a place in the file.
 * Ownership: strings in the configuration's arena; debuginfod_config_release frees what is
 *            compiled.
 * Threads:   immutable.
 * Source:    elfutils' debuginfod(8): what is behind the URL; Prometheus's HTTPClientConfig.
 */
#ifndef SCRAPE_CONFIG_DEBUGINFOD_CONFIG_H
#define SCRAPE_CONFIG_DEBUGINFOD_CONFIG_H

#include "base/net/http_client.h"
#include "base/regex.h"
#include "base/yaml/yaml.h"

#define DEBUGINFOD_SERVERS_MAX 16u
#define DEBUGINFOD_DIRECTORIES_MAX 64u
#define DEBUGINFOD_TIMEOUT_DEFAULT_NS (30 * INT64_C(1000000000))
#define DEBUGINFOD_SIZE_DEFAULT (UINT64_C(512) << 20)

extern const struct yaml_schema debuginfod_server_schema;

struct debuginfod_server {
	struct str url; /* without a slash at its end */
	int64_t timeout_ns; /* of an answer until its end */
	uint64_t max_size; /* of a file */
	bool source; /* is asked for source code too */
	struct yaml_list allow_paths, allow_build_ids; /* regular expressions of whole texts */
	struct regex *paths, *build_ids; /* the lists, compiled; NULL: empty */
	struct http_config http;
};

struct debuginfod_config {
	struct debuginfod_server *v; /* in the order in which they are asked */
	size_t n;
	struct str *directories; /* with the directory of the file */
	size_t directories_n;
};

/* servers, directories: nodes of the sections, or NULL. On failure it leaves nothing. */
MUST_CHECK enum err_code debuginfod_config_decode(struct yaml_ctx *ctx,
	const struct yaml_node *servers, const struct yaml_node *directories,
	struct debuginfod_config *out, struct err *err);
void debuginfod_config_release(struct debuginfod_config *c);

/* Whether the server may be asked: one of its lists matches, or it has none. */
bool debuginfod_allows(const struct debuginfod_server *s, struct str path, struct str build_id);
bool debuginfod_gives_source(const struct debuginfod_config *c); /* a server does */
/* Every setting of the servers, so that equal bytes are equal settings. The bytes hold secrets. */
void debuginfod_config_encode(struct buf *out, const struct debuginfod_config *c);
/* For `check config`: directories and files of credentials can be read. */
MUST_CHECK enum err_code debuginfod_config_check_files(
	const struct debuginfod_config *c, struct err *err);

#endif
