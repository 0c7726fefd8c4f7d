/*
 * A block's file of sums and symbols is damaged, place by place: where a name is missing
 * afterwards, whoever selects its series is told, also the second time.
 */
#include <fcntl.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/tsdb/town.h"

#define STEP 150 /* bytes between places */

static size_t count_names(const struct partition *p)
{
	size_t n = 0;

	for (uint32_t i = 1; i < sym_strings_n(p); i++)
		n += sym_exists(p, SYM_STRING, i);
	for (uint32_t i = 0; i < sym_functions_n(p); i++)
		n += sym_exists(p, SYM_FUNCTION, i);
	return n;
}

/* For all that is selected; each partition once. */
static size_t names_of(struct town *w, size_t *warnings)
{
	const struct partition *last = NULL;
	struct db_querier *q;
	struct db_series *v;
	struct arena a;
	struct err err;
	size_t n = 0, names = 0;

	arena_init(&a, 0);
	*warnings = 0;
	if (db_querier_open(w->f.db, 0, INT64_MAX, NULL, &q, &err)) {
		arena_release(&a);
		return 0;
	}
	CHECK_OK(db_select(q, NULL, 0, &a, &v, &n, &err), &err);
	for (size_t i = 0; i < n; i++) {
		if (v[i].partition != last)
			names += count_names(v[i].partition);
		last = v[i].partition;
	}
	db_querier_warnings(q, warnings);
	db_querier_close(q);
	arena_release(&a);
	return names;
}

static bool flip(const char *path, off_t at)
{
	int fd = open(path, O_RDWR);
	char byte;
	bool ok = fd >= 0 && pread(fd, &byte, 1, at) == 1;

	byte = (char)(byte ^ 1);
	ok = ok && pwrite(fd, &byte, 1, at) == 1;
	if (fd >= 0)
		close(fd);
	return ok;
}

TEST(names_that_are_missing_are_said)
{
	size_t all, names, warnings, felt = 0;
	struct town w;
	const char *path;

	REQUIRE(town_open(&w));
	town_fill(&w, 1, 2, T0, T0 + 75, 1);
	town_compact(&w);
	CHECK_LAYOUT(&w, "2 1 head head head");
	all = names_of(&w, &warnings);
	CHECK_INT(warnings, 0);
	path = arena_printf(&w.f.arena, "%s/%s/rollups.ldb", w.f.dir, town_block(&w, 0));
	for (off_t at = 0; flip(path, at); at += STEP) {
		REQUIRE(fixture_reopen(&w.f));
		for (int time = 0; time < 2; time++) {
			names = names_of(&w, &warnings);
			felt += names < all;
			if (names < all && !warnings)
				CHECK_FAIL(
					"byte %d, time %d: %zu of %zu names, no warning", (int)at, time, names, all);
		}
		CHECK(flip(path, at));
	}
	printf("  names were missing %zu times\n", felt);
	CHECK(felt > 2);
	TOWN_END(&w);
}
