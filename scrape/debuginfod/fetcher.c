#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/hidden.h"
#include "base/log.h"
#include "base/map.h"
#include "scrape/debuginfod/internal.h"

#define LOOK_NS (500 * NS_PER_MS) /* how long the thread waits before it looks whether to end */

/* ---- the thread that takes what is wanted ---- */

static struct config *config_now(struct debuginfod *d)
{
	struct config *c;

	mutex_lock(&d->lock);
	c = d->config ? config_ref(d->config) : NULL;
	mutex_unlock(&d->lock);
	return c;
}

/* For the loop. Where the line is full it is wanted again later. */
static void debuginfod_post(struct debuginfod *d, const struct debuginfo_want *want, bool looked)
{
	struct debuginfod_job *j;

	if (atomic_load(&d->jobs_n) >= DEBUGINFOD_WAITING_MAX || !(j = calloc(1, sizeof(*j))))
		return;
	atomic_fetch_add(&d->jobs_n, 1);
	j->fetcher = d;
	j->want = *want;
	j->looked = looked;
	loop_post(d->loop, &j->work, jobs_take, j);
}

static void debuginfod_take(struct debuginfod *d, const struct debuginfo_want *want)
{
	struct config *c = config_now(d);

	if (c && debuginfo_extracts(d->o.debuginfo) && !debuginfo_path_is_no_file(str_of(want->path)))
		debuginfod_post(d, want, directories_try(d, &c->debuginfod, want));
	config_unref(c);
}

static bool debuginfod_is_used(struct debuginfod *d)
{
	bool used;

	mutex_lock(&d->lock);
	used = d->config && d->config->debuginfod.n + d->config->debuginfod.directories_n > 0;
	mutex_unlock(&d->lock);
	return used;
}

static void fetcher_take_all(void *ctx)
{
	struct debuginfod *f = ctx;
	int64_t now_ns = clock_monotonic_ns(), walk_ns = now_ns;
	struct debuginfo_want want;

	while (!atomic_load(&f->closing)) {
		if (f->o.walk && (f->o.ask_first || debuginfod_is_used(f)) && now_ns >= walk_ns) {
			f->o.walk(f->o.ctx);
			walk_ns = clock_monotonic_ns() + f->o.walk_ns;
		}
		now_ns = clock_monotonic_ns();
		if (debuginfo_next_wanted(f->o.debuginfo, LOOK_NS, &want)) {
			if (!f->o.ask_first || !f->o.ask_first(f->o.ctx, &want.id))
				debuginfod_take(f, &want);
		} else if (clock_monotonic_ns() < now_ns + LOOK_NS) {
			return; /* debuginfo_stop */
		}
		now_ns = clock_monotonic_ns();
	}
}

/* ---- opening ---- */

struct fetcher_opening {
	struct debuginfod *f;
	enum err_code rc;
	struct err *err;
};

static void fetcher_on_timer(evutil_socket_t fd, short what, void *ctx)
{
	jobs_start(ctx);
}

static void fetcher_open_parts(void *ctx)
{
	struct fetcher_opening *o = ctx;
	const struct http_client_options client = { .base = loop_base(o->f->loop),
		.connections_max = 2 * DEBUGINFOD_SERVERS_MAX };

	o->f->timer = evtimer_new(loop_base(o->f->loop), fetcher_on_timer, o->f);
	o->rc = o->f->timer ? http_client_open(&client, &o->f->client, o->err) :
						  err_nomem(o->err, "debuginfod");
}

enum err_code debuginfod_open(
	const struct debuginfod_options *o, struct debuginfod **out, struct err *err)
{
	struct debuginfod *f = calloc(1, sizeof(*f));
	struct fetcher_opening opening = { .f = f, .err = err };
	enum err_code rc;

	if (!f)
		return err_nomem(err, "debuginfod");
	f->o = *o;
	f->o.rest_min_ns = o->rest_min_ns ? o->rest_min_ns : DEBUGINFOD_REST_MIN_NS;
	f->o.rest_max_ns = o->rest_max_ns ? o->rest_max_ns : DEBUGINFOD_REST_MAX_NS;
	f->o.walk_ns = o->walk_ns ? o->walk_ns : DEBUGINFOD_WALK_NS;
	mutex_init(&f->lock);
	TAILQ_INIT(&f->jobs);
	TAILQ_INIT(&f->sources);
	f->source_seed = hash_seed();
	if (!(rc = loop_open("debuginfod", &f->loop, err))) {
		loop_call(f->loop, fetcher_open_parts, &opening);
		rc = opening.rc;
	}
	if (!rc)
		rc = thread_start(&f->thread, "debuginfod-dir", fetcher_take_all, f, err);
	if (rc) {
		debuginfod_close(f);
		return rc;
	}
	*out = f;
	return ERR_OK;
}

