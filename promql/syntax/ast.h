/*
 * The tree of a query, as the parser builds it and the checker types it.
 *
 * Nodes are made by parse_query (parse.h), typed by check_query (check.h), and not changed
 * afterwards. Each knows which bytes of the query text it came from, so that whoever finds a
 * fault can point at it.
 *
 * Units:     times and durations in nanoseconds; positions in bytes from the start of the query
 *            text.
 * Ownership: nodes, strings and arrays live in the arena of their parsed query; the compiled
 *            regexes of matchers are freed by parsed_release.
 * Threads:   immutable once checked; share freely.
 * Source:    Prometheus's expression grammar, extended for profiles.
 */
#ifndef PROMQL_SYNTAX_AST_H
#define PROMQL_SYNTAX_AST_H

#include <stdint.h>

#include "base/labels.h"
#include "base/str.h"

/* Bytes [start, end) of the query text. */
struct span {
	uint32_t start, end;
};

/*
 * The set of types that an expression may have. A selector's name is looked up at evaluation, and
 * may be that of profiles or of numeric series, so its set has both; so has that of `selector * 2`.
 * After the check every set is non-empty, and the evaluator's value is one of its members.
 */
enum value_types {
	VALUE_SCALAR = 1,
	VALUE_STRING = 2,
	VALUE_COSTS = 4, /* label set -> number */
	VALUE_PROFILES = 8, /* label set -> profile */
	VALUE_TABLE = 16, /* of top(); no operator takes it, so it can only be the answer */
	VALUE_FRAMES = 32, /* frame matchers: the last argument of flat() and cum(), no value */
	VALUE_RANGE = 64, /* of each label set numbers in time, for functions over a window */
};

/* "profiles or costs" and the like, with the article if there is one type: "a scalar". */
void value_types_print(struct buf *out, unsigned types);

enum expr_kind {
	EXPR_NUMBER, /* 1, 0x1f, 1e3, Inf, 5m; a minus directly before a number is part of it */
	EXPR_STRING, /* "..." '...' `...` */
	EXPR_SELECTOR, /* cpu:samples{job="x"}[5m] offset 1h @ end() */
	EXPR_SUBQUERY, /* total(cpu)[1h:5m] offset 1d */
	EXPR_UNARY, /* -x, +x */
	EXPR_BINARY, /* a - on (job) b */
	EXPR_CALL, /* functions and aggregations alike: merge by (job) (x), topk(5, x) */
	EXPR_PAREN, /* (x): kept for printing, means x */
};

/* The time of a selector or subquery, before its offset is subtracted. */
enum at_kind {
	AT_NONE,
	AT_TIME, /* @ 1609746000: at_ns */
	AT_START, /* @ start() of the query */
	AT_END, /* @ end() of the query */
};

struct time_shift {
	int64_t offset_ns; /* backwards in time; may be negative; 0: none */
	int64_t at_ns; /* AT_TIME: whole milliseconds, as Prometheus rounds */
	enum at_kind at;
};

static inline bool time_shift_any(const struct time_shift *s)
{
	return s->offset_ns || s->at != AT_NONE;
}

/*
 * name{matchers}[window] offset d @ t. `name` is what was written ("cpu:samples", a full profile
 * type, "up"); promql/syntax/type_names.h reads it as a pattern for profile types. The name is not
 * among the matchers; a matcher on __name__ is possible only where `name` is empty. In the place of
 * frame matchers (types == VALUE_FRAMES) there are a bare name-less set of matchers on frame fields
 * and nothing else.
 */
struct selector {
	struct str name; /* empty: only matchers */
	struct matcher *matchers;
	size_t matchers_n;
	int64_t window_ns; /* 0: a bare selector */
	bool rated; /* of rate(), which looks a little beyond the window; the check knows */
	struct time_shift shift;
	struct expr *next; /* the next selector of the query, left to right */
};

/* arg[range:step]: costs, evaluated at whole multiples of the step within the range. */
struct subquery {
	struct expr *arg;
	int64_t range_ns;
	int64_t step_ns; /* 0: that of rules (global.evaluation_interval) */
	struct time_shift shift;
};

