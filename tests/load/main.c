#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/self/flags.h"
#include "base/self/heap.h"
#include "tests/load/load.h"

/*
 * The program `load`: targets until a signal comes, or for --seconds. First a line of JSON with the
 * port, when they can be scraped; at SIGUSR1 and at the end one with what came since the last.
 */
static void print_counts(const char *name, const struct load_counts *n, const char *end)
{
	printf("\"%s\":{\"requests\":%" PRIu64 ",\"gaps\":%" PRIu64 ",\"late\":%" PRIu64
		   ",\"gap_max_s\":%.3f,\"refused\":%" PRIu64 ",\"cut\":%" PRIu64 "}%s",
		name, n->requests, n->gaps, n->late, (double)n->gap_max_ns / NS_PER_S, n->refused, n->cut,
		end);
}

static void on_end(evutil_socket_t fd, short what, void *ctx)
{
	event_base_loopbreak(ctx);
}

static void print(const struct load *l)
{
	printf("{\"connections\":%" PRIu64 ",", l->connections);
	print_counts("honest", &l->counts[0], ",");
	print_counts("hostile", &l->counts[1], "}\n");
}

/* Prints the counts so far and resets them, after a ramp. */
static void on_restart(evutil_socket_t fd, short what, void *ctx)
{
	struct load *l = ctx;

	print(l);
	memset(l->counts, 0, sizeof(l->counts));
}

static enum err_code run(
	const struct load_options *o, const char *file, uint64_t seconds, struct err *err)
{
	struct event_base *base = event_base_new();
	struct event *term, *interrupt, *timer, *restart;
	const struct timeval tv = { (time_t)seconds, 0 };
	struct buf document = { 0 };
	struct load *l;
	enum err_code rc;

	if (!base)
		return err_set(err, ERR_NOMEM, "out of memory");
	if ((rc = load_open(o, base, &l, err))) {
		event_base_free(base);
		return rc;
	}
	term = evsignal_new(base, SIGTERM, on_end, base);
	interrupt = evsignal_new(base, SIGINT, on_end, base);
	restart = evsignal_new(base, SIGUSR1, on_restart, l);
	timer = evtimer_new(base, on_end, base);
	event_add(term, NULL);
	event_add(interrupt, NULL);
	event_add(restart, NULL);
	if (seconds)
		event_add(timer, &tv);
	load_print_document(l, &document);
	if (*file)
		rc = fs_write_file(&fs_posix, file, buf_str(&document), err);
	buf_release(&document);
	if (!rc) {
		printf("{\"port\":%d,\"bodies\":%zu}\n", l->port, load_bodies_n(l->bodies));
		event_base_dispatch(base);
		print(l);
	}
	event_free(term);
	event_free(interrupt);
	event_free(restart);
	event_free(timer);
	load_close(l);
	event_base_free(base);
	return rc;
}

int main(int argc, char **argv)
{
	struct load_options o;
	const char *file, *args[1];
	uint64_t seconds;
	struct flag flags[] = {
		{ "targets", FLAG_UINT, &o.targets, "1000", "How many, at 127.1.0.0 and those after it." },
		{ "hostile", FLAG_UINT, &o.hostile_percent, "0", "Percent of them that are hostile." },
		{ "port", FLAG_UINT, &o.port, "0", "Of all of them; 0: a free one." },
		{ "file", FLAG_STRING, &file, "", "Where the file_sd document goes." },
		{ "seconds", FLAG_UINT, &seconds, "0", "How long; 0: until a signal." },
		{ "interval", FLAG_DURATION, &o.interval_ns, "15s", "How often a scraper should come." },
		{ "services", FLAG_UINT, &o.services, "50", "With bodies of their own." },
		{ "variants", FLAG_UINT, &o.variants, "2", "Pods of a service with bodies of their own." },
		{ "scrapes", FLAG_UINT, &o.scrapes, "4", "Bodies of a pod, one after the other." },
	};
	const size_t n = sizeof(flags) / sizeof(flags[0]);
	bool help = false, version = false;
	struct buf text = { 0 };
	struct err err = { 0 };
	size_t args_n = 0;
	enum err_code rc;

	heap_tune();
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	rc = flags_parse(flags, n, argc, argv, args, 0, &args_n, &help, &version, &err);
	if (!rc && help) {
		flags_print_help(&text, "load", "Thousands of targets to scrape.", flags, n);
		fwrite(text.ptr, 1, text.len, stdout);
		buf_release(&text);
		return 0;
	}
	if (!rc)
		rc = run(&o, file, seconds, &err);
	if (rc)
		fprintf(stderr, "load: %s\n", err.msg);
	return rc ? 1 : 0;
}
