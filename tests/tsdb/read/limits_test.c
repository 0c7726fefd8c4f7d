/* A querier with limits gives nothing of series that they do not admit, by any of its functions. */
#include "tests/check.h"
#include "tests/tsdb/fixture.h"
#include "tests/tsdb/read/numbers.h"

static const char *const types[] = { "samples/count", NULL };
static const char *const secret_types[] = { "secrets/count", NULL };

#define WINDOW_S 10

static const struct stored {
	const char *name, *job, *namespace, *host;
	const char *lines[2];
} stored[] = {
	{ "cpu", "api", "ours", "", { "main;work customer=us 1" } },
	{ "cpu", "api", "theirs", "", { "main;work customer=them 1" } },
	/* Its samples have the label that it lacks. */
	{ "cpu", "api", "", "", { "main;work namespace=ours 1" } },
	{ "vault", "vault", "theirs", "their-host", { "main;work 1" } },
};
#define STORED (sizeof(stored) / sizeof(stored[0]))

static struct labels stored_labels(
	struct fixture *f, const char *name, const char *job, const char *namespace, const char *host)
{
	struct labels_builder b;
	struct labels out = { 0 };

	labels_builder_init(&b, &f->arena, (struct labels){ 0 });
	labels_builder_set(&b, STR(LABEL_NAME), str_of(name));
	labels_builder_set(&b, STR("job"), str_of(job));
	labels_builder_set(&b, STR("namespace"), str_of(namespace));
	labels_builder_set(&b, STR("host"), str_of(host));
	CHECK_OK(labels_builder_build(&b, &out, &f->err), &f->err);
	return out;
}

static void store(struct fixture *f, int64_t ts_s)
{
	struct db_number up[2] = {
		{ stored_labels(f, "up", "api", "ours", ""), ts_s * SEC, 1 },
		{ stored_labels(f, "up", "api", "theirs", "their-host"), ts_s * SEC, 1 },
	};

	for (size_t i = 0; i < STORED; i++) {
		const struct stored *s = &stored[i];
		struct pprof *p = profile_of(&f->arena, i == 3 ? secret_types : types, s->lines);

		REQUIRE_OK(append_wait(f->db, stored_labels(f, s->name, s->job, s->namespace, s->host),
					   ts_s * SEC, 10 * SEC, p, NULL, true, NULL, &f->err),
			&f->err);
	}
	REQUIRE_OK(numbers_wait(f->db, up, 2, &f->err), &f->err);
}

static void add_list(struct buf *out, const char *what, const struct str *v, size_t n)
{
	buf_printf(out, "%s:", what);
	for (size_t i = 0; i < n; i++)
		buf_printf(out, " " STR_FMT, STR_ARG(v[i]));
	buf_add_char(out, '\n');
}

static void add_series(struct buf *out, const struct db_series *s)
{
	buf_printf(out, " " STR_FMT "/" STR_FMT,
		STR_ARG(labels_get(s->labels, STR(LABEL_NAME))),
			STR_ARG(labels_get(s->labels, STR("namespace"))));
}

static enum err_code count_visited(void *ctx, const struct db_series *s, struct err *err)
{
	unsigned *visited = ctx;

	(void)err;
	visited[str_is(labels_get(s->labels, STR("namespace")), "ours")]++;
	return ERR_OK;
}

static bool add_count(void *ctx, struct str text, uint32_t series, uint32_t values)
{
	buf_printf(ctx, " " STR_FMT "=%u/%u", STR_ARG(text), series, values);
	return true;
}

static void add_counts(struct db_querier *q, struct fixture *f, struct buf *out)
{
	struct db_counts *counts;

	REQUIRE_OK(db_counts_open(q, &counts, &f->err), &f->err);
	REQUIRE_OK(db_counts_add(counts, NULL, 0, &f->err), &f->err);
	buf_add_cstr(out, "counts:");
	CHECK_OK(db_counts_each(counts, STR(""), add_count, out, &f->err), &f->err);
	buf_add_cstr(out, " of namespaces:");
	CHECK_OK(db_counts_each(counts, STR("namespace"), add_count, out, &f->err), &f->err);
	buf_add_char(out, '\n');
	db_counts_close(counts);
}

