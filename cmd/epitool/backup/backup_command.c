/* tsdb backup, tsdb restore, tsdb backups: of a data directory, in a directory or a bucket. */
#include "cmd/epitool/backup/backup_command.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/json.h"
#include "base/quote.h"
#include "base/self/flags.h"
#include "cmd/epitool/backup/backup_restore.h"
#include "cmd/epitool/backup/backup_save.h"
#include "cmd/epitool/bucket/bucket_command.h"
#include "cmd/epitool/copiers.h"
#include "cmd/epitool/epitool.h"
#include "cmd/epitool/progress.h"
#include "cmd/epitool/table.h"
#include "cmd/epitool/verify.h"

#define WORKERS_FLAG(field) \
	{ \
		"workers", FLAG_UINT, (field), "8", "Files that are copied at once." \
	}

static int backup_command_fail(const struct err *err)
{
	fprintf(stderr, "epitool: error: %s\n", err->msg);
	return EXIT_FAILED;
}

/* Ctrl-C: its exit code. */
static int backup_command_end(enum err_code rc, const struct err *err)
{
	return rc ? interrupt_exit_code(backup_command_fail(err)) : 0;
}

static bool backup_command_workers_are_wrong(uint64_t workers)
{
	if (workers && workers <= COPIERS_MAX)
		return false;
	fprintf(stderr, "epitool: error: --workers may be 1 to %u\n", COPIERS_MAX);
	return true;
}

/* A store at a place as typed: a directory, or bucket:PREFIX. */
struct backup_at {
	struct bucket_place place;
	struct backup_store store;
};

static enum err_code backup_at_open(
	const char *text, const char *config, struct backup_at *out, struct err *err)
{
	enum err_code rc = bucket_place_open(text, config, &out->place, err);

	return rc ? rc : backup_store_init(&out->store, &out->place.is, err);
}

static void backup_at_close(struct backup_at *b)
{
	backup_store_release(&b->store);
	bucket_place_close(&b->place);
}

/* ---- backup ---- */

struct backup_flags {
	struct client_options client;
	const char *config, *source;
	uint64_t keep, workers;
};

static enum err_code backup_command_ask_snapshot(
	void *ctx, struct arena *a, struct str *name, struct err *err)
{
	const struct backup_flags *f = ctx;
	const struct client_request request = { .path = "/api/v1/admin/tsdb/snapshot" };
	struct buf answer = { 0 };
	enum err_code rc;
	const char *text;
	json_t *root;

	if ((rc = client_send(&f->client, &request, &answer, err))) {
		buf_release(&answer);
		return err_wrap(
			err, rc, "the directory is in use: ask %s for a snapshot", f->client.server);
	}
	root = json_loadb(answer.ptr, answer.len, 0, NULL);
	text = json_string_value(json_object_get(json_object_get(root, "data"), "name"));
	*name = text ? str_dup(a, str_of(text)) : (struct str){ 0 };
	json_decref(root);
	buf_release(&answer);
	return ERR_OK;
}

static uint64_t backup_command_verify(
	const char *dir, bool (*skip)(void *ctx, struct str ulid), void *ctx)
{
	const struct verify_options options = { skip, ctx };
	struct verify_result result;
	int code = verify_directory(dir, &options, &result);

	return code && !result.findings ? 1 : result.findings;
}

/* "HOST:/the/whole/path", on one line. */
static enum err_code backup_flags_name_source(const struct backup_flags *f, const char *dir,
	struct arena *a, struct str *out, struct err *err)
{
	char host[256] = "", path[PATH_MAX];
	struct buf text = { 0 };

	if (gethostname(host, sizeof(host) - 1) || !realpath(dir, path))
		snprintf(path, sizeof(path), "%s", dir);
	if (f->source[0])
		buf_add_printable(&text, str_of(f->source));
	else
		buf_printf(&text, "%s:", host);
	if (!f->source[0])
		buf_add_printable(&text, str_of(path));
	if (text.len > BACKUP_SOURCE_BYTES_MAX)
		text.len = BACKUP_SOURCE_BYTES_MAX;
	*out = str_dup(a, buf_str(&text));
	buf_release(&text);
	return out->ptr ? ERR_OK : arena_fail(a, "source", err);
}

/* The nearest directory of the path that is there, without links; false: there is none. */
static bool backup_command_find_real(const char *path, char out[PATH_MAX])
{
	char at[PATH_MAX];
	struct str dir;

	if (snprintf(at, sizeof(at), "%s", path) >= (int)sizeof(at))
		return false;
	while (!realpath(at, out)) {
		dir = path_dir(str_of(at));
		if (errno != ENOENT || str_is(dir, at))
			return false;
		if (dir.ptr == at)
			at[dir.len] = '\0';
		else
			memcpy(at, ".", 2);
	}
	return true;
}

