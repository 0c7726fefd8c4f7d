#include <jansson.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/flags.h"
#include "base/fs.h"
#include "cmd/epitool/epitool.h"

struct query_flags {
	struct client_options client;
	const char *time, *start, *end, *format, *output;
};

static void print_metric(json_t *metric, struct buf *out)
{
	const char *key;
	json_t *value;
	bool first = true;

	buf_add_char(out, '{');
	json_object_foreach(metric, key, value)
	{
		buf_printf(out, "%s%s=\"%s\"", first ? "" : ", ", key, json_string_value(value));
		first = false;
	}
	buf_add_char(out, '}');
}

/* [[time, "value"]]: the value, which is all an instant has to show. */
static const char *sample_text(json_t *sample)
{
	const char *s = json_string_value(json_array_get(sample, 1));

	return s ? s : "";
}

static void print_vector(json_t *result, struct buf *out)
{
	json_t *element;
	size_t i;

	json_array_foreach(result, i, element)
	{
		buf_printf(out, "%20s  ", sample_text(json_object_get(element, "value")));
		print_metric(json_object_get(element, "metric"), out);
		buf_add_char(out, '\n');
	}
}

static void print_top(json_t *result, struct buf *out)
{
	json_t *element, *row;
	size_t i, k;

	json_array_foreach(result, i, element)
	{
		print_metric(json_object_get(element, "metric"), out);
		buf_printf(out, "  total %lld %s\n%16s %8s %8s %16s %8s  %s\n",
			(long long)json_integer_value(json_object_get(element, "total")),
			json_string_value(json_object_get(element, "unit")), "flat", "flat%",
			"sum%", "cum", "cum%", "function");
		json_array_foreach(json_object_get(element, "rows"), k, row)
			buf_printf(out, "%16lld %7.2f%% %7.2f%% %16lld %7.2f%%  %s\n",
				(long long)json_integer_value(json_object_get(row, "flat")),
				json_number_value(json_object_get(row, "flat_percent")),
				json_number_value(json_object_get(row, "sum_percent")),
				(long long)json_integer_value(json_object_get(row, "cum")),
				json_number_value(json_object_get(row, "cum_percent")),
				json_string_value(json_object_get(row, "function")));
	}
}

static void print_profiles(json_t *result, struct buf *out)
{
	json_t *element;
	size_t i;

	json_array_foreach(result, i, element)
	{
		buf_printf(out, "%20lld %-12s %6lld profiles  ",
			(long long)json_integer_value(json_object_get(element, "total")),
			json_string_value(json_object_get(element, "unit")),
			(long long)json_integer_value(json_object_get(element, "profiles")));
		print_metric(json_object_get(element, "metric"), out);
		buf_add_char(out, '\n');
	}
}

/* The JSON answer as a table. What a server of another version may add is left out. */
static enum err_code print_table(struct str answer, struct buf *out, struct err *err)
{
	json_error_t where;
	json_t *root = json_loadb(answer.ptr, answer.len, 0, &where), *data, *result, *line;
	const char *type;
	size_t i;

	if (!root)
		return err_set(err, ERR_INVALID, "the answer is not JSON: %s", where.text);
	data = json_object_get(root, "data");
	result = json_object_get(data, "result");
	type = json_string_value(json_object_get(data, "resultType"));
	if (!type)
		type = "";
	json_array_foreach(json_object_get(root, "warnings"), i, line)
		fprintf(stderr, "warning: %s\n", json_string_value(line));
	if (!strcmp(type, "vector"))
		print_vector(result, out);
	else if (!strcmp(type, "top"))
		print_top(result, out);
	else if (!strcmp(type, "profiles"))
		print_profiles(result, out);
	else
		buf_printf(out, "%s\n", sample_text(result));
	if (json_array_size(result) == 0)
		fprintf(stderr, "epitool: nothing found\n");
	json_decref(root);
	return ERR_OK;
}

static void add_param(struct buf *url, const char *name, const char *value)
{
	if (!value || !value[0])
		return;
	buf_printf(url, "&%s=", name);
	url_escape(url, str_of(value));
}

/* A file is replaced whole or not at all; what is no file (/dev/stdout, a pipe) is written to as it
 * is. */
static enum err_code save(const char *path, struct str content, struct err *err)
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

static enum err_code run(const struct query_flags *f, const char *text, struct err *err)
{
	bool table = !strcmp(f->format, "table");
	struct buf url = { 0 }, answer = { 0 }, shown = { 0 };
	struct buf *print = table ? &shown : &answer;
	enum err_code rc;

	buf_add_cstr(&url, "/api/v1/query?query=");
	url_escape(&url, str_of(text));
	add_param(&url, "format", table ? "json" : f->format);
	add_param(&url, "time", f->time);
	add_param(&url, "start", f->start);
	add_param(&url, "end", f->end);
	buf_add_char(&url, '\0');
	if (buf_failed(&url))
		rc = err_set(err, ERR_NOMEM, "query: out of memory");
	else
		rc = client_get(&f->client, url.ptr, &answer, err);
	if (!rc && table)
		rc = print_table(buf_str(&answer), &shown, err);
	if (!rc && f->output[0])
		rc = save(f->output, buf_str(print), err);
	else if (!rc && fwrite(print->ptr, 1, print->len, stdout) != print->len)
		rc = err_set(err, ERR_IO, "standard output: cannot be written");
	buf_release(&url);
	buf_release(&answer);
	buf_release(&shown);
	return rc;
}

int query(int argc, char **argv)
{
	struct query_flags f = { 0 };
	struct flag flags[] = {
		{ "server", FLAG_STRING, &f.client.server, "http://localhost:7272",
			"Server to ask." },
		{ "http.config.file", FLAG_STRING, &f.client.http_config, "",
			"File with basic_auth, authorization, tls_config for the server." },
		{ "timeout", FLAG_DURATION, &f.client.timeout_ns, "2m",
			"Time to wait for the answer." },
		{ "time", FLAG_STRING, &f.time, "", "Evaluate at this time; default: now." },
		{ "start", FLAG_STRING, &f.start, "", "With --end: all profiles in between." },
		{ "end", FLAG_STRING, &f.end, "", "See --start." },
		{ "format", FLAG_STRING, &f.format, "table",
			"table, json, folded, text or pprof." },
		{ "output", FLAG_STRING, &f.output, "", "File to write the answer to.",
			.short_name = 'o' },
	};
	size_t flags_n = sizeof(flags) / sizeof(flags[0]), n = 0;
	const char *args[2];
	bool help = false, version = false;
	struct err err = { 0 };

	if (flags_parse(flags, flags_n, argc, argv, args, 2, &n, &help, &version, &err) ||
		(!help && n != 1)) {
		fprintf(stderr, "epitool: error: %s\n",
			err.msg[0] ? err.msg : "query wants one QUERY");
		return EXIT_USAGE;
	}
	if (help) {
		struct buf text = { 0 };

		flags_print_help(&text, "epitool query", "Asks a server.", flags, flags_n);
		fwrite(text.ptr, 1, text.len, stdout);
		buf_release(&text);
		return 0;
	}
	if (!strcmp(f.format, "pprof") && !f.output[0] && isatty(STDOUT_FILENO)) {
		fprintf(stderr, "epitool: error: pprof is binary: name a file with --output\n");
		return EXIT_USAGE;
	}
	if (run(&f, args[0], &err)) {
		fprintf(stderr, "epitool: error: %s\n", err.msg);
		return EXIT_FAILED;
	}
	return 0;
}
