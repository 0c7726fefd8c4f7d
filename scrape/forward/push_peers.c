#include "scrape/forward/push_peers.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/net/http_config.h"
#include "base/net/loop.h"
#include "base/quote.h"
#include "scrape/forward/push_entries.h"

METRIC_COUNTER(stored_total, "epimetheus_forwarded_profiles_total",
	"Pushed profiles that another shard keeps: sent there and stored, by shard.", "shard");
METRIC_COUNTER(refused_total, "epimetheus_forward_refused_profiles_total",
	"Pushed profiles that another shard keeps: it refused them, by shard.", "shard");
METRIC_COUNTER(away_total, "epimetheus_forward_unreached_profiles_total",
	"Pushed profiles that another shard keeps: it could not be reached, by shard.", "shard");
METRIC_HISTOGRAM(call_seconds, "epimetheus_forward_duration_seconds",
	"Time of a request that sends pushed profiles to the shard that keeps them.", NULL);

#define REASON_BYTES_MAX 256u
#define LOG_EVERY_NS NS_PER_MIN

/* A profile that waits for its answer. */
struct push_wait {
	struct push_wait *next;
	struct buf entry;
	size_t bytes; /* of the entry, until the answer */
	struct sink_stored *stored;
	sink_done_fn done;
	void *ctx;
};

struct push_queue {
	struct push_wait *first, **last;
};

struct push_peer {
	struct push_peer *next;
	struct push_peers *all;
	struct loop_work work;
	char name[64];
	/* guarded by the lock of all */
	char address[512];
	struct push_queue queue;
	bool posted; /* work is the loop's */
	bool calling; /* a call is under way */
	bool away; /* the last call failed */
	int64_t retry_ns; /* monotonic: not before */
	struct err why; /* of the last call that failed */
	/* the loop's thread */
	struct push_queue sent; /* by the call under way */
	struct buf body;
	struct http_body_source source;
	char sent_to[512];
	int64_t began_ns;
	int64_t told_ns; /* when the log said that it is away; 0: it did not, or the shard is back */
};

struct push_peers {
	struct push_assignment assignment;
	struct http_config http;
	char *ca_file;
	int64_t call_timeout_ns;
	struct loop *loop;
	struct http_client *client; /* the loop's thread */
	int64_t told_ns; /* the loop's thread: when the log said that any shard is away */
	struct mutex lock; /* guards the fields below, and what struct push_peer says */
	struct cond changed; /* waiting became less */
	bool stopped; /* nothing is taken any more */
	bool ended; /* nothing is sent any more */
	size_t waiting; /* profiles in queues and under way */
	size_t bytes; /* of their entries */
	struct push_peer *peers;
	size_t peers_n;
};

static void push_queue_init(struct push_queue *q)
{
	q->first = NULL;
	q->last = &q->first;
}

static void push_queue_add(struct push_queue *q, struct push_wait *w)
{
	w->next = NULL;
	*q->last = w;
	q->last = &w->next;
}

static struct push_wait *push_queue_take(struct push_queue *q)
{
	struct push_wait *w = q->first;

	if (w && !(q->first = w->next))
		q->last = &q->first;
	return w;
}

static void push_queue_move(struct push_queue *to, struct push_queue *from)
{
	struct push_wait *w;

	while ((w = push_queue_take(from)))
		push_queue_add(to, w);
}

/* ---- answers ---- */

/* The waiter may free what it waits with as soon as done is called. */
static void push_wait_end(struct push_peers *p, struct push_wait *w, enum err_code rc,
	const struct err *why, const struct sink_stored *stored)
{
	if (!rc && w->stored)
		*w->stored = *stored;
	w->done(w->ctx, rc, why);
	mutex_lock(&p->lock);
	p->waiting--;
	p->bytes -= w->bytes;
	cond_broadcast(&p->changed);
	mutex_unlock(&p->lock);
	buf_release(&w->entry);
	free(w);
}

static void push_queue_fail(struct push_peer *peer, struct push_queue *q, const struct err *why)
{
	struct push_wait *w;

	while ((w = push_queue_take(q))) {
		metric_add(&away_total, peer->name, 1);
		push_wait_end(peer->all, w, why->code, why, NULL);
	}
}

/* Once a minute at most, whichever shard is away. */
static void push_peer_tell_away(struct push_peer *peer, const struct err *why)
{
	int64_t now_ns = clock_monotonic_ns();

	if (peer->all->told_ns && now_ns - peer->all->told_ns < LOG_EVERY_NS)
		return;
	peer->all->told_ns = peer->told_ns = now_ns;
	log_warn("forward", "shard cannot be reached, pushes that it keeps are refused",
		LOG_S("shard", peer->name), LOG_E(why));
}

