#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/quote.h"
#include "base/self/flags.h"
#include "cmd/epitool/debuginfo/send.h"
#include "cmd/epitool/progress.h"

#define FILES_MAX 4096
#define MISSING_SHOWN_MAX 5
#define SERVER_BYTES_MAX (UINT64_C(1) << 30) /* of one upload, by default */
#define WAIT_FIRST_NS (100 * NS_PER_MS)
#define AS_GOOD "equally good symbols are stored"
#define WAIT_MAX_NS (2 * NS_PER_S)

/* ---- upload ---- */

static const char upload_usage[] = "debuginfo upload [FLAGS] FILE|DIR...";
static const char upload_about[] =
	"Sends ELF files with symbols to a server that runs with --web.enable-ingest, so that the\n"
	"addresses of native code that profiles hold get names, also those stored before. Programs,\n"
	"shared objects and files of debug data alone are taken. The server is asked first: what it\n"
	"has is not sent, so a second run sends only what is missing. Of several files of one build\n"
	"it keeps what each knows: a file adds names, and takes none away.\n"
	"\n"
	"Files that hold a part of a program's debug data go with it: FILE.dwp, the .dwo files that\n"
	"it names (as it names them, or beside it), and the common file that dwz made. A warning\n"
	"names those that are missing. `epitool debuginfo info FILE` lists them all.\n"
	"\n"
	"Files of a directory that are not ELF, or have no code, are passed over.";

#define DWO_DIR_FLAG(to) \
	{ \
		"dwo-dir", FLAG_LIST, &(to), NULL, \
			"Directory to look for .dwo and .dwp files in, too; may be used several times." \
	}

/* An upload whose extraction is awaited. */
struct awaited {
	struct awaited *next;
	struct debuginfo_id id;
	size_t files_n; /* that were sent with it */
	char path[];
};

struct tool_debuginfo_run {
	struct client_options client;
	struct flag_list dwo_dirs;
	bool recursive, force, wait;
	int64_t wait_ns;
	size_t uploaded, there, failed, passed;
	struct awaited *first, **last;
	bool over; /* no other file would be taken */
};

static void tool_debuginfo_print_path(FILE *to, const char *path)
{
	struct buf text = { 0 };

	buf_add_printable(&text, str_of(path));
	fprintf(to, STR_FMT, STR_ARG(buf_str(&text)));
	buf_release(&text);
}

static void tool_debuginfo_say(const char *path, const struct debuginfo_id *id, const char *what)
{
	tool_debuginfo_print_path(stdout, path);
	printf(": %s " STR_FMT ": %s\n", debuginfo_id_kind_name(id->kind),
		STR_ARG(debuginfo_id_text(id)), what);
	fflush(stdout);
}

static void tool_debuginfo_run_fail(
	struct tool_debuginfo_run *r, const char *path, const struct err *err)
{
	r->failed++;
	fprintf(stderr, "epitool: error: ");
	tool_debuginfo_print_path(stderr, path);
	fprintf(stderr, ": %s\n", err->msg);
}

/* Appended to what is said of a file. */
static const char *tool_debuginfo_with(size_t files_n, char text[static 48])
{
	text[0] = '\0';
	if (files_n)
		snprintf(text, 48, ", with %zu debug file%s", files_n, files_n > 1 ? "s" : "");
	return text;
}

static void tool_debuginfo_say_uploaded(
	const char *path, const struct debuginfo_id *id, const char *what, size_t files_n)
{
	char text[100], with[48];

	snprintf(text, sizeof(text), "%s%s", what, tool_debuginfo_with(files_n, with));
	tool_debuginfo_say(path, id, text);
}

static void tool_debuginfo_run_await(
	struct tool_debuginfo_run *r, const char *path, const struct debuginfo_id *id, size_t files_n)
{
	size_t n = strlen(path) + 1;
	struct awaited *a = malloc(sizeof(*a) + n);

	if (!a) {
		tool_debuginfo_say_uploaded(path, id, "uploaded", files_n);
		return;
	}
	a->next = NULL;
	a->id = *id;
	a->files_n = files_n;
	memcpy(a->path, path, n);
	*r->last = a;
	r->last = &a->next;
}

/* ---- waiting ---- */

static bool tool_debuginfo_is_over(const struct debuginfo_send_named *n)
{
	return strcmp(n->state, "queued") && strcmp(n->state, "extracting") &&
		strcmp(n->state, "uploading");
}

