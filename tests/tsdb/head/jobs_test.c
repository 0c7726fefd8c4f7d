/* A job may have two ids: when all that had it could not be read at a start, it begins anew. */
#include "tests/check.h"
#include "tests/tsdb/town.h"
#include "tsdb/catalog/jobs.h"

static int ids_of(struct town *w, const char *name)
{
	struct job *job;
	int n = 0;

	for (uint32_t i = 0; (job = db_job_at(w->f.db, i)); i++)
		n += str_is(job->name, name);
	return n;
}

static void fill(struct town *w, int from, int to, bool last)
{
	for (int s = from; s <= to; s++) {
		town_append(w, town_labels(w, "job0", "i0"), T0 + s);
		if (last)
			town_append(w, town_labels(w, "last", s % 3 ? "i0" : "i1"), T0 + s);
	}
}

/* The last job's only block is away at a start, and the file of ids perhaps damaged; the job goes
 * on, and the block comes back. */
static void come_back(bool damaged_ids)
{
	struct town w;
	const char *block;
	size_t accepted;

	REQUIRE(town_open(&w));
	fill(&w, 1, 10, true);
	fill(&w, 11, 60, false);
	town_compact(&w);
	CHECK_LAYOUT(&w, "1 1 1 head head head");
	block = town_block(&w, 0);
	town_move(&w, block, "away");
	if (damaged_ids)
		REQUIRE_OK(fs_write_file(
			&fs_posix, arena_printf(&w.f.arena, "%s/ids", w.f.dir), STR("junk"), &w.f.err),
			&w.f.err);
	REQUIRE(fixture_reopen(&w.f));
	CHECK_INT(ids_of(&w, "last"), 0);
	fill(&w, 61, 70, true);
	town_move(&w, "away", block);
	REQUIRE(fixture_reopen(&w.f));
	CHECK_INT(ids_of(&w, "last"), 2);
	/* That it was away is told until somebody accepts it. */
	REQUIRE_OK(db_accept_losses(w.f.db, NULL, 0, &accepted, &w.f.err), &w.f.err);
	CHECK_INT(accepted, 1);
	TOWN_CHECK(&w, "both are read");
	fill(&w, 71, 150, true);
	TOWN_CHECK(&w, "both go on");
	town_compact(&w);
	CHECK_LAYOUT(&w, "3 head head head");
	TOWN_CHECK(&w, "joined");
	REQUIRE(fixture_reopen(&w.f));
	TOWN_CHECK(&w, "reopened");
	CHECK_INT(town_failures, 0);
	town_failures = 0;
	town_close(&w);
}

TEST(a_forgotten_job_comes_back)
{
	come_back(false);
}

TEST(a_forgotten_job_comes_back_and_the_file_of_ids_was_damaged)
{
	come_back(true);
}