/* A backup inside its source would be part of the next one. */
static enum err_code backup_command_check_place(
	const struct place *to, const char *dir, struct err *err)
{
	char inside[PATH_MAX], outside[PATH_MAX];
	size_t n;

	if (to->bucket || !backup_command_find_real(to->path, inside) || !realpath(dir, outside))
		return ERR_OK; /* a directory that is not there is named later */
	n = strlen(outside);
	if (!strncmp(inside, outside, n) && (inside[n] == '/' || !inside[n]))
		return err_set(err, ERR_INVALID, "%s is inside of %s", to->path, dir);
	return ERR_OK;
}

static void backup_command_print_bytes(const char *before, uint64_t bytes, const char *after)
{
	struct buf text = { 0 };

	number_print(&text, (double)bytes, STR("bytes"));
	printf("%s" STR_FMT "%s", before, STR_ARG(buf_str(&text)), after);
	buf_release(&text);
}

static void backup_command_print_saved(const struct backup_saved *s)
{
	printf("backup %s: %" PRIu64 " files, ", s->name, s->files);
	backup_command_print_bytes("", s->bytes, "; copied ");
	printf("%" PRIu64 ", ", s->copied_files);
	backup_command_print_bytes("", s->copied_bytes, "\n");
}

static enum err_code backup_flags_remove_old(
	const struct backup_flags *f, struct backup_store *store, struct str source, struct err *err)
{
	struct backup_removed removed;
	enum err_code rc;

	if (!f->keep)
		return ERR_OK;
	if ((rc = backup_store_remove_old(store, source, f->keep, &removed, err)))
		return rc;
	if (removed.busy) {
		printf("another backup is being made: nothing was removed\n");
	} else if (removed.backups || removed.objects) {
		printf(
			"removed %" PRIu64 " backups, %" PRIu64 " objects, ", removed.backups, removed.objects);
		backup_command_print_bytes("", removed.bytes, "\n");
	}
	return ERR_OK;
}

static enum err_code backup_flags_save(const struct backup_flags *f, const char *dir,
	struct backup_at *at, struct arena *a, uint64_t *findings, struct err *err)
{
	const struct backup_asking asking = { backup_command_ask_snapshot, (void *)(uintptr_t)f };
	struct backup_source source;
	struct backup_job job = { .store = &at->store,
		.source = &source,
		.arena = a,
		.workers = (unsigned)f->workers,
		.verify = backup_command_verify };
	struct backup_saved saved;
	enum err_code rc;

	if (!(rc = backup_flags_name_source(f, dir, a, &job.source_name, err)) &&
		!(rc = backup_command_check_place(&at->place.is, dir, err))) {
		if (!(rc = backup_source_open(dir, &asking, &source, err)))
			rc = backup_save(&job, &saved, err);
		if (!rc && source.odd)
			fprintf(stderr, "epitool: %zu left out: no regular file\n", source.odd);
		backup_source_close(&source);
	}
	if (!rc) {
		backup_command_print_saved(&saved);
		*findings = saved.findings;
		rc = backup_flags_remove_old(f, &at->store, job.source_name, err);
	}
	backup_store_end(&at->store);
	return rc;
}

int tsdb_backup(int argc, char **argv)
{
	struct backup_flags f;
	/* clang-format off */
	struct flag flags[] = {
		{ "server", FLAG_STRING, &f.client.server, SERVER_DEFAULT,
			"Server to ask for a snapshot, if one has the directory." },
		{ "http.config.file", FLAG_STRING, &f.client.http_config, "",
			"File with basic_auth, authorization, tls_config and so on for the server." },
		{ "timeout", FLAG_DURATION, &f.client.timeout_ns, "10m", "Longest time to wait for it." },
		CONFIG_FLAG(&f.config),
		{ "keep", FLAG_UINT, &f.keep, "0",
			"Remove older backups of this source but so many without findings; 0: none." },
		{ "source", FLAG_STRING, &f.source, "",
			"Name of the source, if its host or path changes; default HOST:DIR." },
		WORKERS_FLAG(&f.workers),
	};
	/* clang-format on */
	struct backup_at at = { 0 };
	uint64_t findings = 0;
	const char *args[2];
	struct arena a;
	enum err_code rc;
	struct err err;
	size_t n;
	int code;

	code = output_read_flags(flags, sizeof(flags) / sizeof(flags[0]), argc, argv,
		"tsdb backup [FLAGS] DIR TO",
		"Backs up the data directory DIR to TO, a directory or bucket:PREFIX. A server that has\n"
		"DIR goes on: it makes a snapshot, for which it needs --web.enable-admin-api. What is new\n"
		"is verified and copied; what earlier backups have is not copied again.",
		args, 2, 2, &n);
	if (code >= 0)
		return code;
	if (backup_command_workers_are_wrong(f.workers))
		return EXIT_USAGE;
	fs_hide_from_others(); /* as the server does */
	interrupt_catch();
	arena_init(&a, 0);
	progress_begin("backing up");
	if (!(rc = backup_at_open(args[1], f.config, &at, &err)))
		rc = backup_flags_save(&f, args[0], &at, &a, &findings, &err);
	progress_end();
	backup_at_close(&at);
	arena_release(&a);
	if (!rc && findings) {
		fprintf(stderr, "epitool: the backup is made, with %" PRIu64 " findings\n", findings);
		return EXIT_FAILED;
	}
	return backup_command_end(rc, &err);
}

