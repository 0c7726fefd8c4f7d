#include "tests/discovery/sources/dns_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define NAME_MAX_BYTES 256
#define CHAIN_MAX 8

static const struct {
	const char *name;
	unsigned type;
} types[] = { { "A", 1 }, { "NS", 2 }, { "CNAME", 5 }, { "MX", 15 }, { "AAAA", 28 },
	{ "SRV", 33 } };

static const char *type_name(unsigned type)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].type == type)
			return types[i].name;
	return "?";
}

struct line {
	char name[NAME_MAX_BYTES], type[16], data[NAME_MAX_BYTES];
};

/* The next line of a zone; false at its end. */
static bool next_line(const char **at, struct line *out)
{
	const char *end = strchr(*at, '\n');
	char text[1024];
	int n;

	if (!**at)
		return false;
	n = end ? (int)(end - *at) : (int)strlen(*at);
	snprintf(text, sizeof(text), "%.*s", n, *at);
	*out = (struct line){ 0 };
	sscanf(text, "%255s %15s %255[^\n]", out->name, out->type, out->data);
	*at += n + (end != NULL);
	return true;
}

static bool zone_has(const char *zone, const char *name, const char *type)
{
	struct line l;

	while (next_line(&zone, &l))
		if (strcasecmp(l.name, name) == 0 && (!type || strcmp(l.type, type) == 0))
			return true;
	return false;
}

/* ---- bytes ---- */

static void add_u16(struct buf *b, unsigned v)
{
	buf_add_char(b, (char)(v >> 8));
	buf_add_char(b, (char)v);
}

static void add_name(struct buf *b, const char *name)
{
	size_t n;

	for (; *name && strcmp(name, ".") != 0; name += n + (name[n] == '.')) {
		n = strcspn(name, ".");
		buf_add_char(b, (char)n);
		buf_add(b, name, n);
	}
	buf_add_char(b, '\0');
}

static void add_record(struct buf *b, const struct line *l, unsigned type)
{
	char target[NAME_MAX_BYTES] = "";
	unsigned char address[16];
	struct buf data = { 0 };
	unsigned port;

	if (type == 1 && inet_pton(AF_INET, l->data, address) == 1)
		buf_add(&data, address, 4);
	else if (type == 28 && inet_pton(AF_INET6, l->data, address) == 1)
		buf_add(&data, address, 16);
	else if (type == 33 && sscanf(l->data, "%u %255s", &port, target) == 2) {
		add_u16(&data, 0);
		add_u16(&data, 0);
		add_u16(&data, port);
	} else if (type == 15)
		add_u16(&data, 0);
	if (type != 1 && type != 28)
		add_name(&data, type == 33 ? target : l->data);
	add_name(b, l->name);
	add_u16(b, type);
	add_u16(b, 1);
	add_u16(b, 0);
	add_u16(b, 60);
	add_u16(b, (unsigned)data.len);
	buf_add_str(b, buf_str(&data));
	buf_release(&data);
}

static unsigned add_records(struct buf *b, const char *zone, const char *name, unsigned type)
{
	char current[NAME_MAX_BYTES], next[NAME_MAX_BYTES];
	unsigned n = 0;
	const char *at;
	struct line l;

	snprintf(current, sizeof(current), "%s", name);
	for (int i = 0; i < CHAIN_MAX && current[0]; i++) {
		next[0] = '\0';
		for (at = zone; next_line(&at, &l);) {
			if (strcasecmp(l.name, current) != 0)
				continue;
			if (strcmp(l.type, "CNAME") == 0)
				snprintf(next, sizeof(next), "%s", l.data);
			else if (strcmp(l.type, type_name(type)) != 0)
				continue;
			add_record(b, &l, strcmp(l.type, "CNAME") == 0 ? 5 : type);
			n++;
		}
		memcpy(current, next, sizeof(current));
	}
	return n;
}

/* The question's name and type, and where it ends; 0: none. */
static size_t read_question(const unsigned char *q, size_t len, char *name, unsigned *type)
{
	size_t at = 12, n = 0;

	while (at < len && q[at]) {
		if (q[at] > 63 || at + 1 + q[at] >= len || n + q[at] + 2 > NAME_MAX_BYTES)
			return 0;
		if (n)
			name[n++] = '.';
		memcpy(name + n, q + at + 1, q[at]);
		n += q[at];
		at += 1u + q[at];
	}
	name[n] = '\0';
	if (at + 5 > len)
		return 0;
	*type = (unsigned)q[at + 1] << 8 | q[at + 2];
	return at + 5;
}

/* A question keeps its number when it is asked again because its answer was late. */
static void note_question(
	struct dns_server *s, const unsigned char *q, bool is_tcp, const char *name, unsigned type)
{
	char line[NAME_MAX_BYTES + 64];
	const char *proto = is_tcp ? "tcp" : "udp";

	snprintf(line, sizeof(line), "%s %s %s %u\n", proto, name, type_name(type),
		(unsigned)q[0] << 8 | q[1]);
	if (str_find(buf_str(&s->numbered), str_of(line)) >= 0)
		return;
	buf_add_cstr(&s->numbered, line);
	buf_printf(&s->asked, "%s %s %s\n", proto, name, type_name(type));
}

/* False: nothing is said. */
static bool answer(
	struct dns_server *s, bool is_tcp, const unsigned char *q, size_t len, struct buf *out)
{
	char name[NAME_MAX_BYTES];
	unsigned type, n = 0, rcode = 0;
	const char *zone;
	bool cut;
	size_t end = read_question(q, len, name, &type);

