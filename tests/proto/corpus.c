#include "tests/proto/corpus.h"

#define LIT(s) \
	{ \
		s, sizeof(s) - 1 \
	}

#define EMPTY "\x32\x00"
#define STRINGS \
	EMPTY "\x32\x03" \
		  "cpu" \
		  "\x32\x02" \
		  "ns" \
		  "\x32\x01" \
		  "f" \
		  "\x32\x01" \
		  "v" /* 0..4 */
#define TYPE "\x0a\x04\x08\x01\x10\x02"
#define MAPPING "\x1a\x02\x08\x01"
#define FUNCTION "\x2a\x04\x08\x01\x10\x03"
#define LOCATION "\x22\x08\x08\x01\x10\x01\x22\x02\x08\x01" /* mapping 1, a line of function 1 */
#define TABLES STRINGS TYPE MAPPING FUNCTION LOCATION
#define SAMPLE "\x12\x04\x08\x01\x10\x05" /* location 1, value 5 */
#define MINUS_1 "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
#define BIG_ID "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01" /* 2^63 */

/* clang-format off */
const struct corpus_row corpus[] = {
	/* Valid. */
	{ "smallest", LIT(EMPTY), NULL },
	{ "one sample", LIT(TABLES SAMPLE), NULL },
	{ "samples first", LIT(SAMPLE LOCATION FUNCTION MAPPING TYPE STRINGS), NULL },
	{ "no stack", LIT(TABLES "\x12\x02\x10\x05"), NULL },
	{ "negative value", LIT(TABLES "\x12\x0d\x08\x01\x10" MINUS_1), NULL },
	{ "packed", LIT(TABLES "\x12\x08\x0a\x03\x01\x01\x01\x12\x01\x05"), NULL },
	{ "packed and not, mixed", LIT(TABLES "\x12\x0a\x08\x01\x0a\x02\x01\x01\x12\x00\x10\x05"),
		NULL },
	{ "packed of no items", LIT(TABLES "\x12\x04\x0a\x00\x10\x05"), NULL },
	{ "varint longer than needed", LIT(TABLES "\x12\x05\x08\x81\x00\x10\x05"), NULL },
	{ "varint with bits beyond 64", LIT(TABLES "\x60\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
		NULL },
	{ "dangling mapping id", LIT(TABLES "\x22\x04\x08\x02\x10\x63"), NULL },
	{ "ids neither dense nor ordered", LIT(STRINGS TYPE "\x2a\x03\x08\xe8\x07" "\x2a\x02\x08\x05"
		"\x22\x07\x08\xd0\x0f\x22\x02\x08\x05" "\x22\x07\x08\x03\x22\x03\x08\xe8\x07"
		"\x12\x08\x0a\x04\x03\xd0\x0f\x03\x10\x05"), NULL },
	{ "ids as large as they get", LIT(STRINGS TYPE "\x22\x0b\x08" BIG_ID "\x22\x0b\x08" MINUS_1
		"\x12\x18\x08" BIG_ID "\x08" MINUS_1 "\x10\x05"), NULL },
	{ "unknown fields", LIT(TABLES "\xf8\x06\x01" "\xf9\x06" "12345678" "\xfa\x06\x02" "ab"
		"\xfd\x06" "1234"
		"\x12\x07\x08\x01\x10\x05\x92\x01\x00"), NULL },
	{ "field 0", LIT(TABLES "\x00\x01" "\x02\x01" "x"), NULL },
	{ "field number beyond 32 bits", LIT(TABLES "\x80\x80\x80\x80\x80\x80\x01\x07"), NULL },
	{ "label", LIT(TABLES "\x12\x0a\x08\x01\x10\x05\x1a\x04\x08\x03\x10\x04"), NULL },
	{ "label without a key", LIT(TABLES "\x12\x08\x08\x01\x10\x05\x1a\x02\x10\x04"), NULL },
	{ "string label, no such unit",
		LIT(TABLES "\x12\x0c\x08\x01\x10\x05\x1a\x06\x08\x03\x10\x04\x20\x63"), NULL },
	{ "label of nothing", LIT(TABLES "\x12\x08\x08\x01\x10\x05\x1a\x02\x08\x03"), NULL },
	{ "the last of a field counts", LIT(TABLES "\x38\x63\x38\x01"
		"\x2a\x06\x08\x02\x10\x63\x10\x03"), NULL },
	{ "time_nanos of 0, then another", LIT(TABLES "\x48\x00\x48\x07"), NULL },
	{ "period_type twice", LIT(TABLES "\x5a\x02\x08\x63" "\x5a\x02\x08\x01"), NULL },
	{ "comments", LIT(TABLES "\x68\x01\x6a\x02\x02\x03"), NULL },
	{ "a bool that is not 0 or 1", LIT(TABLES "\x22\x05\x08\x02\x28\xe8\x07"), NULL },

	/* Invalid. */
	{ "empty", LIT(""), "profile is empty" },
	{ "no string table", LIT(TYPE), "string_table is missing" },
	{ "first string", LIT("\x32\x01" "x"), "string_table[0] is \"x\", must be empty" },
	{ "no types", LIT(EMPTY LOCATION SAMPLE),
		"location[0].line[0].function_id: no function has id 1" },
	{ "no types, no stack", LIT(EMPTY "\x12\x00"), "sample_type is missing" },
	{ "a value too few", LIT(TABLES "\x12\x02\x08\x01"),
		"sample[0].value: 0 values for 1 sample types" },
	{ "a value too many", LIT(TABLES SAMPLE "\x12\x06\x08\x01\x10\x05\x10\x06"),
		"sample[1].value: 2 values for 1 sample types" },
	{ "many types, empty samples", LIT(TABLES TYPE TYPE TYPE TYPE "\x12\x00\x12\x00\x12\x00"),
		"sample[0].value: 0 values for 5 sample types" },
	{ "dangling location", LIT(TABLES SAMPLE "\x12\x06\x08\x01\x08\x09\x10\x05"),
		"sample[1].location_id[1]: no location has id 9" },
	{ "location 0", LIT(TABLES "\x12\x04\x08\x00\x10\x05"),
		"sample[0].location_id[0]: no location has id 0" },
	{ "dangling location in a long packed stack", LIT(TABLES
		"\x12\x0f\x0a\x0b\x01\x01\x01\x01\x01\x01\x02\x01\x01\x01\x01\x10\x05"),
		"sample[0].location_id[6]: no location has id 2" },
	{ "location 0 in a long packed stack", LIT(TABLES
		"\x12\x0f\x0a\x0b\x01\x00\x01\x01\x01\x01\x01\x01\x01\x01\x01\x10\x05"),
		"sample[0].location_id[1]: no location has id 0" },
	{ "location of two bytes in a long packed stack", LIT(TABLES
		"\x12\x0f\x0a\x0b\x01\x01\x81\x01\x01\x01\x01\x01\x01\x01\x01\x10\x05"),
		"sample[0].location_id[2]: no location has id 129" },
	{ "dangling location in a third sample", LIT(TABLES SAMPLE "\x12\x02\x10\x05"
		"\x12\x0f\x0a\x0b\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x07\x10\x05" SAMPLE),
		"sample[2].location_id[10]: no location has id 7" },
	{ "a stack where no location is",
		LIT(STRINGS TYPE "\x12\x0c\x0a\x08\x01\x01\x01\x01\x01\x01\x01\x01\x10\x05"),
		"sample[0].location_id[0]: no location has id 1" },
	{ "dangling location, ids hashed",
		LIT(STRINGS TYPE "\x22\x0b\x08" BIG_ID "\x12\x04\x08\x01\x10\x05"),
		"sample[0].location_id[0]: no location has id 1" },
	{ "location used twice", LIT(TABLES LOCATION), "location[1].id: 1 is used twice" },
	{ "large location used twice", LIT(TABLES "\x22\x0b\x08" BIG_ID "\x22\x0b\x08" BIG_ID),
		"location[2].id: 9223372036854775808 is used twice" },
	{ "location's own id 0", LIT(TABLES "\x22\x02\x18\x07"), "location[1].id: 0 is reserved" },
	{ "function used twice", LIT(TABLES FUNCTION), "function[1].id: 1 is used twice" },
	{ "function's own id 0", LIT(TABLES "\x2a\x02\x10\x03"), "function[1].id: 0 is reserved" },
	{ "mapping used twice", LIT(TABLES MAPPING), "mapping[1].id: 1 is used twice" },
	{ "mapping's own id 0", LIT(TABLES "\x1a\x00"), "mapping[1].id: 0 is reserved" },
	{ "dangling function", LIT(TABLES "\x22\x0a\x08\x02\x22\x02\x08\x01\x22\x02\x08\x09"),
		"location[1].line[1].function_id: no function has id 9" },
	{ "line without function", LIT(TABLES "\x22\x06\x08\x02\x22\x02\x10\x07"),
		"location[1].line[0].function_id: no function has id 0" },
	{ "sample type's type", LIT(TABLES "\x0a\x02\x08\x63"),
		"sample_type[1].type: string 99, but string_table has 5" },
	{ "sample type's unit", LIT(TABLES "\x0a\x02\x10\x05"),
		"sample_type[1].unit: string 5, but string_table has 5" },
	{ "mapping's file", LIT(TABLES "\x1a\x04\x08\x02\x28\x63"),
		"mapping[1].filename: string 99, but string_table has 5" },
	{ "mapping's build id", LIT(TABLES "\x1a\x04\x08\x02\x30\x63"),
		"mapping[1].build_id: string 99, but string_table has 5" },
	{ "function's name", LIT(TABLES "\x2a\x04\x08\x02\x10\x63"),
		"function[1].name: string 99, but string_table has 5" },
	{ "function's name below 0", LIT(TABLES "\x2a\x0d\x08\x02\x10" MINUS_1),
		"function[1].name: string -1, but string_table has 5" },
	{ "function's system name", LIT(TABLES "\x2a\x04\x08\x02\x18\x63"),
		"function[1].system_name: string 99, but string_table has 5" },
	{ "function's file", LIT(TABLES "\x2a\x04\x08\x02\x20\x63"),
		"function[1].filename: string 99, but string_table has 5" },
	{ "label's key", LIT(TABLES "\x12\x0a\x08\x01\x10\x05\x1a\x04\x08\x63\x10\x04"),
		"sample[0].label.key: string 99, but string_table has 5" },
	{ "key of a label of nothing", LIT(TABLES "\x12\x08\x08\x01\x10\x05\x1a\x02\x08\x63"),
		"sample[0].label.key: string 99, but string_table has 5" },
	{ "label's string", LIT(TABLES "\x12\x0a\x08\x01\x10\x05\x1a\x04\x08\x03\x10\x63"),
		"sample[0].label.str: string 99, but string_table has 5" },
	{ "label's unit", LIT(TABLES "\x12\x0c\x08\x01\x10\x05\x1a\x06\x08\x03\x18\x07\x20\x63"),
		"sample[0].label.num_unit: string 99, but string_table has 5" },
	{ "drop_frames", LIT(TABLES "\x38\x63"), "drop_frames: string 99, but string_table has 5" },
	{ "keep_frames", LIT(TABLES "\x40\x63"), "keep_frames: string 99, but string_table has 5" },
	{ "default_sample_type", LIT(TABLES "\x70\x63"),
		"default_sample_type: string 99, but string_table has 5" },
	{ "doc_url", LIT(TABLES "\x78\x63"), "doc_url: string 99, but string_table has 5" },
	{ "period type's type", LIT(TABLES "\x5a\x02\x08\x63"),
		"period_type.type: string 99, but string_table has 5" },
	{ "period type's unit", LIT(TABLES "\x5a\x02\x10\x63"),
		"period_type.unit: string 99, but string_table has 5" },
	{ "comment", LIT(TABLES "\x68\x01\x68\x63"), "comment[1]: no such string, string_table has 5" },
	{ "comment below 0", LIT(TABLES "\x6a\x0a" MINUS_1),
		"comment[0]: no such string, string_table has 5" },
	{ "concatenated", LIT(TABLES SAMPLE "\x48\x07" TABLES SAMPLE "\x48\x07"),
		"time_nanos appears twice: concatenated profiles" },

	/* Not even protobuf. */
	{ "wire type 3", LIT(TABLES "\x63"), "period: unknown wire type 3" },
	{ "wire type 4 in an unknown field", LIT(TABLES "\xfc\x06"), "field 111: unknown wire type 4" },
	{ "wire type 7 in a label", LIT(TABLES "\x12\x06\x10\x05\x1a\x02\x17\x01"),
		"sample[0].label[0].str: unknown wire type 7" },
	{ "type mismatch, profile", LIT(TABLES "\x10\x05"), "sample[0]: wire type 0, want 2" },
	{ "type mismatch, string", LIT(TABLES "\x30\x05"), "string_table[5]: wire type 0, want 2" },
	{ "type mismatch, number", LIT(TABLES "\x62\x01" "x"), "period: wire type 2, want 0" },
	{ "type mismatch, fixed", LIT(TABLES "\x65" "1234"), "period: wire type 5, want 0" },
	{ "type mismatch, sample", LIT(TABLES SAMPLE "\x12\x02\x18\x01"),
		"sample[1].label[0]: wire type 0, want 2" },
	{ "type mismatch, values", LIT(TABLES "\x12\x05\x15" "1234"),
		"sample[0].value: wire type 5, want 0" },
	{ "type mismatch, mapping", LIT(TABLES "\x1a\x02\x0a\x00"),
		"mapping[1].id: wire type 2, want 0" },
	{ "type mismatch, function", LIT(TABLES "\x2a\x02\x12\x00"),
		"function[1].name: wire type 2, want 0" },
	{ "type mismatch, location", LIT(TABLES "\x22\x02\x20\x01"),
		"location[1].line[0]: wire type 0, want 2" },
	{ "type mismatch, line", LIT(TABLES "\x22\x04\x22\x02\x12\x00"),
		"location[1].line[0].line: wire type 2, want 0" },
	{ "type mismatch, type", LIT(TABLES "\x0a\x02\x0a\x00"),
		"sample_type[1].type: wire type 2, want 0" },
	{ "bad period type, replaced", LIT(TABLES "\x5a\x02\x0a\x00" "\x5a\x02\x08\x01"),
		"period_type.type: wire type 2, want 0" },
	{ "cut in a tag", LIT(TABLES "\x80"), "profile: bad varint instead of a field's tag" },
	{ "cut in a number", LIT(TABLES "\x60\x80"), "period: bad varint" },
	{ "cut in a fixed number", LIT(TABLES "\xf9\x06" "1234567"), "field 111: truncated" },
	{ "cut in a message", LIT(TABLES "\x12\x05\x08\x01\x10\x05"), "sample[0]: truncated" },
	{ "cut in a nested message", LIT(TABLES "\x22\x04\x22\x03\x08\x01"),
		"location[1].line[0]: truncated" },
	{ "cut in packed ids", LIT(TABLES "\x12\x05\x0a\x01\x80\x10\x05"),
		"sample[0].location_id: bad varint" },
	{ "cut in packed values", LIT(TABLES "\x12\x03\x12\x01\x80"), "sample[0].value: bad varint" },
	{ "cut in packed comments", LIT(TABLES "\x6a\x01\x80"), "comment: bad varint" },
	{ "varint of eleven bytes", LIT(TABLES "\x60\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
		"period: bad varint" },
	{ "length beyond 63 bits", LIT(TABLES "\x12" MINUS_1), "sample[0]: truncated" },
	{ "HTML", LIT("<!DOCTYPE html>\n<html>\n"),
		"this is a web page: a login or error page may have answered; check the "
		"address and the credentials" },
	{ "text", LIT("404 page not found\n"),
		"not a pprof profile: it begins with \"404 page not found\"" },
};
/* clang-format on */

const size_t corpus_n = sizeof(corpus) / sizeof(corpus[0]);
