/*
 * Grafana: a server on a real database and engine, and a client that asks it as the Pyroscope data
 * source does.
 *
 * Ownership: one at a time; grafana_start exits if it fails.
 */
#ifndef TESTS_WEB_GRAFANA_H
#define TESTS_WEB_GRAFANA_H

#include "proto/pprof.h"
#include "tests/web/http/http_peer.h"
#include "tests/web/storage.h"
#include "web/pyroscope/pyroscope.h"
#include "web/web.h"

#define T0 INT64_C(1700000000) /* seconds; profiles are at T0, T0 + 10, T0 + 20 */
#define SPAN "\"start\":\"1699999990000\",\"end\":\"1700000030000\""
#define CPU "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define OF_CPU "\"profileTypeID\":\"" CPU "\","
#define AS_JSON "Content-Type: application/json\r\n"
#define AS_PROTO "Content-Type: application/proto\r\nConnect-Protocol-Version: 1\r\n"

struct grafana {
	struct storage storage;
	struct web *web;
	struct config *config; /* an empty file's, unless targets are scraped */
	struct scrape_manager *manager; /* NULL: nothing is scraped */
	bool reload_failed; /* the last one, at T0 + 60 */
	struct rule_manager *rules; /* NULL: none */
	bool rules_elsewhere; /* answers are made of a report of the manager, from node-1, at T0 */
	struct str rules_told[2]; /* the warnings of these answers */
	size_t rules_told_n;
	const char *headers; /* of each request that has none of its own; NULL: none */
	struct response r; /* the last answer */
};

extern struct grafana grafana;

void grafana_start(void);
void grafana_start_targets(const char *text); /* of a configuration with jobs */
void grafana_start_grpc(void); /* with OTLP over gRPC as well */
struct debuginfo;
void grafana_start_debuginfo(struct debuginfo *debuginfo); /* with symbols of native code */
struct kept;
void grafana_start_files(struct kept *files); /* keeps files; the admin API is on */
/* With users; all data count as recent, and what needs a flag is on. */
void grafana_start_users(const char *web_config_file);
void grafana_stop(void); /* closes rules as well */
/* main;handle;leaf costs `slow`, main;handle `own`: CPU samples of 10 ms each, or goroutines. */
void grafana_ingest(
	const char *labels, int64_t at_s, bool cpu, int64_t slow, int64_t own, const char *leaf);
/* Two versions, three profiles each, v2 is slow; and goroutines of v1, 4 then 8 then 12. */
void grafana_fill(void);

/* GET of a path with its query; the answer's body. */
struct str grafana_get(const char *path);
/* The number of times that the last answer's body has this text. */
size_t grafana_count(const char *text);

void grafana_call(const char *method, const char *headers, struct str body);
/* A request written as JSON, as protobuf. */
void grafana_pack(const char *method, const char *json, struct buf *out);

/*
 * Asks in JSON and in protobuf. An answer in protobuf is compared as JSON. They print both
 * texts and return false if the answer is another.
 */
bool grafana_says(const char *method, const char *json, const char *want);
bool grafana_refuses(
	const char *method, const char *json, int status, const char *code, const char *message);

#endif
