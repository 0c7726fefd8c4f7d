/*
 * Adding up what a selector chose: per group and partition one accumulator, filled by the database,
 * then read out as cells. Values of gauges stay multiplied by their intervals here; the time they
 * are divided by is that of the whole selection, so that groups add up to what they are part of.
 */
#include "promql/plan.h"

/*
 * One accumulator: rows of one group, partition and type that are asked the same of their samples.
 */
struct slot {
	const struct db_series **series;
	size_t series_n, series_cap;
	struct partition *partition;
	const struct profile_type *type;
	uint64_t deferred;
	bool asked, takes_empty, none, by_labels;
	struct accum *acc; /* NULL for totals */
	struct function_sums *functions; /* NULL: cells only */
	struct sum_stats stats;
	size_t charged; /* bytes of the two, taken from the query's budget */
	int64_t at_ns; /* as in struct chosen */
	struct factor factor; /* of fractions */
};

struct summing {
	struct eval *ev;
	const struct selection *s;
	struct slot *slots;
	size_t slots_n, slots_cap;
	int64_t start_ns, end_ns; /* of all groups so far; end 0: none */
	bool weighted; /* gauges over a window */
	bool fraction; /* costs are multiplied by a factor for each series */
	bool wide; /* one of the two */
};

/* Doubles an array of the arena. */
static enum err_code grow(struct summing *x, void *array, size_t item, size_t *cap, struct err *err)
{
	void **at = array, *grown;
	size_t n = *cap ? *cap * 2 : 4;

	if (!(grown = arena_calloc(x->ev->arena, n, item)))
		return eval_nomem(x->ev, err);
	if (*cap)
		memcpy(grown, *at, *cap * item);
	*at = grown;
	*cap = n;
	return ERR_OK;
}

static bool fits(const struct summing *x, const struct slot *slot, const struct chosen *c)
{
	return !x->fraction && slot->at_ns == c->at_ns &&
		slot->partition == c->series->partition && slot->deferred == c->deferred &&
		slot->by_labels == c->by_labels && slot->asked == c->asked &&
		slot->takes_empty == c->takes_empty && slot->none == c->none &&
		profile_type_eq(slot->type, &c->type);
}

static enum err_code find_slot(
	struct summing *x, const struct chosen *c, struct slot **out, struct err *err)
{
	enum err_code rc;

	for (size_t i = 0; i < x->slots_n; i++)
		if (fits(x, &x->slots[i], c)) {
			*out = &x->slots[i];
			return ERR_OK;
		}
	if (x->slots_n == x->slots_cap &&
		(rc = grow(x, &x->slots, sizeof(*x->slots), &x->slots_cap, err)))
		return rc;
	*out = &x->slots[x->slots_n++];
	**out = (struct slot){ .partition = c->series->partition,
		.type = &c->type,
		.deferred = c->deferred,
		.asked = c->asked,
		.takes_empty = c->takes_empty,
		.none = c->none,
		.by_labels = c->by_labels,
		.at_ns = c->at_ns };
	return ERR_OK;
}

static void close_slots(struct summing *x)
{
	for (size_t i = 0; i < x->slots_n; i++) {
		if (x->ev->budget)
			budget_give(x->ev->budget, x->slots[i].charged);
		accum_close(x->slots[i].acc);
		function_sums_close(x->slots[i].functions);
	}
	x->slots_n = 0;
}

static enum err_code add_series(struct summing *x, const struct chosen *c, struct err *err)
{
	struct slot *slot = NULL;
	enum err_code rc;

	if ((rc = find_slot(x, c, &slot, err)))
		return rc;
	if (slot->series_n == slot->series_cap &&
		(rc = grow(x, &slot->series, sizeof(*slot->series), &slot->series_cap, err)))
		return rc;
	slot->series[slot->series_n++] = c->series;
	return ERR_OK;
}

static enum sum_wish wish_of(const struct summing *x, const struct slot *slot)
{
	if (x->s->totals_only || slot->none)
		return SUM_TOTALS;
	return x->s->by_name && !slot->by_labels && slot->type->delta && !x->s->window.latest ?
		SUM_FUNCTIONS :
		SUM_CELLS;
}

