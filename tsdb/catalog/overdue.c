#include "tsdb/catalog/overdue.h"

#include "base/log.h"

bool overdue_is(int64_t end_ns, int64_t cut_ns)
{
	return end_ns <= cut_ns - OVERDUE_NS;
}

void overdue_add(struct overdue *o, int64_t last_ns)
{
	o->n++;
	o->until_ns = o->until_ns > last_ns ? o->until_ns : last_ns;
}

bool overdue_hold(struct overdue_wait *w, const struct overdue *o)
{
	int64_t running_ns = clock_running_ns();
	bool waited = overdue_waits(w);

	if (!o->n || (waited && running_ns - w->since_ns >= CLOCK_HOLD_NS)) {
		w->since_ns = 0;
		return false;
	}
	if (!waited)
		w->since_ns = running_ns;
	return !waited;
}

bool overdue_waits(const struct overdue_wait *w)
{
	return w->since_ns != 0;
}

int64_t overdue_since_ns(const struct overdue_wait *w)
{
	return clock_of_running_ns(w->since_ns);
}

void overdue_tell(const char *component, const struct overdue *o)
{
	struct buf until = { 0 };

	time_print_rfc3339(&until, o->until_ns);
	log_warn(component, "much " OVERDUE_WHY ": it is dropped in 5m", LOG_I("blocks", o->n),
		LOG_STR("until", buf_str(&until)));
	buf_release(&until);
}
