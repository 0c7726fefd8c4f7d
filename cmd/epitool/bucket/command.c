/* bucket ls, get, put, copy: by the bucket of a configuration file. */
#include "cmd/epitool/bucket/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/self/flags.h"
#include "cmd/epitool/bucket/bucket_command.h"
#include "cmd/epitool/copiers.h"
#include "cmd/epitool/epitool.h"
#include "cmd/epitool/progress.h"
#include "cmd/epitool/table.h"
#include "cmd/shared/bucket_options.h"

#define IN_BUCKET "bucket:"

int bucket_command_failed(const struct err *err)
{
	fprintf(stderr, "epitool: error: %s\n", err->msg);
	return EXIT_FAILED;
}

enum err_code bucket_of_config(const char *file, struct bucket **out, struct err *err)
{
	/* the server may have the flag, and only the bucket matters here */
	const struct config_reading how = { .ignore_foreign = true };
	struct yaml_problems problems;
	struct bucket_config options;
	struct config *c;
	enum err_code rc;

	yaml_problems_init(&problems);
	rc = config_read_file(file, &how, &problems, &c, err);
	rc = config_first_error(&problems, rc, err);
	yaml_problems_release(&problems);
	if (rc)
		return rc;
	if (!c->bucket.present) {
		rc = err_set(err, ERR_INVALID, "%s: it has no `bucket`", file);
	} else if (!(rc = bucket_options_check(&c->bucket, err))) {
		options = bucket_options(&c->bucket);
		rc = bucket_open(&options, out, err);
	}
	config_unref(c);
	return rc;
}

/* ---- ls ---- */

struct ls {
	struct arena arena;
	struct text_table table;
	struct json json;
	bool as_json;
};

static void objects_command_add_json(
	struct json *j, const struct bucket_object *o, struct str modified)
{
	json_object(j);
	json_key(j, o->is_prefix ? "prefix" : "key");
	json_str(j, o->key);
	if (!o->is_prefix) {
		json_key(j, "bytes");
		json_u64(j, o->info.bytes);
		json_key(j, "modified");
		json_str(j, modified);
		json_key(j, "etag");
		json_cstr(j, o->info.etag);
	}
	json_object_end(j);
}

static enum err_code ls_one(void *ctx, const struct bucket_object *o, struct err *err)
{
	struct buf modified = { 0 };
	struct ls *x = ctx;
	char bytes[24] = "";

	if (atomic_load(&interrupted))
		return err_set(err, ERR_CANCELED, "interrupted");
	if (o->info.modified_ns)
		time_print_rfc3339(&modified, o->info.modified_ns);
	if (!o->is_prefix)
		snprintf(bytes, sizeof(bytes), "%" PRIu64, o->info.bytes);
	if (x->as_json) {
		objects_command_add_json(&x->json, o, buf_str(&modified));
	} else {
		table_cell(&x->table, str_of(bytes));
		table_cell(&x->table, buf_str(&modified));
		table_cell(&x->table, o->key);
	}
	buf_release(&modified);
	return ERR_OK;
}

static enum err_code objects_command_print_ls(
	struct bucket *b, const char *prefix, bool all, bool as_json, struct err *err)
{
	struct ls x = { .as_json = as_json };
	struct buf out = { 0 };
	enum err_code rc;

	arena_init(&x.arena, 0);
	text_table_init(&x.table, &x.arena);
	table_column(&x.table, "bytes", true);
	table_column(&x.table, "modified", false);
	table_column(&x.table, "key", false);
	json_init(&x.json, &out);
	if (as_json)
		json_array(&x.json);
	rc = bucket_list(b, str_of(prefix), all ? STR("") : STR("/"), STR(""), ls_one, &x, err);
	if (as_json) {
		json_array_end(&x.json);
		buf_add_char(&out, '\n');
	} else {
		table_print(&x.table, 0, &out);
	}
	if (!rc)
		rc = buf_failed(&out) ? err_nomem(err, "list") : output_put("", buf_str(&out), err);
	buf_release(&out);
	arena_release(&x.arena);
	return rc;
}

