#include <stdio.h>

#include "base/flags.h"
#include "cmd/epitool/epitool.h"
#include "scrape/config.h"
#include "web/web.h"

#define FILES_MAX 256

static enum err_code check_one_config(const char *path, struct buf *summary, struct err *err)
{
	struct config *c = NULL;
	enum err_code rc;

	if ((rc = config_load_file(path, &c, err)))
		return rc;
	rc = config_check_files(c, err);
	if (!rc)
		buf_printf(summary, "%s is valid: %zu scrape %s", path, c->scrape_n,
			c->scrape_n == 1 ? "config" : "configs");
	config_unref(c);
	return rc;
}

static enum err_code check_one_web_config(const char *path, struct buf *summary, struct err *err)
{
	enum err_code rc = web_config_check(path, err);

	if (!rc)
		buf_printf(summary, "%s is valid", path);
	return rc;
}

static int check_files(int argc, char **argv, const char *what,
	enum err_code (*check)(const char *, struct buf *, struct err *))
{
	const char *files[FILES_MAX];
	struct err err = { 0 };
	bool help = false, version = false;
	size_t n = 0;
	int rc = 0;

	if (flags_parse(NULL, 0, argc, argv, files, FILES_MAX, &n, &help, &version, &err)) {
		fprintf(stderr, "epitool: error: %s\n", err.msg);
		return EXIT_USAGE;
	}
	if (help || !n) {
		fprintf(help ? stdout : stderr, "usage: epitool check %s FILE...\n", what);
		return help ? 0 : EXIT_USAGE;
	}
	for (size_t i = 0; i < n; i++) {
		struct buf summary = { 0 };

		fprintf(stderr, "Checking %s\n", files[i]);
		if (check(files[i], &summary, &err)) {
			fprintf(stderr, "  FAILED: %s\n", err.msg);
			rc = EXIT_FAILED;
		} else {
			fprintf(stderr, " SUCCESS: " STR_FMT "\n", STR_ARG(buf_str(&summary)));
		}
		buf_release(&summary);
	}
	return rc;
}

int check_config(int argc, char **argv)
{
	return check_files(argc, argv, "config", check_one_config);
}

int check_web_config(int argc, char **argv)
{
	return check_files(argc, argv, "web-config", check_one_web_config);
}
