#include "proto/any/any.h"

#include <assert.h>
#include <inttypes.h>

#include "proto/folded/folded.h"
#include "proto/jfr/jfr.h"
#include "proto/legacy/legacy.h"

#define SPEEDSCOPE_LABEL "profile" /* of samples, where the file has several profiles */
#define JFR_RATE_HZ 100u /* if the recording does not say: 10 ms, as async-profiler's default */

static const char *const format_names[ANY_FORMATS] = {
	[ANY_PPROF] = "pprof",
	[ANY_LEGACY] = "a format before pprof",
	[ANY_FOLDED] = "folded stacks",
	[ANY_SPEEDSCOPE] = "speedscope",
	[ANY_JFR] = "JFR",
};

const char *any_format_name(enum any_format f)
{
	return format_names[f];
}

const struct any_profile *any_default(const struct any_file *f)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (str_is(f->v[i].name, "process_cpu"))
			return &f->v[i];
	return &f->v[0];
}

/* ---- names ---- */

static bool any_has_type(const struct pprof *p, const char *type)
{
	for (uint32_t i = 0; i < p->types_n; i++)
		if (str_is(p->strings[p->types[i].type], type))
			return true;
	return false;
}

struct str any_name_guess(const struct pprof *p, struct str file_name)
{
	static const struct {
		const char *type, *name;
	} known[] = { { "cpu", "process_cpu" }, { "inuse_space", "memory" },
		{ "alloc_space", "memory" }, { "goroutine", "goroutine" }, { "goroutines", "goroutine" },
		{ "goroutineleak", "goroutineleak" }, { "threadcreate", "threadcreate" },
		{ "wall", "wall" } };
	struct str file = str_base_name(file_name);

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (any_has_type(p, known[i].type))
			return str_of(known[i].name);
	if (any_has_type(p, "samples") && any_has_type(p, "time"))
		return STR("fgprof");
	if (!any_has_type(p, "contentions"))
		return STR("");
	if (str_find(file, STR("mutex")) >= 0)
		return STR("mutex");
	return str_find(file, STR("block")) >= 0 ? STR("block") : STR("");
}

/* ---- one profile ---- */

static enum err_code any_one(struct arena *a, struct any_file *out, struct err *err)
{
	out->n = 0;
	out->v = arena_array(a, struct any_profile, 1);
	return out->v ? ERR_OK : arena_fail(a, "profile", err);
}

/* kinds NULL: by type. A profile without types has nothing to show. */
static enum err_code any_add(struct arena *a, const struct pprof *p, const enum value_kind *kinds,
	struct str name, struct any_file *out, struct err *err)
{
	enum value_kind *own = arena_array(a, enum value_kind, (size_t)p->types_n + 1);
	bool is_named = name.len;

	if (!own)
		return arena_fail(a, "profile", err);
	if (!p->types_n)
		return err_set(err, ERR_INVALID, "the profile has no sample types");
	if (!kinds)
		pprof_kinds(p, name, NULL, own);
	for (uint32_t i = 0; i < p->types_n && !name.len; i++)
		name = p->strings[p->types[i].type];
	if (!name.len)
		name = STR("unnamed");
	out->v[out->n++] = (struct any_profile){ name, is_named, p, kinds ? kinds : own, kinds };
	return ERR_OK;
}

/* ---- formats ---- */

static enum err_code any_note(
	struct arena *a, struct any_file *out, const char *text, struct err *err)
{
	if (!text)
		return arena_fail(a, "profile", err);
	assert(out->notes_n < ANY_NOTES_MAX);
	out->notes[out->notes_n++] = str_of(text);
	return ERR_OK;
}

static enum err_code any_take_jfr(
	struct arena *a, struct str raw, struct any_file *out, struct err *err)
{
	const struct jfr_options o = { &jfr_limits_default, JFR_RATE_HZ, STR(""), false };
	struct jfr_file *file;
	enum err_code rc;

	out->format = ANY_JFR;
	if ((rc = jfr_decode(a, raw, &o, &file, err)))
		return rc;
	if (file->cut_bytes)
		rc = any_note(a, out,
			arena_printf(a,
				"the recording is cut short: the last %" PRIu64
				" bytes, not a whole chunk, are dropped",
				file->cut_bytes),
			err);
	if (!rc && file->warning.len)
		rc = any_note(a, out, file->warning.ptr, err);
	if (rc)
		return rc;
	if (!file->profiles_n)
		return err_set(err, ERR_INVALID,
			"the recording has none of the events that are profiles: samples of execution and wall "
			"clock, allocations, locks");
	if (!(out->v = arena_array(a, struct any_profile, file->profiles_n)))
		return arena_fail(a, "profile", err);
	for (uint32_t i = 0; i < file->profiles_n && !rc; i++)
		rc = any_add(a, file->profiles[i].pprof, file->profiles[i].kinds,
			str_of(file->profiles[i].name), out, err);
	return rc;
}

