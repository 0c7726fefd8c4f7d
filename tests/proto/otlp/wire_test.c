/*
 * The protobuf form, byte by byte: numbering of samples, earlier releases, odd but legal ways to
 * write, damage.
 */
#include "base/fs.h"
#include "tests/check.h"
#include "tests/proto/otlp/show.h"

#define VARINT(n) ((n) << 3)
#define FIXED(n) ((n) << 3 | 1)
#define BYTES(n) ((n) << 3 | 2)

/* One message in another; the inner one is empty then. */
static void put(struct buf *out, unsigned number, struct buf *inner)
{
	buf_add_varint(out, BYTES(number));
	buf_add_lenstr(out, buf_str(inner));
	buf_clear(inner);
}

static void put_str(struct buf *out, unsigned number, const char *s)
{
	buf_add_varint(out, BYTES(number));
	buf_add_lenstr(out, str_of(s));
}

#define PUT_RAW(out, lit) buf_add((out), (lit), sizeof(lit) - 1)

/* Attributes 1 and 2, thread=a and thread=b; link 1; stack 1 of an address. */
static void put_dictionary(struct buf *request)
{
	static const char *const strings[] = { "", "samples", "count", "thread", "note" };
	struct buf d = { 0 };

	for (size_t i = 0; i < 5; i++)
		put_str(&d, 5, strings[i]);
	PUT_RAW(&d, "\x32\x00"); /* attributes */
	PUT_RAW(&d,
		"\x32\x07\x08\x03\x12\x03\x0a\x01"
		"a");
	PUT_RAW(&d,
		"\x32\x07\x08\x03\x12\x03\x0a\x01"
		"b");
	PUT_RAW(&d, "\x22\x00"); /* links */
	PUT_RAW(&d, "\x22\x0a\x12\x08SPANSPAN");
	PUT_RAW(&d, "\x12\x00\x12\x02\x10\x2a"); /* locations */
	PUT_RAW(&d, "\x3a\x00\x3a\x03\x0a\x01\x01"); /* stacks */
	put(request, 2, &d);
	buf_release(&d);
}

/* A request of one profile: its fields behind the sample type, samples among them. */
static void put_request(struct buf *request, struct str fields)
{
	struct buf profile = { 0 }, scope = { 0 }, resource = { 0 };

	PUT_RAW(&profile, "\x0a\x04\x08\x01\x10\x02");
	buf_add_str(&profile, fields);
	put(&scope, 2, &profile);
	put(&resource, 2, &scope);
	put(request, 1, &resource);
	put_dictionary(request);
	buf_release(&profile);
	buf_release(&scope);
	buf_release(&resource);
}

#define FIELDS(lit) \
	{ \
		lit, sizeof(lit) - 1 \
	}
#define TIME "\1\0\0\0\0\0\0\0"
#define HEAD "profile of   samples/count per 0 / at 0 for 0 rows "
#define NO_TIMES " times 0 from 0 to 0"
#define LINK " 00000000000000000000000000000000/5350414e5350414e"
#define NO_ID " id 00000000000000000000000000000000\n"

