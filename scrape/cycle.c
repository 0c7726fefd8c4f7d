#include "scrape/cycle.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/quote.h"
#include "scrape/refusal.h"
#include "scrape/targets/url.h"
#include "scrape/task.h"

#define NOT_FOUND 404
#define ABSENT_NS (60 * NS_PER_MIN)
#define FIRST_INTERVAL_MAX_NS NS_PER_DAY

METRIC_COUNTER(
	scrapes_total, "epimetheus_scrape_scrapes_total", "Scrapes ended, by how.", "result");
METRIC_COUNTER(skipped_total, "epimetheus_scrape_skipped_total",
	"Turns skipped because the scrape before was still in progress.", NULL);
METRIC_HISTOGRAM(fetch_seconds, "epimetheus_scrape_duration_seconds",
	"From the request to the end of the answer, including the `seconds` of a profile.", NULL);
METRIC_HISTOGRAM(store_seconds, "epimetheus_scrape_store_duration_seconds",
	"From the end of the answer to the acknowledgement of the store.", NULL);
METRIC_COUNTER(
	bytes_total, "epimetheus_scrape_body_bytes_total", "Bytes of profiles as received.", NULL);
METRIC_COUNTER(
	samples_total, "epimetheus_scrape_samples_total", "Samples of profiles scraped.", NULL);
METRIC_HISTOGRAM(delay_seconds, "epimetheus_scrape_start_delay_seconds",
	"From a target's turn to its request, including the wait for its CPU profiler.", NULL);
METRIC_GAUGE(targets, "epimetheus_scrape_targets", "Targets by health.", "state");

METRIC_COUNTER(refused_total, "epimetheus_scrape_profiler_taken_total",
	"Requests for CPU profiles that were refused because another profiler had the process.", NULL);

/* ---- when ---- */

static void cycle_timer_set(struct scraper *s)
{
	timer_after(&s->timer, s->next_ns - clock_monotonic_ns());
}

void cycle_schedule(struct scraper *s)
{
	int64_t interval = s->target->interval_ns, now = clock_now_ns() % interval;
	int64_t turn = (int64_t)(s->target->hash % (uint64_t)interval);
	int64_t wait = turn > now ? turn - now : interval - (now - turn);

	assert(wait > 0 && wait <= interval);
	s->next_ns = clock_monotonic_ns() + wait;
	s->first = s->begun_at_once = false;
	cycle_timer_set(s);
}

void cycle_schedule_first(struct scraper *s)
{
	int64_t turn;

	cycle_schedule(s);
	if (s->target->interval_ns > FIRST_INTERVAL_MAX_NS)
		return;
	turn = lane_first_turn(&s->lane->first_ns, clock_monotonic_ns());
	if (!turn || turn >= s->next_ns)
		return;
	s->next_ns = turn;
	s->first = true;
	cycle_timer_set(s);
}

/*
 * The turn after the first. Profiles are no denser than the interval, and no base of counters and
 * no level is older than two.
 */
static void cycle_second_turn(struct scraper *s)
{
	cycle_schedule(s);
	s->next_ns += s->target->interval_ns;
	cycle_timer_set(s);
	s->begun_at_once = true;
}

/* ---- what is shown ---- */

const char *target_health_name(enum target_health h)
{
	/* clang-format off */
	static const char *const names[] = {
		[TARGET_UNKNOWN] = "unknown", [TARGET_UP] = "up", [TARGET_DOWN] = "down",
		[TARGET_ABSENT] = "absent",
	};
	/* clang-format on */

	assert(h <= TARGET_ABSENT);
	return names[h];
}

static void cycle_set_health(struct scraper *s, enum target_health h)
{
	if (s->health == h)
		return;
	metric_add(&targets, target_health_name(s->health), -1);
	s->health = h;
	metric_add(&targets, target_health_name(h), 1);
}

static void cycle_set_error(struct scraper *s, const char *text)
{
	free(s->last_error);
	s->last_error = text ? strdup(text) : NULL;
}

static void cycle_report(struct scraper *s, uint64_t samples, uint64_t bytes)
{
	const struct report_scrape r = {
		.start_ns = s->last_scrape_ns,
		.duration_ns = s->last_duration_ns,
		.samples = samples,
		.bytes = bytes,
		.up = s->health == TARGET_UP,
	};

	report_scrape(s->lane->report, s->target, &r);
}

