#include "cmd/epimetheus/assigned_shard.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/metrics.h"
#include "tsdb/cluster/assignment/assignment_node.h"
#include "tsdb/cluster/shard.h"
#include "web/web.h"

METRIC_GAUGE(followed_number, "epimetheus_shard_assignment",
	"Number of the assignment of shards that this one follows; 0: none is known yet.", NULL);
METRIC_GAUGE(waiting_targets, "epimetheus_shard_targets_waiting",
	"Targets that this shard is to scrape, and that another one may still scrape.", NULL);

/* ---- the rule ---- */

struct assigned_rule {
	struct shard_rule rule; /* first */
	struct assignment_rule *of;
};

static enum shard_whose assigned_rule_whose(
	const struct shard_rule *r, uint64_t key, struct shard_reason *why)
{
	const struct assigned_rule *own = (const struct assigned_rule *)r;
	const struct assignment *s = assignment_rule_of(own->of);
	struct str shard;
	enum assignment_whose whose = assignment_rule_whose(own->of, key, &shard);

	if (whose == ASSIGNMENT_OWN)
		return SHARD_OWN;
	if (!why)
		return whose == ASSIGNMENT_WAITS ? SHARD_WAITS : SHARD_ELSEWHERE;
	if (!s->number)
		snprintf(why->text, sizeof(why->text), "the assignment of shards is not known yet");
	else if (whose == ASSIGNMENT_WAITS)
		snprintf(why->text, sizeof(why->text),
			"shard " STR_FMT " may still scrape it, until it follows assignment %" PRIu64,
			STR_ARG(shard), s->number);
	else
		snprintf(why->text, sizeof(why->text),
			"shard " STR_FMT " scrapes it (assignment %" PRIu64 ", %" PRIu32 " shard%s)",
			STR_ARG(shard), s->number, assignment_newest(s)->n,
			assignment_newest(s)->n == 1 ? "" : "s");
	return whose == ASSIGNMENT_WAITS ? SHARD_WAITS : SHARD_ELSEWHERE;
}

static void assigned_rule_release(struct shard_rule *r)
{
	struct assigned_rule *own = (struct assigned_rule *)r;

	assignment_rule_unref(own->of);
	free(own);
}

static enum err_code assigned_rule_new(
	struct assignment_rule *of, struct shard *out, struct err *err)
{
	struct assigned_rule *r = calloc(1, sizeof(*r));

	if (!r)
		return err_nomem(err, "assignment");
	atomic_init(&r->rule.refs, 1);
	r->rule.whose = assigned_rule_whose;
	r->rule.release = assigned_rule_release;
	r->of = assignment_rule_ref(of);
	*out = (struct shard){ .rule = &r->rule };
	return ERR_OK;
}

static enum shard_whose assigned_rule_nobody(
	const struct shard_rule *r, uint64_t key, struct shard_reason *why)
{
	if (why)
		snprintf(why->text, sizeof(why->text), "out of memory for the assignment of shards");
	return SHARD_WAITS;
}

static struct shard_rule no_memory_rule = { .refs = 1, .whose = assigned_rule_nobody };

/* ---- the sink ---- */

static enum err_code assigned_shard_append(
	struct sink *s, const struct sink_profile *p, sink_done_fn done, void *ctx, struct err *err)
{
	struct assigned_shard *a = (struct assigned_shard *)s;
	enum err_code rc;

	if (a->node && (rc = assignment_node_check(a->node, err)))
		return rc;
	return a->to->ops->append(a->to, p, done, ctx, err);
}

static enum err_code assigned_shard_append_numbers(struct sink *s,
	const struct sink_number *numbers, size_t n, sink_done_fn done, void *ctx, struct err *err)
{
	struct assigned_shard *a = (struct assigned_shard *)s;
	enum err_code rc;

	if (a->node && (rc = assignment_node_check(a->node, err)))
		return rc;
	return a->to->ops->append_numbers(a->to, numbers, n, done, ctx, err);
}

static const struct sink_ops assigned_ops = { .append = assigned_shard_append,
	.append_numbers = assigned_shard_append_numbers };

/* ---- following ---- */

static void assigned_shard_collect(void *ctx)
{
	struct assigned_shard *a = ctx;

	metric_set(&followed_number, NULL, (double)assignment_node_number(a->node));
	metric_set(&waiting_targets, NULL, (double)scrape_manager_waiting(a->manager));
}

static void assigned_shard_follow(void *ctx, struct assignment_rule *rule)
{
	struct assigned_shard *a = ctx;
	struct shard shard;
	struct err err;

	if (assigned_rule_new(rule, &shard, &err)) { /* the old rule must not go on */
		log_error("main", "no target is scraped until the next assignment", LOG_E(&err));
		atomic_fetch_add(&no_memory_rule.refs, 1);
		shard = (struct shard){ .rule = &no_memory_rule };
	}
	scrape_manager_set_shard(a->manager, &shard);
	shard_unref(&shard);
}

static void assigned_shard_followed(void *ctx, uint64_t number)
{
	publisher_set_assignment(((struct assigned_shard *)ctx)->publisher, number);
}

void assigned_shard_init(struct assigned_shard *a, struct sink *to, struct assignment_node *node)
{
	*a = (struct assigned_shard){ .sink = { &assigned_ops }, .to = to, .node = node };
}

static enum err_code assigned_shard_start(struct assigned_shard *a, struct err *err)
{
	const struct assignment_node_user user = { assigned_shard_follow, assigned_shard_followed, a };
	enum err_code rc = assignment_node_start(a->node, &user, err);

	if (rc)
		return rc;
	metric_collector_add(assigned_shard_collect, a);
	a->started = true;
	return ERR_OK;
}

enum err_code assigned_shard_open_manager(struct assigned_shard *a, struct shard_node *shard,
	struct scrape_manager_options *o, struct scrape_manager **out, struct err *err)
{
	struct assignment_rule *rule;
	struct shard first = o->shard;
	enum err_code rc;

	if (!a->node)
		return scrape_manager_open(o, out, err);
	rule = assignment_node_rule(a->node);
	rc = assigned_rule_new(rule, &first, err);
	assignment_rule_unref(rule);
	if (rc)
		return rc;
	o->shard = first;
	if (!(rc = scrape_manager_open(o, out, err))) {
		a->manager = *out;
		a->publisher = shard_publisher(shard);
		rc = assigned_shard_start(a, err);
	}
	shard_unref(&first);
	o->shard.rule = NULL;
	return rc;
}

void assigned_shard_end(struct assigned_shard *a)
{
	if (!a->started)
		return;
	metric_collector_remove(assigned_shard_collect, a);
	assignment_node_end(a->node);
}

enum err_code assigned_shard_address(
	struct options *o, const struct web *web, char **kept, struct err *err)
{
	char host[256] = "";

	if (!o->shard_join || o->shard_address[0])
		return ERR_OK;
	if (gethostname(host, sizeof(host) - 1) || !host[0])
		return err_set(err, ERR_INVALID, "the host has no name: set --shard.address");
	if (asprintf(kept, "%s://%s:%u%s", web_scheme(web), host, web_port(web), web_prefix(web)) < 0) {
		*kept = NULL;
		return err_nomem(err, "address");
	}
	o->shard_address = *kept;
	return ERR_OK;
}
