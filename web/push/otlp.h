/*
 * OTLP profiles: what a request holds is stored, whatever brought it.
 *
 * Resource attributes become labels of series, those of samples labels of samples, both by
 * `push_config`. `job` is service.namespace/service.name, as OpenTelemetry has it for Prometheus;
 * a process without these is called by its executable. One that says neither is `unknown_service`,
 * and its `instance` is its service.instance.id, pod or host, else the address of the sender.
 *
 * Profiles that are refused for good are counted, and the answer's partial_success says so, which
 * nobody repeats. If the database takes none now, the whole request is to come again: what is
 * stored is acknowledged again.
 *
 * Threads: workers; any number at once.
 */
#ifndef WEB_PUSH_OTLP_H
#define WEB_PUSH_OTLP_H

#include "web/router/router.h"

struct otlp_result {
	enum otlp_outcome {
		OTLP_TAKEN, /* durable, but for those rejected */
		OTLP_REFUSED, /* nothing is stored: err says why */
		OTLP_AGAIN, /* the same may come again after retry_s; ERR_LIMIT: this sender is too fast */
	} outcome;
	uint64_t rejected; /* profiles, of TAKEN; err: why the first was; with 0: a warning */
	unsigned retry_s;
	struct err err; /* an empty message: none */
};
/* Body and content_encoding of the request; json: the body's form. */
void otlp_store(struct web *w, struct http_in *in, bool json, struct otlp_result *r);

#endif
