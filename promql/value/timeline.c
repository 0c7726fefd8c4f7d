#include "promql/value/timeline.h"

int64_t timeline_shifted(const struct timeline *times, const struct time_shift *shift, int64_t t_ns)
{
	int64_t t = shift->at == AT_TIME ? shift->at_ns :
		shift->at == AT_START        ? times->start_ns :
		shift->at == AT_END          ? times->end_ns :
									   t_ns;

	if (__builtin_sub_overflow(t, shift->offset_ns, &t))
		return shift->offset_ns > 0 ? INT64_MIN : INT64_MAX;
	return t;
}

struct time_window selector_window(
	const struct timeline *times, const struct selector *s, int64_t t_ns)
{
	struct time_window w = { .max_ns = timeline_shifted(times, &s->shift, t_ns) };
	int64_t width = s->window_ns;

	if (width == 0) {
		width = times->mode == EVAL_SPAN ? times->end_ns - times->start_ns :
			times->mode == EVAL_RANGE    ? times->step_ns :
										   times->lookback_ns;
		w.latest = times->mode == EVAL_INSTANT;
	}
	if (__builtin_sub_overflow(w.max_ns, width, &w.min_ns))
		w.min_ns = INT64_MIN;
	return w;
}
