/* convert: the configuration of another program as ours, on standard output. */
#include <stdio.h>

#include "base/fs.h"
#include "base/quote.h"
#include "base/self/flags.h"
#include "cmd/epitool/convert/convert.h"
#include "cmd/epitool/epitool.h"
#include "scrape/config/config.h"

#define OUTPUT "standard output"

static const struct program {
	const char *name;
	enum err_code (*convert)(struct conversion *x, struct err *err);
} programs[] = {
	{ "prometheus", convert_prometheus },
	{ "parca", convert_parca },
	{ "alloy", convert_alloy },
	{ "pyroscope", convert_pyroscope },
};

#define PROGRAMS_N (sizeof(programs) / sizeof(programs[0]))

static const struct program *find_program(const char *name)
{
	struct nearest near = nearest_to(str_of(name));

	for (size_t i = 0; i < PROGRAMS_N; i++) {
		if (!strcmp(programs[i].name, name))
			return &programs[i];
		nearest_try(&near, str_of(programs[i].name));
	}
	fprintf(stderr,
		"epitool: error: unknown program %s%s\nknown are prometheus, parca, alloy and pyroscope\n",
		QUOTED(str_of(name)), DID_YOU_MEAN(&near));
	return NULL;
}

static void show_notes(const struct conversion *x)
{
	for (const struct note *n = x->notes; n; n = n->next)
		fprintf(stderr, "%s:%u:%u: %s\n", x->file, n->line, n->column, n->text);
}

/* What was written must load, as the server does. */
static enum err_code check_output(const char *file, struct str text, struct err *err)
{
	const struct config_reading how = { .syntax_only = true };
	struct yaml_problems problems;
	struct config *c = NULL;
	enum err_code rc;

	yaml_problems_init(&problems);
	rc = config_read_text(OUTPUT, path_dir(str_of(file)), text, &how, &problems, &c, err);
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
	show_notes(&x);
	buf_printf(
		&out, "# Converted from %s's configuration; `epitool check config` checks it.\n", p->name);
	items_print(&out, &x);
	if (buf_failed(&out) || x.failed)
		rc = err_nomem(err, file);
	else if (!(rc = put_output(to, buf_str(&out), err)))
		rc = check_output(file, buf_str(&out), err);
end:
	buf_release(&out);
	buf_release(&source);
	arena_release(&a);
	return rc;
}

int convert(int argc, char **argv)
{
	static const char usage[] = "convert [FLAGS] prometheus|parca|alloy|pyroscope FILE";
	static const char about[] =
		"Writes the configuration of another program as this server's, with comments where "
		"something is\nleft out, changed or needs a decision. Standard error lists the same, with "
		"places in FILE.";
	const char *args[2], *to = "";
	const struct program *p;
	struct err err = { 0 };
	struct flag flags[] = {
		{ "output", FLAG_STRING, &to, "", "File to write. Default: standard output.", 'o' },
	};
	size_t n;
	int rc = read_flags(flags, 1, argc, argv, usage, about, args, 2, 2, &n);

	if (rc >= 0)
		return rc;
	if (!(p = find_program(args[0])))
		return EXIT_USAGE;
	if (convert_file(p, args[1], to, &err)) {
		fprintf(stderr, "epitool: error: %s\n", err.msg);
		return EXIT_FAILED;
	}
	return 0;
}
