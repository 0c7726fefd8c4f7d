/*
 * Source code: one file of a build, asked of the servers that may be asked for source, one after
 * the other, while a request of the API waits.
 *
 *	URL/buildid/abcdef/source/usr/src/a.c
 *
 * A job is on the stack of the thread that waits. It belongs to the loop until it is done: the loop
 * marks it so under its lock, as the last thing that it does with it. What a server says of source
 * counts for debug data too: one that fails rests for both.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/metrics.h"
#include "base/net/percent.h"
#include "base/quote.h"
#include "scrape/debuginfod/internal.h"

METRIC_COUNTER(requests_total, "epimetheus_debuginfod_source_requests_total",
	"Requests for source code to debuginfod servers: got, not_there, too_large, failed.", "result");

#define CANCEL_POLL_NS (100 * NS_PER_MS)
#define PATH_BYTES_MAX 4096u

struct source_job {
	TAILQ_ENTRY(source_job) link;
	struct debuginfod *fetcher;
	struct debuginfo_id id;
	struct str path; /* percent-encoded, begins with a slash */
	struct str binary;
	uint64_t key; /* for `misses` */
	struct arena *arena;
	/* of the loop */
	size_t at; /* the server that is asked, or is asked next */
	struct http_request *request;
	bool allowed, too_large, failed; /* what the servers so far said */
	struct err why; /* of `failed` */
	struct mutex lock;
	struct cond changed;
	/* guarded by lock */
	bool done;
	enum err_code rc;
	struct err err;
	struct debuginfod_text out;
};

/* ---- what is asked for ---- */

/* Servers compare paths as text, and a ".." of a URL may be taken for another URL. */
static enum err_code debuginfod_source_add_segment(
	struct buf *out, struct str segment, struct err *err)
{
	if (segment.len == 0 || str_is(segment, "."))
		return ERR_OK;
	if (!str_is(segment, "..")) {
		buf_add_char(out, '/');
		percent_encode(out, segment, PERCENT_VALUE);
		return ERR_OK;
	}
	if (!out->len)
		return err_set(err, ERR_INVALID, "invalid parameter \"path\": leads out of /");
	while (out->ptr[--out->len] != '/')
		;
	return ERR_OK;
}

static enum err_code debuginfod_source_check_path(struct str path, struct err *err)
{
	if (!path.len || path.ptr[0] != '/' || path.ptr[path.len - 1] == '/')
		return err_set(err, ERR_INVALID,
			"invalid parameter \"path\": the whole path of a file is expected, with a / in front");
	if (path.len > PATH_BYTES_MAX)
		return err_set(
			err, ERR_INVALID, "invalid parameter \"path\": more than %u bytes", PATH_BYTES_MAX);
	for (size_t i = 0; i < path.len; i++)
		if ((unsigned char)path.ptr[i] < ' ' || path.ptr[i] == 0x7f)
			return err_set(err, ERR_INVALID, "invalid parameter \"path\": has control characters");
	return ERR_OK;
}

static enum err_code debuginfod_source_encode_path(
	struct arena *a, struct str path, struct str *out, struct err *err)
{
	struct buf b = { 0 };
	enum err_code rc = debuginfod_source_check_path(path, err);

	for (size_t i = 0, n; !rc && i < path.len; i += n + 1) {
		for (n = 0; i + n < path.len && path.ptr[i + n] != '/'; n++)
			;
		rc = debuginfod_source_add_segment(&b, (struct str){ path.ptr + i, n }, err);
	}
	if (!rc && !b.len && !buf_failed(&b))
		rc = err_set(err, ERR_INVALID, "invalid parameter \"path\": not a file");
	if (!rc && (buf_failed(&b) || !(*out = str_dup(a, buf_str(&b))).ptr))
		rc = arena_fail(a, "source", err);
	buf_release(&b);
	return rc;
}

