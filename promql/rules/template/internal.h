/*
 * The inside of template.h: tree, values, functions. Private to promql/rules/.
 *
 * Ownership: nodes in the parser's arena; values in the rendering's.
 * Threads:   a tree is immutable; a rendering belongs to one thread.
 */
#ifndef PROMQL_RULES_TEMPLATE_INTERNAL_H
#define PROMQL_RULES_TEMPLATE_INTERNAL_H

#include "promql/rules/template/template.h"

#define TEMPLATE_DEPTH_MAX 64u /* of blocks and parentheses */

/* ---- the tree ---- */

enum operand_kind {
	OPERAND_FUNCTION,
	OPERAND_DOT,
	OPERAND_VARIABLE,
	OPERAND_STRING,
	OPERAND_INT,
	OPERAND_FLOAT,
	OPERAND_BOOL,
	OPERAND_NIL,
	OPERAND_PIPE, /* in parentheses */
};

struct template_function;

struct operand {
	enum operand_kind kind;
	uint32_t at; /* byte of the text */
	struct str text; /* a variable's name with its $, a string's value, a number as written */
	struct str *fields; /* .a.b behind it */
	size_t fields_n;
	const struct template_function *fn;
	const struct pipe *pipe;
	int64_t i; /* OPERAND_INT, OPERAND_BOOL */
	double f;
	struct operand *next;
};

struct template_command {
	struct operand *first; /* what is called, then arguments */
	size_t n;
	struct template_command *next;
};

struct pipe {
	uint32_t at;
	struct str variables[2];
	size_t variables_n;
	bool assigns; /* = and not := */
	struct template_command *first;
};

enum node_kind {
	NODE_TEXT,
	NODE_ACTION,
	NODE_IF,
	NODE_RANGE,
	NODE_WITH,
	NODE_BREAK,
	NODE_CONTINUE
};

struct template_node {
	enum node_kind kind;
	uint32_t at;
	struct str text;
	const struct pipe *pipe;
	struct template_node *body, *otherwise;
	struct template_node *next;
};

struct template
{
	struct str text;
	const struct template_node *first;
};

/* "LINE:COLUMN: message", columns in characters. */
enum err_code template_fault(struct str text, uint32_t at, struct err *err, enum err_code code,
	const char *fmt, ...) PRINTF_LIKE(5, 6);

/* ---- values ---- */

enum tv_kind {
	TV_NIL,
	TV_BOOL,
	TV_INT,
	TV_FLOAT,
	TV_STRING,
	TV_LABELS, /* map[string]string */
	TV_ARGS, /* map[string]interface {}: arg0, arg1, ... */
	TV_SAMPLES, /* what query gives */
	TV_SAMPLE,
	TV_DATA,
	TV_TIME, /* i: nanoseconds */
};

struct tv {
	enum tv_kind kind;
	union {
		bool b;
		int64_t i;
		double f;
		struct str s;
		struct labels labels;
		const struct template_sample *sample;
	};
	const struct template_sample *samples;
	const struct tv *args;
	size_t n; /* of samples or args */
};

struct rendering {
	const struct template *t;
	const struct template_data *data;
	struct arena arena;
	struct buf *out;
	size_t out_start;
	uint64_t steps;
	struct variable *variables; /* the innermost first */
	bool breaks, continues;
	struct err *err;
};

const char *tv_type_name(const struct tv *t); /* as Go names it */
bool tv_truth(const struct tv *t);
void tv_print(struct buf *out, const struct tv *t); /* as %v */
void tv_float_print(struct buf *out, double value); /* as %v */
/* As fmt.Sprintf, Sprint and Sprintln. */
void tv_printf(struct buf *out, struct str format, const struct tv *args, size_t n);
void tv_sprint(struct buf *out, const struct tv *args, size_t n);
void tv_sprintln(struct buf *out, const struct tv *args, size_t n);
void tv_time_print(struct buf *out, int64_t ns);

/* The value of "arg0" and so on in TV_ARGS; TV_NIL if there is none. */
struct tv tv_arg(const struct tv *t, struct str name);

/* ---- functions ---- */

enum param { PARAM_ANY, PARAM_STRING, PARAM_SAMPLES, PARAM_SAMPLE };

/* Errors have no place; the caller adds it. */
typedef enum err_code (*template_call)(struct rendering *r, const struct template_function *fn,
	const struct tv *args, size_t n, struct tv *out, struct err *err);

struct template_function {
	const char *name;
	template_call call; /* NULL: and, or, which evaluate arguments one by one */
	unsigned min, max; /* number of arguments */
	enum param params[3]; /* the last is for all further ones */
	int variant;
};

#define TEMPLATE_ARGS_MAX 64u

const struct template_function *template_function_find(struct str name);
/* The tables: Go's functions, Prometheus's functions. */
extern const struct template_function template_functions_go[], template_functions_prometheus[];
extern const size_t template_functions_go_n, template_functions_prometheus_n;

/* Moves a buf's bytes into the arena as a value; releases the buf. */
MUST_CHECK enum err_code tv_of_buf(
	struct rendering *r, struct buf *b, struct tv *out, struct err *err);

#endif
