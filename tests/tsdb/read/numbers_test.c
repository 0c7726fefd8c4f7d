#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/map.h"
#include "tests/check.h"
#include "tests/tsdb/fixture.h"
#include "tests/tsdb/read/numbers.h"
#include "tsdb/block/block.h"
#include "tsdb/columns/number_chunk.h"

/* ---- chunks ---- */

static uint64_t random_next(uint64_t *state)
{
	*state = map_hash_u64(*state + UINT64_C(0x9e3779b97f4a7c15));
	return *state;
}

enum values {
	ALL_ONE,
	UP_AND_DOWN,
	WITH_STALE,
	DURATIONS, /* whole microseconds */
	COUNTS,
	COSTS, /* any bits */
	ODD, /* what breaks codings */
	VALUES,
};

static double value_of(enum values kind, uint64_t *seed, uint32_t i)
{
	static const double odd[] = { 0.0, -0.0, INFINITY, -INFINITY, 5e-324, 1.7976931348623157e308,
		9007199254740993.0, -9007199254740992.0, 0.1, 1e-9, 123456789.123456789 };
	uint64_t r = random_next(seed);

	switch (kind) {
	case ALL_ONE:
		return 1;
	case UP_AND_DOWN:
		return r % 50 > 0;
	case WITH_STALE:
		return i % 40 == 39 ? number_of_bits(NUMBER_STALE_BITS) : 1;
	case DURATIONS:
		return (double)(20000 + r % 6000) / 1e6;
	case COUNTS:
		return (double)(1000 + r % 30);
	case COSTS:
		return 1e9 * (1 + (double)(r >> 11) / 9007199254740992.0 / 10);
	case ODD:
		return r % 5 ? odd[r % (sizeof(odd) / sizeof(odd[0]))] : number_of_bits(r);
	case VALUES:
		break;
	}
	return 0;
}

TEST(chunks_keep_every_bit)
{
	static const uint32_t sizes[] = { 1, 2, 3, 17, 1000, NUMBER_CHUNK_MAX };
	struct number_chunk *in = calloc(1, sizeof(*in)), *out = calloc(1, sizeof(*out));
	uint64_t seed = 7;
	struct buf b = { 0 };
	struct err err;

	for (int kind = 0; kind < VALUES; kind++)
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
			for (int jitter = 0; jitter < 3; jitter++) {
				int64_t ts = 1700000000 * SEC;

				in->n = sizes[s];
				for (uint32_t i = 0; i < in->n; i++) {
					in->ts[i] = ts;
					in->values[i] = value_of((enum values)kind, &seed, i);
					ts += 10 * SEC +
						(jitter == 0        ? 0 :
								jitter == 1 ? (int64_t)(random_next(&seed) % 5) * 1000000 :
											  (int64_t)(random_next(&seed) % SEC));
				}
				buf_clear(&b);
				REQUIRE_OK(number_chunk_encode(in, &b, &err), &err);
				REQUIRE_OK(number_chunk_decode(buf_str(&b), out, &err), &err);
				REQUIRE(out->n == in->n);
				CHECK(memcmp(out->ts, in->ts, in->n * sizeof(*in->ts)) == 0);
				CHECK(memcmp(out->values, in->values, in->n * sizeof(*in->values)) == 0);
				if (jitter == 1 && in->n == 1000 && getenv("NUMBERS_SIZES"))
					fprintf(stderr, "values %d: %.2f bytes each\n", kind, (double)b.len / 1000);
			}
	buf_release(&b);
	free(in);
	free(out);
}

TEST(damaged_chunks_are_refused)
{
	struct number_chunk *in = calloc(1, sizeof(*in)), *out = calloc(1, sizeof(*out));
	struct buf b = { 0 };
	struct err err;
	enum err_code rc;

	in->n = 50;
	for (uint32_t i = 0; i < in->n; i++) {
		in->ts[i] = 1000 * SEC + i * 10 * SEC;
		in->values[i] = i * 0.37;
	}
	REQUIRE_OK(number_chunk_encode(in, &b, &err), &err);
	for (size_t n = 0; n < b.len; n++) {
		rc = number_chunk_decode((struct str){ b.ptr, n }, out, &err);
		CHECK_INT(rc, ERR_CORRUPT);
	}
	for (size_t i = 0; i < b.len * 8; i++) { /* no bit may do harm */
		b.ptr[i / 8] ^= (char)(1 << i % 8);
		(void)!number_chunk_decode(buf_str(&b), out, &err);
		b.ptr[i / 8] ^= (char)(1 << i % 8);
	}
	buf_release(&b);
	free(in);
	free(out);
}

/* ---- through the database ---- */

