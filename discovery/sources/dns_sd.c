#include "discovery/sources/dns_sd.h"

#include <ares.h>
#include <arpa/nameser.h>
#include <assert.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/net/loop.h"
#include "base/net/resolver.h"
#include "base/quote.h"
#include "discovery/sources/dns_records.h"

#define ANSWER_BYTES_MAX (32u << 20) /* of targets: one answer has 64 KiB */
/* Lookups at a time: more would overflow the socket of a server on the same host. */
#define ASKED_MAX 64u
/*
 * Answers wait this long for those of other names, to be published together. The first ones wait
 * longer, so that a reload does not lose targets for a moment.
 */
#define SETTLE_NS (500 * NS_PER_MS)
#define SETTLE_FIRST_NS (5 * NS_PER_S)

METRIC_COUNTER(lookups, "epimetheus_discovery_dns_lookups_total",
	"Names looked up, along all their search domains.", NULL);
METRIC_COUNTER(lookup_failures, "epimetheus_discovery_dns_lookup_failures_total",
	"Lookups that no server answered usefully.", NULL);

/* ---- configuration ---- */

/* clang-format off */
static const struct yaml_field dns_fields[] = {
	{ "names", YAML_LIST, offsetof(struct dns_sd_config, names), NULL, NULL,
		"Names to look up. A name without a dot at its end goes along the search domains of "
		"`resolv.conf`.", 0, .unset = "required", .limits = "at most 10000",
		.example = "[_pprof._tcp.shop.example]" },
	{ "type", YAML_STRING, offsetof(struct dns_sd_config, type), NULL, NULL, "The type of record.",
		0, .limits = "`SRV`, `A`, `AAAA`, `MX` or `NS`" },
	{ "port", YAML_INT, offsetof(struct dns_sd_config, port), NULL, NULL,
		"The port of targets. Not needed for `SRV`.", 0, .unset = "required unless `SRV`",
		.limits = "1 to 65535" },
	{ "refresh_interval", YAML_DURATION, offsetof(struct dns_sd_config, refresh_interval_ns), NULL,
		NULL, "How often names are looked up.", 0, .limits = "at least 1s" },
};
/* clang-format on */

static void dns_defaults(struct yaml_ctx *ctx, void *out)
{
	*(struct dns_sd_config *)out = (struct dns_sd_config){
		.type = STR("SRV"), .refresh_interval_ns = DNS_SD_REFRESH_DEFAULT_NS,
		};
}

static enum err_code dns_check(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *out, struct err *err)
{
	const struct dns_sd_config *c = out;
	const struct dns_type *type = dns_type_of(c->type);

	if (c->names.n == 0)
		return yaml_err(
			n, err, ERR_INVALID, "DNS-SD config must contain at least one SRV record name");
	if (c->names.n > DNS_SD_NAMES_MAX)
		return yaml_err(n, err, ERR_LIMIT, "more than %u names", DNS_SD_NAMES_MAX);
	if (!type)
		return yaml_err(
			n, err, ERR_INVALID, "invalid DNS-SD records type " STR_FMT, STR_ARG(c->type));
	if (type->type != ns_t_srv && c->port == 0)
		return yaml_err(n, err, ERR_INVALID,
			"a port is required in DNS-SD configs for all record types except SRV");
	if (type->type != ns_t_srv && (c->port < 0 || c->port > UINT16_MAX))
		return yaml_err(
			n, err, ERR_INVALID, "port %" PRId64 " is not from 1 to %d", c->port, UINT16_MAX);
	if (c->refresh_interval_ns < NS_PER_S)
		return yaml_err(n, err, ERR_INVALID, "refresh_interval of DNS discovery is under 1s");
	return ERR_OK;
}

const struct yaml_schema dns_sd_schema = {
	.name = "dns_sd_config",
	.size = sizeof(struct dns_sd_config),
	.fields = dns_fields,
	.fields_n = sizeof(dns_fields) / sizeof(dns_fields[0]),
	.defaults = dns_defaults,
	.check = dns_check,
};

