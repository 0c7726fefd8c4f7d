/* The manifest of a backup: what it says, and what is refused. */
#include "cmd/epitool/backup/backup_manifest.h"

#include <stdio.h>

#include "base/net/sigv4.h"
#include "tests/check.h"

#define NAME "20261129T114636Z-2f2f8d9f"
#define HEAD "epimetheus-backup 1\nname " NAME "\nsource shop-1:/data\nfindings 0\n"
#define HASH_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HASH_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static struct err err;

/* The text with its last line. */
static void manifest_end(const char *text, struct buf *out)
{
	char hash[SIGV4_HASH_LEN + 1];

	buf_clear(out);
	buf_add_cstr(out, text);
	sigv4_hash(buf_str(out), hash);
	buf_printf(out, "end %s\n", hash);
}

TEST(what_is_printed_reads_the_same)
{
	struct backup_file files[] = {
		{ STR("blocks/01ARZ3NDEKTSV4RRFFQ69G5FAV/meta.json"), 12, 1795891000123456789, 77, HASH_A },
			{ STR("senders.json"), UINT64_MAX, 0, UINT64_MAX, HASH_B },
		};
	const struct backup_manifest m = { STR(NAME), STR("shop-1:/data"), 3, files, 2 };
	struct buf text = { 0 }, again = { 0 };
	struct backup_manifest got;
	struct arena a;

	arena_init(&a, 0);
	backup_manifest_print(&m, &text);
	REQUIRE_OK(backup_manifest_parse(buf_str(&text), STR(NAME), &a, &got, &err), &err);
	CHECK_STR(got.source, "shop-1:/data");
	CHECK_INT(got.findings, 3);
	REQUIRE(got.files_n == 2);
	CHECK_INT(got.files[0].modified_ns, 1795891000123456789);
	CHECK(backup_manifest_find(&got, STR("senders.json")) == &got.files[1]);
	CHECK(!backup_manifest_find(&got, STR("senders.jso")));
	backup_manifest_print(&got, &again);
	CHECK(str_eq(buf_str(&text), buf_str(&again)));
	/* Whatever byte is missing or another: it is refused. */
	for (size_t i = 0; i < text.len; i++) {
		CHECK(backup_manifest_parse((struct str){ text.ptr, i }, STR(NAME), &a, &got, &err) ==
			ERR_CORRUPT);
		text.ptr[i] ^= 1;
		CHECK(backup_manifest_parse(buf_str(&text), STR(NAME), &a, &got, &err) == ERR_CORRUPT);
		text.ptr[i] ^= 1;
	}
	buf_release(&text);
	buf_release(&again);
	arena_release(&a);
}

TEST(what_is_refused)
{
	static const struct {
		const char *text;
		enum err_code rc;
		const char *message;
	} cases[] = {
		{ HEAD "file " HASH_A " 1 2 3 ids\n", ERR_OK, "" },
		{ HEAD, ERR_OK, "" },
		{ "epimetheus-backup 2\nanything", ERR_UNSUPPORTED,
			"version 2 was written by a newer program; this one reads version 1" },
		{ "epimetheus-backup 0\n", ERR_CORRUPT, "line 1: it is no version" },
		{ "", ERR_CORRUPT, "line 0: it is not what belongs here" },
		{ "epimetheus-backup 1\nname 20261129T114636Z-2f2f8d90\nsource a\nfindings 0\n",
			ERR_CORRUPT, "it is that of backup \"20261129T114636Z-2f2f8d90\"" },
		{ "epimetheus-backup 1\nname " NAME "\nsource a\nfindings 00\n", ERR_CORRUPT,
			"line 4: it is no number, or too long" },
		{ "epimetheus-backup 1\nname " NAME "\nsource a\tb\nfindings 0\n", ERR_CORRUPT,
			"line 3: a source that does not print" },
		{ HEAD "file " HASH_A " 1 2 3 ../ids\n", ERR_CORRUPT,
			"line 5: a path that no data directory has" },
		{ HEAD "file " HASH_A " 1 2 3 /etc/passwd\n", ERR_CORRUPT,
			"line 5: a path that no data directory has" },
		{ HEAD "file " HASH_A " 1 2 3 a/../../b\n", ERR_CORRUPT,
			"line 5: a path that no data directory has" },
		{ HEAD "file " HASH_A " 1 2 3 \n", ERR_CORRUPT,
			"line 5: a path that no data directory has" },
		{ HEAD "file " HASH_A " 1 2 3 b\nfile " HASH_A " 1 2 3 a\n", ERR_CORRUPT,
			"line 6: paths do not ascend" },
		{ HEAD "file " HASH_A " 1 2 3 b\nfile " HASH_A " 1 2 3 b\n", ERR_CORRUPT,
			"line 6: paths do not ascend" },
		{ HEAD "file A" HASH_A " 1 2 3 b\n", ERR_CORRUPT, "line 5: it is no file" },
		{ HEAD "file " HASH_A " -1 2 3 b\n", ERR_CORRUPT, "line 5: it is no file" },
		{ HEAD "file " HASH_A " 1 9223372036854775808 3 b\n", ERR_CORRUPT,
			"line 5: it is no file" },
		{ HEAD "dir a\n", ERR_CORRUPT, "line 5: it is not what belongs here" },
		{ HEAD "file " HASH_A " 1 2 3 a", ERR_CORRUPT, "line 4: it is not what belongs here" },
	};
	struct backup_manifest m;
	struct buf text = { 0 };
	struct arena a;

	arena_init(&a, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		err.msg[0] = '\0';
		manifest_end(cases[i].text, &text);
		CHECK_ERR(backup_manifest_parse(buf_str(&text), STR(NAME), &a, &m, &err), &err, cases[i].rc,
			cases[i].message);
	}
	CHECK_ERR(backup_manifest_parse(STR(HEAD), STR(NAME), &a, &m, &err), &err, ERR_CORRUPT,
		"it is cut short");
	buf_release(&text);
	arena_release(&a);
}

TEST(names)
{
	static const char *const wrong[] = { "", "20261129T114636Z-2f2f8d9", NAME "0",
		"20261129T114636Z-2f2f8d9g", "20261129T114636Z_2f2f8d9f", "2026112aT114636Z-2f2f8d9f" };
	char a[BACKUP_NAME_LEN + 1], b[BACKUP_NAME_LEN + 1];

	CHECK(backup_name_is_valid(STR(NAME)));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(!backup_name_is_valid(str_of(wrong[i])));
	backup_name_make(a);
	backup_name_make(b);
	CHECK(backup_name_is_valid(str_of(a)));
	CHECK(strcmp(a, b) != 0);
}
