/*
 * The walk over a request. The dictionary may follow the profiles, and a resource or scope what it
 * is for; so the decoder walks each message for those first.
 */
#include <inttypes.h>
#include <stdio.h>

#include "proto/otlp/decoder.h"
#include "proto/otlp/messages.h"

const struct otlp_limits otlp_limits_default = {
	.raw_bytes_max = 64u << 20,
	.profiles_max = 16384,
	.samples_max = 1000000,
	.elements_max = 4000000,
	.frames_max = 16000000,
	.stack_depth_max = PPROF_STACK_DEPTH_MAX,
	.attributes_max = 128,
	.text_bytes_max = 64u << 10,
	.arena_bytes_max = 1u << 30,
};

enum err_code otlp_wire_fail(struct otlp_decoder *d)
{
	return otlp_explain(d->raw, d->err);
}

enum err_code otlp_no_memory(struct otlp_decoder *d)
{
	return arena_fail(d->a, "request", d->err);
}

enum err_code otlp_too_many(struct otlp_decoder *d, uint32_t max, const char *what)
{
	return err_set(d->err, ERR_LIMIT, "request has more than %" PRIu32 " %s, the limit", max, what);
}

enum err_code otlp_too_old(struct err *err, const char *what)
{
	return err_set(err, ERR_UNSUPPORTED,
		"profiles of OTLP before 1.8 are not supported, only 1.8 to 1.11: %s; update the sender",
		what);
}

enum err_code otlp_reject(struct otlp_decoder *d, enum err_code code, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(&d->why, code, "%s", text);
}

bool otlp_is_reject(const struct otlp_decoder *d, enum err_code rc)
{
	return rc && d->why.code == rc;
}

struct otlp_attribute *otlp_keep_attributes(struct otlp_decoder *d, uint32_t n)
{
	struct otlp_attribute *kept = arena_alloc_raw(d->a, n, sizeof(*kept));

	if (kept && n)
		memcpy(kept, d->attributes, n * sizeof(*kept));
	return kept;
}

/* ------------------------------------------------------------------------------------------------
 * The walk. `place` counts the messages above the one at hand. */

struct otlp_request_place {
	uint32_t resource, scope, profile;
	struct str scope_name, scope_version;
	bool rejected; /* the resource, for what d->why says */
	struct otlp_layout *layout; /* the profiles are only looked at */
};

typedef enum err_code (*visit_fn)(
	struct otlp_decoder *d, struct str message, struct otlp_request_place *place);

/* Visits the messages of one field; `n` counts them. */
static enum err_code otlp_each(struct otlp_decoder *d, struct str message, unsigned number,
	visit_fn visit, struct otlp_request_place *place, uint32_t *n)
{
	wire_pos at = (wire_pos)message.ptr, end = at + message.len;
	struct otlp_field f;
	enum err_code rc;

	for (*n = 0; at < end;) {
		if (!(at = otlp_next(at, end, &f)))
			return otlp_wire_fail(d);
		if (f.tag >> 3 != number)
			continue;
		if ((f.tag & 7) != WIRE_BYTES)
			return otlp_wire_fail(d);
		if ((rc = visit(d, otlp_bytes(&f), place)))
			return rc;
		++*n;
	}
	return ERR_OK;
}

static void otlp_count_rejected(struct otlp_decoder *d, const struct otlp_request_place *place)
{
	if (d->request->rejected_n++)
		return;
	d->request->rejected = d->why;
	err_wrap(&d->request->rejected, d->why.code,
		"resourceProfiles[%" PRIu32 "].scopeProfiles[%" PRIu32 "].profiles[%" PRIu32 "]",
		place->resource, place->scope, place->profile);
}

static enum err_code otlp_visit_profile(
	struct otlp_decoder *d, struct str message, struct otlp_request_place *place)
{
	struct otlp_request *r = d->request;
	struct otlp_profile *p;
	enum err_code rc;

	if (place->layout)
		return otlp_layout_look(d, place->layout, message);
	if (r->profiles_n + r->rejected_n >= d->limits->profiles_max)
		return otlp_too_many(d, d->limits->profiles_max, "profiles");
	if (place->rejected) {
		otlp_count_rejected(d, place);
		return ERR_OK;
	}
	if (!arena_array_room(d->a, &r->profiles, r->profiles_n, 1, &d->profiles_cap))
		return otlp_no_memory(d);
	p = &r->profiles[r->profiles_n];
	*p = (struct otlp_profile){
		.resource = place->resource,
		.scope_name = place->scope_name,
		.scope_version = place->scope_version,
	};
	d->why.code = ERR_OK;
	if (!(rc = otlp_profile_decode(d, message, p)))
		r->profiles_n++;
	else if (otlp_is_reject(d, rc))
		otlp_count_rejected(d, place);
	else
		return rc;
	return ERR_OK;
}

static enum err_code otlp_visit_scope(
	struct otlp_decoder *d, struct str message, struct otlp_request_place *place)
{
	wire_pos at = (wire_pos)message.ptr, end = at + message.len;
	struct otlp_field f;

	while (at < end) {
		if (!(at = otlp_next(at, end, &f)))
			return otlp_wire_fail(d);
		if (f.tag == WIRE_TAG(1, WIRE_BYTES))
			place->scope_name = otlp_bytes(&f);
		else if (f.tag == WIRE_TAG(2, WIRE_BYTES))
			place->scope_version = otlp_bytes(&f);
		else if (otlp_is_known(&f, 2))
			return otlp_wire_fail(d);
	}
	return ERR_OK;
}

