/*
 * Answers as text in the notation of scripts, and their comparison with what a script says. What
 * came is printed first and then read like what was expected, so that both pass through one reader.
 */
#include "tests/promql/script.h"

#include <inttypes.h>
#include <math.h>

#include "base/json.h"

/* Details that the expected answer shows; ours is printed with the same. */
struct shown {
	bool places; /* files, lines, binaries of frames */
	bool labels; /* of samples */
	bool scrapes; /* how many were merged */
};

/* ---- what came, as text ---- */

static void print_line(
	struct buf *out, const struct partition *p, const struct sym_line *l, const struct shown *shown)
{
	const struct sym_function *fn = sym_function(p, l->function);

	buf_add_str(out, sym_string(p, fn->name));
	if (!shown->places)
		return;
	if (fn->system_name != fn->name)
		buf_printf(out, "|" STR_FMT, STR_ARG(sym_string(p, fn->system_name)));
	if (fn->filename)
		buf_printf(out, "@" STR_FMT, STR_ARG(sym_string(p, fn->filename)));
	if (l->line)
		buf_printf(out, ":%" PRId64, l->line);
}

static void print_stack(
	struct buf *out, const struct partition *p, uint32_t node, const struct shown *shown)
{
	struct sym_node at = sym_node(p, node);
	struct sym_location l;

	if (node == 0)
		return;
	l = sym_location(p, at.location);
	if (at.parent) {
		print_stack(out, p, at.parent, shown);
		buf_add_char(out, ';');
	}
	for (uint32_t i = l.lines_n; i-- > 0;) {
		print_line(out, p, &l.lines[i], shown);
		buf_add_cstr(out, i ? "~" : "");
	}
	if (l.lines_n == 0)
		buf_add_char(out, '-');
	if (shown->places && l.mapping != SYM_NONE)
		buf_printf(
			out, "[" STR_FMT "]", STR_ARG(sym_string(p, sym_mapping(p, l.mapping)->filename)));
}

static void print_labels(struct buf *out, const struct partition *p, uint32_t id)
{
	struct sym_label_set set = sym_label_set(p, id);

	for (uint32_t i = 0; i < set.n; i++) {
		buf_printf(out, "%s" STR_FMT "=", i ? ", " : "{", STR_ARG(sym_string(p, set.v[i].key)));
		if (set.v[i].str)
			buf_printf(out, "\"" STR_FMT "\"", STR_ARG(sym_string(p, set.v[i].str)));
		else
			buf_printf(
				out, "%" PRId64 STR_FMT, set.v[i].num, STR_ARG(sym_string(p, set.v[i].num_unit)));
	}
	buf_add_cstr(out, set.n ? "}" : "");
}

static void print_metric(struct buf *out, struct labels metric)
{
	if (metric.n == 0)
		buf_add_cstr(out, "{}");
	else
		labels_print(out, metric);
}

static void print_profile(struct buf *out, const struct profile_value *v, const struct shown *shown)
{
	print_metric(out, v->metric);
	buf_printf(
		out, " %" PRId64 " " STR_FMT, v->value_total - v->base_total, STR_ARG(v->type.sample_unit));
	if (shown->scrapes)
		buf_printf(out, " of %" PRIu64, v->profiles);
	buf_add_char(out, '\n');
	for (size_t i = 0; i < v->parts_n; i++)
		for (size_t k = 0; k < v->parts[i].n; k++) {
			const struct cell *c = &v->parts[i].cells[k];

			buf_add_char(out, '\t');
			print_stack(out, v->parts[i].partition, c->stack, shown);
			if (shown->labels)
				print_labels(out, v->parts[i].partition, c->label_set);
			buf_printf(out, " %" PRId64, c->value);
			if (v->is_diff)
				buf_printf(out, " - %" PRId64, c->base);
			buf_add_char(out, '\n');
		}
}

static void print_percent(struct buf *out, double v)
{
	if (v >= 99.95 && v <= 100.05)
		buf_add_cstr(out, "100%");
	else
		buf_printf(out, v >= 1 || v == 0 ? "%.2f%%" : "%.2g%%", v);
}

static void print_table(struct buf *out, const struct top_table *t)
{
	print_metric(out, t->metric);
	buf_printf(out, " %" PRId64 " " STR_FMT "\n", t->total, STR_ARG(t->type.sample_unit));
	for (size_t i = 0; i < t->n; i++) {
		const struct top_row *row = &t->rows[i];

		buf_printf(out, "\t%" PRId64 " ", row->flat);
		print_percent(out, row->flat_percent);
		buf_add_char(out, ' ');
		print_percent(out, row->sum_percent);
		buf_printf(out, " %" PRId64 " ", row->cum);
		print_percent(out, row->cum_percent);
		buf_printf(out, " " STR_FMT "\n", STR_ARG(row->function));
	}
}

/* A gap where there is no point. */
static void print_series(
	struct buf *out, const struct cost_series *s, const struct query_options *o)
{
	int64_t t = o->start_ns;

