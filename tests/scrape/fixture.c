#include "tests/scrape/fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/wait.h"

/* Only a test's own file may include check.h, so a failure here ends the program. */
static void must(enum err_code rc, const char *what, const char *why)
{
	if (rc) {
		fprintf(stderr, "%s: %s\n", what, why);
		abort();
	}
}

void fixture_init(struct fixture *f)
{
	struct scrape_manager_options o = { .loops = 3,
		.workers = 2,
		.listen_address = "0.0.0.0:1",
		.external_url = "http://ext:9",
		.symbols_timeout_ns = 10 * NS_PER_MIN };
	struct err err = { 0 };

	*f = (struct fixture){ .target = http_target_open() };
	fake_sink_init(&f->sink);
	arena_init(&f->arena, 0);
	o.sink = &f->sink.sink;
	must(scrape_manager_open(&o, &f->manager, &err), "open", err.msg);
}

void fixture_release(struct fixture *f)
{
	scrape_manager_close(f->manager);
	http_target_close(f->target);
	fake_sink_release(&f->sink);
	scrape_snapshot_release(&f->shown);
	arena_release(&f->arena);
}

enum err_code fixture_apply(struct fixture *f, const char *jobs, struct err *err)
{
	struct buf text = { 0 };
	struct config *c = NULL;
	enum err_code rc;

	buf_add_cstr(
		&text, "global: {scrape_interval: 250ms, scrape_timeout: 200ms}\nscrape_configs:\n");
	for (const char *at = jobs; *at;) {
		if (strncmp(at, "PORT", 4) == 0) {
			buf_printf(&text, "127.0.0.1:%d", http_target_port(f->target));
			at += 4;
		} else {
			buf_add_char(&text, *at++);
		}
	}
	rc = config_load_text("c.yml", STR("/tmp"), buf_str(&text), &c, err);
	if (!rc)
		rc = scrape_manager_apply(f->manager, c, err);
	config_unref(c);
	buf_release(&text);
	return rc;
}

void fixture_look(struct fixture *f)
{
	struct err err = { 0 };

	scrape_snapshot_release(&f->shown);
	arena_release(&f->arena);
	must(scrape_manager_snapshot(f->manager, NULL, &f->arena, &f->shown, &err), "look", err.msg);
}

struct target_info fixture_see(struct fixture *f, const char *profile)
{
	static const struct target_info none;

	fixture_look(f);
	for (size_t i = 0; i < f->shown.active_n; i++)
		if (str_is(f->shown.active[i].profile, profile))
			return f->shown.active[i];
	return none;
}

struct target_info fixture_wait_scraped(struct fixture *f, const char *profile, uint64_t scrapes)
{
	struct target_info t;

	if (!WAIT_FOR((t = fixture_see(f, profile)).scrapes > scrapes))
		must(ERR_TIMEOUT, profile, "not scraped often enough");
	return t;
}

void fixture_wait_error(struct fixture *f, const char *profile, const char *error)
{
	struct target_info t;

	if (!WAIT_FOR(str_is((t = fixture_see(f, profile)).last_error, error)))
		must(ERR_TIMEOUT, error, t.last_error.len ? t.last_error.ptr : "no error");
}
