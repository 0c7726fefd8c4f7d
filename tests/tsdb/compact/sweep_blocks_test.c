/*
 * Each single operation on the disk in cutting windows and joining blocks fails once: nothing is
 * lost, and the same work succeeds afterwards; so it does after a power cut.
 */
#include "tests/check.h"
#include "tests/tsdb/town.h"

/* Four windows that may be cut, and their blocks joined; some rows are deleted. */
static bool ready_to_cut(struct town *w)
{
	if (!town_open_on(w, true))
		return false;
	town_fill(w, 1, 2, T0, T0 + 70, 5);
	town_delete(w, "job0", "i1", T0 + 12, T0 + 18);
	return true;
}

/* Three blocks; a fourth one, cut from the next window, makes them ready to be joined. */
static bool ready_to_join(struct town *w)
{
	if (!town_open_on(w, true))
		return false;
	town_fill(w, 1, 2, T0, T0 + 60, 5);
	town_compact(w);
	town_fill(w, 1, 2, T0 + 60, T0 + 70, 5);
	return true;
}

static const struct {
	const char *what, *before;
	bool (*ready)(struct town *w);
} cases[] = {
	{ "four cuts and a join", "head head head head head head head", ready_to_cut },
	{ "a cut and a join", "1 1 1 head head head head", ready_to_join },
};

static unsigned reported;

/* The work goes on where the inventory is not written (each time both files are opened, written and
 * synced), and where what is done with is not removed. */
#define INVENTORY_OPERATIONS 6

/* False: it was not hit. */
static bool fail_one(size_t c, enum disk_kind kind, uint64_t nth, bool cut_power)
{
	struct town w;
	enum err_code rc;
	bool hit;

	if (!cases[c].ready(&w)) {
		CHECK_FAIL("%s: %s", cases[c].what, w.f.err.msg);
		return false;
	}
	disk_fail(w.disk, nth, kind, DISK_ONCE);
	rc = db_compact(w.f.db, &w.f.err);
	hit = disk_failed(w.disk) == 1;
	disk_fail(w.disk, 0, kind, DISK_ONCE);
	reported += rc != ERR_OK; /* the others can do without what failed */
	TOWN_CHECK(&w, "after the fault");
	if (cut_power) {
		disk_power_cut(w.disk);
		db_close(w.f.db);
		w.f.db = NULL;
		disk_restore(w.disk, nth);
		if (!fixture_reopen(&w.f))
			CHECK_FAIL("%s, %s %d, reopened: %s", cases[c].what, disk_kind_names[kind], (int)nth,
				w.f.err.msg);
		TOWN_CHECK(&w, "after a cut");
	}
	town_compact(&w);
	CHECK_LAYOUT(&w, "2 head head head");
	TOWN_CHECK(&w, "mended");
	if (town_failures)
		CHECK_FAIL("%s, %s %d", cases[c].what, disk_kind_names[kind], (int)nth);
	town_failures = 0;
	town_close(&w);
	return hit;
}

/* In short, one of seven of each kind: odd, so that the power is cut after every other one. */
TEST(each_operation_of_cutting_and_joining_fails_once)
{
	const uint64_t step = check_is_short() ? 7 : 1;

	for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		uint64_t n[DISK_KINDS], all = 0, inventory;
		struct town w;

		REQUIRE(cases[c].ready(&w));
		CHECK_LAYOUT(&w, cases[c].before);
		for (int k = 0; k < DISK_KINDS; k++)
			n[k] = disk_done(w.disk, (enum disk_kind)k);
		inventory = inventory_generation(w.f.db->inventory);
		town_compact(&w);
		inventory = inventory_generation(w.f.db->inventory) - inventory;
		CHECK_LAYOUT(&w, "2 head head head");
		for (int k = 0; k < DISK_KINDS; k++)
			n[k] = disk_done(w.disk, (enum disk_kind)k) - n[k];
		town_close(&w);
		for (int k = 0; k < DISK_KINDS; k++)
			for (uint64_t i = 1; i <= n[k] && !check_failures; i += step, all++)
				if (!fail_one(c, (enum disk_kind)k, i, i % 2))
					CHECK_FAIL("%s, %s %d of %d: was not hit", cases[c].what, disk_kind_names[k],
						(int)i, (int)n[k]);
		printf("  %s: %d operations, each hit; %u ended the work\n", cases[c].what, (int)all,
			reported);
		all -= (inventory * INVENTORY_OPERATIONS + n[DISK_UNLINK] + n[DISK_RMDIR]) / step;
		CHECK(reported > all / 2);
		reported = 0;
	}
}
