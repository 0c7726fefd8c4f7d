#include "web/http/exchange.h"

#include <stdlib.h>
#include <sys/socket.h>

/* ---- answers that are sent while they are written ---- */

static void http_exchange_wake_connection(void *ctx)
{
	MHD_resume_connection(((struct exchange *)ctx)->connection);
}

void exchange_sleep(void *ctx)
{
	MHD_suspend_connection(((struct exchange *)ctx)->connection);
}

ssize_t exchange_read_stream(void *ctx, uint64_t at, char *to, size_t max)
{
	struct exchange *x = ctx;
	ssize_t n = stream_read(&x->stream, to, max, exchange_sleep);

	(void)at;
	return n == STREAM_END ? MHD_CONTENT_READER_END_OF_STREAM :
		n == STREAM_FAILED ? MHD_CONTENT_READER_END_WITH_ERROR :
							 n;
}

void exchange_end_stream(struct exchange *e)
{
	bool failed = e->out.failed;

	if (!failed)
		failed = http_flush(&e->in, &e->out, NULL) != ERR_OK;
	stream_end(&e->stream, failed);
}

/* ---- the head of a request ---- */

static enum http_method http_exchange_method_of(const char *method)
{
	for (enum http_method m = HTTP_GET; m < HTTP_OTHER; m <<= 1)
		if (!strcmp(method, http_method_name(m)))
			return m;
	return HTTP_OTHER;
}

static struct str http_exchange_keep(struct http_in *in, struct str s)
{
	struct str copy = str_dup(&in->arena, s);

	in->no_memory |= !copy.ptr;
	return copy;
}

static struct str exchange_header_of(struct exchange *e, const char *name)
{
	const char *v = MHD_lookup_connection_value(e->connection, MHD_HEADER_KIND, name);

	return v ? http_exchange_keep(&e->in, str_of(v)) : STR("");
}

/*
 * Headers of one meaning. We would take the first one, and whoever is in front of this server
 * perhaps the last one: as another user, another host, another end of the body.
 */
static const char *const exchange_once[] = { "Authorization", "Host", "Content-Length",
	"Transfer-Encoding", "Content-Type", "Content-Encoding", "Origin", "Sec-Fetch-Site",
	"Connect-Protocol-Version", "Connect-Timeout-Ms" };

struct exchange_seen {
	unsigned names; /* a bit for each of exchange_once */
	const char *repeated;
};

static enum MHD_Result exchange_see_header(void *ctx, enum MHD_ValueKind kind, const char *key,
	size_t key_len, const char *value, size_t value_len)
{
	struct exchange_seen *seen = ctx;

	(void)kind;
	(void)value;
	(void)value_len;
	for (unsigned i = 0; i < sizeof(exchange_once) / sizeof(exchange_once[0]); i++) {
		if (!str_eq_nocase((struct str){ key, key_len }, str_of(exchange_once[i])))
			continue;
		if (seen->names & 1u << i)
			seen->repeated = exchange_once[i];
		seen->names |= 1u << i;
	}
	return seen->repeated ? MHD_NO : MHD_YES;
}

static const char *exchange_repeated(struct exchange *e)
{
	struct exchange_seen seen = { 0 };

	MHD_get_connection_values_n(e->connection, MHD_HEADER_KIND, exchange_see_header, &seen);
	return seen.repeated;
}

static void exchange_remote_of(struct exchange *e)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		e->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	char text[HTTP_REMOTE_BYTES];

	if (!info || !info->client_addr)
		return;
	http_client_of(info->client_addr, &e->in.client, text);
	e->in.remote = http_exchange_keep(&e->in, str_of(text));
}

static enum MHD_Result http_exchange_add_argument(void *ctx, enum MHD_ValueKind kind,
	const char *key, size_t key_len, const char *value, size_t value_len)
{
	struct http_in *in = ctx;
	struct http_param *p;

	(void)kind;
	if (!in->params &&
		!(in->params = arena_array(&in->arena, struct http_param, HTTP_PARAMS_MAX))) {
		in->no_memory = true;
		return MHD_NO;
	}
	if (in->params_n == HTTP_PARAMS_MAX) {
		in->params_over = true;
		return MHD_NO;
	}
	p = &in->params[in->params_n++];
	p->name = http_exchange_keep(in, (struct str){ key, key_len });
	p->value = http_exchange_keep(in, (struct str){ value ? value : "", value_len });
	return MHD_YES;
}

