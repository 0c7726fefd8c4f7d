#include <stdio.h>
#include <unistd.h>

#include "cmd/epitool/ask.h"
#include "cmd/epitool/progress.h"
#include "cmd/epitool/show.h"
#include "cmd/epitool/source.h"
#include "cmd/epitool/table.h"
#include "web/render/render.h"

static const char usage[] = "query [FLAGS] QUERY";
static const char about[] =
	"Asks a server, or reads a data directory with --data, and prints a table, or what\n"
	"--format says. A profile for go tool pprof: --format=pprof -o FILE.\n"
	"\n"
	"A profile is one row with its total: epitool flame QUERY draws it, and the query\n"
	"top(10, QUERY) lists its functions.\n"
	"\n"
	"Times are RFC 3339, unix seconds, now, now-1h or -1h. Without --start the query is\n"
	"evaluated at --time; with it over all of (start, end]; with --step at each step.";

struct query_flags {
	struct question q;
	const char *format, *output;
	bool as_json;
};

static bool tool_query_is_format(const char *text)
{
	return !strcmp(text, "table") || render_format_find(str_of(text));
}

static bool tool_query_is_binary(const char *format)
{
	const struct render_format *f = render_format_find(str_of(format));

	return f && f->encoded;
}

static enum err_code query_flags_check(struct query_flags *f, bool format_given, struct err *err)
{
	bool to_stdout = !f->output[0] || !strcmp(f->output, "-");

	if (f->as_json && format_given && strcmp(f->format, "json"))
		return err_set(err, ERR_INVALID, "either --json or --format");
	if (f->as_json)
		f->format = "json";
	if (!tool_query_is_format(f->format))
		return err_set(err, ERR_INVALID,
			"unknown --format \"%s\"; known are table, json, folded, pprof, pgo, "
			"speedscope, text",
			f->format);
	if (f->q.explain && strcmp(f->format, "table") && strcmp(f->format, "text") &&
		strcmp(f->format, "json"))
		return err_set(err, ERR_INVALID, "--explain gives text or json");
	if (tool_query_is_binary(f->format) && to_stdout && isatty(STDOUT_FILENO))
		return err_set(err, ERR_INVALID, "%s is binary: name a file with --output", f->format);
	f->q.format = f->q.explain && strcmp(f->format, "json") ? "text" :
		!strcmp(f->format, "table")                         ? "json" :
															  f->format;
	return ask_check(&f->q, err);
}

static enum err_code query_flags_run(const struct query_flags *f, const char *text, struct err *err)
{
	bool table = !strcmp(f->format, "table") && !f->q.explain;
	struct buf answer = { 0 }, shown = { 0 };
	size_t width = f->output[0] ? 0 : terminal_width();
	enum err_code rc = question_ask(&f->q, text, &answer, err);

	if (!rc && table)
		rc = show_answer(buf_str(&answer), width, &shown, err);
	if (!rc)
		rc = output_put(f->output, buf_str(table ? &shown : &answer), err);
	buf_release(&answer);
	buf_release(&shown);
	return rc;
}

int tool_query(int argc, char **argv)
{
	struct query_flags f = { 0 };
	/* clang-format off */
	struct flag flags[] = {
		{ "format", FLAG_STRING, &f.format, "table",
			"table, json, folded, pprof, pgo, speedscope or text (as go tool pprof "
			"-top)." },
		{ "json", FLAG_BOOL, &f.as_json, NULL, "The same as --format=json." },
		{ "output", FLAG_STRING, &f.output, "", "File to write the answer to.",
			.short_name = 'o' },
		{ "limit", FLAG_UINT, &f.q.limit, "0",
			"Most elements, or rows of --format=text; 0: all.", .short_name = 'n' },
		{ "max-nodes", FLAG_UINT, &f.q.max_nodes, "0",
			"Most nodes of a flame graph of --format=json; 0: 8192." },
		{ "time", FLAG_STRING, &f.q.time, "", "Evaluate at this time; default: now." },
		{ "start", FLAG_STRING, &f.q.start, "", "All profiles from here to --end." },
		{ "end", FLAG_STRING, &f.q.end, "", "See --start; default: now." },
		{ "step", FLAG_STRING, &f.q.step, "", "Costs at steps as long as this." },
		{ "explain", FLAG_BOOL, &f.q.explain, NULL,
			"How the query would be evaluated, and what it would read." },
		{ "analyze", FLAG_BOOL, &f.q.analyze, NULL,
			"With --explain: evaluate it too, and say how long each part took." },
		ASK_FLAGS(f.q),
	};
	/* clang-format on */
	size_t n = sizeof(flags) / sizeof(flags[0]), args_n = 0;
	const char *args[1];
	struct err err = { 0 };
	int rc = output_read_flags(flags, n, argc, argv, usage, about, args, 1, 1, &args_n);

	if (rc >= 0)
		return rc;
	if (query_flags_check(&f, flags[0].set, &err)) {
		fprintf(stderr, "epitool: error: %s\nusage: epitool %s\n", err.msg, usage);
		return EXIT_USAGE;
	}
	interrupt_catch();
	if (query_flags_run(&f, args[0], &err)) {
		if (err.code != ERR_CANCELED)
			source_explain_query(args[0], &err);
		ask_print_error(args[0], &err);
		return EXIT_FAILED;
	}
	return 0;
}