	print_metric(out, s->metric);
	for (size_t i = 0; i < s->n; t += o->step_ns) {
		buf_add_char(out, ' ');
		if (s->points[i].t_ns == t || !o->step_ns) /* of a window: one after the other */
			buf_add_double(out, s->points[i++].value);
		else
			buf_add_char(out, '_');
	}
	buf_add_char(out, '\n');
}

static void print_result(struct buf *out, const struct result *r, const struct shown *shown,
	const struct query_options *o)
{
	if (r->type == RESULT_SCALAR)
		buf_add_double(out, r->scalar);
	if (r->type == RESULT_STRING)
		buf_printf(out, "\"" STR_FMT "\"", STR_ARG(r->string));
	if (r->type == RESULT_SCALAR || r->type == RESULT_STRING)
		buf_add_char(out, '\n');
	for (size_t i = 0; i < r->n; i++) {
		if (r->type == RESULT_PROFILES)
			print_profile(out, &r->profiles[i], shown);
		if (r->type == RESULT_TOP)
			print_table(out, &r->tops[i]);
		if (r->type == RESULT_MATRIX)
			print_series(out, &r->matrix[i], o);
		if (r->type == RESULT_VECTOR) {
			print_metric(out, r->vector[i].metric);
			buf_add_char(out, ' ');
			buf_add_double(out, r->vector[i].value);
			buf_add_char(out, '\n');
		}
	}
	for (size_t i = 0; i < r->warnings_n; i++)
		buf_printf(out, "expect warning " STR_FMT "\n", STR_ARG(r->warnings[i]));
	for (size_t i = 0; i < r->infos_n; i++)
		buf_printf(out, "expect info " STR_FMT "\n", STR_ARG(r->infos[i]));
}

/* ---- text, read ---- */

struct detail {
	struct str key;
	int64_t value, base;
};

/* One element of an answer, or an expect line. */
struct item {
	struct str key; /* equal keys are the same element; "" of a scalar */
	struct script_values values; /* of costs */
	struct detail *details; /* of profiles: by key; of tables: rows in order */
	size_t n;
	bool is_taken;
};

struct items {
	struct item *v;
	size_t n;
};

static bool add_detail(struct arena *a, struct item *item, struct str text, bool is_table)
{
	struct detail *d = &item->details[item->n], *same = item->details;
	struct buf row = { 0 };
	struct str word;
	bool ok = true;

	*d = (struct detail){ .base = 0 };
	if (is_table) {
		while ((word = script_word(&text)).len > 0)
			buf_printf(&row, "%s" STR_FMT, row.len ? " " : "", STR_ARG(word));
		d->key = str_dup(a, buf_str(&row));
		buf_release(&row);
		item->n++;
		return true;
	}
	word = script_word(&text);
	if (str_is(str_trim(text), "")) { /* the empty stack has no text */
		text = word;
		word = (struct str){ 0 };
	}
	d->key = word;
	ok = str_to_i64(script_word(&text), &d->value);
	word = script_word(&text);
	if (ok && word.len > 0)
		ok = str_is(word, "-") && str_to_i64(script_word(&text), &d->base);
	while (same < d && !str_eq(same->key, d->key))
		same++;
	if (same == d) {
		item->n++;
	} else { /* what looks the same adds up */
		same->value += d->value;
		same->base += d->base;
	}
	return ok;
}

/* The labels in order, then the rest as it is. */
static bool read_head(struct arena *a, struct item *item, struct str text, bool has_values)
{
	struct str word, rest = text;
	struct labels labels;
	struct buf key = { 0 };
	bool ok = true;

	word = script_word(&rest);
	if (str_is(word, "expect") || word.ptr[0] == '"') {
		item->key = text;
		return true;
	}
	if (str_find(word, STR("{")) >= 0 ||
			((word.ptr[0] | 32) >= 'a' && (word.ptr[0] | 32) <= 'z' && !str_is(word, "NaN") &&
				!str_is(word, "Inf"))) {
		if (!script_labels(a, word, &labels))
			return false;
		print_metric(&key, labels);
		text = rest;
	}
	if (has_values) {
		ok = !script_values(a, text, &item->values);
	} else {
		while ((word = script_word(&text)).len > 0)
			buf_printf(&key, " " STR_FMT, STR_ARG(word));
	}
	item->key = str_dup(a, buf_str(&key));
	buf_release(&key);
	return ok;
}

/* False: *bad is no line of an answer. */
static bool read_items(struct arena *a, const struct script_line *lines, size_t n,
	enum result_type type, struct items *out, const struct script_line **bad)
{
	bool has_values = type != RESULT_PROFILES && type != RESULT_TOP;
	uint32_t indent = n ? lines[0].indent : 0;

	*out = (struct items){ .v = arena_array(a, struct item, n + 1) };
	for (size_t i = 0; i < n; i++) {
		struct item *last = out->n ? &out->v[out->n - 1] : NULL;

		*bad = &lines[i];
		if (lines[i].indent > indent) {
			if (!last || has_values || !add_detail(a, last, lines[i].text, type == RESULT_TOP))
				return false;
			continue;
		}
		last = &out->v[out->n++];
		last->details = arena_array(a, struct detail, n + 1);
		if (!read_head(a, last, lines[i].text, has_values))
			return false;
	}
	return true;
}

