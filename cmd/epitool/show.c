#include <jansson.h>

#include "cmd/epitool/show.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/integer.h"
#include "base/quote.h"
#include "cmd/epitool/table.h"
#include "proto/report/pprof_unit.h"

#define LABELS_MAX 32u
#define TIME_SECONDS_MAX 4e9

struct shown {
	struct arena arena;
	struct buf *out, cell;
	size_t width;
};

static struct str show_text_of(json_t *value)
{
	return (struct str){ json_string_value(value), json_string_length(value) };
}

static struct str shown_unit_of(struct shown *s, json_t *of)
{
	return str_printable(&s->arena, show_text_of(json_object_get(of, "unit")));
}

static double show_sample_number(json_t *sample)
{
	const char *s = json_string_value(json_array_get(sample, 1));

	return s ? strtod(s, NULL) : 0;
}

static void shown_cell_str(struct shown *shown, struct text_table *t, struct str s)
{
	table_cell(t, s);
}

static void shown_cell_number(struct shown *s, struct text_table *t, double value, struct str unit)
{
	buf_clear(&s->cell);
	number_print(&s->cell, value, unit);
	table_cell(t, buf_str(&s->cell));
}

static void show_add_metric(struct buf *out, json_t *metric)
{
	const char *key;
	json_t *value;
	bool first = true;

	buf_add_char(out, '{');
	json_object_foreach (metric, key, value) {
		buf_add_cstr(out, first ? "" : ", ");
		buf_add_printable(out, str_of(key));
		buf_add_char(out, '=');
		buf_add_quoted(out, show_text_of(value));
		first = false;
	}
	buf_add_char(out, '}');
}

/* ---- labels as columns ---- */

struct label_columns {
	const char *names[LABELS_MAX];
	size_t n;
	bool all; /* if there are more, one column has them all */
};

/* The longest values come last: a column that is followed is padded to its widest cell. */
static void label_columns_put_function_last(struct label_columns *c)
{
	size_t i = 0;

	while (i < c->n && strcmp(c->names[i], "function") != 0)
		i++;
	if (i == c->n)
		return;
	for (const char *name = c->names[i]; i < c->n; i++)
		c->names[i] = i + 1 < c->n ? c->names[i + 1] : name;
}

static void label_columns_find_labels(struct label_columns *c, json_t *result)
{
	json_t *element, *value;
	const char *key;
	size_t i, k;

	*c = (struct label_columns){ .all = true };
	json_array_foreach (result, i, element) {
		json_object_foreach (json_object_get(element, "metric"), key, value) {
			for (k = 0; k < c->n && strcmp(c->names[k], key);)
				k++;
			if (k < c->n)
				continue;
			if (c->n == LABELS_MAX)
				c->all = false;
			else
				c->names[c->n++] = key;
		}
	}
	label_columns_put_function_last(c);
}

/* A table of numbers under these titles, up to a NULL, and of the labels. */
static void shown_begin_labelled(struct shown *s, const char *const *titles, json_t *result,
	struct label_columns *c, struct text_table *t)
{
	label_columns_find_labels(c, result);
	text_table_init(t, &s->arena);
	for (; *titles; titles++)
		table_column(t, *titles, true);
	for (size_t i = 0; i < c->n && c->all; i++)
		table_column(t, c->names[i], false);
	if (!c->all)
		table_column(t, "labels", false);
}

static void shown_label_cells(
	struct shown *s, const struct label_columns *c, json_t *metric, struct text_table *t)
{
	for (size_t i = 0; i < c->n && c->all; i++)
		shown_cell_str(s, t, show_text_of(json_object_get(metric, c->names[i])));
	if (c->all)
		return;
	buf_clear(&s->cell);
	show_add_metric(&s->cell, metric);
	table_cell(t, buf_str(&s->cell));
}

/* ---- types of results ---- */

static void show_vector(struct shown *s, json_t *result, struct str unit)
{
	static const char *const titles[] = { "value", NULL };
	struct label_columns labels;
	struct text_table t;
	json_t *element;
	size_t i;

	shown_begin_labelled(s, titles, result, &labels, &t);
	json_array_foreach (result, i, element) {
		shown_cell_number(s, &t, show_sample_number(json_object_get(element, "value")), unit);
		shown_label_cells(s, &labels, json_object_get(element, "metric"), &t);
	}
	table_print(&t, s->width, s->out);
}

/* Whole seconds without a fraction: steps are seldom shorter. */
static void shown_cell_time(struct shown *shown, struct text_table *t, double s)
{
	struct str text;

	s = fabs(s) < TIME_SECONDS_MAX ? s : 0; /* of another program */
	buf_clear(&shown->cell);
	time_print_rfc3339(&shown->cell, (int64_t)(s * 1000 + 0.5) * NS_PER_MS);
	text = buf_str(&shown->cell);
	if (str_has_suffix(text, STR(".000Z"))) {
		shown->cell.len -= sizeof(".000Z") - 1;
		buf_add_char(&shown->cell, 'Z');
	}
	table_cell(t, buf_str(&shown->cell));
}

