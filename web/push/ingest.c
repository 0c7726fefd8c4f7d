/*
 * Pyroscope's POST /ingest, of its SDKs for Go, Node and Java and of older agents: pprof, JFR, or
 * stacks by name; multipart or bare.
 *
 * The name is `app{label=value,...}`; app becomes service_name and job. Of stacks by name its end
 * says what they cost, as in "app.cpu" or "app.alloc_space"; without such an end it is cpu, counted
 * in samples at sampleRate.
 *
 * A format that is named is believed, but for recordings of Java, which say it themselves. Without
 * one the bytes decide.
 */
#include "proto/folded/ingest.h"
#include "base/clock.h"
#include "base/gzip/gzip.h"
#include "base/log.h"
#include "base/map.h"
#include "base/metrics.h"
#include "base/quote.h"
#include "proto/folded/folded.h"
#include "proto/jfr/jfr.h"
#include "proto/legacy/legacy.h"
#include "web/push/forms.h"
#include "web/push/multipart.h"
#include "web/push/push.h"

METRIC_COUNTER(recording_lost, "epimetheus_ingested_recording_lost_total",
	"What recordings of Java lack, by what: events whose stack was cut or is missing, or whose "
	"labels are; frames of unknown methods; bytes behind the last whole chunk; samples of CPU "
	"time.",
	"what");

#define RATE_DEFAULT_HZ 100u
#define RATE_MAX_HZ 1000000u
#define ROUNDING_MAX_NS (60 * NS_PER_S)
#define RAW_BYTES_MAX (128u << 20)

struct ingest {
	struct receive_turn *t;
	struct http_in *in;
	struct ingest_name name;
	struct multipart parts;
	int64_t until_ns, interval_ns; /* 0: not said */
	uint64_t body; /* its hash */
	uint64_t rate_hz;
	struct received *v;
	size_t n;
	bool in_parts; /* multipart */
	struct str warning; /* to the sender, of what is stored; empty: none */
	bool bad_content; /* the error is in a profile, not in the request */
};

/* ---- parameters ---- */

static enum err_code push_ingest_read_time(
	const struct http_in *in, const char *name, int64_t *out, struct err *err)
{
	struct str text = http_param(in, name);
	enum err_code rc;

	*out = 0;
	rc = text.len ? ingest_time_parse(text, out, err) : ERR_OK;
	return rc ? err_wrap(err, rc, "invalid parameter \"%s\"", name) : ERR_OK;
}

/* When the SDK for Go ends, it rounds until down, but not from: then no length is known. */
static enum err_code ingest_read_times(struct ingest *ingest, struct err *err)
{
	int64_t from_ns;
	enum err_code rc;

	if ((rc = push_ingest_read_time(ingest->in, "from", &from_ns, err)) ||
		(rc = push_ingest_read_time(ingest->in, "until", &ingest->until_ns, err)))
		return rc;
	if (!from_ns || !ingest->until_ns)
		return ERR_OK;
	if (ingest->until_ns < from_ns - ROUNDING_MAX_NS)
		return err_set(err, ERR_INVALID, "invalid parameter \"until\": before from");
	if (ingest->until_ns > from_ns)
		ingest->interval_ns = ingest->until_ns - from_ns;
	return ERR_OK;
}

static enum err_code ingest_read_params(struct ingest *ingest, struct err *err)
{
	struct str name = http_param(ingest->in, "name"), rate = http_param(ingest->in, "sampleRate");
	enum err_code rc;

	if (!name.len)
		return err_set(err, ERR_INVALID, "invalid parameter \"name\": missing");
	if ((rc = ingest_name_parse(&ingest->t->arena, name, &ingest->name, err)))
		return err_wrap(err, rc, "invalid parameter \"name\"");
	ingest->t->from.job = ingest->name.app;
	if ((rc = ingest_read_times(ingest, err)))
		return rc;
	ingest->rate_hz = 0;
	if (rate.len && (!str_to_u64(rate, &ingest->rate_hz) || ingest->rate_hz > RATE_MAX_HZ))
		return err_set(err, ERR_INVALID,
			"invalid parameter \"sampleRate\": %s is not a number up to %u", QUOTED(rate),
			RATE_MAX_HZ);
	if (!ingest->rate_hz) /* of what is not sampled by time senders say 0 */
		ingest->rate_hz = RATE_DEFAULT_HZ;
	return ERR_OK;
}

