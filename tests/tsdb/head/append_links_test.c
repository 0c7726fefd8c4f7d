/* Links of samples: kept beside their row, which they do not split. */
#include "tests/check.h"
#include "tests/tsdb/fixture.h"
#include "tsdb/columns/links.h"

static const char *const types[] = { "samples/count", "cpu/nanoseconds", NULL };

/* Span n; 0: none. */
static struct pprof_link span(unsigned n)
{
	struct pprof_link l = { { 0 }, { 0 } };

	l.trace_id[0] = (unsigned char)(n ? 0xa0 : 0);
	l.span_id[7] = (unsigned char)n;
	return l;
}

static struct pprof *linked(
	struct fixture *f, const char *const *lines, const uint32_t *of, uint32_t spans_n)
{
	struct pprof *p = profile_of(&f->arena, types, lines);
	struct pprof_link *links = arena_array(&f->arena, struct pprof_link, spans_n + 1);

	for (uint32_t i = 1; i <= spans_n; i++)
		links[i] = span(i);
	p->links = links;
	p->links_n = spans_n + 1;
	p->sample_links = of;
	return p;
}

static void check_text(struct fixture *f, struct labels l, const char *want)
{
	struct buf got = { 0 };

	CHECK(rows_text(f->db, l, 0, INT64_MAX, &got, &f->err));
	CHECK_STR(buf_str(&got), want);
	buf_release(&got);
}

#define A "span a0000000000000000000000000000000 000000000000000"

TEST(equal_samples_of_different_spans_are_one_entry)
{
	static const char *const lines[] = { "main;work 1 10", "main;work 2 20", "main;work 4 40",
		"main;work 8 80", "main 16 160", "main;work k=v 32 320", "main 64 640", NULL };
	static const uint32_t of[] = { 2, 1, 2, 0, 3, 1, 0 };
	static const char want[] = "@100\nmain 80 800\nmain;work 15 150\nmain;work k=v 32 320\n" A
							   "1 main;work 2 20\n" A "1 main;work k=v 32 320\n" A
							   "2 main;work 5 50\n" A "3 main 16 160\n";
	struct db_append_stats stats;
	struct fixture f;
	struct labels l;

	REQUIRE(fixture_open(&f));
	l = labels_of(&f.arena, "p", "a", "i");
	for (int again = 0; again < 2; again++) /* the same bytes: acknowledged again */
		REQUIRE_OK(append_wait(f.db, l, 100 * SEC, SEC, linked(&f, lines, of, 3), NULL, false,
					   &stats, &f.err),
			&f.err);
	CHECK_INT(stats.samples, 3);
	CHECK_INT(stats.links, 4);
	CHECK_INT(stats.links_dropped, 0);
	check_text(&f, l, want);
	REQUIRE(fixture_reopen(&f));
	check_text(&f, l, want);
	fixture_close(&f);
}

/* They are a part of the row, as long as its epoch lasts. */
TEST(the_same_samples_of_other_spans_are_another_row)
{
	static const char *const lines[] = { "main;work 1 10", NULL };
	static const uint32_t of[] = { 1 }, other[] = { 2 };
	struct fixture f;
	struct labels l;

	REQUIRE(fixture_open(&f));
	l = labels_of(&f.arena, "p", "a", "i");
	CHECK_OK(
		append_wait(f.db, l, 100 * SEC, SEC, linked(&f, lines, of, 2), NULL, false, NULL, &f.err),
		&f.err);
	CHECK(append_wait(f.db, l, 100 * SEC, SEC, linked(&f, lines, other, 2), NULL, false, NULL,
			  &f.err) == ERR_EXISTS);
	CHECK(append_wait(f.db, l, 100 * SEC, SEC, linked(&f, lines, NULL, 0), NULL, false, NULL,
			  &f.err) == ERR_EXISTS);
	CHECK_OK(
		append_wait(f.db, l, 100 * SEC, SEC, linked(&f, lines, of, 2), NULL, false, NULL, &f.err),
		&f.err);
	fixture_close(&f);
}

/* Without links nothing is added up, as before there were any. */
TEST(rows_without_links_stay_as_they_were)
{
	static const char *const lines[] = { "main;work 1 10", "main;work 2 20", NULL };
	static const uint32_t of[] = { 0, 2 }; /* 2: zeros */
	struct db_append_stats stats;
	struct pprof *p;
	struct fixture f;
	struct labels l;

	REQUIRE(fixture_open(&f));
	l = labels_of(&f.arena, "p", "a", "i");
	p = linked(&f, lines, of, 2);
	((struct pprof_link *)(uintptr_t)p->links)[2] = span(0);
	REQUIRE_OK(append_wait(f.db, l, 100 * SEC, SEC, p, NULL, false, &stats, &f.err), &f.err);
	CHECK_INT(stats.samples, 2);
	CHECK_INT(stats.links, 0);
	check_text(&f, l, "@100\nmain;work 1 10\nmain;work 2 20\n");
	fixture_close(&f);
}

