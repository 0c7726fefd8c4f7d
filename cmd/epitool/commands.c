/* The commands as a table, and `completion`, which walks it. */
#include <stdio.h>
#include <string.h>

#include "cmd/epitool/backup/backup_command.h"
#include "cmd/epitool/epitool.h"
#include "cmd/shared/completion_script.h"

#define INTERRUPTED "ended by Ctrl-C"

static int tool_completion(int argc, char **argv);

/* clang-format off */
const struct tool_command tool_commands[] = {
	{ "check", "config", check_config, "check config [FLAGS] FILE...",
		"Check configuration files, their rule files, and that files they name are there.",
		{ { 1, "a file has an error, or names a file that cannot be read" } } },
	{ "check", "rules", check_rules, "check rules FILE...", "Check files of rules.",
		{ { 1, "a file has an error" } } },
	{ "check", "web-config", check_web_config, "check web-config FILE...",
		"Check files for --web.config.file.",
		{ { 1, "a file has an error" } } },
	{ "convert", "prometheus", convert_from_prometheus, "convert prometheus [FLAGS] FILE",
		"A configuration of Prometheus as this server's.",
		{ { 1, "the file cannot be read or converted" } } },
	{ "convert", "parca", convert_from_parca, "convert parca [FLAGS] FILE", "One of Parca.",
		{ { 1, "the file cannot be read or converted" } } },
	{ "convert", "alloy", convert_from_alloy, "convert alloy [FLAGS] FILE",
		"One of Grafana Alloy.",
		{ { 1, "the file cannot be read or converted" } } },
	{ "convert", "pyroscope", convert_from_pyroscope, "convert pyroscope [FLAGS] FILE",
		"One of Pyroscope that scrapes.",
		{ { 1, "the file cannot be read or converted" } } },
	{ "test", "rules", test_rules, "test rules FILE...",
		"Run tests of rules: promtool's files, and profiles.",
		{ { 1, "a test failed, or a file has an error" } } },
	{ "query", NULL, tool_query, "query [FLAGS] QUERY",
		"Ask a server or a data directory.",
		{ { 1, "the query failed" }, { 130, INTERRUPTED } } },
	{ "diff", NULL, tool_diff, "diff [FLAGS] BASE NEW",
		"What changed between two runs, queries or files.",
		{ { 1, "worse, or above a threshold" },
		  { 3, "cannot tell: too few runs" },
		  { 4, "not judged: a run is missing, a file cannot be read, the server does not answer" },
		  { 130, INTERRUPTED } } },
	{ "compare", NULL, tool_compare, "compare [FLAGS] BASE NEW | QUERY",
		"The same, or two windows of a query, and which function changed most.",
		{ { 1, "the query failed" }, { 130, INTERRUPTED } } },
	{ "top", NULL, tool_top, "top [FLAGS] QUERY|FILE",
		"What costs most; --watch: again and again, with the change.",
		{ { 1, "the query failed" }, { 130, INTERRUPTED } } },
	{ "flame", NULL, tool_flame, "flame [FLAGS] QUERY|FILE",
		"A flame graph in the terminal: arrows, Enter, Backspace, /.",
		{ { 1, "the query failed" }, { 130, INTERRUPTED } } },
	{ "push", NULL, tool_push, "push [FLAGS] -l job=NAME FILE...", "Send pprof files to a server.",
		{ { 1, "a file was not stored" }, { 130, INTERRUPTED } } },
	{ "debuginfo", "upload", debuginfo_send_files, "debuginfo upload [FLAGS] FILE|DIR...",
		"Send symbols of native code to a server.",
		{ { 1, "a file was not taken" }, { 130, INTERRUPTED } } },
	{ "debuginfo", "info", debuginfo_show_files, "debuginfo info [FLAGS] FILE...",
		"Ids of ELF files, and the symbols that they have.",
		{ { 1, "a file cannot be read or is not ELF" } } },
	{ "bucket", "ls", objects_ls, "bucket ls [FLAGS] [PREFIX]", "Objects of a bucket.",
		{ { 1, "the bucket does not answer, or refuses" }, { 130, INTERRUPTED } } },
	{ "bucket", "get", objects_get, "bucket get [FLAGS] KEY [FILE]", "An object into a file.",
		{ { 1, "the object is not there, or cannot be read" }, { 130, INTERRUPTED } } },
	{ "bucket", "put", objects_put, "bucket put [FLAGS] FILE KEY", "A file as an object.",
		{ { 1, "the object was not written" }, { 130, INTERRUPTED } } },
	{ "bucket", "copy", objects_copy, "bucket copy [FLAGS] FROM TO",
		"Copy between a directory and a bucket, or two buckets.",
		{ { 1, "something was not copied" }, { 130, INTERRUPTED } } },
	{ "bucket", "verify", objects_verify, "bucket verify [FLAGS] [SHARD]",
		"Is all there that manifests name?",
		{ { 1, "something is wrong" }, { 130, INTERRUPTED } } },
	{ "bucket", "repair", objects_repair, "bucket repair [FLAGS] SHARD",
		"Rebuild a manifest that is missing or damaged.",
		{ { 1, "no manifest was written" }, { 130, INTERRUPTED } } },
	{ "bucket", "shards", objects_shards, "bucket shards [FLAGS]",
		"Shards that share the targets, and what each follows.",
		{ { 1, "the bucket does not answer, or no shard has joined" }, { 130, INTERRUPTED } } },
	{ "bucket", "drain", objects_drain, "bucket drain [FLAGS] SHARD",
		"Others take over the targets of a shard, so that it may be stopped.",
		{ { 1, "the shard is not drained, or not yet" }, { 130, INTERRUPTED } } },
	{ "bucket", "admit", objects_admit, "bucket admit [FLAGS] SHARD",
		"A shard that was drained has targets again.",
		{ { 1, "nothing was changed" } } },
	{ "tsdb", "list", tsdb_list, "tsdb list [--json] [DIR]",
		"Windows and blocks of a data directory.",
		{ { 1, "the directory cannot be read" } } },
	{ "tsdb", "analyze", tsdb_analyze, "tsdb analyze [--json] [DIR]",
		"Where the bytes of blocks go.",
		{ { 1, "the directory cannot be read" } } },
	{ "tsdb", "verify", tsdb_verify, "tsdb verify [DIR]", "Check everything against everything.",
		{ { 1, "something is damaged or lost" } } },
	{ "tsdb", "repair", tsdb_repair, "tsdb repair [--accept] [DIR]",
		"What was lost, until a person accepts it.",
		{ { 1, "the directory cannot be read or written" } } },
	{ "tsdb", "dump", tsdb_dump, "tsdb dump [--match=SELECTOR] [-o DIR] [DIR]",
		"Print rows, or write each as a pprof file.",
		{ { 1, "something cannot be read or written" } } },
	{ "tsdb", "backup", tsdb_backup, "tsdb backup [FLAGS] DIR TO",
		"Back up a data directory to a directory or bucket.",
		{ { 1, "there is no backup, or it has findings" }, { 130, INTERRUPTED } } },
	{ "tsdb", "restore", tsdb_restore, "tsdb restore [FLAGS] FROM DIR",
		"Restore a backup, and verify it.",
		{ { 1, "nothing was restored, or with findings" }, { 130, INTERRUPTED } } },
	{ "tsdb", "backups", tsdb_backups, "tsdb backups [FLAGS] FROM", "List backups.",
		{ { 1, "the place cannot be read, or a manifest is damaged" }, { 130, INTERRUPTED } } },
	{ "completion", NULL, tool_completion, "completion bash|zsh|fish",
		"Print a script that completes commands and flags in a shell.",
		{ { 1, "the script cannot be written" } } },
};
/* clang-format on */

