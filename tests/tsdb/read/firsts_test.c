/* Since when series with a label are there: in head windows, in blocks, after deletions, of
 * members. */
#include "tests/check.h"
#include "tests/tsdb/fixture.h"

#define WINDOW_S 10
#define T0 INT64_C(1700000000)

static const char *const types[] = { "samples/count", NULL };
static const char *const lines[] = { "main;work version=inner 1", NULL };

static struct labels version_labels(struct fixture *f, const char *job, const char *version)
{
	struct labels_builder b;
	struct labels out = { 0 };

	labels_builder_init(&b, &f->arena, (struct labels){ 0 });
	labels_builder_set(&b, STR(LABEL_NAME), STR("cpu"));
	labels_builder_set(&b, STR("job"), str_of(job));
	labels_builder_set(&b, STR("version"), str_of(version));
	CHECK_OK(labels_builder_build(&b, &out, &f->err), &f->err);
	return out;
}

static void store(struct fixture *f, const char *job, const char *version, int64_t at_s)
{
	REQUIRE_OK(append_wait(f->db, version_labels(f, job, version), (T0 + at_s) * SEC, 10 * SEC,
				   profile_of(&f->arena, types, lines), NULL, true, NULL, &f->err),
		&f->err);
}

#define SEEN_MAX 16u

/* What was taken, each series by its earliest row. */
struct seen {
	struct {
		struct labels labels;
		int64_t first_ns;
	} v[SEEN_MAX];
	size_t n;
	unsigned taken; /* calls */
	struct arena *a;
};

static size_t seen_find(const struct seen *s, struct labels labels)
{
	size_t i = 0;

	/* A block leaves out the other labels. */
	while (i < s->n &&
		!(str_eq(labels_get(s->v[i].labels, STR("job")), labels_get(labels, STR("job"))) &&
			str_eq(labels_get(s->v[i].labels, STR("version")), labels_get(labels, STR("version")))))
		i++;
	return i;
}

static int64_t seen_known(void *ctx, struct labels labels)
{
	struct seen *s = ctx;
	size_t i = seen_find(s, labels);

	CHECK(labels_has(labels, STR("version")));
	return i < s->n ? s->v[i].first_ns : INT64_MAX;
}

static enum err_code seen_take(void *ctx, struct labels labels, int64_t first_ns, struct err *err)
{
	struct seen *s = ctx;
	size_t i = seen_find(s, labels);

	s->taken++;
	if (i == SEEN_MAX)
		return err_set(err, ERR_LIMIT, "more series than were stored");
	if (i == s->n) {
		s->v[s->n].labels = labels_dup(s->a, labels);
		s->v[s->n++].first_ns = first_ns;
	} else if (first_ns < s->v[i].first_ns) {
		s->v[i].first_ns = first_ns;
	}
	return ERR_OK;
}

static int seen_cmp(const void *a, const void *b)
{
	const struct labels *x = a, *y = b;
	int c = str_cmp(labels_get(*x, STR("job")), labels_get(*y, STR("job")));

	return c ? c : str_cmp(labels_get(*x, STR("version")), labels_get(*y, STR("version")));
}

/* "job/version@seconds after T0", in the order of labels. */
static void visit(struct fixture *f, const struct label_limits *limits, int64_t min_s,
	int64_t max_s, struct seen *s, struct buf *out)
{
	static const struct str kept[] = { STR("job"), STR("version") };
	const struct db_firsts v = { .label = STR("version"), .kept = kept, .kept_n = 2,
									 .known = seen_known, .take = seen_take, .ctx = s };
	struct db_querier *q;

	*s = (struct seen){ .a = &f->arena };
	buf_clear(out);
	REQUIRE_OK(db_querier_open_limited(
				   f->db, limits, (T0 + min_s) * SEC, (T0 + max_s) * SEC, NULL, &q, &f->err),
		&f->err);
	CHECK_OK(db_visit_firsts(q, &v, &f->err), &f->err);
	db_querier_close(q);
	if (s->n)
		qsort(s->v, s->n, sizeof(s->v[0]), seen_cmp);
	for (size_t i = 0; i < s->n; i++)
		buf_printf(out, "%s" STR_FMT "/" STR_FMT "@%lld", i ? " " : "",
			STR_ARG(labels_get(s->v[i].labels, STR("job"))),
				STR_ARG(labels_get(s->v[i].labels, STR("version"))),
					(long long)(s->v[i].first_ns / SEC - T0));
}

