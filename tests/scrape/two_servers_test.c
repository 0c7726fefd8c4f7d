/* Two servers that scrape one process, over real sockets. */
#include <unistd.h>

#include "tests/check.h"
#include "tests/scrape/fixture.h"
#include "tests/wait.h"

/* Their turns come at the same moment, as their targets are the same. */
TEST(two_servers_share_the_profiler_of_a_process)
{
	const char *job = "- job_name: a\n  scrape_interval: 3s\n  scrape_timeout: 3s\n"
					  "  static_configs: [{targets: [PORT]}]\n"
					  "  profiling_config: {pprof_config: {" NO_CPU
					  ", process_cpu: {path: /one}}}\n";
	const uint64_t enough = check_is_short() ? 2 : 4;
	struct fixture v[2];
	struct http_target *own;
	struct target_info is;
	struct err err;

	fixture_init(&v[0]);
	fixture_init(&v[1]);
	REQUIRE_OK(fixture_apply(&v[0], job, &err), &err);
	own = v[1].target;
	v[1].target = v[0].target;
	REQUIRE_OK(fixture_apply(&v[1], job, &err), &err);
	for (int i = 0; i < 2; i++) {
		/* That takes many seconds: looking each millisecond would cost as many of a processor. */
		CHECK(WAIT_FOR((usleep(50000), is = fixture_see(&v[i], "process_cpu"),
			is.scrapes - is.failures >= enough)));
		CHECK(
			WAIT_FOR((usleep(50000), fixture_see(&v[i], "process_cpu").sharing != SHARING_ALONE)));
	}
	v[1].target = own;
	fixture_release(&v[1]);
	fixture_release(&v[0]);
}
