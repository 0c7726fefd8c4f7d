/*
 * Requests drawn by tests/proto/otlp/gen, which prints what the collector's own types decode: the
 * same is decoded here, from protobuf (as of 1.9 and of 1.11) and from JSON.
 */
#include "tests/oracle.h"
#include "tests/proto/otlp/show.h"

#define SEEDS 150

static const struct str dropped[] = { { "thread.id", 9 }, { "cpu.logical_number", 18 } };
static const struct otlp_options options = { &otlp_limits_default, dropped, 2 };

typedef enum err_code (*decode_fn)(struct arena *a, struct str raw,
	const struct otlp_options *options, struct otlp_request **out, struct err *err);

static uint64_t compare(const char *dir, int seed, const char *suffix, decode_fn decode)
{
	struct buf body = { 0 }, want = { 0 }, got = { 0 };
	struct otlp_request *r;
	char name[64];
	uint64_t rows = 0;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	snprintf(name, sizeof(name), "%d.%s", seed, suffix);
	oracle_read(&body, dir, name);
	snprintf(name, sizeof(name), "%d.txt", seed);
	oracle_read(&want, dir, name);
	if (decode(&a, buf_str(&body), &options, &r, &err)) {
		CHECK_FAIL("seed %d, %s: %s", seed, suffix, err.msg);
	} else {
		check_request(r);
		show_request(&a, r, &got);
		snprintf(name, sizeof(name), "seed %d, %s", seed, suffix);
		oracle_check_text(name, buf_str(&got), buf_str(&want));
		for (uint32_t i = 0; i < r->profiles_n; i++)
			rows += r->profiles[i].rows;
	}
	arena_release(&a);
	buf_release(&body);
	buf_release(&want);
	buf_release(&got);
	return rows;
}

TEST(requests_hold_what_the_collector_decodes)
{
	const char *dir = oracle_dir();
	struct buf out = { 0 };
	uint64_t rows = 0;

	REQUIRE(dir);
	REQUIRE(oracle_run(&out, "cd tests/proto/otlp/gen && go run . '%s' 1 %d 2>&1", dir, SEEDS));
	for (int seed = 1; seed <= SEEDS; seed++) {
		rows += compare(dir, seed, "pb", otlp_decode);
		rows += compare(dir, seed, "json", otlp_decode_json);
	}
	CHECK(rows > 5000);
	buf_release(&out);
}
