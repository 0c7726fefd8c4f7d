/*
 * Who is asked next. A job asks the servers in their order; it waits for one that is busy, and
 * passes one that rests, so that a failing server holds up none but those that have asked all
 * others. Nothing here recurses: the end of a download only sets the timer, which starts others.
 */
#include <assert.h>
#include <event2/event.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "scrape/debuginfod/internal.h"

METRIC_GAUGE(servers_failing, "epimetheus_debuginfod_servers_failing",
	"Debuginfod servers that rest because they failed.", NULL);

#define STORE_REST_NS (30 * NS_PER_S)
#define NOT_ELF_MISSING_NS (7 * NS_PER_MIN)
#define BROKEN_MAX 3
#define BROKEN_MISSING_NS NS_PER_HOUR
#define LOOKED_MISSING_NS NS_PER_HOUR

static struct debuginfo_store *debuginfod_store_of(const struct debuginfod *d)
{
	return debuginfo_store(d->o.debuginfo);
}

/* ---- servers ---- */

static void debuginfod_note_error(
	struct debuginfod *d, struct debuginfod_peer *p, const struct err *err)
{
	mutex_lock(&d->lock);
	p->error = *err;
	p->error_s = clock_now_ns() / NS_PER_S;
	mutex_unlock(&d->lock);
}

static void debuginfod_count_failing(struct debuginfod *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->servers.n; i++)
		n += d->servers.v[i].failing;
	metric_set(&servers_failing, NULL, (double)n);
}

void server_fails(
	struct debuginfod *d, struct debuginfod_peer *p, const struct err *why, int64_t retry_after_ns)
{
	int64_t rest_ns = d->o.rest_min_ns;

	for (unsigned i = 0; i < p->failures && rest_ns < d->o.rest_max_ns; i++)
		rest_ns *= 2;
	if (rest_ns > d->o.rest_max_ns)
		rest_ns = d->o.rest_max_ns;
	if (retry_after_ns)
		rest_ns = retry_after_ns;
	p->until_ns = clock_monotonic_ns() + rest_ns;
	if (!p->failures++)
		log_warn("debuginfod", "server fails, it is asked again later", LOG_S("server", p->shown),
			LOG_D("after", rest_ns), LOG_E(why));
	debuginfod_note_error(d, p, why);
	mutex_lock(&d->lock);
	p->failing = true;
	p->again_s = (clock_now_ns() + rest_ns) / NS_PER_S;
	mutex_unlock(&d->lock);
	debuginfod_count_failing(d);
}

void server_works(struct debuginfod *d, struct debuginfod_peer *p)
{
	if (!p->failures)
		return;
	log_info("debuginfod", "server works again", LOG_S("server", p->shown),
		LOG_I("failures", p->failures));
	p->failures = 0;
	mutex_lock(&d->lock);
	p->failing = false;
	p->again_s = 0;
	mutex_unlock(&d->lock);
	debuginfod_count_failing(d);
}

/* ---- jobs ---- */

static void debuginfod_job_free(struct debuginfod *d, struct debuginfod_job *j)
{
	assert(!j->server);
	atomic_fetch_sub(&d->jobs_n, 1);
	free(j);
}

static void job_over(struct debuginfod *d, struct debuginfod_job *j)
{
	TAILQ_REMOVE(&d->jobs, j, link);
	debuginfod_job_free(d, j);
}

/* All that may be asked were. */
static void job_in_vain(struct debuginfod *d, struct debuginfod_job *j)
{
	/* A file that a directory has is not extracted over and over. */
	int64_t missing_ns = j->asked ? j->missing_ns : j->looked ? LOOKED_MISSING_NS : 0;

	if (missing_ns)
		debuginfo_set_missing(
			debuginfod_store_of(d), &j->want.id, (clock_now_ns() + missing_ns) / NS_PER_S);
	job_over(d, j);
}

/* Asks from the beginning. */
static void job_reset(struct debuginfod *d, struct debuginfod_job *j)
{
	struct str id = debuginfo_id_text(&j->want.id), path = str_of(j->want.path);

	j->missing_ns = DEBUGINFOD_MISSING_NS;
	j->asked = false;
	j->broken = 0;
	memset(j->ask, ASK_NO_MORE, sizeof(j->ask));
	for (size_t i = 0; i < d->servers.n && j->want.id.kind == DEBUGINFO_GNU; i++)
		if (debuginfod_allows(d->servers.v[i].config, path, id))
			j->ask[i] = ASK_DEBUGINFO;
}