static enum err_code ingest_read_labels(
	struct ingest *ingest, struct str name, struct received *out, struct err *err)
{
	struct push_labels l;

	push_labels_init(&l, ingest->t);
	for (size_t i = 0; i < ingest->name.labels.n; i++)
		push_labels_add(&l, ingest->name.labels.v[i].name, ingest->name.labels.v[i].value);
	if (!labels_has(ingest->name.labels, STR("service_name")))
		push_labels_add(&l, STR("service_name"), ingest->name.app);
	push_labels_add(&l, STR(LABEL_NAME), name);
	return push_labels_build(&l, out, err);
}

/* Behind the others; there is room. */
static enum err_code ingest_add(struct ingest *ingest, struct str name, const struct pprof *p,
	const enum value_kind *kinds, struct err *err)
{
	struct received *to = &ingest->v[ingest->n];

	*to = (struct received){ .profile = p,
		.kinds = kinds,
		.ts_ns = ingest->until_ns,
		.interval_ns = ingest->interval_ns,
		.body = ingest->body };
	ingest->n++;
	return ingest_read_labels(ingest, name, to, err);
}

static enum err_code ingest_room(struct ingest *ingest, size_t n, struct err *err)
{
	ingest->v = arena_array(&ingest->t->arena, struct received, n + 1);
	return ingest->v ? ERR_OK : arena_fail(&ingest->t->arena, "request", err);
}

/* ---- forms of profiles ---- */

static enum err_code ingest_take_folded(
	struct ingest *ingest, enum folded_format format, struct str raw, struct err *err)
{
	enum value_kind *kind = arena_array(&ingest->t->arena, enum value_kind, 1);
	struct ingest_kind costs;
	struct folded_profile *v;
	struct folded_meaning m;
	enum err_code rc;
	uint32_t n;

	if (!kind)
		return arena_fail(&ingest->t->arena, "request", err);
	(void)ingest_kind_of(&ingest->name.app, &costs);
	ingest->t->from.job = ingest->name.app;
	ingest_meaning(&costs, (uint32_t)ingest->rate_hz, &m);
	*kind = value_is_level(STR(""), m.type) ? KIND_GAUGE : KIND_DELTA;
	ingest->bad_content = true;
	if ((rc = folded_decode(
			 &ingest->t->arena, format, raw, &m, &pprof_limits_default, &v, &n, err)))
		return rc;
	ingest->bad_content = false;
	if ((rc = ingest_room(ingest, n, err)))
		return rc;
	for (uint32_t i = 0; i < n && !rc; i++)
		rc = ingest_add(ingest, costs.profile, v[i].profile, kind, err);
	return rc;
}

/* The labels of a recording; NULL: there are none. */
static enum err_code ingest_inflate_labels(
	struct ingest *ingest, const struct str *part, struct str *out, struct err *err)
{
	*out = part ? *part : STR("");
	return gzip_is(*out) ?
		gzip_inflate(&ingest->t->arena, *out, "labels", RAW_BYTES_MAX, out, err) :
		ERR_OK;
}

/* One line a minute, whoever sends: each recording of a busy process may lack some. */
static bool ingest_may_warn(void)
{
	static _Atomic int64_t warned_ns;
	int64_t now = clock_monotonic_ns(), last = atomic_load(&warned_ns);

	return (!last || now - last >= NS_PER_MIN) &&
		atomic_compare_exchange_strong(&warned_ns, &last, now);
}

