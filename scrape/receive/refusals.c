#include "scrape/receive/refusals.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/metrics.h"

METRIC_COUNTER(refused, "epimetheus_ingest_refused_profiles_total",
	"Profiles that were pushed and not stored, by reason.", "reason");

void refusals_init(struct refusals *r)
{
	*r = (struct refusals){ 0 };
	mutex_init(&r->lock);
}

void refusals_release(struct refusals *r)
{
	mutex_destroy(&r->lock);
}

static struct refusal_note *refusals_find(struct refusals *r, uint64_t hash)
{
	struct refusal_note *oldest = &r->notes[0];

	mutex_assert_held(&r->lock);
	for (size_t i = 0; i < REFUSALS_REMEMBERED; i++) {
		struct refusal_note *n = &r->notes[i];

		if (n->hash == hash)
			return n;
		if (n->used_ns < oldest->used_ns)
			oldest = n;
	}
	*oldest = (struct refusal_note){ .hash = hash };
	return oldest;
}

bool refusals_is_due(
	struct refusals *r, const struct refusal *refusal, int64_t now_ns, uint64_t *profiles)
{
	uint64_t hash = hash_bytes(refusal->sender.ptr, refusal->sender.len, (uint64_t)refusal->reason);
	struct refusal_note *n;
	bool due;

	mutex_lock(&r->lock);
	n = refusals_find(r, hash ? hash : 1);
	n->used_ns = now_ns;
	n->unlogged += refusal->profiles;
	if (!r->minute_ns || now_ns - r->minute_ns >= NS_PER_MIN) {
		r->minute_ns = now_ns;
		r->lines = 0;
	}
	due = r->lines < REFUSALS_LINES_PER_MINUTE &&
		(!n->logged_ns || now_ns - n->logged_ns >= NS_PER_MIN);
	if (due) {
		*profiles = n->unlogged;
		n->unlogged = 0;
		n->logged_ns = now_ns;
		r->lines++;
	}
	mutex_unlock(&r->lock);
	return due;
}

void refusals_add(struct refusals *r, const struct refusal *refusal)
{
	const char *reason = err_code_name(refusal->reason);
	uint64_t profiles;

	metric_add(&refused, reason, (double)refusal->profiles);
	if (refusals_is_due(r, refusal, clock_monotonic_ns(), &profiles))
		log_warn("receive", "pushed profiles refused", LOG_STR("sender", refusal->sender),
			LOG_STR("path", refusal->path), LOG_I("profiles", profiles), LOG_S("reason", reason),
			LOG_E(refusal->why));
}
