/*
 * fuzz: base/net
 * Stored labels from damaged bytes: either an error, or a set that keeps the promises of struct
 * labels and encodes to bytes that give the same set again. Its values then serve as patterns.
 */
#include <assert.h>

#include "base/labels.h"
#include "tests/fuzz/fuzz.h"

static void check_set(struct arena *a, struct labels ls)
{
	struct buf bytes = { 0 }, text = { 0 };
	struct labels back;
	struct cursor in;
	size_t i;

	for (i = 0; i < ls.n; i++) {
		assert(ls.v[i].value.len > 0);
		assert(i == 0 || str_cmp(ls.v[i - 1].name, ls.v[i].name) < 0);
		assert(str_eq(labels_get(ls, ls.v[i].name), ls.v[i].value));
	}
	labels_encode(&bytes, ls);
	in = cursor_of(buf_str(&bytes));
	if (!labels_decode(a, &in, &back, NULL)) {
		assert(cursor_left(&in) == 0 && labels_eq(ls, back));
		assert(labels_hash(ls) == labels_hash(back));
	}
	labels_print(&text, ls);
	assert(str_is_utf8(buf_str(&text)));
	buf_release(&bytes);
	buf_release(&text);
}

/* A pattern that compiles means the same with and without the short cut for literals. */
static void check_pattern(struct str pattern, struct str text)
{
	struct str group[REGEX_GROUPS_MAX];
	struct buf out = { 0 };
	struct regex *re;
	struct matcher m;
	struct err err = { 0 }, why;
	enum err_code rc = regex_compile(pattern, REGEX_ANCHORED | REGEX_GROUPS, &re, &why);

	if (matcher_init(&m, MATCH_RE, STR("x"), pattern, &err) || rc) {
		assert(rc == err.code && !strcmp(err.msg, why.msg));
		return;
	}
	assert(matcher_test(&m, text) == regex_groups(re, text, group));
	if (group[0].ptr)
		regex_expand(re, pattern, group, &out);
	buf_release(&out);
	regex_free(re);
	matcher_release(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor in = { data, data + size, false };
	struct labels ls;
	struct arena a;
	size_t i;

	arena_init(&a, 1u << 20);
	if (!labels_decode(&a, &in, &ls, NULL)) {
		check_set(&a, ls);
		for (i = 0; i < ls.n && i < 4; i++)
			check_pattern(ls.v[i].value, ls.v[i].name);
	}
	arena_release(&a);
	return 0;
}
