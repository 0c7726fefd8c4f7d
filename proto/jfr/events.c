/*
 * The events of a chunk: first all checkpoints, then the settings, then those that are profiles.
 * An event is its size, its type (the id of a class) and its fields.
 */
#include <assert.h>
#include <stdio.h>

#include "base/array.h"
#include "proto/jfr/decoder.h"

struct jfr_event {
	uint32_t at; /* in the body */
	uint64_t type;
	struct cursor r; /* behind the type */
};

/* Reads the event at *at and moves *at behind it. */
static enum err_code jfr_next(struct jfr_chunk *c, uint32_t *at, struct jfr_event *e)
{
	uint64_t size;

	e->at = *at;
	e->r = jfr_cursor(c->d, *at, c->end);
	size = jfr_varint(&e->r);
	e->type = jfr_varint(&e->r);
	if (e->r.bad || size > c->end - *at)
		return jfr_value_fail(c, e->at, "an event");
	if (e->at + size < jfr_offset(c->d, &e->r)) {
		c->why = "its size does not hold its type";
		return jfr_value_fail(c, e->at, "an event");
	}
	e->r.end = (const unsigned char *)c->d->raw.ptr + e->at + size;
	*at += (uint32_t)size;
	return ERR_OK;
}

static enum err_code jfr_checkpoints(struct jfr_chunk *c)
{
	bool found = c->checkpoint_at == c->at;
	struct jfr_decoder *d = c->d;
	struct jfr_event e;
	enum err_code rc;

	for (uint32_t at = c->body; at < c->end;) {
		if ((rc = jfr_next(c, &at, &e)))
			return rc;
		if (++d->file.events_n > d->limits->events_max)
			return err_set(
				d->err, ERR_LIMIT, "recording of more than %u events", d->limits->events_max);
		if (e.type != 1)
			continue;
		found |= e.at == c->checkpoint_at;
		if ((rc = jfr_checkpoint(c, e.r)))
			return rc;
	}
	if (!found) {
		c->why = "is no checkpoint, but the header says so";
		return jfr_value_fail(c, c->checkpoint_at, "an event");
	}
	return jfr_pools_finish(c);
}

static enum err_code jfr_read_event(struct jfr_chunk *c, struct jfr_event *e,
	const struct jfr_class *class, struct jfr_value *values)
{
	char what[100];

	if (jfr_object(c, &e->r, class, values))
		return ERR_OK;
	snprintf(what, sizeof(what), "an event of " STR_FMT, STR_ARG(class->name));
	return jfr_value_fail(c, e->at, what);
}

/* "20 ms"; 0: "everyChunk" and the like, or too large. */
static uint64_t jfr_timespan_ns(struct str s)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = { { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 },
		{ "m", UINT64_C(60000000000) }, { "h", UINT64_C(3600000000000) },
		{ "d", UINT64_C(86400000000000) } };
	size_t digits = 0;
	uint64_t n;

	while (digits < s.len && s.ptr[digits] >= '0' && s.ptr[digits] <= '9')
		digits++;
	if (!str_to_u64((struct str){ s.ptr, digits }, &n))
		return 0;
	s = str_trim((struct str){ s.ptr + digits, s.len - digits });
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (str_is(s, units[i].name))
			return n <= INT64_MAX / units[i].ns ? n * units[i].ns : 0;
	return 0;
}

/*
 * The JDK names the period of its ExecutionSample. async-profiler names the interval of its event
 * and of wall, in nanoseconds; other events than those of time have an interval in counts.
 */
static enum err_code jfr_setting(
	struct jfr_chunk *c, struct jfr_event *e, const struct jfr_class *class)
{
	struct jfr_value values[SLOTS] = { 0 };
	struct jfr_decoder *d = c->d;
	struct str name, value;
	enum err_code rc;
	uint64_t n = 0;
	int64_t id = 0;
	uint32_t of;

