#include "web/http/http.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

#include "web/http/intake.h"
#include "web/http/stream.h"

const char *http_method_name(enum http_method method)
{
	switch (method) {
	case HTTP_GET:
		return "GET";
	case HTTP_HEAD:
		return "HEAD";
	case HTTP_POST:
		return "POST";
	case HTTP_PUT:
		return "PUT";
	case HTTP_DELETE:
		return "DELETE";
	case HTTP_OPTIONS:
		return "OPTIONS";
	case HTTP_OTHER:
		break;
	}
	return "";
}

bool http_same_client(struct http_sender a, struct http_sender b)
{
	return !memcmp(a.bytes, b.bytes, sizeof(a.bytes));
}

/* On a socket for both protocols IPv4 clients have the address ::ffff:a.b.c.d. */
static void http_set_client_v6(struct http_sender *h, const struct in6_addr *a)
{
	bool mapped = IN6_IS_ADDR_V4MAPPED(a);

	memcpy(h->bytes, a->s6_addr + (mapped ? 12 : 0), mapped ? 4 : 8);
	h->bytes[8] = mapped ? 4 : 6;
}

void http_client_of(const struct sockaddr *a, struct http_sender *out, char text[HTTP_REMOTE_BYTES])
{
	char host[INET6_ADDRSTRLEN] = "";

	memset(out, 0, sizeof(*out));
	text[0] = '\0';
	if (a->sa_family == AF_INET) {
		const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)a;

		memcpy(out->bytes, &v4->sin_addr, sizeof(v4->sin_addr));
		out->bytes[8] = 4;
		inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
		snprintf(text, HTTP_REMOTE_BYTES, "%s:%u", host, ntohs(v4->sin_port));
	} else if (a->sa_family == AF_INET6) {
		const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)a;

		http_set_client_v6(out, &v6->sin6_addr);
		inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
		snprintf(text, HTTP_REMOTE_BYTES, "[%s]:%u", host, ntohs(v6->sin6_port));
	}
}

struct str http_remote_host(struct str remote)
{
	static const struct str mapped = STR("::ffff:");
	size_t n = remote.len;

	while (n && remote.ptr[n - 1] != ':')
		n--;
	if (!n)
		return STR("");
	remote.len = n - 1;
	if (remote.len >= 2 && remote.ptr[0] == '[')
		remote = (struct str){ remote.ptr + 1, remote.len - 2 };
	if (str_has_prefix(remote, mapped) && memchr(remote.ptr, '.', remote.len))
		remote = (struct str){ remote.ptr + mapped.len, remote.len - mapped.len };
	return remote;
}

bool http_type_is(struct str type, const char *want)
{
	ptrdiff_t semicolon = str_find(type, STR(";"));

	if (semicolon >= 0)
		type.len = (size_t)semicolon;
	return str_eq_nocase(str_trim(type), str_of(want));
}

bool http_next_param(const struct http_in *in, const char *name, size_t *at, struct str *value)
{
	assert(!in->has_param || in->has_param(in, str_of(name)));
	while (*at < in->params_n) {
		const struct http_param *p = &in->params[(*at)++];

		if (!str_is(p->name, name))
			continue;
		*value = p->value;
		return true;
	}
	return false;
}

struct str http_param(const struct http_in *in, const char *name)
{
	struct str value = { NULL, 0 };
	size_t at = 0;

	return http_next_param(in, name, &at, &value) ? value : (struct str){ NULL, 0 };
}

bool http_keeps_header(struct str name)
{
	return str_has_prefix_nocase(name, STR("X-")) || str_has_prefix_nocase(name, STR("Remote-"));
}

void http_keep_header(struct http_in *in, struct str name, struct str value)
{
	struct http_param *p;

	if (!http_keeps_header(name) && !str_has_prefix_nocase(name, STR("Mcp-")))
		return;
	if (in->kept_n == HTTP_KEPT_HEADERS_MAX) {
		in->kept_over = true;
		return;
	}
	if (!in->kept)
		in->kept = arena_array(&in->arena, struct http_param, HTTP_KEPT_HEADERS_MAX);
	if (!in->kept) {
		in->no_memory = true;
		return;
	}
	p = &in->kept[in->kept_n++];
	p->name = str_dup(&in->arena, name);
	p->value = str_dup(&in->arena, value);
	in->no_memory |= !p->name.ptr || !p->value.ptr;
}

struct str http_kept_header(const struct http_in *in, struct str name, size_t *times)
{
	struct str value = STR("");

	*times = 0;
	for (size_t i = 0; i < in->kept_n; i++)
		if (str_eq_nocase(in->kept[i].name, name) && !(*times)++)
			value = in->kept[i].value;
	return value;
}

void http_add_header(struct http_out *out, const char *name, struct str value)
{
	if (out->headers_n < HTTP_HEADERS_MAX)
		out->headers[out->headers_n++] = (struct http_header){ name, value };
}

void http_default_header(struct http_out *out, const char *name, struct str value)
{
	for (size_t i = 0; i < out->headers_n; i++)
		if (str_eq_nocase(str_of(out->headers[i].name), str_of(name)))
			return;
	http_add_header(out, name, value);
}

void http_text(struct http_out *out, int status, const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buf_clear(&out->body);
	out->fixed_body = NULL;
	out->encoded = false;
	out->status = status;
	out->content_type = "text/plain; charset=utf-8";
	buf_add_cstr(&out->body, text);
	buf_add_char(&out->body, '\n');
}

bool http_is_streaming(const struct http_out *out)
{
	return out->stream && stream_started(out->stream);
}

enum err_code http_flush(struct http_in *in, struct http_out *out, struct err *err)
{
	enum http_coding coding = out->encoded ? HTTP_PLAIN : http_coding_of(in);
	enum err_code rc;

	if (!out->stream)
		return ERR_OK;
	if (buf_failed(&out->body))
		return err_nomem(err, "answer");
	if (!stream_started(out->stream))
		http_add_coding(out, coding);
	rc = stream_write(out->stream, buf_str(&out->body), coding, &in->canceled, err);
	buf_clear(&out->body);
	return rc;
}

enum err_code http_read(struct http_in *in, struct str *piece, struct err *err)
{
	*piece = STR("");
	return in->intake ? intake_read(in->intake, in->body_bytes_max, &in->canceled, piece, err) :
						ERR_OK;
}