static void push_peer_tell_back(struct push_peer *peer)
{
	if (!peer->told_ns)
		return;
	peer->told_ns = 0;
	log_info("forward", "shard is reached again", LOG_S("shard", peer->name));
}

/* All that waits for this shard fails. */
static void push_peer_fail(struct push_peer *peer, const struct err *reason)
{
	struct push_peers *p = peer->all;
	struct err why;
	bool ended;

	err_set(&why, ERR_UNAVAILABLE,
		"shard %s, which keeps these profiles, cannot be reached at %s: %s", peer->name,
		peer->sent_to, reason->msg);
	mutex_lock(&p->lock);
	ended = p->ended;
	peer->calling = false;
	peer->away = true;
	peer->retry_ns = clock_monotonic_ns() + PUSH_AWAY_PAUSE_NS;
	peer->why = why;
	push_queue_move(&peer->sent, &peer->queue);
	mutex_unlock(&p->lock);
	push_queue_fail(peer, &peer->sent, &why);
	if (ended)
		return;
	push_peer_tell_away(peer, &why);
	p->assignment.failed(p->assignment.ctx, peer->name);
}

static void push_peer_call(void *ctx);

static void push_peer_post(struct push_peer *peer)
{
	mutex_assert_held(&peer->all->lock);
	if (peer->posted || peer->calling || !peer->queue.first)
		return;
	peer->posted = true;
	loop_post(peer->all->loop, &peer->work, push_peer_call, peer);
}

static void push_peer_end_call(struct push_peer *peer)
{
	mutex_lock(&peer->all->lock);
	peer->calling = false;
	peer->away = false;
	push_peer_post(peer);
	mutex_unlock(&peer->all->lock);
	push_peer_tell_back(peer);
}

/* An error is what was wrong with the answers; those before that were given. */
static enum err_code push_peer_answer(struct push_peer *peer, struct str body, struct err *err)
{
	struct sink_stored stored;
	enum err_code rc, answer;
	struct push_wait *w;
	struct cursor c;
	struct err why;

	if ((rc = push_answers_open(body, &c, err)))
		return rc;
	while ((w = peer->sent.first)) {
		if (!push_answer_next(&c, &answer, &why, &stored))
			return err_set(err, ERR_INVALID, "its answer is cut short");
		(void)push_queue_take(&peer->sent);
		metric_add(answer ? &refused_total : &stored_total, peer->name, 1);
		if (answer == ERR_UNAVAILABLE)
			err_wrap(&why, answer, "shard %s, which keeps these profiles", peer->name);
		push_wait_end(peer->all, w, answer, answer ? &why : NULL, &stored);
	}
	return push_answers_ended(&c) ? ERR_OK :
									err_set(err, ERR_INVALID, "its answer has more than was asked");
}

/* "503 Service Unavailable: not ready: waiting for the lease" */
static enum err_code push_refuse_status(const struct http_response *res, struct err *err)
{
	struct str text = str_trim(res->body);
	struct buf shown = { 0 };
	enum err_code rc;

	if (text.len > REASON_BYTES_MAX)
		text.len = REASON_BYTES_MAX;
	buf_add_printable(&shown, text);
	rc = err_set(err, ERR_UNAVAILABLE, "%d " STR_FMT "%s" STR_FMT, res->status,
		STR_ARG(res->reason), shown.len ? ": " : "", STR_ARG(buf_str(&shown)));
	buf_release(&shown);
	return rc;
}

static void push_peer_on_answer(void *ctx, const struct http_response *res)
{
	struct push_peer *peer = ctx;
	struct err err = res->err;
	enum err_code rc = res->rc;

	metric_observe(&call_seconds, NULL, (double)(clock_monotonic_ns() - peer->began_ns) / 1e9);
	buf_release(&peer->body);
	if (rc == ERR_CANCELED)
		err_set(&err, rc, "this server is ending");
	if (!rc && res->status != 200)
		rc = push_refuse_status(res, &err);
	if (!rc)
		rc = push_peer_answer(peer, res->body, &err);
	if (rc)
		push_peer_fail(peer, &err);
	else
		push_peer_end_call(peer);
}

/* ---- calls ---- */

static enum err_code push_peer_read(void *ctx, uint64_t at, char *to, size_t n, struct err *err)
{
	const struct push_peer *peer = ctx;

	if (at > peer->body.len || n > peer->body.len - at)
		return err_set(err, ERR_INVALID, "the body has %zu bytes", peer->body.len);
	memcpy(to, peer->body.ptr + at, n);
	return ERR_OK;
}

