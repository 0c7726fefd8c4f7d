/*
 * `epitool test rules`: rules against numbers and profiles of a file, without waiting. Each test
 * has its own database; the server's own code evaluates the rules.
 */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/quote.h"
#include "cmd/epitool/epitool.h"
#include "cmd/epitool/progress.h"
#include "cmd/epitool/test_rules/eval.h"
#include "cmd/epitool/test_rules/print.h"
#include "cmd/epitool/test_rules/world.h"

#define FILES_MAX 256
#define MEMORY_MAX ((size_t)1 << 30) /* of a file's input */
#define FAULTS_MAX 100u /* of a file, that are shown */

/* The faults of a file; each is shown as a paragraph. */
struct faults {
	struct arena arena;
	struct str v[FAULTS_MAX];
	size_t n;
};

static void test_add_fault(struct faults *f, struct str text)
{
	struct str copy = str_dup(&f->arena, text);

	if (f->n < FAULTS_MAX && copy.ptr)
		f->v[f->n] = copy;
	f->n++;
}

static void test_add_message(struct faults *f, const char *text)
{
	test_add_fault(f, str_of(text));
}

struct test_running {
	const struct test_file *file;
	const struct test_group *test;
	struct faults *faults;
	struct rule_set *set;
	struct arena *arena;
	struct test_world *world;
	struct test_eval *eval;
};

/* ---- alert_rule_test ---- */

static void test_check_alerts(struct test_running *t, const struct test_alert_case *c)
{
	struct buf text = { 0 };
	struct test_alert *got;
	struct err err;
	size_t n;

	if (test_eval_firing(t->eval, t->arena, c->alertname, &got, &n, &err)) {
		test_add_message(t->faults, err.msg);
		return;
	}
	test_sort_alerts(got, n);
	test_sort_alerts(c->v, c->n);
	if (n == c->n && test_alerts_equal(got, c->v, n))
		return;
	if (t->test->name.len)
		buf_printf(&text, "    name: " STR_FMT ",\n", STR_ARG(t->test->name));
	buf_printf(&text, "    alertname: " STR_FMT ", time: ", STR_ARG(c->alertname));
	duration_print(&text, c->eval_time_ns);
	buf_add_cstr(&text, ", \n        exp:");
	test_print_alerts(&text, c->v, c->n);
	buf_add_cstr(&text, ", \n        got:");
	test_print_alerts(&text, got, n);
	test_add_fault(t->faults, buf_str(&text));
	buf_release(&text);
}

/* Cases before the next evaluation look at this one. */
static void test_check_alerts_at(struct test_running *t, int64_t from_ns, int64_t to_ns)
{
	for (size_t i = 0; i < t->test->alerts_n; i++)
		if (t->test->alerts[i].eval_time_ns >= from_ns && t->test->alerts[i].eval_time_ns < to_ns)
			test_check_alerts(t, &t->test->alerts[i]);
}

static struct str test_without_newline(struct str s)
{
	while (s.len > 0 && s.ptr[s.len - 1] == '\n')
		s.len--;
	return s;
}

/* False: rules failed, and the test ends. */
static bool test_evaluate_all(struct test_running *r)
{
	int64_t step = r->file->evaluation_interval_ns;
	struct buf faults = { 0 };
	struct err err;

	engine_set_subquery_step(test_world_engine(r->world), step);
	for (int64_t t = 0; t <= r->test->end_ns; t += step) {
		if (atomic_load(&interrupted)) {
			test_add_message(r->faults, "interrupted");
			return false;
		}
		if (test_world_store(r->world, t, &err)) {
			test_add_message(r->faults, err.msg);
			return false;
		}
		if (test_eval_at(r->eval, t, &faults, &err)) {
			test_add_fault(
				r->faults, faults.len ? test_without_newline(buf_str(&faults)) : str_of(err.msg));
			buf_release(&faults);
			return false;
		}
		test_check_alerts_at(r, t, t + step);
	}
	buf_release(&faults);
	return true;
}

/* ---- promql_expr_test ---- */

static void test_begin_expr_fault(struct buf *text, const struct test_expr_case *c)
{
	buf_add_cstr(text, "    expr: ");
	buf_add_quoted(text, c->expr);
	buf_add_cstr(text, ", time: ");
	duration_print(text, c->eval_time_ns);
}

static enum err_code test_samples_of(
	struct arena *a, const struct result *r, struct test_sample **out, size_t *n, struct err *err)
{
	size_t room = r->type == RESULT_VECTOR ? r->n : 1;

	*n = 0;
	/* nothing has the name, so its kind is unknown */
	if (r->type != RESULT_VECTOR && r->type != RESULT_SCALAR && r->n)
		return err_set(err, ERR_INVALID,
			"the result is neither costs nor a scalar; use total(), flat() or cum() for costs");
	if (!(*out = arena_array(a, struct test_sample, room + 1)))
		return arena_fail(a, "samples", err);
	if (r->type == RESULT_SCALAR)
		(*out)[(*n)++] = (struct test_sample){ .value = r->scalar };
	for (size_t i = 0; r->type == RESULT_VECTOR && i < r->n; i++)
		(*out)[(*n)++] = (struct test_sample){ r->vector[i].metric, r->vector[i].value };
	return ERR_OK;
}

