#include "base/waiting.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

void waiting_init(struct waiting *w)
{
	memset(w, 0, sizeof(*w));
	mutex_init(&w->lock);
}

void waiting_release(struct waiting *w)
{
	mutex_destroy(&w->lock);
}

static void waiting_set(struct waiting *w, int64_t time_ns, const char *fmt, va_list ap)
{
	char text[WAITING_BYTES_MAX];

	vsnprintf(text, sizeof(text), fmt, ap);
	mutex_lock(&w->lock);
	if (strcmp(w->text, text) || w->time_ns != time_ns) {
		memcpy(w->text, text, sizeof(text));
		w->why[0] = '\0';
		w->since_ns = clock_monotonic_ns();
		w->time_ns = time_ns;
	}
	mutex_unlock(&w->lock);
}

void waiting_say(struct waiting *w, const char *fmt, ...)
{
	va_list ap;

	if (!w)
		return;
	va_start(ap, fmt);
	waiting_set(w, 0, fmt, ap);
	va_end(ap);
}

void waiting_say_time(struct waiting *w, int64_t time_ns, const char *fmt, ...)
{
	va_list ap;

	if (!w)
		return;
	va_start(ap, fmt);
	waiting_set(w, time_ns, fmt, ap);
	va_end(ap);
}

void waiting_say_why(struct waiting *w, const struct err *why)
{
	if (!w)
		return;
	mutex_lock(&w->lock);
	snprintf(w->why, sizeof(w->why), "%.*s", WAITING_BYTES_MAX - 1, why ? why->msg : "");
	mutex_unlock(&w->lock);
}

void waiting_print(struct waiting *w, struct buf *out)
{
	int64_t over_ns;

	if (!w)
		return;
	mutex_lock(&w->lock);
	over_ns = clock_monotonic_ns() - w->since_ns;
	buf_add_cstr(out, w->text[0] ? w->text : "the server is starting");
	if (w->time_ns > 0)
		buf_printf(out, ": %" PRId64 " s of %" PRId64 " s",
			(over_ns < w->time_ns ? over_ns : w->time_ns) / NS_PER_S, w->time_ns / NS_PER_S);
	if (w->why[0])
		buf_printf(out, "; %s", w->why);
	mutex_unlock(&w->lock);
}
