#include "tests/scrape/http_target.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/gzip/gzip.h"
#include "base/thread.h"
#include "proto/pprof.h"

#define CONNECTIONS_MAX 256
#define REQUESTS_MAX 10000 /* of one connection: no loop without a bound */
#define BOMB_BYTES ((size_t)140 << 20)
#define LEAKS "tests/proto/testdata/go_goroutineleak.pb.gz"
#define HUGE_BYTES ((size_t)20 << 20)

struct connection {
	struct http_target *target;
	struct thread thread;
	int fd;
};

struct http_target {
	int fd, port;
	struct thread acceptor;
	atomic_bool stop, hold, serves_leaks;
	struct connection connections[CONNECTIONS_MAX];
	size_t n;
	struct buf good, wire, cpu, bomb, leaks;
	struct mutex lock;
	/* guarded by lock */
	struct http_target_counts counts;
	unsigned falling, rising; /* requests for them */
	bool profiled; /* /one: by somebody */
	unsigned busy;
	struct buf head;
};

static void must(bool ok, const char *what)
{
	if (!ok) {
		perror(what);
		abort();
	}
}

void http_target_profile(struct buf *out, unsigned samples, bool cpu)
{
	struct pprof_builder *b;
	struct pprof *p;
	struct arena a;
	char name[32];
	uint32_t f, l;

	arena_init(&a, 0);
	must(!pprof_builder_open(&a, &b, NULL), "builder");
	if (cpu) {
		pprof_builder_type(b, STR("samples"), STR("count"));
		pprof_builder_type(b, STR("cpu"), STR("nanoseconds"));
		pprof_builder_profile(b)->duration_nanos = 300000000;
	} else {
		pprof_builder_type(b, STR("alloc_space"), STR("bytes"));
		pprof_builder_type(b, STR("inuse_space"), STR("bytes"));
	}
	for (unsigned i = 0; i < samples; i++) {
		struct pprof_function function = { .start_line = i };
		struct pprof_line line = { .line = i + 1 };
		int64_t values[2] = { i + 1, i + 2 };

		snprintf(name, sizeof(name), "main.f%u", i);
		function.name = function.system_name = pprof_builder_string(b, str_of(name));
		f = pprof_builder_function(b, &function);
		line.function = f;
		l = pprof_builder_location(
			b, (struct pprof_location){ .address = i + 1, .mapping = PPROF_NONE }, &line, 1);
		pprof_builder_sample(b, &l, 1, NULL, 0, values);
	}
	must(!pprof_builder_finish(b, &p, NULL) && !pprof_encode(p, out, NULL), "profile");
	arena_release(&a);
}

/* Three samples: of pod a, of pod b, and of nobody. */
static void handed_profile(struct buf *out)
{
	struct pprof_label label = { 0 };
	struct pprof_builder *b;
	struct pprof *p;
	struct arena a;
	uint32_t l;

	arena_init(&a, 0);
	must(!pprof_builder_open(&a, &b, NULL), "builder");
	pprof_builder_type(b, STR("inuse_space"), STR("bytes"));
	label.key = pprof_builder_string(b, STR("pod"));
	for (int64_t i = 0; i < 3; i++) {
		label.str = pprof_builder_string(b, i ? STR("b") : STR("a"));
		l = pprof_builder_location(b,
			(struct pprof_location){ .address = (uint64_t)i + 1, .mapping = PPROF_NONE }, NULL, 0);
		pprof_builder_sample(b, &l, 1, &label, i < 2, &(int64_t){ i + 1 });
	}
	must(!pprof_builder_finish(b, &p, NULL) && !pprof_encode(p, out, NULL), "profile");
	arena_release(&a);
}

static bool send_all(int fd, const void *p, size_t n)
{
	const char *at = p;
	ssize_t done;

	while (n) {
		done = send(fd, at, n, MSG_NOSIGNAL);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		at += done;
		n -= (size_t)done;
	}
	return true;
}

static bool answer(int fd, const char *status, const char *headers, struct str body)
{
	char head[512];
	int n = snprintf(head, sizeof(head), "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n", status,
		headers, body.len);

	return send_all(fd, head, (size_t)n) && send_all(fd, body.ptr, body.len);
}