	buf_clear(out);
	if (!end)
		return false;
	mutex_lock(&s->lock);
	zone = s->zone;
	note_question(s, q, is_tcp, name, type);
	mutex_unlock(&s->lock);
	if (zone_has(zone, name, "SILENT"))
		return false;
	if (zone_has(zone, name, "SERVFAIL"))
		rcode = 2;
	else if (zone_has(zone, name, "REFUSED"))
		rcode = 5;
	else if (!zone_has(zone, name, NULL))
		rcode = 3;
	cut = !is_tcp && zone_has(zone, name, "CUT");
	buf_add(out, q, end);
	out->ptr[2] = (char)(cut ? 0x87 : 0x85);
	out->ptr[3] = (char)(0x80 | rcode);
	memset(out->ptr + 6, 0, 6);
	if (zone_has(zone, name, "GARBAGE")) {
		for (size_t i = 12; i < out->len; i++)
			out->ptr[i] = (char)0xff;
		out->ptr[7] = 1;
	} else if (!cut) {
		n = add_records(out, zone, name, type);
		n += zone_has(zone, name, "LIES") ? 3 : 0;
		out->ptr[6] = (char)(n >> 8);
		out->ptr[7] = (char)n;
	}
	return true;
}

/* ---- sockets ---- */

static bool read_whole(int fd, void *p, size_t n)
{
	return recv(fd, p, n, MSG_WAITALL) == (ssize_t)n;
}

static void serve_tcp(struct dns_server *s)
{
	struct timeval patience = { .tv_sec = 2 };
	static unsigned char q[65536];
	struct buf out = { 0 };
	unsigned char len[2];
	int fd = accept4(s->tcp, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	while (read_whole(fd, len, 2) && read_whole(fd, q, (size_t)len[0] << 8 | len[1]) &&
		answer(s, true, q, (size_t)len[0] << 8 | len[1], &out)) {
		len[0] = (unsigned char)(out.len >> 8);
		len[1] = (unsigned char)out.len;
		if (send(fd, len, 2, MSG_NOSIGNAL | MSG_MORE) != 2 ||
			send(fd, out.ptr, out.len, MSG_NOSIGNAL) != (ssize_t)out.len)
			break;
	}
	close(fd);
	buf_release(&out);
}

static void serve_udp(struct dns_server *s)
{
	struct sockaddr_in from;
	socklen_t from_len = sizeof(from);
	unsigned char q[4096];
	struct buf out = { 0 };
	ssize_t n = recvfrom(s->udp, q, sizeof(q), 0, (struct sockaddr *)&from, &from_len);

	if (n > 0 && answer(s, false, q, (size_t)n, &out))
		sendto(s->udp, out.ptr, out.len, 0, (struct sockaddr *)&from, from_len);
	buf_release(&out);
}

static void run(void *ctx)
{
	struct dns_server *s = ctx;
	struct pollfd p[3] = { { s->udp, POLLIN, 0 }, { s->tcp, POLLIN, 0 },
		{ s->stop[0], POLLIN, 0 } };

	while (poll(p, 3, -1) >= 0 && !p[2].revents) {
		if (p[0].revents)
			serve_udp(s);
		if (p[1].revents)
			serve_tcp(s);
	}
}

bool dns_server_start(struct dns_server *s, const char *zone)
{
	return dns_server_start_at(s, "127.0.0.1", 0, zone);
}

bool dns_server_start_at(struct dns_server *s, const char *ip, unsigned port, const char *zone)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	socklen_t len = sizeof(sa);
	struct err err;

	*s = (struct dns_server){ .zone = zone };
	inet_pton(AF_INET, ip, &sa.sin_addr);
	for (int i = 0; i < 20; i++) { /* until a port is free for both */
		sa.sin_port = htons((uint16_t)port);
		s->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		s->tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (s->udp >= 0 && s->tcp >= 0 && !bind(s->udp, (struct sockaddr *)&sa, sizeof(sa)) &&
			!getsockname(s->udp, (struct sockaddr *)&sa, &len) &&
			!bind(s->tcp, (struct sockaddr *)&sa, sizeof(sa)) && !listen(s->tcp, 16))
			break;
		close(s->udp);
		close(s->tcp);
		s->udp = -1;
	}
	if (s->udp < 0 || pipe(s->stop))
		return false;
	s->port = ntohs(sa.sin_port);
	snprintf(s->address, sizeof(s->address), "%s:%u", ip, s->port);
	mutex_init(&s->lock);
	return thread_start(&s->thread, "dns", run, s, &err) == ERR_OK;
}

void dns_server_zone(struct dns_server *s, const char *zone)
{
	mutex_lock(&s->lock);
	s->zone = zone;
	mutex_unlock(&s->lock);
}

unsigned dns_server_asked(struct dns_server *s, const char *question)
{
	unsigned n = 0;
	const char *at;
	size_t len;

	mutex_lock(&s->lock);
	buf_add_char(&s->asked, '\0');
	s->asked.len--;
	for (at = s->asked.ptr; *at; at += len + 1) {
		len = strcspn(at, "\n");
		n += !*question || (strlen(question) == len && strncmp(at, question, len) == 0);
	}
	mutex_unlock(&s->lock);
	return n;
}

void dns_server_stop(struct dns_server *s)
{
	close(s->stop[1]);
	thread_join(&s->thread);
	close(s->stop[0]);
	close(s->udp);
	close(s->tcp);
	buf_release(&s->asked);
	buf_release(&s->numbered);
	mutex_destroy(&s->lock);
}
