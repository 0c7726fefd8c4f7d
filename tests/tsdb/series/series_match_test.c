/*
 * The index of series against a plain list of label sets: matchers of all kinds, names, values and
 * their counts, jobs; while series come and go, and values without series are forgotten, and after
 * a start, which adds the same series with their ids, many at once.
 */
#include "base/map.h"
#include "tests/check.h"
#include "tsdb/series/series.h"
#include "tsdb/symbols/symbols.h"

#define NAMES 7u
#define LABELS_MAX (NAMES + 2)
#define JOBS 5u
#define KEPT_MAX 6000u

static const char *const names[NAMES] = { "a", "job", "sample_a", "service_name", "empty", "pod",
	"all" };

/* A series as the test knows it. */
struct kept {
	struct series *s; /* NULL: removed */
	struct label v[LABELS_MAX];
	char texts[LABELS_MAX][24];
	size_t n;
	struct job *job;
};

struct world {
	struct series_index *x;
	struct kept kept[KEPT_MAX]; /* by id */
	uint32_t n;
	uint64_t seed;
	char jobs[JOBS]; /* their addresses are the jobs */
};

static uint32_t drawn(struct world *w, uint32_t below)
{
	w->seed = map_hash_u64(w->seed + 1);
	return (uint32_t)(w->seed >> 20) % below;
}

static struct labels labels_of(const struct kept *k)
{
	return (struct labels){ k->v, k->n };
}

static void add_label(struct kept *k, const char *name)
{
	k->v[k->n] = (struct label){ str_of(name), str_of(k->texts[k->n]) };
	k->n++;
}

/* Ascending names: __name__, then those of the table in its sorted order, each there or not. */
static void draw_labels(struct world *w, struct kept *k, bool unique)
{
	static const unsigned sorted[] = { 0, 6, 4, 1, 5, 2, 3 };
	uint32_t job = drawn(w, JOBS + 1);

	k->n = 0;
	k->job = job < JOBS ? (struct job *)(void *)&w->jobs[job] : NULL;
	snprintf(k->texts[0], sizeof(k->texts[0]), "%s%u", k->job ? "p" : "n", drawn(w, 3));
	add_label(k, LABEL_NAME);
	for (size_t i = 0; i < NAMES; i++) {
		const char *name = names[sorted[i]];
		bool always = strcmp(name, "all") == 0;

		if (strcmp(name, "empty") == 0 || (!always && drawn(w, 3) == 0))
			continue;
		snprintf(k->texts[k->n], sizeof(k->texts[0]), "v%u", drawn(w, i == 4 ? 300 : 6));
		add_label(k, name);
	}
	snprintf(k->texts[k->n], sizeof(k->texts[0]), "u%u", unique ? w->n : w->n / 7);
	add_label(k, "zz");
}

static void add_series(struct world *w, unsigned n, bool unique)
{
	struct kept *k;
	struct series *s;
	struct err err;

	while (n-- && w->n < KEPT_MAX) {
		k = &w->kept[w->n];
		draw_labels(w, k, unique);
		REQUIRE_OK(series_add(w->x, labels_of(k), SYM_NONE, k->job, &s, &err), &err);
		series_release(s);
		if (s->id != w->n) /* there was one with the same labels */
			continue;
		k->s = s;
		w->n++;
	}
}

static void remove_series(struct world *w, uint32_t from, uint32_t to, uint32_t one_of)
{
	series_lock_write(w->x);
	for (uint32_t i = from; i < to && i < w->n; i++)
		if (w->kept[i].s && drawn(w, one_of) == 0) {
			series_remove_locked(w->x, w->kept[i].s);
			series_free(w->kept[i].s);
			w->kept[i].s = NULL;
		}
	series_unlock(w->x);
}

/* All of them, in an index of their own, as a start adds them: in pieces, some of them twice. */
static void start_anew(struct world *w)
{
	struct series_stored *v = calloc(w->n + 1, sizeof(*v));
	struct series_index *fresh;
	struct err err;
	size_t n = 0;

	REQUIRE(v != NULL);
	for (uint32_t id = 0; id < w->n; id++)
		if (w->kept[id].s)
			v[n++] = (struct series_stored){ labels_of(&w->kept[id]), w->kept[id].job, id };
	REQUIRE_OK(series_index_open(KEPT_MAX, 0, &fresh, &err), &err);
	for (size_t from = 0, piece; from < n; from += piece / 2 + 1) {
		piece = drawn(w, 100);
		piece = n - from < piece + 1 ? n - from : piece + 1;
		REQUIRE_OK(series_add_stored(fresh, v + from, piece, &err), &err);
	}
	series_lock_read(fresh);
	for (size_t i = 0; i < n; i++) {
		REQUIRE((w->kept[v[i].id].s = series_by_id_locked(fresh, v[i].id)) != NULL);
		CHECK(!atomic_load(&w->kept[v[i].id].s->uses));
	}
	series_unlock(fresh);
	CHECK_INT(series_n(fresh), n);
	series_reserve_ids(fresh, w->n);
	series_index_close(w->x);
	w->x = fresh;
	free(v);
}

