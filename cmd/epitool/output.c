#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/self/flags.h"
#include "base/self/libraries.h"
#include "cmd/epitool/epitool.h"

enum err_code output_save(const char *path, struct str content, struct err *err)
{
	struct stat st;
	enum err_code rc;
	int fd;

	if (stat(path, &st) || S_ISREG(st.st_mode))
		return fs_write_file(&fs_posix, path, content, err);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(err, errno, "write %s", path);
	rc = fs_posix.ops->write(&fs_posix, fd, content.ptr, content.len, err);
	close(fd);
	return rc;
}

enum err_code output_put(const char *path, struct str content, struct err *err)
{
	if (path[0] && strcmp(path, "-"))
		return output_save(path, content, err);
	if (fwrite(content.ptr, 1, content.len, stdout) != content.len || fflush(stdout))
		return err_set(err, ERR_IO, "standard output: cannot be written");
	return ERR_OK;
}

static flags_list_fn list_flags;
static void *list_ctx;

void flags_list_by(flags_list_fn fn, void *ctx)
{
	list_flags = fn;
	list_ctx = ctx;
}

bool flags_are_listed(const char *about, const struct flag *flags, size_t n)
{
	if (list_flags)
		list_flags(list_ctx, about, flags, n);
	return list_flags != NULL;
}

static void output_print_exits(const struct tool_command *c)
{
	printf("Exit codes:\n  0    fine\n");
	for (size_t i = 0; c && c->exits[i].code == EXIT_FAILED; i++)
		printf("  %d    %s\n", c->exits[i].code, c->exits[i].means);
	printf("  %d    the command line is wrong\n", EXIT_USAGE);
	for (size_t i = 0; c && c->exits[i].code; i++)
		if (c->exits[i].code > EXIT_USAGE)
			printf("  %-4d %s\n", c->exits[i].code, c->exits[i].means);
}

static void output_print_help(
	const struct flag *flags, size_t n, const char *usage, const char *about)
{
	struct buf text = { 0 };
	ptrdiff_t at;

	flags_print_help(&text, "", "", flags, n);
	at = str_find(buf_str(&text), STR("Flags:\n")); /* the arguments end there */
	printf(
		"usage: epitool %s\n\n%s\n\n%.*s\n", usage, about, (int)text.len - (int)at, text.ptr + at);
	output_print_exits(tool_command_of_usage(usage));
	buf_release(&text);
}

void output_print_version(void)
{
	struct buf text = { 0 };

	libraries_print_versions(&text, "epitool");
	fwrite(text.ptr, 1, text.len, stdout);
	buf_release(&text);
}

int output_read_flags(struct flag *flags, size_t n, int argc, char **argv, const char *usage,
	const char *about, const char **args, size_t min, size_t max, size_t *args_n)
{
	bool help = false, version = false;
	struct err err = { 0 };

	if (flags_are_listed(about, flags, n))
		return 0;
	if (flags_parse(flags, n, argc, argv, args, max, args_n, &help, &version, &err)) {
		fprintf(stderr, "epitool: error: %s\nusage: epitool %s\n", err.msg, usage);
		return EXIT_USAGE;
	}
	if (help) {
		output_print_help(flags, n, usage, about);
		return 0;
	}
	if (version) {
		output_print_version();
		return 0;
	}
	if (*args_n < min) {
		fprintf(stderr,
			"epitool: error: %zu of %zu arguments are missing\n"
			"usage: epitool %s\n",
			min - *args_n, min, usage);
		return EXIT_USAGE;
	}
	return -1;
}
