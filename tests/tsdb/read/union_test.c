/*
 * A union of databases: the same profiles and numbers are in one database and spread over three,
 * and what queriers say is the same.
 */
#include "tests/tsdb/read/spread.h"

/* ---- what queriers say ---- */

static void print_names(struct db *db, struct str name, const struct matcher *m, size_t n,
	uint64_t limit, struct buf *out)
{
	struct db_querier *q;
	struct arena a;
	struct str *v;
	struct err err;
	size_t k = 0;

	arena_init(&a, 0);
	REQUIRE_OK(db_querier_open(db, (T0 + 15) * SEC, (T0 + 200) * SEC, NULL, &q, &err), &err);
	if (name.len)
		CHECK_OK(db_label_values(q, name, m, n, limit, &a, &v, &k, &err), &err);
	else
		CHECK_OK(db_label_names(q, m, n, limit, &a, &v, &k, &err), &err);
	for (size_t i = 0; i < k; i++)
		buf_printf(out, STR_FMT "\n", STR_ARG(v[i]));
	db_querier_close(q);
	arena_release(&a);
}

static int line_cmp(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

struct count_lines {
	char *v[64];
	size_t n;
};

static bool add_count(void *ctx, struct str text, uint32_t series, uint32_t values)
{
	struct count_lines *l = ctx;
	struct buf b = { 0 };

	buf_printf(&b, STR_FMT " %u %u\n%c", STR_ARG(text), series, values, 0);
	l->v[l->n++] = b.ptr;
	return l->n < 64;
}

static void print_counts(struct db *db, const char *name, struct buf *out)
{
	const struct matcher m = { .op = MATCH_NE, .name = STR("instance"), .value = STR("i3") };
	struct count_lines l = { .n = 0 };
	struct db_counts *c = NULL;
	struct db_querier *q;
	struct err err;

	REQUIRE_OK(db_querier_open(db, 0, (T0 + 200) * SEC, NULL, &q, &err), &err);
	CHECK_OK(db_counts_open(q, &c, &err), &err);
	CHECK_OK(db_counts_add(c, &m, 1, &err), &err);
	CHECK_OK(db_counts_each(c, str_of(name), add_count, &l, &err), &err);
	qsort(l.v, l.n, sizeof(*l.v), line_cmp);
	for (size_t i = 0; i < l.n; i++) {
		buf_add_cstr(out, l.v[i]);
		free(l.v[i]);
	}
	for (int i = 0; i < PODS + 1; i++) {
		char instance[16];

		snprintf(instance, sizeof(instance), "i%d", i);
		buf_printf(out, " %d",
			db_counts_has_label(c, (struct label){ STR("instance"), str_of(instance) }));
	}
	db_counts_close(c);
	db_querier_close(q);
}

/* The latest profile of each series, epoch by epoch. */
static void print_last(struct spread *s, struct db *db, int64_t max_s, struct buf *out)
{
	static const struct profile_type cpu = {
		STR("p"), STR("cpu"), STR("nanoseconds"), STR(""), STR(""), true };
	struct db_series *v;
	struct db_querier *q;
	struct arena a;
	struct err err;
	size_t n, end;

	(void)s;
	arena_init(&a, 0);
	REQUIRE_OK(db_querier_open(db, 0, max_s * SEC, NULL, &q, &err), &err);
	REQUIRE_OK(db_select_kinds(q, DB_PROFILES, NULL, 0, &a, &v, &n, &err), &err);
	for (size_t i = 0; i < n; i = end) {
		struct sum_stats stats = { 0 };

		for (end = i; end < n && labels_eq(v[end].labels, v[i].labels); end++) {
			const struct db_series *one = &v[end];

			stats.headers_n = 0;
			CHECK_OK(
				db_sum(q, &one, 1, &cpu, 0, max_s * SEC, SUM_LAST, NULL, &a, &stats, &err), &err);
		}
		labels_print(out, v[i].labels);
		buf_printf(out, " %llu rows at %lld: %lld\n", (unsigned long long)stats.rows,
			(long long)(stats.end_ns / SEC), (long long)stats.total);
	}
	db_querier_close(q);
	arena_release(&a);
}

static void print_types(struct db *db, struct buf *out)
{
	struct profile_type *v;
	struct db_querier *q;
	struct arena a;
	struct err err;
	size_t n;

	arena_init(&a, 0);
	REQUIRE_OK(db_querier_open(db, 0, INT64_MAX, NULL, &q, &err), &err);
	CHECK_OK(db_profile_types(q, &a, &v, &n, &err), &err);
	for (size_t i = 0; i < n; i++)
		profile_type_print(out, &v[i]);
	db_querier_close(q);
	arena_release(&a);
}

static void compare_all(struct spread *s)
{
	const struct matcher m = { .op = MATCH_NE, .name = STR("instance"), .value = STR("i3") };
	struct buf one = { 0 }, all = { 0 };
	struct err err;

	for (int pod = 0; pod < PODS; pod++) {
		struct labels labels = pod_labels(s, "p", pod);

		CHECK(rows_text(s->one.db, labels, 0, INT64_MAX, &one, &err));
		CHECK(rows_text(s->all, labels, 0, INT64_MAX, &all, &err));
		check_same(&one, &all, "rows");
		CHECK(sum_text(s->one.db, &labels, (T0 + 25) * SEC, (T0 + 333) * SEC, &one, NULL, &err));
		CHECK(sum_text(s->all, &labels, (T0 + 25) * SEC, (T0 + 333) * SEC, &all, NULL, &err));
		check_same(&one, &all, "sum of a series");
	}
	CHECK(sum_text(s->one.db, NULL, 0, (T0 + 333) * SEC, &one, NULL, &err));
	CHECK(sum_text(s->all, NULL, 0, (T0 + 333) * SEC, &all, NULL, &err));
	check_same(&one, &all, "sum");
	CHECK(numbers_text(s->one.db, 0, INT64_MAX, &one, &err));
	CHECK(numbers_text(s->all, 0, INT64_MAX, &all, &err));
	check_same(&one, &all, "numbers");
	for (unsigned limit = 0; limit < 4; limit += 3)
		for (unsigned n = 0; n < 2; n++) {
			print_names(s->one.db, STR(""), &m, n, limit, &one);
			print_names(s->all, STR(""), &m, n, limit, &all);
			check_same(&one, &all, "names");
			print_names(s->one.db, STR("instance"), &m, n, limit, &one);
			print_names(s->all, STR("instance"), &m, n, limit, &all);
			check_same(&one, &all, "values");
		}
	for (int64_t max = T0 + 5 * STEP_S; max <= T0 + STEPS * STEP_S; max += 13) {
		print_last(s, s->one.db, max, &one);
		print_last(s, s->all, max, &all);
		check_same(&one, &all, "the latest");
	}
	print_types(s->one.db, &one);
	print_types(s->all, &all);
	check_same(&one, &all, "types");
	buf_release(&one);
	buf_release(&all);
}

TEST(a_union_says_what_one_says)
{
	struct buf one = { 0 }, all = { 0 };
	struct spread s;

	REQUIRE(open_all(&s));
	fill_all(&s);
	compare_all(&s);
	for (unsigned i = 0; i < 3; i++) {
		static const char *const of[] = { "", "instance", "job" };

		print_counts(s.one.db, of[i], &one);
		print_counts(s.all, of[i], &all);
		check_same(&one, &all, "counts");
	}
	buf_release(&one);
	buf_release(&all);
	close_all(&s);
}

TEST(partitions_of_members_have_different_numbers)
{
	struct db_series *v;
	struct db_querier *q;
	struct spread s;
	struct arena a;
	struct err err;
	size_t n;

	REQUIRE(open_all(&s));
	fill_all(&s);
	arena_init(&a, 0);
	REQUIRE_OK(db_querier_open(s.all, 0, INT64_MAX, NULL, &q, &err), &err);
	REQUIRE_OK(db_select_kinds(q, DB_PROFILES, NULL, 0, &a, &v, &n, &err), &err);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			CHECK((v[i].partition == v[k].partition) ==
				(partition_index(v[i].partition) == partition_index(v[k].partition)));
	db_querier_close(q);
	arena_release(&a);
	close_all(&s);
}

/* ---- what two members have ---- */

TEST(a_number_of_one_time_counts_once)
{
	struct labels labels;
	struct buf text = { 0 };
	struct spread s;
	struct err err;

	REQUIRE(open_all(&s));
	labels = pod_labels(&s, "up", 0);
	number_to(s.of[2].db, labels, T0 + 10, 3);
	number_to(s.of[2].db, labels, T0 + 20, 3);
	number_to(s.of[0].db, labels, T0 + 20, 1);
	number_to(s.of[1].db, labels, T0 + 20, 2);
	number_to(s.of[1].db, labels, T0 + 5, 2);
	CHECK(numbers_text(s.all, 0, INT64_MAX, &text, &err));
	CHECK_STR(
		buf_str(&text), "up{instance=\"i0\", job=\"y\"} 1700001005=2 1700001010=3 1700001020=1\n");
	buf_release(&text);
	close_all(&s);
}

TEST(the_latest_profile_of_one_time_counts_once)
{
	static const char *const types[] = { "cpu/nanoseconds", NULL };
	static const char *const lines[] = { "main;f 7", NULL };
	struct buf text = { 0 };
	struct spread s;

	REQUIRE(open_all(&s));
	for (size_t i = 0; i < MEMBERS; i++)
		append_to(
			s.of[i].db, pod_labels(&s, "p", 0), T0 + 10, profile_of(&s.one.arena, types, lines));
	print_last(&s, s.all, T0 + 20, &text);
	CHECK_STR(buf_str(&text), "p{instance=\"i0\", job=\"y\"} 1 rows at 1700001010: 7\n");
	buf_release(&text);
	close_all(&s);
}

/* ---- limits ---- */

TEST(limits_are_of_all_members)
{
	struct db_querier *q;
	struct db_series *v;
	struct spread s;
	struct arena a;
	struct err err;
	size_t n, about;

	REQUIRE(open_all(&s));
	for (size_t i = 0; i < MEMBERS; i++)
		for (int k = 0; k < 4; k++)
			number_to(s.of[i].db, pod_labels(&s, "up", (int)i * 4 + k), T0 + 10, 1);
	arena_init(&a, 0);
	REQUIRE_OK(db_querier_open(s.all, 0, INT64_MAX, NULL, &q, &err), &err);
	CHECK_OK(db_select_within(q, DB_NUMBERS, NULL, 0, 12, &about, &a, &v, &n, &err), &err);
	CHECK_INT(n, 12);
	CHECK_INT(about, 0);
	CHECK_INT(db_select_within(q, DB_NUMBERS, NULL, 0, 11, &about, &a, &v, &n, &err), ERR_LIMIT);
	CHECK_INT(about, 12);
	CHECK_STR(str_of(err.msg), "select: 12 series, limit 11");
	/* what was not looked at yet is estimated */
	CHECK_INT(db_select_within(q, DB_NUMBERS, NULL, 0, 3, &about, &a, &v, &n, &err), ERR_LIMIT);
	CHECK_INT(about, 12);
	db_querier_close(q);
	arena_release(&a);
	close_all(&s);
}

/* Rows of some series are looked up, and of members that come later only the indexes are read. */
TEST(very_many_series_are_estimated_over_all_members)
{
	enum { EACH = 3000 };
	struct db_number *v = calloc(EACH, sizeof(*v));
	struct db_querier *q;
	struct db_series *found;
	struct spread s;
	struct arena a;
	struct err err;
	size_t n, about;
	char instance[16];

	REQUIRE(v && open_all(&s));
	for (size_t i = 0; i < MEMBERS; i++) {
		for (size_t k = 0; k < EACH; k++) {
			snprintf(instance, sizeof(instance), "i%zu", i * EACH + k);
			v[k] = (struct db_number){ labels_of(&s.one.arena, "up", "x", instance), T0 * SEC, 1 };
		}
		CHECK_OK(numbers_wait(s.of[i].db, v, EACH, &err), &err);
	}
	arena_init(&a, 0);
	REQUIRE_OK(db_querier_open(s.all, 0, INT64_MAX, NULL, &q, &err), &err);
	for (size_t max = 1000; max <= 7000; max += 3000) {
		CHECK_INT(
			db_select_within(q, DB_NUMBERS, NULL, 0, max, &about, &a, &found, &n, &err), ERR_LIMIT);
		CHECK_INT(about, MEMBERS * EACH);
	}
	CHECK_OK(db_select_within(q, DB_NUMBERS, NULL, 0, MEMBERS * EACH, &about, &a, &found, &n, &err),
		&err);
	CHECK_INT(n, MEMBERS * EACH);
	db_querier_close(q);
	arena_release(&a);
	close_all(&s);
	free(v);
}