/* ---- matching ---- */

static const struct {
	enum match_op op;
	const char *name, *value;
} matchers[] = {
	{ MATCH_EQ, "a", "v1" },
	{ MATCH_EQ, "a", "v99" },
	{ MATCH_EQ, "a", "" },
	{ MATCH_EQ, "all", "v2" },
	{ MATCH_EQ, "empty", "v1" },
	{ MATCH_EQ, "empty", "" },
	{ MATCH_EQ, "pod", "v17" },
	{ MATCH_EQ, "sample_a", "v1" },
	{ MATCH_EQ, "zz", "u5" },
	{ MATCH_EQ, LABEL_NAME, "p1" },
	{ MATCH_EQ, "unheard", "of" },
	{ MATCH_NE, "a", "v1" },
	{ MATCH_NE, "a", "v99" },
	{ MATCH_NE, "a", "" },
	{ MATCH_NE, "empty", "" },
	{ MATCH_NE, "all", "v2" },
	{ MATCH_NE, "sample_a", "" },
	{ MATCH_RE, "a", "v1|v2" },
	{ MATCH_RE, "a", "(v1|v2|v2|nothing)" },
	{ MATCH_RE, "a", "v1|" },
	{ MATCH_RE, "a", "" },
	{ MATCH_RE, "a", ".*" },
	{ MATCH_RE, "a", ".+" },
	{ MATCH_RE, "pod", "v.*7" },
	{ MATCH_RE, "pod", "v1.*" },
	{ MATCH_RE, "pod", "(v1.*)?" },
	{ MATCH_RE, "zz", "u.*3" },
	{ MATCH_RE, "empty", "x.*" },
	{ MATCH_RE, "sample_b", "v.*" },
	{ MATCH_NRE, "a", "v1|v2" },
	{ MATCH_NRE, "a", "v1|" },
	{ MATCH_NRE, "a", ".*" },
	{ MATCH_NRE, "a", ".+" },
	{ MATCH_NRE, "pod", "v.*7" },
	{ MATCH_NRE, "zz", "u.*[37]" },
	{ MATCH_NRE, "unheard", "" },
	{ MATCH_EQ, LABEL_SERVICE, "v1" },
	{ MATCH_EQ, LABEL_SERVICE, "" },
	{ MATCH_NE, LABEL_SERVICE, "v1" },
	{ MATCH_NE, LABEL_SERVICE, "" },
	{ MATCH_RE, LABEL_SERVICE, "v1|v3" },
	{ MATCH_RE, LABEL_SERVICE, "v1|" },
	{ MATCH_RE, LABEL_SERVICE, "v[12]" },
	{ MATCH_RE, LABEL_SERVICE, ".*" },
	{ MATCH_NRE, LABEL_SERVICE, "v1|v3" },
	{ MATCH_NRE, LABEL_SERVICE, "v[12]" },
	{ MATCH_NRE, LABEL_SERVICE, ".+" },
};
#define MATCHERS (sizeof(matchers) / sizeof(matchers[0]))

/* Samples have a label or not, as if by chance, but always the same. */
static bool samples_have(const struct job *job, struct str key)
{
	return job && (hash_bytes(key.ptr, key.len, (uintptr_t)job % 64) & 1);
}

static bool has_key(void *ctx, const struct series *s, struct str key)
{
	(void)ctx;
	return samples_have(s->job, key);
}

/* As series.h says, word by word. */
static bool passes(const struct matcher *m, const struct kept *k, bool keys)
{
	struct labels labels = labels_of(k);
	struct str inner = { m->name.ptr + 7, m->name.len - 7 };

	if (labels_has(labels, m->name))
		return matcher_test(m, labels_get(labels, m->name));
	if (matcher_test(m, STR("")) || !keys)
		return true;
	return samples_have(k->job, m->name) ||
		(str_has_prefix(m->name, STR("sample_")) && labels_has(labels, inner) &&
			samples_have(k->job, inner));
}

