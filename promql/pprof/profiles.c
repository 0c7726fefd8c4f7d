/*
 * Profiles as one pprof profile: all elements merged, the labels asked for as sample labels, a
 * diff's base as negative samples with the label pprof::base, as `go tool pprof -diff_base` makes
 * it.
 */
#include "promql/pprof/profiles.h"

#include "base/array.h"
#include "promql/pprof/symbols.h"
#include "promql/profiles/frame.h"

#define BASE_LABEL STR("pprof::base")
#define CELLS_UNCHECKED 1024u /* between two looks whether it is still wanted */
#define STACK_DEPTH_MAX 65536u

struct building {
	struct arena *arena;
	struct pprof_builder *b;
	const struct str *labels; /* names that differ between elements */
	size_t labels_n;
	uint32_t *stack;
	size_t stack_cap;
	struct pprof_label *sample_labels;
	size_t sample_labels_cap;
	struct pprof_symbols symbols;
	const atomic_bool *canceled; /* nobody wants it any more; NULL: is not asked */
};

/* ---- samples ---- */

static enum err_code pprof_profiles_stack_of(struct building *b, const struct partition *p,
	struct symbol_table *t, uint32_t node, uint32_t *depth, struct err *err)
{
	struct sym_node at;
	uint32_t location = 0;
	enum err_code rc;

	*depth = 0;
	for (; node != 0 && *depth < STACK_DEPTH_MAX; node = at.parent) {
		at = sym_node(p, node);
		if (!arena_array_room(b->arena, &b->stack, *depth, 1, &b->stack_cap))
			return arena_fail(b->arena, "profile", err);
		if ((rc = pprof_symbols_location(&b->symbols, t, at.location, &location, err)))
			return rc;
		b->stack[(*depth)++] = location;
	}
	return ERR_OK;
}

/* The sample's own labels, renamed where an element's label has their name. */
static enum err_code labels_of(struct building *b, const struct partition *p, struct labels metric,
	uint32_t label_set, bool is_base, uint32_t *n, struct err *err)
{
	struct sym_label_set set = sym_label_set(p, label_set);
	size_t need = set.n + b->labels_n + 1;
	struct arena *a = b->arena;
	struct str key;
	char *renamed;

	if (need > b->sample_labels_cap) {
		b->sample_labels_cap = need * 2;
		b->sample_labels = arena_array(a, struct pprof_label, b->sample_labels_cap);
		if (!b->sample_labels)
			return arena_fail(a, "profile", err);
	}
	*n = 0;
	for (uint32_t i = 0; i < set.n; i++) {
		key = sym_string(p, set.v[i].key);
		for (size_t k = 0; k < b->labels_n; k++)
			if (str_eq(key, b->labels[k])) {
				if (!(renamed = arena_printf(a, "sample_" STR_FMT, STR_ARG(key))))
					return arena_fail(a, "profile", err);
				key = str_of(renamed);
				break;
			}
		b->sample_labels[(*n)++] = (struct pprof_label){ .key = pprof_builder_string(b->b, key),
			.str = pprof_builder_string(b->b, sym_string(p, set.v[i].str)),
			.num_unit = pprof_builder_string(b->b, sym_string(p, set.v[i].num_unit)),
			.num = set.v[i].num };
	}
	for (size_t k = 0; k < b->labels_n; k++) {
		struct str value = labels_get(metric, b->labels[k]);

		if (value.len > 0)
			b->sample_labels[(*n)++] = (struct pprof_label){ .key = pprof_builder_string(
																 b->b, b->labels[k]),
				.str = pprof_builder_string(b->b, value) };
	}
	if (is_base)
		b->sample_labels[(*n)++] = (struct pprof_label){ .key = pprof_builder_string(
															 b->b, BASE_LABEL),
			.str = pprof_builder_string(b->b, STR("true")) };
	return ERR_OK;
}

static enum err_code pprof_profiles_add_cell(struct building *b, const struct partition *p,
	struct symbol_table *t, const struct profile_value *v, const struct cell *c, struct err *err)
{
	uint32_t depth, labels_n = 0;
	enum err_code rc;
	int64_t value;

	if ((rc = pprof_profiles_stack_of(b, p, t, c->stack, &depth, err)))
		return rc;
	for (int is_base = 0; is_base < 2; is_base++) {
		value = is_base ? -c->base : c->value;
		if (value == 0)
			continue;
		if ((rc = labels_of(b, p, v->metric, c->label_set, is_base, &labels_n, err)))
			return rc;
		pprof_builder_sample(b->b, b->stack, depth, b->sample_labels, labels_n, &value);
	}
	return ERR_OK;
}

