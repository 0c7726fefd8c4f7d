#include "tests/check.h"
#include "tests/proto/profile_compare.h"

#define STRINGS \
	"\x32\x00" \
	"\x32\x03" \
	"cpu" \
	"\x32\x02" \
	"ns" \
	"\x32\x01" \
	"f" \
	"\x32\x01" \
	"g"
#define TYPE "\x0a\x04\x08\x01\x10\x02"
#define F1 "\x2a\x04\x08\x01\x10\x03" /* function 1: "f" */
#define F2 "\x2a\x04\x08\x02\x10\x04"
#define L1 "\x22\x06\x08\x01\x22\x02\x08\x01" /* location 1: a line of function 1 */
#define L2 "\x22\x06\x08\x02\x22\x02\x08\x02"

#define LIT(s) ((struct str){ s, sizeof(s) - 1 })

/* The other side of each row, against one sample with the stack f, g and the value 5. */
TEST(what_counts_as_equal)
{
	static const char base[] = STRINGS TYPE F1 F2 L1 L2 "\x12\x06\x08\x01\x08\x02\x10\x05";
	/* clang-format off */
	static const struct {
		const char *name;
		struct str raw;
		const char *why; /* NULL: equal */
	} rows[] = {
		{ "the same", LIT(STRINGS TYPE F1 F2 L1 L2 "\x12\x06\x08\x01\x08\x02\x10\x05"), NULL },
		{ "other ids and orders", LIT(STRINGS "\x12\x06\x08\x09\x08\x07\x10\x05" TYPE F2 F1
			"\x22\x06\x08\x07\x22\x02\x08\x02" "\x22\x06\x08\x09\x22\x02\x08\x01"), NULL },
		{ "the value in two parts", LIT(STRINGS TYPE F1 F2 L1 L2 "\x12\x06\x08\x01\x08\x02\x10\x02"
			"\x12\x06\x08\x01\x08\x02\x10\x03"), NULL },
		{ "a zero sample more", LIT(STRINGS TYPE F1 F2 L1 L2 "\x12\x06\x08\x01\x08\x02\x10\x05"
			"\x12\x04\x08\x01\x10\x00"), NULL },
		{ "a mapping nobody uses", LIT(STRINGS TYPE F1 F2 L1 L2 "\x1a\x02\x08\x01"
			"\x12\x06\x08\x01\x08\x02\x10\x05"), NULL },
		{ "another stack", LIT(STRINGS TYPE F1 F2 L1 L2 "\x12\x06\x08\x02\x08\x01\x10\x05"),
			"only in a: sample location{0 mapping{} line{0:0 function{0 \"f\" \"\" \"\"}}} "
			"location{0 mapping{} line{0:0 function{0 \"g\" \"\" \"\"}}} values 5\n"
			"only in b: sample location{0 mapping{} line{0:0 function{0 \"g\" \"\" \"\"}}} "
			"location{0 mapping{} line{0:0 function{0 \"f\" \"\" \"\"}}} values 5\n" },
		{ "a label more", LIT(STRINGS TYPE F1 F2 L1 L2
			"\x12\x0c\x08\x01\x08\x02\x10\x05\x1a\x04\x08\x03\x10\x04"),
			"only in b: sample \"f\"=\"g\" "
			"location{0 mapping{} line{0:0 function{0 \"f\" \"\" \"\"}}} "
			"location{0 mapping{} line{0:0 function{0 \"g\" \"\" \"\"}}} values 5\n"
			"only in a: sample location{0 mapping{} line{0:0 function{0 \"f\" \"\" \"\"}}} "
			"location{0 mapping{} line{0:0 function{0 \"g\" \"\" \"\"}}} values 5\n" },
		{ "a period", LIT(STRINGS TYPE F1 F2 L1 L2 "\x60\x07" "\x12\x06\x08\x01\x08\x02\x10\x05"),
			"only in a: period 0\nonly in b: period 7\n" },
		{ "not a message", LIT("\x12\x06\x08"), "b: protobuf-c refuses it\n" },
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf why = { 0 };
		bool equal = profile_equal(LIT(base), rows[i].raw, &why);

		if (equal != !rows[i].why)
			CHECK_FAIL("%s: equal is %d", rows[i].name, equal);
		CHECK_STR(buf_str(&why), rows[i].why ? rows[i].why : "");
		buf_release(&why);
	}
}
