#include "scrape/forward/push_router.h"

#include "base/map.h"
#include "scrape/forward/push_entries.h"

uint64_t push_labels_hash(struct labels labels)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < labels.n; i++) {
		const struct label *l = &labels.v[i];

		if (str_is(l->name, LABEL_NAME))
			continue;
		/* each with its length, so that no two sets run together into the same bytes */
		hash = hash_bytes(l->name.ptr, l->name.len, hash ^ map_hash_u64(l->name.len));
		hash = hash_bytes(l->value.ptr, l->value.len, hash ^ map_hash_u64(l->value.len));
	}
	return hash;
}

static enum err_code push_router_append(
	struct sink *s, const struct sink_profile *p, sink_done_fn done, void *ctx, struct err *err)
{
	struct push_router *r = (struct push_router *)s;
	struct push_owner to = { 0 };
	struct buf entry = { 0 };
	enum err_code rc;

	if ((rc = r->assignment.owner(
			 r->assignment.ctx, push_labels_hash(p->labels), p->ts_ns, &to, err)))
		return rc;
	if (to.own)
		return r->to->ops->append(r->to, p, done, ctx, err);
	if (!(rc = push_entry_write(p, to.assignment, &entry, err)))
		rc = push_peers_send(r->peers, &to, &entry, p->stored, done, ctx, err);
	buf_release(&entry);
	return rc;
}

static enum err_code push_router_append_numbers(struct sink *s, const struct sink_number *numbers,
	size_t n, sink_done_fn done, void *ctx, struct err *err)
{
	struct push_router *r = (struct push_router *)s;

	return r->to->ops->append_numbers(r->to, numbers, n, done, ctx, err);
}

static const struct sink_ops push_router_ops = { .append = push_router_append,
	.append_numbers = push_router_append_numbers };

enum err_code push_router_open(
	struct push_router *r, const struct push_router_options *o, struct err *err)
{
	const struct push_peers_options peers = { o->assignment, o->ca_file, o->call_timeout_ns };

	*r = (struct push_router){
		.sink = { &push_router_ops }, .to = o->to, .assignment = *o->assignment
	};
	return push_peers_open(&peers, &r->peers, err);
}

void push_router_stop(struct push_router *r)
{
	if (r->peers)
		push_peers_stop(r->peers);
}

void push_router_close(struct push_router *r)
{
	push_peers_close(r->peers);
	r->peers = NULL;
}
