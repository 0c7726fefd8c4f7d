#include "tsdb/series/job_counts.h"

#include "tests/check.h"

#define NAMES 5000

TEST(each_job_is_counted_by_its_name)
{
	struct job_counts c = { 0 };

	CHECK_INT(job_counts_of(&c, STR("a")), 0);
	CHECK_INT(job_counts_largest(&c).n, 0);
	CHECK(job_counts_add(&c, STR("a")));
	CHECK(job_counts_add(&c, STR("")));
	CHECK(job_counts_add(&c, STR("b")));
	CHECK(job_counts_add(&c, STR("b")));
	CHECK(job_counts_add(&c, STR("a")));
	CHECK(job_counts_add(&c, STR("b")));
	CHECK_INT(job_counts_of(&c, STR("a")), 2);
	CHECK_INT(job_counts_of(&c, STR("b")), 3);
	CHECK_INT(job_counts_of(&c, STR("")), 1);
	CHECK_STR(job_counts_largest(&c).name, "b");
	job_counts_remove(&c, STR("b"));
	job_counts_remove(&c, STR("b"));
	job_counts_remove(&c, STR("b"));
	CHECK_INT(job_counts_of(&c, STR("b")), 0);
	CHECK_STR(job_counts_largest(&c).name, "a");
	CHECK(job_counts_add(&c, STR("b")));
	CHECK_INT(job_counts_of(&c, STR("b")), 1);
	job_counts_release(&c);
}

static struct str name_of(char text[16], int i)
{
	snprintf(text, 16, "job%d", i);
	return str_of(text);
}

/* A job for each build: their names take no memory once they are gone, and others keep their
 * count. */
TEST(names_without_series_go)
{
	struct job_counts c = { 0 };
	char text[16];
	uint64_t most;

	for (int i = 0; i < NAMES; i++) {
		CHECK(job_counts_add(&c, name_of(text, i)));
		if (i % 10 == 0)
			CHECK(job_counts_add(&c, name_of(text, i)));
	}
	most = c.name_bytes;
	for (int i = 0; i < NAMES; i++)
		job_counts_remove(&c, name_of(text, i));
	for (int i = 0; i < NAMES; i++)
		CHECK_INT(job_counts_of(&c, name_of(text, i)), i % 10 == 0);
	CHECK(c.name_bytes < most / 2);
	CHECK(c.n < NAMES / 2);
	for (int i = 0; i < NAMES; i++)
		CHECK(job_counts_add(&c, name_of(text, i)));
	for (int i = 0; i < NAMES; i++)
		CHECK_INT(job_counts_of(&c, name_of(text, i)), 1 + (i % 10 == 0));
	job_counts_release(&c);
}