/* ---- the provider ---- */

struct dns_sd_name {
	TAILQ_ENTRY(dns_sd_name) link; /* in dns_sd.queue */
	struct dns_sd *sd;
	struct str text;
	bool busy; /* queued or looked up now: a refresh skips it */
	size_t candidate; /* the search domain that is tried now */
	int status; /* the first failure among the candidates; ARES_SUCCESS: none */
	size_t status_of; /* that candidate */
	int failed; /* `status` of the last lookup that ended */
	size_t failed_of;
	bool reported; /* this failure */
	struct groups *last; /* one group; NULL: no answer yet */
};

struct dns_sd {
	struct sd_source *host;
	struct resolver *resolver;
	struct arena arena; /* names */
	const struct dns_type *type;
	unsigned port;
	int64_t refresh_interval_ns;
	struct event *refresh, *settle;
	struct dns_sd_name *names;
	size_t n;
	TAILQ_HEAD(, dns_sd_name) queue;
	size_t asked; /* lookups under way, at most ASKED_MAX */
	bool asking; /* dns_sd_ask_next runs */
	bool changed; /* since the last publish */
	bool published;
	bool closing;
};

static void dns_sd_name_report_failure(struct dns_sd_name *d)
{
	char asked[RESOLVER_NAME_BYTES];
	struct err why;

	if (!resolver_candidate(d->sd->resolver, d->text, d->failed_of, asked))
		asked[0] = '\0'; /* resolv.conf has changed meanwhile */
	/* c-ares says "could not contact" for SERVFAIL too */
	err_set(&why, ERR_UNAVAILABLE,
		"could not resolve %s: all servers responded with errors to at least one search domain:"
		" %s: %s",
		QUOTED(d->text), asked,
		d->failed == ARES_ECONNREFUSED ? "servers unreachable or failing" :
										 ares_strerror(d->failed));
	d->reported = true;
	source_failed(d->sd->host, &why);
}

static struct dns_sd_name *dns_sd_find_failed(const struct dns_sd *sd)
{
	for (size_t i = 0; i < sd->n; i++)
		if (sd->names[i].failed != ARES_SUCCESS)
			return &sd->names[i];
	return NULL;
}

static enum err_code dns_sd_make_set(const struct dns_sd *sd, struct groups **out, struct err *err)
{
	struct groups **sets = calloc(sd->n, sizeof(struct groups *));
	enum err_code rc;

	if (!sets)
		return err_nomem(err, "targets");
	for (size_t i = 0; i < sd->n; i++)
		sets[i] = sd->names[i].last;
	rc = groups_join(sets, sd->n, out, err);
	free(sets);
	return rc;
}

/* Reports failures after the publish, which tells the host that all is well. */
static void dns_sd_publish(struct dns_sd *sd)
{
	struct dns_sd_name *failed = dns_sd_find_failed(sd);
	struct groups *set;
	struct err err;
	bool reported = false;

	evtimer_del(sd->settle);
	sd->changed = false;
	if (dns_sd_make_set(sd, &set, &err)) {
		sd->changed = true;
		source_failed(sd->host, &err);
		return;
	}
	sd->published = true;
	source_publish(sd->host, set);
	for (size_t i = 0; i < sd->n; i++)
		if (sd->names[i].failed != ARES_SUCCESS && !sd->names[i].reported) {
			dns_sd_name_report_failure(&sd->names[i]);
			reported = true;
		}
	if (failed && !reported)
		dns_sd_name_report_failure(failed);
}

static void dns_sd_on_settle(evutil_socket_t fd, short what, void *ctx)
{
	dns_sd_publish(ctx);
}