static size_t servers_left(const struct debuginfod *d, const struct debuginfod_job *j)
{
	size_t n = 0;

	for (size_t i = 0; i < d->servers.n; i++)
		n += j->ask[i] != ASK_NO_MORE;
	return n;
}

static void debuginfod_start(
	struct debuginfod *d, struct debuginfod_job *j, struct debuginfod_peer *p)
{
	mutex_lock(&d->lock);
	p->requests++;
	mutex_unlock(&d->lock);
	p->job = j;
	j->server = p;
	j->asked = true;
	j->any = servers_left(d, j) == 1;
	d->downloads_n++;
	download_start(j);
}

/* The next server. *busy: it has another download. NULL: none before *next_ns, or at all. */
static struct debuginfod_peer *debuginfod_choose(
	struct debuginfod *d, struct debuginfod_job *j, enum ask what, int64_t *next_ns, bool *busy)
{
	int64_t now_ns = clock_monotonic_ns();
	struct debuginfod_peer *s;

	for (size_t i = 0; i < d->servers.n; i++) {
		s = &d->servers.v[i];
		if (j->ask[i] != what)
			continue;
		if (s->until_ns > now_ns) {
			*next_ns = s->until_ns < *next_ns ? s->until_ns : *next_ns;
			continue;
		}
		*busy = s->job != NULL;
		return s;
	}
	return NULL;
}

static bool debuginfod_wants(
	const struct debuginfod *d, const struct debuginfod_job *j, enum debuginfo_kind kind)
{
	const struct debuginfo_offer offer = { .kind = kind, .origin = DEBUGINFO_DEBUGINFOD };
	const char *reason;

	return debuginfo_wants(debuginfod_store_of(d), &j->want.id, &offer, &reason);
}

static void job_step(struct debuginfod *d, struct debuginfod_job *j, int64_t *next_ns)
{
	bool busy = false;
	struct debuginfod_peer *s;

	if (!debuginfod_wants(d, j, DEBUGINFO_NO_TEXT)) {
		job_over(d, j);
		return;
	}
	if (!debuginfod_wants(d, j, DEBUGINFO_STRIPPED)) /* a directory had one */
		for (size_t i = 0; i < d->servers.n; i++)
			if (j->ask[i] == ASK_EXECUTABLE)
				j->ask[i] = ASK_NO_MORE;
	if (!servers_left(d, j)) {
		job_in_vain(d, j);
		return;
	}
	s = debuginfod_choose(d, j, ASK_DEBUGINFO, next_ns, &busy);
	if (!s)
		s = debuginfod_choose(d, j, ASK_EXECUTABLE, next_ns, &busy);
	if (s && !busy)
		debuginfod_start(d, j, s);
}

void jobs_start(struct debuginfod *d)
{
	int64_t next_ns = INT64_MAX, now_ns = clock_monotonic_ns();
	struct debuginfod_job *j, *next;

	for (j = TAILQ_FIRST(&d->jobs); j; j = next) {
		next = TAILQ_NEXT(j, link);
		if (d->downloads_n == DEBUGINFOD_DOWNLOADS_MAX)
			break;
		if (d->store_until_ns > now_ns) {
			next_ns = d->store_until_ns;
			break;
		}
		if (!j->server)
			job_step(d, j, &next_ns);
	}
	/* after a kick that came meanwhile at once */
	if (next_ns != INT64_MAX && !event_pending(d->timer, EV_TIMEOUT, NULL))
		timer_after(d->timer, next_ns - now_ns);
}

void jobs_kick(struct debuginfod *d)
{
	timer_after(d->timer, 0);
}

void jobs_take(void *ctx)
{
	struct debuginfod_job *j = ctx, *other;
	struct debuginfod *f = j->fetcher;

	TAILQ_FOREACH (other, &f->jobs, link)
		if (debuginfo_id_eq(&other->want.id, &j->want.id)) {
			debuginfod_job_free(f, j);
			return;
		}
	job_reset(f, j);
	TAILQ_INSERT_TAIL(&f->jobs, j, link);
	jobs_kick(f);
}

/* ---- the end of a download ---- */

static void debuginfod_store_failed(struct debuginfod *d, const struct err *why)
{
	int64_t rest_ns = STORE_REST_NS < d->o.rest_max_ns ? STORE_REST_NS : d->o.rest_max_ns;

	if (!d->store_fails)
		log_warn("debuginfod", "debug data cannot be stored", LOG_D("after", rest_ns), LOG_E(why));
	d->store_fails = true;
	d->store_until_ns = clock_monotonic_ns() + rest_ns;
}

