#include "base/self/process_metrics.h"
#include "tests/check.h"

TEST(the_process_is_described_as_in_prometheus)
{
	static const char *const lines[] = {
		"\nprocess_cpu_seconds_total ",
		"\nprocess_resident_memory_bytes ",
		"\nprocess_open_fds ",
		"\nprocess_start_time_seconds 1",
	};
	struct buf b = { 0 };

	process_metrics_print(&b);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (str_find(buf_str(&b), str_of(lines[i])) < 0)
			CHECK_FAIL("no line %s", lines[i] + 1);
	CHECK(b.len && b.ptr[b.len - 1] == '\n');
	buf_release(&b);
}