static void check_numbers(struct fixture *f, int64_t min_s, int64_t max_s, const char *want)
{
	struct buf got = { 0 };

	CHECK(numbers_text(f->db, min_s * SEC, max_s * SEC, &got, &f->err));
	CHECK_STR(buf_str(&got), want);
	buf_release(&got);
}

static enum err_code append_one(struct fixture *f, struct labels l, int64_t ts_s, double v)
{
	struct db_number n = { l, ts_s * SEC, v };

	return numbers_wait(f->db, &n, 1, &f->err);
}

/* Windows of an hour; in the first a profile of cpu and a number of up. */
static bool open_with_both(struct fixture *f, int64_t raw_retention_ns)
{
	static const char *const one_type[] = { "samples/count", NULL };
	const struct pprof *p;

	if (!fixture_open(f))
		return false;
	f->o.window_ns = 3600 * SEC;
	f->o.raw_retention_ns = raw_retention_ns;
	if (!fixture_reopen(f))
		return false;
	p = profile_of(&f->arena, one_type, (const char *const[]){ "main 2", NULL });
	CHECK_OK(append_wait(f->db, labels_of(&f->arena, "cpu", "x", "a"), 1000 * SEC, 10 * SEC, p,
				 NULL, true, NULL, &f->err),
		&f->err);
	CHECK_OK(append_one(f, labels_of(&f->arena, "up", "x", "a"), 1000, 1), &f->err);
	return check_failures == 0;
}

TEST(numbers_read_back_through_restart_and_cut)
{
	static const char *const all = "ALERTS 3000=1 4000=stale\n"
								   "up{instance=\"a\", job=\"x\"} 1000=1 1010=0\n"
								   "up{instance=\"b\", job=\"x\"} 1000=0.25\n";
	struct db_number batch[5];
	struct fixture f;

	REQUIRE(fixture_open(&f));
	batch[0] = (struct db_number){ labels_of(&f.arena, "up", "x", "a"), 1000 * SEC, 1 };
	batch[1] = (struct db_number){ labels_of(&f.arena, "up", "x", "b"), 1000 * SEC, 0.25 };
	batch[2] = (struct db_number){ labels_of(&f.arena, "up", "x", "a"), 1010 * SEC, 0 };
	batch[3] = (struct db_number){ labels_of(&f.arena, "ALERTS", "", ""), 3000 * SEC, 1 };
	batch[4] = (struct db_number){ labels_of(&f.arena, "ALERTS", "", ""), 4000 * SEC,
		number_of_bits(NUMBER_STALE_BITS) };
	f.o.window_ns = 3600 * SEC;
	REQUIRE(fixture_reopen(&f));
	REQUIRE_OK(numbers_wait(f.db, batch, 5, &f.err), &f.err); /* two windows */
	check_numbers(&f, 0, 10000, all);
	check_numbers(&f, 1000, 3000,
		"ALERTS 3000=1\n"
		"up{instance=\"a\", job=\"x\"} 1010=0\n");
	REQUIRE(fixture_reopen(&f));
	check_numbers(&f, 0, 10000, all);
	/* the same again is nothing new, another is refused */
	CHECK_INT(append_one(&f, batch[1].labels, 1000, 0.5), ERR_EXISTS);
	REQUIRE_OK(append_one(&f, batch[1].labels, 1000, 0.25), &f.err);
	REQUIRE_OK(append_one(&f, batch[3].labels, 400000, 7), &f.err);
	REQUIRE_OK(db_compact(f.db, &f.err), &f.err);
	check_numbers(&f, 0, 10000, all);
	REQUIRE(fixture_reopen(&f));
	check_numbers(&f, 0, 10000, all);
	check_numbers(&f, 1000, 3000,
		"ALERTS 3000=1\n"
		"up{instance=\"a\", job=\"x\"} 1010=0\n");
	fixture_close(&f);
}

TEST(numbers_are_refused_with_a_reason)
{
	struct labels nameless = { 0 };
	struct fixture f;

	REQUIRE(fixture_open(&f));
	f.o.window_ns = 3600 * SEC;
	f.o.series_max = 2;
	REQUIRE(fixture_reopen(&f));
	CHECK_ERR(
		append_one(&f, nameless, 1000, 1), &f.err, ERR_INVALID, "a value needs the label __name__");
	CHECK_ERR(append_one(&f, labels_of(&f.arena, "up", "", ""), 0, 1), &f.err, ERR_INVALID,
		"a value needs a time after 1970");
	REQUIRE_OK(append_one(&f, labels_of(&f.arena, "up", "", ""), 400000, 1), &f.err);
	CHECK_ERR(append_one(&f, labels_of(&f.arena, "up", "", ""), 1000, 1), &f.err, ERR_INVALID,
		"value of 1970-01-01T00:16:40.000Z is too old: values after 1970-01-05T14:00:00.000Z "
		"are accepted");
	REQUIRE_OK(append_one(&f, labels_of(&f.arena, "up", "a", ""), 400000, 1), &f.err);
	CHECK_ERR(append_one(&f, labels_of(&f.arena, "up", "b", ""), 400000, 1), &f.err, ERR_LIMIT,
		"2 series, limit 2 (--storage.tsdb.max-series)");
	fixture_close(&f);
}

