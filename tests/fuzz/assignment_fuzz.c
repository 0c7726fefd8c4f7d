/*
 * fuzz: tsdb/cluster/assignment
 * An assignment of any bytes; its checksum is made right, so that more than the checksum is tried.
 * What is read is printed and reads back the same, and each key has an owner.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/map.h"
#include "tests/fuzz/fuzz.h"
#include "tsdb/cluster/assignment/assignment_rule.h"

static void assignment_fuzz_owners(const struct assignment *s)
{
	struct assignment_rule *rule;
	struct str shard;
	struct err err;

	require(!assignment_rule_new(s, STR("a"), NULL, 0, &rule, &err));
	for (uint64_t key = 0; key < 4; key++) {
		require(assignment_owner(assignment_newest(s), key) < assignment_newest(s)->n);
		require(assignment_at(s, (int64_t)key) != NULL);
		(void)assignment_rule_whose(rule, key, &shard);
		require(shard.len);
	}
	assignment_rule_unref(rule);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str bytes = { (const char *)data, size };
	struct buf text = { 0 }, out = { 0 }, again = { 0 };
	struct assignment s;
	struct err err = { 0 };
	struct arena a;

	arena_init(&a, 0);
	buf_add_str(&text, bytes);
	buf_printf(&text, "\"checksum\":\"%016" PRIx64 "\"}\n", hash_bytes(bytes.ptr, bytes.len, 0));
	if (assignment_parse(bytes, &a, &s, &err))
		require(err.msg[0]);
	if (!assignment_parse(buf_str(&text), &a, &s, &err)) {
		require(s.number && s.versions_n && assignment_newest(&s)->number == s.number);
		assignment_fuzz_owners(&s);
		assignment_print(&out, &s);
		require(!assignment_parse(buf_str(&out), &a, &s, &err));
		assignment_print(&again, &s);
		require(str_eq(buf_str(&out), buf_str(&again)));
	}
	buf_release(&text);
	buf_release(&out);
	buf_release(&again);
	arena_release(&a);
	return 0;
}
