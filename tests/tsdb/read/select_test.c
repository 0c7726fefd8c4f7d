/* Selecting among very many series that lack labels which their samples may have. */
#include "tests/check.h"
#include "tests/tsdb/fixture.h"
#include "tests/tsdb/read/numbers.h"

#define PROFILES 3600u
#define NUMBERS 1200u
#define T0 INT64_C(1700000000)
#define LABELS_MAX 5u

static const char *const jobs[] = { "keys", "clash", "plain" };
static const char *const types[] = { "samples/count", NULL };
/* Samples of the first two jobs have labels. */
static const char *const lines[][2] = { { "main;work pod=p1 1", NULL },
	{ "main;work host=h2 1", NULL }, { "main;work 1", NULL } };

struct texts {
	char job[8], instance[16], pod[8], host[8];
};

/* The i-th series; numbers come behind the profiles. */
static struct labels series_of(unsigned i, struct texts *t, struct label v[LABELS_MAX])
{
	size_t n = 0;

	snprintf(t->job, sizeof(t->job), "%s", jobs[i % 3]);
	snprintf(t->instance, sizeof(t->instance), i % 9 ? "i%u" : "i%u\x7f", i);
	snprintf(t->pod, sizeof(t->pod), "p%u", i % 5);
	snprintf(t->host, sizeof(t->host), "h%u", i % 4);
	v[n++] = (struct label){ STR(LABEL_NAME), i < PROFILES ? STR("cpu") : STR("up") };
	if (i % 7 == 0)
		v[n++] = (struct label){ STR("host"), str_of(t->host) };
	v[n++] = (struct label){ STR("instance"), str_of(t->instance) };
	v[n++] = (struct label){ STR("job"), str_of(t->job) };
	if (i % 11 == 0)
		v[n++] = (struct label){ STR("pod"), str_of(t->pod) };
	return (struct labels){ v, n };
}

static void acked(void *ctx, enum err_code rc, const struct err *err)
{
	if (rc)
		__atomic_fetch_add((unsigned *)ctx, 1, __ATOMIC_SEQ_CST);
}

static void store_all(struct fixture *f)
{
	static const enum value_kind kind = KIND_DELTA;
	struct pprof *p[3];
	struct db_number *numbers = calloc(NUMBERS, sizeof(*numbers));
	struct label *v = calloc((size_t)NUMBERS * LABELS_MAX, sizeof(*v));
	struct texts texts, *kept = calloc(NUMBERS, sizeof(*kept));
	struct label labels[LABELS_MAX];
	unsigned failed = 0;

	REQUIRE(numbers && v && kept);
	for (unsigned i = 0; i < 3; i++)
		REQUIRE((p[i] = profile_of(&f->arena, types, lines[i])) != NULL);
	for (unsigned i = 0; i < PROFILES; i++)
		REQUIRE_OK(db_append(f->db,
					   &(struct db_append){ .labels = series_of(i, &texts, labels),
						   .ts_ns = T0 * SEC,
						   .interval_ns = 10 * SEC,
						   .profile = p[i % 3],
						   .kinds = &kind },
					   NULL, acked, &failed, &f->err),
			&f->err);
	for (unsigned i = 0; i < NUMBERS; i++)
		numbers[i] = (struct db_number){ series_of(PROFILES + i, &kept[i], v + i * LABELS_MAX),
			T0 * SEC, 1 };
	REQUIRE_OK(numbers_wait(f->db, numbers, NUMBERS, &f->err), &f->err);
	REQUIRE(fixture_reopen(f)); /* with all of it stored */
	CHECK_INT(failed, 0);
	free(numbers);
	free(v);
	free(kept);
}

/* Samples of the series have the label. */
static bool samples_have(unsigned i, struct str name)
{
	return i < PROFILES &&
		((i % 3 == 0 && str_is(name, "pod")) || (i % 3 == 1 && str_is(name, "host")));
}

static bool may_match(const struct matcher *m, unsigned i, struct labels labels)
{
	struct str inner = { m->name.ptr + 7, m->name.len - 7 };

	if (labels_has(labels, m->name) || matcher_test(m, STR("")))
		return matcher_test(m, labels_get(labels, m->name));
	return samples_have(i, m->name) ||
		(str_has_prefix(m->name, STR("sample_")) && labels_has(labels, inner) &&
			samples_have(i, inner));
}

