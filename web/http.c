#include "web/http.h"

#include <stdarg.h>
#include <stdio.h>

struct str http_param(const struct http_in *in, const char *name)
{
	for (size_t i = 0; i < in->params_n; i++)
		if (str_is(in->params[i].name, name))
			return in->params[i].value;
	return (struct str){ NULL, 0 };
}

bool http_has_param(const struct http_in *in, const char *name)
{
	return http_param(in, name).ptr != NULL;
}

void http_add_header(struct http_out *out, const char *name, struct str value)
{
	if (out->headers_n < HTTP_HEADERS_MAX)
		out->headers[out->headers_n++] = (struct http_header){ name, value };
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
