#include <jansson.h>

#include "cmd/epitool/epitool.h"
#include "cmd/epitool/profile_file.h"
#include "cmd/epitool/progress.h"
#include "cmd/epitool/times.h"
#include "proto/any/any.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/labels.h"
#include "base/net/percent.h"
#include "base/quote.h"
#include "base/self/flags.h"

#define FILES_MAX 1024

static const char usage[] = "push [FLAGS] -l job=NAME [-l LABEL=VALUE]... FILE...";
static const char about[] =
	"Sends profiles to a server that runs with --web.enable-ingest: pprof, folded\n"
	"stacks, speedscope, recordings of Java (JFR), formats before pprof; in gzip, zstd,\n"
	"lz4 or plain. - is standard input. A file is answered when it is stored for good.\n"
	"A recording is stored as several profiles, unless --name chooses one.\n"
	"\n"
	"The label job says whose profiles they are. Without it the job is that of service_name.\n"
	"-l job= stores profiles without a job.\n"
	"\n"
	"A different profile with the same labels and time gets the next nanosecond.\n"
	"Profiles have environment=\"ci\", unless a label says otherwise: rules leave them out by\n"
	"environment!=\"ci\".";

struct push_flags {
	struct client_options client;
	const char *name, *time;
	int64_t interval_ns;
	struct flag_list labels;
};

static bool tool_push_is_label(const char *text)
{
	const char *equals = strchr(text, '=');
	struct str name = { text, equals ? (size_t)(equals - text) : 0 };

	return equals && label_name_valid(name);
}

/* -l environment= leaves it out. */
static const char *push_flags_label(const struct push_flags *f, const char *label)
{
	size_t n = strlen(label);

	for (size_t i = 0; i < f->labels.n; i++)
		if (strncmp(f->labels.v[i], label, n) == 0 && f->labels.v[i][n] == '=')
			return f->labels.v[i] + n + 1;
	return NULL;
}

static enum err_code push_flags_check(const struct push_flags *f, struct err *err)
{
	int64_t t;
	enum err_code rc;

	for (size_t i = 0; i < f->labels.n; i++)
		if (!tool_push_is_label(f->labels.v[i]))
			return err_set(
				err, ERR_INVALID, "--label wants NAME=VALUE, not \"%s\"", f->labels.v[i]);
	if (!push_flags_label(f, "job") && !push_flags_label(f, "service_name"))
		return err_set(err, ERR_INVALID,
			"the profiles have no job: name it with -l job=NAME; -l job= stores them without");
	if (f->time[0] && (rc = time_arg_parse(str_of(f->time), clock_now_ns(), &t, err)))
		return err_wrap(err, rc, "--time");
	return ERR_OK;
}

static void push_add_param(struct buf *path, struct str name, struct str value)
{
	buf_add_str(path, name);
	buf_add_char(path, '=');
	percent_encode(path, value, PERCENT_VALUE);
	buf_add_char(path, '&');
}

/*
 * A time such as "now" is taken when a file is sent, so files of one type do not replace each
 * other.
 */
static enum err_code push_flags_add_params(
	const struct push_flags *f, struct str name, struct buf *path, struct err *err)
{
	int64_t t;
	enum err_code rc;

	buf_add_cstr(path, "/api/v1/ingest?");
	if (name.len)
		push_add_param(path, STR("name"), name);
	for (size_t i = 0; i < f->labels.n; i++) {
		const char *text = f->labels.v[i], *equals = strchr(text, '=');

		push_add_param(path, (struct str){ text, (size_t)(equals - text) }, str_of(equals + 1));
	}
	if (!push_flags_label(f, "environment"))
		push_add_param(path, STR("environment"), STR("ci"));
	if (!push_flags_label(f, "job"))
		push_add_param(path, STR("job"), str_of(push_flags_label(f, "service_name")));
	if (f->time[0]) {
		if ((rc = time_arg_parse(str_of(f->time), clock_now_ns(), &t, err)))
			return rc;
		buf_add_cstr(path, "time=");
		time_arg_print(path, t);
		buf_add_char(path, '&');
	}
	if (f->interval_ns) {
		buf_add_cstr(path, "interval=");
		duration_print(path, f->interval_ns);
		buf_add_char(path, '&');
	}
	if (!buf_failed(path))
		path->len--; /* there is an environment, given or not */
	buf_add_char(path, '\0');
	return buf_failed(path) ? err_nomem(err, "push") : ERR_OK;
}

static void tool_push_tell_profile(const char *file, const json_t *stored)
{
	const char *time = json_string_value(json_object_get(stored, "time"));
	const char *name = json_string_value(json_object_get(stored, "name"));
	struct buf text = { 0 };

	buf_add_printable(&text, str_of(name ? name : "?"));
	buf_add_cstr(&text, " at ");
	buf_add_printable(&text, str_of(time ? time : "?"));
	printf("%s: stored as " STR_FMT ", %lld samples\n", file, STR_ARG(buf_str(&text)),
		(long long)json_integer_value(json_object_get(stored, "samples")));
	buf_release(&text);
}