static uint64_t debuginfod_key_of(const struct debuginfod *d, const struct source_job *j)
{
	uint64_t key = hash_bytes(j->id.text, j->id.len, d->source_seed);

	key = hash_bytes(j->path.ptr, j->path.len, key);
	return hash_bytes(j->binary.len ? j->binary.ptr : "", j->binary.len, key);
}

/* ---- what no server has ---- */

static bool debuginfod_is_missing(const struct debuginfod *d, uint64_t key)
{
	int64_t now_ns = clock_monotonic_ns();

	for (size_t i = 0; i < SOURCE_MISSES_MAX; i++)
		if (d->misses[i].key == key && d->misses[i].until_ns > now_ns)
			return true;
	return false;
}

/* The oldest gives way. */
static void debuginfod_note_missing(struct debuginfod *d, uint64_t key)
{
	d->misses[d->misses_at].key = key;
	d->misses[d->misses_at].until_ns = clock_monotonic_ns() + DEBUGINFOD_SOURCE_MISSING_NS;
	d->misses_at = (d->misses_at + 1) % SOURCE_MISSES_MAX;
}

/* ---- on the loop's thread ---- */

/* Not to be touched any more: its thread goes on. */
static void source_job_finish(struct source_job *j, enum err_code rc)
{
	assert(!j->request && !j->done);
	TAILQ_REMOVE(&j->fetcher->sources, j, link);
	mutex_lock(&j->lock);
	j->rc = rc;
	j->done = true;
	cond_signal(&j->changed);
	mutex_unlock(&j->lock);
}

/* All servers were asked, and none gave it. */
static void source_job_finish_in_vain(struct source_job *j)
{
	if (!j->allowed) {
		source_job_finish(j,
			err_set(&j->err, ERR_NOT_FOUND,
				"no debuginfod server with `source: true` allows this binary: see allow_paths and "
				"allow_build_ids"));
	} else if (j->failed) {
		source_job_finish(j, err_copy(&j->err, &j->why));
	} else if (j->too_large) {
		source_job_finish(j,
			err_set(&j->err, ERR_LIMIT, "the file is larger than max_size or %u bytes",
				DEBUGINFOD_SOURCE_BYTES_MAX));
	} else {
		debuginfod_note_missing(j->fetcher, j->key);
		source_job_finish(j, err_set(&j->err, ERR_NOT_FOUND, "no debuginfod server has the file"));
	}
}

static uint64_t debuginfod_source_size_max(const struct debuginfod_server *d)
{
	return d->max_size < DEBUGINFOD_SOURCE_BYTES_MAX ? d->max_size : DEBUGINFOD_SOURCE_BYTES_MAX;
}

static void source_job_fails(
	struct source_job *j, struct debuginfod_peer *d, const struct err *why, int64_t after_ns)
{
	metric_add(&requests_total, "failed", 1);
	server_fails(j->fetcher, d, why, after_ns);
	j->failed = true;
	j->why = *why;
	j->why.code = ERR_UNAVAILABLE;
	err_wrap(&j->why, ERR_UNAVAILABLE, "debuginfod server %s", d->shown);
}

static void source_job_got(
	struct source_job *j, struct debuginfod_peer *d, const struct http_response *res)
{
	struct debuginfod *f = j->fetcher;

	metric_add(&requests_total, "got", 1);
	server_works(f, d);
	mutex_lock(&f->lock);
	d->files++;
	d->bytes += res->body.len;
	mutex_unlock(&f->lock);
	/* The arena is the waiting thread's, which touches it again once the job is done. */
	j->out.text = str_dup(j->arena, res->body);
	j->out.server = str_dup(j->arena, str_of(d->shown));
	if (!j->out.text.ptr || !j->out.server.ptr)
		source_job_finish(j, arena_fail(j->arena, "source", &j->err));
	else
		source_job_finish(j, ERR_OK);
}

/* Also the answer to X-DEBUGINFOD-MAXSIZE; not a head without end, which is the server's failure.
 */
