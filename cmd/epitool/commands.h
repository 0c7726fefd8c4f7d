/*
 * The commands of epitool as a table: who runs them, what they say of themselves, how they end.
 *
 * Threads: constant.
 */
#ifndef CMD_EPITOOL_COMMANDS_H
#define CMD_EPITOOL_COMMANDS_H

#include <stddef.h>

#define TOOL_EXITS_MAX 4
struct tool_exit {
	int code; /* 0: the list ends; all commands have 0, and 2 for a wrong command line */
	const char *means;
};

struct tool_command {
	const char *name, *sub; /* sub NULL: a command of one word */
	int (*run)(int argc, char **argv);
	const char *usage, *help;
	struct tool_exit exits[TOOL_EXITS_MAX + 1];
};

extern const struct tool_command tool_commands[];
extern const size_t tool_commands_n;

/* The command whose words a usage begins with ("query [FLAGS] QUERY"); NULL: none. */
const struct tool_command *tool_command_of_usage(const char *usage);

#endif
