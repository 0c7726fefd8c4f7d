#include "cmd/epimetheus/pushes.h"

#include <assert.h>
#include <stdio.h>

#include "cmd/epimetheus/storage.h"
#include "tsdb/cluster/assignment/assignment_node.h"

static_assert(sizeof(((struct push_owner *)NULL)->name) > MANIFEST_SHARD_BYTES_MAX, "a name fits");
static_assert(
	sizeof(((struct push_owner *)NULL)->address) > MANIFEST_ADDRESS_BYTES_MAX, "an address fits");
static_assert(PUSH_SECRET_BYTES == ASSIGNMENT_SECRET_LEN + 1, "a secret fits");

static enum err_code pushes_owner(
	void *ctx, uint64_t labels_hash, int64_t ts_ns, struct push_owner *out, struct err *err)
{
	struct pushes *p = ctx;
	struct assignment_owner owner;
	enum err_code rc;

	*out = (struct push_owner){ .assignment = assignment_node_number(p->node) };
	if ((rc = assignment_push_owner(p->node, labels_hash, ts_ns, &owner, err)))
		return rc;
	out->own = owner.own;
	snprintf(out->name, sizeof(out->name), "%s", owner.name);
	snprintf(out->address, sizeof(out->address), "%s", owner.own ? "" : owner.address);
	return ERR_OK;
}

static void pushes_failed(void *ctx, const char *name)
{
	assignment_forget_address(((struct pushes *)ctx)->node, name);
}

static void pushes_secret(void *ctx, char out[PUSH_SECRET_BYTES])
{
	assignment_node_secret(((struct pushes *)ctx)->node, out);
}

enum err_code pushes_open(struct pushes *p, struct sink *to, struct storage *storage,
	const char *ca_file, struct err *err)
{
	struct push_router_options router = { .assignment = &p->assignment, .ca_file = ca_file };
	struct shard_node *shard = storage_shard(storage);
	enum err_code rc;

	*p = (struct pushes){ .sink = to, .node = storage_assignment(storage) };
	if (!to || !shard)
		return ERR_OK;
	lease_gate_init(&p->gate, to, shard);
	p->sink = &p->gate.sink;
	if (!p->node)
		return ERR_OK;
	p->assignment = (struct push_assignment){ p, pushes_owner, pushes_failed, pushes_secret };
	router.to = &p->gate.sink;
	if ((rc = push_router_open(&p->router, &router, err)))
		return rc;
	p->sink = &p->router.sink;
	p->shard_sink = &p->gate.sink;
	return ERR_OK;
}

void pushes_stop(struct pushes *p)
{
	push_router_stop(&p->router);
}

void pushes_close(struct pushes *p)
{
	push_router_close(&p->router);
}