/* What its sums take counts as memory of the query. */
static enum err_code charge(struct summing *x, struct slot *slot, struct err *err)
{
	struct budget *b = x->ev->budget;
	size_t bytes = (slot->acc ? accum_bytes(slot->acc) : 0) +
		(slot->functions ? function_sums_bytes(slot->functions) : 0);

	if (!b || bytes <= slot->charged)
		return ERR_OK;
	if (!budget_take(b, bytes - slot->charged))
		return budget_fail(b, "query", err);
	slot->charged = bytes;
	return ERR_OK;
}

/* All series of a slot at once: what whole groups of series add up to is read as such. */
static enum err_code sum_slot(struct summing *x, struct slot *slot, struct err *err)
{
	struct eval *ev = x->ev;
	struct window at = { slot->at_ns - 1, slot->at_ns, true };
	const struct window *w = slot->at_ns ? &at : &x->s->window;
	unsigned flags = (slot->by_labels ? ACCUM_BY_LABELS : 0) |
		(slot->type->delta ? 0 : ACCUM_WEIGHTED);
	enum err_code rc = eval_check(ev, err);

	if (rc)
		return rc;
	if (!x->s->totals_only && !slot->none)
		rc = accum_open(slot->partition, flags, &slot->acc, err);
	if (rc)
		return rc;
	if (wish_of(x, slot) == SUM_FUNCTIONS) {
		if ((rc = function_sums_open(&slot->functions, err)))
			return rc;
		rc = db_sum_functions(ev->querier, slot->series, slot->series_n, slot->type,
			w->min_ns, w->max_ns, slot->functions, slot->acc, ev->arena, &slot->stats,
			err);
	} else {
		rc = db_sum(ev->querier, slot->series, slot->series_n, slot->type, w->min_ns,
			w->max_ns, w->latest ? SUM_LAST : SUM_WINDOW, slot->acc, ev->arena,
			&slot->stats, err);
	}
	if (rc)
		return rc;
	ev->samples += slot->stats.read;
	if (ev->samples > ev->samples_max)
		return eval_fault(ev, x->s->expr, err, ERR_LIMIT,
			"the query reads more than %llu samples (--query.max-samples)",
			(unsigned long long)ev->samples_max);
	return charge(x, slot, err);
}

/* ---- reading out ---- */

struct verdicts {
	char *v; /* per label set: 0 not known, 'y', 'n' */
	struct buf text;
};

static bool keeps(
	struct summing *x, const struct slot *slot, struct verdicts *known, uint32_t label_set)
{
	const struct partition *p = slot->partition;
	const struct matcher *m = x->s->selector->matchers;
	struct str key;
	bool keep = true;

