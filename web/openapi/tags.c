#include "web/openapi/operations.h"

/* clang-format off */
const struct operation_tag operation_tags[] = {
	{ "query", "Queries, and what helps to write them.", query_operations, QUERY_OPERATIONS },
	{ "metadata", "Names of what is stored.", metadata_operations, METADATA_OPERATIONS },
	{ "targets", "Targets, and who pushes.", target_operations, TARGET_OPERATIONS },
	{ "rules", "Rules, alerts, recorded numbers.", rule_operations, RULE_OPERATIONS },
	{ "status", "The server's state.", status_operations, STATUS_OPERATIONS },
	{ "ingest", "Profiles that are pushed.", ingest_operations, INGEST_OPERATIONS },
	{ "symbols", "Symbols of native code.", symbol_operations, SYMBOL_OPERATIONS },
	{ "files", "Profiles in files.", file_operations, FILE_OPERATIONS },
	{ "admin", "Administration.", admin_operations, ADMIN_OPERATIONS },
	{ "server", "Health, and the server's own metrics and profile.",
		server_operations, SERVER_OPERATIONS },
	{ "pyroscope", "Pyroscope's query service, for Grafana and profilecli.",
		pyroscope_operations, PYROSCOPE_OPERATIONS },
	{ "profefe", "profefe's API.", profefe_operations, PROFEFE_OPERATIONS },
};
/* clang-format on */
const size_t operation_tags_n = sizeof(operation_tags) / sizeof(operation_tags[0]);

const struct operation_tag *operation_tag_of(const struct operation *op)
{
	for (size_t i = 0; i < operation_tags_n; i++)
		if (op >= operation_tags[i].v && op < operation_tags[i].v + operation_tags[i].n)
			return &operation_tags[i];
	return NULL;
}