/* ---- header ---- */

static void pprof_profiles_add_comments(struct building *b, const struct part *part)
{
	struct pprof *p = pprof_builder_profile(b->b);
	uint32_t id, k;

	for (uint32_t i = 0; i < part->headers_n; i++) {
		const struct sym_header *h = sym_header(part->partition, part->headers[i]);

		for (uint32_t c = 0; c < h->comments_n; c++) {
			struct str text = sym_string(part->partition, h->comments[c]);

			id = pprof_builder_string(b->b, text);
			for (k = 0; k < p->comments_n && p->comments[k] != id; k++)
				;
			if (k == p->comments_n)
				pprof_builder_comment(b->b, text);
		}
		if (p->doc_url == 0)
			p->doc_url = pprof_builder_string(b->b, sym_string(part->partition, h->doc_url));
	}
}

static void pprof_add_times(struct pprof *to, const struct profile_value *p)
{
	if (p->time_nanos != 0 && (to->time_nanos == 0 || p->time_nanos < to->time_nanos))
		to->time_nanos = p->time_nanos;
	to->duration_nanos = value_duration_sum(to->duration_nanos, p->duration_nanos);
	if (p->period > to->period)
		to->period = p->period;
}

static enum err_code pprof_profiles_add_header(
	struct building *b, const struct profile_value *const *v, size_t n, struct err *err)
{
	const struct profile_type *type = &v[0]->type;
	struct str drop, keep, sample_type = type->sample_type;
	struct pprof *p = pprof_builder_profile(b->b);
	struct symbol_table *t;
	uint32_t program;
	enum err_code rc;

	pprof_builder_type(b->b, sample_type.len ? sample_type : STR("cost"), type->sample_unit);
	p->period_type.type = pprof_builder_string(b->b, type->period_type);
	p->period_type.unit = pprof_builder_string(b->b, type->period_unit);
	for (size_t i = 0; i < n; i++) {
		pprof_add_times(p, v[i]);
		if (p->drop_frames == 0) {
			profile_drop_frames(v[i], &drop, &keep);
			p->drop_frames = pprof_builder_string(b->b, drop);
			p->keep_frames = pprof_builder_string(b->b, keep);
		}
		for (size_t k = 0; k < v[i]->parts_n; k++) {
			const struct part *part = &v[i]->parts[k];
			const struct sym_header *h;

			pprof_profiles_add_comments(b, part);
			if (p->mappings_n > 0 || part->headers_n == 0)
				continue;
			/* A profile's first mapping is its program. */
			h = sym_header(part->partition, part->headers[0]);
			if (h->mappings_n == 0)
				continue;
			if ((rc = pprof_symbols_table(&b->symbols, part, &t, err)) ||
				(rc = pprof_symbols_mapping(&b->symbols, t, h->mappings[0], &program, err)))
				return rc;
		}
	}
	return ERR_OK;
}

/* ---- all of it ---- */

static enum err_code pprof_profiles_check(const struct building *b, struct err *err)
{
	return b->canceled && atomic_load_explicit(b->canceled, memory_order_relaxed) ?
		err_set(err, ERR_CANCELED, "the request was canceled") :
		ERR_OK;
}

static enum err_code pprof_profiles_add_part(
	struct building *b, const struct profile_value *v, const struct part *part, struct err *err)
{
	struct symbol_table *t;
	enum err_code rc;

	rc = pprof_symbols_table(&b->symbols, part, &t, err);
	for (size_t i = 0; i < part->n && !rc; i++)
		if (i % CELLS_UNCHECKED || !(rc = pprof_profiles_check(b, err)))
			rc = pprof_profiles_add_cell(b, part->partition, t, v, &part->cells[i], err);
	return rc;
}

enum err_code profiles_to_pprof(struct arena *a, const struct profile_value *const *v, size_t n,
	const struct str *labels, size_t labels_n, const atomic_bool *canceled, struct pprof **out,
	struct err *err)
{
	struct building x = {
		.arena = a, .labels = labels, .labels_n = labels_n, .canceled = canceled
	};
	enum err_code rc;

	if ((rc = pprof_builder_open(a, &x.b, err)))
		return rc;
	pprof_symbols_init(&x.symbols, a, x.b);
	rc = pprof_profiles_add_header(&x, v, n, err);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < v[i]->parts_n && !rc; k++)
			rc = pprof_profiles_add_part(&x, v[i], &v[i]->parts[k], err);
	pprof_symbols_release(&x.symbols);
	return rc ? rc : pprof_builder_finish(x.b, out, err);
}