/* samples and bytes: of what was received before it failed. */
static void cycle_failed(struct scraper *s, int64_t start_ns, int64_t duration_ns,
	const char *result, uint64_t samples, uint64_t bytes, const struct err *why)
{
	metric_add(&scrapes_total, result, 1);
	s->scrapes++;
	s->failures++;
	growth_lose(&s->growth);
	s->last_scrape_ns = start_ns;
	s->last_duration_ns = duration_ns;
	cycle_set_error(s, why->msg);
	cycle_set_health(s, TARGET_DOWN);
	cycle_report(s, samples, bytes);
	if (log_enabled(LOG_DEBUG))
		log_debug("scrape", "scrape failed", LOG_STR("job", s->target->part->job->job_name),
			LOG_STR("target", s->target->shown_url), LOG_D("elapsed", duration_ns), LOG_E(why));
}

void cycle_count_target(struct scraper *s)
{
	s->health = s->target->profile->optional ? TARGET_ABSENT : TARGET_UNKNOWN;
	metric_add(&targets, target_health_name(s->health), 1);
}

void cycle_change_optional(struct scraper *s)
{
	bool optional = s->target->profile->optional;

	if (s->health == (optional ? TARGET_UNKNOWN : TARGET_ABSENT))
		cycle_set_health(s, optional ? TARGET_ABSENT : TARGET_UNKNOWN);
}

void scraper_free(struct scraper *s)
{
	if (s->target && !s->ended)
		metric_add(&targets, target_health_name(s->health), -1);
	free(s->last_error);
	target_unref(s->target);
	free(s);
}

static void cycle_end_once(struct scraper *s, const struct scraper_outcome *o, const char *result)
{
	metric_add(&scrapes_total, result, 1);
	s->ended(s->ended_ctx, o);
	scraper_free(s);
}

/* Before anything was fetched. Frees a profile now. */
static void cycle_fail(struct scraper *s, const char *result, const struct err *why)
{
	if (s->health == TARGET_ABSENT && !s->ended)
		metric_add(&scrapes_total, "absent", 1);
	else if (s->ended)
		cycle_end_once(s, &(struct scraper_outcome){ .rc = why->code, .err = why }, result);
	else
		cycle_failed(s, clock_now_ns(), 0, result, 0, 0, why);
}

/* ---- the end of a scrape ---- */

static void cycle_note_growth(struct scraper *s, struct scrape_task *t)
{
	const char *before = growth_warning(&s->growth), *now;

	t->growth.answered_ns = t->answered_ns;
	growth_note(&s->growth, &t->growth);
	now = growth_warning(&s->growth);
	if (now && now != before)
		log_warn("scrape", "counters are not of the kind that they are taken for",
			LOG_STR("job", s->target->part->job->job_name), LOG_STR("target", s->target->shown_url),
			LOG_S("warning", now));
}

static void cycle_finish_once(struct scraper *s, struct scrape_task *t)
{
	const struct scraper_outcome o = {
		.rc = t->rc,
		.err = &t->err,
		.end_ns = t->end_ns,
		.samples = t->samples,
		.bytes = t->bytes,
		.profile = buf_str(&t->profile),
	};

	cycle_end_once(s, &o, t->rc ? t->result : "ok");
	task_free(t);
}

/* ---- optional profiles ---- */

/*
 * Whether a failed scrape says that the process does not serve an optional profile. Whatever fails
 * before its first answer does: a target that is down is shown by its other profiles.
 */
static bool cycle_is_absent(const struct scraper *s, const struct scrape_task *t)
{
	return t->rc && s->target->profile->optional &&
		(s->health == TARGET_ABSENT || t->status == NOT_FOUND);
}

/* It is asked again in an hour: after a restart the process may be one that serves it. */
static void cycle_be_absent(struct scraper *s, const struct scrape_task *t)
{
	int64_t interval = s->target->interval_ns;

	metric_add(&scrapes_total, "absent", 1);
	if (s->health != TARGET_ABSENT) {
		report_gone(s->lane->report, s->target, clock_now_ns());
		growth_lose(&s->growth);
		cycle_set_error(s, NULL);
		cycle_set_health(s, TARGET_ABSENT);
	}
	if ((t->status != NOT_FOUND && strcmp(t->result, "not_a_profile") != 0) ||
		interval >= ABSENT_NS)
		return;
	s->next_ns += ABSENT_NS / interval * interval;
	cycle_timer_set(s);
}

