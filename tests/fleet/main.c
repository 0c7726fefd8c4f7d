#include <stdio.h>

#include "base/self/heap.h"
#include "tests/fleet/command.h"
#include "tests/fleet/fleet.h"

static const struct command {
	const char *name, *usage, *help;
	enum err_code (*run)(int argc, char **argv, struct err *err);
} commands[] = {
	{ "fit", "FILE...", "the numbers of recorded profiles", command_fit },
	{ "floor", "[FILE...]", "bytes per sample that no encoding gets below", command_floor },
	{ "write", "DIR", "made-up profiles as files", command_write },
	{ "push", "--data=DIR", "made-up profiles into a database", command_push },
	{ "speed", "", "how quickly rows and profiles are made", command_speed },
};
#define COMMANDS_N (sizeof(commands) / sizeof(commands[0]))

int main(int argc, char **argv)
{
	struct err err = { 0 };

	heap_tune();
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < COMMANDS_N && argc > 1; i++) {
		if (strcmp(commands[i].name, argv[1]) != 0)
			continue;
		if (commands[i].run(argc - 1, argv + 1, &err) == ERR_OK)
			return 0;
		fprintf(stderr, "fleet %s: %s\n", argv[1], err.msg);
		return 1;
	}
	fprintf(stderr, "usage: fleet COMMAND [--help]\n");
	for (size_t i = 0; i < COMMANDS_N; i++)
		fprintf(stderr, "  %-6s %-12s %s\n", commands[i].name, commands[i].usage, commands[i].help);
	fprintf(stderr, "sets:");
	for (size_t i = 0; i < fleet_sets_n; i++)
		fprintf(stderr, " %s", fleet_sets[i].name);
	fprintf(stderr, "\n");
	return 2;
}
