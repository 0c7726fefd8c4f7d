#include "proto/pprof.h"
#include "tests/check.h"
#include "tests/proto/corpus.h"
#include "tests/proto/profile_compare.h"
#include "tests/proto/testdata.h"

/* Decoding and encoding twice gives the same profile, then the same bytes. */
static void round_trip(const char *name, struct str raw, bool compare)
{
	struct buf once = { 0 }, again = { 0 }, why = { 0 };
	struct pprof *p, *q;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(pprof_decode(&a, raw, &pprof_limits_default, &p, &err), &err);
	REQUIRE_OK(pprof_encode(p, &once, &err), &err);
	REQUIRE_OK(pprof_decode(&a, buf_str(&once), &pprof_limits_default, &q, &err), &err);
	REQUIRE_OK(pprof_encode(q, &again, &err), &err);
	if (!str_eq(buf_str(&once), buf_str(&again)))
		CHECK_FAIL("%s: encoded twice, it differs", name);
	if (compare && !profile_equal(raw, buf_str(&once), &why))
		CHECK_FAIL("%s: " STR_FMT, name, STR_ARG(buf_str(&why)));
	CHECK(q->samples_n == p->samples_n && q->locations_n == p->locations_n);
	CHECK(q->lines_n == p->lines_n && q->functions_n == p->functions_n);
	CHECK(q->mappings_n == p->mappings_n && q->strings_n == p->strings_n);
	CHECK(q->labels_n == p->labels_n && q->comments_n == p->comments_n);
	buf_release(&once);
	buf_release(&again);
	buf_release(&why);
	arena_release(&a);
}

TEST(real_profiles)
{
	for (size_t i = 0; i < testdata_n; i++) {
		struct arena a;
		struct err err;
		struct str raw;

		arena_init(&a, 0);
		REQUIRE_OK(testdata_inflated(&a, testdata[i], &raw, &err), &err);
		round_trip(testdata[i], raw, true);
		arena_release(&a);
	}
}

/*
 * protobuf-c treats tags of more than 32 bits differently and joins a message that is given
 * twice. These rows are not compared with it.
 */
TEST(hand_made_profiles)
{
	for (size_t i = 0; i < corpus_n; i++)
		if (!corpus[i].message)
			round_trip(corpus[i].name, corpus[i].body,
				strncmp(corpus[i].name, "field ", 6) &&
					strcmp(corpus[i].name, "period_type twice") != 0);
}

/* A string with a NUL inside is not cut. */
TEST(any_byte_in_a_string)
{
	struct pprof_builder *b;
	struct pprof *p, *q;
	struct buf raw = { 0 };
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(pprof_builder_open(&a, &b, &err), &err);
	pprof_builder_comment(b,
		(struct str){ "a\0\xff"
					  "b",
			4 });
	REQUIRE_OK(pprof_builder_finish(b, &p, &err), &err);
	REQUIRE_OK(pprof_encode(p, &raw, &err), &err);
	REQUIRE_OK(pprof_decode(&a, buf_str(&raw), &pprof_limits_default, &q, &err), &err);
	CHECK(str_eq(q->strings[q->comments[0]],
		(struct str){ "a\0\xff"
					  "b",
			4 }));
	buf_release(&raw);
	arena_release(&a);
}