/* The recorder's losses are not refused. They are counted, so that they are not silent. */
static void ingest_count_losses(const struct ingest *ingest, const struct jfr_file *file)
{
	uint64_t cut = 0, missing = 0;

	for (uint32_t i = 0; i < file->profiles_n; i++) {
		cut += file->profiles[i].truncated;
		missing += file->profiles[i].without_stack;
	}
	if (!cut && !missing && !file->labels_lost_n && !file->frames_lost_n && !file->cut_bytes &&
		!file->samples_lost_n)
		return;
	metric_add(&recording_lost, "stack_cut", (double)cut);
	metric_add(&recording_lost, "stack_missing", (double)missing);
	metric_add(&recording_lost, "labels_missing", (double)file->labels_lost_n);
	metric_add(&recording_lost, "method_missing", (double)file->frames_lost_n);
	metric_add(&recording_lost, "bytes_cut", (double)file->cut_bytes);
	metric_add(&recording_lost, "sample", (double)file->samples_lost_n);
	log_debug("ingest", "recording of Java is not complete", LOG_STR("app", ingest->name.app),
		LOG_I("stack_cut", cut), LOG_I("stack_missing", missing),
		LOG_I("labels_missing", file->labels_lost_n), LOG_I("method_missing", file->frames_lost_n),
		LOG_I("bytes_cut", file->cut_bytes));
	if (file->warning.len && ingest_may_warn())
		log_warn("ingest", "the recorder of Java lost samples", LOG_STR("app", ingest->name.app),
			LOG_I("samples", file->samples_lost_n));
}

static enum err_code ingest_take_jfr(
	struct ingest *ingest, struct str raw, const struct str *labels, struct err *err)
{
	struct jfr_options o = { &jfr_limits_default, (uint32_t)ingest->rate_hz, .with_spans = false };
	struct jfr_file *file;
	enum err_code rc;

	ingest->bad_content = true;
	if ((rc = ingest_inflate_labels(ingest, labels, &o.labels, err)) ||
		(rc = jfr_decode(&ingest->t->arena, raw, &o, &file, err)))
		return rc;
	ingest->bad_content = false;
	ingest_count_losses(ingest, file);
	ingest->warning = file->warning;
	if ((rc = ingest_room(ingest, file->profiles_n, err)))
		return rc;
	for (uint32_t i = 0; i < file->profiles_n && !rc; i++)
		rc = ingest_add(ingest, str_of(file->profiles[i].name), file->profiles[i].pprof,
			file->profiles[i].kinds, err);
	return rc;
}

/* Whether the sender's totals grow since its start; and mutex or block, of the same types. */
static enum err_code ingest_read_config(
	struct ingest *ingest, struct str *name, bool *grows, struct err *err)
{
	const struct str *text = multipart_get(&ingest->parts, "sample_type_config");
	struct ingest_sample_type *v;
	enum err_code rc;
	uint32_t n;

	*grows = false;
	if (!text || !text->len)
		return ERR_OK;
	if ((rc = ingest_sample_types_parse(&ingest->t->arena, *text, &v, &n, err)))
		return err_wrap(err, rc, "sample_type_config");
	for (uint32_t i = 0; i < n; i++) {
		*grows |= v[i].cumulative;
		if (str_has_prefix(v[i].display_name, STR("mutex")))
			*name = STR("mutex");
		else if (str_has_prefix(v[i].display_name, STR("block")))
			*name = STR("block");
	}
	return ERR_OK;
}

static enum err_code ingest_add_pprof(
	struct ingest *ingest, const struct legacy_any *any, struct err *err)
{
	struct str name = push_profile_name(any->profile);
	enum value_kind *kinds;
	enum err_code rc;
	bool grows;

	if ((rc = ingest_read_config(ingest, &name, &grows, err)) ||
		(rc = ingest_room(ingest, 1, err)) ||
		(rc = push_kinds(&ingest->t->arena, any->profile, name, &kinds, err)) ||
		(rc = ingest_add(ingest, name, any->profile, any->kinds ? any->kinds : kinds, err)))
		return rc;
	ingest->v[0].convert = grows;
	return ERR_OK;
}

static enum err_code ingest_take_pprof(struct ingest *ingest, struct str raw, struct err *err)
{
	struct legacy_any any;
	enum err_code rc;

	ingest->bad_content = true;
	if ((rc = legacy_decode_any(&ingest->t->arena, raw, &pprof_limits_default, &any, err)))
		return rc;
	ingest->bad_content = false;
	return ingest_add_pprof(ingest, &any, err);
}

/* Without a word on its format: the bytes decide, as they do in files. */
static enum err_code ingest_take_unnamed(struct ingest *ingest, struct str raw, struct err *err)
{
	struct legacy_any any;
	enum err_code rc;

