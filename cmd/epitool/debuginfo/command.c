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
	"Files of a directory that are not ELF, or have no code, are passed over.";

/* An upload whose extraction is awaited. */
struct awaited {
	struct awaited *next;
	struct debuginfo_id id;
	char path[];
};

struct tool_debuginfo_run {
	struct client_options client;
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

static void tool_debuginfo_run_await(
	struct tool_debuginfo_run *r, const char *path, const struct debuginfo_id *id)
{
	size_t n = strlen(path) + 1;
	struct awaited *a = malloc(sizeof(*a) + n);

	if (!a) {
		tool_debuginfo_say(path, id, "uploaded");
		return;
	}
	a->next = NULL;
	a->id = *id;
	memcpy(a->path, path, n);
	*r->last = a;
	r->last = &a->next;
}

/* The server has it already, or it is on its way, or it failed a moment ago. */
static void tool_debuginfo_run_was_before(struct tool_debuginfo_run *r, const char *path,
	const struct debuginfo_id *id, const struct buf *reason)
{
	struct debuginfo_send_named n;
	struct err err;
	char text[700];

	if (debuginfo_ask(&r->client, id, &n, &err))
		n = (struct debuginfo_send_named){ 0 };
	if (!strcmp(n.state, "failed")) {
		err_set(&err, ERR_INVALID, "%s", n.why);
		tool_debuginfo_run_fail(r, path, &err);
		return;
	}
	r->there++;
	if (r->wait && (!strcmp(n.state, "queued") || !strcmp(n.state, "extracting"))) {
		tool_debuginfo_run_await(r, path, id);
		return;
	}
	snprintf(text, sizeof(text), "not sent: %.*s%s%s%s",
		reason->len ? (int)reason->len : (int)sizeof(AS_GOOD) - 1,
		reason->len ? reason->ptr : AS_GOOD, n.quality[0] ? " (" : "", n.quality,
		n.quality[0] ? ")" : "");
	tool_debuginfo_say(path, id, text);
}

static void tool_debuginfo_run_upload_open_file(
	struct tool_debuginfo_run *r, const char *path, const struct native_file *f)
{
	const struct debuginfo_id *id = native_file_id(f);
	struct buf reason = { 0 };
	struct err err;
	enum sent sent;

	progress_begin(path);
	sent = debuginfo_send(&r->client, path, f, r->force, &reason, &err);
	progress_end();
	if (sent == SENT) {
		r->uploaded++;
		if (r->wait)
			tool_debuginfo_run_await(r, path, id);
		else
			tool_debuginfo_say(path, id, "uploaded");
	} else if (sent == SENT_BEFORE) {
		tool_debuginfo_run_was_before(r, path, id, &reason);
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

	if (!rc) {
		tool_debuginfo_run_upload_open_file(r, path, &f);
		native_file_close(&f);
	} else if (!was_named && (rc == ERR_INVALID || rc == ERR_UNSUPPORTED)) {
		r->passed++;
	} else {
		r->failed++;
		fprintf(stderr, "epitool: error: %s\n", err.msg);
	}
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

static bool tool_debuginfo_is_over(const struct debuginfo_send_named *n)
{
	return strcmp(n->state, "queued") && strcmp(n->state, "extracting") &&
		strcmp(n->state, "uploading");
}

static void tool_debuginfo_run_conclude(
	struct tool_debuginfo_run *r, const struct awaited *a, const struct debuginfo_send_named *n)
{
	struct err err;
	char text[100];

	if (!strcmp(n->state, "named")) {
		snprintf(text, sizeof(text), "named by %s, %.1f %s", n->quality,
			(double)n->index_bytes / (n->index_bytes < 1 << 20 ? 1 << 10 : 1 << 20),
			n->index_bytes < 1 << 20 ? "KiB" : "MiB");
		tool_debuginfo_say(a->path, &a->id, text);
	} else if (!strcmp(n->state, "failed")) {
		err_set(&err, ERR_INVALID, "%s", n->why);
		tool_debuginfo_run_fail(r, a->path, &err);
	} else {
		tool_debuginfo_say(a->path, &a->id,
			tool_debuginfo_is_over(n) ? "uploaded" : "uploaded, not extracted yet");
	}
}

static void tool_debuginfo_run_await_one(
	struct tool_debuginfo_run *r, const struct awaited *a, int64_t until_ns)
{
	int64_t pause = WAIT_FIRST_NS;
	struct debuginfo_send_named n = { 0 };
	struct err err;

	progress_begin(a->path);
	for (;;) {
		if (debuginfo_ask(&r->client, &a->id, &n, &err) || tool_debuginfo_is_over(&n) ||
			atomic_load(&interrupted) || clock_monotonic_ns() >= until_ns)
			break;
		progress_wait(pause);
		pause = pause < WAIT_MAX_NS ? 2 * pause : pause;
	}
	progress_end();
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

static const char info_usage[] = "debuginfo info FILE...";
static const char info_about[] =
	"Prints what profiles call an ELF file, and the symbols that it has.";

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
		".gopclntab", ".gnu_debugdata" };
	struct err err;
	struct str s;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (elf_section(e, names[i], &s, &err))
			printf("  %-14s %s: %s\n", "section", names[i], err.msg);
		else if (s.len)
			printf("  %-14s %s: %zu bytes\n", "section", names[i], s.len);
	}
}

static void tool_debuginfo_print_info(const char *path, const struct native_file *f)
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
	tool_debuginfo_print_text("content", str_of(contents[f->kind]));
	if (elf_debug_link(f->elf, &link))
		tool_debuginfo_print_text("debug link", link.name);
	if (elf_alternative_link(f->elf, &link))
		tool_debuginfo_print_text("shared debug", link.name);
	tool_debuginfo_print_sections(f->elf);
}

int debuginfo_show_files(int argc, char **argv)
{
	static const char *files[FILES_MAX];
	size_t files_n = 0, failed = 0;
	int rc = output_read_flags(
		NULL, 0, argc, argv, info_usage, info_about, files, 1, FILES_MAX, &files_n);

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
		tool_debuginfo_print_info(files[i], &f);
		native_file_close(&f);
	}
	return failed ? EXIT_FAILED : 0;
}
