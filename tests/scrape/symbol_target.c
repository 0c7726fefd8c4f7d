#include "tests/scrape/symbol_target.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread.h"

#define REQUEST_MAX ((size_t)1 << 20)
#define HUGE_BYTES ((size_t)6 << 20)
#define LONG_BYTES 20000

struct symbol_target {
	int fd, port;
	struct thread thread;
	atomic_bool stop;
	struct mutex lock;
	/* guarded by lock */
	int connection; /* -1: none */
	struct buf body, head;
	enum symbol_mode mode;
	char prefix[32];
	unsigned questions, asked;
};

static void must(bool ok, const char *what)
{
	if (!ok) {
		perror(what);
		abort();
	}
}

static bool send_all(int fd, const char *at, size_t n)
{
	while (n) {
		ssize_t done = send(fd, at, n, MSG_NOSIGNAL);

		if (done <= 0)
			return false;
		at += done;
		n -= (size_t)done;
	}
	return true;
}

static bool answer(int fd, const char *status, struct str body)
{
	char head[200];
	int n = snprintf(
		head, sizeof(head), "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n", status, body.len);

	return send_all(fd, head, (size_t)n) && send_all(fd, body.ptr, body.len);
}

static void add_name(struct buf *out, enum symbol_mode mode, const char *prefix, uint64_t address)
{
	if (mode == SYMBOLS_OTHERS)
		address ^= 0x5000000;
	buf_printf(out, "0x%016" PRIx64 "\t%s_%" PRIx64, address, prefix, address);
	for (int i = 0; mode == SYMBOLS_LONG && i < LONG_BYTES; i++)
		buf_add_char(out, 'x');
	buf_add_char(out, '\n');
}

static void add_names(struct symbol_target *t, const char *question, struct buf *out)
{
	char *end;

	buf_add_cstr(out, "num_symbols: 1\n");
	for (const char *at = question; *at; at = *end ? end + 1 : end) {
		uint64_t address = strtoull(at, &end, 16);

		must(end != at && (*end == '+' || !*end), "question");
		t->asked++;
		add_name(out, t->mode, t->prefix, address);
	}
	if (t->mode == SYMBOLS_CUT)
		out->len -= 3;
}

static bool hang(struct symbol_target *t, int fd)
{
	char c;

	while (!atomic_load(&t->stop) && recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) != 0)
		usleep(1000);
	return false;
}

/* False: the connection ends. */
static bool answer_question(struct symbol_target *t, int fd, const char *question)
{
	struct buf out = { 0 };
	enum symbol_mode mode;
	bool ok = true;

	mutex_lock(&t->lock);
	t->questions++;
	add_names(t, question, &out);
	mode = t->mode;
	mutex_unlock(&t->lock);
	switch (mode) {
	case SYMBOLS_NAMES:
	case SYMBOLS_CUT:
	case SYMBOLS_OTHERS:
	case SYMBOLS_LONG:
		ok = answer(fd, "200 OK", buf_str(&out));
		break;
	case SYMBOLS_EMPTY:
		ok = answer(fd, "200 OK", STR("num_symbols: 1\n"));
		break;
	case SYMBOLS_NO_SERVICE:
		ok = answer(fd, "200 OK", STR("num_symbols: 0\n"));
		break;
	case SYMBOLS_404:
		ok = answer(fd, "404 Not Found", STR("no"));
		break;
	case SYMBOLS_500:
		ok = answer(fd, "500 Internal Server Error", STR("no"));
		break;
	case SYMBOLS_PAGE:
		ok = answer(fd, "200 OK", STR("<html>\n<p>hello</p>\n</html>\n"));
		break;
	case SYMBOLS_GARBAGE:
		ok = answer(fd, "200 OK", STR("0xfffffffffffffffffffff name\n0x\n\n\0\xff\n0x12"));
		break;
	case SYMBOLS_HUGE:
		while (out.len < HUGE_BYTES)
			buf_add_cstr(&out, "0x1\tnobody\n");
		ok = answer(fd, "200 OK", buf_str(&out));
		break;
	case SYMBOLS_RESET:
		send_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n0x1", 45);
		ok = false;
		break;
	case SYMBOLS_SILENT:
		ok = hang(t, fd);
		break;
	}
	buf_release(&out);
	return ok;
}

static bool answer_profile(struct symbol_target *t, int fd)
{
	struct buf out = { 0 };
	bool ok;

	mutex_lock(&t->lock);
	buf_add_str(&out, buf_str(&t->body));
	mutex_unlock(&t->lock);
	ok = answer(fd, "200 OK", buf_str(&out));
	buf_release(&out);
	return ok;
}

