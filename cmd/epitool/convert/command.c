/* convert: the configuration of another program as ours, on standard output. */
#include <stdio.h>
#include <stdlib.h>

#include "base/fs.h"
#include "base/self/flags.h"
#include "cmd/epitool/convert/convert.h"
#include "cmd/epitool/epitool.h"
#include "cmd/shared/config_check.h"
#include "scrape/config/config.h"

#define OUTPUT "standard output"

struct program {
	const char *title, *usage;
	enum err_code (*convert)(struct conversion *x, struct err *err);
};

static int convert_by_place(const void *a, const void *b)
{
	const struct note *x = *(const struct note *const *)a, *y = *(const struct note *const *)b;

	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return x->column < y->column ? -1 : x->column > y->column;
}

/* In the order of the file that was converted. */
static void convert_show_notes(struct conversion *c)
{
	const struct note **v;
	size_t n = 0;

	for (const struct note *at = c->notes; at; at = at->next)
		n++;
	v = arena_array(c->arena, const struct note *, n);
	c->failed |= !v;
	n = 0;
	for (const struct note *at = c->notes; v && at; at = at->next)
		v[n++] = at;
	if (n > 1)
		qsort(v, n, sizeof(*v), convert_by_place);
	for (size_t i = 0; i < n; i++)
		fprintf(stderr, "%s:%u:%u: %s\n", c->file, v[i]->line, v[i]->column, v[i]->text);
}

/* What was written must load, as the server does. */
static enum err_code convert_check_output(
	const char *file, const char *to, struct str text, struct err *err)
{
	const struct config_reading how = { .syntax_only = true };
	const char *name = to[0] && strcmp(to, "-") != 0 ? to : OUTPUT;
	struct yaml_problems problems;
	struct config *c = NULL;
	enum err_code rc;

	yaml_problems_init(&problems);
	rc = config_read_text(name, path_dir(str_of(file)), text, &how, &problems, &c, err);
	if (!rc)
		rc = config_check_parsed(c, &problems, err);
	yaml_problems_sort(&problems);
	for (size_t i = 0; i < problems.n; i++)
		fprintf(stderr, "%s: %s\n", problems.v[i].code ? "error" : "warning", problems.v[i].text);
	if (rc)
		err_set(err, rc, "what was written does not load: see above");
	config_unref(c);
	yaml_problems_release(&problems);
	return rc;
}

static enum err_code convert_file(
	const struct program *p, const char *file, const char *to, struct err *err)
{
	struct buf source = { 0 }, out = { 0 };
	struct conversion x;
	struct arena a;
	enum err_code rc;

	arena_init(&a, CONVERT_ARENA_BYTES_MAX);
	if ((rc = fs_read_file(file, YAML_FILE_BYTES_MAX, &source, err)))
		goto end;
	conversion_init(&x, &a, file, buf_str(&source));
	if ((rc = p->convert(&x, err)))
		goto end;
	convert_show_notes(&x);
	buf_printf(&out, "# Converted from a configuration of %s; `epitool check config` checks it.\n",
		p->title);
	items_print(&out, &x);
	if (buf_failed(&out) || x.failed)
		rc = err_nomem(err, file);
	else if (!(rc = output_put(to, buf_str(&out), err)))
		rc = convert_check_output(file, to, buf_str(&out), err);
end:
	buf_release(&out);
	buf_release(&source);
	arena_release(&a);
	return rc;
}

static int convert_command(int argc, char **argv, const struct program *p)
{
	static const char about[] =
		"Writes the configuration of another program as this server's, with comments where "
		"something is\nleft out, changed or needs a decision. Standard error lists the same, with "
		"places in FILE.";
	const char *args[1], *to = "";
	struct err err = { 0 };
	struct flag flags[] = {
		{ "output", FLAG_STRING, &to, "", "File to write. Default: standard output.", 'o' },
	};
	size_t n;
	int rc = output_read_flags(flags, 1, argc, argv, p->usage, about, args, 1, 1, &n);

	if (rc >= 0)
		return rc;
	if (!convert_file(p, args[0], to, &err))
		return 0;
	fprintf(stderr, "epitool: error: %s\n", err.msg);
	return EXIT_FAILED;
}

int convert_from_prometheus(int argc, char **argv)
{
	static const struct program p = { "Prometheus", "convert prometheus [FLAGS] FILE",
		convert_prometheus };

	return convert_command(argc, argv, &p);
}

int convert_from_parca(int argc, char **argv)
{
	static const struct program p = { "Parca", "convert parca [FLAGS] FILE", convert_parca };

	return convert_command(argc, argv, &p);
}

int convert_from_alloy(int argc, char **argv)
{
	static const struct program p = { "Grafana Alloy", "convert alloy [FLAGS] FILE",
		convert_alloy };

	return convert_command(argc, argv, &p);
}

int convert_from_pyroscope(int argc, char **argv)
{
	static const struct program p = { "Pyroscope", "convert pyroscope [FLAGS] FILE",
		convert_pyroscope };

	return convert_command(argc, argv, &p);
}
