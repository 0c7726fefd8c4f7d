/* Types of errors, of pushes, of files, and of other servers' interfaces. */
#include "web/openapi/schemas.h"

#define FIELDS(...) \
	(const struct schema_field[]) \
	{ \
		__VA_ARGS__, \
		{ \
			0 \
		} \
	}

const struct schema other_schemas[] = {
	{ "Error", "An error of the API.",
		FIELDS({ "status", "'error'" },
			{ "errorType", "string", "`bad_data`, `execution`, `timeout`, `unavailable`, ..." },
			{ "error", "string", "What is wrong, for people." }) },
	{ "ConnectError", "An error of a call of Connect.",
		FIELDS({ "code", "string", "Connect's." }, { "message", "string" }) },
	{ "ProfefeError", NULL, FIELDS({ "code", "int" }, { "error", "string" }) },
	{ "FilesForm", "Parameters, and files that the query names.", NULL,
		"{\"type\":\"object\",\"properties\":{\"query\":{\"type\":\"string\"},"
		"\"format\":{\"type\":\"string\"},\"file\":{\"type\":\"string\","
		"\"contentMediaType\":\"application/octet-stream\"}},\"required\":[\"query\"]}" },
	{ "Ingested", NULL,
		FIELDS({ "samples", "int" }, { "time", "datetime" }, { "profiles", "[]IngestedProfile" }) },
	{ "IngestedProfile", NULL,
		FIELDS({ "name", "string" }, { "samples", "int" }, { "time", "datetime" }) },
	{ "Symbols", NULL,
		FIELDS({ "enabled", "bool", "The server keeps symbols and reads debug data." },
			{ "uploadEnabled", "bool" }, { "bytes", "int", "Of all indexes." },
			{ "bytesMax", "int", "0: no limit." }, { "debuginfod", "[]string" },
			{ "directories", "[]string" }, { "binaries", "[]Binary" }) },
	{ "Binary", NULL,
		FIELDS({ "id", "string", "Build id; empty where profiles name none." },
			{ "kind", "'gnu'|'go'|'file'|''" }, { "path", "string" },
			{ "jobs", "[]string", "At most 10." },
			{ "addresses", "int", "Different ones without lines." },
			{ "state", "'named'|'uploading'|'queued'|'extracting'|'failed'|'missing'|'unknown'",
				"`missing`: no server has it; `unknown`: no server was asked, or none has "
				"answered." },
			{ "why?", "string" }, { "quality?", "'dwarf'|'lines'|'symbols'|'nothing'" },
			{ "content?", "'full'|'no_text'|'stripped'" },
			{ "origin?", "'upload'|'debuginfod'|'directory'" }, { "indexBytes?", "int" },
			{ "sourceBytes?", "int" }, { "addedAt?", "datetime" }, { "usedAt?", "datetime" },
			{ "againAt?", "datetime" }) },
	{ "UploadedSymbols", NULL,
		FIELDS({ "id", "string" }, { "kind", "'gnu'|'go'|'file'" }, { "state", "string" }) },
	{ "FileContents", "Times in seconds.",
		FIELDS({ "name", "string" }, { "format", "string" }, { "bytes", "int" },
			{ "keepMax", "number", "How long it could be kept; 0: not at all." },
			{ "id?", "string" }, { "damaged?", "bool" }, { "created?", "number" },
			{ "expires?", "number" }, { "profiles", "[]FileProfile" }) },
	{ "FileProfile", NULL,
		FIELDS({ "name", "string" }, { "time?", "number" }, { "duration?", "number" },
			{ "samples", "int" }, { "types", "[]FileType" }) },
	{ "FileType", NULL, FIELDS({ "type", "string" }, { "unit", "string" }, { "default", "bool" }) },
	{ "Files", NULL,
		FIELDS({ "files", "[]KeptFile" }, { "bytes", "int" }, { "bytesMax", "int" },
			{ "keepMax", "number", "Seconds." }) },
	{ "KeptFile", NULL,
		FIELDS({ "id", "string" }, { "damaged", "bool" }, { "created", "number" },
			{ "expires", "number" }, { "name", "string" }, { "bytes", "int" }) },
	{ "ProfefeProfile", NULL,
		FIELDS({ "id", "string" }, { "type", "string" }, { "service", "string" },
			{ "labels?", "[]ProfefeLabel" }, { "created_at", "datetime" }) },
	{ "ProfefeLabel", NULL, FIELDS({ "key", "string" }, { "value", "string" }) },
	{ "ProfefeStored", NULL, FIELDS({ "code", "int" }, { "body", "ProfefeProfile" }) },
	{ "ProfefeProfiles", NULL, FIELDS({ "code", "int" }, { "body", "[]ProfefeProfile" }) },
	{ "ProfefeServices", NULL, FIELDS({ "code", "int" }, { "body", "[]string" }) },
	{ "ProfefeVersion", NULL, FIELDS({ "code", "int" }, { "body", "ProfefeBuild" }) },
	{ "ProfefeBuild", NULL,
		FIELDS({ "version", "string" }, { "commit", "string" }, { "build_time", "string" }) },
	{ 0 },
};
