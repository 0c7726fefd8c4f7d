#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/quote.h"
#include "cmd/epitool/epitool.h"
#include "cmd/epitool/progress.h"
#include "cmd/shared/completion_script.h"

#define COMMANDS_N tool_commands_n

static void tool_main_usage(FILE *to)
{
	fprintf(to, "usage: epitool COMMAND [FLAGS] [ARGUMENTS]\n\n");
	for (size_t i = 0; i < COMMANDS_N; i++)
		fprintf(to, "  %-55s %s\n", tool_commands[i].usage, tool_commands[i].help);
	fprintf(to, "\n`epitool COMMAND --help` shows a command's flags.\n");
}

static bool tool_main_is_help(const char *word)
{
	return !strcmp(word, "--help") || !strcmp(word, "-h");
}

static bool tool_command_is_subcommand_of(const struct tool_command *c, const char *name)
{
	return c->sub && !strcmp(c->name, name);
}

static bool tool_main_has_subcommands(const char *name)
{
	for (size_t i = 0; i < COMMANDS_N; i++)
		if (tool_command_is_subcommand_of(&tool_commands[i], name))
			return true;
	return false;
}

static void tool_main_print_subcommands(const char *name)
{
	printf("usage: epitool %s COMMAND [FLAGS] [ARGUMENTS]\n\n", name);
	for (size_t i = 0; i < COMMANDS_N; i++)
		if (tool_command_is_subcommand_of(&tool_commands[i], name))
			printf("  %-55s %s\n", tool_commands[i].usage, tool_commands[i].help);
	printf("\n`epitool %s COMMAND --help` shows a command's flags.\n", name);
}

/* ---- what is no command ---- */

/* "tsdb has list, analyze, ..."; nothing if no command has this first word. */
static void tool_main_add_subcommands(struct buf *out, const char *name)
{
	size_t n = 0;

	for (size_t i = 0; i < COMMANDS_N; i++)
		if (tool_command_is_subcommand_of(&tool_commands[i], name))
			buf_printf(out, n++ ? ", %s" : "; it has %s", tool_commands[i].sub);
}

/* The nearest of all that could be meant: a whole command, or the first word of some. */
static void tool_main_add_nearest(struct buf *out, const char *word, struct str words)
{
	struct nearest one = nearest_to(str_of(word)), two = nearest_to(words);
	static char names[COMPLETION_COMMANDS_MAX][32];

	assert(COMMANDS_N <= COMPLETION_COMMANDS_MAX);
	for (size_t i = 0; i < COMMANDS_N; i++) {
		snprintf(names[i], sizeof(names[i]), "%s %s", tool_commands[i].name,
			tool_commands[i].sub ? tool_commands[i].sub : "");
		if (tool_commands[i].sub)
			nearest_try(&two, str_of(names[i]));
		nearest_try(&one, str_of(tool_commands[i].name));
	}
	buf_printf(out, "%s",
		two.name.len && (!one.name.len || two.distance <= one.distance) ? DID_YOU_MEAN(&two) :
																		  DID_YOU_MEAN(&one));
}

static void tool_main_unknown_command(const char *word, const char *second)
{
	struct buf words = { 0 }, out = { 0 };
	bool has_subs = tool_main_has_subcommands(word);

	buf_printf(&words, "%s%s%s", word, second[0] ? " " : "", second);
	buf_printf(
		&out, "epitool: error: %s command '", has_subs && !second[0] ? "incomplete" : "unknown");
	buf_add_printable(&out, has_subs ? buf_str(&words) : str_of(word));
	buf_add_char(&out, '\'');
	if (has_subs)
		tool_main_add_subcommands(&out, word);
	if (!has_subs || second[0])
		tool_main_add_nearest(&out, has_subs ? "" : word, buf_str(&words));
	fprintf(stderr, STR_FMT "\n`epitool --help` lists the commands.\n", STR_ARG(buf_str(&out)));
	buf_release(&words);
	buf_release(&out);
}

static int tool_main_run(int argc, char **argv)
{
	for (size_t i = 0; i < COMMANDS_N; i++) {
		const struct tool_command *c = &tool_commands[i];
		int words = c->sub ? 2 : 1;

		if (strcmp(argv[1], c->name) || (c->sub && (argc < 3 || strcmp(argv[2], c->sub))))
			continue;
		return interrupt_exit_code(c->run(argc - words, argv + words));
	}
	if (argc > 2 && tool_main_is_help(argv[2]) && tool_main_has_subcommands(argv[1])) {
		tool_main_print_subcommands(argv[1]);
		return 0;
	}
	tool_main_unknown_command(argv[1], argc > 2 && !tool_main_is_help(argv[2]) ? argv[2] : "");
	return EXIT_USAGE;
}

/* `help check config` is `check config --help`. */
static int tool_main_help(int argc, char **argv)
{
	char help[] = "--help";

	if (argc < 3) {
		tool_main_usage(stdout);
		return 0;
	}
	for (int i = 1; i + 1 < argc; i++)
		argv[i] = argv[i + 1];
	argv[argc - 1] = help;
	return tool_main_run(argc, argv);
}

int main(int argc, char **argv)
{
	log_set(LOG_WARN, LOG_LOGFMT); /* no line when a database opens */
	if (argc < 2) {
		tool_main_usage(stderr);
		return EXIT_USAGE;
	}
	if (tool_main_is_help(argv[1])) {
		tool_main_usage(stdout);
		return 0;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "version")) {
		output_print_version();
		return 0;
	}
	if (!strcmp(argv[1], "help"))
		return tool_main_help(argc, argv);
	return tool_main_run(argc, argv);
}