TEST(raw_retention_keeps_numbers)
{
	struct fixture f;

	REQUIRE(open_with_both(&f, 3600 * SEC));
	REQUIRE_OK(append_one(&f, labels_of(&f.arena, "up", "x", "a"), 100000, 1), &f.err);
	REQUIRE_OK(db_compact(f.db, &f.err), &f.err);
	fixture_maintain(&f);
	check_numbers(&f, 0, 20000, "up{instance=\"a\", job=\"x\"} 1000=1\n");
	REQUIRE(fixture_reopen(&f));
	check_numbers(&f, 0, 20000, "up{instance=\"a\", job=\"x\"} 1000=1\n");
	fixture_close(&f);
}

/* ---- against a model ---- */

#define MODEL_SERIES 12
#define MODEL_SLOTS 4000 /* of 10 s */

struct model_numbers {
	struct fixture f;
	struct labels labels[MODEL_SERIES];
	struct {
		bool there, deleted; /* what comes late into a deleted range is refused */
		double value;
	} at[MODEL_SERIES][MODEL_SLOTS];
	uint64_t seed;
	uint32_t now, newest; /* slots */
};

/* A batch with one value more, that is of a time that has another: nothing of it is taken. */
static void model_refused(struct model_numbers *m, struct db_number *v, uint32_t n)
{
	uint32_t at = (uint32_t)(random_next(&m->seed) % n);

	v[n] = v[at];
	v[n].value = number_of_bits(number_bits(v[at].value) ^ 1);
	CHECK_INT(numbers_wait(m->f.db, v, n + 1, &m->f.err), ERR_EXISTS);
}

static void model_append(struct model_numbers *m)
{
	uint32_t draws = 1 + (uint32_t)(random_next(&m->seed) % 60), n = 0;
	struct db_number v[64];

	for (uint32_t i = 0; i < draws; i++) {
		uint32_t s = (uint32_t)(random_next(&m->seed) % MODEL_SERIES),
				 back = (uint32_t)(random_next(&m->seed) % 20), slot = m->now;

		slot -= back < slot ? back : 0;
		if (m->at[s][slot].deleted || m->at[s][slot].there)
			continue;
		v[n] = (struct db_number){ m->labels[s], (slot + 1) * 10 * SEC,
			value_of((enum values)(s % VALUES), &m->seed, i) };
		m->at[s][slot].there = true;
		m->at[s][slot].value = v[n++].value;
		m->newest = slot > m->newest ? slot : m->newest;
	}
	if (n && random_next(&m->seed) % 2)
		model_refused(m, v, n);
	CHECK_OK(numbers_wait(m->f.db, v, n, &m->f.err), &m->f.err);
	if (n && random_next(&m->seed) % 2)
		model_refused(m, v, n);
	if (random_next(&m->seed) % 4 == 0)
		CHECK_OK(numbers_wait(m->f.db, v, n, &m->f.err), &m->f.err);
	m->now += (uint32_t)(random_next(&m->seed) % 30);
}

static void model_delete(struct model_numbers *m)
{
	uint32_t s = (uint32_t)(random_next(&m->seed) % MODEL_SERIES),
			 from = (uint32_t)(random_next(&m->seed) % (m->now + 1)),
			 to = from + (uint32_t)(random_next(&m->seed) % 200);
	struct matcher t[2] = { { .op = MATCH_EQ,
		.name = STR(LABEL_NAME), .value = labels_get(m->labels[s], STR(LABEL_NAME)) },
		{ .op = MATCH_EQ, .name = STR("job"), .value = labels_get(m->labels[s], STR("job")) } };

	CHECK_OK(db_delete_series(m->f.db, t, 2, (from + 1) * 10 * SEC, (to + 1) * 10 * SEC, &m->f.err),
		&m->f.err);
	for (uint32_t i = from + 1; i <= to && i <= m->newest; i++) {
		m->at[s][i].there = false;
		m->at[s][i].deleted = true;
	}
}

