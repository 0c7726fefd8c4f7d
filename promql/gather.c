/*
 * Adds up the series that a selector chose. The database fills one accumulator per group and
 * partition, which is then read out as cells. Values of gauges stay multiplied by the time that
 * they count here. They are divided by that of the whole selection, so that groups add up to it.
 */
#include "promql/gather.h"

#include <assert.h>
#include <stdlib.h>

/* ---- reading out ---- */

struct verdicts {
	char *v; /* per label set: 0 not known, 'y', 'n' */
	struct buf text;
};

static bool gather_keeps(
	struct gathering *g, const struct slot *slot, struct verdicts *known, uint32_t label_set)
{
	const struct partition *p = slot->partition;
	const struct matcher *m = g->s->selector->matchers;
	struct str key;
	bool keep = true;

	if (known->v[label_set])
		return known->v[label_set] == 'y';
	for (size_t i = 0; i < g->s->selector->matchers_n && keep; i++) {
		if (!(slot->deferred >> i & 1))
			continue;
		label_source(slot->series[0]->labels, p, m[i].name, &key);
		buf_clear(&known->text);
		sym_label_value(p, label_set, key, &known->text);
		keep = matcher_test(&m[i], buf_str(&known->text));
	}
	known->v[label_set] = keep ? 'y' : 'n';
	return keep;
}

/* All that follows looks stacks and label sets up by these ids; each comes by here once. */
static bool gather_is_there(const struct partition *p, const struct accum_cell *c)
{
	return (!c->stack || sym_exists(p, SYM_NODE, c->stack)) &&
		(!c->label_set || sym_exists(p, SYM_LABEL_SET, c->label_set));
}

enum err_code gather_too_large(const struct gathering *g, struct err *err)
{
	const struct fit *fit = NULL;

	for (size_t i = 0; i < g->s->n && !fit; i++)
		fit = g->s->v[i].fit;
	return work_fault(g->work, g->s->expr, err, ERR_LIMIT, "a sum exceeds 64 bits%s" STR_FMT,
		fit ? " in " : "", STR_ARG(fit ? fit->unit : STR("")));
}

static enum err_code gather_read_cells(struct gathering *g, const struct slot *slot,
	struct verdicts *known, struct part *part, struct err *err)
{
	struct accum_cell c;
	__int128 value;
	size_t at = 0;

	while (accum_next(slot->sums.acc, &at, &c)) {
		if (!gather_is_there(part->partition, &c))
			return work_fault(
				g->work, g->s->expr, err, ERR_CORRUPT, "a stack of the sum is not stored");
		if (slot->deferred && !gather_keeps(g, slot, known, c.label_set))
			continue;
		if (!slot_convert(slot, c.value, &value) || (!g->wide && value != (int64_t)value))
			return gather_too_large(g, err);
		if (g->wide)
			part->wide[part->n] = value;
		part->cells[part->n++] = (struct cell){
			.stack = c.stack, .label_set = c.label_set, .value = g->wide ? 0 : (int64_t)value
		};
	}
	return ERR_OK;
}

/* Costs by name, in the selection's unit. */
static enum err_code gather_read_names(
	struct gathering *g, const struct slot *slot, struct part *part, struct err *err)
{
	int64_t scale = slot->fit ? slot->fit->scale : 1;
	struct function_sum *v;
	enum err_code rc = function_sums_list(slot->sums.functions, g->work->arena, &part->names,
		&part->names_n, &part->names_total, err);

	if (rc || scale == 1 || part->names_n == 0)
		return rc;
	if (!(v = arena_alloc_raw(g->work->arena, part->names_n, sizeof(*v))))
		return work_nomem(g->work, err);
	for (size_t i = 0; i < part->names_n; i++) {
		v[i] = part->names[i];
		if (__builtin_mul_overflow(v[i].flat, scale, &v[i].flat) ||
			__builtin_mul_overflow(v[i].cum, scale, &v[i].cum))
			return gather_too_large(g, err);
	}
	part->names = v;
	return __builtin_mul_overflow(part->names_total, scale, &part->names_total) ?
		gather_too_large(g, err) :
		ERR_OK;
}

