/*
 * Push: what the handlers of senders' forms share. A form decodes its request into struct received
 * of scrape/receive, and answers in its own form.
 *
 * Status:    400 labels or parameters, 409 another profile of this series and time is stored,
 *            413 size, 415 content type, 422 not a profile, 429 too much of this sender, 503 not
 *            now (both with Retry-After).
 * Threads:   workers; a request belongs to one.
 */
#ifndef WEB_PUSH_PUSH_H
#define WEB_PUSH_PUSH_H

#include "scrape/receive/receive.h"
#include "web/router/refused.h"

/* Waits for the sender's turn. On an error the status and Retry-After are set, the caller writes
 * the rest. */
MUST_CHECK enum err_code push_begin(struct web *w, struct http_in *in, struct http_out *out,
	struct receive_turn *t, struct err *err);

/* The body without its Content-Encoding (gzip, zstd or none); gzip also where it is not said. At
 * most 64 MiB. */
MUST_CHECK enum err_code push_body(
	struct http_in *in, struct arena *a, struct str *out, struct err *err);

/* The first error of profiles; NULL: all are stored. */
const struct received *push_failed(const struct received *r, size_t n);
int push_status(enum err_code rc);
/* Adds Retry-After to a 503: the whole request may come again. */
void push_add_retry(struct http_out *out);

/* What the profile is called in scrapes, by its types: process_cpu, wall, memory, ... */
struct str push_profile_name(const struct pprof *p);

/* Kinds of columns, as proto/kinds.h has them. */
MUST_CHECK enum err_code push_kinds(struct arena *a, const struct pprof *p, struct str name,
	enum value_kind **out, struct err *err);

/*
 * Labels of a sender's, renamed by the configuration. job, if it has none, is its service_name.
 * What names the process or its session (pid, __session_id__) also tells it apart from its twins.
 */
struct push_labels {
	struct receive_turn *t;
	struct labels_builder b;
	uint64_t process; /* as in struct received */
};
void push_labels_init(struct push_labels *l, struct receive_turn *t);
void push_labels_add(struct push_labels *l, struct str name, struct str value);
MUST_CHECK enum err_code push_labels_build(
	struct push_labels *l, struct received *out, struct err *err);

#endif
