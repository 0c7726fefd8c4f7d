#include <math.h>

#include "promql/costs/costs.h"
#include "promql/syntax/check.h"
#include "tests/check.h"

/* "job=a,zone=x 1; job=b 2" as costs; __name__ is a label like others. */
static struct value costs_of(struct arena *a, const char *text)
{
	struct value v = { .type = VALUE_COSTS };
	const char *at = text;

	v.costs = arena_array(a, struct cost, 32);
	while (*at) {
		struct labels_builder b;
		struct err err;
		char *end;

		labels_builder_init(&b, a, (struct labels){ 0 });
		for (at += strspn(at, "; "); *at != ' ';) {
			size_t name = strcspn(at, "="), value = strcspn(at + name + 1, ", ");

			labels_builder_set(&b, (struct str){ at, name }, (struct str){ at + name + 1, value });
			at += name + 1 + value;
			at += *at == ',';
		}
		CHECK_OK(labels_builder_build(&b, &v.costs[v.n].metric, &err), &err);
		v.costs[v.n++].value = strtod(at, &end);
		at = end;
	}
	return v;
}

static void print_value(struct buf *out, const struct value *v)
{
	if (v->type == VALUE_SCALAR) {
		buf_printf(out, "%.15g", v->scalar);
		return;
	}
	for (size_t i = 0; i < v->n; i++) {
		buf_add_cstr(out, i ? "; " : "");
		labels_print(out, v->costs[i].metric);
		buf_printf(out, " %.15g", v->costs[i].value);
	}
}

/* The query's operator on these two sides (aggregations: the first is k where there is one). */
static void check_query_of(const char *query, const char *left, const char *right, const char *want)
{
	struct work work = { 0 };
	struct value l, r, out;
	struct parsed *q;
	struct buf got = { 0 };
	struct arena a;
	struct err err;
	enum err_code rc;

	arena_init(&a, 0);
	CHECK_OK(parse_query(&a, str_of(query), &q, NULL, &err), &err);
	CHECK_OK(check_query(q, NULL, &err), &err);
	work.query = q;
	work.arena = &a;
	if (q->root->kind == EXPR_BINARY) {
		l = strchr(left, '=') || !*left ?
			costs_of(&a, left) :
			(struct value){ .type = VALUE_SCALAR, .scalar = strtod(left, NULL) };
		r = strchr(right, '=') || !*right ?
			costs_of(&a, right) :
			(struct value){ .type = VALUE_SCALAR, .scalar = strtod(right, NULL) };
		rc = costs_binary(&work, q->root, &l, &r, &out, &err);
	} else {
		l = costs_of(&a, right);
		r = (struct value){ .type = VALUE_SCALAR, .scalar = strtod(left, NULL) };
		rc = costs_aggregate(&work, q->root, &r, &l, &out, &err);
	}
	if (rc)
		buf_add_cstr(&got, err.msg);
	else
		print_value(&got, &out);
	if (!str_is(buf_str(&got), want))
		CHECK_FAIL("%s of %s and %s\n    is   " STR_FMT "\n    want %s", query, left, right,
			STR_ARG(buf_str(&got)), want);
	buf_release(&got);
	parsed_release(q);
	arena_release(&a);
}

struct operator_case {
	const char *query, *left, *right, *want;
};

static void check_cases(const struct operator_case *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		check_query_of(v[i].query, v[i].left, v[i].right, v[i].want);
}

TEST(operators_with_scalars)
{
	/* clang-format off */
	static const struct operator_case cases[] = {
		{ "1 + 2", "1", "2", "3" },
		{ "7 % 3", "-7", "3", "-1" },
		{ "1 >= bool 2", "1", "2", "0" },
		{ "1 / 0", "1", "0", "inf" },
		{ "2 ^ 10", "2", "10", "1024" },
		{ "x * 2", "__name__=x,job=a 3", "2", "{job=\"a\"} 6" },
		{ "2 - x", "2", "job=a 3; job=b 1", "{job=\"a\"} -1; {job=\"b\"} 1" },
		/* a comparison keeps the element, its name and its own value */
		{ "x > 2", "__name__=x,job=a 3; __name__=x,job=b 1", "2", "x{job=\"a\"} 3" },
		{ "2 < x", "2", "__name__=x,job=a 3; job=b 1", "x{job=\"a\"} 3" },
		{ "x > bool 2", "__name__=x,job=a 3; job=b 1", "2",
			"{job=\"a\"} 1; {job=\"b\"} 0" },
		{ "x > 2", "", "2", "" },
	};
	/* clang-format on */

	check_cases(cases, sizeof(cases) / sizeof(cases[0]));
}