static enum err_code gather_read_slot(
	struct gathering *g, const struct slot *slot, struct part *part, struct err *err)
{
	struct verdicts known = { 0 };
	enum err_code rc;
	size_t n;

	*part = (struct part){ .partition = slot->partition,
		.headers = slot->sums.stats.headers,
		.headers_n = slot->sums.stats.headers_n };
	if ((rc = accum_seal(slot->sums.acc, err)))
		return rc;
	n = accum_cells_n(slot->sums.acc);
	part->cells = arena_alloc_raw(g->work->arena, n + 1, sizeof(*part->cells));
	if (g->wide)
		part->wide = arena_alloc_raw(g->work->arena, n + 1, sizeof(*part->wide));
	if (slot->deferred)
		known.v = arena_array(g->work->arena, char, sym_label_sets_n(part->partition));
	if (!part->cells || (g->wide && !part->wide) || (slot->deferred && !known.v))
		return work_nomem(g->work, err);
	while (part->headers_plain < part->headers_n &&
		!sym_header(part->partition, part->headers[part->headers_plain])->drop_frames)
		part->headers_plain++;
	rc = gather_read_cells(g, slot, &known, part, err);
	buf_release(&known.text);
	return rc || !slot->sums.functions ? rc : gather_read_names(g, slot, part, err);
}

static void gather_add_stats(struct profile_value *p, const struct slot *slot)
{
	const struct sum_stats *s = &slot->sums.stats;
	int64_t period;

	if (__builtin_mul_overflow(s->period, slot->fit ? slot->fit->period_scale : 1, &period))
		period = INT64_MAX;
	p->profiles += s->rows;
	if (s->time_nanos != 0 && (p->time_nanos == 0 || s->time_nanos < p->time_nanos))
		p->time_nanos = s->time_nanos;
	p->duration_nanos = value_duration_sum(p->duration_nanos, s->duration_ns);
	p->elapsed_ns += s->elapsed_ns;
	p->profiled_ns += s->profiled_ns;
	if (period > p->period)
		p->period = period;
	if (p->end_ns == 0 || s->start_ns < p->start_ns)
		p->start_ns = s->start_ns;
	if (s->end_ns > p->end_ns)
		p->end_ns = s->end_ns;
}

/* Slots of one partition (some of its series were asked more of their samples) become one part. */
static enum err_code gather_join_part(
	struct gathering *g, struct profile_value *p, const struct part *add, struct err *err)
{
	struct part *into = NULL;
	struct value pair;
	enum err_code rc;

	for (size_t i = 0; i < p->parts_n && !into; i++)
		if (p->parts[i].partition == add->partition)
			into = &p->parts[i];
	if (!into) {
		p->parts[p->parts_n++] = *add;
		return ERR_OK;
	}
	pair = (struct value){ .type = VALUE_PROFILES, .n = 2 };
	pair.profiles = arena_array(g->work->arena, struct profile_value, 2);
	if (!pair.profiles)
		return work_nomem(g->work, err);
	for (size_t i = 0; i < 2; i++) {
		pair.profiles[i].divisor = g->wide;
		pair.profiles[i].parts_n = 1;
		if (!(pair.profiles[i].parts = arena_new(g->work->arena, struct part)))
			return work_nomem(g->work, err);
		pair.profiles[i].parts[0] = i ? *add : *into;
	}
	if ((rc = profiles_merge(g->work, &pair, GROUPING_NONE, (struct name_list){ 0 }, &pair, err)))
		return rc;
	*into = pair.profiles[0].parts[0];
	return ERR_OK;
}

static enum err_code gather_add_part(
	struct gathering *g, struct profile_value *p, const struct part *part, struct err *err)
{
	for (size_t k = 0; k < part->n; k++)
		p->wide_total += g->wide ? part->wide[k] : part->cells[k].value;
	p->wide_total += part->names_total;
	return gather_join_part(g, p, part, err);
}