/* clang-format off */
static const struct {
	struct str fields;
	const char *want; /* the profile's text, or its error */
} cases[] = {
	/* 1.10: {1 stack, 2 attributes, 3 link, 4 values, 5 times} */
	{ FIELDS("\x12\x0a\x08\x01\x12\x01\x01\x18\x01\x22\x01\x07"),
		HEAD "1" NO_TIMES NO_ID " 7 {thread=\"a\"}" LINK " | 2a\n" },
	/* 1.9: {1 stack, 2 values, 3 attributes, 4 link, 5 times} */
	{ FIELDS("\x12\x0a\x08\x01\x12\x01\x07\x1a\x01\x01\x20\x01"),
		HEAD "1" NO_TIMES NO_ID " 7 {thread=\"a\"}" LINK " | 2a\n" },
	/* one sample that tells is enough, also if it is not the first */
	{ FIELDS("\x12\x03\x12\x01\x01\x12\x05\x12\x01\x02\x20\x01"),
		HEAD "2" NO_TIMES NO_ID " 1 {}\n 2 {}" LINK "\n" },
	/* fields 2 and 5 only: as many attributes as times do not tell, another number does */
	{ FIELDS("\x12\x0d\x12\x01\x02\x2a\x08" TIME),
		HEAD "1 times 1 from 1 to 1" NO_ID " 1 {thread=\"b\"}\n" },
	{ FIELDS("\x12\x0e\x12\x02\x01\x02\x2a\x08" TIME),
		HEAD "1 times 1 from 1 to 1" NO_ID " 1 {thread=\"a\", thread=\"b\"}\n" },
	/* values alone, or values that are no attributes: 1.9 */
	{ FIELDS("\x12\x03\x12\x01\x02"), HEAD "1" NO_TIMES NO_ID " 2 {}\n" },
	{ FIELDS("\x12\x0d\x12\x01\x03\x2a\x08" TIME), HEAD "1 times 1 from 1 to 1" NO_ID " 3 {}\n" },
	/* a sample that is wrong either way does not decide for the others */
	{ FIELDS("\x12\x02\x08\x01\x12\x03\x12\x01\x02"), "samples[0]: neither values nor timestamps" },
	/* not packed; twice; unknown fields */
	{ FIELDS("\x12\x0d\x10\x01\x10\x02\x29" TIME),
		HEAD "1 times 1 from 1 to 1" NO_ID " 1 {thread=\"a\", thread=\"b\"}\n" },
	{ FIELDS("\x12\x15\x12\x01\x01\x12\x01\x02\x22\x01\x05\x22\x01\x02\x29" TIME),
		"samples[0]: 2 values for 1 timestamps" },
	{ FIELDS("\x12\x18\x12\x01\x01\x12\x01\x02\x22\x01\x05\x29" TIME
		"\x32\x01\x01\x38\x01\x15"), "" },
	{ FIELDS("\x12\x19\x12\x01\x01\x12\x01\x02\x22\x01\x05\x29" TIME
		"\x7a\x01\x01\x38\x01\x40\x01"),
		HEAD "1 times 1 from 1 to 1" NO_ID " 5 {thread=\"a\", thread=\"b\"}\n" },
	/* 1.10, one by one: a value, with attribute and link too; packed and not */
	{ FIELDS("\x12\x04\x08\x01\x20\x07"), HEAD "1" NO_TIMES NO_ID " 7 {} | 2a\n" },
	{ FIELDS("\x12\x08\x08\x01\x10\x01\x18\x01\x20\x07"),
		HEAD "1" NO_TIMES NO_ID " 7 {thread=\"a\"}" LINK " | 2a\n" },
	{ FIELDS("\x12\x11\x20\x05\x22\x02\x02\x01\x29" TIME "\x20\x03"),
		"samples[0]: 4 values for 1 timestamps" },
	{ FIELDS("\x12\x18\x20\x05\x22\x01\x02\x29" TIME "\x2a\x08" TIME),
		HEAD "1 times 2 from 1 to 1" NO_ID " 7 {}\n" },
	/* 1.9, one by one */
	{ FIELDS("\x12\x04\x08\x01\x10\x07"), HEAD "1" NO_TIMES NO_ID " 7 {} | 2a\n" },
	{ FIELDS("\x12\x08\x08\x01\x10\x07\x18\x01\x20\x01"),
		HEAD "1" NO_TIMES NO_ID " 7 {thread=\"a\"}" LINK " | 2a\n" },
	{ FIELDS("\x12\x08\x10\x02\x18\x01\x18\x02\x20\x01"),
		HEAD "1" NO_TIMES NO_ID " 2 {thread=\"a\", thread=\"b\"}" LINK "\n" },
	/* a sample that is right either way is read as the others are: 1.10, 1.9; alone as 1.10 */
	{ FIELDS("\x12\x0b\x20\x01\x29" TIME "\x12\x02\x20\x07"),
		HEAD "2 times 1 from 1 to 1" NO_ID " 8 {}\n" },
	{ FIELDS("\x12\x0b\x10\x01\x29" TIME "\x12\x02\x10\x07"),
		HEAD "2 times 1 from 1 to 1" NO_ID " 8 {}\n" },
	{ FIELDS("\x12\x0b\x10\x01\x29" TIME),
		HEAD "1 times 1 from 1 to 1" NO_ID " 1 {thread=\"a\"}\n" },
	/* likewise, but the profile has a comment of 1.8, packed or not */
	{ FIELDS("\x12\x0b\x10\x02\x29" TIME "\x38\x04"),
		HEAD "1 times 1 from 1 to 1" NO_ID " 2 {}\n" },
	{ FIELDS("\x12\x0b\x10\x02\x29" TIME "\x3a\x02\x04\x04"),
		HEAD "1 times 1 from 1 to 1" NO_ID " 2 {}\n" },
	/* one that is wrong does not outvote the others, and is the one with the error */
	{ FIELDS("\x12\x04\x10\x01\x20\x05\x12\x02\x10\x09\x12\x04\x10\x01\x20\x05"),
		"samples[1]: no attribute 9, attributeTable has 3" },
	/* both numberings in one request */
	{ FIELDS("\x12\x05\x18\x01\x22\x01\x05\x12\x06\x1a\x01\x01\x12\x01\x05"),
		"samples[1]: the request has samples as OTLP 1.9 numbers their fields and as 1.10 does" },
	/* a profile's attributes, one by one: 1.9's, 1.8's */
	{ FIELDS("\x58\x01\x58\x02"),
		HEAD "0" NO_TIMES NO_ID "attribute thread=string:a\nattribute thread=string:b\n" },
	{ FIELDS("\x38\x04\x60\x01\x60\x02"),
		HEAD "0" NO_TIMES NO_ID "attribute thread=string:a\nattribute thread=string:b\n" },
	/* 1.9's id and attributes; 1.8's, whose comments move them by one */
	{ FIELDS("\x3a\x10IDIDIDIDIDIDIDID\x5a\x01\x02"),
		HEAD "0" NO_TIMES " id 49444944494449444944494449444944\nattribute thread=string:b\n" },
	{ FIELDS("\x3a\x01\x04\x42\x10IDIDIDIDIDIDIDID\x62\x01\x02"),
		HEAD "0" NO_TIMES " id 49444944494449444944494449444944\nattribute thread=string:b\n" },
	{ FIELDS("\x3a\x01\x04\x52\x03jfr\x5a\x02\x63\x63"), HEAD "0" NO_TIMES NO_ID },
	{ FIELDS("\x4a\x03jfr\x52\x02\x63\x63\x5a\x01\x01"),
		HEAD "0" NO_TIMES NO_ID "attribute thread=string:a\n" },
};
/* clang-format on */

