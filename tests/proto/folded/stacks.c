#include "tests/proto/folded/stacks.h"

#include <inttypes.h>
#include <stdlib.h>

static int by_bytes(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static void add_stack(const struct pprof *p, uint32_t sample, struct buf *out)
{
	const struct pprof_sample *s = &p->samples[sample];

	for (uint32_t k = s->location_n; k > 0; k--) {
		const struct pprof_location *l = &p->locations[p->location_ids[s->location_first + k - 1]];

		if (k < s->location_n)
			buf_add_char(out, ';');
		buf_add_str(out, p->strings[p->functions[p->lines[l->line_first].function].name]);
	}
	buf_printf(out, " %" PRId64, p->values[sample]);
}

void print_stacks(const struct pprof *p, const char *end, struct buf *out)
{
	struct str *lines = calloc((size_t)p->samples_n + 1, sizeof(*lines));
	struct arena a;

	if (!lines)
		abort();
	arena_init(&a, 0);
	for (uint32_t i = 0; i < p->samples_n; i++) {
		struct buf line = { 0 };

		add_stack(p, i, &line);
		lines[i] = str_dup(&a, buf_str(&line));
		buf_release(&line);
	}
	qsort(lines, p->samples_n, sizeof(*lines), by_bytes);
	for (uint32_t i = 0; i < p->samples_n; i++) {
		buf_add_str(out, lines[i]);
		buf_add_cstr(out, end);
	}
	arena_release(&a);
	free(lines);
}
