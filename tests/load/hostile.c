#include <stdio.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "tests/load/load.h"

/*
 * Hostile targets. All are as slow as a slow network, or end at once: the machine that measures
 * also runs them.
 */
#define DRIP_NS (500 * NS_PER_MS)
#define ENDLESS_NS (100 * NS_PER_MS)
#define HUGE_NS (20 * NS_PER_MS)
#define PIECE_BYTES (32u << 10)

static char piece[PIECE_BYTES];

static void drip_begin(struct load_conn *c)
{
	conn_answer(c, "200 OK", "application/octet-stream", "Content-Length: 100000\r\n", STR(""));
	conn_after(c, DRIP_NS);
}

static void drip_next(struct load_conn *c)
{
	c->body = STR("\x1f");
	conn_send(c);
	conn_after(c, DRIP_NS);
}

static void endless_begin(struct load_conn *c)
{
	conn_answer(c, "200 OK", "application/octet-stream", "Transfer-Encoding: chunked\r\n", STR(""));
	conn_after(c, ENDLESS_NS);
}

static void endless_next(struct load_conn *c)
{
	if (!c->body.len) {
		snprintf(piece, sizeof(piece), "%x\r\n", PIECE_BYTES - 16);
		piece[strlen(piece)] = '.';
		memcpy(piece + 6 + PIECE_BYTES - 16, "\r\n", 2);
		c->body = (struct str){ piece, 6 + PIECE_BYTES - 16 + 2 };
	}
	conn_send(c);
	conn_after(c, ENDLESS_NS);
}

static void huge_begin(struct load_conn *c)
{
	conn_answer(
		c, "200 OK", "application/octet-stream", "Content-Length: 99999999999\r\n", STR(""));
	conn_after(c, HUGE_NS);
}

static void huge_next(struct load_conn *c)
{
	if (!c->body.len)
		c->body = (struct str){ piece, sizeof(piece) };
	conn_send(c);
	conn_after(c, HUGE_NS);
}

static void reset_begin(struct load_conn *c)
{
	conn_answer(
		c, "200 OK", "application/octet-stream", "Content-Length: 100000\r\n", STR("\x1f\x8b\x08"));
	conn_after(c, DRIP_NS);
}

static void reset_next(struct load_conn *c)
{
	const struct linger now = { .l_onoff = 1 };

	setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	conn_end(c);
}

static void redirect_begin(struct load_conn *c)
{
	char more[64];

	snprintf(more, sizeof(more), "Content-Length: 0\r\nLocation: /r%d\r\n", (int)(c->step++ % 7));
	conn_answer(c, "302 Found", "text/html", more, STR(""));
}

static void wrong_type_begin(struct load_conn *c)
{
	conn_answer(c, "200 OK", "text/html; charset=utf-8", "Content-Length: 26\r\n",
		STR("<html>hello, world</html>\n"));
}

static void silent_begin(struct load_conn *c)
{
	conn_after(c, 3600 * NS_PER_S);
}

static void hang_up_begin(struct load_conn *c)
{
	conn_end(c);
}

static void garbage_begin(struct load_conn *c)
{
	c->close_after = true;
	c->body = STR("220 mail.example.com ESMTP\r\n\r\n");
	conn_send(c);
}

static void error_begin(struct load_conn *c)
{
	conn_answer(
		c, "500 Internal Server Error", "text/plain", "Content-Length: 6\r\n", STR("oh no\n"));
}

const struct hostile_way hostile_ways[] = {
	{ "drip", drip_begin, drip_next },
	{ "endless", endless_begin, endless_next },
	{ "reset", reset_begin, reset_next },
	{ "redirects", redirect_begin, NULL },
	{ "wrong_type", wrong_type_begin, NULL },
	{ "huge", huge_begin, huge_next },
	{ "silent", silent_begin, conn_end },
	{ "hang_up", hang_up_begin, NULL },
	{ "garbage", garbage_begin, NULL },
	{ "error", error_begin, NULL },
};
const size_t hostile_ways_n = sizeof(hostile_ways) / sizeof(hostile_ways[0]);
