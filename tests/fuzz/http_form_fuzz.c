/*
 * fuzz: web
 * A form of any bytes: as many pairs as "&" part, none longer than what it was decoded from, each
 * ending in NUL, and encoding what was decoded gives the same pairs again.
 */
#include <assert.h>

#include "tests/fuzz/fuzz.h"
#include "web/http/form.h"

static void encode(struct buf *out, struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		buf_printf(out, "%%%02X", (unsigned char)s.ptr[i]);
}

static void check_again(const struct http_in *in)
{
	struct http_in again = { 0 };
	struct buf text = { 0 };

	arena_init(&again.arena, HTTP_REQUEST_ARENA_BYTES);
	for (size_t i = 0; i < in->params_n; i++) {
		if (i)
			buf_add_char(&text, '&');
		encode(&text, in->params[i].name);
		buf_add_char(&text, '=');
		encode(&text, in->params[i].value);
	}
	assert(http_form_parse(&again, buf_str(&text)));
	assert(again.params_n == in->params_n);
	for (size_t i = 0; i < in->params_n; i++) {
		assert(str_eq(in->params[i].name, again.params[i].name));
		assert(str_eq(in->params[i].value, again.params[i].value));
	}
	buf_release(&text);
	arena_release(&again.arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_in in = { 0 };
	size_t total = 0;

	arena_init(&in.arena, HTTP_REQUEST_ARENA_BYTES);
	if (http_form_parse(&in, (struct str){ (const char *)data, size })) {
		assert(in.params_n <= HTTP_PARAMS_MAX);
		for (size_t i = 0; i < in.params_n; i++) {
			total += in.params[i].name.len + in.params[i].value.len;
			assert(in.params[i].name.ptr[in.params[i].name.len] == '\0');
			assert(
				in.params[i].value.ptr[in.params[i].value.len] == '\0' || !in.params[i].value.len);
		}
		assert(total <= size);
		check_again(&in);
	}
	arena_release(&in.arena);
	return 0;
}
