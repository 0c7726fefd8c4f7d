/*
 * API sources: targets out of lists that a server gives over HTTP, as JSON or XML. A mechanism
 * (consul, docker, ...) is one struct api: tables that say what to ask, how to ask it and which
 * label has which value. The engine (api.c) does the rest: rounds, pages, blocking queries, limits,
 * failures.
 *
 * A round asks for the lists of `lists`, one after the other. Then either the last of them holds
 * the targets, or `keys` picks keys from it (names of services), and each key has rounds of its
 * own, which ask for `each`.
 *
 * A new mechanism needs: a struct that begins with a struct api_config, its `fields`, tables of
 * parameters and labels, a struct api, a decoder that calls source_configs_decode, and a row in
 * SD_CONFIG_FIELDS (discovery/discovery.h). discovery/apis/nomad.c is the shortest model.
 *
 * Units:     nanoseconds, bytes.
 * Errors:    what a server does wrong goes to source_failed; the last groups stay.
 * Ownership: tables are constant. A source copies its configuration.
 * Threads:   discovery's. Nothing waits: requests and timers are on its event base.
 */
#ifndef DISCOVERY_APIS_API_H
#define DISCOVERY_APIS_API_H

#include <jansson.h>

#include "base/net/http_config.h"
#include "discovery/apis/aws.h"
#include "discovery/sources/json_path.h"
#include "discovery/sources/source.h"

#define API_LISTS_MAX 3
#define API_ROOTS_MAX 6
#define API_REFRESH_MIN_NS (INT64_C(100) * 1000000)
#define API_BODY_BYTES_MAX (32u << 20) /* of one answer */
#define API_VALUES_MAX (1u << 20) /* in one answer: a value takes many times its bytes */
#define API_PAGES_MAX 1000u
#define API_GROUPS_BYTES_MAX (256u << 20) /* of an answer's targets while it is read */
#define API_KEYS_MAX 100000u

/* ---- configuration ---- */

/* The struct of every mechanism begins with it. `defaults` of its schema sets api. */
struct api_config {
	const struct api *api;
	int64_t refresh_interval_ns;
	int64_t port; /* of targets that have none of their own */
	struct str separator; /* between the items of a label */
	struct http_config http;
};

#define API_REFRESH_FIELD \
	{ \
		"refresh_interval", YAML_DURATION, offsetof(struct api_config, refresh_interval_ns), NULL, \
			NULL, "How often the API is asked.", 0, .limits = "at least 100ms" \
	}
#define API_PORT_FIELD \
	{ \
		"port", YAML_INT, offsetof(struct api_config, port), NULL, NULL, \
			"The port of targets that have none of their own.", 0 \
	}
#define API_SEPARATOR_FIELD \
	{ \
		"tag_separator", YAML_STRING, offsetof(struct api_config, separator), NULL, NULL, \
			"What stands between tags in a label, and around them.", 0 \
	}
#define API_HTTP_FIELDS HTTP_CONFIG_FIELDS(offsetof(struct api_config, http))

/* {name: x, values: [a, b]}, of docker and ec2 */
struct api_filter {
	struct str name;
	struct yaml_list values; /* struct str */
};
extern const struct yaml_schema api_filter_schema;

void api_config_defaults(struct api_config *c, const struct api *api, int64_t refresh_interval_ns);
/* What every mechanism checks after its own checks. */
MUST_CHECK enum err_code api_config_check(
	struct yaml_ctx *ctx, const struct yaml_node *n, struct api_config *c, struct err *err);

/* ---- what is asked ---- */

enum api_param_kind {
	API_CONST, /* always `value` */
	API_TEXT, /* a struct str of the configuration; left out if it is empty */
	API_FLAG, /* a bool of it: the name alone, or nothing */
	API_EACH, /* a list of strings: the name once for each */
	API_MAP, /* a struct labels: NAME=key:value once for each */
};

struct api_param {
	const char *name;
	enum api_param_kind kind;
	size_t at; /* in the configuration */
	const char *value;
};

struct api_params { /* of one request, in order */
	struct arena *arena;
	struct label *v;
	size_t n, cap;
	bool failed; /* the arena */
};
void api_param_add(struct api_params *p, struct str name, struct str value);

struct api_list {
	const char *what; /* "list containers": in messages */
	const char *path; /* behind the server's URL; the key replaces a "*" at its end */
	const struct api_param *params;
	size_t params_n;
	/* Parameters that no table can say. NULL: none */
	void (*more)(const void *config, struct api_params *out);
	/* NULL: always. A list that is not needed has no answer. */
	bool (*needed)(const void *config);
	/* Paging: the path of the next page's token in an answer, and the parameter that takes it. */
	const char *next, *next_param;
	bool blocking; /* the server can hold the answer back until it changes: see index_header */
	bool once; /* the first answer is kept */
	bool optional; /* a failure is no more than a missing answer */
};