/* Reads one request, NUL-terminated; *body: where its body is. */
static bool read_request(int fd, char *text, char **body)
{
	size_t have = 0, wants = 0;
	char *end, *length;

	for (;;) {
		ssize_t n = recv(fd, text + have, REQUEST_MAX - have - 1, 0);

		if (n <= 0)
			return false;
		have += (size_t)n;
		text[have] = '\0';
		if (!(end = strstr(text, "\r\n\r\n")))
			continue;
		length = strcasestr(text, "content-length:");
		wants = length && length < end ? strtoul(length + 15, NULL, 10) : 0;
		*body = end + 4;
		if (text + have >= *body + wants)
			return true;
	}
}

static void serve(struct symbol_target *t, int fd)
{
	char *text = malloc(REQUEST_MAX), *body;

	must(text, "memory");
	while (read_request(fd, text, &body)) {
		if (strncmp(text, "POST ", 5) == 0) {
			mutex_lock(&t->lock);
			buf_clear(&t->head);
			buf_add(&t->head, text, (size_t)(body - text));
			mutex_unlock(&t->lock);
			if (!answer_question(t, fd, body))
				break;
		} else if (!answer_profile(t, fd)) {
			break;
		}
	}
	free(text);
}

static void target_main(void *ctx)
{
	struct symbol_target *t = ctx;
	int fd;

	while (!atomic_load(&t->stop) && (fd = accept(t->fd, NULL, NULL)) >= 0) {
		mutex_lock(&t->lock);
		t->connection = fd;
		mutex_unlock(&t->lock);
		serve(t, fd);
		mutex_lock(&t->lock);
		t->connection = -1;
		mutex_unlock(&t->lock);
		close(fd);
	}
}

struct symbol_target *symbol_target_open(void)
{
	struct symbol_target *t = calloc(1, sizeof(*t));
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t n = sizeof(at);

	must(t, "memory");
	mutex_init(&t->lock);
	t->connection = -1;
	t->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(t->fd >= 0 && bind(t->fd, (struct sockaddr *)&at, sizeof(at)) == 0 &&
			listen(t->fd, 16) == 0 && getsockname(t->fd, (struct sockaddr *)&at, &n) == 0,
		"listen");
	t->port = ntohs(at.sin_port);
	must(!thread_start(&t->thread, "target", target_main, t, NULL), "thread");
	return t;
}

void symbol_target_close(struct symbol_target *t)
{
	atomic_store(&t->stop, true);
	shutdown(t->fd, SHUT_RDWR);
	mutex_lock(&t->lock);
	if (t->connection >= 0)
		shutdown(t->connection, SHUT_RDWR);
	mutex_unlock(&t->lock);
	thread_join(&t->thread);
	close(t->fd);
	buf_release(&t->body);
	buf_release(&t->head);
	mutex_destroy(&t->lock);
	free(t);
}

int symbol_target_port(const struct symbol_target *t)
{
	return t->port;
}

void symbol_target_set(
	struct symbol_target *t, const struct buf *body, enum symbol_mode mode, const char *prefix)
{
	mutex_lock(&t->lock);
	if (body) {
		buf_clear(&t->body);
		buf_add_str(&t->body, buf_str(body));
	}
	t->mode = mode;
	snprintf(t->prefix, sizeof(t->prefix), "%s", prefix);
	mutex_unlock(&t->lock);
}

unsigned symbol_target_questions(struct symbol_target *t)
{
	unsigned n;

	mutex_lock(&t->lock);
	n = t->questions;
	mutex_unlock(&t->lock);
	return n;
}

unsigned symbol_target_asked(struct symbol_target *t)
{
	unsigned n;

	mutex_lock(&t->lock);
	n = t->asked;
	mutex_unlock(&t->lock);
	return n;
}

void symbol_target_head(struct symbol_target *t, struct buf *out)
{
	mutex_lock(&t->lock);
	buf_add_str(out, buf_str(&t->head));
	mutex_unlock(&t->lock);
}

void symbol_target_heap(struct buf *out, unsigned n, const char *maps)
{
	buf_printf(out, "heap profile: %u: %u [%u: %u] @ heapprofile\n", n, n, n, n);
	for (unsigned i = 0; i < n; i++)
		buf_printf(out, "1: 1 [2: 2] @ 0x%x\n", 0x401001 + 16 * i);
	if (maps[0])
		buf_printf(out, "\nMAPPED_LIBRARIES:\n%s-00900000 r-xp 00000000 fe:00 77 /bin/x\n", maps);
}
