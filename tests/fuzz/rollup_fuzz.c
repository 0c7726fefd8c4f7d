/*
 * fuzz: tsdb
 * Rollups as a damaged disk could hand them out: parsing and reading stays within the bytes; what a
 * builder takes in as a whole comes out as a rollup that says the same again. The partition has so
 * many symbols that most ids of small rollups are there.
 */
#include "tests/fuzz/fuzz.h"
#include "tsdb/rollup/rollup_internal.h"

static struct partition *p;
static struct rollup_builder *builder;
static struct rollup_view *view;

static void prepare(void)
{
	const struct symbol_limits limits = { 10000, 10000, 10000, 1 << 26 };
	struct sym_type types[3] = { { .kind = KIND_DELTA }, { .kind = KIND_GAUGE },
		{ .kind = KIND_DELTA } };
	uint32_t id, function;

	require(!partition_open(STR("job"), 0, 0, &limits, &p, NULL));
	require(!sym_intern_string(p, STR("f"), &id, NULL));
	require(!sym_intern_function(p, &(struct sym_function){ .name = id }, &function, NULL));
	for (uint32_t i = 0; i < 3; i++) {
		require(!sym_intern_string(
			p, (struct str){ (const char[]){ (char)('a' + i) }, 1 }, &types[i].type, NULL));
		require(!sym_intern_header(
			p, &(struct sym_header){ .types = types, .types_n = i + 1 }, &id, NULL));
	}
	for (uint32_t i = 0; i < 1000; i++) {
		struct sym_line line = { function, i, 0 };

		require(!sym_intern_location(p,
			&(struct sym_location){
				.address = i, .mapping = SYM_NONE, .lines = &line, .lines_n = i % 2 },
			&id, NULL));
		require(!sym_intern_node(p, i / 2, id, &id, NULL));
	}
	for (uint32_t i = 1; i < 8; i++) {
		struct sym_label label = { .key = 1, .num = i };
		bool overflow;

		require(
			!sym_intern_label_set(p, &(struct sym_label_set){ &label, 1 }, &id, &overflow, NULL));
	}
	require(!rollup_builder_open(p, &builder, NULL));
	require((view = rollup_view_open()) != NULL);
}

static void check_again(void)
{
	struct buf first = { 0 }, second = { 0 }, functions = { 0 };
	struct rollup_function *v;
	bool any;
	size_t n;

	require(!rollup_builder_encode(builder, &first, NULL));
	require(!rollup_parse(view, buf_str(&first), NULL));
	if (!rollup_builder_encode_functions(builder, &functions, &any, NULL) && any) {
		require(!rollup_functions_parse(view, buf_str(&functions), NULL));
		for (uint32_t c = 0; c < rollup_columns_n(view); c++)
			require(!rollup_functions(view, c, &v, &n, NULL));
		require(!rollup_parse(view, buf_str(&first), NULL));
	}
	rollup_builder_clear(builder);
	require(!rollup_builder_add(builder, view, NULL));
	require(!rollup_builder_encode(builder, &second, NULL));
	require(str_eq(buf_str(&first), buf_str(&second)));
	buf_release(&first);
	buf_release(&second);
	buf_release(&functions);
}

static void read_cells(void)
{
	struct bits stacks = { 0 }, sets = { 0 };
	struct accum *acc;

	/* Ids are bounded by what a partition has before they size anything else. */
	if (rollup_stack_max(view, NULL) >= 1u << 20)
		return;
	if (!rollup_mark_ids(view, &stacks, NULL, NULL))
		for (uint32_t c = 0; c < rollup_columns_n(view); c++) {
			require(!accum_open(
				p, c % 2 ? ACCUM_WEIGHTED | ACCUM_BY_LABELS : ACCUM_WEIGHTED, &acc, NULL));
			if (!rollup_add(view, c, acc, NULL))
				require(rollup_column(view, c)->headers_n > 0);
			accum_close(acc);
		}
	bits_release(&stacks);
	bits_release(&sets);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str bytes = { (const char *)data, size };
	struct rollup_function *v;
	size_t n;

	if (!p)
		prepare();
	if (!rollup_functions_parse(view, bytes, NULL))
		for (uint32_t c = 0; c < rollup_columns_n(view); c++)
			if (!rollup_functions(view, c, &v, &n, NULL))
				require(n == 0 || v != NULL);
	if (rollup_parse(view, bytes, NULL))
		return 0;
	read_cells();
	rollup_builder_clear(builder);
	if (!rollup_builder_add(builder, view, NULL))
		check_again();
	return 0;
}
