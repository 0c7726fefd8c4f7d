#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/quote.h"
#include "cmd/epitool/flame/screen.h"
#include "cmd/epitool/flame/view.h"
#include "cmd/epitool/progress.h"
#include "cmd/epitool/source.h"
#include "cmd/epitool/table.h"
#include "proto/report/pprof_unit.h"

#define WIDTH_DEFAULT 80u
#define WIDTH_MIN 10u
#define WIDTH_MAX 10000u

static const char usage[] = "flame [FLAGS] QUERY|FILE";
static const char about[] =
	"A flame graph in the terminal, of a query that gives profiles or of a pprof file (\"-\":\n"
	"standard input). The root is at the top; packages have the colours of the page.\n"
	"\n"
	"Keys: arrows move, Enter zooms to a function, Backspace or Escape out of it, Home to the\n"
	"root, / searches, n goes to the next match, q quits. With --print, or where there is no\n"
	"terminal, all rows are printed once, as wide as --width, COLUMNS or 80 characters.";

struct flame_flags {
	struct question q;
	const char *profile, *match, *type;
	bool print;
	uint64_t width;
};

/* Of --width, the terminal, or COLUMNS. */
static uint32_t flame_flags_width_of(const struct flame_flags *f)
{
	const char *columns = getenv("COLUMNS");
	uint64_t width = f->width ? f->width : terminal_width();

	if (!width && (!columns || !str_to_u64(str_of(columns), &width) || width > WIDTH_MAX))
		width = WIDTH_DEFAULT;
	return width < WIDTH_MIN ? WIDTH_MIN : (uint32_t)width;
}

/* ---- printed once ---- */

static enum err_code flame_flags_print_once(
	const struct flame_flags *f, const struct flame_tree *t, const char *title, struct err *err)
{
	struct flame_view v;
	struct buf out = { 0 };
	enum err_code rc = flame_view_open(t, title, flame_flags_width_of(f), 0, &v, err);

	if (!rc) {
		buf_add_printable(&out, t->type);
		buf_add_cstr(&out, ": ");
		pprof_unit_print(&out, t->nodes[FLAME_ROOT].total, t->unit, STR("auto"));
		buf_add_char(&out, '\n');
		if (isatty(STDOUT_FILENO))
			flame_view_print(&v, &out);
		else
			flame_print_plain(t, &v.cells, v.width, &out);
		rc = buf_failed(&out) ? err_nomem(err, "flame graph") : output_put("", buf_str(&out), err);
	}
	buf_release(&out);
	flame_view_close(&v);
	return rc;
}

/* ---- on a terminal ---- */

static enum err_code flame_take_keys(
	struct flame_view *v, struct buf *input, bool complete, struct err *err)
{
	enum err_code rc = ERR_OK;
	size_t used = 1, at = 0;

	while (!rc && !v->over && at < input->len) {
		struct str rest = { input->ptr + at, input->len - at };
		int key = flame_key_read(rest, complete, &used);

		if (!used)
			break;
		at += used;
		rc = flame_view_key(v, key, err);
	}
	memmove(input->ptr, input->ptr + at, input->len - at);
	input->len -= at;
	return rc;
}

static enum err_code flame_look(struct flame_view *v, struct err *err)
{
	struct buf drawn = { 0 }, input = { 0 };
	enum screen_event event = SCREEN_RESIZED;
	enum err_code rc = ERR_OK;
	uint32_t width, height;

	while (!rc && !v->over && event != SCREEN_END) {
		if (event == SCREEN_RESIZED) {
			screen_size(&width, &height);
			if ((rc = flame_view_resize(v, width, height, err)))
				break;
		}
		buf_clear(&drawn);
		flame_view_draw(v, &drawn);
		if (buf_failed(&drawn))
			rc = err_nomem(err, "flame graph");
		else if ((rc = screen_show(buf_str(&drawn), err)))
			break;
		event = screen_wait(input.len > 0, &input);
		if (!rc && (event == SCREEN_INPUT || event == SCREEN_PAUSE))
			rc = flame_take_keys(v, &input, event == SCREEN_PAUSE, err);
	}
	buf_release(&input);
	buf_release(&drawn);
	return rc;
}

static enum err_code flame_look_at(const struct flame_tree *t, const char *title, struct err *err)
{
	struct flame_view v;
	uint32_t width, height;
	enum err_code rc;

	screen_size(&width, &height);
	rc = flame_view_open(t, title, width, height, &v, err);
	if (!rc && !(rc = screen_open(err))) {
		rc = flame_look(&v, err);
		screen_close();
	}
	flame_view_close(&v);
	return rc;
}

/* ---- the command ---- */

static enum err_code flame_flags_run(const struct flame_flags *f, const char *text, struct err *err)
{
	const struct source_options o = {
		.question = &f->q, .profile = f->profile, .match = f->match, .type = f->type
	};
	bool takes_over = !f->print && isatty(STDOUT_FILENO);
	struct flame_tree t = { 0 };
	struct source s;
	struct arena a;
	enum err_code rc;

	arena_init(&a, 0);
	rc = source_read(&o, text, &a, &s, err);
	if (!rc && !(rc = flame_tree_make(&a, s.profile, s.type, &t, err)))
		rc = takes_over ? flame_look_at(&t, text, err) : flame_flags_print_once(f, &t, text, err);
	if (rc)
		ask_print_error(s.query.ptr, err);
	flame_tree_release(&t);
	source_release(&s);
	arena_release(&a);
	return rc;
}

int tool_flame(int argc, char **argv)
{
	struct flame_flags f = { 0 };
	struct flag flags[] = {
		{ "print", FLAG_BOOL, &f.print, NULL, "Print all rows once, also on a terminal." },
		{ "width", FLAG_UINT, &f.width, "0", "Characters of a row that is printed." },
		SOURCE_FLAGS(f),
	};
	size_t n = sizeof(flags) / sizeof(flags[0]), args_n = 0;
	const char *args[1];
	struct err err = { 0 };
	int rc = output_read_flags(flags, n, argc, argv, usage, about, args, 1, 1, &args_n);

	if (rc >= 0)
		return rc;
	f.q.step = "";
	f.q.format = "pprof";
	if (f.width > WIDTH_MAX || (f.width && f.width < WIDTH_MIN)) {
		fprintf(stderr, "epitool: error: --width is %u to %u, not %llu\n", WIDTH_MIN, WIDTH_MAX,
			(unsigned long long)f.width);
		return EXIT_USAGE;
	}
	if (ask_check(&f.q, &err)) {
		fprintf(stderr, "epitool: error: %s\nusage: epitool %s\n", err.msg, usage);
		return EXIT_USAGE;
	}
	interrupt_catch();
	if (flame_flags_run(&f, args[0], &err))
		return EXIT_FAILED;
	return screen_signal() ? 128 + screen_signal() : 0;
}