/* A table per series, with a row per time. */
static void show_matrix(struct shown *s, json_t *result, struct str unit)
{
	json_t *element, *sample;
	struct text_table t;
	size_t i, k;

	json_array_foreach (result, i, element) {
		if (i)
			buf_add_char(s->out, '\n');
		show_add_metric(s->out, json_object_get(element, "metric"));
		buf_add_char(s->out, '\n');
		text_table_init(&t, &s->arena);
		table_column(&t, "time", false);
		table_column(&t, "value", true);
		json_array_foreach (json_object_get(element, "values"), k, sample) {
			shown_cell_time(s, &t, json_number_value(json_array_get(sample, 0)));
			shown_cell_number(s, &t, show_sample_number(sample), unit);
		}
		table_print(&t, s->width, s->out);
	}
}

static void shown_cell_cost(
	struct shown *s, struct text_table *t, int64_t value, struct str unit, struct str to)
{
	buf_clear(&s->cell);
	pprof_unit_print(&s->cell, value, unit, to);
	table_cell(t, buf_str(&s->cell));
}

static void shown_cell_percent(struct shown *s, struct text_table *t, json_t *value)
{
	buf_clear(&s->cell);
	buf_printf(&s->cell, "%.2f%%", json_number_value(value));
	table_cell(t, buf_str(&s->cell));
}

/* All costs of a table in one unit, so that they can be compared at a glance. */
static struct str show_unit_of_rows(json_t *rows, int64_t total, struct str unit)
{
	int64_t smallest = 0;
	json_t *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		int64_t v = json_integer_value(json_object_get(row, "flat"));

		v = v ? v : json_integer_value(json_object_get(row, "cum"));
		if (v && (!smallest || integer_magnitude64(v) < integer_magnitude64(smallest)))
			smallest = v;
	}
	return number_unit(smallest, total, unit);
}

static void show_top(struct shown *s, json_t *element)
{
	static const char *const titles[] = { "flat", "flat%", "sum%", "cum", "cum%" };
	int64_t total = json_integer_value(json_object_get(element, "total"));
	json_t *rows = json_object_get(element, "rows"), *row;
	struct str unit = shown_unit_of(s, element);
	struct str to = show_unit_of_rows(rows, total, unit);
	struct text_table t;
	size_t i;

	show_add_metric(s->out, json_object_get(element, "metric"));
	buf_add_cstr(s->out, "  total ");
	pprof_unit_print(s->out, total, unit, STR("auto"));
	buf_add_char(s->out, '\n');
	text_table_init(&t, &s->arena);
	for (i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		table_column(&t, titles[i], true);
	table_column(&t, "function", false);
	json_array_foreach (rows, i, row) {
		shown_cell_cost(s, &t, json_integer_value(json_object_get(row, "flat")), unit, to);
		shown_cell_percent(s, &t, json_object_get(row, "flat_percent"));
		shown_cell_percent(s, &t, json_object_get(row, "sum_percent"));
		shown_cell_cost(s, &t, json_integer_value(json_object_get(row, "cum")), unit, to);
		shown_cell_percent(s, &t, json_object_get(row, "cum_percent"));
		shown_cell_str(s, &t, show_text_of(json_object_get(row, "function")));
	}
	table_print(&t, s->width, s->out);
}

static void show_tops(struct shown *s, json_t *result)
{
	json_t *element;
	size_t i;

	json_array_foreach (result, i, element) {
		if (i)
			buf_add_char(s->out, '\n');
		show_top(s, element);
	}
}

static void show_profiles(struct shown *s, json_t *result)
{
	static const char *const titles[] = { "cost", "profiles", NULL };
	struct label_columns labels;
	struct text_table t;
	json_t *element;
	size_t i;

	shown_begin_labelled(s, titles, result, &labels, &t);
	json_array_foreach (result, i, element) {
		shown_cell_number(s, &t, (double)json_integer_value(json_object_get(element, "cost")),
			shown_unit_of(s, element));
		shown_cell_number(
			s, &t, (double)json_integer_value(json_object_get(element, "profiles")), STR(""));
		shown_label_cells(s, &labels, json_object_get(element, "metric"), &t);
	}
	table_print(&t, s->width, s->out);
}

static void show_data(struct shown *s, json_t *data)
{
	struct str type = show_text_of(json_object_get(data, "resultType"));
	struct str unit = shown_unit_of(s, data);
	json_t *result = json_object_get(data, "result");

	if (str_is(type, "scalar")) {
		number_print(s->out, show_sample_number(result), unit);
		buf_add_char(s->out, '\n');
	} else if (str_is(type, "string")) {
		buf_add_printable(s->out, show_text_of(json_array_get(result, 1)));
		buf_add_char(s->out, '\n');
	} else if (json_array_size(result) == 0) {
		fprintf(stderr, "epitool: nothing found\n");
	} else if (str_is(type, "vector")) {
		show_vector(s, result, unit);
	} else if (str_is(type, "matrix")) {
		show_matrix(s, result, unit);
	} else if (str_is(type, "top")) {
		show_tops(s, result);
	} else {
		show_profiles(s, result);
	}
}

enum err_code show_answer(struct str answer, size_t width, struct buf *out, struct err *err)
{
	json_error_t where;
	json_t *root = json_loadb(answer.ptr, answer.len, JSON_ALLOW_NUL, &where);
	struct shown x = { .out = out, .width = width };

	if (!root)
		return err_set(err, ERR_INVALID, "the answer is not JSON: %s", where.text);
	arena_init(&x.arena, 0);
	show_data(&x, json_object_get(root, "data"));
	arena_release(&x.arena);
	buf_release(&x.cell);
	json_decref(root);
	return buf_failed(out) ? err_nomem(err, "table") : ERR_OK;
}
