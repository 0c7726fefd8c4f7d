/*
 * fuzz: tsdb/debuginfo/elf
 * An ELF file with small limits: all that is read of it lies within it or its limits, and the
 * index of its symbols can be opened.
 */
#include "tests/fuzz/fuzz.h"
#include "tsdb/debuginfo/elf/elf.h"
#include "tsdb/debuginfo/elf/symbols.h"

static const struct elf_limits limits = {
	.inflated_bytes_max = 16u << 20,
	.inflated_ratio_max = 256,
	.mini_bytes_max = 4u << 20,
	.mini_memory_max = 16u << 20,
};

static uint64_t sum(struct str s)
{
	uint64_t v = 0;

	for (size_t i = 0; i < s.len; i++)
		v += (unsigned char)s.ptr[i];
	return v;
}

static void check_symbols(struct elf *e)
{
	struct symindex_builder *b;
	struct symindex_location l;
	struct buf index = { 0 };
	struct err err = { 0 };
	struct symindex *x;

	require(!symindex_builder_open(&symindex_limits_default, &b, &err));
	if (elf_symbols_add(e, b, &err)) {
		require(err.msg[0]);
	} else {
		require(!symindex_finish(b, STR("id"), &index, &err));
		require(!symindex_open(buf_str(&index), &x, &err));
		symindex_find(x, 0x1000, &l, 1);
		symindex_close(x);
	}
	buf_release(&index);
	symindex_builder_close(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { ".debug_info", ".debug_line", ".symtab", ".text" };
	volatile uint64_t seen = 0;
	struct elf_link link;
	struct err err = { 0 };
	struct elf *e;
	struct str s;
	uint64_t v;

	if (elf_open_limited((struct str){ (const char *)data, size }, &limits, &e, &err)) {
		require(err.msg[0]);
		return 0;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!elf_section(e, names[i], &s, &err))
			seen += sum(s);
	seen += sum(elf_build_id(e)) + sum(elf_go_build_id(e)) + elf_content(e);
	if (elf_debug_link(e, &link))
		seen += sum(link.name);
	if (elf_alternative_link(e, &link))
		seen += sum(link.name) + sum(link.build_id);
	if (elf_address_at(e, 64, &v))
		require(elf_offset_at(e, v, &v));
	require(seen != UINT64_MAX); /* so that all was read */
	check_symbols(e);
	elf_close(e);
	return 0;
}