/* All are read before the first is multiplied by its factor. */
static enum err_code gather_read_fractions(
	struct gathering *g, struct profile_value *p, struct err *err)
{
	struct part *parts = calloc(g->of_n + 1, sizeof(*parts));
	enum err_code rc = parts ? ERR_OK : work_nomem(g->work, err);

	for (size_t i = 0; i < g->of_n && !rc; i++)
		if (slot_is_read(&g->of[i]))
			rc = gather_read_slot(g, &g->of[i], &parts[i], err);
	if (!rc)
		rc = siblings_widen(g, parts, err);
	for (size_t i = 0; i < g->of_n && !rc; i++)
		if (slot_is_read(&g->of[i]))
			rc = gather_add_part(g, p, &parts[i], err);
	free(parts);
	return rc;
}

static enum err_code gather_read_parts(
	struct gathering *g, struct profile_value *p, struct err *err)
{
	struct part part;
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < g->of_n && !rc; i++)
		if (slot_is_read(&g->of[i]) && !(rc = gather_read_slot(g, &g->of[i], &part, err)))
			rc = gather_add_part(g, p, &part, err);
	return rc;
}

static enum err_code gather_read_group(
	struct gathering *g, const struct chosen *c, struct profile_value *p, struct err *err)
{
	__int128 total;

	*p = (struct profile_value){ .metric = c->metric, .type = chosen_type(c) };
	p->parts = arena_array(g->work->arena, struct part, g->of_n);
	if (!p->parts)
		return work_nomem(g->work, err);
	for (size_t i = 0; i < g->of_n; i++)
		if (g->of[i].sums.stats.rows)
			gather_add_stats(p, &g->of[i]);
	if (!g->s->totals_only)
		return g->fraction ? gather_read_fractions(g, p, err) : gather_read_parts(g, p, err);
	if (g->fraction)
		return siblings_total(g, &p->wide_total, err);
	for (size_t i = 0; i < g->of_n; i++) {
		if (!slot_is_read(&g->of[i]))
			continue;
		if (!slot_convert(&g->of[i], g->of[i].sums.stats.total, &total) ||
			__builtin_add_overflow(p->wide_total, total, &p->wide_total))
			return gather_too_large(g, err);
	}
	return ERR_OK;
}

/* Sums by stack of this job are also kept by labels of samples, and were not read by them. */
static bool gather_may_cancel(const struct gathering *g, const struct slot *negative)
{
	struct str job = partition_name(negative->partition);

	for (size_t i = 0; i < g->of_n; i++)
		if (!g->of[i].by_labels && sym_label_sets_n(g->of[i].partition) > 1 &&
			str_eq(partition_name(g->of[i].partition), job))
			return true;
	return false;
}

static enum err_code gather_note_signs(
	struct gathering *g, struct profile_value *p, struct err *err)
{
	bool negative = false;

	for (size_t i = 0; i < g->of_n && !g->cancels; i++) {
		const struct slot *slot = &g->of[i];

		if (!slot_is_read(slot) || !slot->sums.acc || !accum_has_negative(slot->sums.acc))
			continue;
		negative = true;
		g->cancels = gather_may_cancel(g, slot);
	}
	g->negative |= negative;
	return profile_join_signs(g->work, p, err);
}

/* If types of one group differ, the fields that they share stay. */
static void gather_join_type(struct profile_type *t, struct profile_type other)
{
	const struct str none = { 0 };

	if (!str_eq(t->name, other.name))
		t->name = none;
	if (!str_eq(t->sample_type, other.sample_type))
		t->sample_type = none;
	if (!str_eq(t->period_type, other.period_type))
		t->period_type = none;
	if (!str_eq(t->period_unit, other.period_unit))
		t->period_unit = none;
}

/*
 * No sample passed the matchers: as if the series was not there, but the time was looked at.
 * Profiles without samples pass matchers that accept "".
 */
