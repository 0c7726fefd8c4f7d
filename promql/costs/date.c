/*
 * Parts of a date.
 *
 * Source: Go's package time, for what becomes of numbers that are no time.
 */
#include <math.h>

#include "base/clock.h"
#include "promql/costs/costs.h"

#define DAY_S 86400

double date_part(enum function_id fn, double seconds)
{
	/* NaN and what is too great are the time 2^63, as Go converts them on x86. */
	bool fits = fabs(seconds) < 0x1p63;
	int64_t s = fits ? (int64_t)seconds : INT64_MAX;
	int64_t days = s / DAY_S - (s % DAY_S < 0), of_day = s - days * DAY_S + !fits;
	struct date d = date_of_days(days);

	switch (fn) {
	case FN_MINUTE:
		return (double)(of_day / 60 % 60);
	case FN_HOUR:
		return (double)(of_day / 3600);
	case FN_DAY_OF_WEEK:
		return d.of_week;
	case FN_DAY_OF_MONTH:
		return d.day;
	case FN_DAY_OF_YEAR:
		return d.of_year;
	case FN_DAYS_IN_MONTH:
		return d.month_days;
	case FN_MONTH:
		return d.month;
	default:
		return (double)d.year;
	}
}