	if ((rc = jfr_read_event(c, e, class, values)) ||
		(rc = jfr_text(c, class, SETTING_NAME, values, &name)) ||
		(rc = jfr_text(c, class, SETTING_VALUE, values, &value)))
		return rc;
	if (str_is(name, "event")) {
		d->event_is_wall = str_is(value, "wall");
		d->event_is_timed = d->event_is_wall || str_is(value, "cpu") || str_is(value, "itimer") ||
			str_is(value, "ctimer");
	}
	if (!jfr_number(c, class, values, SETTING_ID, &id))
		return ERR_OK;
	of = jfr_index_find(&c->by_id, (uint64_t)id);
	if (of == JFR_NONE)
		return ERR_OK;
	if (c->classes[of].role == ROLE_CPU_TIME && str_is(name, "enabled"))
		d->has_cpu_time |= str_is(value, "true");
	if (c->classes[of].role != ROLE_EXECUTION)
		return ERR_OK;
	/* Each recorder names one of the two; a file may have chunks of both recorders. */
	if (str_is(name, "period") && jfr_timespan_ns(value)) {
		d->period_ns = jfr_timespan_ns(value);
		d->interval_ns = 0;
	}
	if (str_is(name, "interval") && str_to_u64(value, &n) && n <= INT64_MAX) {
		d->interval_ns = n;
		d->period_ns = 0;
	}
	if (str_is(name, "wall") && str_to_u64(value, &n) && n <= INT64_MAX)
		d->wall_ns = n;
	return ERR_OK;
}

static uint64_t jfr_period(const struct jfr_decoder *d, enum jfr_cost cost)
{
	if (cost == COST_WALL && d->wall_ns)
		return d->wall_ns;
	if (cost == COST_EXECUTION && d->period_ns)
		return d->period_ns;
	if (d->interval_ns && (cost == COST_WALL ? d->event_is_wall : d->event_is_timed))
		return d->interval_ns;
	return 1000000000 / d->options->sample_rate_hz;
}

static enum err_code jfr_bad_value(
	struct jfr_chunk *c, const struct jfr_event *e, const struct jfr_class *class, const char *why)
{
	const struct jfr_field *f = &c->fields[class->field_of[EVENT_VALUE]];

	return err_set(c->d->err, ERR_INVALID,
		"chunk %u: an event of " STR_FMT " at byte %u: " STR_FMT " %s", c->number,
		STR_ARG(class->name), e->at, STR_ARG(f->name), why);
}

static enum err_code jfr_without_value(
	struct jfr_chunk *c, const struct jfr_class *class, int64_t *out)
{
	switch (class->role) {
	case ROLE_WALL: /* before async-profiler 4 */
		*out = 1;
		return ERR_OK;
	case ROLE_LIVE:
	case ROLE_OLD: /* of JDK 17 */
		*out = -1;
		return ERR_OK;
	default:
		return err_set(c->d->err, ERR_INVALID,
			"chunk %u: events of " STR_FMT " have no number to count", c->number,
			STR_ARG(class->name));
	}
}

/*
 * The number that an event counts, in nanoseconds if it is a time. -1: the objects of this recorder
 * have no size.
 */
static enum err_code jfr_value_of(struct jfr_chunk *c, const struct jfr_event *e,
	const struct jfr_class *class, const struct jfr_value *values, int64_t *out)
{
	const struct jfr_field *f;
	unsigned __int128 ns;

	if (!jfr_number(c, class, values, EVENT_VALUE, out))
		return jfr_without_value(c, class, out);
	if (*out < 0)
		return jfr_bad_value(c, e, class, "is negative");
	if (class->role != ROLE_MONITOR && class->role != ROLE_PARK && class->role != ROLE_CPU_TIME)
		return ERR_OK;
	f = &c->fields[class->field_of[EVENT_VALUE]];
	ns = (unsigned __int128)*out;
	if (str_is(f->timespan, "MICROSECONDS"))
		ns *= 1000;
	else if (str_is(f->timespan, "MILLISECONDS"))
		ns *= 1000000;
	else if (str_is(f->timespan, "SECONDS"))
		ns *= 1000000000;
	else if (!str_is(f->timespan, "NANOSECONDS"))
		ns = ns * 1000000000 / c->ticks_per_s;
	if (ns > INT64_MAX)
		return jfr_bad_value(c, e, class, "is too large");
	*out = (int64_t)ns;
	return ERR_OK;
}

struct jfr_sample {
	struct jfr_row_key key;
	bool truncated, without_stack;
};

static enum err_code jfr_add(
	struct jfr_decoder *d, struct jfr_sample *s, enum jfr_cost cost, int64_t count, int64_t value)
{
	struct jfr_profile *profile = &d->counts[jfr_profile_of(cost)];

	profile->events++;
	profile->truncated += s->truncated;
	profile->without_stack += s->without_stack;
	return jfr_row_add(d, &s->key, cost, count, value);
}