/* Ends the task and shows its outcome. */
static void cycle_finish(struct scrape_task *t)
{
	struct scraper *s = t->scraper;
	int64_t duration = (t->answered_ns ? t->answered_ns : clock_monotonic_ns()) - t->began_ns;

	assert(loop_is_current(s->lane->loop));
	assert(s->task == t && (s->state == SCRAPER_FETCHING || s->state == SCRAPER_STORING));
	s->task = NULL;
	s->state = SCRAPER_IDLE;
	if (s->stopped) {
		task_free(t);
		scraper_free(s);
		return;
	}
	metric_observe(&fetch_seconds, NULL, (double)duration / NS_PER_S);
	if (t->rc)
		refusal_add_way(buf_str(&t->led_to), &t->err);
	if (s->ended) {
		cycle_finish_once(s, t);
		return;
	}
	if (t->rc && s->begun_at_once)
		cycle_schedule(s); /* a process that has just started may not listen yet */
	if (cycle_is_absent(s, t)) {
		cycle_be_absent(s, t);
	} else if (t->rc == ERR_CANCELED) { /* it says nothing of the target */
		metric_add(&scrapes_total, "moved", 1);
		cycle_set_error(s, t->err.msg);
	} else if (t->rc) {
		cycle_failed(s, t->start_ns, duration, t->result, t->samples, t->bytes, &t->err);
	} else {
		metric_add(&scrapes_total, "ok", 1);
		metric_add(&samples_total, NULL, t->samples);
		metric_observe(
			&store_seconds, NULL, (double)(clock_monotonic_ns() - t->answered_ns) / NS_PER_S);
		s->scrapes++;
		s->last_scrape_ns = t->start_ns;
		s->last_duration_ns = duration;
		s->last_samples = t->samples;
		s->last_bytes = t->bytes;
		s->stacks_cut = t->stacks_cut;
		cycle_note_growth(s, t);
		cycle_set_error(s, NULL);
		cycle_set_health(s, TARGET_UP);
		cycle_report(s, t->samples, t->bytes);
	}
	task_free(t);
}

/* ---- profilers elsewhere ---- */

/* To the next turn that is not over. Gives the number of turns left out. */
static uint64_t cycle_skip_turns(struct scraper *s, int64_t now)
{
	int64_t interval = s->target->interval_ns;
	uint64_t n = s->next_ns <= now ? (uint64_t)((now - s->next_ns) / interval) + 1 : 0;

	s->next_ns += (int64_t)n * interval;
	return n;
}

static void cycle_log_mode(const struct scraper *s, enum sharing_mode before)
{
	if (s->sharing.mode != before && !s->ended)
		log_info("scrape", "profilers that share a process",
			LOG_STR("job", s->target->part->job->job_name), LOG_STR("target", s->target->shown_url),
			LOG_S("mode", sharing_mode_name(s->sharing.mode)));
}

/* When to ask next, after an answer for which there was no need to ask again. */
static void cycle_go_on(struct scraper *s, const struct scrape_task *t, bool ok)
{
	enum sharing_mode before = s->sharing.mode;
	int64_t at;

	if (!s->target->exclusive.len || s->ended)
		return;
	if (!ok) {
		sharing_gave_up(&s->sharing);
		return;
	}
	at = sharing_ended(&s->sharing, s->target->interval_ns, t->began_ns, t->answered_ns);
	cycle_log_mode(s, before);
	if (!at)
		return;
	s->next_ns = at > 0 ? at : s->next_ns - at;
	cycle_timer_set(s);
}

/* Whether it will ask again. Frees the task then. */
static bool cycle_ask_again(struct scraper *s, struct scrape_task *t)
{
	enum sharing_mode before = s->sharing.mode;
	int64_t wait = sharing_refused(&s->sharing, s->target->interval_ns, t->answered_ns);

	metric_add(&refused_total, NULL, 1);
	cycle_log_mode(s, before);
	if (sharing_is_starved(&s->sharing, s->target->interval_ns, t->answered_ns)) {
		sharing_gave_up(&s->sharing);
		return false;
	}
	s->state = SCRAPER_REFUSED;
	s->task = NULL;
	task_free(t);
	timer_after(&s->timer, wait);
	return true;
}

/* ---- the answer ---- */

