/*
 * Members are in two rings, each in the order in which they began to wait: of all, and of their
 * address. At most members_max / share addresses are greedy, which is SHARES, so a walk over them
 * costs nothing.
 */
#include "web/http/crowd.h"

#include <assert.h>
#include <stdlib.h>

#include "base/map.h"

#define SHARES 8u /* an address may have an eighth of all connections waiting */

/* An address that has members. */
struct crowd_address {
	struct crowd_address *next; /* of the same slot */
	struct crowd_address *greedy_next;
	struct http_sender client;
	struct crowd_member members; /* head of the ring, by address_next */
	size_t members_n;
};

bool crowd_open(struct crowd *all, size_t members_max)
{
	size_t slots = 64;

	while (slots < members_max)
		slots *= 2;
	*all = (struct crowd){ .share = members_max / SHARES, .mask = slots - 1, .seed = hash_seed() };
	if (!all->share)
		all->share = 1;
	all->all.prev = all->all.next = &all->all;
	all->slots = calloc(slots, sizeof(all->slots[0]));
	return all->slots != NULL;
}

void crowd_close(struct crowd *all)
{
	assert(!all->slots || all->all.next == &all->all);
	free(all->slots);
	all->slots = NULL;
}

static struct crowd_address **crowd_find(struct crowd *all, struct http_sender client)
{
	uint64_t hash = hash_bytes(client.bytes, sizeof(client.bytes), all->seed);
	struct crowd_address **at = &all->slots[hash & all->mask];

	while (*at && !http_same_client((*at)->client, client))
		at = &(*at)->next;
	return at;
}

static void crowd_join_address(struct crowd *all, struct crowd_member *m, struct http_sender client)
{
	struct crowd_address **at = crowd_find(all, client), *a = *at;

	if (!a) {
		if (!(a = calloc(1, sizeof(*a))))
			return;
		a->client = client;
		a->members.address_prev = a->members.address_next = &a->members;
		*at = a;
	}
	m->address = a;
	m->address_prev = a->members.address_prev;
	m->address_next = &a->members;
	m->address_prev->address_next = m->address_next->address_prev = m;
	if (++a->members_n != all->share + 1)
		return;
	a->greedy_next = all->greedy;
	all->greedy = a;
}

static void crowd_leave_address(struct crowd *all, struct crowd_member *m)
{
	struct crowd_address *a = m->address, **at;

	m->address_prev->address_next = m->address_next;
	m->address_next->address_prev = m->address_prev;
	m->address = NULL;
	assert(a->members_n);
	if (a->members_n-- == all->share + 1) {
		for (at = &all->greedy; *at != a; at = &(*at)->greedy_next)
			;
		*at = a->greedy_next;
	}
	if (a->members_n)
		return;
	at = crowd_find(all, a->client);
	*at = a->next;
	free(a);
}

void crowd_join(struct crowd *all, struct crowd_member *m, struct http_sender client)
{
	assert(!m->next);
	m->prev = all->all.prev;
	m->next = &all->all;
	m->prev->next = m->next->prev = m;
	crowd_join_address(all, m, client);
}

void crowd_leave(struct crowd *all, struct crowd_member *m)
{
	if (!m->next)
		return;
	m->prev->next = m->next;
	m->next->prev = m->prev;
	m->prev = m->next = NULL;
	if (m->address)
		crowd_leave_address(all, m);
}

struct crowd_member *crowd_next(const struct crowd *all, const struct crowd_member *last)
{
	const struct crowd_address *most = all->greedy;
	struct crowd_member *m;

	for (const struct crowd_address *a = most; a; a = a->greedy_next)
		if (a->members_n > most->members_n)
			most = a;
	if (most) {
		m = last ? last->address_next : most->members.address_next;
		return m == &most->members ? NULL : m;
	}
	m = last ? last->next : all->all.next;
	return m == &all->all ? NULL : m;
}
