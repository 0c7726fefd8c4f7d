#include <stdio.h>
#include <stdlib.h>

#include "tests/fleet/command.h"

enum err_code command_flags(struct flag *flags, size_t n, const char *about, int argc, char **argv,
	const char **args, size_t args_max, size_t *args_n, struct err *err)
{
	bool help = false, version = false;
	enum err_code rc = flags_parse(
		flags, n, argc, argv, args, args_max, args_n, &help, &version, err);

	if (!rc && help) {
		struct buf text = { 0 };

		flags_print_help(&text, "fleet", about, flags, n);
		fwrite(text.ptr, 1, text.len, stdout);
		exit(0);
	}
	return rc;
}