TEST(samples_are_read_as_their_release_numbers_them)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf request = { 0 }, got = { 0 };
		struct otlp_request *r;
		struct arena a;
		struct err err;

		arena_init(&a, 0);
		put_request(&request, cases[i].fields);
		if (otlp_decode(&a, buf_str(&request), &show_options, &r, &err)) {
			CHECK_INT(err.code, ERR_INVALID);
			buf_add_cstr(&got, err.msg);
		} else {
			check_request(r);
			if (r->rejected_n)
				buf_add_cstr(&got,
					r->rejected.msg + strlen("resourceProfiles[0].scopeProfiles[0].profiles[0]: "));
			else
				show_request(&a, r, &got);
		}
		if (!cases[i].want[0])
			CHECK(str_has_prefix(buf_str(&got), STR("request is not well-formed at ")));
		else
			CHECK_STR(buf_str(&got), cases[i].want);
		buf_release(&request);
		buf_release(&got);
		arena_release(&a);
	}
}

/* Requests before 1.8 by what tells them. */
static const struct {
	struct str profile, dictionary;
	const char *want;
} old[] = {
	{ FIELDS("\x1a\x01\x00"), FIELDS(""), "field 3 of a profile is not its timeUnixNano" },
	{ FIELDS("\x18\x01\x18\x02"), FIELDS(""), "field 3 of a profile is not its timeUnixNano" },
	{ FIELDS("\x22\x02\x08\x01"), FIELDS(""), "field 4 of a profile is not its durationNano" },
	{ FIELDS("\x28\x05"), FIELDS(""), "field 5 of a profile is not its periodType" },
	{ FIELDS("\x32\x02\x08\x01"), FIELDS(""), "field 6 of a profile is not its period" },
	{ FIELDS("\x11" TIME), FIELDS(""), "field 2 of a profile is not its samples" },
	{ FIELDS(""), FIELDS("\x32\x03\x0a\x01k"),
		"field 1 of an attribute of its dictionary is not the keyStrindex" },
	{ FIELDS(""), FIELDS("\x3a\x04\x08\x01\x10\x02"),
		"field 7 of its dictionary is not the stackTable" },
	/* samples that no release since has, before the field that tells */
	{ FIELDS("\x12\x0a\x10\x02\x1a\x01\x01\x22\x03\x01\x02\x03\x1a\x02\x01\x02"), FIELDS(""),
		"field 3 of a profile is not its timeUnixNano" },
	{ FIELDS("\x12\x07\x10\x02\x1a\x01\x01\x28\x01"), FIELDS(""),
		"field 5 of a sample is not its timestampsUnixNano" },
};

TEST(earlier_releases_are_refused_by_name)
{
	for (size_t i = 0; i < sizeof(old) / sizeof(old[0]); i++) {
		struct buf request = { 0 }, dictionary = { 0 };
		struct otlp_request *r;
		struct arena a;
		struct err err;
		char want[256];

		arena_init(&a, 0);
		buf_add_str(&dictionary, old[i].dictionary);
		put(&request, 2, &dictionary);
		put_request(&request, old[i].profile);
		snprintf(want, sizeof(want),
			"profiles of OTLP before 1.8 are not supported, only 1.8 to 1.11: %s; update the "
			"sender",
			old[i].want);
		CHECK_ERR(otlp_decode(&a, buf_str(&request), &show_options, &r, &err), &err,
			ERR_UNSUPPORTED, want);
		buf_release(&request);
		buf_release(&dictionary);
		arena_release(&a);
	}
}

