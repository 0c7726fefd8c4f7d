/*
 * fuzz: tsdb/debuginfo/pclntab
 * An ELF file with Go's table of functions. What was read makes an index that opens.
 */
#include "tests/fuzz/fuzz.h"
#include "tsdb/debuginfo/pclntab/pclntab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symindex_builder *b = NULL;
	struct pclntab_stats stats;
	struct symindex *x = NULL;
	struct buf index = { 0 };
	struct err err = { 0 };
	struct elf *e = NULL;

	if (elf_open((struct str){ (const char *)data, size }, &e, &err) ||
		symindex_builder_open(&symindex_limits_default, &b, &err))
		goto done;
	if (pclntab_add(e, b, &stats, &err)) {
		require(err.msg[0]);
		goto done;
	}
	require(stats.found || !stats.functions);
	if (!symindex_finish(b, (struct str){ 0 }, &index, &err))
		require(!symindex_open(buf_str(&index), &x, &err));
done:
	symindex_close(x);
	buf_release(&index);
	symindex_builder_close(b);
	elf_close(e);
	return 0;
}
