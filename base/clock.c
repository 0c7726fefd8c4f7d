#include "base/clock.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/metrics.h"
#include "base/quote.h"
#include "base/thread.h"

/* ---- clocks ---- */

/*
 * The kept time of day is the running clock plus an offset. NTP moves the system's clock and the
 * running one alike when it slews, so the offset changes by steps alone.
 */
METRIC_GAUGE(step_gauge, "epimetheus_clock_step_seconds",
	"How far the system's clock is ahead of the time that this process keeps.", NULL);

static const struct clock_source *clock_from; /* NULL: the machine's */
static _Atomic int64_t offset_ns; /* 0: not known yet */
static _Atomic int64_t step_ns, step_since_ns; /* the latter on the running clock */
static struct mutex look_lock = MUTEX_INIT;
static struct { /* look_lock */
	bool started;
	bool stepped; /* the system's clock does not agree */
	int64_t to_ns; /* if it stepped: its offset, and since when it has it, on the running clock */
	int64_t since_ns;
	bool refused; /* the system's time is not free */
} look;

static int64_t clock_read(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

int64_t clock_system_ns(void)
{
	return clock_from ? clock_from->system_ns() : clock_read(CLOCK_REALTIME);
}

int64_t clock_running_ns(void)
{
	return clock_from ? clock_from->running_ns() : clock_read(CLOCK_BOOTTIME);
}

int64_t clock_monotonic_ns(void)
{
	return clock_read(CLOCK_MONOTONIC);
}

int64_t clock_thread_ns(void)
{
	return clock_read(CLOCK_THREAD_CPUTIME_ID);
}

void clock_use(const struct clock_source *source)
{
	clock_from = source;
	atomic_store(&offset_ns, 0);
	atomic_store(&step_ns, 0);
	look = (typeof(look)){ 0 };
}

/* The first of all callers decides. */
static int64_t clock_offset_ns(void)
{
	int64_t known = atomic_load_explicit(&offset_ns, memory_order_relaxed), now;

	if (known)
		return known;
	now = clock_system_ns() - clock_running_ns();
	now += now == 0;
	return atomic_compare_exchange_strong(&offset_ns, &known, now) ? now : known;
}

int64_t clock_of_running_ns(int64_t running_ns)
{
	return running_ns + clock_offset_ns();
}

int64_t clock_now_ns(void)
{
	return clock_of_running_ns(clock_running_ns());
}

int64_t clock_step_ns(void)
{
	return atomic_load(&step_ns);
}

int64_t clock_step_since_ns(void)
{
	return clock_of_running_ns(atomic_load(&step_since_ns));
}

static void clock_take_over(int64_t offset)
{
	atomic_store(&offset_ns, offset + (offset == 0));
}

/* Logs with the kept time and the system's. */
static void clock_tell(const char *what, int64_t kept_ns, int64_t system_ns)
{
	struct buf kept = { 0 }, system = { 0 };

	time_print_rfc3339(&kept, kept_ns / NS_PER_MS * NS_PER_MS);
	time_print_rfc3339(&system, system_ns / NS_PER_MS * NS_PER_MS);
	log_warn("clock", what, LOG_STR("time", buf_str(&kept)), LOG_STR("system", buf_str(&system)));
	buf_release(&kept);
	buf_release(&system);
}

static bool clock_agrees(int64_t step)
{
	return step <= CLOCK_STEP_NS && step >= -CLOCK_STEP_NS;
}

/* True once the step to this offset held. */
static bool clock_step_held(int64_t offset, int64_t running_ns)
{
	int64_t moved = offset - look.to_ns;

	if (look.stepped && clock_agrees(moved))
		return running_ns - look.since_ns >= CLOCK_HOLD_NS;
	clock_tell("the system's clock made a step: it is taken over if it holds for 5m",
		running_ns + clock_offset_ns(), running_ns + offset);
	look.stepped = true;
	look.to_ns = offset;
	look.since_ns = running_ns;
	look.refused = false;
	return false;
}

/* From ts_ns on; it is to be free until the next look, too. */
static int64_t clock_free_from(clock_free_fn free_from, void *ctx, int64_t ts_ns)
{
	static const int64_t ahead_ns[] = { 0, 2 * CLOCK_STEP_NS };

	for (size_t i = 0; free_from && i < sizeof(ahead_ns) / sizeof(ahead_ns[0]); i++) {
		int64_t free_ns = free_from(ctx, ts_ns + ahead_ns[i]);

		if (free_ns > ts_ns + ahead_ns[i])
			return free_ns;
	}
	return ts_ns;
}

/* The system's clock agrees, is seen for the first time, or its step held. */
static void clock_follow(
	clock_free_fn free_from, void *ctx, int64_t running_ns, int64_t system_ns, bool agree)
{
	if (clock_free_from(free_from, ctx, system_ns) == system_ns) {
		if (!agree && look.started)
			clock_tell(
				"the system's clock is taken over", running_ns + clock_offset_ns(), system_ns);
		clock_take_over(system_ns - running_ns);
		look.stepped = look.refused = false;
		return;
	}
	if (!look.started)
		clock_take_over(system_ns - running_ns);
	if (!look.refused)
		clock_tell(
			"the system's clock is in a time whose profiles are sealed: it is not taken over",
			running_ns + clock_offset_ns(), system_ns);
	look.refused = look.stepped = true;
	look.to_ns = system_ns - running_ns;
	look.since_ns = running_ns - CLOCK_HOLD_NS;
}

static void clock_look_locked(clock_free_fn free_from, void *ctx)
{
	int64_t running_ns = clock_running_ns(), system_ns = clock_system_ns(), kept_ns, free_ns;
	int64_t offset = system_ns - running_ns, step = offset - clock_offset_ns();
	bool agree = clock_agrees(step);

	if (agree || !look.started || clock_step_held(offset, running_ns))
		clock_follow(free_from, ctx, running_ns, system_ns, agree);
	look.started = true;
	kept_ns = running_ns + clock_offset_ns();
	free_ns = clock_free_from(free_from, ctx, kept_ns);
	if (free_ns > kept_ns) {
		clock_tell("the time goes on after profiles that are sealed", free_ns, system_ns);
		clock_take_over(free_ns - running_ns);
	}
	step = offset - clock_offset_ns();
	if (clock_step_ns() == 0)
		atomic_store(&step_since_ns, running_ns);
	atomic_store(&step_ns, clock_agrees(step) ? 0 : step);
	metric_set(&step_gauge, NULL, (double)clock_step_ns() / NS_PER_S);
}

void clock_look(clock_free_fn free_from, void *ctx)
{
	mutex_lock(&look_lock);
	clock_look_locked(free_from, ctx);
	mutex_unlock(&look_lock);
}

/* ---- as text ---- */

static bool clock_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static size_t clock_digits(struct str s)
{
	size_t n = 0;

	while (n < s.len && clock_is_digit(s.ptr[n]))
		n++;
	return n;
}

static struct str clock_skip(struct str s, size_t n)
{
	return (struct str){ s.ptr + n, s.len - n };
}

/* Largest first: a duration names them in this order. */
static const struct {
	const char *name;
	int64_t ns;
	bool exact; /* printed only when nothing is left below it: 90d reads better than 12w6d */
} units[] = {
	{ "y", 365 * NS_PER_DAY, true },
	{ "w", 7 * NS_PER_DAY, true },
	{ "d", NS_PER_DAY, false },
	{ "h", NS_PER_HOUR, false },
	{ "m", NS_PER_MIN, false },
	{ "s", NS_PER_S, false },
	{ "ms", NS_PER_MS, false },
};
#define UNITS (sizeof(units) / sizeof(units[0]))

enum err_code duration_parse(struct str s, int64_t *out_ns, struct err *err)
{
	struct str rest = s, unit;
	uint64_t v, sum = 0;
	size_t next = 0, n, i;

	if (str_is(s, "0")) {
		*out_ns = 0;
		return ERR_OK;
	}
	if (s.len == 0)
		return err_set(err, ERR_INVALID, "empty duration string");
	while (rest.len) {
		n = clock_digits(rest);
		if (!n || !str_to_u64((struct str){ rest.ptr, n }, &v))
			goto bad;
		rest = clock_skip(rest, n);
		for (n = 0; n < rest.len && !clock_is_digit(rest.ptr[n]); n++)
			;
		if (!n)
			goto bad;
		unit = (struct str){ rest.ptr, n };
		rest = clock_skip(rest, n);
		for (i = 0; i < UNITS && !str_is(unit, units[i].name); i++)
			;
		if (i == UNITS)
			return err_set(
				err, ERR_INVALID, "unknown unit %s in duration %s", QUOTED(unit), QUOTED(s));
		if (i < next)
			goto bad;
		next = i + 1;
		if (__builtin_mul_overflow(v, (uint64_t)units[i].ns, &v) ||
			__builtin_add_overflow(sum, v, &sum) || sum > INT64_MAX)
			return err_set(err, ERR_INVALID, "duration out of range");
	}
	*out_ns = (int64_t)sum;
	return ERR_OK;
bad:
	return err_set(err, ERR_INVALID, "not a valid duration string: %s", QUOTED(s));
}

void duration_print(struct buf *out, int64_t ns)
{
	uint64_t left = (ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns) / NS_PER_MS * NS_PER_MS, v;
	size_t i;

	if (left == 0) {
		buf_add_cstr(out, "0s");
		return;
	}
	if (ns < 0)
		buf_add_char(out, '-');
	for (i = 0; i < UNITS && left; i++) {
		v = left / (uint64_t)units[i].ns;
		if (!v || (units[i].exact && left % (uint64_t)units[i].ns))
			continue;
		buf_add_u64(out, v);
		buf_add_cstr(out, units[i].name);
		left -= v * (uint64_t)units[i].ns;
	}
}

/*
 * Days since 1970-01-01 of a date in the proleptic Gregorian calendar, and back. Years are counted
 * from March, so that the leap day is the last of its year and (153 m + 2) / 5 gives the days
 * before month m.
 */
static int64_t clock_days_of(int64_t year, int month, int day)
{
	int64_t y = year - (month <= 2), m = (month + 9) % 12;
	int64_t era = (y >= 0 ? y : y - 399) / 400, of_era = y - era * 400;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * m + 2) / 5 + day -
		719469;
}