/* Asks until the server is done with a binary, or does not say, or the time is over. */
static void tool_debuginfo_run_watch(const struct tool_debuginfo_run *r, const char *path,
	const struct debuginfo_id *id, int64_t until_ns, struct debuginfo_send_named *n)
{
	int64_t pause = WAIT_FIRST_NS;
	struct err err;

	progress_begin(path);
	while (!debuginfo_ask(&r->client, id, n, &err) && !tool_debuginfo_is_over(n) &&
		!atomic_load(&interrupted) && clock_monotonic_ns() < until_ns) {
		progress_wait(pause);
		pause = pause < WAIT_MAX_NS ? 2 * pause : pause;
	}
	progress_end();
}

/* The server has it already, or it is on its way, or it failed a moment ago. */
static void tool_debuginfo_run_was_before(struct tool_debuginfo_run *r, const char *path,
	const struct debuginfo_id *id, const struct buf *reason, const struct debuginfo_send_named *n)
{
	struct err err;
	char text[700];

	if (!strcmp(n->state, "failed")) {
		err_set(&err, ERR_INVALID, "%s", n->why);
		tool_debuginfo_run_fail(r, path, &err);
		return;
	}
	r->there++;
	if (r->wait && (!strcmp(n->state, "queued") || !strcmp(n->state, "extracting"))) {
		tool_debuginfo_run_await(r, path, id, 0);
		return;
	}
	snprintf(text, sizeof(text), "not sent: %.*s%s%s%s%s",
		reason->len ? (int)reason->len : (int)sizeof(AS_GOOD) - 1,
		reason->len ? reason->ptr : AS_GOOD, n->quality[0] ? " (" : "", n->quality,
		n->quality[0] ? ")" : "", r->recursive ? "" : "; --force sends it");
	tool_debuginfo_say(path, id, text);
}

/* ---- the files that belong to it ---- */

struct tool_debuginfo_upload {
	const char *path;
	const struct native_file *file;
	struct debug_files_places places;
	size_t files_n; /* that are sent with it */
};

static void tool_debuginfo_warn(const char *path, const char *of, const char *what)
{
	fprintf(stderr, "epitool: warning: ");
	tool_debuginfo_print_path(stderr, path);
	fprintf(stderr, ": ");
	if (of) {
		tool_debuginfo_print_path(stderr, of);
		fprintf(stderr, ": ");
	}
	fprintf(stderr, "%s\n", what);
}

static void tool_debuginfo_warn_of_missing(const char *path, const struct debug_files *files)
{
	static const char *const lost[BUNDLE_KINDS] = {
		[BUNDLE_DWO] = "inlined calls of this unit will be missing",
		[BUNDLE_DWP] = "it is not sent",
		[BUNDLE_ALT] = "some names will be missing",
	};
	char text[128];

	for (size_t i = 0; i < files->missing_n && i < MISSING_SHOWN_MAX; i++) {
		const struct debug_file_missing *m = &files->missing[i];

		snprintf(text, sizeof(text), "%s: %s", m->why, lost[m->kind]);
		tool_debuginfo_warn(path, m->path, text);
	}
	if (files->missing_n > MISSING_SHOWN_MAX) {
		snprintf(text, sizeof(text),
			"%zu more debug files are missing: `epitool debuginfo info` lists them",
			files->missing_n - MISSING_SHOWN_MAX);
		tool_debuginfo_warn(path, NULL, text);
	}
}

static enum err_code tool_debuginfo_upload_find(void *ctx, struct debug_files *out, struct err *err)
{
	struct tool_debuginfo_upload *u = ctx;
	uint64_t bytes;
	enum err_code rc;
	char text[160];

	if ((rc = debug_files_find(u->path, u->file, &u->places, out, err)))
		return rc;
	u->files_n = out->n;
	bytes = u->file->bytes.len + out->bytes;
	progress_end();
	tool_debuginfo_warn_of_missing(u->path, out);
	if (bytes > SERVER_BYTES_MAX) {
		snprintf(text, sizeof(text),
			"%s with its debug files: a server takes %s, or what its "
			"--storage.symbols.max-file-size says",
			str_size_of(bytes).text, str_size_of(SERVER_BYTES_MAX).text);
		tool_debuginfo_warn(u->path, NULL, text);
	}
	progress_begin(u->path);
	return ERR_OK;
}

