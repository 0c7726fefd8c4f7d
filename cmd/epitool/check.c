#include <glob.h>
#include <stdio.h>

#include "base/fs.h"
#include "base/quote.h"
#include "base/self/flags.h"
#include "cmd/epitool/epitool.h"
#include "cmd/shared/config_check.h"
#include "promql/rules/rules.h"
#include "scrape/config/config.h"
#include "web/http/config.h"

#define FILES_MAX 256

struct str_list {
	const char *v[RULES_FILES_MAX];
	size_t n;
};

/* A check appends its results, line by line. An error is shown below, unless it has no message. */

static enum err_code tool_check_add_duplicates(
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

/* Errors and warnings, each a line; *err is left for what is none of them. */
static void tool_check_show_problems(
	const struct yaml_problems *problems, struct buf *summary, enum err_code rc, struct err *err)
{
	for (size_t i = 0; i < problems->n; i++)
		buf_printf(
			summary, "  %s: %s\n", problems->v[i].code ? "FAILED" : "WARNING", problems->v[i].text);
	if (problems->warnings_n > YAML_PROBLEMS_MAX)
		buf_printf(summary, "  WARNING: and %zu more warnings\n",
			problems->warnings_n - YAML_PROBLEMS_MAX);
	if (problems->errors_n >= YAML_PROBLEMS_MAX)
		buf_printf(summary, "  FAILED: the check ends with %u errors\n", YAML_PROBLEMS_MAX);
	if (rc && problems->errors_n)
		err->msg[0] = '\0';
}

static enum err_code check_one_rules(
	const char *path, const struct config_reading *how, struct buf *summary, struct err *err)
{
	struct yaml_problems problems;
	const struct rules_load l = { .interval_ns = CONFIG_INTERVAL_DEFAULT_NS,
		.problems = &problems };
	struct rule_set *set = NULL;
	struct buf text = { 0 };
	enum err_code rc;

	(void)how;
	yaml_problems_init(&problems);
	if (!(rc = fs_read_file(path, RULES_FILE_BYTES_MAX, &text, err)))
		rc = rule_set_load_text(path, buf_str(&text), &l, &set, err);
	if (!rc)
		rc = rule_set_check_names(set, &problems, err);
	if (!rc)
		rc = tool_check_add_duplicates(set, summary, err);
	if (!rc)
		buf_printf(summary, "  SUCCESS: %zu %s found\n", set->rules_n,
			set->rules_n == 1 ? "rule" : "rules");
	else
		yaml_problems_add(&problems, err);
	yaml_problems_sort(&problems);
	tool_check_show_problems(&problems, summary, rc, err);
	yaml_problems_release(&problems);
	rule_set_unref(set);
	buf_release(&text);
	return rc;
}

/* Each file once, and at most as many as the server takes. */
static enum err_code tool_check_add_rule_files(
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
static enum err_code tool_check_find_rule_files(
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
		rc = tool_check_add_rule_files(&found, a, out, err);
		globfree(&found);
	}
	return rc;
}

/* Alloy's language is no YAML, so that the error says little. */
static void tool_check_hint_at_alloy(const char *path, struct buf *summary)
{
	struct str name = str_of(path);

	if (str_has_suffix(name, STR(".alloy")) || str_has_suffix(name, STR(".river")))
		buf_printf(summary, "  HINT: `epitool convert alloy %s` writes it as YAML\n", path);
}

static enum err_code check_one_config(
	const char *path, const struct config_reading *how, struct buf *summary, struct err *err)
{
	struct yaml_problems problems;
	struct config *c = NULL;
	struct str_list rules = { 0 };
	struct arena a;
	enum err_code rc, one;

	arena_init(&a, 0);
	yaml_problems_init(&problems);
	rc = config_read_file(path, how, &problems, &c, err);
	if (!rc)
		rc = config_check_parsed(c, &problems, err);
	if (c && !how->syntax_only) {
		if ((one = config_check_files(c, &problems, err)))
			rc = one;
		problems.noted = false;
		if ((one = tool_check_find_rule_files(c, &a, &rules, err))) {
			yaml_problems_add(&problems, err);
			rc = one;
		}
	}
	yaml_problems_sort(&problems);
	tool_check_show_problems(&problems, summary, rc, err);
	if (!c)
		tool_check_hint_at_alloy(path, summary);
	if (rc)
		goto end;
	if (c->rule_files_n && !how->syntax_only)
		buf_printf(
			summary, "  SUCCESS: %zu rule %s found\n", rules.n, rules.n == 1 ? "file" : "files");
	buf_printf(summary, " SUCCESS: %s is valid%s: %zu scrape %s\n", path,
		how->syntax_only ? " (syntax only)" : "", c->scrape_n,
		c->scrape_n == 1 ? "config" : "configs");
	for (size_t i = 0; i < rules.n; i++) { /* each error is shown with its file */
		buf_printf(summary, "Checking %s\n", rules.v[i]);
		if ((one = check_one_rules(rules.v[i], how, summary, err)))
			rc = one;
	}
end:
	config_unref(c);
	yaml_problems_release(&problems);
	arena_release(&a);
	return rc;
}

static enum err_code check_one_web_config(
	const char *path, const struct config_reading *how, struct buf *summary, struct err *err)
{
	enum err_code rc = web_config_check(path, err);

	(void)how;
	if (!rc)
		buf_printf(summary, " SUCCESS: %s is valid\n", path);
	return rc;
}

struct tool_check {
	const char *usage, *about;
	enum err_code (*one)(
		const char *path, const struct config_reading *how, struct buf *summary, struct err *err);
	struct flag *flags;
	size_t flags_n;
	struct config_reading how; /* the flags fill it in */
};

static int tool_check_files(int argc, char **argv, struct tool_check *check)
{
	const char *files[FILES_MAX];
	struct err err = { 0 };
	enum err_code failed;
	size_t n = 0;
	int rc = output_read_flags(check->flags, check->flags_n, argc, argv, check->usage, check->about,
		files, 1, FILES_MAX, &n);

	if (rc >= 0)
		return rc;
	rc = 0;
	for (size_t i = 0; i < n; i++) {
		struct buf summary = { 0 };

		fprintf(stderr, "Checking %s\n", files[i]);
		failed = check->one(files[i], &check->how, &summary, &err);
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
	struct tool_check check = {
		.usage = "check config [FLAGS] FILE...",
		.about = "All errors and warnings of configuration files, each with line and column. The "
				 "rule files\nand credentials that they name are checked too.",
		.one = check_one_config,
	};
	struct flag flags[] = {
		{ "syntax-only", FLAG_BOOL, &check.how.syntax_only, NULL,
			"Look at no file that the configuration names." },
		{ "config.ignore-foreign", FLAG_BOOL, &check.how.ignore_foreign, NULL,
			"As the server's flag: pass over sections of Prometheus that do nothing here." },
	};

	check.flags = flags;
	check.flags_n = sizeof(flags) / sizeof(flags[0]);
	return tool_check_files(argc, argv, &check);
}

int check_rules(int argc, char **argv)
{
	struct tool_check check = { .usage = "check rules FILE...",
		.about = "All errors of files of rules, each with line and column.",
		.one = check_one_rules };

	return tool_check_files(argc, argv, &check);
}

int check_web_config(int argc, char **argv)
{
	struct tool_check check = { .usage = "check web-config FILE...",
		.about = "Checks files for --web.config.file.",
		.one = check_one_web_config };

	return tool_check_files(argc, argv, &check);
}