struct unary {
	bool negative; /* -x; else +x, which changes nothing */
	struct expr *arg;
};

enum binary_op {
	OP_ADD,
	OP_SUB,
	OP_MUL,
	OP_DIV,
	OP_MOD,
	OP_POW,
	OP_ATAN2,
	OP_EQ,
	OP_NE,
	OP_LT,
	OP_LE,
	OP_GT,
	OP_GE,
	OP_AND,
	OP_OR,
	OP_UNLESS,
};
#define BINARY_OPS (OP_UNLESS + 1)

const char *binary_op_name(enum binary_op op); /* "+", "==", "and" */
int binary_op_binds(enum binary_op op); /* 1: or; the greater, the closer */

static inline bool binary_op_is_comparison(enum binary_op op)
{
	return op >= OP_EQ && op <= OP_GE;
}

static inline bool binary_op_is_set(enum binary_op op)
{
	return op >= OP_AND;
}

/* Label names (or frame fields) in parentheses, as written: order and repetitions kept. */
struct name_list {
	struct str *v;
	size_t n;
};

bool name_list_has(struct name_list l, struct str name);

/* by, without: of calls; on, ignoring: of diff() and of binary operators. `by ()` is not NONE. */
enum grouping {
	GROUPING_NONE,
	GROUPING_BY,
	GROUPING_WITHOUT,
	GROUPING_ON,
	GROUPING_IGNORING,
};

enum cardinality {
	CARD_ONE_TO_ONE,
	CARD_GROUP_LEFT, /* many on the left side, one on the right */
	CARD_GROUP_RIGHT,
};

/*
 * Operands that the check accepts:
 *
 *   scalar op scalar      -> scalar    comparisons with `bool` only; no set operators
 *   costs op scalar       -> costs     also scalar op costs; no set operators
 *   costs op costs        -> costs
 *   profiles - profiles   -> profiles  on, ignoring; no group_left, group_right
 *   profiles * scalar     -> profiles  also scalar * profiles
 *   profiles / scalar     -> profiles
 */
struct binary {
	enum binary_op op;
	struct span op_at;
	struct expr *lhs, *rhs;
	bool returns_bool; /* the `bool` modifier of a comparison */
	enum grouping matching; /* GROUPING_NONE, _ON, _IGNORING */
	struct name_list labels; /* of on or ignoring */
	enum cardinality card; /* for set operators many to many is meant, whatever this says */
	struct name_list include; /* of group_left or group_right */
};

struct function; /* functions.h */

struct call {
	const struct function *fn; /* its row in the table; never NULL after the check */
	struct str name; /* as in the table; as written if it has no row */
	enum grouping grouping;
	struct name_list labels; /* of the grouping */
	struct expr **args; /* number and types as the table says */
	size_t args_n;
};

struct expr {
	enum expr_kind kind;
	struct span at; /* the whole expression */
	unsigned types; /* set of VALUE_*; 0 before the check */
	uint32_t depth; /* 1: no children; bounded by QUERY_DEPTH_MAX */
	bool is_duration; /* a number that was written as one, and is printed so */
	union {
		double number;
		struct str string; /* escapes resolved; any bytes */
		struct selector selector;
		struct subquery subquery;
		struct unary unary;
		struct binary binary;
		struct call call;
		struct expr *paren;
	};
};

/* Without the parentheses around it. */
const struct expr *expr_strip(const struct expr *e);

/* Equal in kinds, names, values and modifiers; positions and types do not count. */
bool expr_eq(const struct expr *a, const struct expr *b);

/*
 * Prints so that parsing the text gives an equal tree. expr_print: one line; expr_print_pretty:
 * as /api/v1/format_query shows it, broken and indented by two blanks a level where a line would
 * pass 100 columns.
 */
void expr_print(struct buf *out, const struct expr *e);
void expr_print_pretty(struct buf *out, const struct expr *e);

#endif