static void tool_debuginfo_upload_shrink(void *ctx, const struct err *why)
{
	struct tool_debuginfo_upload *u = ctx;
	char text[sizeof(why->msg) + 64];

	u->files_n = 0;
	snprintf(text, sizeof(text), "sent without its debug files: %s", why->msg);
	progress_end();
	tool_debuginfo_warn(u->path, NULL, text);
	progress_begin(u->path);
}

/* ---- a file ---- */

/*
 * An earlier file of the same build was on its way, and is there now: this one may add to it. *n is
 * what the server says of the binary.
 */
static bool tool_debuginfo_run_was_under_way(const struct tool_debuginfo_run *r, const char *path,
	const struct debuginfo_id *id, struct debuginfo_send_named *n)
{
	struct err err;

	if (debuginfo_ask(&r->client, id, n, &err)) {
		*n = (struct debuginfo_send_named){ 0 };
		return false;
	}
	if (!r->wait || tool_debuginfo_is_over(n))
		return false;
	tool_debuginfo_run_watch(r, path, id, clock_monotonic_ns() + r->wait_ns, n);
	return tool_debuginfo_is_over(n);
}

static void tool_debuginfo_run_upload_open_file(
	struct tool_debuginfo_run *r, const char *path, const struct native_file *f)
{
	const struct debuginfo_id *id = native_file_id(f);
	struct tool_debuginfo_upload u = { path, f, { r->dwo_dirs.v, r->dwo_dirs.n, NULL }, 0 };
	const struct debuginfo_sending sending = { &r->client, path, f, r->force,
		tool_debuginfo_upload_find, tool_debuginfo_upload_shrink, &u };
	struct debuginfo_send_named named;
	struct buf reason = { 0 };
	struct err err;
	enum sent sent;

	do {
		progress_begin(path);
		sent = debuginfo_send(&sending, &reason, &err);
		progress_end();
	} while (sent == SENT_BEFORE && tool_debuginfo_run_was_under_way(r, path, id, &named));
	if (sent == SENT) {
		r->uploaded++;
		if (r->wait)
			tool_debuginfo_run_await(r, path, id, u.files_n);
		else
			tool_debuginfo_say_uploaded(path, id, "uploaded", u.files_n);
	} else if (sent == SENT_BEFORE) {
		tool_debuginfo_run_was_before(r, path, id, &reason, &named);
	} else {
		tool_debuginfo_run_fail(r, path, &err);
		r->over = sent == SENT_NONE;
	}
	buf_release(&reason);
}

static void tool_debuginfo_run_upload_file(
	struct tool_debuginfo_run *r, const char *path, bool was_named)
{
	struct native_file f;
	struct err err;
	enum err_code rc = native_file_open(path, &f, &err);
	bool is_program = !rc && native_file_is_program(&f);

	if (is_program) {
		tool_debuginfo_run_upload_open_file(r, path, &f);
	} else if (!was_named && (!rc || rc == ERR_INVALID || rc == ERR_UNSUPPORTED)) {
		r->passed++;
	} else if (!rc) {
		err_set(&err, ERR_UNSUPPORTED,
			"holds a part of a program's debug data: upload the program, which it goes with");
		tool_debuginfo_run_fail(r, path, &err);
	} else {
		r->failed++;
		fprintf(stderr, "epitool: error: %s\n", err.msg);
	}
	if (!rc)
		native_file_close(&f);
}

static void tool_debuginfo_run_upload_tree(struct tool_debuginfo_run *r, const char *dir)
{
	char *roots[] = { (char *)(uintptr_t)dir, NULL };
	FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);
	struct err err;
	FTSENT *e;

	while (walk && !r->over && !atomic_load(&interrupted) && (e = fts_read(walk))) {
		if (e->fts_info == FTS_F) {
			tool_debuginfo_run_upload_file(r, e->fts_path, false);
		} else if (e->fts_info == FTS_DNR || e->fts_info == FTS_ERR) {
			err_errno(&err, e->fts_errno, "cannot be read");
			tool_debuginfo_run_fail(r, e->fts_path, &err);
		}
	}
	if (walk)
		fts_close(walk);
}

