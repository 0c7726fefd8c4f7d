/* Names and values of labels by indexes and by series, in the head and in blocks: the same. */
#include "base/map.h"
#include "tests/check.h"
#include "tests/tsdb/fixture.h"

#define WINDOW_S 10

static const char *const types[] = { "samples/count", NULL };

static const struct {
	struct label v[4]; /* ascending; up to the first without a name */
	const char *line; /* of its profile */
} stored[] = {
	{ { { STR(LABEL_NAME), STR("cpu") }, { STR("job"), STR("shop") } },
		"main;f job=j1 pod=s1 root=7 1" },
		{ { { STR(LABEL_NAME), STR("cpu") },
			{ STR("job"), STR("bank") },
				{ STR("pod"), STR("p1") }, { STR("service_name"), STR("vault") } },
					"main;f pod=s2 1" },
			{ { { STR(LABEL_NAME), STR("cpu") },
				{ STR("job"), STR("bank") },
					{ STR("pod"), STR("p2") }, { STR("service_name"), STR("shop") } },
						"main;f service_name=x 1" },
				{ { { STR(LABEL_NAME), STR("cpu") }, { STR("pod"), STR("p3") } },
					"main;f service_name=late 1" },
			   };

/* name: of a label; NULL: names of labels. */
static void check_names(struct fixture *f, bool blocks, const char *name, const char *want)
{
	/* It leaves nothing out, but is tested series by series. */
	const struct matcher all = { MATCH_EQ, STR(LABEL_NAME), STR("cpu"), NULL };
	struct buf got = { 0 };
	struct db_querier *q;
	struct str *v;
	size_t n;

	REQUIRE_OK(db_querier_open(f->db, 0, WINDOW_S * SEC, NULL, &q, &f->err), &f->err);
	CHECK_INT(db_querier_has_blocks(q), blocks);
	for (size_t by_series = 0; by_series < 2; by_series++) {
		buf_clear(&got);
		if (name)
			CHECK_OK(
				db_label_values(q, str_of(name), &all, by_series, 0, &f->arena, &v, &n, &f->err),
				&f->err);
		else
			CHECK_OK(db_label_names(q, &all, by_series, 0, &f->arena, &v, &n, &f->err), &f->err);
		for (size_t i = 0; i < n; i++)
			buf_printf(&got, "%s" STR_FMT, i ? " " : "", STR_ARG(v[i]));
		CHECK_STR(buf_str(&got), want);
	}
	buf_release(&got);
	db_querier_close(q);
}

