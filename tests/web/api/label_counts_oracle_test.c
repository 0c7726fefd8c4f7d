/*
 * Counts of labels over the API against each series visited one by one: over head windows, blocks
 * and both, cut by the times asked for, after deletions and after a restart.
 */
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/map.h"
#include "promql/syntax/parse.h"
#include "tests/check.h"
#include "tests/scratch.h"
#include "tests/tsdb/read/numbers.h"
#include "tests/web/grafana.h"
#include "web/api/label_counts.h"

#define HOURS 7
#define BATCHES 12u
#define BATCH 40u
#define SERIES 150u /* numeric ones to draw from */
#define PROFILES 8u /* of a batch */

static uint64_t seed;

static uint32_t drawn(uint32_t below)
{
	seed = map_hash_u64(seed + 1);
	return (uint32_t)(seed >> 20) % below;
}

/* ---- the server ---- */

static struct db_options options;

static void serve(void)
{
	struct engine_options e = { .timeout_ns = NS_PER_HOUR,
		.lookback_ns = 5 * NS_PER_MIN,
		.concurrency_max = 1,
		.samples_max = 1000000,
		.memory_bytes_max = 256u << 20 };
	struct web_options w = { .listen_address = "127.0.0.1:0", .enable_ingest = true };
	struct err err;

	must(db_open(&options, &grafana.storage.db, &err), &err);
	e.db = w.db = grafana.storage.db;
	db_sink_init(&grafana.storage.sink, w.db);
	w.sink = &grafana.storage.sink.sink;
	must(engine_open(&e, &grafana.storage.engine, &err), &err);
	w.engine = grafana.storage.engine;
	must(web_open(&w, &grafana.web, &err), &err);
	web_set_ready(grafana.web, true);
}

static void serve_end(void)
{
	web_close(grafana.web);
	engine_close(grafana.storage.engine);
	db_close(grafana.storage.db);
}

/* ---- what is stored ---- */

struct texts {
	char host[16], zone[8];
};

static struct labels number_labels(unsigned i, struct texts *t, struct label v[4])
{
	size_t n = 0;

	snprintf(t->host, sizeof(t->host), "h%u", i);
	snprintf(t->zone, sizeof(t->zone), "z%u", i % 6);
	v[n++] = (struct label){ STR(LABEL_NAME), i % 2 ? STR("up") : STR("down") };
	v[n++] = (struct label){ STR("host"), str_of(t->host) };
	if (i % 5)
		v[n++] = (struct label){ STR("zone"), str_of(t->zone) };
	return (struct labels){ v, n };
}

/* Numbers and profiles of one time. */
static void store_batch(int64_t at_s)
{
	struct db_number batch[BATCH];
	struct label v[BATCH][4];
	struct texts texts[BATCH];
	char labels[64];
	struct err err;
	unsigned first = drawn(SERIES);

	for (unsigned i = 0; i < BATCH; i++)
		batch[i] = (struct db_number){ number_labels((first + i * 3) % SERIES, &texts[i], v[i]),
			at_s * NS_PER_S, 1 };
	REQUIRE_OK(numbers_wait(grafana.storage.db, batch, BATCH, &err), &err);
	for (unsigned i = 0; i < PROFILES; i++) {
		snprintf(labels, sizeof(labels), "job=j%u&version=v%u%s", drawn(3), drawn(4),
			drawn(2) ? "&zone=z1" : "");
		grafana_ingest(labels, at_s + 10 + i, drawn(2), 5, 3, "work");
	}
}

static void store(int64_t from_h, int64_t to_h)
{
	for (unsigned i = 0; i < BATCHES; i++)
		store_batch(T0 + from_h * 3600 + (int64_t)i * (to_h - from_h) * 3600 / BATCHES);
}

/* ---- the oracle ---- */

struct visiting {
	struct label_counts counts;
	struct db_querier *q;
	const char *type; /* NULL: any */
	struct arena a;
};

static enum err_code visit(void *ctx, const struct db_series *s, struct err *err)
{
	struct visiting *v = ctx;
	struct profile_type *types;
	size_t n;
	enum err_code rc;
	bool has = !v->type;

	if (!has && (rc = db_series_types(v->q, s, &v->a, &types, &n, err)))
		return rc;
	for (size_t i = 0; !has && i < n; i++)
		has = str_is(types[i].sample_type, v->type);
	return has ? label_counts_add(&v->counts, s->labels, err) : ERR_OK;
}

static const struct {
	const char *param;
	const char *selector[2]; /* without types */
	const char *type;
} asked[] = {
	{ "", { "{}" } },
	{ "&match%5B%5D=up", { "up" } },
	{ "&match%5B%5D=up&match%5B%5D=%7Bzone%3D~%22z.%2B%22%7D", { "up", "{zone=~\"z.+\"}" } },
	{ "&match%5B%5D=%7Bversion%21%3D%22v1%22%2Cjob%3D~%22.%2B%22%7D",
		{ "{version!=\"v1\",job=~\".+\"}" } },
	{ "&match%5B%5D=%7Bhandler%3D%22x%22%7D", { "{handler=\"x\"}" } },
	{ "&match%5B%5D=cpu%3Asamples", { "process_cpu" }, "samples" },
	{ "&match%5B%5D=%7Bzone%3D%22z1%22%7D&match%5B%5D=down", { "{zone=\"z1\"}", "down" } },
};
static const char *const labels[] = { "", "zone", "host", "job", LABEL_NAME, "nothing" };

