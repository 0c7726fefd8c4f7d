/*
 * fuzz: web
 * A Warning header of any bytes is read to an end; any texts as warnings give a header that is safe
 * to send, and as many come back.
 */
#include <assert.h>

#include "tests/fuzz/fuzz.h"
#include "web/render/notices.h"

static size_t count(struct str header)
{
	struct buf text = { 0 };
	size_t n = 0, left;
	bool is_info;

	while (left = header.len, notices_read(&header, &is_info, &text)) {
		assert(header.len < left);
		n++;
	}
	buf_release(&text);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str all = { (const char *)data, size }, texts[12];
	struct http_out out = { 0 };
	struct notices n = { .warnings = texts, .infos = texts };
	struct arena a;

	count(all);
	arena_init(&a, 0);
	while (n.warnings_n < 12 && all.len) {
		const char *end = memchr(all.ptr, 0, all.len);
		size_t len = end ? (size_t)(end - all.ptr) : all.len;

		texts[n.warnings_n++] = (struct str){ all.ptr, len };
		all = (struct str){ all.ptr + len + (end != NULL), all.len - len - (end != NULL) };
	}
	n.infos_n = n.warnings_n / 2;
	assert(notices_add_header(&n, &a, &out, NULL) == ERR_OK);
	for (size_t i = 0; i < out.headers_n; i++) {
		struct str v = out.headers[i].value;
		size_t want = n.warnings_n + n.infos_n;

		for (size_t k = 0; k < v.len; k++)
			assert(v.ptr[k] >= ' ' && v.ptr[k] < 0x7f);
		assert(v.len < 3000);
		assert(want > NOTICES_MAX ? count(v) > NOTICES_MAX : count(v) == want);
	}
	arena_release(&a);
	return 0;
}