static bool debuginfod_source_is_too_large(const struct http_response *res)
{
	if (res->rc)
		return res->rc == ERR_LIMIT &&
			str_has_suffix(str_of(res->err.msg), STR("body size limit exceeded"));
	return res->status == 406;
}

static void source_job_ask(struct source_job *j);

static void debuginfod_source_on_done(void *ctx, const struct http_response *res)
{
	struct source_job *j = ctx;
	struct debuginfod_peer *s = &j->fetcher->servers.v[j->at];
	struct err err;

	j->request = NULL;
	if (!res->rc && res->status == 200) {
		source_job_got(j, s, res);
		return;
	}
	if (!res->rc && (res->status == 404 || res->status == 410)) {
		metric_add(&requests_total, "not_there", 1);
		server_works(j->fetcher, s);
	} else if (debuginfod_source_is_too_large(res)) {
		metric_add(&requests_total, "too_large", 1);
		server_works(j->fetcher, s);
		j->too_large = true;
	} else {
		if (res->rc)
			err_copy(&err, &res->err);
		else
			err_set(&err, ERR_UNAVAILABLE, "server returned HTTP status %d", res->status);
		source_job_fails(j, s, &err, download_retry_after(res));
	}
	j->at++;
	source_job_ask(j);
}

static enum err_code source_job_send_request(
	struct source_job *j, struct debuginfod_peer *d, struct err *err)
{
	struct debuginfod *f = j->fetcher;
	const struct debuginfod_server *c = d->config;
	struct buf url = { 0 };
	char text[24];
	struct label header = { STR("X-DEBUGINFOD-MAXSIZE"), { text, 0 } };
	struct http_request_options o = {
		.config = &c->http,
		.headers = { &header, 1 },
		.timeout_ns = c->timeout_ns,
		.body_size_max = debuginfod_source_size_max(c),
	};
	enum err_code rc;

	header.value.len = (size_t)snprintf(
		text, sizeof(text), "%" PRIu64, debuginfod_source_size_max(c));
	buf_printf(&url, STR_FMT "/buildid/" STR_FMT "/source" STR_FMT, STR_ARG(c->url),
		STR_ARG(debuginfo_id_text(&j->id)), STR_ARG(j->path));
	o.url = buf_str(&url);
	rc = buf_failed(&url) ?
		err_nomem(err, "request") :
		http_client_send(f->client, &o, debuginfod_source_on_done, j, &j->request, err);
	buf_release(&url);
	if (rc)
		return rc;
	mutex_lock(&f->lock);
	d->requests++;
	mutex_unlock(&f->lock);
	return ERR_OK;
}

/* Whether an answer will come; else the next server is due. */
static bool source_job_ask_server(struct source_job *j, struct debuginfod_peer *d)
{
	struct err err;

	if (!d->config->source || !debuginfod_allows(d->config, j->binary, debuginfo_id_text(&j->id)))
		return false;
	j->allowed = true;
	if (d->until_ns > clock_monotonic_ns()) {
		j->failed = true;
		err_set(&j->why, ERR_UNAVAILABLE, "debuginfod server %s is asked again later: %s", d->shown,
			d->error.msg);
		return false;
	}
	if (!source_job_send_request(j, d, &err))
		return true;
	source_job_fails(j, d, &err, 0);
	return false;
}

/* The servers from `at` on, until one is asked. No answer comes before this returns. */
static void source_job_ask(struct source_job *j)
{
	struct debuginfod *f = j->fetcher;

	for (; j->at < f->servers.n; j->at++)
		if (source_job_ask_server(j, &f->servers.v[j->at]))
			return;
	source_job_finish_in_vain(j);
}

