#include "base/self/starting.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

void starting_init(struct starting *start)
{
	memset(start, 0, sizeof(*start));
	mutex_init(&start->lock);
}

void starting_release(struct starting *start)
{
	mutex_destroy(&start->lock);
}

static void starting_set(struct starting *start, int64_t time_ns, const char *fmt, va_list ap)
{
	char text[STARTING_BYTES_MAX];

	vsnprintf(text, sizeof(text), fmt, ap);
	mutex_lock(&start->lock);
	if (strcmp(start->text, text) || start->time_ns != time_ns) {
		memcpy(start->text, text, sizeof(text));
		start->why[0] = '\0';
		start->since_ns = clock_monotonic_ns();
		start->time_ns = time_ns;
	}
	mutex_unlock(&start->lock);
}

void starting_say(struct starting *start, const char *fmt, ...)
{
	va_list ap;

	if (!start)
		return;
	va_start(ap, fmt);
	starting_set(start, 0, fmt, ap);
	va_end(ap);
}

void starting_say_time(struct starting *start, int64_t time_ns, const char *fmt, ...)
{
	va_list ap;

	if (!start)
		return;
	va_start(ap, fmt);
	starting_set(start, time_ns, fmt, ap);
	va_end(ap);
}

void starting_say_why(struct starting *start, const struct err *why)
{
	if (!start)
		return;
	mutex_lock(&start->lock);
	snprintf(start->why, sizeof(start->why), "%.*s", STARTING_BYTES_MAX - 1, why ? why->msg : "");
	mutex_unlock(&start->lock);
}

void starting_print(struct starting *start, struct buf *out)
{
	int64_t over_ns;

	if (!start)
		return;
	mutex_lock(&start->lock);
	over_ns = clock_monotonic_ns() - start->since_ns;
	buf_add_cstr(out, start->text[0] ? start->text : "the server is starting");
	if (start->time_ns > 0)
		buf_printf(out, ": %" PRId64 " s of %" PRId64 " s",
			(over_ns < start->time_ns ? over_ns : start->time_ns) / NS_PER_S,
			start->time_ns / NS_PER_S);
	if (start->why[0])
		buf_printf(out, "; %s", start->why);
	mutex_unlock(&start->lock);
}
