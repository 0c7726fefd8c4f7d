/*
 * The operations of all routes, by tag: web/routes.c names one in each row.
 *
 * Threads: constant tables.
 * Source:  web/router/operation.h has the form; schemas.h the types of answers.
 */
#ifndef WEB_OPENAPI_OPERATIONS_H
#define WEB_OPENAPI_OPERATIONS_H

#include "web/router/operation.h"

enum query_operation {
	OP_QUERY,
	OP_QUERY_RANGE,
	OP_FORMAT_QUERY,
	OP_PARSE_QUERY,
	OP_EXPLAIN_QUERY,
	OP_LANGUAGE,
	OP_QUERY_EXEMPLARS,
	OP_LINKS,
	OP_SOURCE,
	OP_SOURCE_LINKS,
	OP_MCP,
	QUERY_OPERATIONS
};

enum metadata_operation {
	OP_SERIES,
	OP_LABELS,
	OP_LABEL_VALUES,
	OP_LABEL_COUNTS,
	OP_PROFILE_TYPES,
	OP_FUNCTIONS,
	OP_METADATA,
	OP_ANNOTATIONS,
	METADATA_OPERATIONS
};

enum target_operation {
	OP_TARGETS,
	OP_SCRAPE_POOLS,
	OP_RELABEL_STEPS,
	OP_TARGETS_METADATA,
	OP_TARGETS_PROFILE,
	OP_SENDERS,
	TARGET_OPERATIONS
};

enum rule_operation {
	OP_RULES,
	OP_SAVED,
	OP_SAVED_POST,
	OP_SAVED_DELETE,
	OP_SAVED_HISTORY,
	OP_SAVED_UNDO,
	OP_ALERTS,
	OP_ALERTMANAGERS,
	OP_FEDERATE,
	OP_RECORDED,
	RULE_OPERATIONS
};

enum status_operation {
	OP_OPENAPI,
	OP_BUILDINFO,
	OP_RUNTIMEINFO,
	OP_CONFIG,
	OP_FLAGS,
	OP_TSDB,
	OP_TSDB_BLOCKS,
	OP_WALREPLAY,
	OP_CLUSTER,
	OP_NOTIFICATIONS,
	OP_NOTIFICATIONS_LIVE,
	OP_FEATURES,
	STATUS_OPERATIONS
};

enum admin_operation {
	OP_DELETE_SERIES,
	OP_SNAPSHOT,
	OP_ACCEPT_LOSSES,
	OP_RELOAD,
	OP_QUIT,
	ADMIN_OPERATIONS
};

enum server_operation {
	OP_HEALTHY,
	OP_READY,
	OP_READY_PROFILECLI,
	OP_METRICS,
	OP_PPROF_PROFILE,
	OP_PPROF_INDEX,
	SERVER_OPERATIONS
};

enum ingest_operation {
	OP_INGEST,
	OP_OTLP,
	OP_PYROSCOPE_INGEST,
	OP_PYROSCOPE_PUSH,
	OP_ANNOTATIONS_POST,
	OP_SHARD_PROFILES,
	INGEST_OPERATIONS
};

enum symbol_operation {
	OP_SYMBOLS,
	OP_SYMBOLS_UPLOAD,
	OP_SHOULD_INITIATE_UPLOAD,
	OP_UPLOAD,
	OP_UPLOAD_FINISHED,
	SYMBOL_OPERATIONS
};

enum file_operation {
	OP_FILES_POST,
	OP_FILES_LIST,
	OP_FILES_GET,
	OP_FILES_DELETE,
	FILE_OPERATIONS
};

enum profefe_operation {
	OP_PROFEFE_COLLECT,
	OP_PROFEFE_FIND,
	OP_PROFEFE_MERGE,
	OP_PROFEFE_GET,
	OP_PROFEFE_SERVICES,
	OP_PROFEFE_VERSION,
	PROFEFE_OPERATIONS
};

enum pyroscope_operation {
	OP_QUERIER_TYPES,
	OP_QUERIER_LABEL_NAMES,
	OP_QUERIER_LABEL_VALUES,
	OP_QUERIER_SERIES,
	OP_QUERIER_SELECT_SERIES,
	OP_QUERIER_FLAME,
	OP_QUERIER_PROFILE,
	OP_QUERIER_DIFF,
	OP_QUERIER_STATS,
	OP_QUERIER_OTHER,
	PYROSCOPE_OPERATIONS
};

extern const struct operation query_operations[QUERY_OPERATIONS];
extern const struct operation metadata_operations[METADATA_OPERATIONS];
extern const struct operation target_operations[TARGET_OPERATIONS];
extern const struct operation rule_operations[RULE_OPERATIONS];
extern const struct operation status_operations[STATUS_OPERATIONS];
extern const struct operation admin_operations[ADMIN_OPERATIONS];
extern const struct operation server_operations[SERVER_OPERATIONS];
extern const struct operation ingest_operations[INGEST_OPERATIONS];
extern const struct operation symbol_operations[SYMBOL_OPERATIONS];
extern const struct operation file_operations[FILE_OPERATIONS];
extern const struct operation profefe_operations[PROFEFE_OPERATIONS];
extern const struct operation pyroscope_operations[PYROSCOPE_OPERATIONS];

struct operation_tag {
	const char *name; /* lower case, as in the book's files */
	const char *help;
	const struct operation *v;
	size_t n;
};
extern const struct operation_tag operation_tags[];
extern const size_t operation_tags_n;

/* The tag of an operation of these tables. */
const struct operation_tag *operation_tag_of(const struct operation *op);

#endif