/* All that a querier tells of what is stored. */
static void tell(struct fixture *f, const struct label_limits *l, bool head, struct buf *out)
{
	static const char *const names[] = { "namespace", "host", "customer", "job" };
	const struct matcher theirs = { MATCH_EQ, STR("namespace"), STR("theirs"), NULL };
	unsigned visited[2] = { 0 };
	const struct db_visitor visitor = { .take = count_visited, .ctx = visited };
	struct profile_type *found;
	struct db_series *v;
	struct db_querier *q;
	struct str *texts;
	size_t n;

	buf_clear(out);
	REQUIRE_OK(db_querier_open_limited(f->db, l, 0, WINDOW_S * SEC, NULL, &q, &f->err), &f->err);
	CHECK_INT(db_querier_has_blocks(q), !head);
	REQUIRE_OK(db_select(q, NULL, 0, &f->arena, &v, &n, &f->err), &f->err);
	buf_add_cstr(out, "series:");
	for (size_t i = 0; i < n; i++)
		add_series(out, &v[i]);
	REQUIRE_OK(db_select(q, &theirs, 1, &f->arena, &v, &n, &f->err), &f->err);
	buf_printf(out, " theirs: %zu\n", n);
	REQUIRE_OK(db_visit_series(q, DB_PROFILES, NULL, 0, &visitor, &f->err), &f->err);
	buf_printf(out, "visited: %u of ours, %u others\n", visited[1], visited[0]);
	REQUIRE_OK(db_label_names(q, NULL, 0, 0, &f->arena, &texts, &n, &f->err), &f->err);
	add_list(out, "names", texts, n);
	for (size_t i = 0; i < 4; i++) {
		REQUIRE_OK(db_label_values(q, str_of(names[i]), NULL, 0, 0, &f->arena, &texts, &n, &f->err),
			&f->err);
		add_list(out, names[i], texts, n);
	}
	REQUIRE_OK(db_profile_types(q, &f->arena, &found, &n, &f->err), &f->err);
	buf_add_cstr(out, "types:");
	for (size_t i = 0; i < n; i++)
		buf_printf(out, " " STR_FMT, STR_ARG(found[i].sample_type));
	buf_add_char(out, '\n');
	add_counts(q, f, out);
	db_querier_close(q);
}

#define TEXT(s) \
	{ \
		s, sizeof(s) - 1 \
	}
static const struct matcher ours[] = { { MATCH_EQ, TEXT("namespace"), TEXT("ours"), NULL } };
static const struct matcher vault[] = { { MATCH_NE, TEXT("host"), TEXT(""), NULL },
	{ MATCH_EQ, TEXT("job"), TEXT("vault"), NULL } };
static const struct matcher_set sets[] = { { ours, 1 }, { vault, 2 }, { NULL, 0 } };

/* counts are of head windows. */
static const struct {
	struct label_limits limits;
	const char *want, *counts;
} rows[] = {
	{ { sets, 1 },
		"series: cpu/ours up/ours theirs: 0\n"
		"visited: 1 of ours, 0 others\n"
		"names: __name__ job namespace\n"
		"namespace: ours\nhost:\ncustomer:\njob: api\n"
		"types: samples\n",
		"counts: __name__=2/2 job=2/1 namespace=2/1 of namespaces: ours=2/0\n" },
	{ { sets, 2 },
		"series: cpu/ours up/ours vault/theirs theirs: 1\n"
		"visited: 1 of ours, 1 others\n"
		"names: __name__ host job namespace\n"
		"namespace: ours theirs\nhost: their-host\ncustomer:\njob: api vault\n"
		"types: samples secrets\n",
		"counts: __name__=3/3 job=3/2 namespace=3/2 host=1/1 of namespaces: ours=2/0 "
		"theirs=1/0\n" },
	{ { sets, 0 },
		"series: theirs: 0\n"
		"visited: 0 of ours, 0 others\nnames:\nnamespace:\nhost:\ncustomer:\njob:\ntypes:\n",
		"counts: of namespaces:\n" },
	/* Everything, but labels of samples. */
	{ { sets + 2, 1 },
		"series: cpu/ cpu/ours cpu/theirs up/theirs up/ours vault/theirs theirs: 4\n"
		"visited: 1 of ours, 3 others\n"
		"names: __name__ host job namespace\n"
		"namespace: ours theirs\nhost: their-host\ncustomer:\njob: api vault\n"
		"types: samples secrets\n",
		"counts: __name__=6/3 job=6/2 namespace=5/2 host=2/1 of namespaces: ours=2/0 "
		"theirs=3/0\n" },
};

static void check_all(struct fixture *f, bool head)
{
	struct buf out = { 0 }, want = { 0 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		buf_clear(&want);
		buf_printf(&want, "%s%s", rows[i].want, head ? rows[i].counts : "counts: of namespaces:\n");
		tell(f, &rows[i].limits, head, &out);
		if (!str_eq(buf_str(&out), buf_str(&want)))
			CHECK_FAIL("row %zu, %s: \"" STR_FMT "\", want \"" STR_FMT "\"", i,
				head ? "head" : "block", STR_ARG(buf_str(&out)), STR_ARG(buf_str(&want)));
	}
	buf_release(&out);
	buf_release(&want);
}

TEST(a_limited_querier_gives_what_its_limits_admit)
{
	struct fixture f;

	REQUIRE(fixture_open(&f));
	f.o.window_ns = WINDOW_S * SEC;
	f.o.too_old_ns = 2 * WINDOW_S * SEC;
	f.o.retention_ns = 0;
	f.o.free_bytes_reserve = 0;
	REQUIRE(fixture_reopen(&f));
	store(&f, WINDOW_S / 2);
	check_all(&f, true);
	store(&f, 100 * WINDOW_S);
	fixture_maintain(&f); /* cuts the first window */
	check_all(&f, false);
	fixture_close(&f);
}