TEST(sums_that_exceed_64_bits_are_not_made)
{
	static const char *const lines[] = { "a 9223372036854775807 1", "a 1 1",
		"b -9223372036854775807 1", NULL };
	static const char *const alone[] = { "a 9223372036854775807 1", "b 1 1",
		"c -9223372036854775807 1", NULL };
	static const uint32_t of[] = { 1, 1, 1 }, some[] = { 1, 1, 0 };
	struct db_append_stats stats;
	struct fixture f;
	struct labels l;

	REQUIRE(fixture_open(&f));
	l = labels_of(&f.arena, "p", "a", "i");
	REQUIRE_OK(
		append_wait(f.db, l, 100 * SEC, SEC, linked(&f, lines, of, 1), NULL, false, &stats, &f.err),
		&f.err);
	CHECK_INT(stats.samples, 3);
	CHECK_INT(stats.links, 3);
	/* The total of the linked ones alone does not fit: they are counted as dropped. */
	REQUIRE_OK(append_wait(f.db, l, 200 * SEC, SEC, linked(&f, alone, some, 1), NULL, false, &stats,
				   &f.err),
		&f.err);
	CHECK_INT(stats.samples, 3);
	CHECK_INT(stats.links, 0);
	CHECK_INT(stats.links_dropped, 2);
	fixture_close(&f);
}

/* More linked samples than a row keeps: the rest are counted, in the row too. */
TEST(too_many_links_are_counted)
{
	const uint32_t n = LINKS_ROW_MAX + 5;
	const struct db_row *row;
	struct db_querier *q;
	struct db_series *series;
	struct db_rows *rows;
	struct db_append_stats stats;
	double before = metric_value("epimetheus_tsdb_links_dropped_total");
	struct pprof_builder *b;
	struct fixture f;
	struct pprof *p;
	uint32_t *of;
	size_t found;

	REQUIRE(fixture_open(&f));
	REQUIRE_OK(pprof_builder_open(&f.arena, &b, &f.err), &f.err);
	pprof_builder_type(b, STR("samples"), STR("count"));
	of = arena_array(&f.arena, uint32_t, n);
	for (uint32_t i = 0; i < n; i++) {
		const int64_t one = 1;
		struct pprof_label label = { .key = pprof_builder_string(b, STR("id")), .num = i % 7 + 1 };

		pprof_builder_sample(b, NULL, 0, &label, 1, &one);
		of[i] = i + 1;
	}
	REQUIRE_OK(pprof_builder_finish(b, &p, &f.err), &f.err);
	p->links = arena_array(&f.arena, struct pprof_link, n + 1);
	for (uint32_t i = 1; i <= n; i++)
		memcpy((void *)(uintptr_t)p->links[i].span_id, &i, sizeof(i));
	p->links_n = n + 1;
	p->sample_links = of;
	REQUIRE_OK(append_wait(f.db, labels_of(&f.arena, "p", "a", "i"), 100 * SEC, SEC, p, NULL, false,
				   &stats, &f.err),
		&f.err);
	CHECK_INT(stats.samples, 7);
	CHECK_INT(stats.links, LINKS_ROW_MAX);
	CHECK_INT(stats.links_dropped, 5);
	CHECK_INT(metric_value("epimetheus_tsdb_links_dropped_total") - before, 5);
	REQUIRE_OK(db_querier_open(f.db, 0, INT64_MAX, NULL, &q, &f.err), &f.err);
	REQUIRE_OK(db_select(q, NULL, 0, &f.arena, &series, &found, &f.err), &f.err);
	REQUIRE(found == 1);
	REQUIRE_OK(db_links_open(q, series, 0, INT64_MAX, UINT64_MAX, &rows, &f.err), &f.err);
	REQUIRE_OK(db_rows_next(rows, &row, &f.err), &f.err);
	CHECK_INT(row->n, LINKS_ROW_MAX);
	CHECK_INT(row->links_dropped, 5);
	CHECK_INT(db_rows_next(rows, &row, &f.err), ERR_NOT_FOUND);
	db_rows_close(rows);
	db_querier_close(q);
	fixture_close(&f);
}