static void count_all(struct visiting *v, size_t row, int64_t min_ns, int64_t max_ns)
{
	const struct db_visitor visitor = { .take = visit, .ctx = v };
	struct matcher m[8];
	struct parsed *p;
	struct err err;

	v->type = asked[row].type;
	REQUIRE_OK(db_querier_open(grafana.storage.db, min_ns, max_ns, NULL, &v->q, &err), &err);
	for (size_t i = 0; i < 2 && asked[row].selector[i]; i++) {
		struct selector all = { 0 }, *s = &all;
		size_t n = 0;

		p = NULL;
		if (strcmp(asked[row].selector[i], "{}") != 0) {
			REQUIRE_OK(parse_selector(&v->a, str_of(asked[row].selector[i]), &p, NULL, &err), &err);
			s = &p->root->selector;
		}
		if (s->name.len)
			m[n++] = (struct matcher){ .op = MATCH_EQ, .name = STR(LABEL_NAME), .value = s->name };
		for (size_t k = 0; k < s->matchers_n; k++)
			m[n++] = s->matchers[k];
		CHECK_OK(db_visit_series(v->q, DB_PROFILES | DB_NUMBERS, m, n, &visitor, &err), &err);
		parsed_release(p);
	}
	db_querier_close(v->q);
}

static void want_text(struct buf *out, const struct label_counts *c, size_t limit)
{
	buf_printf(out, "{\"status\":\"success\",\"data\":[");
	for (size_t i = 0; i < c->n && (!limit || i < limit); i++) {
		buf_printf(out, "%s{\"%s\":\"" STR_FMT "\",", i ? "," : "", c->label.len ? "value" : "name",
			STR_ARG(c->v[i].text));
		if (!c->label.len)
			buf_printf(out, "\"values\":%" PRIu64 ",", c->v[i].values);
		buf_printf(out, "\"series\":%" PRIu64 "}", c->v[i].series);
	}
	buf_printf(out,
		limit && c->n > limit ? "],\"warnings\":[\"results truncated due to limit\"]}\n" : "]}\n");
}

/* One request; min_s 0: no times. */
static void check(size_t row, const char *label, int64_t min_s, int64_t max_s)
{
	struct visiting v = { .type = NULL };
	struct buf want = { 0 };
	size_t limit = drawn(2) ? 1 + drawn(70) : 0;
	char path[512], times[96] = "";

	if (min_s)
		snprintf(times, sizeof(times), "&start=%" PRId64 "&end=%" PRId64, min_s, max_s);
	arena_init(&v.a, 0);
	label_counts_init(&v.counts, str_of(label), 64u << 20);
	count_all(&v, row, min_s ? min_s * NS_PER_S - 1 : 0, min_s ? max_s * NS_PER_S : INT64_MAX);
	label_counts_end(&v.counts);
	want_text(&want, &v.counts, limit);
	snprintf(path, sizeof(path), "/api/v1/label_counts?label=%s&limit=%zu%s%s", label, limit,
		asked[row].param, times);
	if (!str_eq(grafana_get(path), buf_str(&want)))
		CHECK_FAIL("%s:\n  " STR_FMT "  want\n  " STR_FMT, path, STR_ARG(buf_str(&grafana.r.body)),
			STR_ARG(buf_str(&want)));
	buf_release(&want);
	label_counts_release(&v.counts);
	arena_release(&v.a);
}

static void check_all(void)
{
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
		for (size_t k = 0; k < sizeof(labels) / sizeof(labels[0]); k++) {
			int64_t from = T0 + drawn(HOURS * 3600), to = from + drawn(4 * 3600);

			check(i, labels[k], 0, 0);
			check(i, labels[k], from, to);
			check(i, labels[k], T0 - 10000, to);
			check(i, labels[k], from, T0 + 1000000);
		}
}

TEST(counts_are_those_of_each_series)
{
	struct matcher m = { .op = MATCH_EQ, .name = STR("zone"), .value = STR("z1") };
	struct db_status status;
	struct err err;

	memset(&grafana, 0, sizeof(grafana));
	seed = 20;
	snprintf(grafana.storage.dir, sizeof(grafana.storage.dir), SCRATCH "epi-counts-XXXXXX");
	REQUIRE(scratch_dir(grafana.storage.dir) != NULL);
	db_options_default(&options);
	options.dir = grafana.storage.dir;
	options.retention_ns = 0;
	serve();
	store(0, 5);
	check_all();
	serve_end(); /* windows, of whose rows nothing is known but that they are there */
	serve();
	check_all();
	REQUIRE_OK(db_delete_series(
				   grafana.storage.db, &m, 1, (T0 + 1800) * NS_PER_S, (T0 + 9000) * NS_PER_S, &err),
		&err);
	check_all();
	REQUIRE_OK(db_compact(grafana.storage.db, &err), &err); /* blocks */
	check_all();
	store(4, HOURS); /* and windows, which have some of the same series */
	db_status(grafana.storage.db, &status);
	CHECK(status.windows > 1 && status.blocks > 0);
	check_all();
	REQUIRE_OK(db_delete_series(grafana.storage.db, &m, 1, (T0 + 4 * 3600) * NS_PER_S,
				   (T0 + HOURS * 3600) * NS_PER_S, &err),
		&err);
	check_all();
	serve_end();
	must(fs_remove_tree(&fs_posix, grafana.storage.dir, &err), &err);
	response_release(&grafana.r);
}
