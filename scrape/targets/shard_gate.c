#include "scrape/targets/shard_gate.h"

#include <assert.h>

void shard_gate_init(struct shard_gate *g, const struct shard *s)
{
	*g = (struct shard_gate){ .shard = shard_ref(s) };
	mutex_init(&g->lock);
	cond_init(&g->left);
}

void shard_gate_release(struct shard_gate *g)
{
	assert(!g->inside[0] && !g->inside[1]);
	shard_unref(&g->shard);
	mutex_destroy(&g->lock);
	cond_destroy(&g->left);
}

void shard_gate_set(struct shard_gate *g, const struct shard *s)
{
	struct shard before;
	unsigned old;

	mutex_lock(&g->lock);
	before = g->shard;
	g->shard = shard_ref(s);
	old = g->turn;
	g->turn ^= 1;
	assert(!g->inside[g->turn]);
	while (g->inside[old])
		cond_wait(&g->left, &g->lock);
	mutex_unlock(&g->lock);
	shard_unref(&before);
}

struct shard shard_gate_get(struct shard_gate *g)
{
	struct shard s;

	mutex_lock(&g->lock);
	s = shard_ref(&g->shard);
	mutex_unlock(&g->lock);
	return s;
}

enum err_code shard_gate_enter(struct shard_gate *g, uint64_t key, unsigned *turn, struct err *err)
{
	struct shard_reason why;
	enum err_code rc = ERR_OK;

	mutex_lock(&g->lock);
	if (shard_whose(&g->shard, key, &why) == SHARD_OWN)
		g->inside[ *turn = g->turn]++;
	else
		rc = err_set(err, ERR_CANCELED, "not stored: %s", why.text);
	mutex_unlock(&g->lock);
	return rc;
}

void shard_gate_leave(struct shard_gate *g, unsigned turn)
{
	mutex_lock(&g->lock);
	assert(g->inside[turn]);
	if (!--g->inside[turn])
		cond_broadcast(&g->left);
	mutex_unlock(&g->lock);
}
