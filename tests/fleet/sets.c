#include "tests/fleet/fleet.h"

/*
 * The named sets. Where the numbers come from stands in README.md: fleet-cpu and the levels are
 * fitted to the demo program and scaled, heavy-tailed-cpu to what a busy Go server showed.
 */
/* clang-format off */
const struct fleet_params fleet_sets[] = {
	{ .name = "fleet-cpu", .kind = FLEET_CPU, .seed = 1, .interval_ns = INT64_C(10000000000),
	  .stacks = 20500, .replaced = 0.01, .zipf_s = 1.0, .zipf_q = 6, .draws = 800, .daily = 0.3,
	  .mix = 1.0, .depth_mean = 14, .depth_deviation = 5, .new_nodes = 3, .functions = 1500,
	  .inlined = 0.25, .labelled = 0.0, .label_sets = 0, .sets_per_stack = 1 },
	{ .name = "heavy-tailed-cpu", .kind = FLEET_CPU, .seed = 2,
	  .interval_ns = INT64_C(10000000000), .stacks = 120000, .replaced = 0.01, .zipf_s = 1.0,
	  .zipf_q = 2, .draws = 663, .daily = 0.3, .mix = 0.5, .depth_mean = 16,
	  .depth_deviation = 6, .new_nodes = 4, .functions = 4000, .inlined = 0.25 },
	{ .name = "heap", .kind = FLEET_HEAP, .seed = 3, .interval_ns = INT64_C(10000000000),
	  .stacks = 4000, .replaced = 0.01, .zipf_s = 1.1, .zipf_q = 4, .daily = 0.3, .mix = 1.0,
	  .depth_mean = 15, .depth_deviation = 6, .new_nodes = 4, .functions = 1200,
	  .inlined = 0.25, .labelled = 1.0, .label_sets = 60, .sets_per_stack = 1, .rate_max = 40,
	  .started = 0.5, .kept = 0.3 },
	{ .name = "goroutine", .kind = FLEET_GOROUTINE, .seed = 4,
	  .interval_ns = INT64_C(10000000000), .stacks = 120, .replaced = 0.01, .zipf_s = 1.0,
	  .zipf_q = 1, .mix = 1.0, .depth_mean = 9, .depth_deviation = 3, .new_nodes = 4,
	  .functions = 200, .inlined = 0.25, .labelled = 0.4, .label_sets = 12,
	  .sets_per_stack = 3, .rate_max = 1, .started = 0.3, .kept = 1 },
	{ .name = "mutex", .kind = FLEET_MUTEX, .seed = 5, .interval_ns = INT64_C(10000000000),
	  .stacks = 60, .replaced = 0.01, .zipf_s = 1.5, .zipf_q = 1, .mix = 1.0, .depth_mean = 9,
	  .depth_deviation = 4, .new_nodes = 5, .functions = 200, .inlined = 0.25,
	  .rate_max = 50, .started = 0.1 },
	{ .name = "block", .kind = FLEET_BLOCK, .seed = 6, .interval_ns = INT64_C(10000000000),
	  .stacks = 120, .replaced = 0.01, .zipf_s = 1.5, .zipf_q = 1, .mix = 1.0,
	  .depth_mean = 9, .depth_deviation = 4, .new_nodes = 5, .functions = 200,
	  .inlined = 0.25, .rate_max = 300, .started = 0.1 },
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