static void debuginfod_source_begin(void *ctx)
{
	struct source_job *j = ctx;
	struct debuginfod *f = j->fetcher;
	bool on = false;

	for (size_t i = 0; i < f->servers.n; i++)
		on |= f->servers.v[i].config->source;
	TAILQ_INSERT_TAIL(&f->sources, j, link);
	if (!on)
		source_job_finish(j,
			err_set(&j->err, ERR_NOT_FOUND,
				"no debuginfod server is asked for source: none has `source: true`"));
	else if (debuginfod_is_missing(f, j->key))
		source_job_finish(j,
			err_set(&j->err, ERR_NOT_FOUND,
				"no debuginfod server had the file when they were asked, less than %d minutes ago",
				(int)(DEBUGINFOD_SOURCE_MISSING_NS / NS_PER_MIN)));
	else
		source_job_ask(j);
}

/* Takes no lock: the one thread that could look at the job waits in loop_call. */
static void debuginfod_source_cancel(void *ctx)
{
	struct source_job *j = ctx;

	if (j->done)
		return;
	http_request_cancel(j->request);
	j->request = NULL;
	source_job_finish(j, err_set(&j->err, ERR_CANCELED, "canceled"));
}

void sources_stop(struct debuginfod *d)
{
	struct source_job *j;

	TAILQ_FOREACH (j, &d->sources, link) {
		http_request_cancel(j->request);
		j->request = NULL;
	}
}

void sources_restart(struct debuginfod *d)
{
	struct source_job *j, *next;

	memset(d->misses, 0, sizeof(d->misses));
	for (j = TAILQ_FIRST(&d->sources); j; j = next) {
		next = TAILQ_NEXT(j, link);
		j->at = 0;
		j->allowed = j->too_large = j->failed = false;
		source_job_ask(j);
	}
}

void sources_end(struct debuginfod *d)
{
	struct source_job *j;

	sources_stop(d);
	while ((j = TAILQ_FIRST(&d->sources)))
		source_job_finish(j, err_set(&j->err, ERR_UNAVAILABLE, "the server stops"));
}

/* ---- on the caller's thread ---- */

static void source_job_wait_for(struct source_job *j, const atomic_bool *canceled)
{
	bool done = false, stop = false;

	while (!done && !stop) {
		mutex_lock(&j->lock);
		if (!j->done)
			cond_wait_until(&j->changed, &j->lock, clock_monotonic_ns() + CANCEL_POLL_NS);
		done = j->done;
		mutex_unlock(&j->lock);
		stop = !done && atomic_load(canceled);
	}
	if (stop)
		loop_call(j->fetcher->loop, debuginfod_source_cancel, j);
}

static enum err_code source_job_run(
	struct source_job *j, const atomic_bool *canceled, struct debuginfod_text *out, struct err *err)
{
	mutex_init(&j->lock);
	cond_init(&j->changed);
	loop_call(j->fetcher->loop, debuginfod_source_begin, j);
	source_job_wait_for(j, canceled);
	assert(j->done);
	if (j->rc)
		err_copy(err, &j->err);
	else
		*out = j->out;
	mutex_destroy(&j->lock);
	cond_destroy(&j->changed);
	return j->rc;
}

enum err_code debuginfod_source(struct debuginfod *d, const struct debuginfod_source *s,
	const atomic_bool *canceled, struct arena *a, struct debuginfod_text *out, struct err *err)
{
	struct source_job j = { .fetcher = d, .binary = s->binary, .arena = a };
	enum err_code rc;

	if ((rc = debuginfo_id_init(&j.id, DEBUGINFO_GNU, s->build_id, err)))
		return err_wrap(err, rc, "invalid parameter \"build_id\"");
	if ((rc = debuginfod_source_encode_path(a, s->path, &j.path, err)))
		return rc;
	j.key = debuginfod_key_of(d, &j);
	if (atomic_fetch_add(&d->sources_n, 1) < DEBUGINFOD_SOURCES_MAX)
		rc = source_job_run(&j, canceled, out, err);
	else
		rc = err_set(err, ERR_UNAVAILABLE,
			"%u files are being asked of debuginfod servers: try again later",
			DEBUGINFOD_SOURCES_MAX);
	atomic_fetch_sub(&d->sources_n, 1);
	return rc;
}
