/*
 * speedscope's files:
 *
 *	{ "$schema": "https://www.speedscope.app/file-format-schema.json",
 *	  "shared": { "frames": [ { "name": "main", "file": "a.c", "line": 3 } ] },
 *	  "profiles": [
 *	    { "type": "sampled", "name": "thread 1", "unit": "milliseconds", "startValue": 0,
 *	      "endValue": 5, "samples": [ [0, 1], [0] ], "weights": [ 2, 3 ] },
 *	    { "type": "evented", "name": "thread 2", "unit": "bytes", "startValue": 0, "endValue": 5,
 *	      "events": [ { "type": "O", "frame": 0, "at": 1 },
 *	        { "type": "C", "frame": 0, "at": 4 } ] } ] }
 *
 * Samples are stacks of frames, the root first. Events open and close frames; what passes between
 * two of them is of the frames that are open. A frame still open at the end is closed by endValue.
 * Members may come in any order, so they are found first and read then.
 */
#include <inttypes.h>
#include <math.h>

#include "base/array.h"
#include "proto/folded/calls.h"
#include "proto/json_reader.h"

struct folded_speedscope_frame {
	struct str name, file;
	int64_t line, column;
};

struct file {
	struct arena *a;
	struct json_reader json; /* all of it */
	const struct folded_meaning *meaning;
	const struct pprof_limits *limits;
	struct err *err;
	struct folded_speedscope_frame *frames;
	uint32_t frames_n, frames_cap;
	/* The location of a frame in the profile at hand, if `of` is its number. */
	uint32_t *locations, *of;
	struct folded_profile *profiles;
	uint32_t profiles_n, profiles_cap;
};

/* A profile's members, as spans; empty: not there. */
struct members {
	const char *begin; /* of the profile, for errors */
	struct str type, name, unit, start, end, samples, weights, events;
};

struct profile {
	struct file *f;
	struct calls calls;
	int64_t factor; /* from the file's unit to ours */
	int64_t scale; /* after that */
	double rest; /* what rounding has left of the values so far */
};

/* clang-format off */
static const struct {
	const char *name, *ours; /* ours NULL: as the caller says */
	int64_t factor;
} units[] = {
	{ "none", NULL, 1 },
	{ "nanoseconds", "nanoseconds", 1 },
	{ "microseconds", "nanoseconds", 1000 },
	{ "milliseconds", "nanoseconds", 1000000 },
	{ "seconds", "nanoseconds", 1000000000 },
	{ "bytes", "bytes", 1 },
};
/* clang-format on */

static enum err_code profile_too_large(struct profile *p)
{
	return err_set(p->f->err, ERR_INVALID, "a value has more than 64 bits");
}

/* A point on the axis, rounded. */
static enum err_code profile_point(struct profile *p, struct str span, int64_t *out)
{
	struct json_reader r = json_reader_at(&p->f->json, span);
	struct json_reader_number n;
	enum err_code rc;
	double d;

	if ((rc = json_reader_number(&r, &n)))
		return rc;
	if (n.is_integer)
		return __builtin_mul_overflow(n.i, p->factor, out) ? profile_too_large(p) : ERR_OK;
	d = round(n.d * (double)p->factor);
	if (!(fabs(d) < 0x1p63))
		return profile_too_large(p);
	*out = (int64_t)d;
	return ERR_OK;
}

/* A weight. What rounding takes from one is given to the next. */
static enum err_code profile_weight(struct profile *p, struct json_reader *r, int64_t *out)
{
	struct json_reader_number n;
	enum err_code rc;
	double d, whole;

	if ((rc = json_reader_number(r, &n)))
		return rc;
	if (n.d < 0)
		return json_reader_expected(r, n.at, "a weight that is not negative");
	if (n.is_integer)
		return __builtin_mul_overflow(n.i, p->factor, out) ? profile_too_large(p) : ERR_OK;
	d = n.d * (double)p->factor + p->rest;
	whole = floor(d + 0.5);
	if (!(whole < 0x1p63))
		return profile_too_large(p);
	p->rest = d - whole;
	*out = whole > 0 ? (int64_t)whole : 0;
	return ERR_OK;
}

/* The index of a frame, and its location in the profile at hand. */
static enum err_code profile_frame_at(
	struct profile *p, struct json_reader *r, uint32_t *index, uint32_t *location)
{
	struct json_reader_number n;
	struct file *f = p->f;
	enum err_code rc;