/* Takes over the reference. */
static void dns_sd_name_learnt(struct dns_sd_name *d, struct groups *now)
{
	struct dns_sd *sd = d->sd;

	d->failed = ARES_SUCCESS;
	if (d->last && groups_eq(d->last, now)) {
		groups_unref(now);
		return;
	}
	groups_unref(d->last);
	d->last = now;
	sd->changed = true;
	if (!evtimer_pending(sd->settle, NULL))
		timer_after(sd->settle, sd->published ? SETTLE_NS : SETTLE_FIRST_NS);
}

/* Makes d's group of the records of an answer; no bytes make an empty one. */
static int dns_sd_name_read(struct dns_sd_name *d, struct str bytes)
{
	struct dns_answer a = { .bytes = (const unsigned char *)bytes.ptr,
		.len = (int)bytes.len,
		.name = d->text,
		.port = d->sd->port };
	struct target_group g = { .source = d->text };
	struct groups *now;
	struct arena arena;
	int rc = ARES_SUCCESS;

	arena_init(&arena, ANSWER_BYTES_MAX);
	a.arena = &arena;
	if (bytes.len)
		rc = dns_answer_read(&a, d->sd->type);
	g.targets = a.v;
	g.targets_n = a.n;
	if (rc == ARES_SUCCESS && groups_pack(&g, 1, &now, NULL))
		rc = ARES_ENOMEM;
	arena_release(&arena);
	if (rc == ARES_SUCCESS)
		dns_sd_name_learnt(d, now);
	return rc;
}

static void dns_sd_name_failed(struct dns_sd_name *d)
{
	metric_add(&lookup_failures, NULL, 1);
	d->failed = d->status;
	d->failed_of = d->status_of;
	d->reported = false;
	if (!d->sd->changed)
		dns_sd_name_report_failure(d);
}

static void dns_sd_ask_next(struct dns_sd *sd);

static void dns_sd_name_done(struct dns_sd_name *d)
{
	struct dns_sd *sd = d->sd;

	assert(d->busy && sd->asked > 0);
	d->busy = false;
	sd->asked--;
	dns_sd_ask_next(sd);
}

static void dns_sd_on_answer(void *ctx, int status, struct str answer);

/* Looks up the current candidate. If there is none left, the name does not exist or it failed. */
static void dns_sd_name_ask(struct dns_sd_name *d)
{
	char text[RESOLVER_NAME_BYTES];

	if (resolver_candidate(d->sd->resolver, d->text, d->candidate, text)) {
		resolver_query(d->sd->resolver, text, d->sd->type->type, dns_sd_on_answer, d);
		return;
	}
	if (d->status == ARES_SUCCESS) /* it exists in no search domain */
		d->status = dns_sd_name_read(d, (struct str){ 0 });
	if (d->status != ARES_SUCCESS)
		dns_sd_name_failed(d);
	dns_sd_name_done(d);
}

/*
 * The first candidate that exists decides, even without records of our type, as in Prometheus.
 * After a failure the next candidates are tried, but the name then does not count as gone.
 */
static void dns_sd_on_answer(void *ctx, int status, struct str answer)
{
	struct dns_sd_name *q = ctx;

	if (q->sd->closing)
		return;
	if (status == ARES_SUCCESS || status == ARES_ENODATA) {
		status = dns_sd_name_read(q, status == ARES_SUCCESS ? answer : (struct str){ 0 });
		if (status == ARES_SUCCESS) {
			dns_sd_name_done(q);
			return;
		}
	}
	if (status != ARES_ENOTFOUND && q->status == ARES_SUCCESS) {
		q->status = status;
		q->status_of = q->candidate;
	}
	q->candidate++;
	dns_sd_name_ask(q);
}

/* Starts lookups from the queue. When all have ended, publishes if something changed or all is
 * well. */
static void dns_sd_ask_next(struct dns_sd *sd)
{
	struct dns_sd_name *q;

	if (sd->asking)
		return; /* a lookup ended at once: the loop below goes on */
	sd->asking = true;
	while (sd->asked < ASKED_MAX && (q = TAILQ_FIRST(&sd->queue))) {
		TAILQ_REMOVE(&sd->queue, q, link);
		sd->asked++;
		q->candidate = 0;
		q->status = ARES_SUCCESS;
		metric_add(&lookups, NULL, 1);
		dns_sd_name_ask(q);
	}
	sd->asking = false;
	if (sd->asked == 0 && (sd->changed || !dns_sd_find_failed(sd)))
		dns_sd_publish(sd);
}