	if (known->v[label_set])
		return known->v[label_set] == 'y';
	for (size_t i = 0; i < x->s->selector->matchers_n && keep; i++) {
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

/* What a sum is in a value that is not rounded yet. */
static bool widen(const struct summing *x, const struct slot *slot, __int128 v, __int128 *out)
{
	*out = v;
	return !x->fraction || fraction_of(slot->factor, v, out);
}

static enum err_code read_cells(struct summing *x, const struct slot *slot, struct verdicts *known,
	struct part *part, struct err *err)
{
	struct accum_cell c;
	size_t at = 0;

	while (accum_next(slot->acc, &at, &c)) {
		if (slot->deferred && !keeps(x, slot, known, c.label_set))
			continue;
		if (x->wide ? !widen(x, slot, c.value, &part->wide[part->n]) :
			      c.value != (int64_t)c.value)
			return eval_fault(
				x->ev, x->s->expr, err, ERR_LIMIT, "a sum exceeds 64 bits");
		part->cells[part->n++] = (struct cell){ .stack = c.stack,
			.label_set = c.label_set,
			.value = x->wide ? 0 : (int64_t)c.value };
	}
	return ERR_OK;
}

static enum err_code read_slot(
	struct summing *x, const struct slot *slot, struct part *part, struct err *err)
{
	struct verdicts known = { 0 };
	enum err_code rc;
	size_t n;

	*part = (struct part){ .partition = slot->partition,
		.headers = slot->stats.headers,
		.headers_n = slot->stats.headers_n };
	if ((rc = accum_seal(slot->acc, err)))
		return rc;
	n = accum_cells_n(slot->acc);
	part->cells = arena_alloc_raw(x->ev->arena, n + 1, sizeof(*part->cells));
	if (x->wide)
		part->wide = arena_alloc_raw(x->ev->arena, n + 1, sizeof(*part->wide));
	if (slot->deferred)
		known.v = arena_array(x->ev->arena, char, sym_label_sets_n(part->partition));
	if (!part->cells || (x->wide && !part->wide) || (slot->deferred && !known.v))
		return eval_nomem(x->ev, err);
	rc = read_cells(x, slot, &known, part, err);
	buf_release(&known.text);
	if (rc || !slot->functions)
		return rc;
	return function_sums_list(slot->functions, x->ev->arena, &part->names, &part->names_n,
		&part->names_total, err);
}

static void add_stats(struct profile_value *p, const struct sum_stats *s)
{
	p->profiles += s->rows;
	if (s->time_nanos != 0 && (p->time_nanos == 0 || s->time_nanos < p->time_nanos))
		p->time_nanos = s->time_nanos;
	p->duration_nanos = duration_sum(p->duration_nanos, s->duration_ns);
	if (s->period > p->period)
		p->period = s->period;
	if (p->end_ns == 0 || s->start_ns < p->start_ns)
		p->start_ns = s->start_ns;
	if (s->end_ns > p->end_ns)
		p->end_ns = s->end_ns;
}

/* Slots of one partition (some of its series were asked more of their samples) become one part. */
static enum err_code join_part(
	struct summing *x, struct profile_value *p, const struct part *add, struct err *err)
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
	pair.profiles = arena_array(x->ev->arena, struct profile_value, 2);
	if (!pair.profiles)
		return eval_nomem(x->ev, err);
	for (size_t i = 0; i < 2; i++) {
		pair.profiles[i].divisor = x->wide;
		pair.profiles[i].parts_n = 1;
		if (!(pair.profiles[i].parts = arena_new(x->ev->arena, struct part)))
			return eval_nomem(x->ev, err);
		pair.profiles[i].parts[0] = i ? *add : *into;
	}
	if ((rc = profiles_merge(x->ev, &pair, GROUPING_NONE, (struct name_list){ 0 }, &pair, err)))
		return rc;
	*into = pair.profiles[0].parts[0];
	return ERR_OK;
}

static enum err_code read_group(
	struct summing *x, const struct chosen *c, struct profile_value *p, struct err *err)
{
	struct part part;
	__int128 total;
	enum err_code rc;