/* ---- the two, side by side ---- */

static bool value_eq(const struct script_value *got, const struct script_value *want)
{
	double a = (double)got->v[0], b = (double)want->v[0];

	if (want->n == 2) /* a quotient */
		b = (double)want->v[0] / (double)want->v[1];
	if (got->is_gap || want->is_gap)
		return got->is_gap && want->is_gap;
	if (isnan(a) || isnan(b))
		return isnan(a) && isnan(b);
	return a == b || fabs(a - b) <= 1e-12 * fmax(fabs(a), fabs(b));
}

static bool values_eq(const struct script_values *got, const struct script_values *want)
{
	size_t n = got->n > want->n ? got->n : want->n;
	static const struct script_value gap = { .is_gap = true };

	for (size_t i = 0; i < n; i++)
		if (!value_eq(i < got->n ? &got->v[i] : &gap, i < want->n ? &want->v[i] : &gap))
			return false;
	return true;
}

static bool item_eq(const struct item *got, const struct item *want, bool is_table)
{
	size_t k;

	if (!str_eq(got->key, want->key) || got->n != want->n ||
		!values_eq(&got->values, &want->values))
		return false;
	for (size_t i = 0; i < got->n; i++) {
		const struct detail *d = &got->details[i];

		for (k = is_table ? i : 0; k < want->n; k++)
			if (is_table || str_eq(want->details[k].key, d->key))
				break;
		if (k == want->n || !str_eq(want->details[k].key, d->key) ||
			want->details[k].value != d->value || want->details[k].base != d->base)
			return false;
	}
	return true;
}

static bool items_eq(const struct items *got, const struct items *want, bool ordered, bool is_table)
{
	size_t k;

	if (got->n != want->n)
		return false;
	for (size_t i = 0; i < got->n; i++) {
		for (k = ordered ? i : 0; k < want->n; k++)
			if (ordered || (!want->v[k].is_taken && item_eq(&got->v[i], &want->v[k], is_table)))
				break;
		if (k == want->n || !item_eq(&got->v[i], &want->v[k], is_table))
			return false;
		want->v[k].is_taken = true;
	}
	return true;
}

static struct shown shown_by(const struct script_statement *st)
{
	struct shown shown = { 0 };

	for (size_t i = 0; i < st->n; i++) {
		struct str rest = st->body[i].text, word = script_word(&rest);

		if (st->body[i].indent == st->body[0].indent) {
			shown.scrapes |= !str_is(word, "expect") && str_find(rest, STR(" of ")) >= 0;
			continue;
		}
		shown.places |= str_find(word, STR("@")) >= 0 || str_find(word, STR("[")) >= 0;
		shown.labels |= str_find(word, STR("{")) >= 0;
	}
	return shown;
}

bool script_shows_labels(const struct script_statement *st)
{
	return shown_by(st).labels;
}

static struct script_line *lines_of(struct arena *a, struct str text, size_t *n)
{
	struct script_line *v = arena_array(a, struct script_line, text.len + 1);

	*n = 0;
	for (size_t at = 0, end; v && at < text.len; at = end + 1) {
		for (end = at; end < text.len && text.ptr[end] != '\n'; end++)
			;
		v[*n] = (struct script_line){ .text = { text.ptr + at, end - at } };
		v[*n].indent = text.ptr[at] == '\t';
		v[*n].text = str_trim(v[*n].text);
		++*n;
	}
	return v;
}

void script_compare(struct script *s, const struct script_statement *st, const struct result *r,
	bool ordered, const struct query_options *o)
{
	struct shown shown = shown_by(st);
	bool is_table = r->type == RESULT_TOP, ok;
	const struct script_line *lines, *bad = NULL;
	struct items got, want;
	struct buf text = { 0 };
	struct arena a;
	size_t n;

	arena_init(&a, 0);
	print_result(&text, r, &shown, o);
	lines = lines_of(&a, buf_str(&text), &n);
	ok = lines && read_items(&a, lines, n, r->type, &got, &bad) &&
		read_items(&a, st->body, st->n, r->type, &want, &bad) &&
		items_eq(&got, &want, ordered, is_table);
	if (!ok) {
		script_fault(s, st->line->number, STR_FMT "\n  expected", STR_ARG(st->line->text));
		for (size_t i = 0; i < st->n; i++)
			buf_printf(&s->report, "    %s" STR_FMT "\n",
				st->body[i].indent > st->body[0].indent ? "    " : "", STR_ARG(st->body[i].text));
		buf_add_cstr(&s->report, "  got\n");
		for (size_t i = 0; i < n; i++)
			buf_printf(&s->report, "    %s" STR_FMT "\n", lines[i].indent ? "    " : "",
				STR_ARG(lines[i].text));
	}
	arena_release(&a);
	buf_release(&text);
}
