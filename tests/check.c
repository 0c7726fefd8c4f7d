/*
 * main() of a room's test program. `build/tests/base/str_test` is the program of tests/base under
 * another name, and runs the tests of tests/base/str_test.c.
 */
#include "tests/check_file.h"

#include <stdio.h>
#include <string.h>

static struct check_file *check_files;

void check_file_add(struct check_file *file)
{
	file->next = check_files;
	check_files = file;
}

/* The part behind the last slash. */
static const char *check_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int main(int argc, char **argv)
{
	const char *name = check_base_name(argv[0]);
	size_t n = strlen(name);

	for (const struct check_file *f = check_files; f; f = f->next) {
		const char *file = check_base_name(f->path);

		if (strncmp(file, name, n) == 0 && strcmp(file + n, ".c") == 0)
			return f->run(argc > 1 ? argv[1] : NULL);
	}
	fprintf(stderr, "%s: this program has no such tests:\n", name);
	for (const struct check_file *f = check_files; f; f = f->next)
		fprintf(stderr, "  %s\n", f->path);
	return 2;
}