/* The bytes before the first occurrence; all of them if there is none. */
static size_t any_length_before(struct str s, struct str what)
{
	ptrdiff_t at = str_find(s, what);

	return at < 0 ? s.len : (size_t)at;
}

/* A file of ours says in a profile's name what it is: "process_cpu:cpu:nanoseconds:..". */
static bool any_read_type(struct str name, struct str unit, struct str part[6])
{
	size_t n = 0, len;

	name.len = any_length_before(name, STR(" "));
	for (size_t i = 0; i < 6; i++)
		part[i] = STR("");
	while (n < 6) {
		len = any_length_before(name, STR(":"));
		part[n++] = (struct str){ name.ptr, len };
		if (len == name.len)
			break;
		name = (struct str){ name.ptr + len + 1, name.len - len - 1 };
	}
	return n >= 5 && part[0].len && part[1].len &&
		(str_eq(part[2], unit) || (str_is(unit, "count") && part[2].len)) &&
		(n == 5 || str_is(part[5], "delta"));
}

/* Appends strings; the table is the builder's, which nobody else has. */
static bool any_add_strings(struct arena *a, struct pprof *p, const struct str *s, uint32_t n)
{
	struct str *v = arena_array(a, struct str, (size_t)p->strings_n + n);

	if (!v)
		return false;
	memcpy(v, p->strings, p->strings_n * sizeof(*v));
	memcpy(v + p->strings_n, s, n * sizeof(*v));
	p->strings = v;
	p->strings_n += n;
	return true;
}

/* Types as the file's names say them, if they do; else cost in time is "time", in bytes "space". */
static enum err_code any_name_type(struct arena *a, struct folded_profile *f, struct str *name,
	enum value_kind *kind, struct err *err)
{
	struct pprof *p = f->profile;
	struct str unit = p->strings[p->types[0].unit], part[6];
	uint32_t first = p->strings_n;

	*kind = KIND_DELTA;
	*name = STR("");
	if (!any_read_type(f->name, unit, part)) {
		part[1] = str_is(unit, "nanoseconds") ? STR("time") :
												str_is(unit, "bytes") ? STR("space") :
																		STR("samples");
		part[2] = unit;
		part[3] = part[4] = STR("");
	} else {
		*name = part[0];
		*kind = part[5].len ? KIND_DELTA : KIND_GAUGE;
	}
	if (!any_add_strings(a, p, part + 1, 4))
		return arena_fail(a, "profile", err);
	p->types[0] = (struct pprof_type){ first, first + 1 };
	p->period_type = (struct pprof_type){ part[3].len ? first + 2 : 0,
		part[4].len ? first + 3 : 0 };
	return ERR_OK;
}

/* The samples of each profile get its name as a label; they are one behind the other. */
static enum err_code any_label_samples(
	struct arena *a, const struct folded_profile *f, uint32_t n, struct pprof *p, struct err *err)
{
	struct str *names = arena_array(a, struct str, (size_t)n + 1);
	uint32_t first = p->strings_n, sample = 0;

	p->labels = arena_array(a, struct pprof_label, (size_t)n + 1);
	if (!names || !p->labels)
		return arena_fail(a, "profile", err);
	names[0] = STR(SPEEDSCOPE_LABEL);
	for (uint32_t i = 0; i < n; i++)
		names[i + 1] = f[i].name.len ? f[i].name : STR("unnamed");
	if (!any_add_strings(a, p, names, n + 1))
		return arena_fail(a, "profile", err);
	for (uint32_t i = 0; i < n; i++) {
		p->labels[i] = (struct pprof_label){ .key = first, .str = first + 1 + i };
		for (uint32_t k = 0; k < f[i].profile->samples_n; k++, sample++) {
			p->samples[sample].label_first = i;
			p->samples[sample].label_n = 1;
		}
	}
	p->labels_n = n;
	return ERR_OK;
}