/* Samples of cpu or wall: n intervals. */
static enum err_code jfr_add_time(
	struct jfr_chunk *c, struct jfr_sample *s, enum jfr_cost cost, int64_t n)
{
	int64_t ns = (int64_t)jfr_period(c->d, cost), *first = &c->d->periods[cost], sum;

	if (!*first)
		*first = ns;
	if (__builtin_mul_overflow(n, ns, &sum))
		return err_set(c->d->err, ERR_INVALID, "chunk %u: %lld samples of %lld ns are too long",
			c->number, (long long)n, (long long)ns);
	return jfr_add(c->d, s, cost, sum, 0);
}

static enum err_code jfr_is_sleeping(
	struct jfr_chunk *c, const struct jfr_class *class, const struct jfr_value *values, bool *out)
{
	struct jfr_entry *e = jfr_find(c, class, EVENT_STATE, values);
	enum err_code rc;
	struct str state;

	*out = false;
	if (!e)
		return ERR_OK;
	if (c->classes[c->fields[class->field_of[EVENT_STATE]].class].role != ROLE_TEXT)
		return ERR_OK;
	if (!e->memo) {
		if ((rc = jfr_text(c, class, EVENT_STATE, values, &state)))
			return rc;
		e->memo = str_is(state, "STATE_SLEEPING") ? 2 : 1;
	}
	*out = e->memo == 2;
	return ERR_OK;
}

/* Labels and, if wanted, the span. */
static enum err_code jfr_correlate(struct jfr_chunk *c, const struct jfr_class *class,
	const struct jfr_value *values, struct jfr_sample *s)
{
	int64_t context = 0, span = 0, span_name = 0, high = 0, low = 0;
	struct jfr_decoder *d = c->d;
	enum err_code rc;
	bool lost;

	jfr_number(c, class, values, EVENT_CONTEXT, &context);
	if ((rc = jfr_context(d, (uint64_t)context, &s->key.labels, &lost)))
		return rc;
	d->file.labels_lost_n += lost;
	if (!d->options->with_spans)
		return ERR_OK;
	jfr_number(c, class, values, EVENT_SPAN, &span);
	jfr_number(c, class, values, EVENT_SPAN_NAME, &span_name);
	jfr_number(c, class, values, EVENT_TRACE_HIGH, &high);
	jfr_number(c, class, values, EVENT_TRACE_LOW, &low);
	s->key.span = (uint64_t)span;
	s->key.trace_high = (uint64_t)high;
	s->key.trace_low = (uint64_t)low;
	return span_name ? jfr_snapshot_name(d, (uint64_t)span_name, &s->key.span_name) : ERR_OK;
}

static enum err_code jfr_execution(struct jfr_chunk *c, const struct jfr_class *class,
	const struct jfr_value *values, struct jfr_sample *s)
{
	enum err_code rc;
	bool sleeping;

	if ((rc = jfr_is_sleeping(c, class, values, &sleeping)))
		return rc;
	c->d->file.sleeping_n += sleeping;
	if (!sleeping && (rc = jfr_add_time(c, s, COST_EXECUTION, 1)))
		return rc;
	/* async-profiler before 4 says wall with the same event. */
	return c->d->event_is_wall ? jfr_add_time(c, s, COST_WALL, 1) : ERR_OK;
}

/*
 * CPU time that a thread had since its sample before: mostly the period, more where the timer ran
 * out several times at once. A failed sample has no stack, but the time was spent.
 */
static enum err_code jfr_cpu_time(struct jfr_decoder *d, struct jfr_sample *s, int64_t ns)
{
	int64_t *least = &d->periods[COST_CPU];

	if (ns && (!*least || ns < *least))
		*least = ns;
	return jfr_add(d, s, COST_CPU, ns, 0);
}

static enum err_code jfr_cpu_lost(
	struct jfr_chunk *c, struct jfr_event *e, const struct jfr_class *class)
{
	struct jfr_value values[SLOTS] = { 0 };
	enum err_code rc;
	int64_t n;

	if ((rc = jfr_read_event(c, e, class, values)) || (rc = jfr_value_of(c, e, class, values, &n)))
		return rc;
	c->d->file.samples_lost_n += (uint64_t)n;
	return ERR_OK;
}

/*
 * The JDK writes all its old objects at each dump, and a file may have the chunks of earlier dumps.
 * They are a level, so the last dump counts: all its events have one time.
 */
