/*
 * Compares our answers with those of Prometheus 2.42 about the same numbers: oracle/record.mjs
 * asked it and wrote oracle/answers.txt. Labels, errors of evaluation and the order of sorted
 * elements must be the same; values may differ in their last bits.
 */
#include <math.h>

#include "tests/oracle.h"
#include "tests/promql/world.h"
#include "tests/tsdb/read/numbers.h"

static struct str str_after(struct str s, size_t n)
{
	return (struct str){ s.ptr + n, s.len - n };
}

static char *text_of(struct arena *a, struct str s)
{
	char *text = arena_alloc_raw(a, s.len + 1, 1);

	memcpy(text, s.ptr, s.len);
	text[s.len] = '\0';
	return text;
}

static struct str next_line(struct str *rest)
{
	const char *end = memchr(rest->ptr, '\n', rest->len);
	struct str line = { rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len };
	size_t n = line.len + (end != NULL);

	*rest = (struct str){ rest->ptr + n, rest->len - n };
	return line;
}

static void put_minutes(struct world *w, char *line)
{
	char *at = strchr(line, ' ');
	struct db_number v[16];
	struct labels labels;
	struct err err;
	size_t n = 0;

	*at = '\0';
	labels = labels_of(&w->arena, line);
	while (at) {
		v[n] = (struct db_number){ labels, w->t0 + (int64_t)n * NS_PER_MIN, strtod(at + 1, &at) };
		n++;
		at = *at == ' ' ? at : NULL;
	}
	CHECK_OK(numbers_wait(w->db, v, n, &err), &err);
}

static bool same_number(const char *a, const char *b, char **a_end, char **b_end)
{
	double x = strtod(a, a_end), y = strtod(b, b_end);

	if (isnan(x) || isnan(y))
		return isnan(x) && isnan(y);
	return x == y || fabs(x - y) <= 1e-13 * fabs(y);
}

/* "{...} 1" or "{...} 0=1 60=2", with a bare name for the braces or not, or a number. */
static bool same_line(const char *a, const char *b)
{
	const char *brace = strrchr(b, '}'), *blank = strchr(b, ' ');
	size_t labels = brace ? (size_t)(brace + 1 - b) : blank ? (size_t)(blank - b) : 0;
	char *x, *y;

	if (strncmp(a, b, labels) != 0)
		return false;
	for (a += labels, b += labels; *a && *b; a = x, b = y)
		if (!same_number(a + (*a == '='), b + (*b == '='), &x, &y) || x == a || y == b)
			return false;
	return *a == *b;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static size_t split(char *text, char **lines, size_t max)
{
	size_t n = 0;

	for (char *at = text; *at && n < max; n++) {
		lines[n] = at;
		at += strcspn(at, "\n");
		if (*at)
			*at++ = '\0';
	}
	return n;
}

static bool same_answer(char *got, char *want, bool ordered)
{
	char *a[64], *b[64];
	size_t n = split(got, a, 64), m = split(want, b, 64);

	if (m == 1 && !strcmp(b[0], "refused"))
		return n == 1 && !strncmp(a[0], "invalid input: ", 15);
	if (m == 1 && !strncmp(b[0], "error: ", 7))
		return n == 1 && strstr(a[0], b[0] + 7);
	if (n != m)
		return false;
	if (!ordered) {
		qsort(a, n, sizeof(*a), by_text);
		qsort(b, n, sizeof(*b), by_text);
	}
	for (size_t i = 0; i < n; i++)
		if (!same_line(a[i], b[i]))
			return false;
	return true;
}

static void compare(struct world *w, bool range, struct str query, struct str want)
{
	struct query_options o = { .text = query, .t_ns = w->t0 + 5 * NS_PER_MIN };
	struct buf got = { 0 };
	bool ordered = str_has_prefix(query, STR("sort")) || str_has_prefix(query, STR("topk"));

	if (range)
		o = (struct query_options){ .text = query,
			.start_ns = w->t0,
			.end_ns = w->t0 + 5 * NS_PER_MIN,
			.step_ns = NS_PER_MIN,
			.has_span = true };
	world_answer(w, o);
	buf_add_str(&got, buf_str(&w->text));
	buf_add_char(&w->text, '\0');
	if (!same_answer(w->text.ptr, text_of(&w->arena, want), ordered && !range))
		CHECK_FAIL("%s" STR_FMT "\n    is   " STR_FMT "\n    want " STR_FMT,
			range ? "step by step: " : "", STR_ARG(query), STR_ARG(buf_str(&got)), STR_ARG(want));
	buf_release(&got);
}

TEST(answers_of_prometheus)
{
	struct buf file = { 0 }, want = { 0 };
	struct str rest, line, query;
	struct world w;
	size_t n = 0;
	bool range;

	REQUIRE(oracle_read(&file, "tests/promql/oracle", "answers.txt"));
	REQUIRE(world_open(&w, NULL));
	for (rest = buf_str(&file); rest.len > 0;) {
		line = next_line(&rest);
		if (str_has_prefix(line, STR("number "))) {
			put_minutes(&w, text_of(&w.arena, str_after(line, 7)));
			continue;
		}
		range = str_has_prefix(line, STR("range "));
		query = str_after(line, range ? 6 : 3);
		buf_clear(&want);
		while (rest.len > 0 && rest.ptr[0] == '\t') {
			buf_add_cstr(&want, want.len ? "\n" : "");
			buf_add_str(&want, str_after(next_line(&rest), 1));
		}
		compare(&w, range, query, buf_str(&want));
		n++;
	}
	CHECK(n > 400);
	buf_release(&file);
	buf_release(&want);
	world_close(&w);
}