static const struct {
	struct str request;
	const char *want;
} malformed[] = {
	{ FIELDS("\x0a"),
		"request is not well-formed: a field is cut off, or of an unknown wire type" },
	{ FIELDS("\xff"), "request is not well-formed: the tag of a field is cut off" },
	{ FIELDS("\x08\x01"), "request is not well-formed at resourceProfiles[0]: wrong wire type" },
	{ FIELDS("\x12\x00\x12\x06\x12\x00\x12\x02\x0a\x00"),
		"request is not well-formed at dictionary.locationTable[1].mappingIndex: wrong wire type" },
	{ FIELDS("\x12\x05\x3a\x03\x0a\x01\x80"),
		"request is not well-formed at dictionary.stackTable[0].locationIndices[0]: a number is "
		"cut off" },
	{ FIELDS("\x0a\x00\x0a\x06\x12\x04\x12\x02\x0a\x05"),
		"request is not well-formed at resourceProfiles[1].scopeProfiles[0].profiles[0]: a field "
		"is "
		"cut off, or of an unknown wire type" },
};

TEST(faults_of_the_wire_format_have_a_place)
{
	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
		struct otlp_request *r;
		struct arena a;
		struct err err;

		arena_init(&a, 0);
		CHECK_ERR(otlp_decode(&a, malformed[i].request, &show_options, &r, &err), &err, ERR_INVALID,
			malformed[i].want);
		arena_release(&a);
	}
}

TEST(an_empty_request_has_no_profiles)
{
	struct otlp_request *r;
	struct arena a;
	struct err err;

	arena_init(&a, 0);
	REQUIRE_OK(otlp_decode(&a, STR(""), &show_options, &r, &err), &err);
	CHECK_INT(r->profiles_n + r->resources_n + r->rejected_n, 0);
	arena_release(&a);
}

/* In memory of its exact size, so that the address sanitizer sees each read beyond. */
static enum err_code decode_copy(struct arena *a, const char *bytes, size_t n)
{
	char *copy = malloc(n + !n);
	struct otlp_request *r;
	enum err_code rc;
	struct err err;

	memcpy(copy, bytes, n);
	rc = otlp_decode(a, (struct str){ copy, n }, &show_options, &r, &err);
	if (rc)
		CHECK(err.msg[0]);
	else
		check_request(r);
	free(copy);
	arena_reset(a);
	return rc;
}

static bool read_recorded(struct arena *a, struct str *out)
{
	struct buf file = { 0 };
	struct err err;
	bool ok;

	ok = !fs_read_file("tests/proto/otlp/testdata/p5-collector-49hz.pb.gz", 1 << 20, &file, &err) &&
		!pprof_inflate(a, str_dup(a, buf_str(&file)), &pprof_limits_default, out, &err);
	buf_release(&file);
	return ok;
}

/* The collector writes the dictionary first, so a cut at the end of a field leaves a request. */
TEST(half_a_request_gives_nothing)
{
	struct arena a, scratch;
	size_t accepted = 0;
	struct str raw;

	arena_init(&a, 0);
	arena_init(&scratch, 0);
	REQUIRE(read_recorded(&a, &raw));
	for (size_t n = 0; n < raw.len; n += CHECK_STEP)
		accepted += !decode_copy(&scratch, raw.ptr, n);
	CHECK(accepted >= 1 && accepted <= 12);
	CHECK_INT(decode_copy(&scratch, raw.ptr, raw.len), ERR_OK);
	arena_release(&scratch);
	arena_release(&a);
}

TEST(damaged_requests_do_no_harm)
{
	size_t refused = 0, n = 0;
	struct arena a, scratch;
	struct str raw;
	char *bytes;

	arena_init(&a, 0);
	arena_init(&scratch, 256u << 20);
	REQUIRE(read_recorded(&a, &raw));
	bytes = arena_strndup(&a, raw.ptr, raw.len);
	for (size_t i = 0; i < raw.len; i += CHECK_STEP, n++) {
		bytes[i] = (char)(bytes[i] ^ (i % 3 ? 0x80 : 1 << i % 8));
		refused += decode_copy(&scratch, bytes, raw.len) != ERR_OK;
		bytes[i] = raw.ptr[i];
	}
	CHECK(refused > n / 20 && refused < n);
	arena_release(&scratch);
	arena_release(&a);
}
