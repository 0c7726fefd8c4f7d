/*
 * A result as one pprof profile: all elements merged. Labels in which they differ become sample
 * labels.
 */
#include <assert.h>

#include "base/gzip/gzip.h"
#include "promql/pprof/profiles.h"
#include "web/render/notices.h"
#include "web/render/profile.h"
#include "web/render/render.h"

#define GZIP_LEVEL 1 /* twice as fast as the default for a tenth more bytes */
#define SCRAPE_GZIP_LEVEL 6

/* ---- what to render ---- */

enum err_code render_profiles_of(const struct result *r, struct arena *a, const char *format,
	const struct profile_value ***out, size_t *n, struct err *err)
{
	static const char *const names[] = { "profiles", "a table", "a vector", "a matrix", "a scalar",
		"a string", "a scrape" };
	const struct profile_value **v, *p;

	if (r->type != RESULT_PROFILES && r->type != RESULT_TOP)
		return err_set(err, ERR_INVALID, "format=%s needs profiles, the query gives %s", format,
			names[r->type]);
	if (r->n == 0)
		return err_set(err, ERR_NOT_FOUND, "the query found no profiles");
	if (!(v = arena_calloc(a, r->n, sizeof(*v))))
		return arena_fail(a, "answer", err);
	for (size_t i = 0; i < r->n; i++) {
		p = r->type == RESULT_TOP ? r->tops[i].source : &r->profiles[i];
		if (i > 0 && !str_eq(p->type.sample_unit, v[0]->type.sample_unit))
			return err_set(err, ERR_INVALID,
				"the profiles have two units: " STR_FMT " and " STR_FMT,
				STR_ARG(v[0]->type.sample_unit), STR_ARG(p->type.sample_unit));
		v[i] = p;
	}
	*out = v;
	*n = r->n;
	return ERR_OK;
}

enum err_code render_differing_labels(const struct profile_value *const *v, size_t n,
	struct arena *a, struct str **out, size_t *out_n, struct err *err)
{
	struct labels_builder names;
	struct labels all;
	struct str *differing;
	enum err_code rc;

	assert(n > 0);
	*out_n = 0;
	labels_builder_init(&names, a, (struct labels){ 0 });
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < v[i]->metric.n; k++)
			labels_builder_set(&names, v[i]->metric.v[k].name, v[i]->metric.v[k].value);
	if ((rc = labels_builder_build(&names, &all, err)))
		return rc;
	if (!(differing = arena_array(a, struct str, all.n + 1)))
		return arena_fail(a, "answer", err);
	for (size_t k = 0; k < all.n; k++) {
		bool differs = false;

		for (size_t i = 0; i < n && !differs; i++)
			differs = !str_eq(labels_get(v[i]->metric, all.v[k].name), all.v[k].value);
		if (differs && !str_is(all.v[k].name, LABEL_NAME))
			differing[(*out_n)++] = all.v[k].name;
	}
	*out = differing;
	return ERR_OK;
}

enum err_code render_element_name(const struct profile_value *p, const struct str *labels, size_t n,
	struct arena *a, struct str *out, struct err *err)
{
	struct buf text = { 0 };

	for (size_t i = 0; i < n; i++) {
		struct str value = labels_get(p->metric, labels[i]);

		if (value.len > 0)
			buf_printf(&text, "%s" STR_FMT "=" STR_FMT, text.len ? " " : "", STR_ARG(labels[i]),
				STR_ARG(value));
	}
	*out = text.len ? str_dup(a, buf_str(&text)) : STR("{}");
	buf_release(&text);
	return out->ptr ? ERR_OK : arena_fail(a, "answer", err);
}

/* ---- all of it ---- */

enum err_code render_pprof(
	const struct result *r, const struct render_options *o, struct pprof **out, struct err *err)
{
	const struct notices notices = notices_of(r);
	const struct profile_value **v;
	struct str *labels;
	size_t n, labels_n;
	enum err_code rc;

	if ((rc = render_profiles_of(r, o->arena, "pprof", &v, &n, err)) ||
		(rc = render_differing_labels(v, n, o->arena, &labels, &labels_n, err)) ||
		(rc = profiles_to_pprof(o->arena, v, n, labels, labels_n, o->canceled, out, err)))
		return rc;
	return notices_add_comments(&notices, o->arena, *out, err);
}

enum err_code render_encode_gz(const struct pprof *p, struct buf *out, struct err *err)
{
	struct buf wire = { 0 };
	enum err_code rc;

	if (!(rc = pprof_encode(p, &wire, err)) && wire.len > RENDER_PPROF_BYTES_MAX)
		rc = err_set(
			err, ERR_LIMIT, "the profile is %zu bytes, limit %u", wire.len, RENDER_PPROF_BYTES_MAX);
	if (!rc)
		rc = gzip_compress(buf_str(&wire), GZIP_LEVEL, out, err);
	buf_release(&wire);
	return rc;
}

static enum err_code render_pprof_scrape_gz(
	const struct result *r, const struct render_options *o, struct buf *out, struct err *err)
{
	const struct notices notices = notices_of(r);
	struct pprof scrape = *r->scrape;
	struct buf wire = { 0 };
	enum err_code rc;

	if (!(rc = notices_add_comments(&notices, o->arena, &scrape, err)) &&
		!(rc = pprof_encode(&scrape, &wire, err)))
		rc = gzip_compress(buf_str(&wire), SCRAPE_GZIP_LEVEL, out, err);
	buf_release(&wire);
	return rc;
}

enum err_code render_pprof_gz(
	const struct result *r, const struct render_options *o, struct buf *out, struct err *err)
{
	struct pprof *p;
	enum err_code rc;

	if (r->type == RESULT_SCRAPE)
		return render_pprof_scrape_gz(r, o, out, err);
	rc = render_pprof(r, o, &p, err);
	return rc ? rc : render_encode_gz(p, out, err);
}