TEST(operators_between_costs)
{
	/* clang-format off */
	static const struct operator_case cases[] = {
		{ "x + y", "__name__=x,job=a 1; job=b 2", "__name__=y,job=a 10; job=c 3",
			"{job=\"a\"} 11" },
		{ "x - on (job) y", "job=a,pod=p 5", "job=a,pod=q 2", "{job=\"a\"} 3" },
		{ "x - ignoring (pod) y", "job=a,pod=p 5", "job=a,pod=q 2", "{job=\"a\"} 3" },
		{ "x > y", "__name__=x,job=a 5", "job=a 2", "x{job=\"a\"} 5" },
		{ "x > bool y", "__name__=x,job=a 5", "job=a 9", "{job=\"a\"} 0" },
		{ "x < y", "job=a 5", "job=a 2", "" },
		{ "x / on (job) group_left (zone) y", "job=a,pod=p 6; job=a,pod=q 8",
			"job=a,zone=z 2",
			"{job=\"a\", pod=\"p\", zone=\"z\"} 3; {job=\"a\", pod=\"q\", zone=\"z\"} "
			"4" },
		{ "x / on (job) group_right y", "job=a,zone=z 24", "job=a,pod=p 6; job=a,pod=q 8",
			"{job=\"a\", pod=\"p\"} 4; {job=\"a\", pod=\"q\"} 3" },
		{ "x + on (job) y", "job=a,pod=p 6; job=a,pod=q 8", "job=a 2",
			"1:1: multiple matches for labels: many-to-one matching must be explicit "
			"(group_left/group_right)" },
		{ "x + on (job) y", "job=a 6", "job=a,pod=p 2; job=a,pod=q 2",
			"1:1: found duplicate series for the match group {job=\"a\"} on the right "
			"hand-side of the "
			"operation: [{job=\"a\", pod=\"p\"}, {job=\"a\", pod=\"q\"}];many-to-many "
			"matching not "
			"allowed: matching labels must be unique on one side" },
		{ "x + on (job) group_left (pod) y", "job=a,pod=p 6; job=a,pod=q 8",
			"job=a,pod=z 2",
			"1:1: multiple matches for labels: grouping labels must ensure unique "
			"matches" },
		{ "x and y", "job=a 1; job=b 2", "job=b 7", "{job=\"b\"} 2" },
		{ "x or y", "job=a 1", "__name__=y,job=a 7; job=b 8",
			"{job=\"a\"} 1; {job=\"b\"} 8" },
		{ "x unless on (job) y", "job=a,pod=p 1; job=b 2", "job=a 7", "{job=\"b\"} 2" },
	};
	/* clang-format on */

	check_cases(cases, sizeof(cases) / sizeof(cases[0]));
}

TEST(aggregations)
{
	static const struct operator_case cases[] = {
		{ "sum(x)", "0", "job=a 1; job=b 2.5", "{} 3.5" },
		{ "sum(x)", "0", "job=a 1e100; job=b 1; job=c -1e100", "{} 1" },
		{ "sum by (job) (x)", "0", "job=a,pod=p 1; job=a,pod=q 2; job=b,pod=p 4",
			"{job=\"a\"} 3; {job=\"b\"} 4" },
		{ "sum without (pod) (x)", "0", "__name__=x,job=a,pod=p 1; __name__=x,job=a,pod=q 2",
			"{job=\"a\"} 3" },
		{ "avg(x)", "0", "job=a 1; job=b 2", "{} 1.5" },
		{ "min(x)", "0", "job=a nan; job=b 2; job=c 1", "{} 1" },
		{ "max(x)", "0", "job=a nan; job=b 2; job=c 1", "{} 2" },
		{ "count by (job) (x)", "0", "job=a,pod=p 1; job=a,pod=q 2", "{job=\"a\"} 2" },
		{ "group(x)", "0", "job=a 7", "{} 1" },
		{ "sum(x)", "0", "", "" },
		{ "topk(2, x)", "2", "__name__=x,job=a 1; job=b 3; job=c nan; job=d 2",
			"{job=\"b\"} 3; {job=\"d\"} 2" },
		{ "bottomk(2, x)", "2", "__name__=x,job=a 1; job=b 3; job=d 2",
			"x{job=\"a\"} 1; {job=\"d\"} 2" },
		{ "topk by (job) (1, x)", "1", "job=a,pod=p 1; job=b,pod=p 5; job=a,pod=q 2",
			"{job=\"a\", pod=\"q\"} 2; {job=\"b\", pod=\"p\"} 5" },
		{ "topk(0, x)", "0", "job=a 1", "" },
		{ "topk(1, x)", "nan", "job=a 1", "1:1: Parameter value is NaN" },
	};

	check_cases(cases, sizeof(cases) / sizeof(cases[0]));
}