	if ((rc = json_reader_number(r, &n)))
		return rc;
	if (!n.is_integer || n.i < 0 || n.i >= f->frames_n)
		return json_reader_expected(r, n.at, "the index of a frame");
	*index = (uint32_t)n.i;
	if (f->of[*index] != f->profiles_n + 1) {
		const struct folded_speedscope_frame *frame = &f->frames[*index];

		if ((rc = calls_frame_at(&p->calls, frame->name, frame->file, frame->line, frame->column,
				 &f->locations[*index])))
			return rc;
		f->of[*index] = f->profiles_n + 1;
	}
	*location = f->locations[*index];
	return ERR_OK;
}

/* ------------------------------------------------------------------------------------------------
 * Sampled. */

static enum err_code profile_sample(struct profile *p, struct json_reader *r, int64_t value)
{
	uint32_t node = CALLS_ROOT, index, location;
	enum err_code rc = json_reader_open(r, '[');
	bool more = true;

	while (!rc && !(rc = json_reader_more(r, '[', &more)) && more)
		if (!(rc = profile_frame_at(p, r, &index, &location)))
			rc = calls_child(&p->calls, node, location, &node);
	return rc ? rc : calls_add(&p->calls, node, value, p->scale);
}

static enum err_code profile_sampled(struct profile *p, const struct members *m)
{
	struct json_reader samples = json_reader_at(&p->f->json, m->samples);
	struct json_reader weights = json_reader_at(&p->f->json, m->weights);
	bool more_samples, more_weights;
	int64_t amount = 0;
	enum err_code rc;

	if ((rc = json_reader_open(&samples, '[')) || (rc = json_reader_open(&weights, '[')))
		return rc;
	for (;;) {
		if ((rc = json_reader_more(&samples, '[', &more_samples)) ||
			(rc = json_reader_more(&weights, '[', &more_weights)))
			return rc;
		if (more_samples != more_weights)
			return err_set(p->f->err, ERR_INVALID, "more %s than %s",
				more_samples ? "samples" : "weights", more_samples ? "weights" : "samples");
		if (!more_samples)
			return ERR_OK;
		if ((rc = profile_weight(p, &weights, &amount)) ||
			(rc = profile_sample(p, &samples, amount)))
			return rc;
	}
}

/* ------------------------------------------------------------------------------------------------
 * Evented. */

struct open_frames {
	struct open_frame {
		uint32_t index, node;
	} * v;
	uint32_t n, cap;
	int64_t last; /* when the last event was */
};

static uint32_t open_frames_innermost(const struct open_frames *o)
{
	return o->n ? o->v[o->n - 1].node : CALLS_ROOT;
}

/* What passed since the last event is of the frames that are open; without any it is of nobody. */
static enum err_code profile_pass(struct profile *p, struct open_frames *o, int64_t at)
{
	int64_t passed;

	if (at < o->last)
		return err_set(p->f->err, ERR_INVALID, "events are not in the order of time");
	if (__builtin_sub_overflow(at, o->last, &passed))
		return profile_too_large(p);
	o->last = at;
	return o->n ? calls_add(&p->calls, open_frames_innermost(o), passed, p->scale) : ERR_OK;
}

static enum err_code profile_event(struct profile *p, struct json_reader *r, struct open_frames *o)
{
	struct str key, value, type = { 0 }, frame = { 0 }, time = { 0 };
	struct json_reader frame_at;
	uint32_t index, location, node;
	const char *begin;
	int64_t at;
	enum err_code rc;
	bool more;

	if ((rc = json_reader_open(r, '{')))
		return rc;
	begin = r->at - 1;
	while (!(rc = json_reader_member(r, &key, &value, &more)) && more) {
		if (json_reader_is(key, "type"))
			type = value;
		else if (json_reader_is(key, "frame"))
			frame = value;
		else if (json_reader_is(key, "at"))
			time = value;
	}
	if (rc)
		return rc;
	if (!frame.len || !time.len || !(json_reader_is(type, "O") || json_reader_is(type, "C")))
		return json_reader_expected(r, begin, "an event with type \"O\" or \"C\", frame, at");
	frame_at = json_reader_at(r, frame);
	if ((rc = profile_point(p, time, &at)) || (rc = profile_pass(p, o, at)) ||
		(rc = profile_frame_at(p, &frame_at, &index, &location)))
		return rc;
	if (json_reader_is(type, "C")) {
		if (!o->n || o->v[o->n - 1].index != index)
			return json_reader_expected(r, begin, "the close of the frame opened last");
		o->n--;
		return ERR_OK;
	}
	if ((rc = calls_child(&p->calls, open_frames_innermost(o), location, &node)))
		return rc;
	if (!arena_array_room(p->f->a, &o->v, o->n, 1, &o->cap))
		return arena_fail(p->f->a, "profile", p->f->err);
	o->v[o->n++] = (struct open_frame){ index, node };
	return ERR_OK;
}