static enum err_code any_take_named(struct arena *a, enum folded_format format, struct str raw,
	struct any_file *out, struct err *err)
{
	const struct folded_meaning meaning = {
		.type = STR("samples"), .unit = STR("count"), .scale = 1 };
	struct folded_profile *v = NULL;
	const struct pprof **all;
	struct pprof *p;
	enum value_kind *kinds, kind = KIND_DELTA;
	struct str name = STR(""), other;
	uint32_t n = 0;
	enum err_code rc;

	out->format = format == FOLDED_SPEEDSCOPE ? ANY_SPEEDSCOPE : ANY_FOLDED;
	if ((rc = folded_decode(a, format, raw, &meaning, &pprof_limits_default, &v, &n, err)))
		return rc;
	if (!n)
		return err_set(err, ERR_INVALID, "the file has no profile");
	if (!(all = arena_array(a, const struct pprof *, n)) ||
		!(kinds = arena_array(a, enum value_kind, (size_t)n + 1)))
		return arena_fail(a, "profile", err);
	for (uint32_t i = 0; i < n; i++) {
		if ((rc = any_name_type(a, &v[i], i ? &other : &name, &kind, err)))
			return rc;
		if (i && !str_eq(other, name))
			name = STR("");
		all[i] = v[i].profile;
	}
	p = v[0].profile;
	if (n > 1 &&
		((rc = pprof_concat(a, all, n, &p, err)) || (rc = any_label_samples(a, v, n, p, err))))
		return rc;
	for (uint32_t i = 0; i < p->types_n; i++)
		kinds[i] = n == 1 ?
			kind :
			value_is_level(STR(""), p->strings[p->types[i].type]) ? KIND_GAUGE : KIND_DELTA;
	if ((rc = any_one(a, out, err)))
		return rc;
	return any_add(a, p, kinds, name, out, err);
}

static enum err_code any_take_pprof(struct arena *a, struct str raw, struct str file_name,
	struct any_file *out, struct legacy_any *any, struct err *err)
{
	enum err_code rc = legacy_decode_any(a, raw, &pprof_limits_default, any, err);

	if (!rc && !any->is_legacy && !any->profile->types_n) {
		any->profile = NULL; /* text may be read as fields that nobody knows */
		return err_set(err, ERR_INVALID, "the profile has no sample types");
	}
	out->format = any->is_legacy ? ANY_LEGACY : ANY_PPROF;
	if (rc || (rc = any_one(a, out, err)))
		return rc;
	return any_add(a, any->profile, any->kinds, any_name_guess(any->profile, file_name), out, err);
}

/* ---- which it is ---- */

/* Of a text that is no speedscope file or no folded stacks: what it is, if that is known. */
static enum err_code any_name_text(enum err_code rc, struct str raw, struct err *err)
{
	const struct foreign *f = foreign_recognize(raw);

	if ((rc == ERR_INVALID || rc == ERR_UNSUPPORTED) && f && !f->is_read)
		return foreign_explain(raw, err);
	return rc;
}

static enum err_code any_read(
	struct arena *a, struct str body, struct str file_name, struct any_file *out, struct err *err)
{
	struct pprof_limits limits = pprof_limits_default;
	struct legacy_any any = { 0 };
	struct str raw;
	enum err_code rc;

	limits.body_bytes_max = limits.raw_bytes_max;
	*out = (struct any_file){ 0 };
	if ((rc = pprof_inflate(a, body, &limits, &raw, err)))
		return rc;
	if (jfr_recognized(raw))
		return any_take_jfr(a, raw, out, err);
	if (speedscope_recognized(raw))
		return any_name_text(any_take_named(a, FOLDED_SPEEDSCOPE, raw, out, err), raw, err);
	rc = any_take_pprof(a, raw, file_name, out, &any, err);
	if (rc != ERR_INVALID || any.is_legacy || any.profile)
		return rc;
	if (foreign_explain(raw, err))
		return ERR_INVALID;
	if (foreign_is_text(raw))
		return any_take_named(a, FOLDED_STACKS, raw, out, err);
	return err_wrap(
		err, rc, "not pprof, folded stacks, speedscope, JFR or a format before pprof; as pprof");
}

static enum err_code any_note_cut_stacks(struct arena *a, struct any_file *out, struct err *err)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < out->n; i++)
		n += out->v[i].pprof->stacks_cut;
	return n ? any_note(a, out, arena_printf(a, PPROF_STACKS_CUT, n), err) : ERR_OK;
}

enum err_code any_decode(
	struct arena *a, struct str body, struct str file_name, struct any_file *out, struct err *err)
{
	enum err_code rc = any_read(a, body, file_name, out, err);

	return rc ? rc : any_note_cut_stacks(a, out, err);
}
