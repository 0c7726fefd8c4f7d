/*
 * fuzz: cmd
 *
 * Any bytes as a file of `epitool test rules`: decoded or refused within the limits, and all that
 * is decoded can be read. Lines are tried as values, metrics and stacks too, which in a file only
 * well-formed YAML would reach.
 */
#include "cmd/epitool/test_rules/file.c"
#include "cmd/epitool/test_rules/notation.c"
#include "cmd/epitool/test_rules/print.c"
#include "tests/fuzz/fuzz.h"

#define FUZZ_MEMORY ((size_t)256 << 20)

static void read_all(const struct test_file *f)
{
	struct buf out = { 0 };

	for (size_t i = 0; i < f->tests_n; i++) {
		const struct test_group *g = &f->tests[i];

		for (size_t k = 0; k < g->series_n; k++)
			test_print_labels(&out, g->series[k].labels);
		for (size_t k = 0; k < g->profiles_n; k++) {
			const struct test_profiles *p = &g->profiles[k];

			for (size_t j = 1; j < p->at_n; j++)
				if (p->at_ns[j] < p->at_ns[j - 1])
					abort();
			for (size_t j = 0; j < p->stacks_n; j++)
				if (!p->stacks[j].frames_n || !p->stacks[j].values.n)
					abort();
		}
		for (size_t k = 0; k < g->alerts_n; k++)
			test_print_alerts(&out, g->alerts[k].v, g->alerts[k].n);
		for (size_t k = 0; k < g->exprs_n; k++)
			test_print_samples(&out, g->exprs[k].v, g->exprs[k].n);
	}
	buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	struct test_values values;
	struct test_stack stack;
	struct test_file *f;
	struct labels labels;
	struct arena a;
	struct err err;

	arena_init(&a, FUZZ_MEMORY);
	if (!test_file_parse(&a, "fuzz.yml", text, &f, &err))
		read_all(f);
	arena_reset(&a);
	if (!test_values_parse(&a, text, &values, &err) && values.n > TEST_VALUES_MAX)
		abort();
	if (!test_metric_parse(&a, text, &labels, &err))
		for (size_t i = 1; i < labels.n; i++)
			if (str_cmp(labels.v[i - 1].name, labels.v[i].name) >= 0)
				abort();
	if (!test_stack_parse(&a, text, &stack, &err) && stack.frames_n > TEST_FRAMES_MAX)
		abort();
	arena_release(&a);
	return 0;
}