static void tool_debuginfo_run_upload_argument(struct tool_debuginfo_run *r, const char *path)
{
	struct err err;
	struct stat st;

	if (stat(path, &st) || !S_ISDIR(st.st_mode)) {
		tool_debuginfo_run_upload_file(r, path, true);
	} else if (r->recursive) {
		tool_debuginfo_run_upload_tree(r, path);
	} else {
		err_set(&err, ERR_INVALID, "is a directory: use --recursive");
		tool_debuginfo_run_fail(r, path, &err);
	}
}

/* ---- waiting for names ---- */

static void tool_debuginfo_run_conclude(
	struct tool_debuginfo_run *r, const struct awaited *a, const struct debuginfo_send_named *n)
{
	struct err err;
	char text[100];

	if (!strcmp(n->state, "named")) {
		snprintf(text, sizeof(text), "named by %s, %.1f %s", n->quality,
			(double)n->index_bytes / (n->index_bytes < 1 << 20 ? 1 << 10 : 1 << 20),
			n->index_bytes < 1 << 20 ? "KiB" : "MiB");
		tool_debuginfo_say_uploaded(a->path, &a->id, text, a->files_n);
	} else if (!strcmp(n->state, "failed")) {
		err_set(&err, ERR_INVALID, "%s", n->why);
		tool_debuginfo_run_fail(r, a->path, &err);
	} else {
		tool_debuginfo_say_uploaded(a->path, &a->id,
			tool_debuginfo_is_over(n) ? "uploaded" : "uploaded, not extracted yet", a->files_n);
	}
}

static void tool_debuginfo_run_await_one(
	struct tool_debuginfo_run *r, const struct awaited *a, int64_t until_ns)
{
	struct debuginfo_send_named n = { 0 };

	tool_debuginfo_run_watch(r, a->path, &a->id, until_ns, &n);
	tool_debuginfo_run_conclude(r, a, &n);
}

/* One after the other: while the first is awaited the others are extracted too. */
static void tool_debuginfo_run_await_all(struct tool_debuginfo_run *r)
{
	int64_t until_ns = clock_monotonic_ns() + r->wait_ns;
	struct awaited *a;

	while ((a = r->first)) {
		tool_debuginfo_run_await_one(r, a, until_ns);
		r->first = a->next;
		free(a);
	}
}

int debuginfo_send_files(int argc, char **argv)
{
	struct tool_debuginfo_run r = { .last = &r.first };
	struct flag flags[] = {
		{ "recursive", FLAG_BOOL, &r.recursive, "false", "Send the files below directories.",
			.short_name = 'r' },
		DWO_DIR_FLAG(r.dwo_dirs),
		{ "force", FLAG_BOOL, &r.force, "false",
			"Send files also where the server has symbols as good, or where one failed.",
			.short_name = 'f' },
		{ "wait", FLAG_BOOL, &r.wait, "true", "Wait until the symbols can be used." },
		{ "wait-timeout", FLAG_DURATION, &r.wait_ns, "5m", "Longest time of that, for all files." },
		{ "server", FLAG_STRING, &r.client.server, SERVER_DEFAULT, "Server to send to." },
		{ "http.config.file", FLAG_STRING, &r.client.http_config, "",
			"File with basic_auth, authorization, tls_config and so on for the server." },
		{ "timeout", FLAG_DURATION, &r.client.timeout_ns, "10m",
			"Longest time of one attempt to send a file." },
	};
	size_t n = sizeof(flags) / sizeof(flags[0]), files_n = 0;
	static const char *files[FILES_MAX];
	int rc = output_read_flags(
		flags, n, argc, argv, upload_usage, upload_about, files, 1, FILES_MAX, &files_n);

	if (rc >= 0)
		return rc;
	interrupt_catch();
	for (size_t i = 0; i < files_n && !r.over && !atomic_load(&interrupted); i++)
		tool_debuginfo_run_upload_argument(&r, files[i]);
	tool_debuginfo_run_await_all(&r);
	if (atomic_load(&interrupted))
		fprintf(stderr, "epitool: error: canceled\n");
	if (r.uploaded + r.there + r.failed + r.passed != 1)
		printf("%zu uploaded, %zu not sent, %zu failed, %zu passed over\n", r.uploaded, r.there,
			r.failed, r.passed);
	return r.failed || atomic_load(&interrupted) ? EXIT_FAILED : 0;
}

/* ---- info ---- */