int objects_ls(int argc, char **argv)
{
	const char *file, *args[1];
	bool all = false, as_json = false;
	struct flag flags[] = {
		CONFIG_FLAG(&file),
		{ "all", FLAG_BOOL, &all, NULL, "All objects, not only those directly below." },
		{ "json", FLAG_BOOL, &as_json, NULL, "Print JSON." },
	};
	struct bucket *b = NULL;
	struct err err;
	enum err_code rc;
	size_t n;
	int code;

	code = output_read_flags(flags, sizeof(flags) / sizeof(flags[0]), argc, argv,
		"bucket ls [FLAGS] [PREFIX]",
		"Objects whose keys begin with PREFIX (behind the prefix of the configuration), and\n"
		"what other keys have in common up to the next /.",
		args, 0, 1, &n);
	if (code >= 0)
		return code;
	interrupt_catch();
	if (!(rc = bucket_of_config(file, &b, &err)))
		rc = objects_command_print_ls(b, n ? args[0] : "", all, as_json, &err);
	bucket_close(b);
	return rc ? bucket_command_failed(&err) : 0;
}

/* ---- get, put ---- */

static enum err_code objects_command_get(
	struct bucket *b, const char *key, const char *path, struct err *err)
{
	const struct place from = { .bucket = b, .path = "" };
	struct str dir = path_dir(str_of(path));
	const char *slash = strrchr(path, '/');
	struct place to = { 0 };
	struct buf out = { 0 };
	enum err_code rc;
	char *name;

	if (strcmp(path, "-")) {
		if (!(to.path = name = strndup(dir.ptr, dir.len)))
			return err_nomem(err, "get");
		rc = place_copy(&from, str_of(key), &to, str_of(slash ? slash + 1 : path), err);
		free(name);
		return rc;
	}
	if (!(rc = bucket_get(b, str_of(key), 0, BUCKET_TO_END, &out, NULL, err)))
		rc = output_put("-", buf_str(&out), err);
	buf_release(&out);
	return rc;
}

static enum err_code objects_command_put(
	struct bucket *b, const char *key, const char *path, struct err *err)
{
	enum err_code rc;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(err, errno, "%s", path);
	rc = bucket_put_file(b, str_of(key), fd, err);
	close(fd);
	return rc;
}

static int objects_command_get_or_put(
	int argc, char **argv, bool is_get, const char *usage, const char *about)
{
	const char *file, *args[2];
	struct flag flags[] = { CONFIG_FLAG(&file) };
	struct bucket *b = NULL;
	struct err err;
	enum err_code rc;
	size_t n;
	int code;

	code = output_read_flags(flags, 1, argc, argv, usage, about, args, is_get ? 1 : 2, 2, &n);
	if (code >= 0)
		return code;
	progress_begin(is_get ? "getting" : "putting");
	if (!(rc = bucket_of_config(file, &b, &err)))
		rc = is_get ? objects_command_get(b, args[0], n > 1 ? args[1] : "-", &err) :
					  objects_command_put(b, args[1], args[0], &err);
	progress_end();
	bucket_close(b);
	return rc ? bucket_command_failed(&err) : 0;
}

int objects_get(int argc, char **argv)
{
	return objects_command_get_or_put(argc, argv, true, "bucket get [FLAGS] KEY [FILE]",
		"An object into a file, whole or not at all, or to standard output (-).");
}

int objects_put(int argc, char **argv)
{
	return objects_command_get_or_put(
		argc, argv, false, "bucket put [FLAGS] FILE KEY", "A file as an object.");
}

/* ---- copy ---- */

struct copy_flags {
	const char *file, *to_file;
	uint64_t workers;
};

static bool objects_command_is_in_bucket(const char *text)
{
	return !strncmp(text, IN_BUCKET, strlen(IN_BUCKET));
}