#define ALL INT64_C(-1000), INT64_C(100000)

static void check_all(struct fixture *f, const char *want)
{
	struct buf out = { 0 };
	struct seen s;

	visit(f, NULL, ALL, &s, &out);
	CHECK_STR(buf_str(&out), want);
	buf_release(&out);
}

static void store_versions(struct fixture *f)
{
	store(f, "api", "", 1);
	store(f, "api", "v1", 2);
	store(f, "api", "v1", 3);
	store(f, "web", "v1", 4);
	store(f, "api", "v2", 5);
	store(f, "api", "v1", 12);
	store(f, "api", "v2", 13);
	store(f, "web", "v2", 14);
}

static void open_small(struct fixture *f)
{
	REQUIRE(fixture_open(f));
	f->o.window_ns = WINDOW_S * SEC;
	f->o.too_old_ns = 100000 * NS_PER_HOUR;
	f->o.retention_ns = 0;
	REQUIRE(fixture_reopen(f));
}

TEST(firsts_of_windows)
{
	const struct matcher web = { .op = MATCH_EQ, .name = STR("job"), .value = STR("web") };
	const struct matcher_set set = { &web, 1 };
	const struct label_limits limits = { &set, 1 };
	struct buf out = { 0 };
	struct fixture f;
	struct seen s;

	open_small(&f);
	check_all(&f, "");
	store_versions(&f);
	visit(&f, NULL, ALL, &s, &out);
	CHECK_STR(buf_str(&out), "api/v1@2 api/v2@5 web/v1@4 web/v2@14");
	CHECK_INT(s.taken, 4); /* what the first window has is not looked for in the second */
	visit(&f, NULL, 2, 13, &s, &out);
	CHECK_STR(buf_str(&out), "api/v1@3 api/v2@5 web/v1@4");
	visit(&f, &limits, ALL, &s, &out);
	CHECK_STR(buf_str(&out), "web/v1@4 web/v2@14");
	buf_release(&out);
	fixture_close(&f);
}

static void delete_version(struct fixture *f, const char *version, int64_t min_s, int64_t max_s)
{
	const struct matcher m = { .op = MATCH_EQ, .name = STR("version"), .value = str_of(version) };

	REQUIRE_OK(
		db_delete_series(f->db, &m, 1, (T0 + min_s) * SEC, (T0 + max_s) * SEC, &f->err), &f->err);
}

TEST(firsts_without_deleted_rows)
{
	struct fixture f;

	open_small(&f);
	store_versions(&f);
	delete_version(&f, "v1", 1, 2);
	check_all(&f, "api/v1@3 api/v2@5 web/v1@4 web/v2@14");
	delete_version(&f, "v2", 4, 13);
	check_all(&f, "api/v1@3 web/v1@4 web/v2@14");
	delete_version(&f, "v1", 1, 10);
	check_all(&f, "api/v1@12 web/v2@14");
	fixture_close(&f);
}

TEST(firsts_of_blocks)
{
	struct db_status status;
	struct buf out = { 0 };
	struct fixture f;
	struct seen s;

	open_small(&f);
	store_versions(&f);
	store(&f, "api", "v3", 1000); /* windows before it take no more rows */
	f.o.too_old_ns = WINDOW_S * SEC;
	REQUIRE(fixture_reopen(&f));
	REQUIRE_OK(db_compact(f.db, &f.err), &f.err);
	db_status(f.db, &status);
	CHECK(status.blocks > 0);
	visit(&f, NULL, ALL, &s, &out);
	CHECK_STR(buf_str(&out), "api/v1@2 api/v2@5 api/v3@1000 web/v1@4 web/v2@14");
	visit(&f, NULL, 2, 13, &s, &out);
	CHECK_STR(buf_str(&out), "api/v1@3 api/v2@5 web/v1@4");
	delete_version(&f, "v1", 1, 2);
	check_all(&f, "api/v1@3 api/v2@5 api/v3@1000 web/v1@4 web/v2@14");
	delete_version(&f, "v1", 1, 10);
	check_all(&f, "api/v1@12 api/v2@5 api/v3@1000 web/v2@14");
	buf_release(&out);
	fixture_close(&f);
}
