/*
 * A parser of protobuf takes repeated numbers packed, one by one, and mixed. Each drawn request,
 * of either numbering of samples, is written anew in the other ways and must hold the same.
 */
#include "proto/wire.h"
#include "tests/check.h"
#include "tests/oracle.h"
#include "tests/proto/otlp/show.h"

#define DRAWN 16

enum form { SINGLE, MIXED, FORMS };

/* Messages and lists of numbers by their path, the numbers of the fields in a row. */
static const char *const messages[] = { "/1", "/1/2", "/1/2/2", "/1/2/2/2", "/2", "/2/1", "/2/2",
	"/2/7", NULL };
static const char *const lists[] = { "/1/2/2/2/2", "/1/2/2/2/3", "/1/2/2/2/4", "/1/2/2/11",
	"/2/1/5", "/2/2/4", "/2/7/1", NULL };
static const char times[] = "/1/2/2/2/5";

static bool is_one_of(const char *path, const char *const *of)
{
	while (*of && strcmp(path, *of))
		of++;
	return *of != NULL;
}

/* Where the next number of a list ends. */
static wire_pos number_end(wire_pos at, wire_pos end, bool fixed)
{
	uint64_t ignored;

	return fixed ? at + 8 : wire_varint(at, end, &ignored);
}

/* MIXED: the first half stays packed. */
static void put_list(
	struct buf *out, unsigned number, wire_pos at, wire_pos end, bool fixed, enum form form)
{
	wire_pos half = at;

	if (form == MIXED) {
		while (half - at < (end - at) / 2)
			half = number_end(half, end, fixed);
		buf_add_varint(out, WIRE_TAG(number, WIRE_BYTES));
		buf_add_lenstr(out, (struct str){ (const char *)at, (size_t)(half - at) });
	}
	while (half < end) {
		wire_pos next = number_end(half, end, fixed);

		buf_add_varint(out, WIRE_TAG(number, fixed ? WIRE_FIXED64 : WIRE_VARINT));
		buf_add(out, (const char *)half, (size_t)(next - half));
		half = next;
	}
}

static void put_anew(struct buf *out, struct str message, const char *path, enum form form)
{
	wire_pos at = (wire_pos)message.ptr, end = at + message.len;

	while (at < end) {
		wire_pos begin = at, value;
		char inner[64];
		uint64_t tag;
		size_t len;

		value = wire_varint(at, end, &tag);
		at = wire_skip(tag, value, end);
		snprintf(inner, sizeof(inner), "%s/%d", path, (int)(tag >> 3));
		if ((tag & 7) == WIRE_BYTES)
			value = wire_bytes(value, end, &len);
		if ((tag & 7) != WIRE_BYTES) {
			buf_add(out, (const char *)begin, (size_t)(at - begin));
		} else if (is_one_of(inner, messages)) {
			struct buf b = { 0 };

			put_anew(&b, (struct str){ (const char *)value, len }, inner, form);
			buf_add_varint(out, tag);
			buf_add_lenstr(out, buf_str(&b));
			buf_release(&b);
		} else if (is_one_of(inner, lists) || !strcmp(inner, times)) {
			put_list(out, (unsigned)(tag >> 3), value, at, !strcmp(inner, times), form);
		} else {
			buf_add(out, (const char *)begin, (size_t)(at - begin));
		}
	}
}

static void check_forms(struct arena *a, int seed, struct str pb, struct str want)
{
	for (int form = 0; form < FORMS; form++) {
		struct buf body = { 0 }, got = { 0 };
		struct otlp_request *r;
		char name[64];
		struct err err;

		snprintf(name, sizeof(name), "seed %d, %s", seed, form == SINGLE ? "single" : "mixed");
		put_anew(&body, pb, "", (enum form)form);
		CHECK(body.len > pb.len);
		if (otlp_decode(a, buf_str(&body), &show_options_drop, &r, &err)) {
			CHECK_FAIL("%s: %s", name, err.msg);
		} else {
			check_request(r);
			show_request(a, r, &got);
			oracle_check_text(name, buf_str(&got), want);
		}
		buf_release(&body);
		buf_release(&got);
	}
}

TEST(repeated_numbers_may_be_packed_or_not)
{
	for (int seed = 1; seed <= DRAWN; seed++) {
		struct str pb, want;
		char name[64];
		struct arena a;
		struct err err;

		arena_init(&a, 0);
		snprintf(name, sizeof(name), "drawn/%d.pb", seed);
		REQUIRE_OK(show_read(&a, name, &pb, &err), &err);
		snprintf(name, sizeof(name), "drawn/%d.txt", seed);
		REQUIRE_OK(show_read(&a, name, &want, &err), &err);
		check_forms(&a, seed, pb, want);
		arena_release(&a);
	}
}
