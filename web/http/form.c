#include "web/http/form.h"

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* "+" is a space; a "%" that two hex digits do not follow stands for itself. */
static bool decode(struct arena *a, struct str s, struct str *out)
{
	char *p = arena_alloc_raw(a, s.len + 1, 1);
	size_t n = 0;

	if (!p)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		int hi = s.ptr[i] == '%' && i + 2 < s.len ? hex(s.ptr[i + 1]) : -1;
		int lo = hi >= 0 ? hex(s.ptr[i + 2]) : -1;

		if (lo >= 0) {
			p[n++] = (char)(hi * 16 + lo);
			i += 2;
		} else {
			p[n++] = s.ptr[i] == '+' ? ' ' : s.ptr[i];
		}
	}
	p[n] = '\0';
	*out = (struct str){ p, n };
	return true;
}

static bool add_pair(struct http_in *in, struct str pair)
{
	const char *eq = memchr(pair.ptr, '=', pair.len);
	struct str name = { pair.ptr, eq ? (size_t)(eq - pair.ptr) : pair.len };
	struct str value = eq ? (struct str){ eq + 1, pair.len - name.len - 1 } : STR("");
	struct http_param *p;

	if (in->params_n == HTTP_PARAMS_MAX) {
		in->params_over = true;
		return true;
	}
	p = &in->params[in->params_n];
	if (!decode(&in->arena, name, &p->name) || !decode(&in->arena, value, &p->value))
		return false;
	in->params_n++;
	return true;
}

bool http_form_parse(struct http_in *in, struct str text)
{
	if (!in->params && !(in->params = arena_array(&in->arena, struct http_param, HTTP_PARAMS_MAX)))
		return false;
	while (text.len) {
		const char *amp = memchr(text.ptr, '&', text.len);
		size_t n = amp ? (size_t)(amp - text.ptr) : text.len;

		if (n && !add_pair(in, (struct str){ text.ptr, n }))
			return false;
		n += amp != NULL;
		text = (struct str){ text.ptr + n, text.len - n };
	}
	return true;
}
