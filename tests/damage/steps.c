/*
 * The system's clock of a trial's starts. In a quarter of the trials the second start finds it
 * minutes, hours or days ahead or behind, as after a flat battery. It is never before the data: of
 * profiles of the future each answer warns.
 */
#include "base/clock.h"
#include "base/map.h"
#include "tests/damage/damage.h"

#define STEPS_AFTER_DATA_NS (60 * NS_PER_DAY)

static int64_t steps_ahead, steps_began; /* running */

static int64_t steps_running(void)
{
	return clock_monotonic_ns();
}

static int64_t steps_system(void)
{
	return DATA_T0_S * NS_PER_S + STEPS_AFTER_DATA_NS + steps_ahead + steps_running() - steps_began;
}

int64_t steps_draw(uint64_t seed)
{
	static const int64_t steps[] = { NS_PER_MIN, 50 * NS_PER_MIN, 3 * NS_PER_HOUR, 26 * NS_PER_HOUR,
		3 * NS_PER_DAY, 40 * NS_PER_DAY };
	/* Apart from the trial's own numbers: a seed's damage stays what it was. */
	struct draw d = { .state = map_hash_u64(~seed) };
	int64_t step;

	if (draw(&d, 4))
		return 0;
	step = steps[draw(&d, sizeof(steps) / sizeof(steps[0]))];
	return draw(&d, 2) ? step : -step;
}

void steps_begin(int64_t ahead_ns)
{
	static const struct clock_source source = { steps_system, steps_running };

	steps_ahead = ahead_ns;
	steps_began = steps_running();
	clock_use(&source);
}