static enum err_code otlp_visit_scope_profiles(
	struct otlp_decoder *d, struct str message, struct otlp_request_place *place)
{
	enum err_code rc;
	uint32_t n;

	if (place->layout)
		return otlp_each(d, message, 2, otlp_visit_profile, place, &n);
	if (d->scopes_n++ >= d->limits->profiles_max)
		return otlp_too_many(d, d->limits->profiles_max, "scopes");
	place->scope_name = place->scope_version = STR("");
	if ((rc = otlp_each(d, message, 1, otlp_visit_scope, place, &n)))
		return rc;
	return otlp_each(d, message, 2, otlp_visit_profile, place, &place->profile);
}

static enum err_code otlp_visit_attribute(
	struct otlp_decoder *d, struct str message, struct otlp_request_place *place)
{
	struct otlp_resource *r = &d->request->resources[place->resource];
	enum err_code rc;

	if (place->rejected)
		return ERR_OK;
	if (r->attributes_n < d->limits->attributes_max)
		rc = otlp_key_value(d, message, &r->attributes[r->attributes_n]);
	else
		rc = otlp_reject(
			d, ERR_LIMIT, "more than %" PRIu32 " attributes, the limit", d->limits->attributes_max);
	if (!rc)
		r->attributes_n++;
	else if (!otlp_is_reject(d, rc))
		return rc;
	else {
		err_wrap(&d->why, rc, "resource.attributes[%" PRIu32 "]", r->attributes_n);
		place->rejected = true;
	}
	return ERR_OK;
}

static enum err_code otlp_visit_resource(
	struct otlp_decoder *d, struct str message, struct otlp_request_place *place)
{
	uint32_t n;

	return otlp_each(d, message, 1, otlp_visit_attribute, place, &n);
}

static enum err_code otlp_visit_resource_profiles(
	struct otlp_decoder *d, struct str message, struct otlp_request_place *place)
{
	struct otlp_request *r = d->request;
	struct otlp_resource *resource;
	enum err_code rc;
	uint32_t n;

	if (place->layout)
		return otlp_each(d, message, 2, otlp_visit_scope_profiles, place, &n);
	if (r->resources_n >= d->limits->profiles_max)
		return otlp_too_many(d, d->limits->profiles_max, "resources");
	if (!arena_array_room(d->a, &r->resources, r->resources_n, 1, &d->resources_cap))
		return otlp_no_memory(d);
	resource = &r->resources[r->resources_n++];
	*resource = (struct otlp_resource){ .attributes = d->attributes };
	place->rejected = false;
	d->why.code = ERR_OK;
	if ((rc = otlp_each(d, message, 1, otlp_visit_resource, place, &n)))
		return rc;
	if (!(resource->attributes = otlp_keep_attributes(d, resource->attributes_n)))
		return otlp_no_memory(d);
	return otlp_each(d, message, 2, otlp_visit_scope_profiles, place, &place->scope);
}

static enum err_code otlp_visit_dictionary(
	struct otlp_decoder *d, struct str message, struct otlp_request_place *place)
{
	return otlp_dictionary_add(d, message);
}

static enum err_code otlp_request_decode(struct otlp_decoder *d)
{
	struct otlp_request_place place = { 0 }, looking = { 0 };
	struct otlp_layout layout = { 0 };
	enum err_code rc;
	uint32_t n;

	if ((rc = otlp_each(d, d->raw, 2, otlp_visit_dictionary, &place, &n)))
		return rc;
	if (!d->json) {
		looking.layout = &layout;
		if ((rc = otlp_each(d, d->raw, 1, otlp_visit_resource_profiles, &looking, &n)))
			return rc;
		d->numbers = otlp_layout_decide(&layout);
	}
	d->request->links_n = d->d.links_n;
	if ((rc = otlp_builder_open(d)))
		return rc;
	return otlp_each(d, d->raw, 1, otlp_visit_resource_profiles, &place, &place.resource);
}

enum err_code otlp_decode_wire(struct arena *a, struct str raw, bool json,
	const struct otlp_options *options, struct otlp_request **out, struct err *err)
{
	struct otlp_decoder d = {
		.a = a, .options = options, .limits = options->limits, .raw = raw, .err = err, .json = json
	};
	uint32_t max = options->limits->attributes_max;
	enum err_code rc;

	d.safe = raw.len < 8 ? NULL : (wire_pos)raw.ptr + raw.len - 8;
	d.request = arena_new(a, struct otlp_request);
	d.row_attributes = arena_alloc_raw(a, max, sizeof(*d.row_attributes));
	d.attributes = arena_alloc_raw(a, max, sizeof(*d.attributes));
	if (!d.request || !d.row_attributes || !d.attributes)
		return otlp_no_memory(&d);
	map_init(&d.labels);
	rc = otlp_request_decode(&d);
	map_release(&d.labels);
	if (rc)
		return rc;
	*out = d.request;
	return ERR_OK;
}

enum err_code otlp_decode(struct arena *a, struct str raw, const struct otlp_options *options,
	struct otlp_request **out, struct err *err)
{
	if (raw.len > options->limits->raw_bytes_max || raw.len > INT32_MAX)
		return err_set(err, ERR_LIMIT, "request is %zu bytes inflated, limit %zu", raw.len,
			options->limits->raw_bytes_max);
	return otlp_decode_wire(a, raw.len ? raw : STR(""), false, options, out, err);
}
