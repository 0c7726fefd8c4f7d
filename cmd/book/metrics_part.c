/*
 * All metrics of the server: each registers itself before main runs, so a program that is linked
 * with the server's parts has them all, also those that get a value late in a server's life.
 */
#include "base/metrics.h"
#include "base/self/process_metrics.h"
#include "cmd/book/book.h"
#include "cmd/book/markdown.h"

static void metrics_part_print(
	void *ctx, const char *name, const char *kind, const char *label, const char *help)
{
	struct buf *out = ctx;

	buf_printf(out, "| `%s` | %s | %s%s%s | ", name, kind, label ? "`" : "", label ? label : "",
		label ? "`" : "");
	markdown_text(out, str_of(help));
	buf_add_cstr(out, " |\n");
}

enum err_code metrics_part_write(const struct book_part *part, struct buf *out, struct err *err)
{
	static const char *const columns[] = { "metric", "type", "label", "what" };
	const char *name, *kind, *help;

	markdown_table_begin(out, columns, 4);
	if (!metrics_walk(metrics_part_print, out))
		return err_nomem(err, "metrics");
	for (size_t i = 0; process_metric_describe(i, &name, &kind, &help); i++)
		metrics_part_print(out, name, kind, NULL, help);
	return ERR_OK;
}
