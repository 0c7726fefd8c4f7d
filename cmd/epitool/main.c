#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/quote.h"
#include "cmd/epitool/epitool.h"
#include "cmd/epitool/progress.h"
#include "cmd/shared/completion_script.h"

struct tool_command {
	const char *name, *sub; /* sub NULL: a command of one word */
	int (*run)(int argc, char **argv);
	const char *usage, *help;
};

static int tool_completion(int argc, char **argv);

/* clang-format off */
static const struct tool_command commands[] = {
	{ "check", "config", check_config, "check config [FLAGS] FILE...",
		"Check configuration files, their rule files, and that files they name are there." },
	{ "check", "rules", check_rules, "check rules FILE...", "Check files of rules." },
	{ "check", "web-config", check_web_config, "check web-config FILE...",
		"Check files for --web.config.file." },
	{ "convert", "prometheus", convert_from_prometheus, "convert prometheus [FLAGS] FILE",
		"A configuration of Prometheus as this server's." },
	{ "convert", "parca", convert_from_parca, "convert parca [FLAGS] FILE", "One of Parca." },
	{ "convert", "alloy", convert_from_alloy, "convert alloy [FLAGS] FILE",
		"One of Grafana Alloy." },
	{ "convert", "pyroscope", convert_from_pyroscope, "convert pyroscope [FLAGS] FILE",
		"One of Pyroscope that scrapes." },
	{ "test", "rules", test_rules, "test rules FILE...",
		"Run tests of rules: promtool's files, and profiles." },
	{ "query", NULL, tool_query, "query [FLAGS] QUERY",
		"Ask a server or a data directory." },
	{ "diff", NULL, tool_diff, "diff [FLAGS] BASE NEW",
		"What changed between two runs, queries or files." },
	{ "compare", NULL, tool_compare, "compare [FLAGS] BASE NEW | QUERY",
		"The same, or two windows of a query, and which function changed most." },
	{ "top", NULL, tool_top, "top [FLAGS] QUERY|FILE",
		"What costs most; --watch: again and again, with the change." },
	{ "flame", NULL, tool_flame, "flame [FLAGS] QUERY|FILE",
		"A flame graph in the terminal: arrows, Enter, Backspace, /." },
	{ "push", NULL, tool_push, "push [FLAGS] FILE...", "Send pprof files to a server." },
	{ "debuginfo", "upload", debuginfo_send_files, "debuginfo upload [FLAGS] FILE|DIR...",
		"Send symbols of native code to a server." },
	{ "debuginfo", "info", debuginfo_show_files, "debuginfo info FILE...",
		"Ids of ELF files, and the symbols that they have." },
	{ "bucket", "ls", objects_ls, "bucket ls [FLAGS] [PREFIX]", "Objects of a bucket." },
	{ "bucket", "get", objects_get, "bucket get [FLAGS] KEY [FILE]", "An object into a file." },
	{ "bucket", "put", objects_put, "bucket put [FLAGS] FILE KEY", "A file as an object." },
	{ "bucket", "copy", objects_copy, "bucket copy [FLAGS] FROM TO",
		"Copy between a directory and a bucket, or two buckets." },
	{ "bucket", "verify", objects_verify, "bucket verify [FLAGS] [SHARD]",
		"Is all there that manifests name?" },
	{ "bucket", "repair", objects_repair, "bucket repair [FLAGS] SHARD",
		"Make a manifest anew that is missing or damaged." },
	{ "tsdb", "list", tsdb_list, "tsdb list [--json] [DIR]",
		"Windows and blocks of a data directory." },
	{ "tsdb", "analyze", tsdb_analyze, "tsdb analyze [--json] [DIR]",
		"Where the bytes of blocks go." },
	{ "tsdb", "verify", tsdb_verify, "tsdb verify [DIR]", "Check everything against everything." },
	{ "tsdb", "repair", tsdb_repair, "tsdb repair [--accept] [DIR]",
		"What was lost, until a person accepts it." },
	{ "tsdb", "dump", tsdb_dump, "tsdb dump [--match=SELECTOR] [-o DIR] [DIR]",
		"Print rows, or write each as a pprof file." },
	{ "completion", NULL, tool_completion, "completion bash|zsh|fish",
		"Print a script that completes commands and flags in a shell." },
};
/* clang-format on */

#define COMMANDS_N (sizeof(commands) / sizeof(commands[0]))

static void tool_main_usage(FILE *to)
{
	fprintf(to, "usage: epitool COMMAND [FLAGS] [ARGUMENTS]\n\n");
	for (size_t i = 0; i < COMMANDS_N; i++)
		fprintf(to, "  %-55s %s\n", commands[i].usage, commands[i].help);
	fprintf(to, "\n`epitool COMMAND --help` shows a command's flags.\n");
}

/* ---- completion ---- */

struct tool_listing {
	struct completion c;
	const struct tool_command *command;
	char words[COMMANDS_N][32];
};