enum err_code bucket_place_open(
	const char *text, const char *file, struct bucket_place *out, struct err *err)
{
	bool in_bucket = objects_command_is_in_bucket(text);
	struct str s = str_of(text);

	*out = (struct bucket_place){ 0 };
	if (!s.len)
		return err_set(err, ERR_INVALID, "a place is empty");
	if (in_bucket) {
		s.ptr += strlen(IN_BUCKET);
		s.len -= strlen(IN_BUCKET);
	}
	while (s.len > !in_bucket && s.ptr[s.len - 1] == '/')
		s.len--;
	if (asprintf(&out->path, STR_FMT "%s", STR_ARG(s), in_bucket && s.len ? "/" : "") < 0) {
		out->path = NULL;
		return err_nomem(err, "place");
	}
	out->is.path = out->path;
	return in_bucket ? bucket_of_config(file, &out->is.bucket, err) : ERR_OK;
}

void bucket_place_close(struct bucket_place *p)
{
	bucket_close(p->is.bucket);
	free(p->path);
}

static void objects_command_print_result(const struct copy_result *r)
{
	struct buf bytes = { 0 };

	number_print(&bytes, (double)r->bytes, STR("bytes"));
	printf("copied %" PRIu64 " objects, " STR_FMT "; %" PRIu64 " were there\n", r->copied,
		STR_ARG(buf_str(&bytes)), r->there);
	if (r->odd)
		fprintf(stderr, "epitool: %" PRIu64 " left out: no regular file, or no key\n", r->odd);
	buf_release(&bytes);
}

static enum err_code copy_flags_run(
	const struct copy_flags *f, const char *from, const char *to, struct err *err)
{
	struct bucket_place source = { 0 }, target = { 0 };
	struct copy_result r = { 0 };
	enum err_code rc;

	if (!(rc = bucket_place_open(from, f->file, &source, err)) &&
		!(rc = bucket_place_open(to, f->to_file[0] ? f->to_file : f->file, &target, err)) &&
		!(rc = objects_copy_tree(&source.is, &target.is, (unsigned)f->workers, &r, err))) {
		objects_command_print_result(&r);
		if (r.gone)
			rc = err_set(err, ERR_UNAVAILABLE,
				"%" PRIu64 " objects were deleted meanwhile: copy again", r.gone);
	}
	bucket_place_close(&source);
	bucket_place_close(&target);
	return rc;
}

static enum err_code copy_flags_check(
	const struct copy_flags *f, const char *from, const char *to, struct err *err)
{
	if (!objects_command_is_in_bucket(from) && !objects_command_is_in_bucket(to))
		return err_set(err, ERR_INVALID, "neither FROM nor TO begins with " IN_BUCKET);
	if (f->to_file[0] && !(objects_command_is_in_bucket(from) && objects_command_is_in_bucket(to)))
		return err_set(err, ERR_INVALID, "--to.config.file is for copies between two buckets");
	if (!f->to_file[0] && !strcmp(from, to))
		return err_set(err, ERR_INVALID, "FROM and TO are the same");
	if (!f->workers || f->workers > COPIERS_MAX)
		return err_set(err, ERR_INVALID, "--workers may be 1 to %u", COPIERS_MAX);
	return ERR_OK;
}

int objects_copy(int argc, char **argv)
{
	const char *args[2];
	struct copy_flags f;
	struct flag flags[] = {
		CONFIG_FLAG(&f.file),
		{ "to.config.file", FLAG_STRING, &f.to_file, "",
			"Configuration file with the `bucket` of TO, if it is another one." },
		{ "workers", FLAG_UINT, &f.workers, "8", "Objects that are copied at once." },
	};
	struct err err;
	size_t n;
	int code;

	code = output_read_flags(flags, sizeof(flags) / sizeof(flags[0]), argc, argv,
		"bucket copy [FLAGS] FROM TO",
		"Copies a tree; FROM and TO are directories, or bucket:PREFIX. What is there with the\n"
		"same size and hash is left alone, so a copy that was interrupted can be started again.\n"
		"Nothing is deleted. Manifests are written last.",
		args, 2, 2, &n);
	if (code >= 0)
		return code;
	if (copy_flags_check(&f, args[0], args[1], &err)) {
		fprintf(stderr, "epitool: error: %s\n", err.msg);
		return EXIT_USAGE;
	}
	interrupt_catch();
	return copy_flags_run(&f, args[0], args[1], &err) ? bucket_command_failed(&err) : 0;
}