static const char info_usage[] = "debuginfo info [FLAGS] FILE...";
static const char info_about[] =
	"Prints what profiles call an ELF file, the symbols that it has, and the files with other "
	"parts\n"
	"of its debug data, which `epitool debuginfo upload` sends with it.";

static void tool_debuginfo_print_text(const char *what, struct str text)
{
	struct buf b = { 0 };

	buf_add_printable(&b, text);
	if (text.len)
		printf("  %-14s " STR_FMT "\n", what, STR_ARG(buf_str(&b)));
	buf_release(&b);
}

static void tool_debuginfo_print_sections(struct elf *e)
{
	static const char *const names[] = { ".debug_abbrev", ".debug_info", ".debug_line",
		".debug_str", ".debug_types", ".debug_rnglists", ".debug_ranges", ".symtab", ".dynsym",
		".gopclntab", ".gnu_debugdata", ".debug_info.dwo", ".debug_cu_index" };
	struct err err;
	struct str s;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (elf_section(e, names[i], &s, &err))
			printf("  %-14s %s: %s\n", "section", names[i], err.msg);
		else if (s.len)
			printf("  %-14s %s: %zu bytes\n", "section", names[i], s.len);
	}
}

static void tool_debuginfo_print_files(
	const char *path, const struct native_file *f, const struct debug_files_places *places)
{
	static const char *const kinds[BUNDLE_KINDS] = {
		[BUNDLE_DWO] = "split debug",
		[BUNDLE_DWP] = "split debug",
		[BUNDLE_ALT] = "shared debug",
	};
	struct debug_files files;
	struct buf text = { 0 };
	struct err err;

	if (debug_files_find(path, f, places, &files, &err)) {
		printf("  %-14s %s\n", "debug files", err.msg);
		return;
	}
	for (size_t i = 0; i < files.n; i++)
		tool_debuginfo_print_text(kinds[files.v[i].kind], str_of(files.v[i].path));
	for (size_t i = 0; i < files.missing_n; i++) {
		buf_clear(&text);
		buf_printf(&text, "%s: %s", files.missing[i].path, files.missing[i].why);
		tool_debuginfo_print_text(kinds[files.missing[i].kind], buf_str(&text));
	}
	buf_release(&text);
	debug_files_release(&files);
}

static void tool_debuginfo_print_info(
	const char *path, const struct native_file *f, const struct debug_files_places *places)
{
	static const char *const contents[] = { [DEBUGINFO_STRIPPED] = "no DWARF",
		[DEBUGINFO_NO_TEXT] = "debug data without code",
		[DEBUGINFO_FULL] = "code and debug data" };
	struct elf_link link;

	tool_debuginfo_print_path(stdout, path);
	printf(":\n");
	tool_debuginfo_print_text("gnu build id", debuginfo_id_text(&f->ids[DEBUGINFO_GNU]));
	tool_debuginfo_print_text("go build id", debuginfo_id_text(&f->ids[DEBUGINFO_GO]));
	tool_debuginfo_print_text("file id", debuginfo_id_text(&f->ids[DEBUGINFO_FILE]));
	tool_debuginfo_print_text("content",
		native_file_is_program(f) ? str_of(contents[f->kind]) : STR("a part of debug data"));
	if (elf_debug_link(f->elf, &link))
		tool_debuginfo_print_text("debug link", link.name);
	tool_debuginfo_print_files(path, f, places);
	tool_debuginfo_print_sections(f->elf);
}

int debuginfo_show_files(int argc, char **argv)
{
	static const char *files[FILES_MAX];
	struct flag_list dwo_dirs = { 0 };
	struct flag flags[] = { DWO_DIR_FLAG(dwo_dirs) };
	size_t files_n = 0, failed = 0;
	int rc = output_read_flags(
		flags, 1, argc, argv, info_usage, info_about, files, 1, FILES_MAX, &files_n);
	const struct debug_files_places places = { dwo_dirs.v, dwo_dirs.n, NULL };

	if (rc >= 0)
		return rc;
	for (size_t i = 0; i < files_n; i++) {
		struct native_file f;
		struct err err;

		if (native_file_open(files[i], &f, &err)) {
			fprintf(stderr, "epitool: error: %s\n", err.msg);
			failed++;
			continue;
		}
		tool_debuginfo_print_info(files[i], &f, &places);
		native_file_close(&f);
	}
	return failed ? EXIT_FAILED : 0;
}
