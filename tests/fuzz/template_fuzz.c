/*
 * fuzz: promql/rules
 * A template, parsed and rendered: twice the same, within the limits, and text without actions is
 * itself.
 */
#include "promql/rules/template/template.h"
#include "tests/fuzz/fuzz.h"

#define TEXT_MAX 4096u

static enum err_code answer(void *ctx, struct arena *a, struct str expr,
	struct template_sample **out, size_t *n, struct err *err)
{
	*n = expr.len % 4;
	if (!(*out = arena_array(a, struct template_sample, *n + 1)))
		return arena_fail(a, "query", err);
	return ERR_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct label labels[] = { { { "a", 1 }, { "x<y", 3 } },
		{ { "job", 3 }, { "h:1", 3 } } };
	const struct template_data d = { .labels = { labels, 2 },
		.external_url = STR("http://e/p"), .value = 1.5, .query = answer };
	struct str text = { (const char *)data, size };
	const struct template *t;
	struct buf a = { 0 }, b = { 0 };
	struct arena arena;
	struct err err, again;
	enum err_code rc;

	if (size > TEXT_MAX)
		return 0;
	arena_init(&arena, 64u << 20);
	if (!template_parse(&arena, text, &t, &err)) {
		rc = template_render(t, &d, &a, &err);
		require(rc == template_render(t, &d, &b, &again));
		require(str_eq(buf_str(&a), buf_str(&b)));
		require(!rc || str_is(str_of(err.msg), again.msg));
		if (str_find(text, STR("{{")) < 0)
			require(!rc && str_eq(buf_str(&a), text));
	} else {
		require(err.msg[0] != '\0');
	}
	buf_release(&a);
	buf_release(&b);
	arena_release(&arena);
	return 0;
}
