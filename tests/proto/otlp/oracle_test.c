/*
 * Requests drawn by tests/proto/otlp/gen, which prints what the collector's own types decode: the
 * same is decoded here, from protobuf (as of 1.9 and of 1.11) and from JSON. `drawn` has the first
 * of them, since the collector needs a newer Go than Debian's.
 */
#include "tests/oracle.h"
#include "tests/proto/otlp/show.h"

#define DRAWN 16

typedef enum err_code (*decode_fn)(struct arena *a, struct str raw,
	const struct otlp_options *options, struct otlp_request **out, struct err *err);

static uint64_t compare(
	struct arena *a, int seed, struct str body, struct str want, decode_fn decode)
{
	struct buf got = { 0 };
	struct otlp_request *r;
	uint64_t rows = 0;
	char name[64];
	struct err err;

	snprintf(name, sizeof(name), "seed %d, %s", seed, decode == otlp_decode ? "pb" : "json");
	if (decode(a, body, &show_options_drop, &r, &err)) {
		CHECK_FAIL("%s: %s", name, err.msg);
		return 0;
	}
	check_request(r);
	show_request(a, r, &got);
	oracle_check_text(name, buf_str(&got), want);
	for (uint32_t i = 0; i < r->profiles_n; i++)
		rows += r->profiles[i].rows;
	buf_release(&got);
	return rows;
}

TEST(requests_hold_what_the_collector_decodes)
{
	uint64_t rows = 0;

	for (int seed = 1; seed <= DRAWN; seed++) {
		struct str pb, json, want;
		char name[64];
		struct arena a;
		struct err err;

		arena_init(&a, 0);
		snprintf(name, sizeof(name), "drawn/%d.pb", seed);
		REQUIRE_OK(show_read(&a, name, &pb, &err), &err);
		snprintf(name, sizeof(name), "drawn/%d.json", seed);
		REQUIRE_OK(show_read(&a, name, &json, &err), &err);
		snprintf(name, sizeof(name), "drawn/%d.txt", seed);
		REQUIRE_OK(show_read(&a, name, &want, &err), &err);
		rows += compare(&a, seed, pb, want, otlp_decode);
		rows += compare(&a, seed, json, want, otlp_decode_json);
		arena_release(&a);
	}
	CHECK(rows > 500);
}
