#include "scrape/scraper.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "scrape/cycle.h"
#include "scrape/task.h"

#define LEAVE_NS (500 * NS_PER_MS)

static void scraper_start(struct scraper *s, const struct target *target)
{
	s->target = target;
	event_assign(&s->timer, loop_base(s->lane->loop), -1, 0, cycle_on_timer, s);
	cycle_count_target(s);
	cycle_schedule_first(s);
}

/*
 * A scrape under way moves to the new part too: a request may last minutes, and would keep the old
 * groups in memory.
 */
static void scraper_update(struct scraper *s, const struct target *target)
{
	bool reschedule = s->target->interval_ns != target->interval_ns ||
		s->target->profile->optional != target->profile->optional;
	const struct target *old = s->target;

	s->target = target;
	if (s->state == SCRAPER_FETCHING) {
		target_unref(s->task->target);
		s->task->target = target_ref(target);
	}
	target_unref(old);
	if (!reschedule)
		return;
	cycle_change_optional(s);
	cycle_schedule(s);
}

/* moved: as scraper_end. */
static void scraper_stop(struct scraper *s, bool moved)
{
	struct scrape_task *t = s->task;

	s->stopped = true;
	if (s->scrapes && !s->env->closing && !moved)
		report_gone(s->lane->report, s->target, clock_now_ns());
	event_del(&s->timer);
	exclusive_leave(s->lane->exclusive, &s->user);
	if (s->state == SCRAPER_STORING)
		return; /* finish frees it */
	if (s->state == SCRAPER_FETCHING) {
		http_request_cancel(s->request);
		task_free(t);
	}
	scraper_free(s);
}

static struct scraper *scraper_alloc(struct lane *lane)
{
	struct scraper *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->env = lane->env;
	s->lane = lane;
	s->user.turn = cycle_on_endpoint;
	s->user.ctx = s;
	return s;
}

struct scraper *scraper_once(
	struct lane *lane, const struct target *target, scraper_ended_fn ended, void *ctx)
{
	struct scraper *s = scraper_alloc(lane);

	if (!s)
		return NULL;
	assert(ended && loop_is_current(lane->loop));
	s->ended = ended;
	s->ended_ctx = ctx;
	s->target = target_ref(target);
	event_assign(&s->timer, loop_base(lane->loop), -1, 0, cycle_on_timer, s);
	return s;
}

void scraper_begin(struct scraper *s)
{
	assert(s->ended && loop_is_current(s->lane->loop));
	s->turn_ns = clock_monotonic_ns();
	cycle_begin(s);
}

static void scraper_leave(struct scraper *s)
{
	struct scraper **at = &s->lane->leaving;

	while (*at != s)
		at = &(*at)->leaving_next;
	*at = s->leaving_next;
	scraper_stop(s, false);
}

static void scraper_on_left(evutil_socket_t fd, short what, void *ctx)
{
	scraper_leave(ctx);
}

/*
 * A Go process notices late that its client has gone, and refuses other CPU profiles until then. So
 * the endpoint is held a little longer.
 */
void scraper_cancel(struct scraper *s)
{
	assert(s->ended && loop_is_current(s->lane->loop));
	if (s->state != SCRAPER_FETCHING || !s->target->exclusive.len) {
		scraper_stop(s, false);
		return;
	}
	http_request_cancel(s->request);
	task_free(s->task);
	s->task = NULL;
	s->state = SCRAPER_IDLE;
	s->leaving_next = s->lane->leaving;
	s->lane->leaving = s;
	event_assign(&s->timer, loop_base(s->lane->loop), -1, 0, scraper_on_left, s);
	timer_after(&s->timer, LEAVE_NS);
}

void scraper_leave_all(struct lane *lane)
{
	while (lane->leaving)
		scraper_leave(lane->leaving);
}

void scraper_take(struct scraper *s, const struct scraper_change *c)
{
	assert(loop_is_current(s->lane->loop) && !s->stopped);
	assert(c->end || c->target);
	if (c->end) {
		target_unref(c->target);
		if (s->target)
			scraper_stop(s, c->moved);
		else
			scraper_free(s);
	} else if (s->target) {
		scraper_update(s, c->target);
	} else {
		scraper_start(s, c->target);
	}
}

/* ---- changes from other threads ---- */

static void scraper_queue_change(
	struct scraper *s, const struct target *target, bool end, bool moved)
{
	const struct target *before;

	mutex_lock(&s->lane->lock);
	assert(!s->change.end); /* nothing follows scraper_end */
	before = s->change.target; /* of a change that was not taken yet: the later one wins */
	s->change.target = target ? target_ref(target) : NULL;
	s->change.end = end;
	s->change.moved = moved;
	lane_put(s->lane, s);
	mutex_unlock(&s->lane->lock);
	target_unref(before);
}

struct scraper *scraper_new(struct lane *lane, const struct target *target)
{
	struct scraper *s = scraper_alloc(lane);

	if (s)
		scraper_queue_change(s, target, false, false);
	return s;
}

void scraper_change(struct scraper *s, const struct target *target)
{
	scraper_queue_change(s, target, false, false);
}

void scraper_end(struct scraper *s, bool moved)
{
	scraper_queue_change(s, NULL, true, moved);
}