static enum err_code jfr_old(struct jfr_chunk *c, const struct jfr_class *class,
	const struct jfr_value *values, const struct jfr_sample *s, int64_t bytes)
{
	struct jfr_decoder *d = c->d;
	int64_t start = 0;

	jfr_number(c, class, values, EVENT_START, &start);
	if (c->number != d->old_chunk || start > d->old_start) {
		d->old_n = 0;
		d->old_chunk = c->number;
		d->old_start = start;
	}
	if (start < d->old_start)
		return ERR_OK;
	if (!arena_array_room(&d->work, &d->old, d->old_n, 1, &d->old_cap))
		return arena_fail(&d->work, "old objects", d->err);
	d->old[d->old_n++] = (struct jfr_old){ s->key, bytes, s->truncated, s->without_stack };
	return ERR_OK;
}

static enum err_code jfr_sample(
	struct jfr_chunk *c, struct jfr_event *e, const struct jfr_class *class)
{
	struct jfr_value values[SLOTS] = { 0 };
	struct jfr_sample s = { 0 };
	enum err_code rc;
	int64_t value = 0;

	if ((rc = jfr_read_event(c, e, class, values)) ||
		(rc = jfr_stack_of(c, class, values, &s.key.stack, &s.truncated, &s.without_stack)) ||
		(rc = jfr_correlate(c, class, values, &s)))
		return rc;
	if (class->role != ROLE_EXECUTION && (rc = jfr_value_of(c, e, class, values, &value)))
		return rc;
	switch (class->role) {
	case ROLE_EXECUTION:
		return jfr_execution(c, class, values, &s);
	case ROLE_CPU_TIME:
		return jfr_cpu_time(c->d, &s, value);
	case ROLE_WALL:
		return jfr_add_time(c, &s, COST_WALL, value);
	case ROLE_IN_TLAB:
		return jfr_add(c->d, &s, COST_IN_TLAB, 1, value);
	case ROLE_OUT_TLAB:
		return jfr_add(c->d, &s, COST_OUT_TLAB, 1, value);
	case ROLE_ALLOC_SAMPLE:
		return jfr_add(c->d, &s, COST_ALLOC_SAMPLE, 1, value);
	case ROLE_MONITOR:
		return jfr_add(c->d, &s, COST_MUTEX, 1, value);
	case ROLE_PARK:
		return jfr_add(c->d, &s, COST_BLOCK, 1, value);
	case ROLE_LIVE:
		return jfr_add(c->d, &s, COST_LIVE, 1, value);
	case ROLE_OLD:
		return jfr_old(c, class, values, &s, value);
	default:
		assert(class->role == ROLE_MALLOC);
		return jfr_add(c->d, &s, COST_MALLOC, 1, value);
	}
}

static enum err_code jfr_of_role(struct jfr_chunk *c, bool settings)
{
	struct jfr_event e;
	enum err_code rc;

	for (uint32_t at = c->body; at < c->end;) {
		const struct jfr_class *class;
		uint32_t i;

		if ((rc = jfr_next(c, &at, &e)))
			return rc;
		if (e.type < 2 || (i = jfr_index_find(&c->by_id, e.type)) == JFR_NONE)
			continue;
		class = &c->classes[i];
		if (settings && class->role == ROLE_SETTING)
			rc = jfr_setting(c, &e, class);
		else if (!settings && class->role == ROLE_CPU_LOST)
			rc = jfr_cpu_lost(c, &e, class);
		else if (!settings && class->role >= ROLE_EVENT)
			rc = jfr_sample(c, &e, class);
		if (rc)
			return rc;
	}
	return ERR_OK;
}

enum err_code jfr_events(struct jfr_chunk *c)
{
	enum err_code rc;

	if ((rc = jfr_checkpoints(c)) || (rc = jfr_of_role(c, true)))
		return rc;
	return jfr_of_role(c, false);
}

enum err_code jfr_events_finish(struct jfr_decoder *d)
{
	enum err_code rc = ERR_OK;

	for (uint32_t i = 0; i < d->old_n && !rc; i++) {
		const struct jfr_old *o = &d->old[i];
		struct jfr_sample s = { o->key, o->truncated, o->without_stack };

		rc = jfr_add(d, &s, COST_OLD, 1, o->bytes);
	}
	return rc;
}