static bool gather_is_left_out(const struct gathering *g, const struct profile_value *p)
{
	bool samples = false, empty = false;

	for (size_t i = 0; i < g->of_n; i++) {
		const struct slot *slot = &g->of[i];

		if (slot->sums.stats.rows == 0)
			continue;
		if (!slot->asked || (slot->sums.stats.samples && !slot->deferred && !slot->none))
			return false;
		samples |= slot->sums.stats.samples > 0;
		empty |= slot->takes_empty;
	}
	for (size_t i = 0; i < p->parts_n; i++)
		if (p->parts[i].n > 0)
			return false;
	return samples || !empty;
}

/* Reads out a group that was summed. */
static enum err_code gather_finish_group(
	struct gathering *g, const struct chosen *c, size_t n, struct value *out, struct err *err)
{
	struct profile_value *p = &out->profiles[out->n];
	enum err_code rc;
	bool kept;

	if (g->fraction && (rc = factors_join(g, err)))
		return rc;
	if (!(rc = gather_read_group(g, c, p, err)))
		rc = gather_note_signs(g, p, err);
	kept = !rc && !gather_is_left_out(g, p);

	if (rc || p->profiles == 0)
		return rc;
	for (size_t i = 1; i < n; i++)
		gather_join_type(&p->type, chosen_type(&c[i]));
	for (size_t i = 0; i < g->of_n && !rc; i++)
		rc = cover_merge(&g->counted, &g->of[i].sums.stats.counted, g->work->arena, err);
	out->n += kept;
	return rc;
}

#define BATCH_MAX 64u

/* Groups that are summed together. */
struct gather_batch {
	struct {
		size_t first, n; /* chosen ones */
		size_t slots; /* the end of its slots */
	} groups[BATCH_MAX];
	size_t n;
};

static enum err_code gather_sum_batch(
	struct gathering *g, size_t *at, struct value *out, struct err *err)
{
	const struct selection *s = g->s;
	size_t wanted = slots_wanted(g), slots = 0;
	struct gather_batch b = { .n = 0 };
	enum err_code rc = ERR_OK;

	while (*at < s->n && b.n < BATCH_MAX && !rc && (!b.n || g->slots_n < wanted)) {
		size_t first = *at;

		slots_next_group(g);
		while (*at < s->n && s->v[*at].group == s->v[first].group)
			++*at;
		if (factors_come_first(g, &s->v[first], *at - first))
			rc = factors_add(g, &s->v[first], *at - first, err);
		for (size_t i = first, none = g->slots_n == g->from; none && i < *at && !rc; i++)
			rc = slots_add(g, &s->v[i], NULL, err);
		b.groups[b.n].first = first;
		b.groups[b.n].n = *at - first;
		b.groups[b.n++].slots = g->slots_n;
	}
	if (!rc)
		rc = slots_sum(g, err);
	for (size_t i = 0; i < b.n && !rc; i++) {
		g->of = g->slots + slots;
		g->of_n = b.groups[i].slots - slots;
		slots = b.groups[i].slots;
		rc = gather_finish_group(g, &s->v[b.groups[i].first], b.groups[i].n, out, err);
	}
	slots_close(g);
	return rc;
}

/* ---- costs by name ---- */

/* top() tells functions without a name apart by their first lines, which totals do not know. */
static bool gather_has_nameless(const struct part *part)
{
	uint32_t n = sym_functions_n(part->partition);
	bool unnamed = false;

	for (size_t i = 0; i < part->names_n && !unnamed; i++)
		unnamed = part->names[i].unnamed;
	for (uint32_t i = 0; i < n && unnamed; i++)
		if (sym_exists(part->partition, SYM_FUNCTION, i) &&
			!sym_function(part->partition, i)->name && sym_function(part->partition, i)->start_line)
			return true;
	return false;
}

static bool gather_drops_frames(const struct part *part)
{
	for (uint32_t i = part->headers_plain; i < part->headers_n; i++)
		if (sym_header(part->partition, part->headers[i])->drop_frames)
			return true;
	return false;
}

/*
 * True if sums by name give what cells would. They do not if some profile drops frames, since that
 * holds for all that is merged, or if other cells are negative, since percentages refer to the sum
 * of magnitudes.
 */
