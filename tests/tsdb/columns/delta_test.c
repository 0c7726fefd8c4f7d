#include "tests/oracle.h"
#include "tests/tsdb/fixture.h"
#include "tsdb/columns/delta.h"

/* Does what an append does when its row is stored. */
static enum err_code apply(struct delta_base *base, const struct delta_input *in, struct arena *a,
	bool *first, struct err *err)
{
	struct delta_base next = { 0 };
	enum err_code rc = delta_apply(base, in, a, &next, first, err);

	if (!rc && next.bytes.len) {
		delta_base_release(base);
		*base = next;
	}
	return rc;
}

/* ---- by hand ---- */

static const enum value_kind cumulative[] = { KIND_CUMULATIVE, KIND_GAUGE };

#define ENTRIES 4

/* One step: values of two columns (cumulative, gauge) at four stacks, and what comes of them. */
struct step {
	int64_t ts, types;
	int64_t in[ENTRIES];
	bool first;
	int64_t want[ENTRIES];
};

static void run(const struct step *steps, size_t n)
{
	struct delta_base base = { 0 };
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	for (size_t s = 0; s < n; s++) {
		uint64_t keys[ENTRIES];
		int64_t values[ENTRIES * 2];
		bool first = false;
		struct delta_input in = { .ts_ns = steps[s].ts,
			.interval_ns = 10,
			.columns_n = 2,
			.types = (uint64_t)steps[s].types,
			.kinds = cumulative,
			.keys = keys,
			.values = values };

		/* -1: not in this profile. Stacks are 10, 20, ...; the third has a label set. */
		for (size_t i = 0; i < ENTRIES; i++)
			if (steps[s].in[i] >= 0)
				keys[in.n++] = (i + 1) * 10 << 32 | (i == 2 ? 5 : 0);
		for (size_t i = 0, at = 0; i < ENTRIES; i++)
			if (steps[s].in[i] >= 0) {
				values[in.n + at] = 100 + (int64_t)i;
				values[at++] = steps[s].in[i];
			}
		CHECK_OK(apply(&base, &in, &a, &first, &err), &err);
		CHECK_INT(first, steps[s].first);
		for (size_t i = 0, at = 0; i < ENTRIES; i++) {
			if (steps[s].in[i] < 0)
				continue;
			if (values[at] != steps[s].want[i])
				CHECK_FAIL("step %zu, entry %zu: %lld, want %lld", s, i, (long long)values[at],
					(long long)steps[s].want[i]);
			CHECK_INT(values[in.n + at], 100 + (int64_t)i);
			at++;
		}
	}
	delta_base_release(&base);
	arena_release(&a);
}

#define RUN(...) \
	do { \
		static const struct step steps[] = { __VA_ARGS__ }; \
		run(steps, sizeof(steps) / sizeof(steps[0])); \
	} while (0)

