/*
 * fuzz: promql/rules/saved
 * A file of saved rules of any bytes, as they are and with a checksum that fits: what is read is
 * printed again, and reads back the same. And a rule that somebody sends.
 */
#include <inttypes.h>

#include "base/map.h"
#include "promql/rules/rules.h"
#include "promql/rules/saved/saved_rules.h"
#include "tests/fuzz/fuzz.h"

#define CHECKSUM_BYTES 16u

/* Whatever can be read can be printed; a second time it is the same file. */
static void try_file(struct str bytes)
{
	struct saved_version v, again;
	struct buf once = { 0 }, twice = { 0 };
	struct err err = { 0 };
	struct arena a;

	arena_init(&a, 64u << 20);
	if (saved_version_parse(bytes, &a, &v, &err)) {
		require(err.msg[0]);
		goto end;
	}
	require(v.groups_n <= SAVED_GROUPS_MAX && v.changed_ns >= 0);
	saved_version_print(&v, &once);
	require(!saved_version_parse(buf_str(&once), &a, &again, &err));
	require(again.version == v.version && again.groups_n == v.groups_n);
	require(str_eq(again.user, v.user) && str_eq(again.change, v.change));
	for (size_t i = 0; i < v.groups_n; i++)
		require(str_eq(again.groups[i].name, v.groups[i].name) &&
			str_eq(again.groups[i].text, v.groups[i].text) &&
			str_eq(again.groups[i].user, v.groups[i].user));
	saved_version_print(&again, &twice);
	require(str_eq(buf_str(&once), buf_str(&twice)));
end:
	buf_release(&once);
	buf_release(&twice);
	arena_release(&a);
}

/* The head of a file up to its checksum, which is then made to fit. */
static void try_checked(struct str body)
{
	const struct saved_version none = { 0 };
	struct buf file = { 0 };

	saved_version_print(&none, &file);
	file.len = (size_t)str_find(buf_str(&file), STR("checksum=")) + strlen("checksum=");
	buf_printf(&file, "%016" PRIx64, hash_bytes(body.ptr, body.len, 0));
	buf_add_str(&file, body);
	try_file(buf_str(&file));
	buf_release(&file);
}

/* A group that is taken is one that the file can hold. */
static void try_sent(struct str sent)
{
	const struct rules_load l = { .interval_ns = 1000000000 };
	struct saved_group g;
	struct saved_version v = { .version = 1, .groups = &g, .groups_n = 1 };
	struct buf file = { 0 };
	struct rule_set *set;
	struct err err = { 0 };
	struct arena a;

	arena_init(&a, 64u << 20);
	if (saved_group_read(sent, &a, &g, &err)) {
		require(err.msg[0]);
	} else {
		saved_version_print(&v, &file);
		try_file(buf_str(&file));
		/* The server checks the whole file again: YAML has no form for some characters. */
		if (!rule_set_load_text("saved", buf_str(&file), &l, &set, &err)) {
			require(set->groups_n == 1 && str_eq(set->groups[0].name, g.name));
			rule_set_unref(set);
		}
	}
	buf_release(&file);
	arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str bytes = { (const char *)data, size };

	try_file(bytes);
	try_checked(bytes);
	try_sent(bytes);
	return 0;
}