/* ---- restore ---- */

struct restore_flags {
	const char *config, *name;
	uint64_t workers;
	bool partial;
};

static void restore_flags_damaged(void *ctx, struct str path, const struct err *why)
{
	fprintf(stderr, "epitool: damaged: " STR_FMT ": %s\n", STR_ARG(path), why->msg);
}

static uint64_t restore_flags_verify(void *ctx, const char *dir)
{
	struct verify_result result;
	int code = verify_directory(dir, NULL, &result);

	if (!result.newer)
		verify_print_result(&result);
	return code && !result.findings ? 1 : result.findings;
}

/* The one that was named, or the newest. */
static enum err_code restore_flags_choose(const struct restore_flags *f,
	const struct backup_store *store, struct arena *a, struct backup_manifest *out, struct err *err)
{
	struct str *names, name = str_of(f->name);
	enum err_code rc;
	size_t n;

	if (name.len && !backup_name_is_valid(name))
		return err_set(err, ERR_INVALID, "%s is no name of a backup", QUOTED(name));
	if (!name.len) {
		if ((rc = backup_store_names(store, a, &names, &n, err)))
			return rc;
		if (!n)
			return err_set(err, ERR_NOT_FOUND, "there is no backup");
		name = names[n - 1];
	}
	return backup_store_read(store, name, a, out, err);
}

static enum err_code restore_flags_run(const struct restore_flags *f,
	const struct backup_store *store, const char *dir, struct arena *a, struct err *err)
{
	struct backup_manifest m;
	struct backup_restore_job job = { .store = store,
		.manifest = &m,
		.dir = dir,
		.arena = a,
		.workers = (unsigned)f->workers,
		.partial = f->partial,
		.damaged = restore_flags_damaged,
		.verify = restore_flags_verify };
	struct backup_restored r;
	enum err_code rc;

	if ((rc = restore_flags_choose(f, store, a, &m, err)))
		return rc;
	if ((rc = backup_restore(&job, &r, err)))
		return err_wrap(err, rc, "backup " STR_FMT, STR_ARG(m.name));
	printf("restored backup " STR_FMT ": %" PRIu64 " files, ", STR_ARG(m.name), r.files);
	backup_command_print_bytes("", r.bytes, "\n");
	if (r.damaged || r.findings)
		return err_set(err, ERR_CORRUPT,
			"restored with %" PRIu64 " files missing and %" PRIu64 " findings", r.damaged,
			r.findings);
	return ERR_OK;
}

int tsdb_restore(int argc, char **argv)
{
	struct restore_flags f;
	struct flag flags[] = {
		CONFIG_FLAG(&f.config),
		{ "backup", FLAG_STRING, &f.name, "", "Name of the backup; default: the newest." },
		{ "partial", FLAG_BOOL, &f.partial, NULL,
			"Restore what can be read of a damaged backup; the rest becomes losses." },
		WORKERS_FLAG(&f.workers),
	};
	struct backup_at at = { 0 };
	const char *args[2];
	enum err_code rc;
	struct arena a;
	struct err err;
	size_t n;
	int code;

	f.partial = false;
	code = output_read_flags(flags, sizeof(flags) / sizeof(flags[0]), argc, argv,
		"tsdb restore [FLAGS] FROM DIR",
		"Restores a backup into DIR, which is empty or not there, and verifies it. FROM is a\n"
		"directory or bucket:PREFIX.",
		args, 2, 2, &n);
	if (code >= 0)
		return code;
	if (backup_command_workers_are_wrong(f.workers))
		return EXIT_USAGE;
	fs_hide_from_others();
	interrupt_catch();
	arena_init(&a, 0);
	progress_begin("restoring");
	if (!(rc = backup_at_open(args[0], f.config, &at, &err)))
		rc = restore_flags_run(&f, &at.store, args[1], &a, &err);
	progress_end();
	backup_at_close(&at);
	arena_release(&a);
	return backup_command_end(rc, &err);
}