	*p = (struct profile_value){ .metric = c->metric, .type = c->type };
	p->parts = arena_array(x->ev->arena, struct part, x->slots_n);
	if (!p->parts)
		return eval_nomem(x->ev, err);
	for (size_t i = 0; i < x->slots_n; i++) {
		struct slot *slot = &x->slots[i];

		if (slot->stats.rows == 0)
			continue;
		add_stats(p, &slot->stats);
		if (slot->none)
			continue;
		if (x->s->totals_only) {
			if (!widen(x, slot, slot->stats.total, &total))
				return eval_fault(x->ev, x->s->expr, err, ERR_LIMIT,
					"a sum exceeds 64 bits");
			p->wide_total += total;
			continue;
		}
		if ((rc = read_slot(x, slot, &part, err)) || (rc = join_part(x, p, &part, err)))
			return rc;
		for (size_t k = 0; k < part.n; k++)
			p->wide_total += x->wide ? part.wide[k] : part.cells[k].value;
		p->wide_total += part.names_total;
	}
	return ERR_OK;
}

/* Types of one group that differ keep what they share. */
static void join_type(struct profile_type *t, const struct profile_type *other)
{
	const struct str none = { 0 };

	if (!str_eq(t->name, other->name))
		t->name = none;
	if (!str_eq(t->sample_type, other->sample_type))
		t->sample_type = none;
	if (!str_eq(t->period_type, other->period_type))
		t->period_type = none;
	if (!str_eq(t->period_unit, other->period_unit))
		t->period_unit = none;
}

/*
 * No sample passed the matchers: as if the series were not there, but for the time it was looked
 * at. Profiles without samples pass what accepts "".
 */
static bool is_left_out(const struct summing *x, const struct profile_value *p)
{
	bool samples = false, empty = false;

	for (size_t i = 0; i < x->slots_n; i++) {
		const struct slot *slot = &x->slots[i];

		if (slot->stats.rows == 0)
			continue;
		if (!slot->asked || (slot->stats.samples && !slot->deferred && !slot->none))
			return false;
		samples |= slot->stats.samples > 0;
		empty |= slot->takes_empty;
	}
	for (size_t i = 0; i < p->parts_n; i++)
		if (p->parts[i].n > 0)
			return false;
	return samples || !empty;
}

/* Slots of one series are its epochs, and neighbours: what it is multiplied by is one. */
static void find_factors(struct summing *x)
{
	size_t end;

	for (size_t i = 0; i < x->slots_n && x->fraction; i = end) {
		const struct slot *first = &x->slots[i];
		struct sum_stats all = { 0 };

		for (end = i; end < x->slots_n &&
			labels_eq(x->slots[end].series[0]->labels, first->series[0]->labels) &&
			profile_type_eq(x->slots[end].type, first->type);
			end++) {
			all.rows += x->slots[end].stats.rows;
			all.elapsed_ns += x->slots[end].stats.elapsed_ns;
			all.profiled_ns += x->slots[end].stats.profiled_ns;
		}
		for (size_t k = i; k < end; k++)
			x->slots[k].factor = over_factor(x->s->over, first->type, &all,
				x->s->selector->window_ns);
	}
}

static enum err_code sum_group(
	struct summing *x, const struct chosen *c, size_t n, struct value *out, struct err *err)
{
	struct profile_value *p = &out->profiles[out->n];
	bool kept = false;
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < n && !rc; i++)
		rc = add_series(x, &c[i], err);
	for (size_t i = 0; i < x->slots_n && !rc; i++)
		rc = sum_slot(x, &x->slots[i], err);
	find_factors(x);
	if (!rc && !(rc = read_group(x, c, p, err)))
		kept = !is_left_out(x, p);
	close_slots(x);
	if (rc || p->profiles == 0)
		return rc;
	for (size_t i = 1; i < n; i++)
		join_type(&p->type, &c[i].type);
	if (x->end_ns == 0 || p->start_ns < x->start_ns)
		x->start_ns = p->start_ns;
	if (p->end_ns > x->end_ns)
		x->end_ns = p->end_ns;
	out->n += kept;
	return ERR_OK;
}

/* ---- costs by name ---- */

/* top() tells functions without a name apart by their first lines, which totals do not know. */
static bool has_nameless(const struct part *part)
{
	uint32_t n = sym_functions_n(part->partition);
	bool unnamed = false;

	for (size_t i = 0; i < part->names_n && !unnamed; i++)
		unnamed = part->names[i].unnamed;
	for (uint32_t i = 0; i < n && unnamed; i++)
		if (sym_exists(part->partition, SYM_FUNCTION, i) &&
			!sym_function(part->partition, i)->name &&
			sym_function(part->partition, i)->start_line)
			return true;
	return false;
}

static bool drops_frames(const struct part *part)
{
	for (uint32_t i = 0; i < part->headers_n; i++)
		if (sym_header(part->partition, part->headers[i])->drop_frames)
			return true;
	return false;
}

/*
 * Costs by name are what their cells would give, but where frames are dropped, which holds for all
 * that is merged, and where what the rest adds to a cell could lessen it: percentages refer to the
 * sum of magnitudes.
 */
static bool names_hold(const struct value *v)
{
	bool any = false, drops = false;

	for (size_t i = 0; i < v->n; i++)
		for (size_t k = 0; k < v->profiles[i].parts_n; k++) {
			const struct part *part = &v->profiles[i].parts[k];

			drops |= drops_frames(part);
			if (part->names_n == 0)
				continue;
			any = true;
			for (size_t c = 0; c < part->n; c++)
				if (part->cells[c].value < 0)
					return false;
			if (has_nameless(part))
				return false;
		}
	return !any || !drops;
}