static void model_check(struct model_numbers *m)
{
	uint32_t from = (uint32_t)(random_next(&m->seed) % (m->now + 1)), seen[MODEL_SERIES] = { 0 };
	int64_t min = random_next(&m->seed) % 2 ? 0 : from * 10 * SEC,
			max = random_next(&m->seed) % 2 ? INT64_MAX : min + 500 * 10 * SEC;
	struct arena *a = &m->f.arena;
	struct db_querier *q;
	struct db_series *v;
	size_t n, warnings;

	REQUIRE_OK(db_querier_open(m->f.db, min, max, NULL, &q, &m->f.err), &m->f.err);
	REQUIRE_OK(db_select_kinds(q, DB_NUMBERS, NULL, 0, a, &v, &n, &m->f.err), &m->f.err);
	for (size_t i = 0; i < n; i++) {
		int64_t *ts;
		double *values;
		size_t k = 0, s = 0, got;

		while (!labels_eq(m->labels[s], v[i].labels))
			s++;
		CHECK(v[i].numeric && !seen[s]);
		seen[s] = 1;
		REQUIRE_OK(db_numbers(q, &v[i], min, max, a, &ts, &values, &got, &m->f.err), &m->f.err);
		CHECK(got > 0);
		for (uint32_t slot = 0; slot < MODEL_SLOTS; slot++) {
			int64_t t = (slot + 1) * 10 * SEC;

			if (!m->at[s][slot].there || t <= min || t > max)
				continue;
			if (k >= got || ts[k] != t ||
				number_bits(values[k]) != number_bits(m->at[s][slot].value))
				REQUIRE(!"the series is wrong");
			k++;
		}
		CHECK_INT(k, got);
	}
	for (size_t s = 0; s < MODEL_SERIES; s++)
		for (uint32_t slot = 0; slot < MODEL_SLOTS && !seen[s]; slot++)
			CHECK(!m->at[s][slot].there || (slot + 1) * 10 * SEC <= min ||
				(slot + 1) * 10 * SEC > max);
	db_querier_warnings(q, &warnings);
	CHECK_INT(warnings, 0);
	db_querier_close(q);
}

static void verify_blocks(struct fixture *f)
{
	struct db_block_status *v;
	struct store_cache *cache = store_cache_open(1 << 20);
	size_t n;

	REQUIRE_OK(db_list(f->db, &f->arena, &v, &n, &f->err), &f->err);
	for (size_t i = 0; i < n; i++) {
		struct block *b;
		char path[200];

		if (!v[i].ulid[0])
			continue;
		snprintf(path, sizeof(path), "%s/blocks/%s", f->dir, v[i].ulid);
		REQUIRE_OK(block_open(path, NULL, cache, &b, NULL, &f->err), &f->err);
		CHECK_OK(block_verify(b, NULL, NULL, &f->err), &f->err);
		block_close(b);
	}
	store_cache_close(cache);
}

TEST(random_numbers_are_what_a_model_says)
{
	struct model_numbers *m = calloc(1, sizeof(*m));
	static const char *const one_type[] = { "samples/count", NULL };
	struct pprof *p;

	for (uint64_t seed = 1; seed <= 3; seed++) {
		memset(m, 0, sizeof(*m));
		m->seed = seed;
		REQUIRE(fixture_open(&m->f));
		m->f.o.window_ns = 1200 * SEC;
		m->f.o.retention_ns = 0;
		m->f.o.too_old_ns = 600 * SEC;
		m->f.o.block_max_ns = 12000 * SEC;
		REQUIRE(fixture_reopen(&m->f));
		for (size_t s = 0; s < MODEL_SERIES; s++)
			m->labels[s] = labels_of(&m->f.arena, s % 2 ? "up" : "recorded",
				(const char *[]){ "a", "b", "c", "d", "e", "f" }[s / 2], "");
		p = profile_of(&m->f.arena, one_type, (const char *const[]){ "main;f 2", NULL });
		while (m->now + 40 < MODEL_SLOTS) {
			model_append(m);
			if (random_next(&m->seed) % 4 == 0)
				CHECK_OK(append_wait(m->f.db, labels_of(&m->f.arena, "cpu", "a", "x"),
							 (m->newest + 1) * 10 * SEC, 10 * SEC, p, NULL, false, NULL, &m->f.err),
					&m->f.err);
			if (random_next(&m->seed) % 20 == 0)
				model_delete(m);
			if (random_next(&m->seed) % 30 == 0)
				REQUIRE_OK(db_compact(m->f.db, &m->f.err), &m->f.err);
			if (random_next(&m->seed) % 30 == 0)
				REQUIRE(fixture_reopen(&m->f));
			if (random_next(&m->seed) % 10 == 0)
				model_check(m);
		}
		REQUIRE_OK(db_compact(m->f.db, &m->f.err), &m->f.err);
		model_check(m);
		verify_blocks(&m->f);
		fixture_close(&m->f);
	}
	free(m);
}
