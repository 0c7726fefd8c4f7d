#include "web/http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/str.h"

#define BACKLOG 65535 /* the system has a lower limit; what is over it waits a second or more */

union any_address {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* Fills *to; false when the host is neither an address nor "localhost". */
static bool listen_parse_host(struct str host, uint16_t port, union any_address *to)
{
	char text[64];

	memset(to, 0, sizeof(*to));
	if (host.len >= 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']')
		host = (struct str){ host.ptr + 1, host.len - 2 };
	if (host.len >= sizeof(text))
		return false;
	memcpy(text, host.len ? host.ptr : "", host.len);
	text[host.len] = '\0';
	if (!host.len) {
		to->v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(port) };
		return true;
	}
	if (str_is(host, "localhost"))
		memcpy(text, "127.0.0.1", sizeof("127.0.0.1"));
	if (inet_pton(AF_INET, text, &to->v4.sin_addr) == 1) {
		to->v4.sin_family = AF_INET;
		to->v4.sin_port = htons(port);
		return true;
	}
	if (inet_pton(AF_INET6, text, &to->v6.sin6_addr) == 1) {
		to->v6.sin6_family = AF_INET6;
		to->v6.sin6_port = htons(port);
		return true;
	}
	return false;
}

static enum err_code listen_parse(const char *address, union any_address *to, struct err *err)
{
	struct str s = str_of(address);
	size_t colon = s.len;
	uint64_t port;

	while (colon && s.ptr[colon - 1] != ':')
		colon--;
	if (!colon || !str_to_u64((struct str){ s.ptr + colon, s.len - colon }, &port) ||
		port > UINT16_MAX)
		return err_set(err, ERR_INVALID, "listen on %s: not host:port", address);
	if (!listen_parse_host((struct str){ s.ptr, colon - 1 }, (uint16_t)port, to))
		return err_set(err, ERR_INVALID, "listen on %s: the host must be an address", address);
	return ERR_OK;
}

static int listen_open_socket(union any_address *a)
{
	socklen_t len = a->sa.sa_family == AF_INET ? sizeof(a->v4) : sizeof(a->v6);
	int fd = socket(a->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1,
		zero = 0;
	int saved;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (a->sa.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	if (bind(fd, &a->sa, len) == 0)
		return fd;
	saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

static enum err_code listen_failed(const char *address, struct err *err)
{
	return err_set(err, ERR_UNAVAILABLE, "listen on %s: %s", address, strerror(errno));
}

enum err_code listen_bind(const char *address, struct listen_bound *out, struct err *err)
{
	union any_address a;
	socklen_t len = sizeof(a);
	enum err_code rc;
	int fd;

	if ((rc = listen_parse(address, &a, err)))
		return rc;
	fd = listen_open_socket(&a);
	if (fd < 0 && address[0] == ':' && errno == EAFNOSUPPORT) { /* a kernel without IPv6 */
		a.v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = a.v6.sin6_port };
		fd = listen_open_socket(&a);
	}
	if (fd < 0)
		return listen_failed(address, err);
	if (getsockname(fd, &a.sa, &len)) {
		close(fd);
		return err_errno(err, errno, "listen on %s", address);
	}
	out->port = ntohs(a.sa.sa_family == AF_INET ? a.v4.sin_port : a.v6.sin6_port);
	out->fd = fd;
	return ERR_OK;
}

enum err_code listen_open(
	const char *address, struct listen_bound *bound, int *fd, unsigned *port, struct err *err)
{
	struct listen_bound own = { .fd = -1 };
	enum err_code rc;

	if (bound) {
		own = *bound;
		bound->fd = -1;
	}
	if (own.fd < 0 && (rc = listen_bind(address, &own, err)))
		return rc;
	if (listen(own.fd, BACKLOG)) { /* another process may have bound the port likewise */
		rc = listen_failed(address, err);
		close(own.fd);
		return rc;
	}
	*fd = own.fd;
	*port = own.port;
	return ERR_OK;
}

void listen_unbind(struct listen_bound *b)
{
	if (b->fd >= 0)
		close(b->fd);
	b->fd = -1;
}