	if (speedscope_recognized(raw))
		return ingest_take_folded(ingest, FOLDED_SPEEDSCOPE, raw, err);
	ingest->bad_content = true;
	rc = legacy_decode_any(&ingest->t->arena, raw, &pprof_limits_default, &any, err);
	/* Some texts can be read as fields that nobody knows, and so as a profile without types. */
	if (!rc && (any.is_legacy || any.profile->types_n)) {
		ingest->bad_content = false;
		return ingest_add_pprof(ingest, &any, err);
	}
	if (rc == ERR_LIMIT || any.is_legacy || !foreign_is_text(raw) || foreign_recognize(raw))
		return rc ? rc : err_set(err, ERR_INVALID, "the profile has no sample types");
	return ingest_take_folded(ingest, FOLDED_STACKS, raw, err);
}

/* ---- the request ---- */

static bool push_ingest_is_multipart(struct str content_type)
{
	return http_type_is(content_type, "multipart/form-data");
}

/* The profile's bytes, without the compression that a request or a profile has. */
static enum err_code ingest_read_body(
	struct ingest *ingest, const struct str **jfr, struct str *out, struct err *err)
{
	struct pprof_limits limits = pprof_limits_default;
	const struct str *profile = NULL;
	struct http_in *in = ingest->in;
	enum err_code rc;

	*jfr = NULL;
	*out = in->body;
	limits.body_bytes_max = limits.raw_bytes_max; /* the request's own limit is less */
	if ((ingest->in_parts || str_trim(in->content_encoding).len) &&
		(rc = push_body(in, &ingest->t->arena, out, err)))
		return rc;
	if (ingest->in_parts) {
		if ((rc = multipart_parse(in->content_type, *out, &ingest->parts, err)))
			return rc;
		profile = multipart_get(&ingest->parts, "profile");
		*jfr = multipart_get(&ingest->parts, "jfr");
		if (!profile && !*jfr)
			return err_set(err, ERR_INVALID, "multipart: no part profile or jfr");
		*out = *jfr ? **jfr : *profile;
	}
	if (!out->len)
		return err_set(err, ERR_INVALID, "the body is empty");
	return pprof_inflate(&ingest->t->arena, *out, &limits, out, err);
}

static enum err_code ingest_take(struct ingest *ingest, struct err *err)
{
	struct str format = http_param(ingest->in, "format"), body;
	enum folded_format folded = folded_format_of(format, ingest->in->content_type);
	const struct str *jfr;
	enum err_code rc;

	ingest->in_parts = push_ingest_is_multipart(ingest->in->content_type);
	if ((rc = ingest_read_params(ingest, err)) || (rc = ingest_read_body(ingest, &jfr, &body, err)))
		return rc;
	ingest->body = hash_bytes(body.ptr, body.len, 0);
	if (jfr || str_is(format, "jfr") || jfr_recognized(body))
		return ingest_take_jfr(ingest, body, multipart_get(&ingest->parts, "labels"), err);
	if (ingest->in_parts || str_is(format, "pprof"))
		return ingest_take_pprof(ingest, body, err);
	return folded == FOLDED_STACKS ? ingest_take_unnamed(ingest, body, err) :
									 ingest_take_folded(ingest, folded, body, err);
}

void ingest_handle(struct web *w, struct http_in *in, struct http_out *out)
{
	struct receive_turn turn;
	struct ingest g = { .t = &turn, .in = in };
	const struct received *failed;
	enum err_code rc;
	struct err err;

	if (push_begin(w, in, out, &turn, &err)) {
		http_text(out, out->status, "%s", err.msg);
		return;
	}
	if ((rc = ingest_take(&g, &err))) {
		receive_refuse(&turn, 1, &err);
		http_text(out, g.bad_content && rc == ERR_INVALID ? 422 : push_status(rc), "%s", err.msg);
	} else {
		receive_store(&turn, g.v, g.n);
		if ((failed = push_failed(g.v, g.n)))
			http_text(out, push_status(failed->rc), "%s", failed->err.msg);
		else if (g.warning.len)
			http_text(out, 200, "warning: " STR_FMT, STR_ARG(g.warning));
		else
			out->content_type = "text/plain";
	}
	push_add_retry(out);
	receive_end(&turn);
}
