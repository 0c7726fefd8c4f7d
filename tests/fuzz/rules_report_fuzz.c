/*
 * fuzz: promql/rules
 * A report of rules as it is, and with the checksum that its bytes would have, so that what is
 * behind it is read too. What is read prints to bytes that read as the same again.
 */
#include "base/map.h"
#include "promql/rules/report.h"
#include "tests/fuzz/fuzz.h"

static void try(struct str text)
{
	struct buf once = { 0 }, twice = { 0 };
	struct rules_report r, s;
	struct arena a;
	struct err err;

	arena_init(&a, 64 << 20);
	if (rules_report_read(text, &a, &r, &err)) {
		require(err.code == ERR_CORRUPT || err.code == ERR_UNSUPPORTED || err.code == ERR_LIMIT);
	} else {
		rules_report_print(&once, &r.rules, r.host, r.written_ns, RULES_REPORT_BYTES_MAX);
		require(!rules_report_read(buf_str(&once), &a, &s, &err));
		require(rules_report_hash_rules(&r.rules) == rules_report_hash_rules(&s.rules));
		require(rules_report_hash_states(&r.rules) == rules_report_hash_states(&s.rules));
		rules_report_print(&twice, &s.rules, s.host, s.written_ns, RULES_REPORT_BYTES_MAX);
		require(str_eq(buf_str(&once), buf_str(&twice)));
		rules_report_fill(&s.rules, &r);
	}
	buf_release(&once);
	buf_release(&twice);
	arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf b = { 0 };

	try((struct str){ (const char *)data, size });
	buf_add(&b, data, size);
	buf_add_u64be(&b, hash_bytes(data, size, 0));
	try(buf_str(&b));
	buf_release(&b);
	return 0;
}