static void draw_among(struct world *w, struct bits *out)
{
	uint32_t one_of = drawn(w, 4), end = drawn(w, 3) ? w->n : drawn(w, w->n + 1);

	if (!end)
		return;
	REQUIRE(bits_reserve(out, end - 1));
	for (uint32_t i = 0; i < end; i++)
		if (w->kept[i].s && (!one_of || drawn(w, one_of + 1) == 0))
			bits_set(out, i);
}

static void check_match(struct world *w)
{
	struct bits among = { 0 }, got = { 0 };
	struct matcher m[4] = { 0 };
	size_t n = drawn(w, 5), at[4];
	bool keys = drawn(w, 2);
	struct err err;

	draw_among(w, &among);
	for (size_t i = 0; i < n; i++) {
		at[i] = drawn(w, MATCHERS);
		REQUIRE_OK(matcher_init(&m[i], matchers[at[i]].op, str_of(matchers[at[i]].name),
					   str_of(matchers[at[i]].value), &err),
			&err);
	}
	series_lock_read(w->x);
	CHECK_OK(
		series_match_locked(w->x, m, n, &among, keys ? has_key : NULL, NULL, &got, &err), &err);
	series_unlock(w->x);
	for (uint32_t id = 0; id < w->n + 200; id++) {
		bool want = bits_get(&among, id);

		for (size_t i = 0; i < n && want; i++)
			want = passes(&m[i], &w->kept[id], keys);
		if (want == bits_get(&got, id))
			continue;
		CHECK_FAIL("series %" PRIu32 " of %" PRIu32 " is%s selected", id, w->n, want ? " not" : "");
		for (size_t i = 0; i < n; i++)
			printf("    %s%s\"%s\"\n", matchers[at[i]].name, match_op_name(matchers[at[i]].op),
				matchers[at[i]].value);
		break;
	}
	for (size_t i = 0; i < n; i++)
		matcher_release(&m[i]);
	bits_release(&among);
	bits_release(&got);
}

/* ---- names, values and counts ---- */

struct counting {
	struct world *w;
	const struct bits *among;
	struct str name;
	uint32_t found, of_names;
};

/* How many series have the label; with a value, this value. values: how many. */
static uint32_t count(const struct counting *c, struct str name, struct str value, uint32_t *values)
{
	struct str seen[400];
	uint32_t n = 0, i;

	*values = 0;
	for (uint32_t id = 0; id < c->w->n; id++) {
		struct str has = bits_get(c->among, id) ? labels_get(labels_of(&c->w->kept[id]), name) :
												  (struct str){ 0 };

		if (!has.len || (value.len && !str_eq(has, value)))
			continue;
		n++;
		for (i = 0; i < *values && !str_eq(seen[i], has); i++)
			;
		if (i == *values && i < 400)
			seen[(*values)++] = has;
	}
	return n;
}

static bool check_count(void *ctx, struct str text, uint32_t series, uint32_t values)
{
	struct counting *c = ctx;
	uint32_t want;
	struct str name = c->name.len ? c->name : text, value = c->name.len ? text : (struct str){ 0 };

	c->found++;
	CHECK_INT(series, count(c, name, value, &want));
	if (c->name.len)
		CHECK_INT(values, 0);
	else if (!str_is(text, "zz"))
		CHECK_INT(values, want);
	return true;
}

static bool note_name(void *ctx, struct str name)
{
	struct counting *c = ctx;
	uint32_t values;

	c->of_names++;
	CHECK(count(c, c->name.len ? c->name : name, c->name.len ? name : (struct str){ 0 }, &values));
	return true;
}

static bool note_service(void *ctx, struct str name)
{
	struct buf *all = ctx;

	/* One may come as a service_name and as a job. */
	if (str_find(buf_str(all), name) < 0)
		buf_printf(all, STR_FMT " ", STR_ARG(name));
	return true;
}

static void check_services(struct world *w, const struct bits *among)
{
	struct counting c = { .w = w, .among = among };
	struct buf all = { 0 };
	struct str rest;
	uint32_t values, n = 0;

	series_lock_read(w->x);
	CHECK(series_names_locked(w->x, STR(LABEL_SERVICE), among, note_service, &all));
	series_unlock(w->x);
	for (rest = buf_str(&all); rest.len; rest.ptr += 3, rest.len -= 3, n++)
		CHECK(count(&c, STR(LABEL_SERVICE), (struct str){ rest.ptr, 2 }, &values));
	count(&c, STR(LABEL_SERVICE), (struct str){ 0 }, &values);
	CHECK_INT(n, values);
	buf_release(&all);
}

