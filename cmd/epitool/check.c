#include <glob.h>
#include <stdio.h>

#include "base/fs.h"
#include "base/quote.h"
#include "base/self/flags.h"
#include "cmd/epitool/epitool.h"
#include "cmd/shared/bucket_options.h"
#include "promql/rules/rules.h"
#include "scrape/config/config.h"
#include "web/http/config.h"

#define FILES_MAX 256

struct str_list {
	const char *v[RULES_FILES_MAX];
	size_t n;
};

/* A check appends its results, line by line. An error is shown below, unless it has no message. */

static enum err_code add_duplicates(
	const struct rule_set *set, struct buf *summary, struct err *err)
{
	struct rule_duplicate *v;
	struct arena a;
	enum err_code rc;
	size_t n = 0;

	arena_init(&a, 0);
	rc = rule_set_duplicates(set, &a, &v, &n, err);
	for (size_t i = 0; i < n && !rc; i++) {
		buf_add_cstr(summary, "  WARNING: ");
		rule_duplicate_print(summary, &v[i]);
		buf_add_char(summary, '\n');
	}
	arena_release(&a);
	return rc;
}

static enum err_code check_one_rules(const char *path, struct buf *summary, struct err *err)
{
	const struct rules_load l = { .interval_ns = CONFIG_INTERVAL_DEFAULT_NS };
	struct rule_set *set = NULL;
	struct buf text = { 0 };
	enum err_code rc;

	if (!(rc = fs_read_file(path, RULES_FILE_BYTES_MAX, &text, err)))
		rc = rule_set_load_text(path, buf_str(&text), &l, &set, err);
	if (!rc)
		rc = rule_set_check_names(set, err);
	if (!rc)
		rc = add_duplicates(set, summary, err);
	if (!rc)
		buf_printf(summary, "  SUCCESS: %zu rules found\n", set->rules_n);
	rule_set_unref(set);
	buf_release(&text);
	return rc;
}

/* Each file once, and at most as many as the server takes. */
static enum err_code add_rule_files(
	const glob_t *found, struct arena *a, struct str_list *out, struct err *err)
{
	size_t k;

	for (size_t i = 0; i < found->gl_pathc; i++) {
		for (k = 0; k < out->n && strcmp(out->v[k], found->gl_pathv[i]) != 0; k++)
			;
		if (k < out->n)
			continue;
		if (out->n == RULES_FILES_MAX)
			return err_set(err, ERR_LIMIT, "more than %u rule files", RULES_FILES_MAX);
		if (!(out->v[out->n] = arena_strndup(a, found->gl_pathv[i], strlen(found->gl_pathv[i]))))
			return arena_fail(a, "rule files", err);
		out->n++;
	}
	return ERR_OK;
}

/* A pattern that finds nothing is fine; a name without wildcards must be there. */
static enum err_code find_rule_files(
	const struct config *c, struct arena *a, struct str_list *out, struct err *err)
{
	enum err_code rc = ERR_OK;
	glob_t found;
	struct str path;
	int failed;

	for (size_t i = 0; i < c->rule_files_n && !rc; i++) {
		path = str_dup(a, c->rule_files[i]);
		if (!path.ptr)
			return arena_fail(a, "rule files", err);
		failed = glob(path.ptr, 0, NULL, &found);
		if (failed == GLOB_NOMATCH) {
			if (strpbrk(path.ptr, "*?["))
				continue;
			return err_set(
				err, ERR_NOT_FOUND, "%s does not point to an existing file", QUOTED(path));
		}
		if (failed)
			return err_set(err, ERR_IO, "rule files %s: cannot be listed", path.ptr);
		rc = add_rule_files(&found, a, out, err);
		globfree(&found);
	}
	return rc;
}

static enum err_code check_one_config(const char *path, struct buf *summary, struct err *err)
{
	struct config *c = NULL;
	struct str_list rules = { 0 };
	struct arena a;
	enum err_code rc, one;

	arena_init(&a, 0);
	if ((rc = config_load_file(path, &c, err)) || (rc = config_check_files(c, err)) ||
		(rc = bucket_options_check(&c->bucket, err)) || (rc = find_rule_files(c, &a, &rules, err)))
		goto end;
	if (c->rule_files_n)
		buf_printf(summary, "  SUCCESS: %zu rule files found\n", rules.n);
	buf_printf(summary, " SUCCESS: %s is valid: %zu scrape %s\n", path, c->scrape_n,
		c->scrape_n == 1 ? "config" : "configs");
	for (size_t i = 0; i < rules.n; i++) { /* each error is shown with its file */
		buf_printf(summary, "Checking %s\n", rules.v[i]);
		if ((one = check_one_rules(rules.v[i], summary, err))) {
			buf_printf(summary, "  FAILED: %s\n", err->msg);
			err->msg[0] = '\0';
			rc = one;
		}
	}
end:
	config_unref(c);
	arena_release(&a);
	return rc;
}

static enum err_code check_one_web_config(const char *path, struct buf *summary, struct err *err)
{
	enum err_code rc = web_config_check(path, err);

	if (!rc)
		buf_printf(summary, " SUCCESS: %s is valid\n", path);
	return rc;
}

static int check_files(int argc, char **argv, const char *what,
	enum err_code (*check)(const char *, struct buf *, struct err *))
{
	const char *files[FILES_MAX];
	struct err err = { 0 };
	bool help = false, version = false;
	enum err_code failed;
	size_t n = 0;
	int rc = 0;

	if (flags_are_listed(NULL, 0))
		return 0;
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
		failed = check(files[i], &summary, &err);
		fprintf(stderr, STR_FMT, STR_ARG(buf_str(&summary)));
		if (failed) {
			if (err.msg[0])
				fprintf(stderr, "  FAILED: %s\n", err.msg);
			rc = EXIT_FAILED;
		}
		buf_release(&summary);
	}
	return rc;
}

int check_config(int argc, char **argv)
{
	return check_files(argc, argv, "config", check_one_config);
}

int check_rules(int argc, char **argv)
{
	return check_files(argc, argv, "rules", check_one_rules);
}

int check_web_config(int argc, char **argv)
{
	return check_files(argc, argv, "web-config", check_one_web_config);
}
