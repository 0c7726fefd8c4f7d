/*
 * Shell completion: scripts for bash, zsh and fish out of tables of commands and flags, for both
 * programs. They complete commands where a program has some, flags behind "-", and files elsewhere.
 *
 * Errors:    out of memory shows in the buffer's buf_failed.
 * Ownership: words outlive the calls.
 * Threads:   values; no sharing.
 */
#ifndef CMD_SHARED_COMPLETION_SCRIPT_H
#define CMD_SHARED_COMPLETION_SCRIPT_H

#include "base/self/flags.h"

#define COMPLETION_COMMANDS_MAX 64u

enum completion_shell { COMPLETION_BASH, COMPLETION_ZSH, COMPLETION_FISH };

/* ERR_INVALID names the shells that are known. */
MUST_CHECK enum err_code completion_shell_parse(
	const char *name, enum completion_shell *out, struct err *err);

struct completion {
	struct buf *out;
	enum completion_shell shell;
	const char *program;
	const char *words[COMPLETION_COMMANDS_MAX]; /* of the commands so far */
	size_t words_n;
};

void completion_begin(struct completion *c);
/*
 * words: "query" or "tsdb list"; "": of a program without commands. Those with the same first word
 * follow each other. help: one line about the command.
 */
void completion_command(
	struct completion *c, const char *words, const char *help, const struct flag *flags, size_t n);
void completion_end(struct completion *c);

#endif