static void check_all(struct fixture *f, bool blocks)
{
	static const struct {
		const char *name, *want;
	} rows[] = {
		{ NULL, LABEL_NAME " job pod root sample_job sample_pod sample_service_name service_name" },
		{ "job", "bank shop" },
		{ "sample_job", "j1" },
		{ "pod", "p1 p2 p3 s1" },
		{ "sample_pod", "s2" },
		{ "root", "7" },
		{ "sample_root", "" },
		{ "service_name", "late shop vault" },
		{ "sample_service_name", "x" },
		{ LABEL_SERVICE, "late shop vault" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_names(f, blocks, rows[i].name, rows[i].want);
}

static void store(struct fixture *f, size_t i, int64_t at_s)
{
	const char *const lines[] = { stored[i].line, NULL };
	struct labels labels = { stored[i].v, 0 };

	while (labels.n < 4 && stored[i].v[labels.n].name.len)
		labels.n++;
	CHECK_OK(append_wait(f->db, labels, at_s * SEC, SEC, profile_of(&f->arena, types, lines), NULL,
				 false, NULL, &f->err),
		&f->err);
}

TEST(names_are_those_that_queries_use)
{
	struct fixture f;

	if (!fixture_open(&f))
		return;
	f.o.window_ns = WINDOW_S * SEC;
	f.o.too_old_ns = 2 * WINDOW_S * SEC;
	f.o.retention_ns = 0;
	f.o.free_bytes_reserve = 0;
	if (!fixture_reopen(&f))
		return;
	for (size_t i = 0; i < sizeof(stored) / sizeof(stored[0]); i++)
		store(&f, i, WINDOW_S / 2);
	check_all(&f, false);
	store(&f, 0, 100 * WINDOW_S);
	fixture_maintain(&f); /* cuts the first window */
	check_all(&f, true);
	fixture_close(&f);
}

/* ---- parts of a window ---- */

#define PODS 60u

static uint64_t state;

static uint64_t draw(uint64_t below)
{
	state += UINT64_C(0x9e3779b97f4a7c15);
	return map_hash_u64(state) % below;
}

static void store_pod(struct fixture *f, size_t pod, int64_t at_ns)
{
	const char *const lines[] = { "main;f 1", NULL };
	struct label v[] = { { STR(LABEL_NAME), STR("cpu") },
		{ STR("job"), STR("shop") },
			{ STR("pod"), str_of(arena_printf(&f->arena, "p%02zu", pod)) } };

	CHECK_OK(append_wait(f->db, (struct labels){ v, 3 }, at_ns, SEC,
				 profile_of(&f->arena, types, lines), NULL, false, NULL, &f->err),
		&f->err);
}

/* Pods by the names of series, and by selecting, which looks at rows. */
static void check_part(struct fixture *f, int64_t min_ns, int64_t max_ns)
{
	const struct matcher all = { MATCH_EQ, STR(LABEL_NAME), STR("cpu"), NULL };
	struct buf got = { 0 }, want = { 0 };
	struct db_series *series;
	struct db_querier *q;
	struct str *v;
	size_t n;

	REQUIRE_OK(db_querier_open(f->db, min_ns, max_ns, NULL, &q, &f->err), &f->err);
	CHECK_OK(db_label_values(q, STR("pod"), &all, 1, 0, &f->arena, &v, &n, &f->err), &f->err);
	for (size_t i = 0; i < n; i++)
		buf_printf(&got, STR_FMT " ", STR_ARG(v[i]));
	CHECK_OK(db_select(q, &all, 1, &f->arena, &series, &n, &f->err), &f->err);
	for (size_t i = 0; i < n; i++)
		buf_printf(&want, STR_FMT " ", STR_ARG(labels_get(series[i].labels, STR("pod"))));
	buf_add_char(&want, '\0');
	CHECK_STR(buf_str(&got), want.ptr);
	buf_release(&got);
	buf_release(&want);
	db_querier_close(q);
}

static void check_parts(struct fixture *f)
{
	check_part(f, 0, WINDOW_S * SEC);
	for (int i = 0; i < 40; i++) {
		int64_t a = (int64_t)draw(WINDOW_S + 1) * SEC, b = (int64_t)draw(WINDOW_S + 1) * SEC;

		if (a != b)
			check_part(f, a < b ? a : b, a < b ? b : a);
		arena_reset(&f->arena);
	}
}

TEST(names_of_parts_of_a_window)
{
	const struct matcher some = { MATCH_EQ, STR("pod"), STR("p07"), NULL };
	struct fixture f;

	REQUIRE(fixture_open(&f));
	f.o.window_ns = WINDOW_S * SEC;
	f.o.too_old_ns = 2 * WINDOW_S * SEC;
	f.o.retention_ns = 0;
	f.o.free_bytes_reserve = 0;
	REQUIRE(fixture_reopen(&f));
	for (int64_t at = 1; at <= WINDOW_S; at++)
		for (size_t pod = 0; pod < PODS; pod++)
			if (draw(4) == 0)
				store_pod(&f, pod, at * SEC - (int64_t)draw(2));
	check_parts(&f);
	REQUIRE(fixture_reopen(&f)); /* nobody knows the last row of each series any more */
	check_parts(&f);
	for (size_t pod = 0; pod < PODS; pod += 3)
		store_pod(&f, pod, WINDOW_S * SEC - 5);
	check_parts(&f);
	CHECK_OK(db_delete_series(f.db, &some, 1, 0, WINDOW_S * SEC, &f.err), &f.err);
	check_parts(&f);
	fixture_close(&f);
}