TEST(deltas_follow_the_rules)
{
	/* what was added; new stacks come in whole */
	RUN({ 100, 1, { 5, 7, -1, 3 }, true, { 0, 0, 0, 0 } },
		{ 110, 1, { 5, 9, 4, 3 }, false, { 0, 2, 4, 0 } },
		{ 120, 1, { 6, 9, 4, 10 }, false, { 1, 0, 0, 7 } });
	/* up to three intervals, not a moment more */
	RUN({ 100, 1, { 5, 7, 0, 3 }, true, { 0 } }, { 130, 1, { 6, 7, 0, 3 }, false, { 1, 0, 0, 0 } },
		{ 161, 1, { 8, 8, 8, 8 }, true, { 0 } }, { 171, 1, { 8, 8, 9, 8 }, false, { 0, 0, 1, 0 } });
	/* restarted: counters and the total fell, so all of it is new */
	RUN({ 100, 1, { 50, 70, 10, 30 }, true, { 0 } },
		{ 110, 1, { 2, 71, -1, 3 }, false, { 2, 71, 0, 3 } },
		{ 120, 1, { 3, 71, 2, 3 }, false, { 1, 0, 2, 0 } });
	/* a counter fell, the total did not: nothing is known, the base is set anew */
	RUN({ 100, 1, { 50, 70, 10, 30 }, true, { 0 } }, { 110, 1, { 2, 171, 10, 30 }, false, { 0 } },
		{ 120, 1, { 3, 171, 10, 31 }, false, { 1, 0, 0, 1 } });
	/* one vanished while the total rose; then with it falling */
	RUN({ 100, 1, { 50, 70, 10, 30 }, true, { 0 } }, { 110, 1, { -1, 171, 10, 30 }, false, { 0 } },
		{ 120, 1, { -1, 171, -1, 30 }, false, { 0, 171, 0, 30 } });
	/* other types: a new base */
	RUN({ 100, 1, { 5, 7, 1, 3 }, true, { 0 } }, { 110, 2, { 6, 8, 2, 4 }, true, { 0 } },
		{ 120, 2, { 8, 9, 3, 7 }, false, { 2, 1, 1, 3 } });
	/* late ones, and one at the same time: the base stays, and nothing is counted twice */
	RUN({ 100, 1, { 5, 7, 1, 3 }, true, { 0 } }, { 110, 1, { 9, 9, 9, 9 }, false, { 4, 2, 8, 6 } },
		{ 105, 1, { 7, 8, 5, 5 }, true, { 0 } }, { 90, 2, { 1, 1, 1, 1 }, true, { 0 } },
		{ 110, 1, { 9, 9, 9, 9 }, true, { 0 } },
		{ 120, 1, { 10, 9, 9, 9 }, false, { 1, 0, 0, 0 } });
	/* the clock went back: what is added meanwhile comes when it has caught up */
	RUN({ 100, 1, { 5, 7, 1, 3 }, true, { 0 } }, { 95, 1, { 6, 8, 2, 4 }, true, { 0 } },
		{ 105, 1, { 9, 9, 3, 5 }, false, { 4, 2, 2, 2 } });
	/* nothing in it */
	RUN({ 100, 1, { -1, -1, -1, -1 }, true, { 0 } },
		{ 110, 1, { 1, -1, -1, -1 }, false, { 1, 0, 0, 0 } },
		{ 120, 1, { 1, -1, -1, -1 }, false, { 0, 0, 0, 0 } });
}

/* Two profiles of cumulative columns, ten apart: `after` becomes what was added. */
static void apply_two(
	uint32_t columns_n, uint32_t n, const uint64_t *keys, int64_t *before, int64_t *after)
{
	static const enum value_kind both[] = { KIND_CUMULATIVE, KIND_CUMULATIVE };
	struct delta_base base = { 0 };
	struct delta_input in = { .ts_ns = 100,
		.interval_ns = 10,
		.columns_n = columns_n,
		.n = n,
		.kinds = both,
		.keys = keys,
		.values = before };
	struct arena a;
	struct err err;
	bool first;

	arena_init(&a, 0);
	CHECK_OK(apply(&base, &in, &a, &first, &err), &err);
	in.ts_ns = 110;
	in.values = after;
	CHECK_OK(apply(&base, &in, &a, &first, &err), &err);
	delta_base_release(&base);
	arena_release(&a);
}

TEST(a_restart_is_the_whole_process)
{
	const uint64_t keys[] = { 1, 2 };
	/* Objects fell, bytes did not: the process is another all the same. */
	int64_t before[] = { 10, 10, 100, 100 }, after[] = { 5, 2, 500, 20 };

	apply_two(2, 2, keys, before, after);
	CHECK_INT(after[0], 5);
	CHECK_INT(after[1], 2);
	CHECK_INT(after[2], 500);
	CHECK_INT(after[3], 20);
}

TEST(entries_given_twice_are_summed_first)
{
	const uint64_t keys[] = { 1, 1, 2 };
	int64_t before[] = { 10, 10, 1 }, after[] = { 5, 18, 1 };

	apply_two(1, 3, keys, before, after);
	CHECK_INT(after[0], 3);
	CHECK_INT(after[1], 0);
	CHECK_INT(after[2], 0);
}

/* ---- against the real tool, through the database ---- */

