/* Names of saved files: what they say, and that any file system takes them. */
#include "web/api/saved_name.h"

#include "base/clock.h"
#include "tests/check.h"

#define T0 (INT64_C(1795442700) * NS_PER_S) /* 2026-11-23T14:05:00Z */

static void check_name(const struct saved_name *n, const char *suffix, const char *want)
{
	struct buf b = { 0 };

	saved_name_print(&b, n, suffix);
	CHECK_STR(buf_str(&b), want);
	buf_release(&b);
}

TEST(service_type_and_time)
{
	/* clang-format off */
	static const struct {
		const char *service, *type, *sample;
		int64_t begin_s, length_s;
		const char *want;
	} rows[] = {
		{ "shop", "cpu", "", 0, 900, "shop-cpu-2026-11-23T14-05Z-15m.pb.gz" },
		{ "shop", "memory", "alloc_space", 0, 5400,
		  "shop-memory-alloc_space-2026-11-23T14-05Z-1h30m.pb.gz" },
		{ "", "cpu", "", 0, 86400, "cpu-2026-11-23T14-05Z-1d.pb.gz" },
		{ "", "", "", 0, 0, "2026-11-23T14-05Z.pb.gz" },
		/* The two largest units; seconds of the time only of short windows. */
		{ "a", "b", "", 7, 93784, "a-b-2026-11-23T14-05Z-1d2h.pb.gz" },
		{ "a", "b", "", 7, 59, "a-b-2026-11-23T14-05-07Z-59s.pb.gz" },
		{ "a", "b", "", 7, 60, "a-b-2026-11-23T14-05Z-1m.pb.gz" },
		{ "a", "b", "", 7, 0, "a-b-2026-11-23T14-05-07Z.pb.gz" },
		{ "a", "b", "", 0, 9, "a-b-2026-11-23T14-05Z-9s.pb.gz" },
		/* What a file system or a header might read otherwise. */
		{ "../../etc/passwd", "cpu", "", 0, 60, "etc_passwd-cpu-2026-11-23T14-05Z-1m.pb.gz" },
		{ "a\"b\\c:d*e?f|g<h>\r\n", "x.y", "", 0, 60,
		  "a_b_c_d_e_f_g_h-x_y-2026-11-23T14-05Z-1m.pb.gz" },
		{ "con.shop", "cpu", "", 0, 60, "con_shop-cpu-2026-11-23T14-05Z-1m.pb.gz" },
		{ "\xd0\xbc\xd0\xb0\xd0\xb3", "cpu", "", 0, 60, "cpu-2026-11-23T14-05Z-1m.pb.gz" },
		{ "--my-shop__", "cpu", "", 0, 60, "my-shop-cpu-2026-11-23T14-05Z-1m.pb.gz" },
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct saved_name n = { .service = str_of(rows[i].service),
			.type = str_of(rows[i].type),
			.sample_type = str_of(rows[i].sample),
			.start_ns = T0 + rows[i].begin_s * NS_PER_S };

		n.end_ns = n.start_ns + rows[i].length_s * NS_PER_S;
		check_name(&n, "pb.gz", rows[i].want);
	}
}

/* Random bytes in all parts, and windows up to the limits of time. */
TEST(any_name_is_short_and_plain)
{
	uint64_t x = 88172645463325252u;
	char bytes[3][300];

	for (int round = 0; round < 2000; round++) {
		struct saved_name n = { 0 };
		struct str *parts[] = { &n.service, &n.type, &n.sample_type };
		struct buf b = { 0 };

		for (int p = 0; p < 3; p++) {
			for (size_t i = 0; i < sizeof(bytes[p]); i++) {
				x ^= x << 13;
				x ^= x >> 7;
				x ^= x << 17;
				bytes[p][i] = round % 2 ? (char)x : (char)('a' + x % 26);
			}
			*parts[p] = (struct str){ bytes[p], x % sizeof(bytes[p]) };
		}
		n.start_ns = (int64_t)(x % (uint64_t)TIME_MAX_NS) - TIME_MAX_NS / 2;
		n.end_ns = round % 3 ? n.start_ns + (int64_t)(x % 1000) * NS_PER_DAY : n.start_ns;
		saved_name_print(&b, &n, "speedscope.json");
		CHECK(b.len <= SAVED_NAME_MAX);
		CHECK(b.len > 0 && b.ptr[0] != '_' && b.ptr[0] != '.');
		for (size_t i = 0; i < b.len; i++) {
			char c = b.ptr[i];

			CHECK((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
				c == '-' || c == '_' || c == '.');
		}
		buf_release(&b);
	}
}

TEST(name_of_a_stored_profile)
{
	struct label all[] = {
		{ STR("__name__"), STR("process_cpu") },
			{ STR("instance"), STR("10.0.0.1:6060") },
				{ STR("job"), STR("shop") },
			};
	struct saved_name n = saved_name_of_profile((struct labels){ all, 3 }, T0 + NS_PER_S);

	check_name(&n, "pb.gz", "shop-cpu-2026-11-23T14-05-01Z.pb.gz");
}