static void test_check_expr(struct test_running *t, const struct test_expr_case *c)
{
	struct query_options o = { .text = c->expr, .t_ns = test_world_time(c->eval_time_ns) };
	struct test_sample *got = NULL;
	struct query *q = NULL;
	struct buf text = { 0 };
	struct err err;
	size_t n = 0;

	if (query_run(test_world_engine(t->world), &o, &q, &err) ||
		test_samples_of(query_arena(q), query_result(q), &got, &n, &err)) {
		test_begin_expr_fault(&text, c);
		buf_printf(&text, ", err: %s", err.msg);
		goto out;
	}
	test_sort_samples(got, n);
	test_sort_samples(c->v, c->n);
	if (n == c->n && test_samples_equal(got, c->v, n))
		goto out;
	test_begin_expr_fault(&text, c);
	buf_add_cstr(&text, ",\n        exp: ");
	test_print_samples(&text, c->v, c->n);
	buf_add_cstr(&text, "\n        got: ");
	test_print_samples(&text, got, n);
out:
	if (text.len)
		test_add_fault(t->faults, buf_str(&text));
	buf_release(&text);
	query_close(q);
}

/* ---- a file ---- */

static void test_run(struct test_running *t)
{
	struct err err;

	if (test_world_open(t->arena, t->test, &t->world, &err) ||
		test_eval_open(t->file, t->test, t->set, t->world, &t->eval, &err)) {
		test_add_message(t->faults, err.msg);
	} else if (test_evaluate_all(t)) {
		if (test_world_store(t->world, t->test->end_ns, &err))
			test_add_message(t->faults, err.msg);
		for (size_t i = 0; i < t->test->exprs_n; i++)
			test_check_expr(t, &t->test->exprs[i]);
	}
	test_eval_close(t->eval);
	test_world_close(t->world);
	t->eval = NULL;
	t->world = NULL;
}

/* Patterns become their files; one without any is a warning. */
static enum err_code test_find_rule_files(
	struct arena *a, const struct test_file *f, struct str **out, size_t *n, struct err *err)
{
	glob_t found = { .gl_offs = 0 };
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < f->rule_files_n && !rc; i++) {
		const char *pattern = arena_strndup(a, f->rule_files[i].ptr, f->rule_files[i].len);
		size_t before = found.gl_pathc;

		if (!pattern)
			rc = arena_fail(a, "test", err);
		else if (glob(pattern, i ? GLOB_APPEND : 0, NULL, &found) == GLOB_NOSPACE)
			rc = err_nomem(err, pattern);
		else if (found.gl_pathc == before)
			fprintf(stderr, "  WARNING: no file match pattern %s\n", pattern);
	}
	*n = found.gl_pathc;
	if (!rc && !(*out = arena_array(a, struct str, *n + 1)))
		rc = arena_fail(a, "test", err);
	for (size_t i = 0; i < *n && !rc; i++)
		if (!((*out)[i] = str_dup(a, str_of(found.gl_pathv[i]))).ptr)
			rc = arena_fail(a, "test", err);
	if (f->rule_files_n)
		globfree(&found);
	return rc;
}

static void test_run_tests(struct arena *a, const struct test_file *f, struct faults *faults)
{
	struct str *rule_files;
	size_t rule_files_n;
	struct err err;

	if (test_find_rule_files(a, f, &rule_files, &rule_files_n, &err)) {
		test_add_message(faults, err.msg);
		return;
	}
	for (size_t i = 0; i < f->tests_n; i++) {
		const struct test_group *g = &f->tests[i];
		struct rules_load load = {
			.patterns = rule_files, .patterns_n = rule_files_n, .interval_ns = g->interval_ns
		};
		struct test_running x = { .file = f, .test = g, .faults = faults, .arena = a };

		if (rule_set_load(&load, &x.set, &err)) {
			test_add_message(faults, err.msg);
			continue;
		}
		test_run(&x);
		rule_set_unref(x.set);
	}
}

/* True: all tests passed. */
static bool test_one(const char *path)
{
	struct faults faults = { 0 };
	struct test_file *f;
	struct buf text = { 0 };
	struct arena a;
	struct err err;
	bool ok;

	arena_init(&a, MEMORY_MAX);
	arena_init(&faults.arena, 0);
	printf("Unit Testing:  %s\n", path);
	fflush(stdout);
	if (fs_read_file(path, YAML_FILE_BYTES_MAX, &text, &err) ||
		test_file_parse(&a, path, buf_str(&text), &f, &err)) {
		test_add_message(&faults, err.msg);
	} else {
		test_run_tests(&a, f, &faults);
	}
	ok = faults.n == 0;
	if (ok)
		printf("  SUCCESS\n");
	else
		fprintf(stderr, "  FAILED:\n");
	for (size_t i = 0; i < faults.n && i < FAULTS_MAX; i++) {
		fprintf(stderr, STR_FMT "\n", STR_ARG(faults.v[i]));
		printf("\n");
		fflush(stdout);
	}
	if (faults.n > FAULTS_MAX)
		fprintf(stderr, "and %zu more\n", faults.n - FAULTS_MAX);
	printf("\n");
	fflush(stdout);
	buf_release(&text);
	arena_release(&faults.arena);
	arena_release(&a);
	return ok;
}

int test_rules(int argc, char **argv)
{
	const char *files[FILES_MAX];
	size_t n = 0;
	int rc;

	rc = output_read_flags(NULL, 0, argc, argv, "test rules FILE...",
		"Run the tests of rules that the files hold: numbers and profiles over time, and the\n"
		"alerts and samples that rules must make of them. The format is promtool's, and\n"
		"input_profiles beside input_series. Exit code 1 where a test fails.",
		files, 1, FILES_MAX, &n);
	if (rc >= 0)
		return rc;
	interrupt_catch();
	log_set(LOG_ERROR, LOG_LOGFMT); /* errors of rules are shown below their test */
	rc = 0;
	for (size_t i = 0; i < n && !atomic_load(&interrupted); i++)
		if (!test_one(files[i]))
			rc = EXIT_FAILED;
	return rc;
}
