/* Values, metrics and stacks as the files of `epitool test rules` write them. */
#include <math.h>
#include <stdlib.h>

#include "base/quote.h"
#include "cmd/epitool/test_rules/file.h"
#include "promql/syntax/parse.h"
#include "tsdb/columns/number_chunk.h"

#define GAP_BITS UINT64_C(0x7ff0000000000e91) /* a NaN that no text means */
#define NUMBER_TEXT_MAX 64

bool test_is_gap(double value)
{
	return number_bits(value) == GAP_BITS;
}

/* ---- values ---- */

static bool test_take(struct str *s, char c)
{
	if (s->len == 0 || s->ptr[0] != c)
		return false;
	*s = (struct str){ s->ptr + 1, s->len - 1 };
	return true;
}

static size_t test_digits_of(struct str s, size_t i)
{
	while (i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9')
		i++;
	return i;
}

/* 1, 1.5, .5, 1e3, Inf, NaN, without a sign. Not hexadecimal: 0x4 is 0 and four more zeros. */
static bool test_take_unsigned(struct str *s, double *out)
{
	static const struct {
		struct str name;
		double value;
	} words[] = { { STR("inf"), INFINITY }, { STR("nan"), NAN } };
	char text[NUMBER_TEXT_MAX];
	size_t i, end;

	for (i = 0; i < 2; i++)
		if (str_has_prefix_nocase(*s, words[i].name)) {
			*out = words[i].value;
			*s = (struct str){ s->ptr + 3, s->len - 3 };
			return true;
		}
	end = test_digits_of(*s, 0);
	if (end < s->len && s->ptr[end] == '.')
		end = test_digits_of(*s, end + 1);
	if (end == 0 || (end == 1 && s->ptr[0] == '.'))
		return false;
	if (end < s->len && (s->ptr[end] == 'e' || s->ptr[end] == 'E')) {
		i = end + 1;
		i += i < s->len && (s->ptr[i] == '-' || s->ptr[i] == '+');
		if (test_digits_of(*s, i) == i)
			return false;
		end = test_digits_of(*s, i);
	}
	if (end >= sizeof(text))
		return false;
	memcpy(text, s->ptr, end);
	text[end] = '\0';
	*out = strtod(text, NULL);
	*s = (struct str){ s->ptr + end, s->len - end };
	return true;
}

/* Takes a number with a sign. False: there is none, and nothing is taken. */
static bool test_take_signed(struct str *s, double *out)
{
	bool minus = s->len > 0 && s->ptr[0] == '-';
	struct str rest = *s;

	if (!test_take(&rest, minus ? '-' : '+') || !test_take_unsigned(&rest, out))
		return false;
	*out = minus ? -*out : *out;
	*s = rest;
	return true;
}

/* One word: n values from first on, each by step more. */
struct test_run {
	double first, step;
	size_t n;
};

static bool test_parse_run(struct str word, struct test_run *out)
{
	uint64_t more;
	bool gap = false, has_step = false;

	*out = (struct test_run){ .n = 1 };
	if (str_is(word, "stale")) {
		out->first = number_of_bits(NUMBER_STALE_BITS);
		return true;
	}
	if (test_take(&word, '_')) {
		out->first = number_of_bits(GAP_BITS);
		gap = true;
	} else if (!test_take_signed(&word, &out->first) && !test_take_unsigned(&word, &out->first)) {
		return false;
	} else {
		has_step = test_take_signed(&word, &out->step);
	}
	if (word.len == 0)
		return !has_step;
	if (!test_take(&word, 'x') || !str_to_u64(word, &more))
		return false;
	out->n = more > TEST_VALUES_MAX ? TEST_VALUES_MAX + 1 : (size_t)more + !gap;
	return true;
}

static struct str test_next_word(struct str *rest)
{
	struct str at = str_trim(*rest);
	size_t i = 0;

	if (!at.len) /* its pointer may be NULL */
		return *rest = at;
	while (i < at.len && !strchr(" \t\r\n", at.ptr[i]))
		i++;
	*rest = (struct str){ at.ptr + i, at.len - i };
	return (struct str){ at.ptr, i };
}

enum err_code test_values_parse(
	struct arena *a, struct str text, struct test_values *out, struct err *err)
{
	struct str rest = text, word;
	struct test_run run;
	size_t n = 0;

	while ((word = test_next_word(&rest)).len > 0) {
		if (!test_parse_run(word, &run))
			return err_set(
				err, ERR_INVALID, "%s is no value: 1, 1+2x3, _, _x3, stale", QUOTED(word));
		n += run.n;
		if (n > TEST_VALUES_MAX)
			return err_set(err, ERR_LIMIT, "more than %u values", TEST_VALUES_MAX);
	}
	*out = (struct test_values){ .v = arena_array(a, double, n + 1) };
	if (!out->v)
		return arena_fail(a, "test file", err);
	for (rest = text; (word = test_next_word(&rest)).len > 0;) {
		test_parse_run(word, &run);
		for (size_t i = 0; i < run.n; i++) {
			out->v[out->n++] = run.first;
			if (run.step != 0) /* a gap and a stale value keep their bits */
				run.first += run.step;
		}
	}
	return ERR_OK;
}

/* ---- metrics ---- */

enum err_code test_metric_parse(
	struct arena *a, struct str text, struct labels *out, struct err *err)
{
	struct labels_builder b;
	struct parsed *q;
	const struct selector *s;
	enum err_code rc;

	*out = (struct labels){ 0 };
	text = str_trim(text);
	if (text.len == 0 || str_is(text, "{}"))
		return ERR_OK;
	if ((rc = parse_selector(a, text, &q, NULL, err)))
		return rc;
	s = &q->root->selector;
	labels_builder_init(&b, a, (struct labels){ 0 });
	if (s->name.len)
		labels_builder_set(&b, STR(LABEL_NAME), s->name);
	for (size_t i = 0; i < s->matchers_n && !rc; i++) {
		if (s->matchers[i].op != MATCH_EQ)
			rc = err_set(err, ERR_INVALID, "a metric has labels with = alone, not %s",
				match_op_name(s->matchers[i].op));
		labels_builder_set(&b, s->matchers[i].name, s->matchers[i].value);
	}
	if (!rc)
		rc = labels_builder_build(&b, out, err);
	parsed_release(q);
	return rc;
}

/* ---- stacks ---- */

/* Reads from the end while words are values: a function's name may have blanks. */
static struct str test_cut_values(struct str *line)
{
	size_t at = line->len, end = line->len;
	struct str values;

	for (;;) {
		size_t to = at, from;
		struct test_run run;

		while (to > 0 && (line->ptr[to - 1] == ' ' || line->ptr[to - 1] == '\t'))
			to--;
		for (from = to; from > 0 && line->ptr[from - 1] != ' ' && line->ptr[from - 1] != '\t';)
			from--;
		if (from == 0 || !test_parse_run((struct str){ line->ptr + from, to - from }, &run))
			break;
		at = from;
	}
	values = (struct str){ line->ptr + at, end - at };
	*line = str_trim((struct str){ line->ptr, at });
	return values;
}

/* {handler="/x"} at the end, if it parses as labels; else it belongs to the function's name. */
static void test_cut_labels(struct arena *a, struct str *frames, struct labels *out)
{
	struct labels found;
	size_t i = frames->len;

	if (!str_has_suffix(*frames, STR("\"}")))
		return;
	while (i > 0 && frames->ptr[i - 1] != '{' && frames->ptr[i - 1] != ';')
		i--;
	while (i > 0 && frames->ptr[i - 1] != '{')
		i--;
	if (i <= 1)
		return;
	if (test_metric_parse(
			a, (struct str){ frames->ptr + i - 1, frames->len - i + 1 }, &found, NULL))
		return;
	*out = found;
	frames->len = i - 1;
}

static enum err_code test_split_frames(
	struct arena *a, struct str text, struct test_stack *out, struct err *err)
{
	size_t n = 1;

	for (size_t i = 0; i < text.len; i++)
		n += text.ptr[i] == ';';
	if (n > TEST_FRAMES_MAX)
		return err_set(err, ERR_LIMIT, "a stack of more than %u frames", TEST_FRAMES_MAX);
	if (!(out->frames = arena_array(a, struct str, n)))
		return arena_fail(a, "test file", err);
	for (size_t i = 0, from = 0; i <= text.len; i++) {
		if (i < text.len && text.ptr[i] != ';')
			continue;
		if (i == from)
			return err_set(err, ERR_INVALID, "a frame without a name");
		out->frames[out->frames_n++] = (struct str){ text.ptr + from, i - from };
		from = i + 1;
	}
	return ERR_OK;
}

enum err_code test_stack_parse(
	struct arena *a, struct str line, struct test_stack *out, struct err *err)
{
	struct str values;
	enum err_code rc;

	*out = (struct test_stack){ 0 };
	line = str_trim(line);
	values = test_cut_values(&line);
	if (line.len == 0 || values.len == 0)
		return err_set(err, ERR_INVALID, "a stack is written `root;...;leaf VALUE...`");
	test_cut_labels(a, &line, &out->labels);
	if ((rc = test_split_frames(a, line, out, err)))
		return rc;
	if ((rc = test_values_parse(a, values, &out->values, err)))
		return rc;
	for (size_t i = 0; i < out->values.n; i++)
		if (!test_is_gap(out->values.v[i]) &&
			(!(fabs(out->values.v[i]) < 0x1p62) || out->values.v[i] != trunc(out->values.v[i])))
			return err_set(err, ERR_INVALID, "a stack's values are whole numbers");
	out->is_constant = out->values.n == 1;
	return ERR_OK;
}
