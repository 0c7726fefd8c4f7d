/* Files with tests: each adds itself before main() of tests/check.c, which runs one of them. */
#ifndef TESTS_CHECK_FILE_H
#define TESTS_CHECK_FILE_H

struct check_file {
	const char *path; /* tests/base/str_test.c */
	int (*run)(const char *only); /* the tests whose name contains `only`, or all; main's result */
	struct check_file *next;
};

void check_file_add(struct check_file *file);

#endif