static bool answer_profile(int fd, struct str body)
{
	return answer(fd, "200 OK", "Content-Type: application/octet-stream\r\n", body);
}

static bool drip(struct http_target *t, int fd, const char *bytes, size_t n, useconds_t pause)
{
	while (!atomic_load(&t->stop) && send_all(fd, bytes, n))
		usleep(pause);
	return false;
}

/* For 300 ms, but not longer than the client is there. */
static void stay_busy(struct http_target *t, int fd)
{
	char c;

	for (int i = 0; i < 300 || atomic_load(&t->hold); i++) {
		if (recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
			return;
		usleep(1000);
	}
}

static bool answer_busy(struct http_target *t, int fd, struct str body)
{
	bool ok;

	mutex_lock(&t->lock);
	if (++t->busy > t->counts.busy_max)
		t->counts.busy_max = t->busy;
	mutex_unlock(&t->lock);
	stay_busy(t, fd);
	mutex_lock(&t->lock);
	t->busy--; /* before the answer: the next may come at once */
	mutex_unlock(&t->lock);
	ok = answer_profile(fd, body);
	return ok;
}

static bool answer_endless(struct http_target *t, int fd, bool slowly)
{
	char chunk[1000 + 7];

	memset(chunk, '0', sizeof(chunk));
	memcpy(chunk, "3e8\r\n", 5);
	memcpy(chunk + 1005, "\r\n", 2);
	if (!send_all(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 47))
		return false;
	return slowly ? drip(t, fd, "1\r\n0\r\n", 6, 20000) : drip(t, fd, chunk, sizeof(chunk), 0);
}

static bool answer_huge(int fd)
{
	char *zeros = calloc(1, HUGE_BYTES);
	bool ok = zeros && answer_profile(fd, (struct str){ zeros, HUGE_BYTES });

	free(zeros);
	return ok;
}

static void remember_head(struct http_target *t, struct str head)
{
	mutex_lock(&t->lock);
	buf_clear(&t->head);
	buf_add_str(&t->head, head);
	mutex_unlock(&t->lock);
}

/* False: the connection ends. */
static bool answer_one(struct http_target *t, int fd, struct str head)
{
	const char *seconds = strstr(head.ptr, "seconds=");
	bool taken;

	mutex_lock(&t->lock);
	taken = t->profiled;
	t->profiled = true;
	mutex_unlock(&t->lock);
	if (taken)
		return answer(fd, "500 Internal Server Error",
			"Content-Type: text/plain; charset=utf-8\r\nX-Go-Pprof: 1\r\n",
			STR("Could not enable CPU profiling: cpu profiling already in use\n"));
	for (long i = seconds ? strtol(seconds + 8, NULL, 10) * 100 : 0;
		 i > 0 && !atomic_load(&t->stop); i--)
		usleep(10000);
	mutex_lock(&t->lock);
	t->profiled = false;
	mutex_unlock(&t->lock);
	return answer_profile(fd, buf_str(&t->cpu));
}

#define TLS_ANSWER \
	"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"

/* /to/x leads to /x, /to/round to itself. */
static bool answer_redirect(int fd, struct str path)
{
	struct str to = { path.ptr + 3, path.len - 3 };
	char headers[256];

	snprintf(headers, sizeof(headers), "Location: " STR_FMT "\r\n",
		STR_ARG(str_is(to, "/round") ? path : to));
	return answer(fd, "302 Found", headers, STR(""));
}

static bool answer_changing(struct http_target *t, int fd, struct str path)
{
	struct buf wire = { 0 };
	unsigned samples = 3;
	bool ok;

	mutex_lock(&t->lock);
	if (str_is(path, "/falling"))
		samples = 1 + t->falling++ % 3;
	else if (str_is(path, "/rising"))
		samples = ++t->rising;
	mutex_unlock(&t->lock);
	http_target_profile(&wire, samples, false);
	if (str_is(path, "/x/delta_heap")) /* duration_nanos, as last field */
		buf_add(&wire, "\x50\x80\x89\x7a", 4);
	ok = answer_profile(fd, buf_str(&wire));
	buf_release(&wire);
	return ok;
}

static bool serve(struct http_target *t, int fd, struct str path, struct str head)
{
	struct buf twice = { 0 };
	bool ok;

	if (str_is(path, "/good")) {
		remember_head(t, head);
		return answer_profile(fd, buf_str(&t->good));
	}
	if (str_is(path, "/falling") || str_is(path, "/rising") || str_is(path, "/x/delta_heap"))
		return answer_changing(t, fd, path);
	if (str_is(path, "/handed")) {
		handed_profile(&twice);
		ok = answer_profile(fd, buf_str(&twice));
		buf_release(&twice);
		return ok;
	}
	if (str_is(path, "/encoded") || str_is(path, "/double")) {
		ok = !gzip_compress(
				 buf_str(str_is(path, "/double") ? &t->good : &t->wire), 1, &twice, NULL) &&
			answer(fd, "200 OK", "Content-Encoding: gzip\r\n", buf_str(&twice));
		buf_release(&twice);
		return ok;
	}
	if (str_is(path, "/html"))
		return answer(
			fd, "200 OK", "Content-Type: text/html; charset=utf-8\r\n", STR("<html>hi</html>"));
	if (str_is(path, "/json"))
		return answer(fd, "200 OK", "Content-Type: application/json\r\n", STR("{\"a\":\n1}"));
	if (str_is(path, "/legacy"))
		return answer(
			fd, "200 OK", "Content-Type: text/plain\r\n", STR("heap profile: 1: 2 [3: 4 @ heap"));
	if (str_is(path, "/empty"))
		return answer_profile(fd, STR(""));
	if (str_is(path, "/503"))
		return answer(fd, "503 Service Unavailable",
			"Content-Type: text/plain\r\nX-Go-Pprof: 1\r\n",
			STR("profiling is\n\xc3\xa4ngstlich\n"));
	if (str_is(path, "/404page"))
		return answer(fd, "404 Not Found", "Content-Type: text/html\r\n", STR("<html>no</html>"));
	if (str_is(path, "/endless"))
		return answer_endless(t, fd, false);
	if (str_is(path, "/drip"))
		return answer_endless(t, fd, true);
	if (str_is(path, "/huge"))
		return answer_huge(fd);
	if (str_is(path, "/bomb"))
		return answer_profile(fd, buf_str(&t->bomb));
	if (str_has_prefix(path, STR("/to/")))
		return answer_redirect(fd, path);
	if (str_is(path, "/tls")) { /* as Go's servers of TLS answer HTTP */
		send_all(fd, TLS_ANSWER, sizeof(TLS_ANSWER) - 1);
		return false;
	}
	if (str_is(path, "/alert")) {
		send_all(fd, "\x15\x03\x01\0\x02\x02\x46", 7);
		return false;
	}
	if (str_is(path, "/reset")) {
		send_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc", 43);
		return false;
	}
	if (str_is(path, "/silent"))
		return drip(t, fd, "", 0, 20000);
	if (str_is(path, "/slow"))
		return answer_busy(t, fd, buf_str(&t->good));
	if (str_is(path, "/profile"))
		return answer_busy(t, fd, buf_str(&t->cpu));
	if (str_is(path, "/leak")) {
		mutex_lock(&t->lock);
		t->counts.leaks++;
		mutex_unlock(&t->lock);
		if (atomic_load(&t->serves_leaks))
			return answer_profile(fd, buf_str(&t->leaks));
	}
	if (str_is(path, "/one"))
		return answer_one(t, fd, head);
	return answer(fd, "404 Not Found", "", STR(""));
}

static void connection_main(void *ctx)
{
	struct connection *c = ctx;
	struct http_target *t = c->target;
	char head[8192];
	size_t have = 0, path_n;
	ssize_t n;
	char *end;
	bool more = true;

	for (int i = 0; more && i < REQUESTS_MAX && !atomic_load(&t->stop);) {
		n = recv(c->fd, head + have, sizeof(head) - have - 1, 0);
		if (n <= 0)
			break;
		have += (size_t)n;
		head[have] = '\0';
		if (head[0] == 0x16) { /* a client of TLS says hello: that is no request */
			answer(c->fd, "400 Bad Request", "Connection: close\r\n", STR(""));
			break;
		}
		if (!(end = strstr(head, "\r\n\r\n")) || strncmp(head, "GET ", 4) != 0)
			continue;
		path_n = strcspn(head + 4, " ?");
		mutex_lock(&t->lock);
		t->counts.requests++;
		mutex_unlock(&t->lock);
		more = serve(t, c->fd, (struct str){ head + 4, path_n }, (struct str){ head, have });
		mutex_lock(&t->lock);
		t->counts.answered++;
		mutex_unlock(&t->lock);
		have = 0; /* no pipelining */
		i++;
	}
	shutdown(c->fd, SHUT_RDWR);
}

static void acceptor_main(void *ctx)
{
	struct http_target *t = ctx;
	struct connection *c;
	int fd;

	while (!atomic_load(&t->stop) && (fd = accept(t->fd, NULL, NULL)) >= 0) {
		if (t->n == CONNECTIONS_MAX) {
			close(fd);
			continue;
		}
		c = &t->connections[t->n++];
		*c = (struct connection){ .target = t, .fd = fd };
		mutex_lock(&t->lock);
		t->counts.connections++;
		mutex_unlock(&t->lock);
		must(!thread_start(&c->thread, "target", connection_main, c, NULL), "thread");
	}
}

struct http_target *http_target_open(void)
{
	struct http_target *t = calloc(1, sizeof(*t));
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_ANY) } };
	socklen_t n = sizeof(at);

	must(t, "memory");
	mutex_init(&t->lock);
	http_target_profile(&t->wire, 3, false);
	http_target_profile(&t->cpu, 2, true);
	must(!gzip_compress(buf_str(&t->wire), 6, &t->good, NULL), "gzip");
	must(!fs_read_file(LEAKS, 1u << 20, &t->leaks, NULL), LEAKS);
	t->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(t->fd >= 0 && bind(t->fd, (struct sockaddr *)&at, sizeof(at)) == 0 &&
			listen(t->fd, 128) == 0 && getsockname(t->fd, (struct sockaddr *)&at, &n) == 0,
		"listen");
	t->port = ntohs(at.sin_port);
	must(!thread_start(&t->acceptor, "acceptor", acceptor_main, t, NULL), "thread");
	return t;
}

