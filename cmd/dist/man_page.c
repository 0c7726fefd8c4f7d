#include "cmd/dist/man_page.h"

#include <stdio.h>

#include "base/self/libraries.h"
#include "base/version.h"
#include "cmd/dist/roff.h"
#include "cmd/epimetheus/options.h"
#include "cmd/epitool/epitool.h"

/* upper: the name in capitals. */
static void man_page_begin(struct buf *out, const char *upper, const char *name, const char *about)
{
	buf_printf(out, ".TH %s 1 \"%.10s\" \"Epimetheus %s\" \"User Commands\"\n", upper, build_date,
		EPI_VERSION);
	buf_add_cstr(out, ".nh\n.ad l\n");
	roff_section(out, "NAME");
	buf_printf(out, "%s \\- ", name);
	roff_text(out, str_of(about));
	buf_add_char(out, '\n');
	roff_section(out, "SYNOPSIS");
}

/* ---- flags ---- */

static void man_page_print_value(struct buf *out, const struct flag *f)
{
	/* clang-format off */
	static const char *const kinds[] = {
		[FLAG_BOOL] = "", [FLAG_STRING] = "TEXT", [FLAG_DURATION] = "DURATION",
		[FLAG_BYTES] = "SIZE", [FLAG_UINT] = "NUMBER", [FLAG_LIST] = "TEXT",
	};
	/* clang-format on */

	if (f->kind == FLAG_BOOL)
		return;
	buf_printf(out, "=\\fI%s\\fR", kinds[f->kind]);
	if (f->kind == FLAG_LIST)
		buf_add_cstr(out, " ...");
}

static void man_page_print_flag(struct buf *out, const struct flag *f)
{
	buf_add_cstr(out, ".TP\n");
	if (f->short_name)
		buf_printf(out, "\\fB\\-%c\\fR, ", f->short_name);
	buf_add_cstr(out, f->kind == FLAG_BOOL ? "\\fB\\-\\-\\fR[\\fBno\\-\\fR]" : "\\fB\\-\\-\\fR");
	roff_bold(out, str_of(f->name));
	man_page_print_value(out, f);
	buf_add_char(out, '\n');
	roff_text(out, str_of(f->help));
	if (f->default_text && f->default_text[0]) {
		buf_add_cstr(out, "\nThe default is \\fB");
		roff_text(out, str_of(f->default_text));
		buf_add_cstr(out, "\\fR.");
	}
	buf_add_char(out, '\n');
}

static void man_page_print_common_flags(struct buf *out)
{
	buf_add_cstr(out,
		".TP\n\\fB\\-h\\fR, \\fB\\-\\-help\\fR\nShow the flags.\n"
		".TP\n\\fB\\-\\-version\\fR\n"
		"Show the version, the commit, and the versions of the libraries that are linked.\n");
}

static void man_page_print_exit(struct buf *out, int code, const char *means)
{
	buf_printf(out, ".TP\n.B %d\n", code);
	roff_text(out, str_of(means));
	buf_add_char(out, '\n');
}

static void man_page_print_file(struct buf *out, const char *path, const char *what)
{
	buf_printf(out, ".TP\n.I %s\n%s\n", path, what);
}

/* ---- the server ---- */

static void man_page_print_signals(struct buf *out)
{
	roff_section(out, "SIGNALS");
	buf_add_cstr(out,
		".TP\n.B SIGHUP\nRead the configuration again. If it has an error, the old one stays.\n"
		".TP\n.BR SIGTERM , \" SIGINT\"\nEnd in order.\n");
}

enum err_code man_page_write_server(struct buf *out, struct err *err)
{
	char *line[] = { (char *)(uintptr_t) "epimetheus", NULL };
	struct options o;
	enum err_code rc = options_parse(&o, 1, line, err);