static void check_counts(struct world *w)
{
	static const char *const of[] = { "", "a", "pod", "all", LABEL_NAME, "unheard" };
	struct bits among = { 0 };
	uint32_t want;

	draw_among(w, &among);
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct counting c = { .w = w, .among = &among, .name = str_of(of[i]) };

		series_lock_read(w->x);
		series_counts_locked(w->x, c.name, &among, check_count, &c);
		CHECK(series_names_locked(w->x, c.name, &among, note_name, &c));
		series_unlock(w->x);
		CHECK_INT(c.of_names, c.found);
		if (c.name.len) {
			count(&c, c.name, (struct str){ 0 }, &want);
			CHECK_INT(c.found, want);
		}
	}
	check_services(w, &among);
	bits_release(&among);
}

/* ---- jobs, kinds, labels that are lacking ---- */

struct jobs_met {
	struct world *w;
	bool met[JOBS + 1];
};

static bool meet_job(void *ctx, struct job *job)
{
	struct jobs_met *j = ctx;
	size_t i = job ? (size_t)((char *)job - j->w->jobs) : JOBS;

	CHECK(!j->met[i]);
	j->met[i] = true;
	return true;
}

static void check_kept(
	struct world *w, const struct bits *among, struct bits *got, bool (*keeps)(const struct kept *))
{
	uint32_t bad = 0;

	for (uint32_t id = 0; id < w->n; id++)
		bad += bits_get(got, id) != (bits_get(among, id) && keeps(&w->kept[id]));
	CHECK_INT(bad, 0);
	bits_release(got);
}

static bool is_number(const struct kept *k)
{
	return !k->job;
}

static bool is_profile(const struct kept *k)
{
	return k->job;
}

static bool lacks_pod(const struct kept *k)
{
	return !labels_has(labels_of(k), STR("pod"));
}

static struct bits copied(const struct bits *b)
{
	struct bits out = { 0 };

	if (b->words && bits_reserve(&out, (uint32_t)(b->words * 64 - 1)))
		memcpy(out.w, b->w, b->words * sizeof(*b->w));
	return out;
}

static void check_jobs(struct world *w)
{
	struct jobs_met j = { .w = w }, want = { .w = w };
	struct bits among = { 0 }, got[4];

	draw_among(w, &among);
	for (size_t i = 0; i < 4; i++)
		got[i] = copied(&among);
	series_lock_read(w->x);
	series_jobs_locked(w->x, &among, meet_job, &j);
	series_keep_kind_locked(w->x, true, &got[0]);
	series_keep_kind_locked(w->x, false, &got[1]);
	series_lacking_locked(w->x, STR("pod"), &got[2]);
	series_drop_job_locked(w->x, NULL, &got[3]);
	series_unlock(w->x);
	for (uint32_t id = 0; id < w->n; id++)
		if (bits_get(&among, id))
			want.met[w->kept[id].job ? (char *)w->kept[id].job - w->jobs : (ptrdiff_t)JOBS] = true;
	CHECK(memcmp(j.met, want.met, sizeof(j.met)) == 0);
	check_kept(w, &among, &got[0], is_number);
	check_kept(w, &among, &got[1], is_profile);
	check_kept(w, &among, &got[2], lacks_pod);
	check_kept(w, &among, &got[3], is_profile);
	bits_release(&among);
}

static void check_all(struct world *w, unsigned matches)
{
	for (unsigned i = 0; i < matches; i++)
		check_match(w);
	for (unsigned i = 0; i < (check_is_short() ? 1 : 3); i++) {
		check_counts(w);
		check_jobs(w);
	}
	for (uint32_t id = 0; id < w->n; id++) {
		struct series *s = series_find(w->x, labels_of(&w->kept[id]));

		CHECK(s == w->kept[id].s || (s && s != w->kept[id].s && s->id > id));
		if (s)
			series_release(s);
	}
}

