#include "scrape/receive/admission.h"

#include <assert.h>

#include "base/clock.h"
#include "base/map.h"
#include "scrape/receive/receive.h"

/* A request is let in while its sender has credit; what it held is then taken off, below zero if
 * need be. So a request of any size passes, and the sender waits longer after a large one. */
#define BURST_S 2.0
#define RETRY_MAX_S 60u

void admission_init(struct admission *a)
{
	*a = (struct admission){ 0 };
	mutex_init(&a->lock);
	cond_init(&a->changed);
}

void admission_release(struct admission *a)
{
	assert(!a->running && !a->waiting);
	cond_destroy(&a->changed);
	mutex_destroy(&a->lock);
}

void admission_stop(struct admission *a)
{
	mutex_lock(&a->lock);
	a->stopped = true;
	cond_broadcast(&a->changed);
	mutex_unlock(&a->lock);
}

uint64_t admission_hash(struct str sender)
{
	uint64_t hash = hash_bytes(sender.ptr, sender.len, 0);

	return hash ? hash : 1;
}

/* NULL: all that are remembered have requests under way. */
static struct sender *admission_find(struct admission *a, uint64_t hash)
{
	struct sender *oldest = NULL;

	mutex_assert_held(&a->lock);
	for (size_t i = 0; i < ADMISSION_SENDERS; i++) {
		struct sender *s = &a->senders[i];

		if (s->hash == hash)
			return s;
		if (!s->in && (!oldest || s->at_ns < oldest->at_ns))
			oldest = s;
	}
	if (oldest)
		*oldest = (struct sender){ .hash = hash };
	return oldest;
}

static void sender_refill(struct sender *s, uint64_t per_second, int64_t now_ns)
{
	double most = BURST_S * (double)per_second;
	double passed_s = (double)(now_ns - s->at_ns) / (double)NS_PER_S;

	s->credit = s->at_ns ? s->credit + passed_s * (double)per_second : most;
	if (s->credit > most)
		s->credit = most;
	s->at_ns = now_ns;
}

static enum err_code admission_admit(
	struct admission *a, struct sender *s, uint64_t per_second, unsigned *retry_s, struct err *err)
{
	double wait_s;

	*retry_s = 1;
	if (a->stopped)
		return err_set(err, ERR_UNAVAILABLE, "the server is shutting down");
	if (!s || a->waiting == RECEIVE_WAITING_MAX)
		return err_set(err, ERR_UNAVAILABLE, "too many profiles are being sent: try again later");
	if (s->in == RECEIVE_SENDER_MAX)
		return err_set(err, ERR_LIMIT,
			"%u requests of this sender are in progress: try again later", RECEIVE_SENDER_MAX);
	sender_refill(s, per_second, clock_monotonic_ns());
	if (!per_second || s->credit >= 0)
		return ERR_OK;
	wait_s = -s->credit / (double)per_second;
	*retry_s = wait_s < RETRY_MAX_S ? 1 + (unsigned)wait_s : RETRY_MAX_S;
	return err_set(err, ERR_LIMIT,
		"this sender sends more than %llu profiles per second (profiles_per_second)",
		(unsigned long long)per_second);
}

enum err_code admission_begin(
	struct admission *a, uint64_t sender, uint64_t per_second, unsigned *retry_s, struct err *err)
{
	struct sender *s;
	enum err_code rc;

	mutex_lock(&a->lock);
	s = admission_find(a, sender);
	if (!(rc = admission_admit(a, s, per_second, retry_s, err))) {
		s->in++;
		a->waiting++;
		while (a->running == RECEIVE_RUNNING_MAX && !a->stopped)
			cond_wait(&a->changed, &a->lock);
		a->waiting--;
		if (a->stopped) {
			s->in--;
			rc = err_set(err, ERR_UNAVAILABLE, "the server is shutting down");
		} else {
			a->running++;
		}
	}
	mutex_unlock(&a->lock);
	return rc;
}

void admission_end(struct admission *a, uint64_t sender, size_t profiles)
{
	struct sender *s;

	mutex_lock(&a->lock);
	s = admission_find(a, sender);
	assert(s && s->in && a->running);
	s->in--;
	s->credit -= (double)profiles;
	a->running--;
	cond_signal(&a->changed);
	mutex_unlock(&a->lock);
}
