/*
 * What is in a file, and files that are kept.
 *
 * A file is decoded before it is kept, so nothing is kept that is no profile. Decoding takes many
 * times the bytes of the body, so few are decoded at once.
 */
#include "web/files/files.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/quote.h"
#include "promql/syntax/type_names.h"
#include "proto/any/any.h"
#include "tsdb/symbols/profile_type.h"
#include "web/files/kept.h"
#include "web/router/envelope.h"

#define DECODE_BYTES_MAX (512u << 20)
#define DECODING_MAX 2u
#define PATH STR("/api/v1/files/")

/* ---- answers ---- */

static void files_fail(struct http_out *out, enum err_code rc, const struct err *err)
{
	api_fail(out, rc, err);
	if (rc == ERR_UNAVAILABLE)
		http_add_header(out, "Retry-After", STR("1"));
}

static void files_write_time(struct json *j, const char *key, int64_t ns)
{
	json_key(j, key);
	json_double(j, (double)ns / NS_PER_S);
}

static void files_write_u64(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	json_u64(j, value);
}

static uint32_t files_default_type(const struct any_profile *p, struct arena *a)
{
	const struct pprof *f = p->pprof;
	struct profile_type *t = arena_array(a, struct profile_type, f->types_n);

	for (uint32_t i = 0; t && i < f->types_n; i++)
		t[i] = (struct profile_type){ .name = p->name,
			.sample_type = f->strings[f->types[i].type],
			.sample_unit = f->strings[f->types[i].unit] };
	return t ? (uint32_t)type_default(t, f->types_n, f->strings[f->default_sample_type]) : 0;
}

