/* Flags of the server, and commands of epitool with their flags and exit codes. */
#include <stdio.h>
#include <string.h>

#include "cmd/book/book.h"
#include "cmd/book/markdown.h"
#include "cmd/epimetheus/options.h"
#include "cmd/epitool/epitool.h"

static const char *flags_part_kind(enum flag_kind kind)
{
	/* clang-format off */
	static const char *const kinds[] = {
		[FLAG_BOOL] = "boolean", [FLAG_STRING] = "text", [FLAG_DURATION] = "duration",
		[FLAG_BYTES] = "size", [FLAG_UINT] = "number", [FLAG_LIST] = "text, repeated",
	};
	/* clang-format on */

	return kinds[kind];
}

static void flags_part_print_flag(struct buf *out, const struct flag *f)
{
	buf_add_cstr(out, "| `");
	if (f->short_name)
		buf_printf(out, "-%c`, `", f->short_name);
	buf_printf(out, f->kind == FLAG_BOOL ? "--[no-]%s` | %s | " : "--%s` | %s | ", f->name,
		flags_part_kind(f->kind));
	if (f->default_text && f->default_text[0])
		markdown_code(out, str_of(f->default_text));
	else if (f->kind == FLAG_BOOL)
		buf_add_cstr(out, "`false`");
	buf_add_cstr(out, " | ");
	markdown_text(out, str_of(f->help));
	buf_add_cstr(out, " |\n");
}

static void flags_part_print_table(struct buf *out, const struct flag *flags, size_t n)
{
	static const char *const columns[] = { "flag", "type", "default", "what" };

	markdown_table_begin(out, columns, 4);
	for (size_t i = 0; i < n; i++)
		flags_part_print_flag(out, &flags[i]);
}

enum err_code flags_part_write_server(
	const struct book_part *part, struct buf *out, struct err *err)
{
	char *line[] = { (char *)(uintptr_t) "epimetheus", NULL };
	struct options o;
	enum err_code rc = options_parse(&o, 1, line, err);

	if (!rc)
		flags_part_print_table(out, o.flags, o.flags_n);
	return rc;
}

/* ---- epitool ---- */

struct flags_part_tool {
	struct buf *out;
	const struct tool_command *command;
	size_t listed;
};

static void flags_part_print_exits(struct buf *out, const struct tool_command *c)
{
	buf_add_cstr(out, "\nExit codes: 0 fine");
	for (size_t i = 0; c->exits[i].code; i++) {
		buf_printf(out, "; %d ", c->exits[i].code);
		markdown_text(out, str_of(c->exits[i].means));
	}
	buf_add_cstr(out, ".\n");
}

static void flags_part_print_command(
	void *ctx, const char *about, const struct flag *flags, size_t n)
{
	struct flags_part_tool *t = ctx;
	const struct tool_command *c = t->command;

	t->listed++;
	buf_printf(t->out, "%s### epitool %s%s%s\n\n", t->out->len ? "\n" : "", c->name,
		c->sub ? " " : "", c->sub ? c->sub : "");
	markdown_text(t->out, str_of(c->help));
	buf_printf(t->out, "\n\n```text\nepitool %s\n\n%s\n```\n", c->usage, about);
	if (n) {
		buf_add_char(t->out, '\n');
		flags_part_print_table(t->out, flags, n);
	}
	flags_part_print_exits(t->out, c);
}

/* --help, so that a command that forgets to list its flags does nothing else. */
enum err_code flags_part_write_tool(const struct book_part *part, struct buf *out, struct err *err)
{
	char *line[] = { (char *)(uintptr_t) "epitool", (char *)(uintptr_t) "--help", NULL };
	struct flags_part_tool t = { .out = out };

	flags_list_by(flags_part_print_command, &t);
	for (size_t i = 0; i < tool_commands_n; i++) {
		t.command = &tool_commands[i];
		t.command->run(2, line);
	}
	flags_list_by(NULL, NULL);
	if (t.listed != tool_commands_n)
		return err_set(
			err, ERR_INVALID, "%zu of %zu commands list their flags", t.listed, tool_commands_n);
	return ERR_OK;
}

enum err_code flags_part_write_exits(const struct book_part *part, struct buf *out, struct err *err)
{
	static const char *const columns[] = { "command", "code", "means" };

	markdown_table_begin(out, columns, 3);
	buf_printf(out, "| every command | 0 | fine |\n");
	buf_printf(out, "| every command | %d | the command line is wrong |\n", EXIT_USAGE);
	for (size_t i = 0; i < tool_commands_n; i++) {
		const struct tool_command *c = &tool_commands[i];

		for (size_t k = 0; c->exits[k].code; k++) {
			buf_printf(out, "| `epitool %s%s%s` | %d | ", c->name, c->sub ? " " : "",
				c->sub ? c->sub : "", c->exits[k].code);
			markdown_text(out, str_of(c->exits[k].means));
			buf_add_cstr(out, " |\n");
		}
	}
	return ERR_OK;
}
