#include "scrape/exclusive.h"

#include <assert.h>
#include <stdlib.h>

#include "base/map.h"

#define BUCKETS 4096u /* 10,000 targets make short chains; the table is 32 KiB */

struct exclusive {
	struct exclusive_user *holders[BUCKETS];
};

struct exclusive *exclusive_open(void)
{
	return calloc(1, sizeof(struct exclusive));
}

void exclusive_close(struct exclusive *e)
{
	for (size_t i = 0; e && i < BUCKETS; i++)
		assert(!e->holders[i]);
	free(e);
}

static size_t exclusive_bucket(struct str key)
{
	return hash_bytes(key.ptr, key.len, 0) % BUCKETS;
}

struct exclusive_user *exclusive_holder(const struct exclusive *e, struct str key)
{
	struct exclusive_user *u = e->holders[exclusive_bucket(key)];

	while (u && !str_eq(u->key, key))
		u = u->next;
	return u;
}

enum exclusive_entry exclusive_enter(struct exclusive *e, struct str key, struct exclusive_user *u)
{
	struct exclusive_user *holder = exclusive_holder(e, key), **at;
	char *copy = malloc(key.len + 1);

	assert(!u->inside && u->turn && key.len);
	if (!copy)
		return EXCLUSIVE_NOMEM;
	memcpy(copy, key.ptr, key.len);
	u->key = (struct str){ copy, key.len };
	u->inside = true;
	u->waiters = NULL;
	u->holds = !holder;
	if (holder) {
		for (at = &holder->waiters; *at; at = &(*at)->next)
			;
		u->next = NULL;
		*at = u;
		return EXCLUSIVE_WAITS;
	}
	u->next = e->holders[exclusive_bucket(key)];
	e->holders[exclusive_bucket(key)] = u;
	return EXCLUSIVE_HOLDS;
}

static void exclusive_user_unlink(struct exclusive_user **list, struct exclusive_user *u)
{
	while (*list != u)
		list = &(*list)->next;
	*list = u->next;
}

void exclusive_leave(struct exclusive *e, struct exclusive_user *u)
{
	struct exclusive_user **chain, *heir;
	char *key;

	if (!u->inside)
		return;
	memcpy(&key, &u->key.ptr, sizeof(key)); /* ours, though a str's bytes are const */
	chain = &e->holders[exclusive_bucket(u->key)];
	heir = u->holds ? u->waiters : NULL;
	if (!u->holds) {
		exclusive_user_unlink(&exclusive_holder(e, u->key)->waiters, u);
	} else {
		exclusive_user_unlink(chain, u);
		if (heir) {
			heir->waiters = heir->next;
			heir->next = *chain;
			heir->holds = true;
			*chain = heir;
		}
	}
	assert(!heir || (heir->inside && heir->holds));
	u->inside = u->holds = false;
	u->next = u->waiters = NULL;
	free(key);
	if (heir)
		heir->turn(heir->ctx);
}
