#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cmd/epitool/epitool.h"
#include "cmd/epitool/progress.h"

struct command {
	const char *name, *sub; /* sub NULL: a command of one word */
	int (*run)(int argc, char **argv);
	const char *usage, *help;
};

/* clang-format off */
static const struct command commands[] = {
	{ "check", "config", check_config, "check config FILE...",
		"Check configuration files, their rule files, and that files they name are there." },
	{ "check", "rules", check_rules, "check rules FILE...", "Check files of rules." },
	{ "check", "web-config", check_web_config, "check web-config FILE...",
		"Check files for --web.config.file." },
	{ "test", "rules", test_rules, "test rules FILE...",
		"Run tests of rules: promtool's files, and profiles." },
	{ "query", NULL, query, "query [FLAGS] QUERY",
		"Ask a server or a data directory." },
	{ "diff", NULL, diff, "diff [FLAGS] BASE NEW",
		"What changed between two runs, queries or files." },
	{ "push", NULL, push, "push [FLAGS] FILE...", "Send pprof files to a server." },
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
};
/* clang-format on */

#define COMMANDS_N (sizeof(commands) / sizeof(commands[0]))

static void usage(FILE *to)
{
	fprintf(to, "usage: epitool COMMAND [FLAGS] [ARGUMENTS]\n\n");
	for (size_t i = 0; i < COMMANDS_N; i++)
		fprintf(to, "  %-55s %s\n", commands[i].usage, commands[i].help);
	fprintf(to, "\n`epitool COMMAND --help` shows a command's flags.\n");
}

int main(int argc, char **argv)
{
	log_set(LOG_WARN, LOG_LOGFMT); /* no line when a database opens */
	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		usage(stdout);
		return 0;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("epitool, version %s\n", EPI_VERSION);
		return 0;
	}
	for (size_t i = 0; i < COMMANDS_N; i++) {
		const struct command *c = &commands[i];
		int words = c->sub ? 2 : 1;

		if (strcmp(argv[1], c->name) || (c->sub && (argc < 3 || strcmp(argv[2], c->sub))))
			continue;
		return interrupt_exit_code(c->run(argc - words, argv + words));
	}
	fprintf(stderr, "epitool: error: unknown command '%s%s%s'\n", argv[1], argc > 2 ? " " : "",
		argc > 2 ? argv[2] : "");
	usage(stderr);
	return EXIT_USAGE;
}
