/*
 * fuzz: tsdb
 * A page of symbols as a damaged disk could hand it out, into a partition that has a few: what it
 * refers to is there, or it is refused. First byte: its kind.
 */
#include "tests/fuzz/fuzz.h"
#include "tsdb/block/block_internal.h"

static struct partition *partition(void)
{
	static const struct symbol_limits limits = { 1 << 20, 1 << 20, 1 << 20, 1 << 28 };
	struct sym_line line = { 0, 7, 0 };
	struct partition *p;
	uint32_t id = 0;

	if (partition_open(STR("job"), 1, 0, &limits, &p, NULL))
		abort();
	for (uint32_t i = 0; i < 8; i++) {
		char name[2] = { (char)('a' + i), 0 };

		if (sym_intern_string(p, str_of(name), &id, NULL) ||
			sym_intern_mapping(p, &(struct sym_mapping){ .filename = id }, &id, NULL) ||
			sym_intern_function(
				p, &(struct sym_function){ .name = i + 1, .start_line = i }, &id, NULL) ||
			sym_intern_location(p,
				&(struct sym_location){ .address = i, .mapping = 0, .lines_n = 1, .lines = &line },
				&id, NULL) ||
			sym_intern_node(p, i, id, &id, NULL))
			abort();
	}
	return p;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum sym_kind kind = size ? data[0] % (SYM_KINDS - 1) + 1 : SYM_STRING;
	struct symbol_page page = { 0 };
	struct partition *p = partition();
	struct arena scratch;
	uint64_t loaded = 0;

	arena_init(&scratch, 256 << 20);
	if (size &&
		!symbol_page_unpack(&page, kind, (struct str){ (const char *)data + 1, size - 1 }, NULL)) {
		(void)!symbol_page_load(&page, p, kind, p->next[kind], 1 << 16, &scratch, &loaded, NULL);
		if (loaded > page.n)
			abort();
	}
	for (uint32_t id = 1; kind == SYM_NODE && id < 64; id++)
		if (sym_exists(p, SYM_NODE, id) &&
			(sym_node(p, id).parent >= id ||
				!sym_exists(p, SYM_LOCATION, sym_node(p, id).location)))
			abort();
	partition_close(p);
	arena_release(&scratch);
	symbol_page_release(&page);
	return 0;
}
