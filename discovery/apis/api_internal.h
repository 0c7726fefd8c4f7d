/*
 * The parts of API sources, as they see each other. Mechanisms include discovery/apis/api.h.
 *
 *	api.c           a source: its rounds, its keys, what it publishes
 *	api_round.c     one round: lists, pages, seats; failures in words
 *	api_request.c   parameters, URLs, forms
 *	api_value.c     paths into answers, labels
 *	api_xml.c       XML as JSON
 *	api_config.c    what all mechanisms configure alike
 *	aws.c           credentials and signatures
 */
#ifndef DISCOVERY_APIS_API_INTERNAL_H
#define DISCOVERY_APIS_API_INTERNAL_H

#include <sys/queue.h>

#include "discovery/apis/api.h"

#define API_BLOCKING_MAX 64u
#define API_PLAIN_MAX 16u

struct event;
struct api_source;

/* ---- api_value.c ---- */

struct api_page {
	struct labels *targets; /* in the target's arena */
	size_t n, cap;
};

/* The targets of an answer of the last list. t: without roots, arena and page. */
MUST_CHECK enum err_code api_page_read(
	const struct api_target *t, const json_t *answer, struct groups **out, struct err *err);

/* ---- api_xml.c ---- */

MUST_CHECK enum err_code api_xml_parse(struct str text, json_t **out, struct err *err);
/* JSON within API_VALUES_MAX. */
MUST_CHECK enum err_code api_json_parse(struct str text, json_t **out, struct err *err);

/* ---- api_request.c ---- */

struct api_question {
	struct str url, body;
	struct labels headers;
};
/* token: of a further page, "". index: 0: no blocking query */
MUST_CHECK enum err_code api_question_make(struct api_source *s, const struct api_list *list,
	struct str key, struct str token, uint64_t index, struct arena *a, struct api_question *out,
	struct err *err);

/* ---- rounds ---- */

/*
 * Seats: a server allows a client some 100 connections, so the requests of all sources of a kind
 * share them. A blocking query takes one of API_BLOCKING_MAX. When none is free, the question is
 * asked without blocking, on one of API_PLAIN_MAX, for which it may have to wait.
 */
TAILQ_HEAD(api_waiting, api_round);
struct api_seats {
	unsigned blocking, plain; /* taken */
	struct api_waiting waiting;
};
enum api_seat { API_NO_SEAT, API_WAITING, API_PLAIN, API_BLOCKING };

struct api_round {
	struct api_source *source;
	struct str key; /* malloc's; "": of the source itself */
	const struct api_list *lists;
	size_t lists_n, at; /* the list that is asked for */
	struct event *timer; /* the next round */
	int64_t due_ns; /* of it */
	enum api_seat seat;
	TAILQ_ENTRY(api_round) link; /* of those that wait */
	struct http_request *request;
	struct arena arena; /* of the round under way */
	struct str token; /* of the page that is asked for */
	unsigned pages_n;
	struct groups **pages; /* malloc's */
	size_t pages_cap;
	struct api_keys keys;
	uint64_t index, index_new; /* of the last answer; 0: none */
	bool changed; /* the round under way brought something else than the one before */
	struct groups *set; /* of the last good round that has targets */
	bool good; /* the last round was; */
	bool settled; /* one has ended */
	bool was_good; /* one was good */
};

struct api_source {
	const struct api *api;
	const void *config; /* a copy, in the arena */
	const struct api_config *common; /* the same */
	struct sd_source *host;
	struct event_base *base;
	struct http_client *client;
	struct api_seats *seats;
	struct aws *aws; /* NULL: not signed */
	struct arena arena;
	struct api_server server;
	struct str shown; /* the server, for messages */
	json_t *answers[API_LISTS_MAX]; /* of `lists` but the last */
	struct api_round *own;
	struct api_round **each; /* ascending by key */
	size_t each_n;
	bool published;
	size_t failing; /* rounds whose last attempt failed */
	struct err why; /* the last such failure */
};

MUST_CHECK enum err_code api_round_new(
	struct api_source *s, struct str key, struct api_round **out, struct err *err);
void api_round_free(struct api_round *r); /* ends what is under way; NULL is fine */
void api_round_begin(struct api_round *r);

/* api.c: a round has ended, well or not; err NULL: well. May free other rounds than r. */
void api_source_ended(struct api_round *r, const struct err *err);

#endif
