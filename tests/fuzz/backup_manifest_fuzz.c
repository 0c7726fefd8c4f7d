/*
 * fuzz: cmd
 * A backup's manifest as it is, and with the last line that its bytes would have, so that what is
 * behind the hash is read too. What is read prints to the same text, and no path leads out of the
 * directory into which it would be restored.
 */
#include "cmd/epitool/backup/backup_manifest.c"
#include "tests/fuzz/fuzz.h"

#define FUZZ_NAME STR("20261129T114636Z-2f2f8d9f")

/* Each part is a name of something in the directory before it. */
static bool manifest_path_stays_inside(struct str path)
{
	size_t start = 0;

	for (size_t i = 0; i <= path.len; i++) {
		if (i < path.len && path.ptr[i] != '/')
			continue;
		if (i == start || str_is((struct str){ path.ptr + start, i - start }, "..") ||
			str_is((struct str){ path.ptr + start, i - start }, "."))
			return false;
		start = i + 1;
	}
	return true;
}

static void manifest_try(struct str text)
{
	struct backup_manifest m;
	struct buf again = { 0 };
	struct arena a;
	struct err err;

	arena_init(&a, 64 << 20);
	if (backup_manifest_parse(text, FUZZ_NAME, &a, &m, &err)) {
		require(err.code == ERR_CORRUPT || err.code == ERR_UNSUPPORTED || err.code == ERR_LIMIT);
	} else {
		for (size_t i = 0; i < m.files_n; i++) {
			require(manifest_path_stays_inside(m.files[i].path));
			require(backup_manifest_find(&m, m.files[i].path) == &m.files[i]);
		}
		backup_manifest_print(&m, &again);
		require(str_eq(buf_str(&again), text));
	}
	buf_release(&again);
	arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char hash[SIGV4_HASH_LEN + 1];
	struct buf b = { 0 };

	manifest_try((struct str){ (const char *)data, size });
	buf_add(&b, data, size);
	sigv4_hash(buf_str(&b), hash);
	buf_printf(&b, END "%s\n", hash);
	manifest_try(buf_str(&b));
	buf_release(&b);
	return 0;
}