static void tool_push_tell(const char *file, struct str answer)
{
	json_t *root = json_loadb(answer.ptr, answer.len, 0, NULL), *line;
	json_t *profiles = json_object_get(json_object_get(root, "data"), "profiles");
	struct buf text = { 0 };
	size_t i;

	json_array_foreach (profiles, i, line)
		tool_push_tell_profile(file, line);
	json_array_foreach (json_object_get(root, "warnings"), i, line) {
		buf_clear(&text);
		buf_add_printable(&text, str_of(json_string_value(line)));
		fprintf(stderr, "epitool: warning: %s: " STR_FMT "\n", file, STR_ARG(buf_str(&text)));
	}
	buf_release(&text);
	json_decref(root);
}

/* Empty: the server takes the names that a recording of Java has. */
static enum err_code push_choose_name(const struct push_flags *f, const char *file,
	const struct any_file *any, struct str *out, struct err *err)
{
	*out = str_of(f->name);
	if (out->len || any->format == ANY_JFR)
		return ERR_OK;
	if (!any->v[0].is_named)
		return err_set(err, ERR_INVALID,
			"%s: its sample types do not say which profile it is: use --name", file);
	*out = any->v[0].name;
	return ERR_OK;
}

static enum err_code push_bytes(const struct push_flags *f, const char *file, struct str bytes,
	struct arena *a, struct err *err)
{
	struct client_request r = { .content_type = "application/octet-stream", .body = bytes };
	struct buf path = { 0 }, answer = { 0 };
	struct any_file any;
	struct str name;
	enum err_code rc;

	if ((rc = profile_file_decode(file, bytes, a, &any, err)) ||
		(rc = push_choose_name(f, file, &any, &name, err)))
		return rc;
	if (!(rc = push_flags_add_params(f, name, &path, err))) {
		r.path = path.ptr;
		progress_begin(file);
		rc = client_send(&f->client, &r, &answer, err);
		progress_end();
		if (rc)
			err_wrap(err, rc, "%s", file);
		else
			tool_push_tell(file, buf_str(&answer));
	}
	buf_release(&path);
	buf_release(&answer);
	return rc;
}

static enum err_code push_file(const struct push_flags *f, const char *file, struct err *err)
{
	struct buf bytes = { 0 };
	struct arena a;
	enum err_code rc;

	arena_init(&a, pprof_limits_default.arena_bytes_max);
	if (!(rc = profile_file_read(file, &bytes, err)))
		rc = push_bytes(f, file, buf_str(&bytes), &a, err);
	arena_release(&a);
	buf_release(&bytes);
	return rc;
}

int tool_push(int argc, char **argv)
{
	struct push_flags f = { 0 };
	struct flag flags[] = {
		{ "label", FLAG_LIST, &f.labels, NULL,
			"NAME=VALUE; may be given several times; job=NAME is needed.", .short_name = 'l' },
		{ "name", FLAG_STRING, &f.name, "",
			"Which profile: process_cpu, memory, ...; default: what the sample types say." },
		{ "time", FLAG_STRING, &f.time, "",
			"When it ended: RFC 3339, unix seconds, now, now-1h; default: as the profile "
			"says." },
		{ "interval", FLAG_DURATION, &f.interval_ns, "0s",
			"How often such a profile is pushed, for levels such as memory in use." },
		{ "server", FLAG_STRING, &f.client.server, SERVER_DEFAULT, "Server to send to." },
		{ "http.config.file", FLAG_STRING, &f.client.http_config, "",
			"File with basic_auth, authorization, tls_config and so on for the server." },
		{ "timeout", FLAG_DURATION, &f.client.timeout_ns, "2m",
			"Longest time to wait for each file." },
	};
	size_t n = sizeof(flags) / sizeof(flags[0]), files_n = 0, failed = 0;
	const char *files[FILES_MAX];
	struct err err = { 0 };
	int rc = output_read_flags(flags, n, argc, argv, usage, about, files, 1, FILES_MAX, &files_n);

	if (rc >= 0)
		return rc;
	if (push_flags_check(&f, &err)) {
		fprintf(stderr, "epitool: error: %s\nusage: epitool %s\n", err.msg, usage);
		return EXIT_USAGE;
	}
	interrupt_catch();
	for (size_t i = 0; i < files_n; i++) {
		if (!atomic_load(&interrupted) && !push_file(&f, files[i], &err))
			continue;
		failed++;
		fprintf(stderr, "epitool: error: %s\n", atomic_load(&interrupted) ? "canceled" : err.msg);
	}
	if (files_n > 1)
		printf("%zu stored, %zu failed\n", files_n - failed, failed);
	return failed ? EXIT_FAILED : 0;
}