static enum err_code profile_evented(struct profile *p, const struct members *m)
{
	struct json_reader events = json_reader_at(&p->f->json, m->events);
	struct open_frames o = { 0 };
	int64_t end;
	enum err_code rc;
	bool more;

	if ((m->start.len && (rc = profile_point(p, m->start, &o.last))) ||
		(rc = json_reader_open(&events, '[')))
		return rc;
	while (!(rc = json_reader_more(&events, '[', &more)) && more)
		if ((rc = profile_event(p, &events, &o)))
			return rc;
	if (rc || !o.n)
		return rc;
	if (!m->end.len)
		return err_set(p->f->err, ERR_INVALID, "%" PRIu32 " frames are open at the end", o.n);
	if ((rc = profile_point(p, m->end, &end)))
		return rc;
	return profile_pass(p, &o, end);
}

/* ------------------------------------------------------------------------------------------------
 * Profiles and frames. */

static enum err_code members_read(struct members *m, struct json_reader *r)
{
	const struct {
		const char *name;
		struct str *to;
	} known[] = { { "type", &m->type }, { "name", &m->name }, { "unit", &m->unit },
		{ "startValue", &m->start }, { "endValue", &m->end }, { "samples", &m->samples },
		{ "weights", &m->weights }, { "events", &m->events } };
	struct str key, value;
	enum err_code rc;
	bool more;

	if ((rc = json_reader_open(r, '{')))
		return rc;
	m->begin = r->at - 1;
	while (!(rc = json_reader_member(r, &key, &value, &more)) && more)
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			if (json_reader_is(key, known[i].name))
				*known[i].to = value;
	return rc;
}

/* The caller's meaning, but for a unit of the file's own. */
static enum err_code profile_meaning_of(
	struct profile *p, const struct members *m, struct folded_meaning *meaning)
{
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (!json_reader_is(m->unit, units[i].name))
			continue;
		p->factor = units[i].factor;
		p->scale = units[i].ours ? 1 : p->f->meaning->scale;
		if (units[i].ours)
			meaning->unit = str_of(units[i].ours);
		return ERR_OK;
	}
	return json_reader_expected(
		&p->f->json, m->unit.len ? m->unit.ptr : m->begin, "a unit of speedscope");
}

static enum err_code profile_fill(struct profile *p, const struct members *m)
{
	if (json_reader_is(m->type, "sampled"))
		return profile_sampled(p, m);
	if (json_reader_is(m->type, "evented"))
		return profile_evented(p, m);
	return json_reader_expected(
		&p->f->json, m->type.len ? m->type.ptr : m->begin, "the type \"sampled\" or \"evented\"");
}

static enum err_code file_string(struct file *f, struct str span, struct str *out)
{
	struct json_reader r = json_reader_at(&f->json, span);

	return json_reader_string(&r, f->a, out);
}

static enum err_code file_read_profile(struct file *f, struct json_reader *r)
{
	struct folded_meaning meaning = *f->meaning;
	struct folded_profile one = { .name = STR("") };
	struct profile p = { .f = f };
	struct members m = { 0 };
	enum err_code rc;

	if (f->profiles_n == FOLDED_PROFILES_MAX)
		return err_set(f->err, ERR_LIMIT, "more than %u profiles, the limit", FOLDED_PROFILES_MAX);
	if ((rc = members_read(&m, r)) || (rc = profile_meaning_of(&p, &m, &meaning)) ||
		(m.name.len && (rc = file_string(f, m.name, &one.name))))
		return rc;
	if (!(rc = calls_open(&p.calls, f->a, &meaning, f->limits, f->err)) &&
		!(rc = profile_fill(&p, &m)))
		rc = calls_finish(&p.calls, &one.profile);
	calls_close(&p.calls);
	if (rc)
		return err_wrap(f->err, rc, "profile[%" PRIu32 "]", f->profiles_n);
	if (!arena_array_room(f->a, &f->profiles, f->profiles_n, 1, &f->profiles_cap))
		return arena_fail(f->a, "profile", f->err);
	f->profiles[f->profiles_n++] = one;
	return ERR_OK;
}

