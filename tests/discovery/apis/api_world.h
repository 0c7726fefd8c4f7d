/*
 * For tests of discovery/apis: a server in the test's own event loop, which knows blocking queries
 * and answers them after two minutes at the latest, and a source that asks it. What the source
 * publishes is kept as text.
 *
 * Ownership: world_open and world_close pair; strings given live as long as the world.
 * Threads:   one.
 */
#ifndef TESTS_DISCOVERY_API_WORLD_H
#define TESTS_DISCOVERY_API_WORLD_H

#include "discovery/apis/sd.h"
#include "discovery/sources/source.h"

#define WORLD_RULES_MAX 32
#define WORLD_HELD_MAX 512

struct event_base;
struct evhttp;
struct evhttp_request;

/* The first rule whose `match` is in "METHOD URI BODY" answers. */
struct world_rule {
	const char *match;
	const char *body;
	int status; /* 0: 200 */
	const char *index_header; /* a blocking query: held back while its index is the world's */
	bool silent; /* no answer */
};

struct sd_source { /* the host */
	struct groups *set;
	unsigned published, failures; /* without those of a question that took too long */
	struct err why; /* the last failure */
	bool failing;
};

struct world {
	struct arena arena;
	struct event_base *base;
	struct http_client *client;
	struct evhttp *http;
	unsigned port;
	struct world_rule rules[WORLD_RULES_MAX];
	size_t rules_n;
	uint64_t index; /* of all that is blocking */
	struct world_held {
		struct evhttp_request *request;
		int64_t since_ns; /* 0: for ever */
	} held[WORLD_HELD_MAX]; /* the oldest first */
	size_t held_n, held_max;
	struct buf log; /* "METHOD URI BODY\n" of each request */
	struct buf headers; /* of the last request, "name: value\n" */
	unsigned requests, unexpected;
	struct sd_source host;
	struct source_configs configs;
	void *shared, *provider;
	struct buf text;
};

typedef enum err_code (*world_decode_fn)(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *sources, struct err *err);

/* unix_path NULL: on a port of 127.0.0.1. */
void world_open(struct world *w, const char *unix_path);
void world_close(struct world *w);
void world_rule(struct world *w, struct world_rule rule);
/* Other bodies for a match that has a rule. */
void world_change(struct world *w, const char *match, const char *body, int status);
/* The next index: all that is held back is answered. */
void world_bump(struct world *w);
/* An entry's text, where each "@" is the server's host:port. */
enum err_code world_decode(
	struct world *w, world_decode_fn decode, const char *yaml, struct err *err);
/* The same, and opens the source. */
void world_source(struct world *w, world_decode_fn decode, const char *yaml);
void world_stop(struct world *w); /* closes the source */
void world_turn(struct world *w); /* once around the loop */
/* "SOURCE {group labels}\n\t{labels}\n", or "nothing". */
const char *world_text(struct world *w);
bool world_saw(struct world *w, const char *line); /* a line of the log */

#define WORLD_UNTIL(w, cond) \
	({ \
		int64_t until_ = 0; \
		bool over_; \
		while (!(over_ = (cond)) && wait_more(&until_)) \
			world_turn(w); \
		over_; \
	})

#endif
