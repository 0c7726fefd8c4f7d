/* Requests through a socket of this machine. */
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/base/net/http_server.h"
#include "tests/check.h"

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

static struct client client;
static struct http_server server;
static struct http_result res;
static char dir[64], path[96];

static void begin(const char *answers)
{
	snprintf(dir, sizeof(dir), "/tmp/epimetheus-unix-XXXXXX");
	if (!mkdtemp(dir))
		abort();
	snprintf(path, sizeof(path), "%s/s", dir);
	if (!http_server_start_unix(&server, path, script_answers, (void *)(uintptr_t)answers) ||
		!client_open(&client, 0, NULL))
		abort();
}

static void end(void)
{
	client_close(&client);
	http_server_stop(&server);
	result_release(&res);
	unlink(path);
	rmdir(dir);
}

static void ask(const char *url, struct str unix_path, const struct http_config *config)
{
	client_run(&client,
		(struct http_request_options){
			.url = str_of(url), .unix_path = unix_path, .config = config },
		&res);
}

TEST(the_url_gives_host_and_target_only)
{
	const struct http_config proxied = { .proxy.url = STR("http://127.0.0.1:1"),
											 .follow_redirects = true };
	struct buf last = { 0 };

	begin(OK);
	ask("http://docker/v1/x?a=b", str_of(path), &proxied);
	CHECK_STR(str_of(res.msg), "");
	CHECK_STR(buf_str(&res.body), "ok");
	http_server_last(&server, &last);
	CHECK_STR(
		buf_str(&last), "GET /v1/x?a=b HTTP/1.1\r\nHost: docker\r\nUser-Agent: test/1\r\n\r\n");
	/* the connection is kept, and serves this socket alone */
	ask("http://docker/y", str_of(path), NULL);
	CHECK_STR(buf_str(&res.body), "ok");
	CHECK_INT(http_client_stats(client.http).reuses, 1);
	ask("http://127.0.0.1:1/y", STR(""), NULL);
	CHECK_STR(str_of(res.msg), "connect 127.0.0.1:1: Connection refused");
	buf_release(&last);
	end();
}

TEST(sockets_that_are_not_there)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	char text[256], want[400];
	int fd;

	begin(OK);
	snprintf(text, sizeof(text), "%s/gone", dir);
	ask("http://docker/", str_of(text), NULL);
	snprintf(want, sizeof(want), "connect unix://%s: No such file or directory", text);
	CHECK_STR(str_of(res.msg), want);
	ask("http://docker/", str_of(dir), NULL);
	snprintf(want, sizeof(want), "connect unix://%s: not a socket", dir);
	CHECK_STR(str_of(res.msg), want);
	/* a socket, but nobody listens */
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/left", dir);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	REQUIRE(bind(fd, (const struct sockaddr *)&un, sizeof(un)) == 0);
	ask("http://docker/", str_of(un.sun_path), NULL);
	snprintf(want, sizeof(want), "connect unix://%s: Connection refused", un.sun_path);
	CHECK_STR(str_of(res.msg), want);
	close(fd);
	unlink(un.sun_path);
	/* the whole path is named, however long */
	memset(text, 'y', 107);
	text[0] = '/';
	text[107] = '\0';
	ask("http://docker/", str_of(text), NULL);
	snprintf(want, sizeof(want), "connect unix://%s: No such file or directory", text);
	CHECK_STR(str_of(res.msg), want);
	memset(text, 'x', 108);
	text[108] = '\0';
	ask("http://docker/", str_of(text), NULL);
	CHECK_STR(str_of(res.msg), "send: path of a socket is 108 bytes, limit 107");
	end();
}

TEST(a_redirect_to_another_origin_leaves_the_socket)
{
	const struct http_config config = { .follow_redirects = true };
	struct http_server other;
	char answer[256];

	REQUIRE(http_server_start(&other, script_answers, (void *)(uintptr_t)OK, NULL));
	snprintf(answer, sizeof(answer),
		"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%u/there\r\nContent-Length: 0\r\n\r\n",
		other.port);
	begin(answer);
	ask("http://docker/", str_of(path), &config);
	CHECK_STR(buf_str(&res.body), "ok");
	CHECK(http_server_saw(&other, "GET /there HTTP/1.1\r\n"));
	end();
	http_server_stop(&other);
}