static enum err_code gather_names_hold(
	struct supply *supply, const struct value *v, bool *hold, struct err *err)
{
	bool any = false, drops = false, named;
	enum err_code rc;

	*hold = false;

	for (size_t i = 0; i < v->n; i++)
		for (size_t k = 0; k < v->profiles[i].parts_n; k++) {
			const struct part *part = &v->profiles[i].parts[k];

			drops |= gather_drops_frames(part);
			if (part->names_n == 0)
				continue;
			any = true;
			for (size_t c = 0; c < part->n; c++)
				if (part->cells[c].value < 0)
					return ERR_OK;
			if (gather_has_nameless(part))
				return ERR_OK;
			if ((rc = gather_names_may_differ(supply, part, &named, err)) || named)
				return rc;
		}
	*hold = !any || !drops;
	return ERR_OK;
}

static enum err_code gather_sum_groups(struct work *work, struct supply *supply,
	const struct selection *s, bool *cancels, bool *negative, struct value *out, struct err *err)
{
	struct gathering x = {
		.work = work,
		.supply = supply,
		.s = s,
		.weighted = !s->v[0].type.delta && !s->window.latest && s->v[0].at_ns == 0,
		.fraction = fraction_has_factor(s->over, &s->v[0].type),
	};
	enum err_code rc;
	int64_t counted_ns;
	size_t at = 0;

	x.wide = x.weighted || x.fraction;
	out->profiles = arena_array(work->arena, struct profile_value, s->groups_n);
	if (!out->profiles)
		return work_nomem(work, err);
	while (at < s->n)
		if ((rc = gather_sum_batch(&x, &at, out, err)))
			return rc;
	*cancels = x.cancels;
	*negative = x.negative;
	if (out->n > 0)
		out->type = VALUE_PROFILES;
	counted_ns = cover_length_ns(&x.counted);
	for (size_t i = 0; i < out->n; i++) {
		struct profile_value *p = &out->profiles[i];

		p->value_total = (int64_t)p->wide_total;
		p->fraction = x.fraction;
		if (x.fraction)
			p->divisor = FRACTION_ONE;
		else if (x.weighted)
			p->divisor = counted_ns > 0 ? counted_ns : 1;
		else if (p->wide_total != p->value_total)
			return work_fault(work, s->expr, err, ERR_LIMIT, "a sum exceeds 64 bits");
	}
	return ERR_OK;
}

static enum err_code gather_split_by_labels(struct work *work, struct selection *s, struct err *err)
{
	struct chosen *v = arena_alloc_raw(work->arena, s->n, sizeof(*v));

	if (!v)
		return work_nomem(work, err);
	for (size_t i = 0; i < s->n; i++) {
		v[i] = s->v[i];
		v[i].by_labels = !v[i].none && sym_label_sets_n(v[i].series->partition) > 1;
	}
	s->v = v;
	return ERR_OK;
}

/*
 * Reads again if the short way does not hold: by stacks instead of names. If costs have both signs
 * it also reads by labels of samples, since percentages refer to what did not cancel out.
 */
enum err_code gather_selection(struct work *work, struct supply *supply, const struct selection *s,
	struct value *out, struct err *err)
{
	struct selection again = *s;
	uint64_t samples = supply->samples;
	bool cancels, negative, hold = true;
	enum err_code rc = gather_sum_groups(work, supply, &again, &cancels, &negative, out, err);

	assert(s->n > 0 && s->groups_n > 0);
	assert(s->window.min_ns <= s->window.max_ns);
	if (!rc && again.by_name && !negative)
		rc = gather_names_hold(supply, out, &hold, err);
	if (!rc && again.by_name && (negative || !hold)) {
		supply->samples = samples;
		again.by_name = false;
		out->n = 0;
		rc = gather_sum_groups(work, supply, &again, &cancels, &negative, out, err);
	}
	if (!rc && cancels && !(rc = gather_split_by_labels(work, &again, err))) {
		supply->samples = samples;
		out->n = 0;
		rc = gather_sum_groups(work, supply, &again, &cancels, &negative, out, err);
	}
	return rc ? rc : gather_names(work, supply, out, err);
}
