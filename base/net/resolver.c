/*
 * c-ares reads resolv.conf when a channel is made, and cannot read it again while questions are
 * under way, which they always are when its servers are gone. So a new channel replaces the old
 * one, which ends with its last question. A channel cannot be destroyed from within its own
 * callbacks: its timer does it.
 */
#include "base/net/resolver.h"

#include <ares.h>
#include <arpa/nameser.h>
#include <assert.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/stat.h>

#define TRY_MS 2000
#define TRIES 3
#define CANDIDATES_MAX 32u /* each may take its whole time */

struct watch { /* a socket of c-ares's */
	LIST_ENTRY(watch) link;
	int fd;
	struct event *ev;
};

struct conf { /* identifies a state of resolv.conf */
	struct timespec mtime;
	off_t size;
	ino_t inode;
};

struct channel {
	LIST_ENTRY(channel) link;
	struct event_base *base;
	ares_channel ares;
	bool has_ares;
	struct conf conf; /* as it was when c-ares read it, or before */
	struct ares_options search; /* ndots and domains are of interest */
	bool has_search;
	struct event *timer;
	LIST_HEAD(, watch) watches;
	size_t questions; /* under way */
	bool retired; /* ends with the last of them */
};

struct resolver {
	struct event_base *base;
	char *servers; /* NULL: resolv.conf's */
	LIST_HEAD(, channel) channels; /* the first is asked, the others are retired */
};

struct resolver_question {
	struct channel *channel;
	resolver_addresses_fn addresses; /* one of the two */
	resolver_answer_fn answer;
	void *ctx;
};

/* ---- the event base ---- */

static void channel_arm_timer(struct channel *c)
{
	struct timeval tv = { 0 };

	if ((c->retired && !c->questions) || ares_timeout(c->ares, NULL, &tv))
		evtimer_add(c->timer, &tv);
	else
		evtimer_del(c->timer);
}

static void channel_close(struct channel *c)
{
	if (!c)
		return;
	if (c->has_search)
		ares_destroy_options(&c->search);
	if (c->has_ares)
		ares_destroy(
			c->ares); /* ends the questions, and resolver_on_sock_state removes the watches */
	if (c->timer)
		event_free(c->timer);
	free(c);
}