static void files_write_profile(struct json *j, const struct any_profile *p, struct arena *a)
{
	const struct pprof *f = p->pprof;
	uint32_t chosen = files_default_type(p, a);

	json_object(j);
	json_key(j, "name");
	json_str(j, p->name);
	if (f->time_nanos > 0)
		files_write_time(j, "time", f->time_nanos);
	if (f->duration_nanos > 0)
		files_write_time(j, "duration", f->duration_nanos);
	files_write_u64(j, "samples", f->samples_n);
	json_key(j, "types");
	json_array(j);
	for (uint32_t i = 0; i < f->types_n; i++) {
		json_object(j);
		json_key(j, "type");
		json_str(j, f->strings[f->types[i].type]);
		json_key(j, "unit");
		json_str(j, f->strings[f->types[i].unit]);
		json_key(j, "default");
		json_bool(j, i == chosen);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

static void files_write_file(struct json *j, const struct kept_file *f)
{
	json_key(j, "id");
	json_cstr(j, f->id);
	json_key(j, "damaged");
	json_bool(j, f->damaged);
	files_write_time(j, "created", f->created_ns);
	files_write_time(j, "expires", f->expires_ns);
}

/* keepMax: seconds, 0 where nothing can be kept. */
static void files_write_contents(struct web *w, struct http_out *out, struct str name, size_t bytes,
	const struct any_file *any, const struct kept_file *kept, struct arena *a)
{
	bool may_keep = w->o.files && w->o.enable_files;
	struct json j;

	api_begin(out, &j);
	json_object(&j);
	json_key(&j, "name");
	json_str(&j, name);
	json_key(&j, "format");
	json_cstr(&j, any_format_name(any->format));
	files_write_u64(&j, "bytes", bytes);
	files_write_time(&j, "keepMax", may_keep ? kept_limits(w->o.files)->time_max_ns : 0);
	if (kept)
		files_write_file(&j, kept);
	json_key(&j, "profiles");
	json_array(&j);
	for (uint32_t i = 0; i < any->n; i++)
		files_write_profile(&j, &any->v[i], a);
	json_array_end(&j);
	json_object_end(&j);
	api_end(&j, any->notes, any->notes_n, NULL, 0);
}

/* ---- looking at a file ---- */

static bool files_enter(struct web *w)
{
	bool entered;

	mutex_lock(&w->lock);
	entered = w->decoding < DECODING_MAX;
	w->decoding += entered;
	mutex_unlock(&w->lock);
	return entered;
}

static void files_leave(struct web *w)
{
	mutex_lock(&w->lock);
	w->decoding--;
	mutex_unlock(&w->lock);
}

static enum err_code files_check_keep(struct web *w, struct err *err)
{
	if (w->o.elsewhere.files)
		return err_set(err, ERR_NOT_FOUND, "%s", w->o.elsewhere.files);
	if (!w->o.files)
		return err_set(err, ERR_NOT_FOUND, "this server stores no files");
	if (!w->o.enable_files)
		return err_set(
			err, ERR_NOT_FOUND, "keeping files is disabled: start with --web.enable-files");
	return ERR_OK;
}

/* With `has_keep` it is kept, and *kept filled in. */
static enum err_code files_look(struct web *w, struct http_in *in, struct arena *a,
	struct any_file *any, struct kept_file *kept, bool *has_keep, struct err *err)
{
	int64_t keep_ns = 0;
	struct str name = http_param(in, "name");
	enum err_code rc = api_duration(in, "keep", &keep_ns, has_keep, err);

	if (rc || (*has_keep && (rc = files_check_keep(w, err))))
		return rc;
	if ((rc = any_decode(a, in->body, name, any, err)) || !*has_keep)
		return rc;
	return kept_put(w->o.files, name, in->body, keep_ns, clock_now_ns(), kept, err);
}

void files_post(struct web *w, struct http_in *in, struct http_out *out)
{
	struct kept_file kept;
	struct any_file any;
	bool has_keep = false;
	struct arena a;
	enum err_code rc;
	struct err err;

	if (!files_enter(w)) {
		rc = err_set(&err, ERR_UNAVAILABLE, "too many files at once: try again later");
		files_fail(out, rc, &err);
		return;
	}
	arena_init(&a, DECODE_BYTES_MAX);
	rc = files_look(w, in, &a, &any, &kept, &has_keep, &err);
	if (rc)
		files_fail(out, rc, &err);
	else
		files_write_contents(
			w, out, http_param(in, "name"), in->body.len, &any, has_keep ? &kept : NULL, &a);
	arena_release(&a);
	files_leave(w);
}

/* ---- kept files ---- */

static struct str files_id_of(const struct http_in *in)
{
	return (struct str){ in->path.ptr + PATH.len, in->path.len - PATH.len };
}

static enum err_code files_send_bytes(struct http_in *in, struct http_out *out,
	const struct kept_file *f, struct str bytes, struct err *err)
{
	char *disposition = arena_printf(
		&in->arena, "attachment; filename=\"%s\"", f->name); /* harmless: kept.h */

	if (!disposition)
		return arena_fail(&in->arena, "file", err);
	out->content_type = "application/octet-stream";
	out->encoded = true; /* mostly it is gzip already */
	buf_add(&out->body, bytes.ptr, bytes.len);
	http_add_header(out, "Content-Disposition", str_of(disposition));
	return buf_failed(&out->body) ? err_nomem(err, "file") : ERR_OK;
}

static enum err_code files_web_files_get(
	struct web *w, struct http_in *in, struct http_out *out, struct arena *a, struct err *err)
{
	struct str bytes;
	bool content;
	struct kept_file f;
	struct any_file any;
	enum err_code rc;

	if ((rc = api_bool(in, "content", &content, err)))
		return rc;
	if (!w->o.files)
		return files_check_keep(w, err);
	if ((rc = kept_get(w->o.files, files_id_of(in), clock_now_ns(), a, &f, &bytes, err)))
		return rc;
	if (content)
		return files_send_bytes(in, out, &f, bytes, err);
	if ((rc = any_decode(a, bytes, str_of(f.name), &any, err)))
		return rc;
	files_write_contents(w, out, str_of(f.name), bytes.len, &any, &f, a);
	return ERR_OK;
}

void files_get(struct web *w, struct http_in *in, struct http_out *out)
{
	struct arena a;
	enum err_code rc;
	struct err err;

	if (!files_enter(w)) {
		rc = err_set(&err, ERR_UNAVAILABLE, "too many files at once: try again later");
		files_fail(out, rc, &err);
		return;
	}
	arena_init(&a, DECODE_BYTES_MAX);
	if ((rc = files_web_files_get(w, in, out, &a, &err)))
		files_fail(out, rc, &err);
	arena_release(&a);
	files_leave(w);
}

void files_delete(struct web *w, struct http_in *in, struct http_out *out)
{
	enum err_code rc;
	struct err err;
	struct json j;

	if ((rc = files_check_keep(w, &err)) || (rc = kept_delete(w->o.files, files_id_of(in), &err))) {
		files_fail(out, rc, &err);
		return;
	}
	api_begin(out, &j);
	json_null(&j);
	api_end(&j, NULL, 0, NULL, 0);
}

void files_list(struct web *w, struct http_in *in, struct http_out *out)
{
	struct kept_listing l = { 0 };
	enum err_code rc;
	struct err err;
	struct json j;
	uint64_t bytes = 0;

	/* Who knows an id may read the file, so the list is not for everybody. */
	if (!w->o.enable_admin_api && w->o.elsewhere.files) {
		api_error(out, 403, "unavailable", "%s", w->o.elsewhere.files);
		return;
	}
	if (!w->o.enable_admin_api) {
		api_error(
			out, 403, "unavailable", "admin APIs disabled: start with --web.enable-admin-api");
		return;
	}
	if (w->o.files && (rc = kept_list(w->o.files, clock_now_ns(), &in->arena, &l, &err))) {
		files_fail(out, rc, &err);
		return;
	}
	api_begin(out, &j);
	json_object(&j);
	json_key(&j, "files");
	json_array(&j);
	for (size_t i = 0; i < l.n; i++) {
		json_object(&j);
		files_write_file(&j, &l.v[i]);
		json_key(&j, "name");
		json_cstr(&j, l.v[i].name);
		files_write_u64(&j, "bytes", l.v[i].bytes);
		json_object_end(&j);
		bytes += l.v[i].bytes;
	}
	json_array_end(&j);
	files_write_u64(&j, "bytes", bytes);
	files_write_u64(&j, "bytesMax", w->o.files ? kept_limits(w->o.files)->bytes_max : 0);
	files_write_time(
		&j, "keepMax", w->o.files && w->o.enable_files ? kept_limits(w->o.files)->time_max_ns : 0);
	json_object_end(&j);
	api_end(&j, &l.warning, l.warning.len > 0, NULL, 0);
}
