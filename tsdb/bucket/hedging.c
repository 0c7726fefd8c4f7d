#include <stdlib.h>

#include "base/clock.h"
#include "tsdb/bucket/internal.h"

#define SAMPLES_MIN 20
#define MAKE_EVERY 8 /* samples */
#define CREDIT_MAX (10 * HEDGING_GETS)

void hedging_init(struct hedging *h)
{
	mutex_init(&h->lock);
}

void hedging_release(struct hedging *h)
{
	mutex_destroy(&h->lock);
}

/*
 * Small reads all take about as long; large ones take longer with their bytes. The last class is
 * for whole objects, whose size is not known. -1: too large.
 */
static int hedging_class_of(uint64_t bytes)
{
	static const uint64_t up_to[HEDGING_CLASSES - 1] = { 64u << 10, 512u << 10, 4u << 20,
		16u << 20 };

	if (!bytes)
		return HEDGING_CLASSES - 1;
	for (int i = 0; i < HEDGING_CLASSES - 1; i++)
		if (bytes <= up_to[i])
			return i;
	return -1;
}

static int hedging_by_time(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

	return a < b ? -1 : a > b;
}

static int64_t hedging_percentile_95(const struct hedging_class *c)
{
	int64_t v[HEDGING_SAMPLES];

	memcpy(v, c->took_ns, c->n * sizeof(*v));
	qsort(v, c->n, sizeof(*v), hedging_by_time);
	return v[c->n * 95 / 100];
}

int64_t hedging_begin(struct hedging *h, uint64_t bytes)
{
	int i = hedging_class_of(bytes);
	int64_t after_ns;

	mutex_lock(&h->lock);
	if (h->credit < CREDIT_MAX)
		h->credit++;
	after_ns = i < 0 ? 0 : h->classes[i].p95_ns;
	mutex_unlock(&h->lock);
	return after_ns;
}

bool hedging_allow(struct hedging *h)
{
	bool allowed;

	mutex_lock(&h->lock);
	allowed = h->credit >= HEDGING_GETS;
	if (allowed)
		h->credit -= HEDGING_GETS;
	mutex_unlock(&h->lock);
	return allowed;
}

void hedging_took(struct hedging *h, uint64_t bytes, int64_t took_ns)
{
	int i = hedging_class_of(bytes);
	struct hedging_class *c;

	if (i < 0)
		return;
	mutex_lock(&h->lock);
	c = &h->classes[i];
	c->took_ns[c->at] = took_ns;
	c->at = (c->at + 1) % HEDGING_SAMPLES;
	if (c->n < HEDGING_SAMPLES)
		c->n++;
	if (c->n >= SAMPLES_MIN && (!c->p95_ns || ++c->since >= MAKE_EVERY)) {
		c->p95_ns = hedging_percentile_95(c);
		c->since = 0;
	}
	mutex_unlock(&h->lock);
}