void http_target_arm(struct http_target *t)
{
	char *zeros = calloc(1, BOMB_BYTES);

	must(zeros, "memory");
	must(!gzip_compress((struct str){ zeros, BOMB_BYTES }, 1, &t->bomb, NULL), "gzip");
	free(zeros);
}

void http_target_hold(struct http_target *t, bool hold)
{
	atomic_store(&t->hold, hold);
}

void http_target_serve_leaks(struct http_target *t, bool serve)
{
	atomic_store(&t->serves_leaks, serve);
}

void http_target_close(struct http_target *t)
{
	atomic_store(&t->stop, true);
	shutdown(t->fd, SHUT_RDWR);
	thread_join(&t->acceptor);
	close(t->fd);
	for (size_t i = 0; i < t->n; i++)
		shutdown(t->connections[i].fd, SHUT_RDWR);
	for (size_t i = 0; i < t->n; i++) {
		thread_join(&t->connections[i].thread);
		close(t->connections[i].fd);
	}
	buf_release(&t->good);
	buf_release(&t->wire);
	buf_release(&t->cpu);
	buf_release(&t->bomb);
	buf_release(&t->leaks);
	buf_release(&t->head);
	mutex_destroy(&t->lock);
	free(t);
}

int http_target_port(const struct http_target *t)
{
	return t->port;
}

struct http_target_counts http_target_counts(struct http_target *t)
{
	struct http_target_counts c;

	mutex_lock(&t->lock);
	c = t->counts;
	mutex_unlock(&t->lock);
	return c;
}

void http_target_last_head(struct http_target *t, struct buf *out)
{
	mutex_lock(&t->lock);
	buf_add_str(out, buf_str(&t->head));
	mutex_unlock(&t->lock);
}
