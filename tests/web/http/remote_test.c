/* Addresses of clients as text, and their hosts. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/check.h"
#include "web/http/http.h"

static const struct {
	const char *remote, *host;
} cases[] = {
	{ "10.0.0.1:4317", "10.0.0.1" },
	{ "[2001:db8::1]:4317", "2001:db8::1" },
	{ "[::ffff:10.0.0.1]:4317", "10.0.0.1" }, /* IPv4 on a socket for both */
	{ "[::ffff:a00:1:2]:4317", "::ffff:a00:1:2" },
	{ "[]:1", "" },
	{ ":1", "" },
	{ "", "" },
};

TEST(a_client_s_text_has_its_host)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CHECK_STR(http_remote_host(str_of(cases[i].remote)), cases[i].host);
}

TEST(hosts_of_both_protocols_are_the_same_text)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(80) };
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(80) };
	char text[HTTP_REMOTE_BYTES];
	struct http_sender ignored;

	inet_pton(AF_INET, "192.0.2.7", &v4.sin_addr);
	http_client_of((const struct sockaddr *)(const void *)&v4, &ignored, text);
	CHECK_STR(http_remote_host(str_of(text)), "192.0.2.7");
	inet_pton(AF_INET6, "::ffff:192.0.2.7", &v6.sin6_addr);
	http_client_of((const struct sockaddr *)(const void *)&v6, &ignored, text);
	CHECK_STR(http_remote_host(str_of(text)), "192.0.2.7");
}