static void cycle_on_answer(void *ctx, const struct http_response *res)
{
	struct scrape_task *t = ctx;
	struct scraper *s = t->scraper;
	enum err_code rc;
	bool taken;

	assert(s->task == t && s->state == SCRAPER_FETCHING);
	s->request = NULL;
	t->answered_ns = clock_monotonic_ns();
	t->end_ns = clock_now_ns();
	t->status = res->rc ? 0 : res->status;
	refusal_print_way(&t->led_to, res);
	exclusive_leave(s->lane->exclusive, &s->user);
	taken = !res->rc && s->target->exclusive.len && refusal_profiler_taken(res->status, res->body);
	if (taken && cycle_ask_again(s, t))
		return;
	if (!taken)
		cycle_go_on(s, t, !res->rc && res->status == 200);
	if (res->rc) {
		t->err = res->err;
		if (res->rc == ERR_LIMIT && str_is(str_of(res->err.msg), "body size limit exceeded"))
			err_set(&t->err, ERR_LIMIT,
				"body size limit exceeded: more than %zu bytes (body_size_limit of the job)",
				(size_t)s->target->part->job->body_size_limit);
		refusal_explain_failure(res, t->target->url, &t->err);
		task_failed(t, res->rc, task_result_of(res->rc == ERR_INVALID ? ERR_UNAVAILABLE : res->rc));
	} else if (taken) {
		rc = err_set(&t->err, ERR_UNAVAILABLE,
			"another profiler has had this process for %d turns: \"" STR_FMT
			"\". A process has one CPU profiler: reduce the seconds of the others, or stop one",
			SHARING_STARVED_TURNS, STR_ARG(str_trim(res->body)));
		task_failed(t, rc, "endpoint_taken");
	} else if (res->status != 200) {
		rc = refusal_status(
			res, t->target->url, t->target->part->job->http.follow_redirects, &t->err);
		task_failed(t, rc, "status");
	} else {
		t->bytes = res->body.len;
		t->growth.connected_ns = res->connected_ns;
		metric_add(&bytes_total, NULL, (double)res->body.len);
		s->state = SCRAPER_STORING;
		if (!(rc = task_store(t, res)))
			return; /* the task is a worker's now */
		task_failed(t, rc, "overload");
	}
	cycle_finish(t);
}

/* ---- the turn ---- */

static enum err_code cycle_send_request(struct scraper *s, struct scrape_task *t)
{
	struct buf seconds = { 0 }, url = { 0 };
	int64_t less = t->target->seconds - t->seconds;
	/* clang-format off */
	struct label headers[] = {
		{ STR("Accept-Encoding"), STR("gzip") },
		{ STR("X-Prometheus-Scrape-Timeout-Seconds"), STR("") },
	};
	/* clang-format on */
	struct http_request_options o = {
		.method = "GET",
		.url = t->target->url,
		.unix_path = target_unix_path(t->target),
		.config = &t->target->part->job->http,
		.headers = { headers, 2 },
		.timeout_ns = t->target->timeout_ns - less * NS_PER_S,
		.body_size_max = t->target->part->job->body_size_limit,
	};
	enum err_code rc;

	if (less) {
		buf_add_i64(&seconds, t->seconds);
		url_print_with(&url, t->target->url, STR("seconds"), buf_str(&seconds));
		buf_clear(&seconds);
		o.url = buf_str(&url);
	}
	buf_add_double(&seconds, (double)o.timeout_ns / NS_PER_S);
	headers[1].value = buf_str(&seconds);
	rc = buf_failed(&seconds) || buf_failed(&url) ?
		err_nomem(&t->err, "scrape") :
		http_client_send(s->lane->client, &o, cycle_on_answer, t, &s->request, &t->err);
	buf_release(&seconds);
	buf_release(&url);
	return rc;
}

static void cycle_fetch(struct scraper *s)
{
	struct scrape_task *t = calloc(1, sizeof(*t));
	struct err err;
	enum err_code rc;

	assert(s->state == SCRAPER_IDLE || s->state == SCRAPER_WAITING);
	assert(!s->stopped && !s->task);
	if (!t) {
		exclusive_leave(s->lane->exclusive, &s->user);
		s->state = SCRAPER_IDLE;
		err_nomem(&err, "scrape");
		cycle_fail(s, "overload", &err);
		return;
	}
	t->scraper = s;
	t->env = s->env;
	t->lane = s->lane;
	t->config = config_ref(s->target->part->config);
	t->ended = cycle_finish;
	t->wants_profile = s->wants_profile;
	t->target = target_ref(s->target);
	t->seconds = sharing_seconds(&s->sharing, s->target->interval_ns, s->target->seconds);
	t->start_ns = clock_now_ns();
	t->began_ns = clock_monotonic_ns();
	metric_observe(&delay_seconds, NULL, (double)(t->began_ns - s->turn_ns) / NS_PER_S);
	s->task = t;
	s->state = SCRAPER_FETCHING;
	if ((rc = cycle_send_request(s, t))) {
		exclusive_leave(s->lane->exclusive, &s->user);
		task_failed(t, rc, task_result_of(rc == ERR_INVALID ? ERR_UNAVAILABLE : rc));
		cycle_finish(t);
	}
}

