/*
 * A result as one pprof profile: all elements merged, the labels in which they differ as sample
 * labels, a diff's base as negative samples with the label pprof::base, as `go tool pprof
 * -diff_base` makes it.
 */
#include "promql/frame.h"
#include "web/pprof_symbols.h"
#include "web/render.h"
#include "web/render_profile.h"

#define BASE_LABEL STR("pprof::base")
#define CELLS_UNCHECKED 1024u /* between two looks whether the answer is still wanted */
#define GZIP_LEVEL 1 /* twice as fast as the default for a tenth more bytes */
#define STACK_DEPTH_MAX 65536u

struct building {
	const struct render_options *o;
	struct pprof_builder *b;
	struct str *labels; /* names that differ between elements */
	size_t labels_n;
	uint32_t *stack;
	size_t stack_cap;
	struct pprof_label *sample_labels;
	size_t sample_labels_cap;
	struct pprof_symbols symbols;
};

/* ---- what to render ---- */

enum err_code render_profiles_of(const struct result *r, struct arena *a, const char *format,
	const struct profile_value ***out, size_t *n, struct err *err)
{
	static const char *const names[] = { "profiles", "a table", "a vector", "a matrix",
		"a scalar", "a string", "a scrape" };
	const struct profile_value **v, *p;

	if (r->type != RESULT_PROFILES && r->type != RESULT_TOP)
		return err_set(err, ERR_INVALID, "format=%s wants profiles, the query gives %s",
			format, names[r->type]);
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

enum err_code render_element_name(const struct profile_value *p, const struct str *labels,
	size_t n, struct arena *a, struct str *out, struct err *err)
{
	struct buf text = { 0 };

	for (size_t i = 0; i < n; i++) {
		struct str value = labels_get(p->metric, labels[i]);

		if (value.len > 0)
			buf_printf(&text, "%s" STR_FMT "=" STR_FMT, text.len ? " " : "",
				STR_ARG(labels[i]), STR_ARG(value));
	}
	*out = text.len ? str_dup(a, buf_str(&text)) : STR("{}");
	buf_release(&text);
	return out->ptr ? ERR_OK : arena_fail(a, "answer", err);
}

/* ---- samples ---- */

static enum err_code stack_of(struct building *x, const struct partition *p,
	struct symbol_table *t, uint32_t node, uint32_t *depth, struct err *err)
{
	struct sym_node at;
	uint32_t *grown, location = 0;
	enum err_code rc;

	*depth = 0;
	for (; node != 0 && *depth < STACK_DEPTH_MAX; node = at.parent) {
		at = sym_node(p, node);
		if (*depth == x->stack_cap) {
			x->stack_cap = x->stack_cap ? x->stack_cap * 2 : 256;
			if (!(grown = arena_array(x->o->arena, uint32_t, x->stack_cap)))
				return arena_fail(x->o->arena, "answer", err);
			if (*depth)
				memcpy(grown, x->stack, *depth * sizeof(*grown));
			x->stack = grown;
		}
		if ((rc = pprof_symbols_location(&x->symbols, t, at.location, &location, err)))
			return rc;
		x->stack[(*depth)++] = location;
	}
	return ERR_OK;
}

/* The sample's own labels, renamed where an element's label has their name. */
static enum err_code labels_of(struct building *x, const struct partition *p, struct labels metric,
	uint32_t label_set, bool is_base, uint32_t *n, struct err *err)
{
	struct sym_label_set set = sym_label_set(p, label_set);
	size_t need = set.n + x->labels_n + 1;
	struct arena *a = x->o->arena;
	struct str key;
	char *renamed;

	if (need > x->sample_labels_cap) {
		x->sample_labels_cap = need * 2;
		x->sample_labels = arena_array(a, struct pprof_label, x->sample_labels_cap);
		if (!x->sample_labels)
			return arena_fail(a, "answer", err);
	}
	*n = 0;
	for (uint32_t i = 0; i < set.n; i++) {
		key = sym_string(p, set.v[i].key);
		for (size_t k = 0; k < x->labels_n; k++)
			if (str_eq(key, x->labels[k])) {
				if (!(renamed = arena_printf(a, "sample_" STR_FMT, STR_ARG(key))))
					return arena_fail(a, "answer", err);
				key = str_of(renamed);
				break;
			}
		x->sample_labels[(*n)++] = (struct pprof_label){ .key = pprof_builder_string(
									 x->b, key),
			.str = pprof_builder_string(x->b, sym_string(p, set.v[i].str)),
			.num_unit = pprof_builder_string(x->b, sym_string(p, set.v[i].num_unit)),
			.num = set.v[i].num };
	}
	for (size_t k = 0; k < x->labels_n; k++) {
		struct str value = labels_get(metric, x->labels[k]);

		if (value.len > 0)
			x->sample_labels[(*n)++] = (struct pprof_label){
				.key = pprof_builder_string(x->b, x->labels[k]),
				.str = pprof_builder_string(x->b, value)
			};
	}
	if (is_base)
		x->sample_labels[(*n)++] = (struct pprof_label){ .key = pprof_builder_string(
									 x->b, BASE_LABEL),
			.str = pprof_builder_string(x->b, STR("true")) };
	return ERR_OK;
}

static enum err_code add_cell(struct building *x, const struct partition *p,
	struct symbol_table *t, const struct profile_value *v, const struct cell *c,
	struct err *err)
{
	uint32_t depth, labels_n = 0;
	enum err_code rc;
	int64_t value;

	if ((rc = stack_of(x, p, t, c->stack, &depth, err)))
		return rc;
	for (int is_base = 0; is_base < 2; is_base++) {
		value = is_base ? -c->base : c->value;
		if (value == 0)
			continue;
		if ((rc = labels_of(x, p, v->metric, c->label_set, is_base, &labels_n, err)))
			return rc;
		pprof_builder_sample(x->b, x->stack, depth, x->sample_labels, labels_n, &value);
	}
	return ERR_OK;
}

/* ---- header ---- */

static void add_comments(struct building *x, const struct part *part)
{
	struct pprof *p = pprof_builder_profile(x->b);
	uint32_t id, k;

	for (uint32_t i = 0; i < part->headers_n; i++) {
		const struct sym_header *h = sym_header(part->partition, part->headers[i]);

		for (uint32_t c = 0; c < h->comments_n; c++) {
			struct str text = sym_string(part->partition, h->comments[c]);

			id = pprof_builder_string(x->b, text);
			for (k = 0; k < p->comments_n && p->comments[k] != id; k++)
				;
			if (k == p->comments_n)
				pprof_builder_comment(x->b, text);
		}
		if (p->doc_url == 0)
			p->doc_url = pprof_builder_string(
				x->b, sym_string(part->partition, h->doc_url));
	}
}

static void add_times(struct pprof *to, const struct profile_value *p)
{
	if (p->time_nanos != 0 && (to->time_nanos == 0 || p->time_nanos < to->time_nanos))
		to->time_nanos = p->time_nanos;
	to->duration_nanos = duration_sum(to->duration_nanos, p->duration_nanos);
	if (p->period > to->period)
		to->period = p->period;
}

static enum err_code add_header(
	struct building *x, const struct profile_value *const *v, size_t n, struct err *err)
{
	const struct profile_type *type = &v[0]->type;
	struct str drop, keep, sample_type = type->sample_type;
	struct pprof *p = pprof_builder_profile(x->b);
	struct symbol_table *t;
	uint32_t program;
	enum err_code rc;

	pprof_builder_type(x->b, sample_type.len ? sample_type : STR("cost"), type->sample_unit);
	p->period_type.type = pprof_builder_string(x->b, type->period_type);
	p->period_type.unit = pprof_builder_string(x->b, type->period_unit);
	for (size_t i = 0; i < n; i++) {
		add_times(p, v[i]);
		if (p->drop_frames == 0) {
			frame_filter_of_profile(v[i], &drop, &keep);
			p->drop_frames = pprof_builder_string(x->b, drop);
			p->keep_frames = pprof_builder_string(x->b, keep);
		}
		for (size_t k = 0; k < v[i]->parts_n; k++) {
			const struct part *part = &v[i]->parts[k];
			const struct sym_header *h;

			add_comments(x, part);
			if (p->mappings_n > 0 || part->headers_n == 0)
				continue;
			/* A profile's first mapping is its program. */
			h = sym_header(part->partition, part->headers[0]);
			if (h->mappings_n == 0)
				continue;
			if ((rc = pprof_symbols_table(&x->symbols, part, &t, err)) ||
				(rc = pprof_symbols_mapping(
					 &x->symbols, t, h->mappings[0], &program, err)))
				return rc;
		}
	}
	return ERR_OK;
}

/* ---- all of it ---- */

static enum err_code add_part(struct building *x, const struct profile_value *v,
	const struct part *part, struct err *err)
{
	struct symbol_table *t;
	enum err_code rc;

	rc = pprof_symbols_table(&x->symbols, part, &t, err);
	for (size_t i = 0; i < part->n && !rc; i++)
		if (i % CELLS_UNCHECKED || !(rc = render_check(x->o, err)))
			rc = add_cell(x, part->partition, t, v, &part->cells[i], err);
	return rc;
}

enum err_code render_pprof(
	const struct result *r, const struct render_options *o, struct pprof **out, struct err *err)
{
	struct building x = { .o = o };
	const struct profile_value **v;
	enum err_code rc;
	size_t n;

	if ((rc = render_profiles_of(r, o->arena, "pprof", &v, &n, err)) ||
		(rc = render_differing_labels(v, n, o->arena, &x.labels, &x.labels_n, err)) ||
		(rc = pprof_builder_open(o->arena, &x.b, err)))
		return rc;
	pprof_symbols_init(&x.symbols, o->arena, x.b);
	rc = add_header(&x, v, n, err);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < v[i]->parts_n && !rc; k++)
			rc = add_part(&x, v[i], &v[i]->parts[k], err);
	pprof_symbols_release(&x.symbols);
	return rc ? rc : pprof_builder_finish(x.b, out, err);
}

enum err_code render_encode_gz(const struct pprof *p, struct buf *out, struct err *err)
{
	struct buf wire = { 0 };
	enum err_code rc;

	if (!(rc = pprof_encode(p, &wire, err)) && wire.len > RENDER_PPROF_BYTES_MAX)
		rc = err_set(err, ERR_LIMIT, "the profile is %zu bytes, limit %u", wire.len,
			RENDER_PPROF_BYTES_MAX);
	if (!rc)
		rc = gzip_compress(buf_str(&wire), GZIP_LEVEL, out, err);
	buf_release(&wire);
	return rc;
}

enum err_code render_pprof_gz(
	const struct result *r, const struct render_options *o, struct buf *out, struct err *err)
{
	struct pprof *p;
	enum err_code rc = render_pprof(r, o, &p, err);

	return rc ? rc : render_encode_gz(p, out, err);
}