static void servers_release(struct servers *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i].shown);
	free(s->v);
	buf_release(&s->encoded);
	config_unref(s->config);
	*s = (struct servers){ 0 };
}

static void fetcher_end(void *ctx)
{
	struct debuginfod *f = ctx;

	jobs_end(f);
	http_client_close(f->client);
	if (f->timer)
		event_free(f->timer);
}

void debuginfod_close(struct debuginfod *d)
{
	if (!d)
		return;
	atomic_store(&d->closing, true);
	thread_join(&d->thread); /* posts nothing any more */
	if (d->loop)
		loop_call(d->loop, fetcher_end, d);
	loop_close(d->loop);
	servers_release(&d->servers);
	config_unref(d->config);
	mutex_destroy(&d->lock);
	free(d);
}

/* ---- reload ---- */

static enum err_code servers_make(struct servers *out, struct config *c, struct err *err)
{
	struct servers s = { .v = calloc(c->debuginfod.n + 1, sizeof(*s.v)) };
	struct buf shown = { 0 };

	debuginfod_config_encode(&s.encoded, &c->debuginfod);
	if (!s.v || buf_failed(&s.encoded))
		goto fail;
	for (; s.n < c->debuginfod.n; s.n++) {
		s.v[s.n].config = &c->debuginfod.v[s.n];
		hidden_print_url(&shown, c->debuginfod.v[s.n].url);
		buf_add_char(&shown, '\0');
		if (buf_failed(&shown) || !(s.v[s.n].shown = strdup(shown.ptr)))
			goto fail;
		buf_clear(&shown);
	}
	buf_release(&shown);
	s.config = config_ref(c);
	*out = s;
	return ERR_OK;
fail:
	buf_release(&shown);
	servers_release(&s);
	return err_nomem(err, "debuginfod");
}

/* A directory may appear later, so this is no reason to refuse the configuration. */
static void fetcher_warn_of_directories(const struct debuginfod_config *c)
{
	int fd;

	for (size_t i = 0; i < c->directories_n; i++) {
		fd = open(c->directories[i].ptr, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			log_warn("debuginfod", "debug directory cannot be read",
				LOG_STR("directory", c->directories[i]), LOG_S("reason", strerror(errno)));
		else
			close(fd);
	}
}

static bool fetcher_same_directories(
	const struct debuginfod_config *a, const struct debuginfod_config *b)
{
	size_t i;

	if (a->directories_n != b->directories_n)
		return false;
	for (i = 0; i < a->directories_n && str_eq(a->directories[i], b->directories[i]); i++)
		;
	return i == a->directories_n;
}

struct restart {
	struct debuginfod *f;
	struct servers *fresh;
};

static void fetcher_restart(void *ctx)
{
	struct restart *r = ctx;

	jobs_restart(r->f, r->fresh);
}

enum err_code debuginfod_apply(struct debuginfod *d, struct config *c, struct err *err)
{
	struct servers fresh;
	struct restart r = { d, &fresh };
	struct config *old;
	bool changed;
	enum err_code rc;

	if ((rc = servers_make(&fresh, c, err)))
		return rc;
	changed = !d->servers.config || !str_eq(buf_str(&fresh.encoded), buf_str(&d->servers.encoded));
	if (changed)
		loop_call(d->loop, fetcher_restart, &r);
	servers_release(&fresh);
	fetcher_warn_of_directories(&c->debuginfod);
	mutex_lock(&d->lock);
	old = d->config;
	d->config = config_ref(c);
	mutex_unlock(&d->lock);
	/* At the start, too: the configuration may be another than before. */
	if (changed || !old || !fetcher_same_directories(&old->debuginfod, &c->debuginfod))
		debuginfo_forget_missing(debuginfo_store(d->o.debuginfo));
	config_unref(old);
	return ERR_OK;
}

/* ---- the list ---- */

enum err_code debuginfod_list(struct debuginfod *d, struct arena *a,
	struct debuginfod_info **debuginfod_info, size_t *n, struct err *err)
{
	enum err_code rc = ERR_OK;

	mutex_lock(&d->lock);
	*n = d->servers.n;
	if (!(*debuginfod_info = arena_array(a, struct debuginfod_info, *n)))
		rc = arena_fail(a, "debuginfod", err);
	for (size_t i = 0; !rc && i < *n; i++) {
		const struct debuginfod_peer *s = &d->servers.v[i];
		struct debuginfod_info info = { .url = str_dup(a, str_of(s->shown)),
			.requests = s->requests,
			.files = s->files,
			.bytes = s->bytes,
			.failing = s->failing,
			.error = str_dup(a, str_of(s->error.msg)),
			.error_s = s->error_s,
			.again_s = s->again_s };

		(*debuginfod_info)[i] = info;
		if (!info.url.ptr || !info.error.ptr)
			rc = arena_fail(a, "debuginfod", err);
	}
	mutex_unlock(&d->lock);
	return rc;
}