void cycle_on_endpoint(void *ctx)
{
	cycle_fetch(ctx);
}

/* Logs once that two jobs want one endpoint. */
static void cycle_log_sharing(struct scraper *s)
{
	const struct exclusive_user *holder = exclusive_holder(
		s->lane->exclusive, s->target->exclusive);
	const struct scraper *other = holder->ctx;

	if (s->queue_logged || other == s || other->ended || s->ended)
		return;
	s->queue_logged = true;
	log_warn("scrape", "two jobs take CPU profiles of one target: they take turns",
		LOG_STR("job", s->target->part->job->job_name), LOG_STR("target", s->target->shown_url),
		LOG_STR("other_job", other->target->part->job->job_name));
}

void cycle_begin(struct scraper *s)
{
	struct err err;

	assert(s->state == SCRAPER_IDLE && !s->task);
	if (s->target->part->refused.len) {
		err_set(&err, ERR_LIMIT, STR_FMT, STR_ARG(s->target->part->refused));
		cycle_fail(s, "limit", &err);
		return;
	}
	if (!s->target->exclusive.len) {
		cycle_fetch(s);
		return;
	}
	switch (exclusive_enter(s->lane->exclusive, s->target->exclusive, &s->user)) {
	case EXCLUSIVE_HOLDS:
		cycle_fetch(s);
		break;
	case EXCLUSIVE_WAITS:
		s->state = SCRAPER_WAITING;
		cycle_log_sharing(s);
		break;
	case EXCLUSIVE_NOMEM:
		err_nomem(&err, "scrape");
		cycle_fail(s, "overload", &err);
		break;
	}
}

/* It waited a whole interval for another job. It goes on waiting, but this turn has failed. */
static void cycle_fail_waiting(struct scraper *s)
{
	const struct exclusive_user *holder = exclusive_holder(s->lane->exclusive, s->user.key);
	const struct scraper *other = holder->ctx;
	struct err err;

	if (other->ended) { /* a profile now: the target itself is fine */
		s->skipped++;
		metric_add(&skipped_total, NULL, 1);
		return;
	}
	err_set(&err, ERR_UNAVAILABLE,
		"another CPU profile of this target is in progress for job %s: a process has one CPU "
		"profiler",
		QUOTED(other->target->part->job->job_name));
	cycle_fail(s, "endpoint_taken", &err);
}

/* Asks again in the same turn. */
static void cycle_on_asking_again(struct scraper *s)
{
	s->state = SCRAPER_IDLE;
	if (!s->ended) {
		cycle_skip_turns(s, clock_monotonic_ns()); /* sharing.h has its own */
		cycle_timer_set(s);
	}
	cycle_begin(s);
}

void cycle_on_timer(evutil_socket_t fd, short what, void *ctx)
{
	struct scraper *s = ctx;
	int64_t turn = s->next_ns;
	uint64_t missed;

	if (s->state == SCRAPER_REFUSED) {
		cycle_on_asking_again(s);
		return;
	}
	if (s->first) {
		cycle_second_turn(s);
		s->turn_ns = turn;
		cycle_begin(s);
		return;
	}
	s->begun_at_once = false;
	s->next_ns += s->target->interval_ns;
	missed = cycle_skip_turns(s, clock_monotonic_ns()); /* while this process was stopped */
	cycle_timer_set(s);
	if (s->state == SCRAPER_WAITING) {
		cycle_fail_waiting(s);
	} else if (s->state != SCRAPER_IDLE) {
		missed += s->sharing.mode == SHARING_ALONE;
	} else {
		s->turn_ns = turn;
		cycle_begin(s);
	}
	s->skipped += missed;
	if (missed)
		metric_add(&skipped_total, NULL, (double)missed);
}
