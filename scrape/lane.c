#include "scrape/lane.h"

#include <assert.h>
#include <stdlib.h>

#include "base/net/http_client.h"
#include "scrape/scraper.h"

/*
 * The number of changes taken before events run again. Starting a scraper costs about 1 us, ending
 * one that fetches 20 us (a close()), so a slice takes milliseconds.
 */
#define SLICE 256

struct lane_opening {
	struct lane *lane;
	const struct lane_options *options;
	enum err_code rc;
	struct err *err;
};

static struct scraper *lane_take_first(struct lane *l, struct scraper_change *change)
{
	struct scraper *s;

	mutex_lock(&l->lock);
	s = l->first;
	if (s) {
		*change = s->change;
		s->change = (struct scraper_change){ 0 };
		l->first = change->next;
		if (!l->first)
			l->last = &l->first;
	} else {
		l->posted = false;
	}
	mutex_unlock(&l->lock);
	return s;
}

static void lane_take_slice(void *ctx)
{
	struct lane *l = ctx;
	struct scraper_change change;
	struct scraper *s;

	for (size_t i = 0; i < SLICE; i++) {
		if (!(s = lane_take_first(l, &change)))
			return;
		scraper_take(s, &change);
	}
	loop_post(l->loop, &l->work, lane_take_slice, l);
}

void lane_put(struct lane *l, struct scraper *s)
{
	mutex_assert_held(&l->lock);
	assert(s->lane == l);
	if (!s->change.in_line) {
		s->change.in_line = true;
		s->change.next = NULL;
		*l->last = s;
		l->last = &s->change.next;
	}
	if (!l->posted) {
		l->posted = true;
		loop_post(l->loop, &l->work, lane_take_slice, l);
	}
}

int64_t lane_first_turn(int64_t *first_ns, int64_t now_ns)
{
	int64_t turn = *first_ns > now_ns ? *first_ns : now_ns;

	if (turn - now_ns >= LANE_FIRST_AHEAD_NS)
		return 0;
	*first_ns = turn + LANE_FIRST_EVERY_NS;
	return turn;
}

static void lane_open_parts(void *ctx)
{
	struct lane_opening *o = ctx;
	struct http_client_options client = {
		.base = loop_base(o->lane->loop),
		.connections_max = o->options->connections_max,
		.user_agent = o->options->user_agent,
	};

	o->rc = report_open(loop_base(o->lane->loop), o->lane->env->workers, o->lane->env->sink,
		&o->lane->report, o->err);
	if (!o->rc)
		o->rc = http_client_open(&client, &o->lane->client, o->err);
}

enum err_code lane_open(
	struct scrape_env *env, const struct lane_options *o, struct lane **out, struct err *err)
{
	struct lane *l = calloc(1, sizeof(*l));
	struct lane_opening opening = { .lane = l, .options = o, .err = err };
	enum err_code rc;

	if (!l)
		return err_nomem(err, "loop of scrapes");
	l->env = env;
	l->last = &l->first;
	mutex_init(&l->lock);
	l->exclusive = exclusive_open();
	rc = l->exclusive ? loop_open(o->name, &l->loop, err) : err_nomem(err, "loop of scrapes");
	if (!rc) {
		loop_call(l->loop, lane_open_parts, &opening);
		rc = opening.rc;
	}
	if (rc) {
		lane_close(l);
		return rc;
	}
	*out = l;
	return ERR_OK;
}

static void scrape_lane_end(void *ctx)
{
	struct lane *l = ctx;
	struct scraper_change change;
	struct scraper *s;

	assert(loop_is_current(l->loop));
	while ((s = lane_take_first(l, &change)))
		scraper_take(s, &change);
	scraper_leave_all(l);
	report_stop(l->report);
	http_client_close(l->client);
	l->client = NULL;
}

void lane_end(struct lane *l)
{
	loop_call(l->loop, scrape_lane_end, l);
}

void lane_close(struct lane *l)
{
	if (!l)
		return;
	assert(!l->first && !l->leaving);
	report_close(l->report);
	loop_close(l->loop);
	exclusive_close(l->exclusive);
	mutex_destroy(&l->lock);
	free(l);
}