static void resolver_on_timer(evutil_socket_t fd, short what, void *ctx)
{
	struct channel *c = ctx;

	if (c->retired && !c->questions) {
		LIST_REMOVE(c, link);
		channel_close(c);
		return;
	}
	ares_process_fd(c->ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	channel_arm_timer(c);
}

static void resolver_on_socket(evutil_socket_t fd, short what, void *ctx)
{
	struct channel *c = ctx;

	ares_process_fd(
		c->ares, what & EV_READ ? fd : ARES_SOCKET_BAD, what & EV_WRITE ? fd : ARES_SOCKET_BAD);
	channel_arm_timer(c);
}

/*
 * c-ares says which of its sockets it waits for. A failed allocation leaves the question to its
 * timeout.
 */
static void resolver_on_sock_state(void *ctx, ares_socket_t fd, int readable, int writable)
{
	short what = (short)((readable ? EV_READ : 0) | (writable ? EV_WRITE : 0) | EV_PERSIST);
	struct channel *c = ctx;
	struct watch *w;

	LIST_FOREACH (w, &c->watches, link)
		if (w->fd == fd)
			break;
	if (w)
		event_free(w->ev);
	if (!readable && !writable) {
		if (w) {
			LIST_REMOVE(w, link);
			free(w);
		}
		return;
	}
	if (!w) {
		w = calloc(1, sizeof(*w));
		if (!w)
			return;
		w->fd = fd;
		LIST_INSERT_HEAD(&c->watches, w, link);
	}
	w->ev = event_new(c->base, fd, what, resolver_on_socket, c);
	if (!w->ev) {
		LIST_REMOVE(w, link);
		free(w);
		return;
	}
	event_add(w->ev, NULL);
}

/* ---- channels ---- */

static struct conf conf_now(void)
{
	struct stat st;

	if (stat("/etc/resolv.conf", &st))
		return (struct conf){ 0 };
	return (struct conf){ st.st_mtim, st.st_size, st.st_ino };
}

static bool conf_eq(struct conf a, struct conf b)
{
	return a.mtime.tv_sec == b.mtime.tv_sec && a.mtime.tv_nsec == b.mtime.tv_nsec &&
		a.size == b.size && a.inode == b.inode;
}

static int channel_open(struct resolver *r, struct channel **out)
{
	struct channel *c = calloc(1, sizeof(*c));
	struct ares_options o = { .timeout = TRY_MS,
		.tries = TRIES,
		.sock_state_cb = resolver_on_sock_state,
		.sock_state_cb_data = c };
	int rc = ARES_ENOMEM, mask;

	if (!c)
		return rc;
	c->base = r->base;
	LIST_INIT(&c->watches);
	c->conf = conf_now();
	if (!(c->timer = evtimer_new(r->base, resolver_on_timer, c)))
		goto fail;
	mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB;
	if ((rc = ares_init_options(&c->ares, &o, mask)) != ARES_SUCCESS)
		goto fail;
	c->has_ares = true;
	if (r->servers && (rc = ares_set_servers_ports_csv(c->ares, r->servers)) != ARES_SUCCESS)
		goto fail;
	c->has_search = true; /* a failed save leaves something to destroy */
	if ((rc = ares_save_options(c->ares, &c->search, &mask)) != ARES_SUCCESS)
		goto fail;
	*out = c;
	return ARES_SUCCESS;
fail:
	channel_close(c);
	return rc;
}

/* The channel to ask: a container's resolv.conf may change under us. NULL while we close. */
static struct channel *channel_now(struct resolver *r)
{
	struct channel *c = LIST_FIRST(&r->channels), *next;

	if (!c || r->servers || conf_eq(conf_now(), c->conf))
		return c;
	if (channel_open(r, &next) != ARES_SUCCESS)
		return c; /* half a file, perhaps: the next question tries again */
	LIST_INSERT_HEAD(&r->channels, next, link);
	c->retired = true;
	channel_arm_timer(c);
	return next;
}

enum err_code resolver_open(
	struct event_base *base, const char *servers, struct resolver **out, struct err *err)
{
	struct resolver *r = calloc(1, sizeof(*r));
	struct channel *c;
	int rc = ARES_ENOMEM;

	if (r) {
		r->base = base;
		LIST_INIT(&r->channels);
		r->servers = servers ? strdup(servers) : NULL;
		if ((!servers || r->servers) && (rc = ares_library_init(ARES_LIB_INIT_ALL)) == 0 &&
			(rc = channel_open(r, &c)) == ARES_SUCCESS) {
			LIST_INSERT_HEAD(&r->channels, c, link);
			*out = r;
			return ERR_OK;
		}
	}
	resolver_close(r);
	return err_set(
		err, rc == ARES_ENOMEM ? ERR_NOMEM : ERR_INVALID, "resolver: %s", ares_strerror(rc));
}

void resolver_close(struct resolver *r)
{
	struct channel *c;

	if (!r)
		return;
	while ((c = LIST_FIRST(&r->channels))) {
		LIST_REMOVE(c, link);
		channel_close(c);
	}
	free(r->servers);
	free(r);
}

/* ---- questions ---- */

static int resolver_question_new(struct resolver *r, void *ctx, struct resolver_question **out)
{
	struct channel *c = channel_now(r);

	if (!c)
		return ARES_EDESTRUCTION;
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return ARES_ENOMEM;
	**out = (struct resolver_question){ .channel = c, .ctx = ctx };
	c->questions++;
	return ARES_SUCCESS;
}

static void resolver_on_addresses(void *ctx, int status, int timeouts, struct ares_addrinfo *res)
{
	struct resolver_question q = *(struct resolver_question *)ctx;

	free(ctx);
	assert(q.channel->questions > 0 && q.addresses);
	q.channel->questions--;
	q.addresses(q.ctx, status, res);
	if (res)
		ares_freeaddrinfo(res);
}

void resolver_addresses(struct resolver *r, const char *name, resolver_addresses_fn fn, void *ctx)
{
	struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct channel *c;
	struct resolver_question *q;
	int rc = resolver_question_new(r, ctx, &q);

	if (rc != ARES_SUCCESS) {
		fn(ctx, rc, NULL);
		return;
	}
	q->addresses = fn;
	c = q->channel;
	ares_getaddrinfo(c->ares, name, NULL, &hints, resolver_on_addresses, q);
	channel_arm_timer(c);
}

static void resolver_on_answer(void *ctx, int status, int timeouts, unsigned char *answer, int len)
{
	struct resolver_question q = *(struct resolver_question *)ctx;

	free(ctx);
	assert(q.channel->questions > 0 && q.answer);
	q.channel->questions--;
	q.answer(q.ctx, status, (struct str){ (const char *)answer, answer ? (size_t)len : 0 });
}

void resolver_query(
	struct resolver *r, const char *name, int type, resolver_answer_fn fn, void *ctx)
{
	struct channel *c;
	struct resolver_question *q;
	int rc = resolver_question_new(r, ctx, &q);

	if (rc != ARES_SUCCESS) {
		fn(ctx, rc, (struct str){ 0 });
		return;
	}
	q->answer = fn;
	c = q->channel;
	ares_query(c->ares, name, ns_c_in, type, resolver_on_answer, q);
	channel_arm_timer(c);
}

bool resolver_candidate(
	struct resolver *r, struct str name, size_t i, char out[RESOLVER_NAME_BYTES])
{
	const struct channel *c = channel_now(r);
	const struct ares_options *search;
	size_t domains, dots = 0, alone;
	struct str domain = STR("");

	if (!c)
		return false;
	search = &c->search;
	domains = search->ndomains > 0 ? (size_t)search->ndomains : 0;
	if (str_has_suffix(name, STR("."))) {
		snprintf(out, RESOLVER_NAME_BYTES, STR_FMT, STR_ARG(name));
		return i == 0;
	}
	if (domains > CANDIDATES_MAX - 1)
		domains = CANDIDATES_MAX - 1;
	for (size_t k = 0; k < name.len; k++)
		dots += name.ptr[k] == '.';
	alone = (int64_t)dots >= search->ndots ? 0 : domains;
	if (i > domains)
		return false;
	if (i != alone)
		domain = str_of(search->domains[i > alone ? i - 1 : i]);
	while (str_has_suffix(domain, STR(".")))
		domain.len--;
	snprintf(out, RESOLVER_NAME_BYTES, STR_FMT "%s" STR_FMT ".", STR_ARG(name),
		domain.len ? "." : "", STR_ARG(domain));
	return true;
}