static enum err_code file_number_or_null(struct file *f, struct str span, int64_t *out)
{
	struct json_reader r = json_reader_at(&f->json, span);
	struct json_reader_number n;
	enum err_code rc;

	if (str_is(span, "null"))
		return ERR_OK;
	if ((rc = json_reader_number(&r, &n)))
		return rc;
	*out = n.is_integer ? n.i : 0;
	return ERR_OK;
}

static enum err_code file_read_frame(struct file *f, struct json_reader *r)
{
	struct folded_speedscope_frame frame = { .file = STR("") };
	struct str key, value;
	const char *begin;
	enum err_code rc;
	bool more;

	if (f->frames_n >= f->limits->elements_max)
		return err_set(
			f->err, ERR_LIMIT, "more than %" PRIu32 " frames, the limit", f->limits->elements_max);
	if ((rc = json_reader_open(r, '{')))
		return rc;
	begin = r->at - 1;
	while (!(rc = json_reader_member(r, &key, &value, &more)) && more) {
		if (json_reader_is(key, "name"))
			rc = file_string(f, value, &frame.name);
		else if (json_reader_is(key, "file") && !str_is(value, "null"))
			rc = file_string(f, value, &frame.file);
		else if (json_reader_is(key, "line"))
			rc = file_number_or_null(f, value, &frame.line);
		else if (json_reader_is(key, "col"))
			rc = file_number_or_null(f, value, &frame.column);
		if (rc)
			return rc;
	}
	if (rc)
		return rc;
	if (!frame.name.len)
		return json_reader_expected(r, begin, "a frame with a name");
	if (!arena_array_room(f->a, &f->frames, f->frames_n, 1, &f->frames_cap))
		return arena_fail(f->a, "profile", f->err);
	f->frames[f->frames_n++] = frame;
	return ERR_OK;
}

/* Calls `read` for each item of an array. */
static enum err_code file_each(
	struct file *f, struct str span, enum err_code (*read)(struct file *f, struct json_reader *r))
{
	struct json_reader r = json_reader_at(&f->json, span);
	enum err_code rc = json_reader_open(&r, '[');
	bool more = true;

	while (!rc && !(rc = json_reader_more(&r, '[', &more)) && more)
		rc = read(f, &r);
	return rc;
}

static enum err_code file_read_shared(struct file *f, struct str span)
{
	struct json_reader r = json_reader_at(&f->json, span);
	struct str key, value, frames = { 0 };
	enum err_code rc = json_reader_open(&r, '{');
	bool more = true;

	while (!rc && !(rc = json_reader_member(&r, &key, &value, &more)) && more)
		if (json_reader_is(key, "frames"))
			frames = value;
	if (rc || (rc = file_each(f, frames, file_read_frame)))
		return rc;
	f->locations = arena_array(f->a, uint32_t, (size_t)f->frames_n + 1);
	f->of = arena_array(f->a, uint32_t, (size_t)f->frames_n + 1);
	return f->locations && f->of ? ERR_OK : arena_fail(f->a, "profile", f->err);
}

static enum err_code folded_speedscope_read_file(struct file *f)
{
	struct str key, value, schema = { 0 }, shared = { 0 }, profiles = { 0 };
	struct json_reader r = f->json;
	enum err_code rc;
	bool more;

	if ((rc = json_reader_whole(&r)) || (rc = json_reader_open(&r, '{')))
		return rc;
	while (!(rc = json_reader_member(&r, &key, &value, &more)) && more) {
		if (json_reader_is(key, "$schema"))
			schema = value;
		else if (json_reader_is(key, "shared"))
			shared = value;
		else if (json_reader_is(key, "profiles"))
			profiles = value;
	}
	if (rc)
		return rc;
	if (!json_reader_is(schema, "https://www.speedscope.app/file-format-schema.json"))
		return err_set(f->err, ERR_UNSUPPORTED, "$schema is not speedscope's");
	if ((rc = file_read_shared(f, shared)))
		return rc;
	return file_each(f, profiles, file_read_profile);
}

enum err_code speedscope_decode(struct arena *a, struct str raw,
	const struct folded_meaning *meaning, const struct pprof_limits *limits,
	struct folded_profile **out, uint32_t *n, struct err *err)
{
	struct file f = {
		.a = a, .json = json_reader_of(raw, err), .meaning = meaning, .limits = limits, .err = err
	};
	enum err_code rc;

	if ((rc = folded_speedscope_read_file(&f)))
		return rc;
	*out = f.profiles;
	*n = f.profiles_n;
	return ERR_OK;
}
