/* What is said of a configuration behind its reading. */
#include "cmd/shared/config_check.h"
#include "tests/check.h"

#define JOB "scrape_configs:\n- job_name: a\n  profiling_config:\n    pprof_config:\n"

TEST(names_of_profiles_that_queries_take_for_others)
{
	/* clang-format off */
	static const char *const rows[][2] = {
		{ JOB "      cpu: {path: /debug/pprof/profile}\n      process_cpu: {enabled: false}\n"
		  "      heap: {path: /x}\n",
		  "c.yml:5:7: cpu is the short name of process_cpu too: queries of cpu mean both, "
		  "{__name__=\"cpu\"} means this profile alone\n"
		  "c.yml:7:7: heap is the short name of memory too: queries of heap mean both, "
		  "{__name__=\"heap\"} means this profile alone\n" },
		{ JOB "      cpu: {path: /x, enabled: false}\n      CPU: {path: /x}\n"
		  "      process_cpu: {path: /x}\n      mine: {path: /x}\n", "" },
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct yaml_problems p;
		struct config *c = NULL;
		struct buf got = { 0 };
		struct err err;

		yaml_problems_init(&p);
		REQUIRE_OK(config_read_text(
			"c.yml", STR("."), str_of(rows[i][0]), &(struct config_reading){ 0 }, &p, &c, &err),
			&err);
		CHECK_OK(config_check_parsed(c, &p, &err), &err);
		yaml_problems_sort(&p);
		for (size_t k = 0; k < p.n; k++)
			buf_printf(&got, "%s\n", p.v[k].text);
		CHECK_STR(buf_str(&got), rows[i][1]);
		CHECK_INT(p.errors_n, 0);
		buf_release(&got);
		config_unref(c);
		yaml_problems_release(&p);
	}
}
