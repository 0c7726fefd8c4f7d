/* Functions, aggregations and operators of the query language. */
#include "cmd/book/book.h"
#include "cmd/book/markdown.h"
#include "promql/syntax/functions.h"

static void functions_part_print(struct buf *out, const char *heading, unsigned flags)
{
	static const char *const columns[] = { "function", "what" };
	const unsigned both = FUNCTION_AGGREGATION | FUNCTION_FILTER;

	buf_printf(out, "%s### %s\n\n", out->len ? "\n" : "", heading);
	markdown_table_begin(out, columns, 2);
	for (size_t i = 0; i < FUNCTIONS; i++) {
		if ((functions[i].flags & both) != flags)
			continue;
		buf_add_cstr(out, "| ");
		markdown_code(out, str_of(functions[i].usage));
		buf_add_cstr(out, " | ");
		markdown_text(out, str_of(functions[i].help));
		buf_add_cstr(out, " |\n");
	}
}

static void functions_part_print_operators(struct buf *out)
{
	static const char *const columns[] = { "operator", "kind", "binds" };

	buf_add_cstr(
		out, "\n### Operators\n\nThe greater the number, the closer an operator binds.\n\n");
	markdown_table_begin(out, columns, 3);
	for (unsigned i = 0; i < BINARY_OPS; i++) {
		enum binary_op op = (enum binary_op)i;

		buf_add_cstr(out, "| ");
		markdown_code(out, str_of(binary_op_name(op)));
		buf_printf(out, " | %s | %d%s |\n",
			binary_op_is_set(op)            ? "set" :
				binary_op_is_comparison(op) ? "comparison" :
											  "arithmetic",
			binary_op_binds(op), op == OP_POW ? ", from the right" : "");
	}
}

enum err_code functions_part_write(const struct book_part *part, struct buf *out, struct err *err)
{
	functions_part_print(out, "Functions", 0);
	functions_part_print(out, "Filters of stacks", FUNCTION_FILTER);
	functions_part_print(out, "Aggregations", FUNCTION_AGGREGATION);
	functions_part_print_operators(out);
	return ERR_OK;
}
