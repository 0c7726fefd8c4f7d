#include "base/net/bare_ipv6.h"

#include <arpa/inet.h>

#define PORT_MAX 65535

static bool bare_ipv6_is_address(struct str s)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr ignored;

	if (s.len >= sizeof(text))
		return false;
	memcpy(text, s.ptr, s.len);
	text[s.len] = '\0';
	return inet_pton(AF_INET6, text, &ignored) == 1;
}

bool bare_ipv6(struct str address, struct buf *out)
{
	struct str host = address, port;
	bool whole, with_port;
	int64_t n;

	while (host.len && host.ptr[host.len - 1] != ':')
		host.len--;
	if (!host.len)
		return false;
	port = (struct str){ host.ptr + host.len, address.len - host.len };
	host.len--;
	whole = bare_ipv6_is_address(address);
	with_port = bare_ipv6_is_address(host) && port.len && port.ptr[0] != '-' &&
		str_to_i64(port, &n) && n <= PORT_MAX;
	if (with_port)
		buf_printf(out, "[" STR_FMT "]:" STR_FMT, STR_ARG(host), STR_ARG(port));
	if (with_port && whole)
		buf_add_cstr(out, " or ");
	if (whole)
		buf_printf(out, "[" STR_FMT "]", STR_ARG(address));
	return whole || with_port;
}
