/* Which refusals the log has, and that all are counted. */
#include "scrape/receive/refusals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "tests/check.h"

#define START (INT64_C(1000) * NS_PER_S)

static const struct err invalid = { ERR_INVALID, "bad" }, limit = { ERR_LIMIT, "much" };

/* Profiles of the line that the log has; 0: it has none. */
static uint64_t line(
	struct refusals *r, const char *sender, const struct err *why, uint64_t n, int64_t after_s)
{
	const struct refusal f = { str_of(sender), STR("/p"), n, why->code, why };
	uint64_t profiles = 0;

	return refusals_is_due(r, &f, START + after_s * NS_PER_S, &profiles) ? profiles : 0;
}

TEST(a_sender_and_reason_have_a_line_a_minute)
{
	struct refusals r;

	refusals_init(&r);
	CHECK_INT(line(&r, "a", &invalid, 2, 0), 2);
	CHECK_INT(line(&r, "a", &invalid, 3, 1), 0);
	CHECK_INT(line(&r, "a", &limit, 5, 2), 5);
	CHECK_INT(line(&r, "b", &invalid, 7, 3), 7);
	CHECK_INT(line(&r, "a", &invalid, 4, 59), 0);
	CHECK_INT(line(&r, "a", &invalid, 1, 60), 8); /* with those since the last line */
	CHECK_INT(line(&r, "a", &invalid, 1, 61), 0);
	refusals_release(&r);
}

TEST(all_senders_have_so_many_lines_a_minute)
{
	char sender[16];
	struct refusals r;
	uint64_t lines = 0;

	refusals_init(&r);
	for (int i = 0; i < 10 * (int)REFUSALS_REMEMBERED; i++) {
		snprintf(sender, sizeof(sender), "%d", i);
		lines += line(&r, sender, &invalid, 1, 0);
	}
	CHECK_INT(lines, REFUSALS_LINES_PER_MINUTE);
	CHECK_INT(line(&r, "later", &invalid, 1, 59), 0);
	CHECK_INT(line(&r, "later", &invalid, 1, 60), 2);
	refusals_release(&r);
}

static double counted(const char *reason)
{
	struct buf text = { 0 };
	char row[128];
	const char *at;
	double n = 0;

	metrics_print(&text);
	buf_add_char(&text, '\0');
	snprintf(row, sizeof(row), "epimetheus_ingest_refused_profiles_total{reason=\"%s\"} ", reason);
	if ((at = strstr(text.ptr, row)))
		n = atof(at + strlen(row));
	buf_release(&text);
	return n;
}

TEST(each_is_counted_by_reason)
{
	const struct refusal f = { STR("a"), STR("/p"), 3, ERR_INVALID, &invalid };
	double before = counted("invalid input");
	struct refusals r;

	refusals_init(&r);
	refusals_add(&r, &f);
	refusals_add(&r, &f);
	CHECK_INT((int)(counted("invalid input") - before), 6);
	refusals_release(&r);
}
