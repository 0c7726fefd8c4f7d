/* IPv6 without brackets, and what to write instead. */
#include "base/net/bare_ipv6.h"
#include "tests/check.h"

TEST(what_to_write)
{
	static const char *const rows[][2] = {
		{ "::1:25024", "[::1]:25024" }, /* a group has four digits at most */
		{ "2001:db8::1", "[2001:db8::1]" },
		{ "2001:db8::1:6060", "[2001:db8::1]:6060 or [2001:db8::1:6060]" },
		{ "::", "[::]" },
		{ "::1", "[::1]" },
		{ "1:2:3:4:5:6:7:8:80", "[1:2:3:4:5:6:7:8]:80" },
		{ "::ffff:10.0.0.1:80", "[::ffff:10.0.0.1]:80" },
		{ "fe80::c:abcd", "[fe80::c:abcd]" },
		/* these are none */
		{ "[::1]:25024", "" },
		{ "[::1]", "" },
		{ "localhost:80", "" },
		{ "10.0.0.1:80", "" },
		{ "a:b:c", "" },
		{ "::1:65536", "" },
		{ "::1:-1", "" },
		{ ":80", "" },
		{ ":", "" },
		{ "", "" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf out = { 0 };
		bool is = bare_ipv6(str_of(rows[i][0]), &out);

		if (is != (rows[i][1][0] != '\0') || !str_is(buf_str(&out), rows[i][1]))
			CHECK_FAIL(
				"%s: \"" STR_FMT "\", want \"%s\"", rows[i][0], STR_ARG(buf_str(&out)), rows[i][1]);
		buf_release(&out);
	}
}
