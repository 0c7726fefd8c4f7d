#include "cmd/epitool/test_rules/print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/quote.h"

void test_print_labels(struct buf *out, struct labels ls)
{
	buf_add_char(out, '{');
	for (size_t i = 0; i < ls.n; i++) {
		buf_add_cstr(out, i ? ", " : "");
		buf_add_str(out, ls.v[i].name);
		buf_add_char(out, '=');
		buf_add_quoted(out, ls.v[i].value);
	}
	buf_add_char(out, '}');
}

/* promtool indents a block line by line, twice: the list by 12, its items by 2 more. */
#define LIST_INDENT "            "
#define ITEM_INDENT LIST_INDENT "  "

void test_print_alerts(struct buf *out, const struct test_alert *t, size_t n)
{
	if (!n) {
		buf_add_cstr(out, "[]");
		return;
	}
	buf_add_cstr(out, "[\n");
	for (size_t i = 0; i < n; i++) {
		buf_printf(out, "%s%zu:\n" ITEM_INDENT "Labels:", i ? ",\n" LIST_INDENT : LIST_INDENT, i);
		test_print_labels(out, t[i].labels);
		buf_add_cstr(out, "\n" ITEM_INDENT "Annotations:");
		test_print_labels(out, t[i].annotations);
	}
	buf_add_cstr(out, "\n" LIST_INDENT "]");
}

/* strconv.FormatFloat(v, 'E', -1, 64): as few digits as read back the same. */
static void test_print_value(struct buf *out, double value)
{
	char text[64];

	if (isnan(value) || isinf(value)) {
		buf_add_cstr(out, isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
		return;
	}
	for (int digits = 0; digits < 18; digits++) {
		snprintf(text, sizeof(text), "%.*E", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	buf_add_cstr(out, text);
}

void test_print_samples(struct buf *out, const struct test_sample *t, size_t n)
{
	if (!n)
		buf_add_cstr(out, "nil");
	for (size_t i = 0; i < n; i++) {
		buf_add_cstr(out, i ? ", " : "");
		test_print_labels(out, t[i].labels);
		buf_add_char(out, ' ');
		test_print_value(out, t[i].value);
	}
}

void test_print_span(struct buf *out, int64_t ns)
{
	int64_t h = ns / NS_PER_HOUR, m = ns % NS_PER_HOUR / NS_PER_MIN;
	char text[64];

	if (ns > 0 && ns < NS_PER_S) {
		buf_printf(out, "%.12gms", (double)ns / 1e6);
		return;
	}
	if (h)
		buf_printf(out, "%lldh", (long long)h);
	if (h || m)
		buf_printf(out, "%lldm", (long long)m);
	snprintf(text, sizeof(text), "%.12gs", (double)(ns % NS_PER_MIN) / 1e9);
	buf_add_cstr(out, text);
}

static int test_alert_cmp(const void *a, const void *b)
{
	const struct test_alert *x = a, *y = b;
	int c = labels_cmp(x->labels, y->labels);

	return c ? c : labels_cmp(x->annotations, y->annotations);
}

static int test_sample_cmp(const void *a, const void *b)
{
	return labels_cmp(
		((const struct test_sample *)a)->labels, ((const struct test_sample *)b)->labels);
}

void test_sort_alerts(struct test_alert *t, size_t n)
{
	if (n > 1)
		qsort(t, n, sizeof(*t), test_alert_cmp);
}

void test_sort_samples(struct test_sample *t, size_t n)
{
	if (n > 1)
		qsort(t, n, sizeof(*t), test_sample_cmp);
}

bool test_alerts_equal(const struct test_alert *a, const struct test_alert *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (test_alert_cmp(&a[i], &b[i]))
			return false;
	return true;
}

bool test_samples_equal(const struct test_sample *a, const struct test_sample *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!labels_eq(a[i].labels, b[i].labels) || a[i].value != b[i].value)
			return false;
	return true;
}