/* ---- backups ---- */

static void backup_command_add_json(struct json *j, const struct backup_manifest *m)
{
	json_object(j);
	json_key(j, "name");
	json_str(j, m->name);
	json_key(j, "source");
	json_str(j, m->source);
	json_key(j, "files");
	json_u64(j, m->files_n);
	json_key(j, "bytes");
	json_u64(j, backup_manifest_bytes(m));
	json_key(j, "findings");
	json_u64(j, m->findings);
	json_object_end(j);
}

static void backup_command_add_row(struct text_table *t, const struct backup_manifest *m)
{
	const uint64_t numbers[] = { m->files_n, backup_manifest_bytes(m), m->findings };
	char text[24];

	table_cell(t, m->name);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		snprintf(text, sizeof(text), "%" PRIu64, numbers[i]);
		table_cell(t, str_of(text));
	}
	table_cell(t, m->source);
}

/* Manifests one after the other; those that cannot be read are said at the end. */
static enum err_code backup_command_list(
	const struct backup_store *store, struct text_table *t, struct json *j, struct err *err)
{
	struct backup_manifest m;
	enum err_code rc, damaged = ERR_OK;
	struct arena a, each;
	struct str *names;
	struct err why;
	size_t n;

	arena_init(&a, 0);
	rc = backup_store_names(store, &a, &names, &n, err);
	for (size_t i = 0; !rc && i < n; i++) {
		arena_init(&each, 0);
		rc = backup_store_read(store, names[i], &each, &m, &why);
		if (rc == ERR_CORRUPT || rc == ERR_UNSUPPORTED) {
			damaged = err_copy(err, &why);
			rc = ERR_OK;
		} else if (rc) {
			err_copy(err, &why);
		} else if (j) {
			backup_command_add_json(j, &m);
		} else {
			backup_command_add_row(t, &m);
		}
		arena_release(&each);
	}
	arena_release(&a);
	return rc ? rc : damaged;
}

static enum err_code backup_command_print_list(
	const struct backup_store *store, bool as_json, struct err *err)
{
	static const char *const columns[] = { "backup", "files", "bytes", "findings", "source" };
	struct buf out = { 0 };
	struct text_table t;
	enum err_code rc;
	struct json j;
	struct arena a;
	struct err why;

	arena_init(&a, 0);
	text_table_init(&t, &a);
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		table_column(&t, columns[i], i > 0 && i < 4);
	json_init(&j, &out);
	if (as_json)
		json_array(&j);
	rc = backup_command_list(store, &t, as_json ? &j : NULL, err);
	if (as_json) {
		json_array_end(&j);
		buf_add_char(&out, '\n');
	} else {
		table_print(&t, 0, &out);
	}
	if (buf_failed(&out) && !rc)
		rc = err_nomem(err, "list");
	else if (output_put("", buf_str(&out), &why) && !rc)
		rc = err_copy(err, &why);
	buf_release(&out);
	arena_release(&a);
	return rc;
}

int tsdb_backups(int argc, char **argv)
{
	const char *config, *args[1];
	bool as_json = false;
	struct flag flags[] = {
		CONFIG_FLAG(&config),
		{ "json", FLAG_BOOL, &as_json, NULL, "For programs." },
	};
	struct backup_at at = { 0 };
	enum err_code rc;
	struct err err;
	size_t n;
	int code;

	code = output_read_flags(flags, sizeof(flags) / sizeof(flags[0]), argc, argv,
		"tsdb backups [FLAGS] FROM", "Backups in a directory or bucket:PREFIX, the oldest first.",
		args, 1, 1, &n);
	if (code >= 0)
		return code;
	interrupt_catch();
	if (!(rc = backup_at_open(args[0], config, &at, &err)) && !at.place.is.bucket &&
		!fs_exists(at.place.is.path))
		rc = err_set(&err, ERR_NOT_FOUND, "%s: no such directory", at.place.is.path);
	if (!rc)
		rc = backup_command_print_list(&at.store, as_json, &err);
	backup_at_close(&at);
	return backup_command_end(rc, &err);
}
