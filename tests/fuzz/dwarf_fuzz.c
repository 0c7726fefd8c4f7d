/*
 * fuzz: tsdb/debuginfo/dwarf
 * A whole ELF file, also as its own dwz file, or a bundle of one, its .dwo files and packages. What
 * was read makes an index that opens.
 */
#include "tests/fuzz/fuzz.h"
#include "tsdb/debuginfo/dwarf/dwarf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str bytes = { (const char *)data, size };
	struct symindex_builder *b = NULL;
	struct elf *e = NULL, *alt = NULL;
	struct symindex *x = NULL;
	struct dwarf_stats stats;
	struct bundle bundle;
	struct buf index = { 0 };
	struct err err = { 0 };

	if (bundle_open(bytes, &bundle, &err))
		bundle.files_n = 0;
	if (elf_open(bundle.binary, &e, &err) || elf_open(bundle.binary, &alt, &err))
		goto done;
	if (symindex_builder_open(&symindex_limits_default, &b, &err))
		goto done;
	if (dwarf_add(e, size & 1 ? alt : NULL, &bundle, b, &stats, &err)) {
		require(err.msg[0]);
		goto done;
	}
	require(!(stats.units_damaged + stats.files_damaged) || stats.first_error.msg[0]);
	require(stats.units_split_found <= stats.units_split);
	if (!symindex_finish(b, (struct str){ 0 }, &index, &err))
		require(!symindex_open(buf_str(&index), &x, &err));
done:
	symindex_close(x);
	buf_release(&index);
	symindex_builder_close(b);
	elf_close(e);
	elf_close(alt);
	return 0;
}
