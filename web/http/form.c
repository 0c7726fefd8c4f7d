#include "web/http/form.h"

#include "base/net/percent.h"

static bool http_form_decode(struct arena *a, struct str s, struct str *out)
{
	char *p = arena_alloc_raw(a, s.len + 1, 1);
	size_t n;

	if (!p)
		return false;
	n = percent_decode_form(p, s);
	p[n] = '\0';
	*out = (struct str){ p, n };
	return true;
}

static bool http_form_add_pair(struct http_in *in, struct str pair)
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
	if (!http_form_decode(&in->arena, name, &p->name) ||
		!http_form_decode(&in->arena, value, &p->value))
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

		if (n && !http_form_add_pair(in, (struct str){ text.ptr, n }))
			return false;
		n += amp != NULL;
		text = (struct str){ text.ptr + n, text.len - n };
	}
	return true;
}
