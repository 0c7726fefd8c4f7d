/*
 * Flags: a command line as a table. --name=value, --name value, --bool, --no-bool, -x; and always
 * -h, --help and --version.
 *
 * Errors: ERR_INVALID: "unknown long flag '--x'", "expected argument for flag '--x'", and the
 *         parser's message for a value.
 */
#ifndef BASE_SELF_FLAGS_H
#define BASE_SELF_FLAGS_H

#include "base/err.h"
#include "base/str.h"

enum flag_kind {
	FLAG_BOOL, /* bool * */
	FLAG_STRING, /* const char **, points into argv */
	FLAG_DURATION, /* int64_t *, nanoseconds */
	FLAG_BYTES, /* uint64_t * */
	FLAG_UINT, /* uint64_t * */
	FLAG_LIST, /* struct flag_list *, each use adds one */
};

#define FLAG_LIST_MAX 64
struct flag_list {
	const char *v[FLAG_LIST_MAX];
	size_t n;
};

struct flag {
	const char *name; /* without "--" */
	enum flag_kind kind;
	void *value;
	const char *default_text; /* shown and, when not NULL, parsed into value first */
	const char *help;
	char short_name;
	bool set; /* out: given on the command line */
};

/*
 * Parses argv[1..argc); non-flags are moved to args (at most args_max, pointers into argv). "--"
 * ends flags. --help and --version set *help and *version and stop.
 */
MUST_CHECK enum err_code flags_parse(struct flag *flags, size_t n, int argc, char **argv,
	const char **args, size_t args_max, size_t *args_n, bool *help, bool *version, struct err *err);
void flags_print_help(
	struct buf *out, const char *program, const char *about, const struct flag *flags, size_t n);
/* In the largest unit that divides it, as bytes_parse reads it. */
void flags_print_bytes(struct buf *out, uint64_t value);
/* The value as text, for /api/v1/status/flags. */
void flag_print_value(struct buf *out, const struct flag *f);

#endif