static void tool_main_list_flags(void *ctx, const struct flag *flags, size_t n)
{
	struct tool_listing *x = ctx;
	size_t i = (size_t)(x->command - commands);

	completion_command(&x->c, x->words[i], x->command->help, flags, n);
}

/* Calls each command for its flags alone; --help, so that none that forgets to ask does anything.
 */
static void tool_main_list_commands(struct tool_listing *t)
{
	char *line[] = { (char *)(uintptr_t) "epitool", (char *)(uintptr_t) "--help", NULL };

	completion_begin(&t->c);
	flags_list_by(tool_main_list_flags, t);
	for (size_t i = 0; i < COMMANDS_N; i++) {
		const struct tool_command *c = &commands[i];

		snprintf(t->words[i], sizeof(t->words[i]), "%s%s%s", c->name, c->sub ? " " : "",
			c->sub ? c->sub : "");
		t->command = c;
		c->run(2, line);
	}
	flags_list_by(NULL, NULL);
	completion_end(&t->c);
}

static int tool_completion(int argc, char **argv)
{
	static const char about[] =
		"Prints a script for a shell. bash: source <(epitool completion bash), in ~/.bashrc;\n"
		"zsh: epitool completion zsh >_epitool in a directory of $fpath;\n"
		"fish: epitool completion fish >~/.config/fish/completions/epitool.fish";
	struct buf out = { 0 };
	struct tool_listing x = { .c = { .out = &out, .program = "epitool" } };
	const char *args[1];
	struct err err;
	size_t n;
	int rc = output_read_flags(
		NULL, 0, argc, argv, "completion bash|zsh|fish", about, args, 1, 1, &n);

	if (rc >= 0)
		return rc;
	if (completion_shell_parse(args[0], &x.c.shell, &err)) {
		fprintf(stderr, "epitool: error: %s\nusage: epitool completion bash|zsh|fish\n", err.msg);
		return EXIT_USAGE;
	}
	tool_main_list_commands(&x);
	rc = 0;
	if (buf_failed(&out) || output_put("", buf_str(&out), &err)) {
		fprintf(stderr, "epitool: error: completion: %s\n",
			buf_failed(&out) ? "out of memory" : err.msg);
		rc = EXIT_FAILED;
	}
	buf_release(&out);
	return rc;
}

/* ---- what is no command ---- */

static bool tool_command_is_subcommand_of(const struct tool_command *c, const char *name)
{
	return c->sub && !strcmp(c->name, name);
}

/* "tsdb has list, analyze, ..."; nothing if no command has this first word. */
static void tool_main_add_subcommands(struct buf *out, const char *name)
{
	size_t n = 0;

	for (size_t i = 0; i < COMMANDS_N; i++)
		if (tool_command_is_subcommand_of(&commands[i], name))
			buf_printf(out, n++ ? ", %s" : "; it has %s", commands[i].sub);
}

/* The nearest of all that could be meant: a whole command, or the first word of some. */
static void tool_main_add_nearest(struct buf *out, const char *word, struct str words)
{
	struct nearest one = nearest_to(str_of(word)), two = nearest_to(words);
	static char names[COMMANDS_N][32];

	for (size_t i = 0; i < COMMANDS_N; i++) {
		snprintf(names[i], sizeof(names[i]), "%s %s", commands[i].name,
			commands[i].sub ? commands[i].sub : "");
		if (commands[i].sub)
			nearest_try(&two, str_of(names[i]));
		nearest_try(&one, str_of(commands[i].name));
	}
	buf_printf(out, "%s",
		two.name.len && (!one.name.len || two.distance <= one.distance) ? DID_YOU_MEAN(&two) :
																		  DID_YOU_MEAN(&one));
}

static void tool_main_unknown_command(const char *word, const char *second)
{
	struct buf words = { 0 }, out = { 0 };
	bool has_subs = false;

	for (size_t i = 0; i < COMMANDS_N; i++)
		has_subs = has_subs || tool_command_is_subcommand_of(&commands[i], word);
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

int main(int argc, char **argv)
{
	log_set(LOG_WARN, LOG_LOGFMT); /* no line when a database opens */
	if (argc < 2) {
		tool_main_usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		tool_main_usage(stdout);
		return 0;
	}
	if (!strcmp(argv[1], "--version")) {
		output_print_version();
		return 0;
	}
	for (size_t i = 0; i < COMMANDS_N; i++) {
		const struct tool_command *c = &commands[i];
		int words = c->sub ? 2 : 1;

		if (strcmp(argv[1], c->name) || (c->sub && (argc < 3 || strcmp(argv[2], c->sub))))
			continue;
		return interrupt_exit_code(c->run(argc - words, argv + words));
	}
	tool_main_unknown_command(argv[1], argc > 2 ? argv[2] : "");
	return EXIT_USAGE;
}