#define TOOL_COMMANDS (sizeof(tool_commands) / sizeof(tool_commands[0]))
const size_t tool_commands_n = TOOL_COMMANDS;

const struct tool_command *tool_command_of_usage(const char *usage)
{
	char words[64];

	for (size_t i = 0; i < TOOL_COMMANDS; i++) {
		const struct tool_command *c = &tool_commands[i];
		int n = snprintf(
			words, sizeof(words), "%s%s%s", c->name, c->sub ? " " : "", c->sub ? c->sub : "");

		if (!strncmp(usage, words, (size_t)n) && (!usage[n] || usage[n] == ' '))
			return c;
	}
	return NULL;
}

/* ---- completion ---- */

struct tool_listing {
	struct completion c;
	const struct tool_command *command;
	char words[TOOL_COMMANDS][32];
};

static void tool_commands_list_flags(
	void *ctx, const char *about, const struct flag *flags, size_t n)
{
	struct tool_listing *x = ctx;
	size_t i = (size_t)(x->command - tool_commands);

	completion_command(&x->c, x->words[i], x->command->help, flags, n);
}

/* Calls each command for its flags alone; --help, so that none that forgets to ask does anything.
 */
static void tool_commands_list(struct tool_listing *t)
{
	char *line[] = { (char *)(uintptr_t) "epitool", (char *)(uintptr_t) "--help", NULL };

	completion_begin(&t->c);
	flags_list_by(tool_commands_list_flags, t);
	for (size_t i = 0; i < TOOL_COMMANDS; i++) {
		const struct tool_command *c = &tool_commands[i];

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
	tool_commands_list(&x);
	rc = 0;
	if (buf_failed(&out) || output_put("", buf_str(&out), &err)) {
		fprintf(stderr, "epitool: error: completion: %s\n",
			buf_failed(&out) ? "out of memory" : err.msg);
		rc = EXIT_FAILED;
	}
	buf_release(&out);
	return rc;
}
