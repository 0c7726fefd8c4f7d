#include "tests/torture/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define TIMEOUT_S 30

static int connect_to(unsigned port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct timeval timeout = { .tv_sec = TIMEOUT_S };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to))) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool send_all(int fd, struct str s)
{
	while (s.len) {
		ssize_t n = TEMP_FAILURE_RETRY(send(fd, s.ptr, s.len, MSG_NOSIGNAL));

		if (n <= 0)
			return false;
		s = (struct str){ s.ptr + n, s.len - (size_t)n };
	}
	return true;
}

/* A call with a timeout ends with EINTR whenever the profiler's signal comes: SA_RESTART does not
 * hold for it (signal(7)). */
static void receive_all(int fd, struct buf *in)
{
	char part[65536];
	ssize_t n;

	while ((n = TEMP_FAILURE_RETRY(recv(fd, part, sizeof(part), 0))) > 0)
		buf_add(in, part, (size_t)n);
	buf_add_char(in, '\0');
	in->len--;
}

static bool add_chunks(struct str s, struct buf *out)
{
	for (;;) {
		char *end;
		size_t n = strtoul(s.ptr, &end, 16), head = (size_t)(end - s.ptr) + 2;

		if (end == s.ptr || s.len < head || s.len - head < n + 2)
			return false;
		if (!n)
			return s.len == head + 2;
		buf_add(out, s.ptr + head, n);
		s = (struct str){ s.ptr + head + n + 2, s.len - head - n - 2 };
	}
}

/* The body behind the head; false: it ends too early. */
static bool take_body(struct str in, size_t head, struct buf *out)
{
	const char *length = memmem(in.ptr, head, "Content-Length: ", 16);
	struct str body = { in.ptr + head, in.len - head };

	if (memmem(in.ptr, head, "Transfer-Encoding: chunked", 26))
		return add_chunks(body, out);
	buf_add_str(out, body);
	return length ? strtoul(length + 16, NULL, 10) == body.len : !body.len;
}

int client_ask(unsigned port, const char *request, struct str body, struct buf *answer)
{
	int fd = connect_to(port), status = 0;
	struct buf text = { 0 };
	ptrdiff_t head;

	if (fd < 0)
		return 0;
	buf_printf(&text, "%s HTTP/1.1\r\nHost: test\r\nConnection: close\r\n", request);
	if (body.len && body.ptr[0] == '{')
		buf_add_cstr(&text, "Content-Type: application/json\r\n");
	buf_printf(&text, "Content-Length: %zu\r\n\r\n", body.len);
	buf_add_str(&text, body);
	if (send_all(fd, buf_str(&text))) {
		buf_clear(&text);
		receive_all(fd, &text);
		head = str_find(buf_str(&text), STR("\r\n\r\n"));
		if (head > 12 && take_body(buf_str(&text), (size_t)head + 4, answer))
			status = (int)strtol(text.ptr + 9, NULL, 10);
	}
	close(fd);
	buf_release(&text);
	return status;
}

unsigned client_free_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) || getsockname(fd, (struct sockaddr *)&a, &n))
		abort();
	close(fd);
	return ntohs(a.sin_port);
}
