#include "web/http/bodies.h"

#include <assert.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/metrics.h"

METRIC_GAUGE(
	held, "epimetheus_http_body_bytes", "Bytes of request bodies in memory, gRPC's too.", NULL);
METRIC_COUNTER(refused, "epimetheus_http_bodies_refused_total",
	"Request bodies dropped, by limit: too_long, address (its share), all (of all addresses).",
	"limit");

/* An address that has bodies in memory. */
struct body_source {
	struct body_source *next; /* of the same slot */
	struct http_sender client;
	size_t bytes;
	size_t bodies_n;
};

void bodies_init(struct bodies *all, size_t max_bytes, size_t address_max_bytes)
{
	*all = (struct bodies){ .max_bytes = max_bytes, .address_max_bytes = address_max_bytes };
	all->ring.prev = all->ring.next = &all->ring;
}

static struct body_source **bodies_find(struct bodies *all, struct http_sender client)
{
	uint64_t hash = hash_bytes(client.bytes, sizeof(client.bytes), 0);
	struct body_source **at = &all->slots[hash % BODIES_SLOTS];

	while (*at && !http_same_client((*at)->client, client))
		at = &(*at)->next;
	return at;
}

static bool bodies_join(struct bodies *all, struct http_body *b, struct http_sender client)
{
	struct body_source **at = bodies_find(all, client);

	if (!*at) {
		if (!(*at = calloc(1, sizeof(**at))))
			return false;
		(*at)->client = client;
	}
	b->source = *at;
	b->source->bodies_n++;
	b->prev = all->ring.prev;
	b->next = &all->ring;
	b->prev->next = b->next->prev = b;
	return true;
}

void body_leave(struct bodies *all, struct http_body *b)
{
	struct body_source *source = b->source, **at;

	if (!source)
		return;
	assert(all->bytes >= b->counted && source->bytes >= b->counted && source->bodies_n);
	all->bytes -= b->counted;
	source->bytes -= b->counted;
	metric_add(&held, NULL, -(double)b->counted);
	b->counted = 0;
	b->source = NULL;
	b->prev->next = b->next;
	b->next->prev = b->prev;
	if (--source->bodies_n)
		return;
	assert(!source->bytes);
	at = bodies_find(all, source->client);
	*at = source->next;
	free(source);
}

void body_drop(struct bodies *all, struct http_body *b)
{
	body_leave(all, b);
	buf_release(&b->data);
}

static void bodies_refuse(struct bodies *all, struct http_body *b, int status, const char *limit)
{
	body_drop(all, b);
	b->refused = status;
	metric_add(&refused, limit, 1);
}

/*
 * The longest unfinished body of the address that holds most. NULL: no address holds more than
 * `fair`.
 */
static struct http_body *bodies_greediest(const struct bodies *all, size_t fair)
{
	struct http_body *worst = NULL;

	for (struct http_body *b = all->ring.next; b != &all->ring; b = b->next) {
		if (b->whole || !b->counted || b->source->bytes <= fair)
			continue;
		if (!worst || b->source->bytes > worst->source->bytes ||
			(b->source == worst->source && b->counted > worst->counted))
			worst = b;
	}
	return worst;
}

static bool bodies_make_room(struct bodies *all, size_t n, size_t fair)
{
	struct http_body *worst;

	while (n > all->max_bytes - all->bytes) {
		if (!(worst = bodies_greediest(all, fair)))
			return false;
		bodies_refuse(all, worst, 503, "all");
	}
	return true;
}

void body_add(struct bodies *all, struct http_body *b, struct http_sender client, const void *data,
	size_t n, size_t body_max)
{
	assert(!b->whole && (b->refused || b->data.len <= body_max));
	if (b->refused)
		return;
	if (n > body_max - b->data.len) {
		bodies_refuse(all, b, 413, "too_long");
		return;
	}
	if (!b->source && !bodies_join(all, b, client)) {
		bodies_refuse(all, b, 503, "all");
		return;
	}
	if (n > all->address_max_bytes || b->source->bytes > all->address_max_bytes - n) {
		bodies_refuse(all, b, 429, "address");
		return;
	}
	if (n > all->max_bytes || !bodies_make_room(all, n, b->source->bytes + n)) {
		bodies_refuse(all, b, 503, "all");
		return;
	}
	buf_add(&b->data, data, n);
	b->counted += n;
	b->source->bytes += n;
	all->bytes += n;
	metric_add(&held, NULL, (double)n); /* of all servers */
}