static void debuginfod_got(
	struct debuginfod *d, struct debuginfod_job *j, struct debuginfod_peer *p, uint64_t bytes)
{
	log_info("debuginfod", "debug data fetched",
		LOG_STR("build_id", debuginfo_id_text(&j->want.id)), LOG_S("path", j->want.path),
		LOG_S("server", p->shown), LOG_I("bytes", bytes));
	mutex_lock(&d->lock);
	p->files++;
	mutex_unlock(&d->lock);
	d->store_fails = false;
	job_over(d, j);
}

/* The file itself is the reason: this server is not asked for it again. */
static void debuginfod_give_up(struct debuginfod *d, struct debuginfod_job *j,
	struct debuginfod_peer *p, const struct err *why, int64_t missing_ns)
{
	struct err err = *why;

	j->ask[p - d->servers.v] = ASK_NO_MORE;
	if (missing_ns < j->missing_ns)
		j->missing_ns = missing_ns;
	err_wrap(&err, why->code, "build id " STR_FMT, STR_ARG(debuginfo_id_text(&j->want.id)));
	log_warn("debuginfod", "debug data not taken", LOG_S("path", j->want.path),
		LOG_S("server", p->shown), LOG_E(&err));
	debuginfod_note_error(d, p, &err);
}

void download_ended(struct debuginfod_job *j, const struct outcome *o)
{
	struct debuginfod *f = j->fetcher;
	struct debuginfod_peer *s = j->server;
	size_t i = (size_t)(s - f->servers.v);

	assert(s->job == j && f->downloads_n > 0);
	f->downloads_n--;
	s->job = NULL;
	j->server = NULL;
	mutex_lock(&f->lock);
	s->bytes += o->bytes;
	mutex_unlock(&f->lock);
	jobs_kick(f);
	if (o->result == SERVER_FAILED || o->result == BROKE_OFF)
		server_fails(f, s, &o->err, o->retry_after_ns);
	else
		server_works(f, s);
	switch (o->result) {
	case GOT:
		debuginfod_got(f, j, s, o->bytes);
		break;
	case NOT_THERE:
		j->ask[i]++;
		break;
	case SERVER_FAILED:
		break;
	case BROKE_OFF:
		if (++j->broken == BROKEN_MAX)
			debuginfod_give_up(f, j, s, &o->err, BROKEN_MISSING_NS);
		break;
	case TOO_LARGE:
		debuginfod_give_up(f, j, s, &o->err, DEBUGINFOD_MISSING_NS);
		break;
	case NOT_ELF:
		debuginfod_give_up(f, j, s, &o->err, NOT_ELF_MISSING_NS);
		break;
	case NOT_WANTED:
		job_over(f, j);
		break;
	case STORE_FAILED:
		debuginfod_store_failed(f, &o->err);
		break;
	}
}

/* ---- reload and end ---- */

static void debuginfod_end_download(struct debuginfod *d, struct debuginfod_job *j)
{
	if (!j->server)
		return;
	download_cancel(j);
	j->server->job = NULL;
	j->server = NULL;
	d->downloads_n--;
}

static void debuginfod_jobs_keep_state(struct servers *fresh, const struct servers *old)
{
	for (size_t i = 0; i < fresh->n; i++)
		for (size_t k = 0; k < old->n; k++) {
			const struct debuginfod_peer *from = &old->v[k];
			struct debuginfod_peer *to = &fresh->v[i];

			if (!str_eq(to->config->url, from->config->url))
				continue;
			to->requests = from->requests;
			to->files = from->files;
			to->bytes = from->bytes;
			to->error = from->error;
			to->error_s = from->error_s;
		}
}

void jobs_restart(struct debuginfod *d, struct servers *fresh)
{
	struct servers old;
	struct debuginfod_job *j;

	TAILQ_FOREACH (j, &d->jobs, link)
		debuginfod_end_download(d, j);
	sources_stop(d);
	mutex_lock(&d->lock);
	debuginfod_jobs_keep_state(fresh, &d->servers);
	old = d->servers;
	d->servers = *fresh;
	*fresh = old; /* the caller frees it */
	mutex_unlock(&d->lock);
	TAILQ_FOREACH (j, &d->jobs, link)
		job_reset(d, j);
	debuginfod_count_failing(d);
	sources_restart(d);
	jobs_kick(d);
}

void jobs_end(struct debuginfod *d)
{
	struct debuginfod_job *j;

	while ((j = TAILQ_FIRST(&d->jobs))) {
		debuginfod_end_download(d, j);
		job_over(d, j);
	}
	sources_end(d);
}