static void date_of(int64_t days, int64_t *year, int *month, int *day)
{
	int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097, of_era = z - era * 146097;
	int64_t y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * y + y / 4 - y / 100), m = (5 * of_year + 2) / 153;

	*day = (int)(of_year - (153 * m + 2) / 5 + 1);
	*month = (int)(m < 10 ? m + 3 : m - 9);
	*year = y + era * 400 + (*month <= 2);
}

static int clock_month_days(int64_t year, int month)
{
	static const int n[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return n[month - 1] + (month == 2 && leap);
}

struct date date_of_days(int64_t days)
{
	struct date d;

	date_of(days, &d.year, &d.month, &d.day);
	d.month_days = clock_month_days(d.year, d.month);
	d.of_year = (int)(days - clock_days_of(d.year, 1, 1)) + 1;
	d.of_week = (int)((days % 7 + 7 + 4) % 7); /* 1970 began on a Thursday */
	return d;
}

/* Takes n digits and then the byte `after` (0: none) off the front; false: not there. */
static bool clock_take_number(struct str *s, size_t n, char after, int *out)
{
	size_t i, len = n + (after != 0);

	if (s->len < len || clock_digits((struct str){ s->ptr, n }) != n ||
		(after && s->ptr[n] != after))
		return false;
	for (*out = 0, i = 0; i < n; i++)
		*out = *out * 10 + (s->ptr[i] - '0');
	*s = clock_skip(*s, len);
	return true;
}

/* The digits of a fraction as nanoseconds; those below a nanosecond are dropped. */
static int64_t clock_fraction_ns(const char *text, size_t n)
{
	int64_t ns = 0;
	size_t i;

	for (i = 0; i < 9; i++)
		ns = ns * 10 + (i < n ? text[i] - '0' : 0);
	return ns;
}

static bool clock_parse_rfc3339(struct str s, int64_t *sec, int64_t *ns)
{
	int year, month, day, hour, minute, second, zone_h = 0, zone_m = 0, sign = 0;
	size_t n;

	if (!clock_take_number(&s, 4, '-', &year) || !clock_take_number(&s, 2, '-', &month) ||
		!clock_take_number(&s, 2, 'T', &day) || !clock_take_number(&s, 2, ':', &hour) ||
		!clock_take_number(&s, 2, ':', &minute) || !clock_take_number(&s, 2, 0, &second))
		return false;
	*ns = 0;
	if (s.len && (s.ptr[0] == '.' || s.ptr[0] == ',')) {
		s = clock_skip(s, 1);
		if (!(n = clock_digits(s)))
			return false;
		*ns = clock_fraction_ns(s.ptr, n);
		s = clock_skip(s, n);
	}
	if (!str_is(s, "Z")) {
		if (!s.len || (s.ptr[0] != '+' && s.ptr[0] != '-'))
			return false;
		sign = s.ptr[0] == '+' ? 1 : -1;
		s = clock_skip(s, 1);
		if (!clock_take_number(&s, 2, ':', &zone_h) || !clock_take_number(&s, 2, 0, &zone_m) ||
			s.len)
			return false;
	}
	if (month < 1 || month > 12 || day < 1 || day > clock_month_days(year, month) || hour > 23 ||
		minute > 59 || second > 59 || zone_h > 23 || zone_m > 59)
		return false;
	*sec = clock_days_of(year, month, day) * 86400 + hour * 3600 + minute * 60 + second -
		sign * (zone_h * 3600 + zone_m * 60);
	return true;
}

/* Plain decimals are read digit by digit: a double would lose the nanoseconds of today. */
static bool clock_parse_decimal(struct str s, int64_t *sec, int64_t *ns)
{
	bool negative = s.len && s.ptr[0] == '-';
	size_t whole, part = 0;
	uint64_t v = 0;

	if (s.len && (s.ptr[0] == '-' || s.ptr[0] == '+'))
		s = clock_skip(s, 1);
	whole = clock_digits(s);
	*ns = 0;
	if (whole && (!str_to_u64((struct str){ s.ptr, whole }, &v) || v > INT64_MAX))
		v = INT64_MAX; /* out of range already */
	s = clock_skip(s, whole);
	if (s.len && s.ptr[0] == '.') {
		s = clock_skip(s, 1);
		part = clock_digits(s);
		*ns = clock_fraction_ns(s.ptr, part);
		s = clock_skip(s, part);
	}
	if (s.len || whole + part == 0)
		return false;
	*sec = negative ? -(int64_t)v : (int64_t)v;
	*ns = negative ? -*ns : *ns;
	return true;
}

/* "1.7e9", "0x1p30": the other forms of strconv.ParseFloat; "inf" and "nan" are no times. */
static bool clock_parse_float(struct str s, int64_t *sec, int64_t *ns)
{
	char text[64], *end;
	bool hex = s.len > 2 && memchr(s.ptr, 'x', 3);
	double v, whole;
	size_t i;

	if (!s.len || s.len >= sizeof(text))
		return false;
	for (i = 0; i < s.len; i++)
		if (!memchr("0123456789abcdefABCDEFxXpP.+-", s.ptr[i], 29))
			return false;
	memcpy(text, s.ptr, s.len);
	text[s.len] = '\0';
	v = strtod(text, &end);
	if (*end || end == text || !isfinite(v) || (hex && !strpbrk(text, "pP")))
		return false;
	v = modf(v, &whole);
	*ns = (int64_t)(round(v * 1e3) * 1e6); /* milliseconds, as Prometheus: no noise of the double */
	*sec = whole > 9e18 ? INT64_MAX : whole < -9e18 ? INT64_MIN : (int64_t)whole;
	return true;
}

enum err_code time_parse(struct str s, int64_t *out_ns, struct err *err)
{
	int64_t sec, ns, t;

	if (!clock_parse_decimal(s, &sec, &ns) && !clock_parse_float(s, &sec, &ns) &&
		!clock_parse_rfc3339(s, &sec, &ns))
		return err_set(err, ERR_INVALID, "cannot parse %s to a valid timestamp", QUOTED(s));
	if (__builtin_mul_overflow(sec, NS_PER_S, &t) || __builtin_add_overflow(t, ns, &t) ||
		t > TIME_MAX_NS || t < -TIME_MAX_NS)
		return err_set(
			err, ERR_INVALID, "time %s is out of range, 1823-11-12 to 2116-02-20", QUOTED(s));
	*out_ns = t;
	return ERR_OK;
}

void time_print_rfc3339(struct buf *out, int64_t ns)
{
	int64_t sec = ns / NS_PER_S, part = ns % NS_PER_S, days, year;
	int month, day, of_day;

	if (part < 0)
		part += NS_PER_S, sec--;
	days = sec / 86400;
	of_day = (int)(sec % 86400);
	if (of_day < 0)
		of_day += 86400, days--;
	date_of(days, &year, &month, &day);
	buf_printf(out, "%04lld-%02d-%02dT%02d:%02d:%02d.", (long long)year, month, day, of_day / 3600,
		of_day / 60 % 60, of_day % 60);
	if (part % NS_PER_MS == 0)
		buf_printf(out, "%03d", (int)(part / NS_PER_MS));
	else
		buf_printf(out, part % NS_PER_US ? "%09d" : "%06d",
			(int)(part % NS_PER_US ? part : part / NS_PER_US));
	buf_add_char(out, 'Z');
}

/* "B" is 0, "KB" and "KiB" 1, ... "EB" and "EiB" 6: powers of 1024; -1: no unit. */
static int clock_bytes_unit(struct str s)
{
	static const char prefixes[] = "KMGTPE";
	const char *p;

	if (str_is(s, "B"))
		return 0;
	if (s.len < 2 || !(p = memchr(prefixes, s.ptr[0], sizeof(prefixes) - 1)))
		return -1;
	s = clock_skip(s, 1);
	return str_is(s, "B") || str_is(s, "iB") ? (int)(p - prefixes) + 1 : -1;
}

enum err_code bytes_parse(struct str s, uint64_t *out, struct err *err)
{
	struct str rest = s, unit;
	uint64_t sum = 0, v, part;
	size_t whole, point, n;
	double fraction;
	int power;

	if (rest.len && rest.ptr[0] == '+')
		rest = clock_skip(rest, 1);
	if (str_is(rest, "0")) {
		*out = 0;
		return ERR_OK;
	}
	if (!rest.len)
		goto bad;
	while (rest.len) {
		whole = clock_digits(rest);
		v = 0;
		if (whole && !str_to_u64((struct str){ rest.ptr, whole }, &v))
			goto bad;
		rest = clock_skip(rest, whole);
		fraction = 0;
		point = 0;
		if (rest.len && rest.ptr[0] == '.') {
			rest = clock_skip(rest, 1);
			point = clock_digits(rest);
			fraction = (double)clock_fraction_ns(rest.ptr, point) / 1e9;
			rest = clock_skip(rest, point);
		}
		if (whole + point == 0)
			goto bad;
		for (n = 0; n < rest.len && rest.ptr[n] != '.' && !clock_is_digit(rest.ptr[n]); n++)
			;
		unit = (struct str){ rest.ptr, n };
		rest = clock_skip(rest, n);
		if (!n)
			return err_set(
				err, ERR_INVALID, "units: %s needs a unit: B, KB, MB, GB, TB, PB or EB", QUOTED(s));
		if ((power = clock_bytes_unit(unit)) < 0)
			return err_set(
				err, ERR_INVALID, "units: unknown unit %s in %s", QUOTED(unit), QUOTED(s));
		part = (uint64_t)(fraction * (double)(UINT64_C(1) << (10 * power)));
		if (__builtin_mul_overflow(v, UINT64_C(1) << (10 * power), &v) ||
			__builtin_add_overflow(v, part, &v) || __builtin_add_overflow(sum, v, &sum) ||
			sum > INT64_MAX)
			return err_set(err, ERR_INVALID, "units: %s is out of range", QUOTED(s));
	}
	*out = sum;
	return ERR_OK;
bad:
	return err_set(err, ERR_INVALID, "units: invalid %s", QUOTED(s));
}
