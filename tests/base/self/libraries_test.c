#include "base/self/libraries.h"

#include <string.h>

#include "base/metrics.h"
#include "base/version.h"
#include "tests/check.h"

/* A package of the Makefile whose library has no licence here, and the other way round. */
TEST(each_linked_package_has_a_row_and_a_version)
{
	size_t rows = 0, n;

	CHECK(library_packages_n > 20);
	for (size_t i = 0; i < library_packages_n; i++) {
		n = 0;
		for (size_t k = 0; k < libraries_n; k++)
			n += libraries[k].package && !strcmp(libraries[k].package, library_packages[i].name);
		if (n != 1)
			printf("%s has %zu rows\n", library_packages[i].name, n);
		CHECK_INT(n, 1);
	}
	for (size_t k = 0; k < libraries_n; k++) {
		rows += libraries[k].package != NULL;
		if (!libraries[k].package == !library_version(&libraries[k]))
			continue;
		printf("%s has no version\n", libraries[k].name);
		CHECK(false);
	}
	CHECK_INT(rows, library_packages_n);
}

/* "  NAME   VERSION" */
TEST(versions_as_text)
{
	char want[256];
	struct buf text = { 0 };
	size_t lines = 0;

	libraries_print_versions(&text, "program");
	snprintf(want, sizeof(want), "program, version " EPI_VERSION "%s%s%s%s%s\n",
		build_revision[0] ? " (revision " : "", build_revision, build_date[0] ? ", " : "",
		build_date, build_revision[0] ? ")" : "");
	CHECK(str_has_prefix(buf_str(&text), str_of(want)));
	for (size_t i = 0; i < text.len; i++)
		lines += text.ptr[i] == '\n';
	CHECK_INT(lines, library_packages_n + 1);
	for (size_t i = 0; i < libraries_n; i++) {
		if (!libraries[i].package)
			continue;
		snprintf(want, sizeof(want), "\n  %-22s %s\n", libraries[i].name,
			library_version(&libraries[i]));
		CHECK(str_find(buf_str(&text), str_of(want)) > 0);
	}
	buf_release(&text);
}

TEST(licences_as_text)
{
	struct buf text = { 0 };

	libraries_print_licenses(&text);
	for (size_t i = 0; i < libraries_n; i++)
		CHECK(str_find(buf_str(&text), str_of(libraries[i].copyright)) > 0);
	buf_release(&text);
}

TEST(versions_as_metrics)
{
	char want[256];
	struct buf text = { 0 };

	metrics_print(&text);
	snprintf(want, sizeof(want),
		"\nepimetheus_build_info{version=\"" EPI_VERSION "\",revision=\"%s\"} 1\n", build_revision);
	CHECK(str_find(buf_str(&text), str_of(want)) > 0);
	for (size_t i = 0; i < libraries_n; i++) {
		if (!libraries[i].package)
			continue;
		snprintf(want, sizeof(want),
			"\nepimetheus_library_info{library=\"%s\",package=\"%s\",version=\"%s\"} 1\n",
			libraries[i].name, libraries[i].package, library_version(&libraries[i]));
		CHECK(str_find(buf_str(&text), str_of(want)) > 0);
	}
	buf_release(&text);
}
