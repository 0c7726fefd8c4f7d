/*
 * Profiles drawn at random, with what the format has: inlining, recursion, binaries without names,
 * pruning, negative values, one name for several functions.
 */
#ifndef TESTS_DRAW_H
#define TESTS_DRAW_H

#include "proto/pprof.h"

struct draw {
	uint64_t state;
};

static inline uint32_t draw(struct draw *d, uint32_t below)
{
	d->state = d->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(d->state >> 33) % below;
}

static inline uint32_t draw_function(struct pprof_builder *b, struct draw *d)
{
	static const char *const names[] = { "main.a", "main.b", "main.c", "main.(*T).d",
		"rt.alloc(int)", "rt.free", "", "std::x<int>::y()", "main.e", "main.f" };
	static const char *const files[] = { "a.go", "/x/b.go", "" };
	uint32_t name = draw(d, 10);

	return pprof_builder_function(b,
		&(struct pprof_function){ .name = pprof_builder_string(b, str_of(names[name])),
			.filename = pprof_builder_string(b, str_of(files[draw(d, 3)])),
			/* the tool leaves the order of two nodes without name that differ in this
			   to chance */
			.start_line = names[name][0] ? draw(d, 3) * 7 : 0 });
}

static inline struct pprof *draw_profile(struct arena *a, struct draw *d, struct err *err)
{
	static const char *const units[] = { "nanoseconds", "bytes", "count", "milliseconds",
		"widgets" };
	uint32_t mapping[3], location[24], stack[8], funcs[12], n;
	struct pprof_line lines[3];
	struct pprof_builder *b;
	struct pprof *p = NULL;
	int64_t value;

	if (pprof_builder_open(a, &b, err))
		return NULL;
	pprof_builder_type(b, STR("cost"), str_of(units[draw(d, 5)]));
	for (uint32_t i = 0; i < 3; i++)
		mapping[i] = i == 2 ? PPROF_NONE :
							  pprof_builder_mapping(b,
								  &(struct pprof_mapping){ .start = (i + 1) << 20,
									  .limit = (i + 2) << 20,
									  .has_functions = true,
									  .filename = pprof_builder_string(
										  b, i ? STR("/lib/libx.so.1") : STR("/bin/demo")) });
	for (uint32_t i = 0; i < 12; i++)
		funcs[i] = draw_function(b, d);
	for (uint32_t i = 0; i < 24; i++) {
		n = draw(d, 4);
		for (uint32_t k = 0; k < n; k++)
			lines[k] = (struct pprof_line){ funcs[draw(d, 12)], draw(d, 100), 0 };
		location[i] = pprof_builder_location(b,
			(struct pprof_location){
				.address = (i % 2 + 1u) * (1u << 20) + i * 16, .mapping = mapping[i % 3] },
			lines, n);
	}
	for (uint32_t i = 0; i < 60; i++) {
		n = draw(d, 8);
		for (uint32_t k = 0; k < n; k++)
			stack[k] = location[draw(d, 24)];
		value = (int64_t)draw(d, 1000) * (draw(d, 2) ? 1000003 : 17);
		if (draw(d, 9) == 0)
			value = -value;
		struct pprof_label label = { .key = pprof_builder_string(b, STR("id")), .num = i + 1 };

		pprof_builder_sample(b, stack, n, &label, 1, &value);
	}
	if (draw(d, 2))
		pprof_builder_profile(b)->drop_frames = pprof_builder_string(b, STR("rt\\..*|main.e"));
	if (draw(d, 2))
		pprof_builder_profile(b)->keep_frames = pprof_builder_string(b, STR("rt.free"));
	if (draw(d, 2))
		pprof_builder_profile(b)->duration_nanos = draw(d, 1000000000);
	pprof_builder_comment(b, STR("drawn"));
	pprof_builder_comment(b, STR("#hidden"));
	return pprof_builder_finish(b, &p, err) ? NULL : p;
}

#endif