static void dns_sd_on_refresh(evutil_socket_t fd, short what, void *ctx)
{
	struct dns_sd *sd = ctx;

	timer_after(sd->refresh, sd->refresh_interval_ns);
	for (size_t i = 0; i < sd->n; i++) {
		if (sd->names[i].busy)
			continue;
		sd->names[i].busy = true;
		TAILQ_INSERT_TAIL(&sd->queue, &sd->names[i], link);
	}
	dns_sd_ask_next(sd);
}

static void dns_sd_close(void *provider)
{
	struct dns_sd *sd = provider;

	if (!sd)
		return;
	sd->closing = true;
	resolver_close(sd->resolver);
	if (sd->refresh)
		event_free(sd->refresh);
	if (sd->settle)
		event_free(sd->settle);
	for (size_t i = 0; i < sd->n; i++)
		groups_unref(sd->names[i].last);
	arena_release(&sd->arena);
	free(sd);
}

/* A name that is given twice counts once. */
static enum err_code dns_sd_add_names(
	struct dns_sd *sd, const struct yaml_list *names, struct err *err)
{
	const struct str *from = names->v;
	struct dns_sd_name *q;
	size_t k;

	sd->names = arena_array(&sd->arena, struct dns_sd_name, names->n);
	if (!sd->names)
		return arena_fail(&sd->arena, "DNS discovery", err);
	for (size_t i = 0; i < names->n; i++) {
		for (k = 0; k < sd->n && !str_eq(sd->names[k].text, from[i]); k++)
			;
		if (k < sd->n)
			continue;
		q = &sd->names[sd->n];
		*q = (struct dns_sd_name){ .sd = sd, .text = str_dup(&sd->arena, from[i]) };
		if (!q->text.ptr)
			return arena_fail(&sd->arena, "DNS discovery", err);
		sd->n++;
	}
	return ERR_OK;
}

static enum err_code dns_sd_open(const struct source_env *env, const void *config,
	struct sd_source *host, void **out, struct err *err)
{
	const struct dns_sd_config *c = config;
	struct dns_sd *sd = calloc(1, sizeof(*sd));
	enum err_code rc;

	assert(c->names.n > 0 && dns_type_of(c->type)); /* checked when it was decoded */
	if (!sd)
		return err_nomem(err, "DNS discovery");
	arena_init(&sd->arena, 0);
	TAILQ_INIT(&sd->queue);
	sd->host = host;
	sd->type = dns_type_of(c->type);
	sd->port = (unsigned)c->port;
	sd->refresh_interval_ns = c->refresh_interval_ns;
	if ((rc = dns_sd_add_names(sd, &c->names, err)) ||
		(rc = resolver_open(env->base, env->dns_servers, &sd->resolver, err)))
		goto fail;
	sd->refresh = evtimer_new(env->base, dns_sd_on_refresh, sd);
	sd->settle = evtimer_new(env->base, dns_sd_on_settle, sd);
	if (!sd->refresh || !sd->settle) {
		rc = err_nomem(err, "DNS discovery");
		goto fail;
	}
	timer_after(sd->refresh, 0);
	*out = sd;
	return ERR_OK;
fail:
	dns_sd_close(sd);
	return rc;
}

const struct source_ops dns_sd_ops = {
	.kind = "dns",
	.open = dns_sd_open,
	.close = dns_sd_close,
};

enum err_code dns_sd_decode(
	struct yaml_ctx *ctx, const struct yaml_node *n, void *sources, struct err *err)
{
	return source_configs_decode(
		ctx, n, "dns_sd_configs", &dns_sd_ops, &dns_sd_schema, sources, err);
}