/* Their bytes are in the body then. */
static enum err_code push_peer_gather(struct push_peer *peer, struct err *err)
{
	push_body_begin(&peer->body);
	for (struct push_wait *w = peer->sent.first; w; w = w->next) {
		push_body_add(&peer->body, buf_str(&w->entry));
		buf_release(&w->entry);
	}
	peer->source = (struct http_body_source){ peer->body.len, push_peer_read, peer };
	return buf_failed(&peer->body) ? err_nomem(err, "profiles") : ERR_OK;
}

static enum err_code push_peer_send(struct push_peer *peer, bool away, struct err *err)
{
	struct push_peers *p = peer->all;
	struct http_request_options o = { .method = "POST",
		.config = &p->http,
		.source = &peer->source,
		.timeout_ns = away ? PUSH_AWAY_TIMEOUT_NS : p->call_timeout_ns,
		.body_size_max = PUSH_ANSWER_BYTES_MAX };
	char url[sizeof(peer->sent_to) + sizeof(PUSH_ENTRIES_PATH)];
	char secret[PUSH_SECRET_BYTES] = "", bearer[sizeof("Bearer ") + sizeof(secret)];
	struct label headers[2] = {
		{ STR("Authorization"), { 0 } }, { STR("Content-Type"), STR("application/octet-stream") } };
	struct str address = str_of(peer->sent_to);
	enum err_code rc;

	if ((rc = push_peer_gather(peer, err)))
		return rc;
	p->assignment.secret(p->assignment.ctx, secret);
	if (!secret[0])
		return err_set(err, ERR_UNAVAILABLE, "the secret of the shards is not known yet");
	snprintf(bearer, sizeof(bearer), "Bearer %s", secret);
	while (address.len && address.ptr[address.len - 1] == '/')
		address.len--;
	snprintf(url, sizeof(url), STR_FMT "%s", STR_ARG(address), PUSH_ENTRIES_PATH);
	headers[0].value = str_of(bearer);
	o.url = str_of(url);
	o.headers = (struct labels){ headers, 2 };
	peer->began_ns = clock_monotonic_ns();
	return http_client_send(p->client, &o, push_peer_on_answer, peer, NULL, err);
}

/* At least one, and as many as may go together. */
static void push_peer_take(struct push_peer *peer)
{
	const struct push_wait *w;
	size_t bytes = 0;

	mutex_assert_held(&peer->all->lock);
	for (unsigned n = 0; (w = peer->queue.first) && n < PUSH_ENTRIES_MAX; n++) {
		bytes += w->bytes;
		if (n && bytes > PUSH_BODY_BYTES)
			break;
		push_queue_add(&peer->sent, push_queue_take(&peer->queue));
	}
}

static void push_peer_call(void *ctx)
{
	struct push_peer *peer = ctx;
	struct push_peers *p = peer->all;
	bool away, goes;
	struct err err;

	mutex_lock(&p->lock);
	peer->posted = false;
	goes = !p->ended && !peer->calling && peer->queue.first;
	if (goes) {
		push_peer_take(peer);
		peer->calling = true;
		memcpy(peer->sent_to, peer->address, sizeof(peer->sent_to));
	}
	away = peer->away;
	mutex_unlock(&p->lock);
	if (goes && push_peer_send(peer, away, &err)) {
		buf_release(&peer->body);
		push_peer_fail(peer, &err);
	}
}

/* ---- sending ---- */

/* NULL: *err says why. */
static struct push_peer *push_peers_find(
	struct push_peers *p, const struct push_owner *to, enum err_code *rc, struct err *err)
{
	struct push_peer *peer;

	mutex_assert_held(&p->lock);
	for (peer = p->peers; peer; peer = peer->next)
		if (!strcmp(peer->name, to->name))
			break;
	if (!peer && p->peers_n == PUSH_PEERS_MAX) {
		*rc = err_set(err, ERR_UNAVAILABLE, "more than %u shards", PUSH_PEERS_MAX);
		return NULL;
	}
	if (!peer) {
		if (!(peer = calloc(1, sizeof(*peer)))) {
			*rc = err_nomem(err, "shard");
			return NULL;
		}
		peer->all = p;
		push_queue_init(&peer->queue);
		push_queue_init(&peer->sent);
		memcpy(peer->name, to->name, sizeof(peer->name));
		peer->next = p->peers;
		p->peers = peer;
		p->peers_n++;
	}
	memcpy(peer->address, to->address, sizeof(peer->address));
	return peer;
}