	if (rc)
		return rc;
	man_page_begin(out, "EPIMETHEUS", "epimetheus", "continuous profiling server");
	buf_add_cstr(out, ".B epimetheus\n[\\fIFLAGS\\fR]\n");
	roff_section(out, "DESCRIPTION");
	buf_add_cstr(out,
		".B epimetheus\nscrapes profiles of programs as Prometheus scrapes metrics, takes those "
		"that programs\nsend, keeps all of them under labels, and answers queries over them, on a "
		"page and by an API.\nThe page has the whole documentation, at \\fI/docs/\\fR.\n");
	roff_section(out, "OPTIONS");
	man_page_print_common_flags(out);
	for (size_t i = 0; i < o.flags_n; i++)
		man_page_print_flag(out, &o.flags[i]);
	man_page_print_signals(out);
	roff_section(out, "EXIT STATUS");
	man_page_print_exit(out, 0, "It was asked to end.");
	man_page_print_exit(out, 1, "The system refused something, such as a port that is in use.");
	man_page_print_exit(out, 2, "A flag or the configuration is wrong.");
	roff_section(out, "FILES");
	buf_add_cstr(out, "Of the service that packages install:\n");
	man_page_print_file(out, "/etc/epimetheus/epimetheus.yml", "The configuration.");
	man_page_print_file(out, "/etc/default/epimetheus", "Flags of the service.");
	man_page_print_file(out, "/var/lib/epimetheus", "Profiles.");
	roff_section(out, "SEE ALSO");
	buf_add_cstr(out, ".BR epitool (1)\n");
	return ERR_OK;
}

/* ---- epitool ---- */

struct man_page_tool {
	struct buf *out;
	const struct tool_command *command;
	size_t listed;
};

static void man_page_print_command(void *ctx, const char *about, const struct flag *flags, size_t n)
{
	struct man_page_tool *t = ctx;
	struct buf usage = { 0 };

	t->listed++;
	buf_printf(&usage, "epitool %s", t->command->usage);
	roff_subsection(t->out, buf_str(&usage));
	roff_text(t->out, str_of(t->command->help));
	buf_add_cstr(t->out, "\n.PP\n");
	roff_lines(t->out, str_of(about));
	for (size_t i = 0; i < n; i++)
		man_page_print_flag(t->out, &flags[i]);
	if (buf_failed(&usage))
		t->out->failed = true;
	buf_release(&usage);
}

static void man_page_print_tool_exits(struct buf *out)
{
	roff_section(out, "EXIT STATUS");
	man_page_print_exit(out, 0, "Fine.");
	man_page_print_exit(out, EXIT_USAGE, "The command line is wrong.");
	for (size_t i = 0; i < tool_commands_n; i++) {
		const struct tool_command *c = &tool_commands[i];

		for (size_t k = 0; c->exits[k].code; k++) {
			buf_printf(out, ".TP\n.BR %d \" of %s%s%s\"\n", c->exits[k].code, c->name,
				c->sub ? " " : "", c->sub ? c->sub : "");
			roff_text(out, str_of(c->exits[k].means));
			buf_add_char(out, '\n');
		}
	}
}

/* --help, so that a command that forgets to list its flags does nothing else. */
enum err_code man_page_write_tool(struct buf *out, struct err *err)
{
	char *line[] = { (char *)(uintptr_t) "epitool", (char *)(uintptr_t) "--help", NULL };
	struct man_page_tool t = { .out = out };

	man_page_begin(out, "EPITOOL", "epitool", "operator's tool of the profiling server Epimetheus");
	buf_add_cstr(out, ".B epitool\n\\fICOMMAND\\fR [\\fIFLAGS\\fR] [\\fIARGUMENTS\\fR]\n");
	roff_section(out, "DESCRIPTION");
	buf_add_cstr(out,
		".B epitool\nchecks configurations and rules, asks queries, compares runs, sends profiles "
		"and symbols,\nand looks after data directories and buckets. Each command has:\n");
	man_page_print_common_flags(out);
	roff_section(out, "COMMANDS");
	flags_list_by(man_page_print_command, &t);
	for (size_t i = 0; i < tool_commands_n; i++) {
		t.command = &tool_commands[i];
		t.command->run(2, line);
	}
	flags_list_by(NULL, NULL);
	man_page_print_tool_exits(out);
	roff_section(out, "SEE ALSO");
	buf_add_cstr(out, ".BR epimetheus (1)\n");
	if (t.listed != tool_commands_n)
		return err_set(
			err, ERR_INVALID, "%zu of %zu commands list their flags", t.listed, tool_commands_n);
	return ERR_OK;
}