static const struct {
	unsigned kinds;
	struct {
		enum match_op op;
		const char *name, *value;
	} of[3]; /* up to the first without a name */
} rows[] = {
	{ DB_PROFILES | DB_NUMBERS, { { MATCH_EQ, "pod", "p1" } } },
	{ DB_PROFILES, { { MATCH_EQ, "pod", "p1" } } },
	{ DB_NUMBERS, { { MATCH_EQ, "pod", "p1" } } },
	{ DB_PROFILES | DB_NUMBERS, { { MATCH_EQ, "host", "h1" } } },
	{ DB_PROFILES | DB_NUMBERS, { { MATCH_EQ, "sample_host", "h2" } } },
	{ DB_PROFILES | DB_NUMBERS, { { MATCH_EQ, "sample_pod", "p2" } } },
	{ DB_PROFILES | DB_NUMBERS, { { MATCH_RE, "sample_host", "h.+" }, { MATCH_NE, "pod", "" } } },
	{ DB_PROFILES | DB_NUMBERS, { { MATCH_EQ, "nothing", "x" } } },
	{ DB_PROFILES | DB_NUMBERS, { { MATCH_EQ, "nothing", "" } } },
	{ DB_PROFILES | DB_NUMBERS, { { MATCH_NE, "pod", "p1" } } },
	{ DB_PROFILES | DB_NUMBERS, { { MATCH_NE, "pod", "" }, { MATCH_EQ, "job", "keys" } } },
	{ DB_PROFILES | DB_NUMBERS, { { MATCH_RE, "pod", "p.+" }, { MATCH_RE, "host", "h.+" } } },
	{ DB_PROFILES | DB_NUMBERS,
		{ { MATCH_EQ, LABEL_NAME, "cpu" }, { MATCH_RE, "instance", "i.*7" },
			{ MATCH_EQ, "pod", "p1" } } },
	{ DB_NUMBERS, { { MATCH_EQ, LABEL_NAME, "up" }, { MATCH_EQ, "instance", "i3601" } } },
	{ DB_PROFILES, { { MATCH_EQ, LABEL_NAME, "up" } } },
	{ DB_NUMBERS, { { MATCH_EQ, LABEL_NAME, "cpu" } } },
};

static int labels_order(const void *a, const void *b)
{
	return labels_cmp(((const struct db_series *)a)->labels, ((const struct db_series *)b)->labels);
}

static void check_row(struct db_querier *q, size_t row)
{
	struct matcher m[3] = { 0 };
	struct db_series *v, key;
	struct db_counts *counts;
	struct label labels[LABELS_MAX];
	size_t n = 0, found, want = 0;
	struct texts texts;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	for (; n < 3 && rows[row].of[n].name; n++)
		REQUIRE_OK(matcher_init(&m[n], rows[row].of[n].op, str_of(rows[row].of[n].name),
					   str_of(rows[row].of[n].value), &err),
			&err);
	REQUIRE_OK(db_select_kinds(q, rows[row].kinds, m, n, &a, &v, &found, &err), &err);
	REQUIRE_OK(db_counts_open(q, &counts, &err), &err);
	CHECK_OK(db_counts_add(counts, m, n, &err), &err);
	for (unsigned i = 0; i < PROFILES + NUMBERS; i++) {
		bool in = rows[row].kinds & (i < PROFILES ? DB_PROFILES : DB_NUMBERS);

		key.labels = series_of(i, &texts, labels);
		for (size_t k = 0; k < n && in; k++)
			in = may_match(&m[k], i, key.labels);
		want += in;
		if (rows[row].kinds == (DB_PROFILES | DB_NUMBERS))
			CHECK_INT(db_counts_has(counts, key.labels), in);
		if (in != (bsearch(&key, v, found, sizeof(*v), labels_order) != NULL))
			CHECK_FAIL("row %zu: series %u is%s selected", row, i, in ? " not" : "");
	}
	CHECK_INT(found, want);
	for (size_t i = 1; i < found; i++)
		CHECK(labels_cmp(v[i - 1].labels, v[i].labels) < 0);
	db_counts_close(counts);
	for (size_t i = 0; i < n; i++)
		matcher_release(&m[i]);
	arena_release(&a);
}

TEST(series_without_a_label_are_selected_by_their_samples)
{
	struct db_querier *q;
	struct fixture f;

	REQUIRE(fixture_open(&f));
	store_all(&f);
	REQUIRE_OK(db_querier_open(f.db, 0, INT64_MAX, NULL, &q, &f.err), &f.err);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_row(q, i);
	db_querier_close(q);
	fixture_close(&f);
}
