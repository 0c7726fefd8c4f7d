/*
 * The sweep over one path, on tests/check.h (included once, by the program with the tests).
 */
#ifndef TESTS_TORTURE_SWEEP_H
#define TESTS_TORTURE_SWEEP_H

#include "tests/check.h"
#include "tests/torture/torture.h"
#include "tests/wait.h"

#define POINTS_DEFAULT 12u /* per path, kind and way: some 15 seconds in all */

static uint64_t sweep_points(void)
{
	const char *text = getenv("EPI_TORTURE_POINTS");
	uint64_t n;

	return text && str_to_u64(str_of(text), &n) ? n : POINTS_DEFAULT;
}

/* Says what is wrong; the failure's site goes with it. */
static void sweep_wrong(
	const struct torture_path *p, const char *how, uint64_t nth, const char *what, struct str text)
{
	CHECK_FAIL("%s: %s, number %" PRIu64 ": %s: " STR_FMT, p->name, how, nth, what,
		(int)(text.len > 300 ? 300 : text.len), text.ptr ? text.ptr : "");
	torture_print_site();
}

struct sweep {
	const struct torture_path *p;
	enum torture_what what;
	enum torture_how how;
	const char *name;
	struct buf want, got;
};

static bool sweep_run(struct sweep *s, enum err_code *rc, struct err *err)
{
	buf_release(&s->got);
	*err = (struct err){ 0 };
	*rc = s->p->run(s->p, &s->got, err);
	return *rc == ERR_OK && str_eq(buf_str(&s->got), buf_str(&s->want));
}

/* False when there was no such point: the path is at its end. */
static bool sweep_point(struct sweep *s, uint64_t nth)
{
	enum err_code rc;
	struct err err;
	bool same;

	torture_arm(s->what, s->how, nth);
	same = sweep_run(s, &rc, &err);
	torture_disarm();
	if (!same && !rc && str_find(buf_str(&s->got), STR("\"warnings\":[")) < 0)
		sweep_wrong(s->p, s->name, nth, "a wrong answer", buf_str(&s->got));
	if (rc && !err.msg[0])
		sweep_wrong(s->p, s->name, nth, "an error without a word", STR(""));
	if (rc == ERR_INVALID || rc == ERR_CORRUPT || rc == ERR_NOT_FOUND)
		sweep_wrong(s->p, s->name, nth, "the blame is on the request", str_of(err.msg));
	if (rc && !torture_struck())
		sweep_wrong(s->p, s->name, nth, "fails by itself", str_of(err.msg));
	/* A store is opened again in the background: wait for it. */
	(void)!WAIT_FOR(sweep_run(s, &rc, &err) ||
		(rc != ERR_UNAVAILABLE && str_find(buf_str(&s->got), STR("being reopened")) < 0));
	if (rc)
		sweep_wrong(s->p, s->name, nth, "fails afterwards", str_of(err.msg));
	else if (!str_eq(buf_str(&s->got), buf_str(&s->want)))
		sweep_wrong(s->p, s->name, nth, "a wrong answer afterwards", buf_str(&s->got));
	return torture_struck();
}

static void sweep_all(struct sweep *s)
{
	uint64_t points = s->p->all ? 0 : sweep_points(), n, step;
	int before = check_failures;
	enum err_code rc;
	struct err err;

	torture_arm(s->what, s->how, 0);
	if (!sweep_run(s, &rc, &err))
		CHECK_FAIL(
			"%s: not the same twice: %s " STR_FMT, s->p->name, err.msg, STR_ARG(buf_str(&s->got)));
	n = torture_disarm();
	step = points && n > points ? n / points : 1;
	for (uint64_t nth = 1; nth <= n && check_failures < before + 3; nth += step)
		sweep_point(s, nth);
	if (getenv("EPI_TORTURE_VERBOSE"))
		printf("  %s: %s: %" PRIu64 " points, every %" PRIu64 "\n", s->p->name, s->name, n, step);
}

void torture_path(const struct torture_path *p)
{
	static const struct {
		enum torture_what what;
		enum torture_how how;
		const char *name;
	} kinds[] = {
		{ TORTURE_MEMORY, TORTURE_ONCE, "one allocation fails" },
		{ TORTURE_MEMORY, TORTURE_FROM_THEN_ON, "allocations fail from" },
		{ TORTURE_CALLS, TORTURE_ONCE, "one system call fails" },
		{ TORTURE_CALLS, TORTURE_FROM_THEN_ON, "system calls fail from" },
	};
	struct sweep s = { .p = p };
	struct err err = { 0 };

	if (p->run(p, &s.want, &err)) {
		CHECK_FAIL("%s: %s", p->name, err.msg);
		buf_release(&s.want);
		return;
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		s.what = kinds[i].what;
		s.how = kinds[i].how;
		s.name = kinds[i].name;
		sweep_all(&s);
	}
	buf_release(&s.want);
	buf_release(&s.got);
}

#endif