static bool last_row(struct fixture *f, struct labels l, struct buf *out)
{
	struct db_querier *q;
	struct db_series *series;
	struct db_rows *rows;
	const struct db_row *row;
	struct pprof *p;
	struct matcher m;
	bool ok;
	size_t n;

	if (matcher_init(&m, MATCH_EQ, STR(LABEL_NAME), labels_get(l, STR(LABEL_NAME)), &f->err))
		return false;
	if (db_querier_open(f->db, 1009 * SEC, 1010 * SEC, NULL, &q, &f->err))
		return false;
	ok = !db_select(q, &m, 1, &f->arena, &series, &n, &f->err) && n == 1 &&
		!db_rows_open(q, &series[0], 0, INT64_MAX, &rows, &f->err);
	if (ok) {
		ok = !db_rows_next(rows, &row, &f->err) &&
			!db_row_profile(&series[0], row, &f->arena, &p, &f->err) &&
			!pprof_encode(p, out, &f->err);
		db_rows_close(rows);
	}
	db_querier_close(q);
	matcher_release(&m);
	return ok;
}

static struct str after_header(struct buf *b)
{
	ptrdiff_t at = str_find(buf_str(b), STR("Showing nodes"));

	return at < 0 ? STR("no table") : (struct str){ b->ptr + at, b->len - (size_t)at };
}

static void compare(const char *dir, const char *name, const char *type)
{
	struct buf want = { 0 }, got = { 0 };
	char flags[128], base[256], file[64];

	snprintf(flags, sizeof(flags),
		"-top -lines -nodecount=1000000 -nodefraction=0 -sample_index=%s", type);
	snprintf(base, sizeof(base), "%s -base=%s1.pb.gz", flags, name);
	snprintf(file, sizeof(file), "%s2.pb.gz", name);
	CHECK(oracle_pprof(&want, base, dir, file));
	snprintf(file, sizeof(file), "%s_ours.pb", name);
	CHECK(oracle_pprof(&got, flags, dir, file));
	CHECK(want.len > 300);
	if (!str_eq(after_header(&want), after_header(&got)))
		CHECK_FAIL("%s %s:\n" STR_FMT "\nwant\n" STR_FMT, name, type, STR_ARG(buf_str(&got)),
			STR_ARG(buf_str(&want)));
	buf_release(&want);
	buf_release(&got);
}

TEST(deltas_are_those_of_go_tool_pprof)
{
	static const struct {
		const char *profile, *types[2];
	} pairs[] = { { "allocs", { "alloc_objects", "alloc_space" } },
		{ "block", { "contentions", "delay" } }, { "mutex", { "contentions", "delay" } } };
	const char *dir = oracle_dir();
	struct buf out = { 0 };
	struct fixture f;

	REQUIRE(dir && fixture_open(&f));
	CHECK(oracle_run(&out, "go run tests/tsdb/pairs/main.go '%s' 2>&1", dir));
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct labels l = labels_of(&f.arena, pairs[i].profile, "go", "");
		enum value_kind kinds[8];

		for (int n = 1; n <= 2; n++) {
			char name[64];
			struct pprof *p;
			struct db_append_stats stats;

			snprintf(name, sizeof(name), "%s%d.pb.gz", pairs[i].profile, n);
			REQUIRE(oracle_read(&out, dir, name));
			REQUIRE((p = profile_read(&f.arena, str_dup(&f.arena, buf_str(&out)), &f.err)));
			pprof_kinds(p, str_of(pairs[i].profile), NULL, kinds);
			CHECK_OK(append_wait(
						 f.db, l, (990 + n * 10) * SEC, 10 * SEC, p, kinds, true, &stats, &f.err),
				&f.err);
			CHECK_INT(stats.first, n == 1);
		}
		buf_clear(&out);
		REQUIRE(last_row(&f, l, &out));
		{
			char name[64];

			snprintf(name, sizeof(name), "%s_ours.pb", pairs[i].profile);
			REQUIRE(oracle_write(buf_str(&out), dir, name));
		}
		compare(dir, pairs[i].profile, pairs[i].types[0]);
		compare(dir, pairs[i].profile, pairs[i].types[1]);
	}
	buf_release(&out);
	fixture_close(&f);
}
