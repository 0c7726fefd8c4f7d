#include "cmd/epimetheus/lease_gate.h"

#include <stdlib.h>

#include "base/metrics.h"
#include "tsdb/cluster/shard.h"

METRIC_COUNTER(refused, "epimetheus_lease_refused_pushes_total",
	"Pushed profiles that were not acknowledged because the shard's lease was not sure; stored: "
	"they are in the data directory all the same.",
	"stored");

/* One append that is not durable yet. */
struct lease_gate_wait {
	struct lease_gate *g;
	sink_done_fn done;
	void *ctx;
	size_t n;
};

static void lease_gate_done(void *ctx, enum err_code rc, const struct err *err)
{
	struct lease_gate_wait *w = ctx;
	struct err why;

	if (!rc && (rc = shard_check_lease(w->g->shard, &why))) {
		metric_add(&refused, "yes", (double)w->n);
		err = &why;
	}
	w->done(w->ctx, rc, err);
	free(w);
}

/* NULL: *rc says why. */
static struct lease_gate_wait *lease_gate_begin(struct lease_gate *g, size_t n, sink_done_fn done,
	void *ctx, enum err_code *rc, struct err *err)
{
	struct lease_gate_wait *w;

	if ((*rc = shard_check_lease(g->shard, err))) {
		metric_add(&refused, "no", (double)n);
		return NULL;
	}
	if (!(w = malloc(sizeof(*w)))) {
		*rc = err_nomem(err, "push");
		return NULL;
	}
	*w = (struct lease_gate_wait){ g, done, ctx, n };
	return w;
}

static enum err_code lease_gate_append(
	struct sink *s, const struct sink_profile *p, sink_done_fn done, void *ctx, struct err *err)
{
	struct lease_gate *g = (struct lease_gate *)s;
	struct lease_gate_wait *w;
	enum err_code rc;

	if (!(w = lease_gate_begin(g, 1, done, ctx, &rc, err)))
		return rc;
	if ((rc = g->to->ops->append(g->to, p, lease_gate_done, w, err)))
		free(w);
	return rc;
}

static enum err_code lease_gate_append_numbers(struct sink *s, const struct sink_number *numbers,
	size_t n, sink_done_fn done, void *ctx, struct err *err)
{
	struct lease_gate *g = (struct lease_gate *)s;
	struct lease_gate_wait *w;
	enum err_code rc;

	if (!(w = lease_gate_begin(g, n, done, ctx, &rc, err)))
		return rc;
	if ((rc = g->to->ops->append_numbers(g->to, numbers, n, lease_gate_done, w, err)))
		free(w);
	return rc;
}

static const struct sink_ops gate_ops = { .append = lease_gate_append,
	.append_numbers = lease_gate_append_numbers };

void lease_gate_init(struct lease_gate *g, struct sink *to, struct shard_node *shard)
{
	*g = (struct lease_gate){ .sink = { &gate_ops }, .to = to, .shard = shard };
}
