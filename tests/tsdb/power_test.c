/*
 * Power cuts at any operation, on a disk that keeps no more than it has to (disk.h): acknowledged
 * rows are there afterwards, whole, also after a second cut during the recovery from the first. In
 * between windows are cut, blocks joined and dropped, raw rows dropped earlier and series deleted;
 * power cuts hit these too.
 */
#include "base/log.h"
#include "tests/check.h"
#include "tests/tsdb/check_model.h"
#include "tests/tsdb/disk.h"
#include "tsdb/catalog/state.h"
#include "tsdb/compact/admin.h"

#define ROUNDS 600

static bool no_power(void *ctx)
{
	return disk_is_cut(ctx);
}

/* Work on a disk until its power goes: while it is opened, at work (mostly), or while it closes. */
static void until_cut(struct model *m, struct disk *d)
{
	struct err err;

	m->f.o.fs = disk_fs(d);
	m->f.o.store = disk_store(d);
	if (model_draw(m, 4) == 0)
		disk_power_cut_at(d, 1 + model_draw(m, 200));
	if (model_open(m, &err)) {
		if (!disk_is_cut(d))
			CHECK_FAIL("%s", err.msg);
	} else {
		if (model_draw(m, 8))
			disk_power_cut_at(d, 1 + model_draw(m, 500));
		model_work(m, 10 + model_draw(m, 120), no_power, d);
	}
	if (model_draw(m, 4) == 0) /* what is under way then, is so in part */
		disk_power_cut(d);
	model_close(m);
	disk_power_cut(d);
	disk_restore(d, model_draw(m, UINT64_MAX));
}

static bool show_loss(void *ctx, const struct loss *l)
{
	struct buf text = { 0 };

	loss_print(l, &text);
	printf("  loss %d: " STR_FMT "\n", (int)l->number, STR_ARG(buf_str(&text)));
	buf_release(&text);
	return true;
}

/* Work on blocks succeeds after a recovery, and changes no answer. */
static void compact_and_check(struct model *m, int round)
{
	struct err err;

	if (db_compact(m->f.db, &err))
		CHECK_FAIL("round %d, blocks: %s", round, err.msg);
	else if (!model_check(m, true))
		CHECK_FAIL("round %d, after work on blocks:\n%s", round, m->wrong.ptr);
	else if (round % 9 == 0 && !model_check_snapshot(m))
		CHECK_FAIL("round %d, snapshot:\n%s", round, m->wrong.ptr);
	if (losses_open_n(m->f.db->losses)) {
		CHECK_FAIL("round %d: losses, and nothing is lost", round);
		losses_each(m->f.db->losses, 0, LOSS_END, show_loss, NULL);
	}
}

TEST(nothing_acknowledged_is_lost_to_power_cuts)
{
	struct model m;
	uint64_t n = model_rounds(check_is_short() ? ROUNDS / 20 : ROUNDS / CHECK_STEP);

	REQUIRE(model_init(&m, model_seed()));
	if (getenv("EPI_CRASH_LOG"))
		log_set(LOG_INFO, LOG_LOGFMT);
	m.deletes = true;
	m.f.o.raw_retention_ns = MODEL_RAW_RETENTION_S * SEC;
	for (uint64_t round = 0; round < n; round++) {
		struct disk *d = disk_open(m.f.dir);

		until_cut(&m, d);
		if (model_draw(&m, 3) == 0)
			until_cut(&m, d);
		/* As it is found by a server on ordinary files; nothing of the disk is left. */
		m.f.o.fs = round % 8 ? disk_fs(d) : NULL;
		m.f.o.store = round % 8 ? disk_store(d) : NULL;
		m.damage_before = metric_value("epimetheus_tsdb_damage_total");
		if (check_recovered(&m, round) && round % 3 == 0)
			compact_and_check(&m, (int)round);
		model_close(&m);
		disk_close(d);
		if (check_failures)
			break;
	}
	check_worked(&m, n);
	model_release(&m);
}
