/*
 * fuzz: proto/report
 * Reports of hostile profiles: the first bytes choose the options, the rest is a profile. Without
 * itself as a base nothing is left of it, and a report of both is never a fault. What is said of
 * paths holds: cleaning them twice is cleaning them once.
 */
#include "proto/report/frame_text.h"
#include "proto/report/pprof_base.h"
#include "proto/report/pprof_top.h"
#include "tests/fuzz/fuzz.h"

#define ARENA_BYTES (64u << 20)
#define CHOICES 4u /* bytes in front of the profile */

static struct pprof_options options_of(const uint8_t *data)
{
	static const char *const units[] = { "minimum", "auto", "ms", "MB", "x" };
	struct pprof_options o = pprof_options_default;

	o.granularity = data[0] % 5;
	o.sort = data[0] >> 7;
	o.noinlines = data[1] & 1;
	o.drop_negative = data[1] & 2;
	o.relative_percentages = data[1] & 4;
	o.showcolumns = data[1] & 8;
	o.trim = !(data[1] & 16);
	o.tagroot = data[1] & 32    ? STR("handler,bytes,a") : STR("");
	o.tagleaf = data[1] & 64    ? STR("bytes") : STR("");
	o.trim_path = data[1] & 128 ? STR("/usr:src/::") : STR("");
	o.source_path = STR("/home/src:");
	o.nodecount = data[2] % 8;
	o.nodefraction = (double)(data[2] >> 4) / 15;
	o.divide_by = data[3] & 1 ? 1 : 0.001 * (data[3] + 1);
	o.unit = str_of(units[data[3] % 5]);
	return o;
}

static void check_paths(const struct pprof *p, struct arena *a)
{
	for (uint32_t i = 0; i < p->functions_n && i < 64; i++) {
		struct str path = p->strings[p->functions[i].filename], once, twice;

		if (!frame_file_clean(a, path, &once) || !frame_file_clean(a, once, &twice))
			return;
		require(str_eq(once, twice) && once.len <= path.len);
	}
}

static void check_base(const struct pprof *p, uint32_t type, const uint8_t *data, struct arena *a,
	const struct pprof_top_options *top, struct buf *out)
{
	const struct pprof_base_options o = { data[3] & 2, data[3] & 4 };
	struct pprof_top_options of_left = *top;
	const struct pprof_side side = { p, type };
	struct pprof *left;
	struct err err;

	if (pprof_without_base(side, side, &o, a, &left, &err))
		return;
	require(left->types_n == 1);
	require(o.diff_base || o.normalize || left->samples_n == 0);
	of_left.type = 0;
	(void)!pprof_top_print(left, &of_left, a, out, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pprof_limits limits = pprof_limits_default;
	struct pprof_options options;
	struct pprof_top_options top = { .options = &options };
	struct buf out = { 0 };
	struct pprof *p;
	struct arena a;
	struct str raw;
	struct err err;

	if (size < CHOICES)
		return 0;
	limits.samples_max = limits.elements_max = 4096;
	options = options_of(data);
	arena_init(&a, ARENA_BYTES);
	raw = (struct str){ (const char *)data + CHOICES, size - CHOICES };
	if (!pprof_inflate(&a, raw, &limits, &raw, &err) && !pprof_decode(&a, raw, &limits, &p, &err) &&
		p->types_n > 0) {
		top.type = data[0] % p->types_n;
		check_paths(p, &a);
		(void)!pprof_top_print(p, &top, &a, &out, &err);
		check_base(p, top.type, data, &a, &top, &out);
	}
	buf_release(&out);
	arena_release(&a);
	return 0;
}
