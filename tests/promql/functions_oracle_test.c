/*
 * Compares our answers with those of Prometheus 3 about the same numbers: oracle/record.mjs asked
 * it and wrote oracle/answers.txt. Labels, errors of evaluation, infos and the order of sorted
 * elements must be the same; values may differ in their last bits. EPI_ANSWERS=FILE compares with
 * another such file.
 */
#include <math.h>

#include "tests/oracle.h"
#include "tests/promql/script.h"
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

/* "number STEP LABELS VALUE ...": from 0 on. */
static void put_numbers(struct world *w, struct str rest)
{
	double step = strtod(text_of(&w->arena, script_word(&rest)), NULL);
	struct db_number *v = arena_array(&w->arena, struct db_number, rest.len + 1);
	struct labels labels;
	struct str word;
	struct err err;
	size_t n = 0;

	REQUIRE(script_labels(&w->arena, script_word(&rest), &labels));
	for (int64_t i = 0; (word = script_word(&rest)).len > 0; i++) {
		if (str_is(word, "_"))
			continue;
		v[n++] = (struct db_number){ labels, w->t0 + llround((double)i * step * 1e9),
			str_is(word, "stale") ? number_of_bits(NUMBER_STALE_BITS) :
									strtod(text_of(&w->arena, word), NULL) };
	}
	if (n)
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

	if (!strcmp(a, b))
		return true;
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

static int64_t take_time(struct world *w, struct str *rest)
{
	return w->t0 + llround(strtod(text_of(&w->arena, script_word(rest)), NULL) * 1e9);
}

/* "at TIME QUERY" or "range START END STEP QUERY". */
static void compare(struct world *w, struct str line, struct str want)
{
	struct query_options o = { 0 };
	struct str rest = line;
	struct buf got = { 0 };
	bool range = str_is(script_word(&rest), "range"), ordered;

	if (range) {
		o.has_span = true;
		o.start_ns = take_time(w, &rest);
		o.end_ns = take_time(w, &rest);
		o.step_ns = take_time(w, &rest) - w->t0;
	} else {
		o.t_ns = take_time(w, &rest);
	}
	o.text = str_trim(rest);
	ordered = !range &&
		(str_has_prefix(o.text, STR("sort")) ||
			str_has_prefix(o.text, STR("topk")) || str_has_prefix(o.text, STR("bottomk")));
	world_answer(w, o);
	buf_add_str(&got, buf_str(&w->text));
	buf_add_char(&w->text, '\0');
	if (!same_answer(w->text.ptr, text_of(&w->arena, want), ordered))
		CHECK_FAIL(STR_FMT "\n    is   " STR_FMT "\n    want " STR_FMT, STR_ARG(line),
			STR_ARG(buf_str(&got)), STR_ARG(want));
	buf_release(&got);
}

static void open_world(struct world *w)
{
	struct db_options o;

	db_options_default(&o);
	o.too_old_ns = 1000 * NS_PER_DAY; /* series come one after the other */
	REQUIRE(world_open_over(w, o, NULL));
	w->t0 = INT64_C(1209600000) * NS_PER_S; /* as oracle/main.go */
	w->tells_infos = true;
}

TEST(answers_of_prometheus)
{
	const char *other = getenv("EPI_ANSWERS");
	struct buf file = { 0 }, want = { 0 };
	struct str rest, line;
	struct world w;
	size_t n = 0;

	REQUIRE(other ? oracle_read(&file, ".", other) :
					oracle_read(&file, "tests/promql/oracle", "answers.txt"));
	open_world(&w);
	for (rest = buf_str(&file); rest.len > 0;) {
		line = next_line(&rest);
		if (str_is(line, "clear")) {
			world_close(&w);
			open_world(&w);
			continue;
		}
		if (str_has_prefix(line, STR("number "))) {
			put_numbers(&w, str_after(line, 7));
			continue;
		}
		buf_clear(&want);
		while (rest.len > 0 && rest.ptr[0] == '\t') {
			buf_add_cstr(&want, want.len ? "\n" : "");
			buf_add_str(&want, str_after(next_line(&rest), 1));
		}
		compare(&w, line, buf_str(&want));
		n++;
	}
	CHECK(other || n > 400);
	buf_release(&file);
	buf_release(&want);
	world_close(&w);
}