/* ---- what an answer says ---- */

/* A target under construction, and all that its labels may come from. */
struct api_target {
	const struct api *api;
	const void *config;
	const json_t *const *answers; /* of the lists before the last one, by their index; NULL: none */
	const json_t *answer; /* of the last list: the page that is read */
	const json_t *roots[API_ROOTS_MAX]; /* named by api->roots; NULL: it has none */
	struct str key; /* of the round; "" */
	struct str region; /* of AWS; "" */
	struct arena *arena;
	struct api_page *page; /* where api_target_add adds */
};

enum api_label_kind {
	API_VALUE, /* text, a number or a bool */
	API_MEMBERS, /* of an object: a label for each, NAME and the sanitized key */
	API_PAIRS, /* of a list of {key: k, value: v}: likewise */
	API_JOINED, /* items with separators between and around them; no items: no label */
	API_JOINED_ALWAYS, /* no items: two separators */
	API_ADDRESS, /* host:port; `port` is the port's path, or the configuration's port is taken */
	API_MADE, /* by `make` */
};

/*
 * Paths are "ROOT.member.member"; the first of several, "a.b|c.d", that gives a text is taken. "*"
 * is every item of a list. Missing and empty values give no label.
 */
struct api_label {
	const char *name;
	enum api_label_kind kind;
	const char *path;
	const char *port; /* API_ADDRESS */
	/* ptr NULL: out of memory. */
	struct str (*make)(const struct api_target *t);
};

struct str api_text(const struct api_target *t, const char *path); /* ptr NULL: out of memory */
const json_t *api_at(const struct api_target *t, const char *path); /* NULL: it is not there */
/* host:port, an IPv6 address in brackets; ptr NULL: out of memory. */
struct str api_address(struct arena *a, struct str host, struct str port);
/* The target has the labels of api->labels. */
MUST_CHECK enum err_code api_target_add(struct api_target *t, struct err *err);

/* ---- a mechanism ---- */

struct api_server { /* in the source's arena; NUL-terminated */
	struct str url; /* without a slash at its end; "": the service's of AWS in its region */
	struct str unix_path; /* "": none */
};

/*
 * "http://h:1/p", "https://...", "unix:///path" and, with `scheme`, "h:1". ERR_INVALID: what is
 * wrong, in Prometheus's words where it has some.
 */
MUST_CHECK enum err_code api_locate(
	struct str text, const char *scheme, struct arena *a, struct api_server *out, struct err *err);

struct api_keys { /* that a round found, in any order; a key that comes twice counts once */
	struct arena *arena;
	struct str *v;
	size_t n, cap;
	bool failed; /* the arena, or API_KEYS_MAX */
};
void api_key_add(struct api_keys *k, struct str key);

struct api {
	const char *kind; /* "consul" */
	const struct yaml_schema *schema;

	/* Where the server is; for `check config` too. */
	enum err_code (*locate)(
		const void *config, struct arena *a, struct api_server *out, struct err *err);
	/* Headers beside the configured ones. NULL: none */
	void (*headers)(const void *config, struct api_params *out);
	bool form; /* parameters are sent as a form, by POST */
	bool xml; /* answers are XML; see api_xml.c for what becomes of it */
	/* Requests are signed for AWS, with these settings. NULL: they are not */
	void (*aws)(const void *config, struct aws_config *out);

	const struct api_list *lists;
	size_t lists_n;
	const struct api_list *each; /* NULL: the targets are in the last list */
	/* From the answer of the last list; NULL where that was not needed. */
	void (*keys)(const void *config, const json_t *answer, struct api_keys *out);
	/* Blocking queries: the header with an answer's index; sent back as `index` with `wait`. */
	const char *index_header;

	/* Where the targets are: "set.*.items.*"; each "*" is the next root. */
	const char *items;
	const char *const *roots;
	/* Makes targets of what `items` found, by api_target_add. NULL: one each */
	enum err_code (*expand)(struct api_target *t, struct err *err);
	const struct api_label *labels;
	size_t labels_n;
	const struct api_label *group_labels; /* of all targets of a round: no roots, so API_MADE */
	size_t group_labels_n;
};

enum err_code api_source_open(const struct source_env *env, const void *config,
	struct sd_source *host, void **out, struct err *err);
void api_source_close(void *provider);
enum err_code api_check_files(const void *config, struct err *err);
enum err_code api_open_shared(const struct source_env *env, void **out, struct err *err);
void api_close_shared(void *shared);
#define API_SOURCE_OPS(name) \
	{ \
		.kind = (name), .open = api_source_open, .close = api_source_close, \
		.check = api_check_files, .open_shared = api_open_shared, .close_shared = api_close_shared \
	}

#endif