TEST(matches_are_as_each_series_says)
{
	struct world *w = calloc(1, sizeof(*w));
	struct err err;

	REQUIRE(w != NULL);
	for (uint64_t seed = 1; seed <= (check_is_short() ? 2 : 4); seed++) {
		w->seed = seed * 7919;
		w->n = 0;
		REQUIRE_OK(series_index_open(KEPT_MAX, 0, &w->x, &err), &err);
		check_all(w, 20);
		add_series(w, 40, true);
		check_all(w, 100);
		add_series(w, 2000, seed % 2);
		check_all(w, 200);
		start_anew(w);
		check_all(w, 50);
		remove_series(w, 0, 1500, 2);
		check_all(w, 50);
		start_anew(w);
		check_all(w, 50);
		remove_series(w, 0, 1900, 1); /* names and values are made anew */
		check_all(w, 50);
		add_series(w, 3000, true);
		check_all(w, 100);
		start_anew(w);
		check_all(w, 50);
		remove_series(w, 0, KEPT_MAX, 1);
		check_all(w, 20);
		CHECK_INT(series_n(w->x), 0);
		add_series(w, 10, true);
		check_all(w, 20);
		series_index_close(w->x);
		memset(w->kept, 0, sizeof(w->kept));
	}
	free(w);
}

TEST(stored_series_have_one_meaning)
{
	struct label a[] = { { STR(LABEL_NAME), STR("p") }, { STR("i"), STR("1") } },
		b[] = { { STR(LABEL_NAME), STR("p") }, { STR("i"), STR("2") } },
			c[] = { { STR(LABEL_NAME), STR("p") }, { STR("i"), STR("3") } };
	char job;
	struct job *j = (struct job *)(void *)&job;
	const struct series_stored first[] = { { { a, 2 }, j, 7 }, { { b, 2 }, j, 3 } };
	const struct series_stored other_labels[] = { { { c, 2 }, j, 9 }, { { a, 2 }, j, 3 } };
	const struct series_stored other_kind = { { a, 2 }, NULL, 7 };
	const struct series_stored other_id = { { a, 2 }, j, 8 };
	const struct series_stored one_more = { { b, 1 }, j, 10 };
	struct series_index *x;
	struct err err;

	REQUIRE_OK(series_index_open(3, 0, &x, &err), &err);
	REQUIRE_OK(series_add_stored(x, first, 0, &err), &err);
	REQUIRE_OK(series_add_stored(x, first, 2, &err), &err);
	REQUIRE_OK(series_add_stored(x, first, 2, &err), &err);
	CHECK_INT(series_n(x), 2);
	CHECK_INT(series_next_id(x), 8);
	CHECK_ERR(
		series_add_stored(x, &other_kind, 1, &err), &err, ERR_EXISTS, "series 7 has two meanings");
	CHECK_ERR(
		series_add_stored(x, &other_id, 1, &err), &err, ERR_EXISTS, "series 8 has another id, 7");
	CHECK_ERR(
		series_add_stored(x, other_labels, 2, &err), &err, ERR_EXISTS, "series 3 has two meanings");
	CHECK_INT(series_n(x), 3); /* the one before it was added */
	CHECK_ERR(series_add_stored(x, &one_more, 1, &err), &err, ERR_LIMIT,
		"3 series, limit 3 (--storage.tsdb.max-series)");
	series_index_close(x);
}

/* Of a value that many series share, any may leave: its text stays. */
TEST(values_outlive_the_series_that_named_them_first)
{
	struct label v[] = {
		{ STR(LABEL_NAME), STR("p") }, { STR("i"), { 0 } }, { STR("shared"), STR("text") } };
	struct matcher m = { .op = MATCH_EQ, .name = STR("shared"), .value = STR("text") };
	struct bits all = { 0 }, got = { 0 };
	char text[10][8], job;
	struct series_index *x;
	struct series *s[10];
	struct err err;

	REQUIRE_OK(series_index_open(10, 0, &x, &err), &err);
	REQUIRE(bits_reserve(&all, 9));
	for (unsigned i = 0; i < 10; i++) {
		snprintf(text[i], sizeof(text[i]), "i%u", i);
		v[1].value = str_of(text[i]);
		REQUIRE_OK(series_add(x, (struct labels){ v, 3 }, SYM_NONE, (struct job *)(void *)&job,
					   &s[i], &err),
			&err);
		series_release(s[i]);
		bits_set(&all, i);
	}
	for (unsigned i = 0; i < 9; i++) {
		series_lock_write(x);
		series_remove_locked(x, s[i]);
		series_unlock(x);
		memset(s[i] + 1, '#', s[i]->bytes - sizeof(*s[i])); /* labels and their text */
		series_free(s[i]);
		bits_clear(&all, i);
		REQUIRE_OK(series_match_locked(x, &m, 1, &all, NULL, NULL, &got, &err), &err);
		for (unsigned k = 0; k < 10; k++)
			CHECK_INT(bits_get(&got, k), k > i);
		bits_release(&got);
		CHECK_INT(series_name_kind(x, STR("p")), SERIES_PROFILES);
	}
	bits_release(&all);
	series_index_close(x);
}