static enum err_code sum_groups(
	struct eval *ev, const struct selection *s, struct value *out, struct err *err)
{
	struct summing x = {
		.ev = ev,
		.s = s,
		.weighted = !s->v[0].type.delta && !s->window.latest && s->v[0].at_ns == 0,
		.fraction = over_has_factor(s->over, &s->v[0].type),
	};
	enum err_code rc;
	size_t end;

	x.wide = x.weighted || x.fraction;
	out->profiles = arena_array(ev->arena, struct profile_value, s->groups_n);
	if (!out->profiles)
		return eval_nomem(ev, err);
	for (size_t i = 0; i < s->n; i = end) {
		for (end = i + 1; end < s->n && s->v[end].group == s->v[i].group; end++)
			;
		if ((rc = sum_group(&x, &s->v[i], end - i, out, err)))
			return rc;
	}
	if (out->n > 0)
		out->type = VALUE_PROFILES;
	for (size_t i = 0; i < out->n; i++) {
		struct profile_value *p = &out->profiles[i];

		p->value_total = (int64_t)p->wide_total;
		p->fraction = x.fraction;
		if (x.fraction)
			p->divisor = FRACTION_ONE;
		else if (x.weighted)
			p->divisor = x.end_ns > x.start_ns ? x.end_ns - x.start_ns : 1;
		else if (p->wide_total != p->value_total)
			return eval_fault(ev, s->expr, err, ERR_LIMIT, "a sum exceeds 64 bits");
	}
	return ERR_OK;
}

enum err_code sum_selection(
	struct eval *ev, const struct selection *s, struct value *out, struct err *err)
{
	struct selection cells = *s;
	uint64_t samples = ev->samples;
	enum err_code rc = sum_groups(ev, s, out, err);

	if (rc || !s->by_name || names_hold(out))
		return rc;
	ev->samples = samples;
	cells.by_name = false;
	out->n = 0;
	return sum_groups(ev, &cells, out, err);
}

/* ---- what it would read ---- */

#define GROUPS_LOOKED_AT 64u

static enum err_code estimate_group(struct summing *x, const struct chosen *c, size_t n,
	struct sum_estimate *out, struct err *err)
{
	const struct window *w = &x->s->window;
	enum err_code rc = eval_check(x->ev, err);

	x->slots_n = x->slots_cap = 0;
	for (size_t i = 0; i < n && !rc; i++)
		rc = add_series(x, &c[i], err);
	for (size_t i = 0; i < x->slots_n && !rc; i++) {
		const struct slot *slot = &x->slots[i];

		rc = db_estimate(x->ev->querier, slot->series, slot->series_n, slot->type,
			w->min_ns, w->max_ns, w->latest ? SUM_LAST : SUM_WINDOW, wish_of(x, slot),
			out, err);
	}
	return rc;
}

enum err_code estimate_selection(
	struct eval *ev, const struct selection *s, struct sum_estimate *out, struct err *err)
{
	struct summing x = { .ev = ev,
		.s = s,
		.fraction = s->n > 0 && over_has_factor(s->over, &s->v[0].type) };
	struct sum_estimate some = { 0 };
	uint64_t *to = (uint64_t *)out, *from = (uint64_t *)&some;
	size_t looked = 0, group = 0, end;
	enum err_code rc = ERR_OK;

	for (size_t i = 0; i < s->n && !rc; i = end, group++) {
		for (end = i + 1; end < s->n && s->v[end].group == s->v[i].group; end++)
			;
		if (group < looked * s->groups_n / GROUPS_LOOKED_AT)
			continue; /* the others are taken to be like those that are looked at */
		rc = estimate_group(&x, &s->v[i], end - i, &some, err);
		looked++;
	}
	for (size_t i = 0; i < sizeof(some) / sizeof(*to) && looked; i++)
		to[i] += (uint64_t)((double)from[i] * s->groups_n / (double)looked + 0.5);
	return rc;
}
