/*
 * fuzz: tsdb/debuginfo/dwarf
 * An ELF file with skeletons, a .dwo or a .dwp file: the names and ids of its split units.
 */
#include "tests/fuzz/fuzz.h"
#include "tsdb/debuginfo/dwarf/split_names.h"

#define IDS_MAX 1000

static enum err_code see_split(void *ctx, const struct dwarf_split *s, struct err *err)
{
	size_t *bytes = ctx;

	require(s->name.len > 0);
	for (size_t i = 0; i < s->name.len; i++)
		*bytes += s->name.ptr[i] != '/';
	for (size_t i = 0; i < s->folder.len; i++)
		*bytes += s->folder.ptr[i] != '/';
	return ERR_OK;
}

static enum err_code see_id(void *ctx, uint64_t id, struct err *err)
{
	size_t *n = ctx;

	return ++*n > IDS_MAX ? err_set(err, ERR_LIMIT, "too many") : ERR_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf *e;
	struct err err = { 0 };
	size_t n = 0;

	if (elf_open_split((struct str){ (const char *)data, size }, &elf_limits_default, &e, &err))
		return 0;
	require(!dwarf_each_split(e, see_split, &n, &err) || err.msg[0]);
	n = 0;
	require(!dwarf_each_split_id(e, see_id, &n, &err) || err.msg[0]);
	require(n <= IDS_MAX + 1);
	elf_close(e);
	return 0;
}