static enum err_code push_peers_admit(
	const struct push_peers *p, const struct push_peer *peer, size_t bytes, struct err *err)
{
	mutex_assert_held(&p->lock);
	if (p->bytes + bytes > PUSH_QUEUES_BYTES_MAX)
		return err_set(err, ERR_UNAVAILABLE, "%u bytes of profiles wait for other shards",
			PUSH_QUEUES_BYTES_MAX);
	if (peer->away && (peer->calling || clock_monotonic_ns() < peer->retry_ns))
		return err_copy(err, &peer->why);
	return ERR_OK;
}

enum err_code push_peers_send(struct push_peers *p, const struct push_owner *to, struct buf *entry,
	struct sink_stored *stored, sink_done_fn done, void *ctx, struct err *err)
{
	struct push_wait *w = malloc(sizeof(*w));
	struct push_peer *peer = NULL;
	enum err_code rc = ERR_OK;

	if (!w)
		return err_nomem(err, "push");
	*w = (struct push_wait){ NULL, *entry, entry->len, stored, done, ctx };
	mutex_lock(&p->lock);
	if (p->stopped)
		rc = err_set(err, ERR_UNAVAILABLE, "this server is ending");
	else if ((peer = push_peers_find(p, to, &rc, err)) &&
		(rc = push_peers_admit(p, peer, entry->len, err)))
		metric_add(&away_total, peer->name, 1);
	if (!rc) {
		p->waiting++;
		p->bytes += entry->len;
		push_queue_add(&peer->queue, w);
		push_peer_post(peer);
	}
	mutex_unlock(&p->lock);
	if (rc)
		free(w);
	else
		*entry = (struct buf){ 0 };
	return rc;
}

/* ---- opening and closing ---- */

struct push_peers_opening {
	struct push_peers *p;
	enum err_code rc;
	struct err *err;
};

static void push_peers_open_client(void *ctx)
{
	struct push_peers_opening *o = ctx;
	const struct http_client_options options = { .base = loop_base(o->p->loop) };

	o->rc = http_client_open(&options, &o->p->client, o->err);
}

enum err_code push_peers_open(
	const struct push_peers_options *o, struct push_peers **out, struct err *err)
{
	struct push_peers *p = calloc(1, sizeof(*p));
	struct push_peers_opening opening = { .p = p, .err = err };
	enum err_code rc;

	if (!p)
		return err_nomem(err, "shards");
	mutex_init(&p->lock);
	cond_init(&p->changed);
	p->assignment = *o->assignment;
	p->call_timeout_ns = o->call_timeout_ns ? o->call_timeout_ns : PUSH_CALL_TIMEOUT_NS;
	http_config_defaults(&p->http);
	p->http.follow_redirects = p->http.enable_http2 = false;
	rc = o->ca_file && o->ca_file[0] && !(p->ca_file = strdup(o->ca_file)) ?
		err_nomem(err, "shards") :
		ERR_OK;
	if (p->ca_file)
		p->http.tls_ca_file = str_of(p->ca_file);
	if (rc || (rc = http_config_check_files(&p->http, err)) ||
		(rc = loop_open("forward", &p->loop, err)))
		goto fail;
	loop_call(p->loop, push_peers_open_client, &opening);
	if ((rc = opening.rc))
		goto fail;
	*out = p;
	return ERR_OK;
fail:
	push_peers_close(p);
	return rc;
}

/* Calls under way fail with it, and then what still waits. */
static void push_peers_end(void *ctx)
{
	struct push_peers *p = ctx;
	struct err why;

	mutex_lock(&p->lock);
	p->ended = true;
	mutex_unlock(&p->lock);
	http_client_close(p->client);
	p->client = NULL;
	err_set(&why, ERR_UNAVAILABLE, "this server is ending");
	for (struct push_peer *peer = p->peers; peer; peer = peer->next) {
		mutex_lock(&p->lock);
		push_queue_move(&peer->sent, &peer->queue);
		mutex_unlock(&p->lock);
		push_queue_fail(peer, &peer->sent, &why);
	}
}

void push_peers_stop(struct push_peers *p)
{
	int64_t deadline_ns = clock_monotonic_ns() + PUSH_STOP_GRACE_NS;

	mutex_lock(&p->lock);
	p->stopped = true;
	while (p->waiting && cond_wait_until(&p->changed, &p->lock, deadline_ns))
		;
	mutex_unlock(&p->lock);
	if (p->loop)
		loop_call(p->loop, push_peers_end, p);
}

void push_peers_close(struct push_peers *p)
{
	struct push_peer *next;

	if (!p)
		return;
	push_peers_stop(p);
	loop_close(p->loop);
	for (struct push_peer *peer = p->peers; peer; peer = next) {
		next = peer->next;
		buf_release(&peer->body);
		free(peer);
	}
	cond_destroy(&p->changed);
	mutex_destroy(&p->lock);
	free(p->ca_file);
	free(p);
}
