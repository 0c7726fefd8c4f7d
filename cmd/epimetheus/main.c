/*
 * The server: opens all parts, then the main thread waits for signals. All other threads have
 * signals blocked.
 *
 * Exit codes as Prometheus: 0 after an orderly end, 2 for a bad configuration or command line, 1
 * when the system refused something (port in use, data directory locked) or another server took
 * over what this one published.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/self/heap.h"
#include "base/self/libraries.h"
#include "base/version.h"
#include "cmd/epimetheus/limits.h"
#include "cmd/epimetheus/options.h"
#include "cmd/epimetheus/server.h"
#include "tsdb/debuginfo/extract/extract.h"
#include "tsdb/debuginfo/store/extractor.h"
#include "web/selfprofile.h"
#include "web/ui_assets.h"

#define EXIT_SYSTEM 1
#define EXIT_CONFIG 2

static void server_main_print(struct buf *text, FILE *to)
{
	fwrite(text->ptr, 1, text->len, to);
	buf_release(text);
}

/* --help, --version, --licenses and the like. True: one of them was given, and the program ends. */
static bool server_main_answered(const struct options *o)
{
	struct buf text = { 0 };

	if (o->help)
		options_print_help(&text, o);
	else if (o->version)
		libraries_print_versions(&text, "epimetheus");
	else if (o->completion_script[0])
		options_print_completion(&text, o);
	else if (o->licenses)
		libraries_print_licenses(&text);
	else
		return false;
	server_main_print(&text, stdout);
	return true;
}

static enum err_code server_main_set_log(const struct options *o, struct err *err)
{
	enum log_level level = LOG_INFO;
	enum log_format format = LOG_LOGFMT;
	enum err_code rc;

	if ((rc = log_level_parse(str_of(o->log_level), &level, err)))
		return rc;
	if ((rc = log_format_parse(str_of(o->log_format), &format, err)))
		return rc;
	log_set(level, format);
	return ERR_OK;
}

static void server_main_block_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGHUP);
	sigaddset(set, LIMITS_SIGNAL);
	pthread_sigmask(SIG_BLOCK, set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Connections to targets and open stores need descriptors: takes as many as the system allows. */
static void server_main_raise_fd_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		log_warn("main", "the limit of open files stays", LOG_S("reason", strerror(errno)));
}

/* Until SIGTERM, SIGINT or a quit over HTTP (which sends SIGTERM to this process). */
static void server_wait_for_end(struct server *s, const sigset_t *set)
{
	struct err err;
	int sig;

	for (;;) {
		if (sigwait(set, &sig))
			continue;
		if (sig == LIMITS_SIGNAL) {
			sandbox_report();
			continue;
		}
		if (sig != SIGHUP) {
			log_info("main", "received a signal, ending", LOG_S("signal", strsignal(sig)));
			return;
		}
		if (server_reload(s, &err))
			log_error("main", "reload failed, the old configuration stays", LOG_E(&err));
	}
}

/*
 * The processes that read debug data: forked while this one has no thread, no open file, and no
 * secret of the configuration. Without them the server does the rest.
 */
static struct extractor *server_main_open_extractor(const struct options *o)
{
	const struct extractor_options x = { .fn = debuginfo_extract,
		.input_bytes_max = o->debuginfo_file_bytes_max };
	struct extractor *out = NULL;
	struct err err;

	if (extractor_open(&x, &out, &err))
		log_warn("main", "uploaded debug data stays as it is", LOG_E(&err));
	return out;
}

/* A start ends early, and in order, where a signal came while it waited. */
static bool server_main_was_told(enum err_code rc)
{
	const struct timespec now = { 0 };
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (rc != ERR_CANCELED || (sig = sigtimedwait(&set, NULL, &now)) < 0)
		return false;
	log_info("main", "received a signal, ending", LOG_S("signal", strsignal(sig)));
	return true;
}

static int server_main_exit_code(enum err_code rc)
{
	return rc == ERR_INVALID || rc == ERR_LIMIT || rc == ERR_NOT_FOUND ? EXIT_CONFIG : EXIT_SYSTEM;
}

int main(int argc, char **argv)
{
	struct options o;
	struct extractor *extractor;
	struct server *s;
	struct err err = { 0 };
	enum err_code rc;
	sigset_t set;
	bool fenced;

	heap_tune();
	if (options_parse(&o, argc, argv, &err) || server_main_set_log(&o, &err)) {
		fprintf(stderr, "epimetheus: error: %s\n", err.msg);
		return EXIT_CONFIG;
	}
	if (server_main_answered(&o))
		return 0;
	fs_hide_from_others();
	server_main_block_signals(&set);
	server_main_raise_fd_limit();
	extractor = server_main_open_extractor(&o);
	selfprofile_init();
	log_info("main", "starting", LOG_S("version", EPI_VERSION), LOG_S("revision", build_revision),
		LOG_I("pid", getpid()));
	o.book = book_assets;
	o.book_n = book_assets_n;
	rc = server_open(&o, extractor, &s, &err);
	if (rc && server_main_was_told(rc)) {
		extractor_close(extractor);
		log_info("main", "ended");
		return 0;
	}
	if (rc) {
		log_error("main", "cannot start", LOG_E(&err));
		extractor_close(extractor);
		return server_main_exit_code(rc);
	}
	server_wait_for_end(s, &set);
	fenced = server_is_fenced(s);
	server_close(s);
	extractor_close(extractor);
	log_info("main", "ended");
	return fenced ? EXIT_SYSTEM : 0;
}