static enum MHD_Result http_exchange_keep_header(void *ctx, enum MHD_ValueKind kind,
	const char *key, size_t key_len, const char *value, size_t value_len)
{
	(void)kind;
	http_keep_header(
		ctx, (struct str){ key, key_len }, (struct str){ value ? value : "", value_len });
	return MHD_YES;
}

struct exchange *exchange_open(
	struct http_server *s, struct MHD_Connection *connection, const char *url, const char *method)
{
	struct exchange *x = calloc(1, sizeof(*x));
	const union MHD_ConnectionInfo *info;

	if (!x)
		return NULL;
	x->server = s;
	x->connection = connection;
	x->admission = HTTP_ADMIT_LATER;
	x->in.body_bytes_max = s->o.body_bytes_max;
	arena_init(&x->in.arena, HTTP_REQUEST_ARENA_BYTES);
	stream_init(&x->stream, http_exchange_wake_connection, x);
	intake_init(&x->intake, http_exchange_wake_connection, x);
	x->in.intake = &x->intake;
	x->out.stream = &x->stream;
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	x->conn = info ? info->socket_context : NULL;
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	x->in.tls_session = info ? info->tls_session : NULL;
	x->in.method = http_exchange_method_of(method);
	x->in.path = http_exchange_keep(&x->in, str_of(url));
	x->in.accept_encoding = exchange_header_of(x, "Accept-Encoding");
	x->in.authorization = exchange_header_of(x, "Authorization");
	x->in.content_type = exchange_header_of(x, "Content-Type");
	x->in.content_encoding = exchange_header_of(x, "Content-Encoding");
	x->in.if_none_match = exchange_header_of(x, "If-None-Match");
	x->in.origin = exchange_header_of(x, "Origin");
	x->in.fetch_site = exchange_header_of(x, "Sec-Fetch-Site");
	x->in.host = exchange_header_of(x, "Host");
	x->in.user_agent = exchange_header_of(x, "User-Agent");
	x->in.accept = exchange_header_of(x, "Accept");
	x->in.connect_version = exchange_header_of(x, "Connect-Protocol-Version");
	x->in.connect_timeout_ms = exchange_header_of(x, "Connect-Timeout-Ms");
	(void)!str_to_u64(exchange_header_of(x, "Content-Length"), &x->in.body_announced);
	x->in.repeated = exchange_repeated(x);
	exchange_remote_of(x);
	MHD_get_connection_values_n(connection, MHD_HEADER_KIND, http_exchange_keep_header, &x->in);
	MHD_get_connection_values_n(
		connection, MHD_GET_ARGUMENT_KIND, http_exchange_add_argument, &x->in);
	return x;
}

/* ---- the body ---- */

/* So much of a refused body is read and dropped, so that its sender reads the answer. */
#define DISCARD_BYTES_MAX (64u << 20)

bool exchange_has_header(const struct exchange *e, const char *name)
{
	return MHD_lookup_connection_value(e->connection, MHD_HEADER_KIND, name) != NULL;
}

bool exchange_has_body(const struct exchange *e)
{
	const char *length = MHD_lookup_connection_value(
		e->connection, MHD_HEADER_KIND, "Content-Length");

	return exchange_has_header(e, "Transfer-Encoding") || (length && strcmp(length, "0") != 0);
}

bool exchange_has_no_end(const struct exchange *e)
{
	return e->in.repeated &&
		(!strcmp(e->in.repeated, "Content-Length") || !strcmp(e->in.repeated, "Transfer-Encoding"));
}

bool exchange_is_too_long(const struct exchange *e, uint64_t taken)
{
	return e->in.body_announced > taken && e->in.body_announced - taken > DISCARD_BYTES_MAX;
}

bool exchange_take(struct exchange *e, const char *data, size_t n)
{
	size_t most = e->in.by_pieces && e->in.body_bytes_max > DISCARD_BYTES_MAX ?
		e->in.body_bytes_max :
		DISCARD_BYTES_MAX;

	if (e->admission == HTTP_ADMITTED && !e->in.by_pieces)
		body_add(&e->server->bodies, &e->body, e->in.client, data, n, e->in.body_bytes_max);
	if (e->admission == HTTP_ADMITTED && !e->in.by_pieces && !e->body.refused)
		return true;
	e->discarded += n;
	return e->discarded <= most;
}

void exchange_close(struct exchange *e)
{
	stream_release(&e->stream);
	intake_release(&e->intake);
	http_user_leave(&e->in.user);
	arena_release(&e->in.arena);
	buf_release(&e->body.data);
	buf_release(&e->out.body);
	free(e);
}
