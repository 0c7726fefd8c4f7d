#include "tests/fleet/fleet.h"

/*
 * The named sets. Where the numbers come from stands in README.md: fleet-cpu and the levels are
 * fitted to the demo program and scaled, heavy-tailed-cpu to what a busy Go server showed.
 * small-cpu is not fitted: it is for very many series, each with little in it.
 */
/* clang-format off */
const struct fleet_params fleet_sets[] = {
	{ .name = "fleet-cpu", .kind = FLEET_CPU, .seed = 1, .interval_ns = INT64_C(10000000000),
	  .stacks = 20500, .replaced = 0.01, .zipf_s = 1.2, .zipf_q = 4, .draws = 930, .daily = 0.3,
	  .mix = 0.5, .depth_mean = 14, .depth_deviation = 6, .new_nodes = 2.2, .functions = 1500,
	  .shared = 4, .inlined = 0.2 },
	{ .name = "shown-cpu", .kind = FLEET_CPU, .seed = 1, .interval_ns = INT64_C(10000000000),
	  .stacks = 20500, .replaced = 0.01, .zipf_s = 1.2, .zipf_q = 4, .draws = 930, .daily = 0.3,
	  .mix = 0.5, .depth_mean = 14, .depth_deviation = 6, .new_nodes = 2.2, .functions = 1500,
	  .shared = 4, .inlined = 0.2, .shown = 0.3 },
	{ .name = "labelled-cpu", .kind = FLEET_CPU, .seed = 7,
	  .interval_ns = INT64_C(10000000000), .stacks = 20500, .replaced = 0.01, .zipf_s = 1.2,
	  .zipf_q = 4, .draws = 800, .daily = 0.3, .mix = 0.5, .depth_mean = 14,
	  .depth_deviation = 6, .new_nodes = 2.2, .functions = 1500, .shared = 4, .inlined = 0.2,
	  .labelled = 0.9, .label_sets = 24, .sets_per_stack = 3 },
	{ .name = "heavy-tailed-cpu", .kind = FLEET_CPU, .seed = 2,
	  .interval_ns = INT64_C(10000000000), .stacks = 120000, .replaced = 0.01, .zipf_s = 1.0,
	  .zipf_q = 2, .draws = 663, .daily = 0.3, .mix = 0.5, .depth_mean = 16,
	  .depth_deviation = 6, .new_nodes = 4, .functions = 4000, .shared = 5, .inlined = 0.25 },
	{ .name = "small-cpu", .kind = FLEET_CPU, .seed = 8, .interval_ns = INT64_C(10000000000),
	  .stacks = 200, .replaced = 0.01, .zipf_s = 1.0, .zipf_q = 2, .draws = 20, .daily = 0.3,
	  .mix = 0.5, .depth_mean = 9, .depth_deviation = 4, .new_nodes = 2.5, .functions = 150,
	  .shared = 2, .inlined = 0.2 },
	{ .name = "heap", .kind = FLEET_HEAP, .seed = 3, .interval_ns = INT64_C(10000000000),
	  .stacks = 3400, .replaced = 0.01, .zipf_s = 1.7, .zipf_q = 4, .daily = 0.3, .mix = 1.0,
	  .depth_mean = 12, .depth_deviation = 5, .new_nodes = 2.2, .functions = 1200, .shared = 4,
	  .inlined = 0.2, .labelled = 1.0, .label_sets = 66, .sets_per_stack = 1,
	  .rate_max = 4000, .started = 0.6, .kept = 0.45 },
	{ .name = "goroutine", .kind = FLEET_GOROUTINE, .seed = 4,
	  .interval_ns = INT64_C(10000000000), .stacks = 80, .replaced = 0.01, .zipf_s = 1.0,
	  .zipf_q = 1, .mix = 1.0, .depth_mean = 9, .depth_deviation = 4, .new_nodes = 5,
	  .functions = 150, .shared = 1, .inlined = 0.1, .labelled = 0.5, .label_sets = 16,
	  .sets_per_stack = 2, .rate_max = 150, .started = 0.3, .kept = 0.6 },
	{ .name = "mutex", .kind = FLEET_MUTEX, .seed = 5, .interval_ns = INT64_C(10000000000),
	  .stacks = 40, .replaced = 0.01, .zipf_s = 2.8, .zipf_q = 1, .mix = 1.0, .depth_mean = 9,
	  .depth_deviation = 5, .new_nodes = 5, .functions = 150, .shared = 1, .inlined = 0.25,
	  .rate_max = 600, .started = 0.3 },
	{ .name = "block", .kind = FLEET_BLOCK, .seed = 6, .interval_ns = INT64_C(10000000000),
	  .stacks = 40, .replaced = 0.01, .zipf_s = 2, .zipf_q = 1, .mix = 1.0,
	  .depth_mean = 7, .depth_deviation = 4, .new_nodes = 4.5, .functions = 90, .shared = 1,
	  .inlined = 0.1, .rate_max = 600, .started = 0.3 },
};
/* clang-format on */
const size_t fleet_sets_n = sizeof(fleet_sets) / sizeof(fleet_sets[0]);

const struct fleet_params *fleet_set(const char *name)
{
	for (size_t i = 0; i < fleet_sets_n; i++)
		if (!strcmp(fleet_sets[i].name, name))
			return &fleet_sets[i];
	return NULL;
}
