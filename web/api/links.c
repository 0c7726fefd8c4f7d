/*
 * Links: which samples were taken while a span ran, or which spans a series has samples of.
 *
 * There is no index: rows of the series that match[] selects are looked at one after the other, as
 * many as LINKS_READ_MAX allows. An answer that was cut says so.
 */
#include <ctype.h>
#include <stdio.h>

#include "base/clock.h"
#include "web/api/handlers.h"
#include "web/api/view.h"
#include "web/router/envelope.h"

#define LINKS_LIMIT 1000u /* where none is given */
#define LINKS_LIMIT_MAX 10000u
#define LINKS_READ_MAX (UINT64_C(1) << 30) /* bytes of rows and links, as stored */
#define LINKS_BODY_MAX (32u << 20) /* of the answer */

struct wanted_id {
	bool any; /* none is given */
	unsigned char bytes[16];
	size_t len;
};

struct link_view {
	struct view *v;
	struct wanted_id trace, span;
	struct matcher *m;
	size_t n;
	struct json j;
	struct arena scratch;
	struct buf text;
	uint64_t found, read, dropped;
	bool full, exhausted; /* more than the limit; more than is read at once */
};

static enum err_code api_read_id(
	const struct http_in *in, const char *name, size_t len, struct wanted_id *out, struct err *err)
{
	struct str text = http_param(in, name);

	*out = (struct wanted_id){ .any = !text.len, .len = len };
	if (out->any)
		return ERR_OK;
	for (size_t i = 0; text.len == 2 * len && i < text.len; i++) {
		unsigned char c = (unsigned char)text.ptr[i];

		if (!isxdigit(c))
			break;
		out->bytes[i / 2] = (unsigned char)(out->bytes[i / 2] << 4 |
			(isdigit(c) ? c - '0' : (c | 0x20) - 'a' + 10));
		if (i + 1 == text.len)
			return ERR_OK;
	}
	return err_set(err, ERR_INVALID, "invalid parameter \"%s\": %zu hexadecimal digits expected",
		name, 2 * len);
}

static bool api_is_wanted(const struct wanted_id *w, const unsigned char *id)
{
	return w->any || !memcmp(w->bytes, id, w->len);
}

/* Matchers about labels that the series lacks are about its samples'. */
static bool api_samples_match(struct link_view *x, const struct db_series *s, uint32_t set)
{
	const struct str prefix = STR("sample_");

	for (size_t i = 0; i < x->n; i++) {
		struct str key = x->m[i].name, own = key;

		if (labels_has(s->labels, key) || str_has_prefix(key, STR("__")))
			continue;
		buf_clear(&x->text);
		sym_label_value(s->partition, set, key, &x->text);
		if (str_has_prefix(key, prefix) && !x->text.len) {
			own = (struct str){ key.ptr + prefix.len, key.len - prefix.len };
			if (labels_has(s->labels, own))
				sym_label_value(s->partition, set, own, &x->text);
		}
		if (!matcher_test(&x->m[i], buf_str(&x->text)))
			return false;
	}
	return true;
}

static void api_write_id(struct link_view *x, const char *key, const unsigned char *id, size_t len)
{
	char hex[33];

	for (size_t i = 0; i < len; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	json_key(&x->j, key);
	json_cstr(&x->j, hex);
}

static void api_write_sample_labels(struct link_view *x, const struct partition *p, uint32_t id)
{
	struct sym_label_set set = sym_label_set(p, id);

	json_key(&x->j, "labels");
	json_object(&x->j);
	for (uint32_t i = 0; i < set.n; i++) {
		struct str key = sym_string(p, set.v[i].key);

		buf_clear(&x->text);
		sym_label_value(p, id, key, &x->text);
		json_key_str(&x->j, key);
		json_str(&x->j, buf_str(&x->text));
	}
	json_object_end(&x->j);
}

static void api_write_values(
	struct link_view *x, const struct partition *p, const struct db_row *row, size_t i)
{
	const struct sym_header *h = sym_header(p, row->header);

	json_key(&x->j, "values");
	json_object(&x->j);
	for (uint32_t c = 0; c < h->types_n; c++) {
		buf_clear(&x->text);
		buf_add_str(&x->text, sym_string(p, h->types[c].type));
		buf_add_char(&x->text, ':');
		buf_add_str(&x->text, sym_string(p, h->types[c].unit));
		json_key_str(&x->j, buf_str(&x->text));
		json_i64(&x->j, row->values[c * row->n + i]);
	}
	json_object_end(&x->j);
}

/* The innermost function of the stack; without a name, the binary's file. */
static void api_write_function(struct link_view *x, const struct partition *p, uint32_t stack)
{
	const struct sym_location *l = stack ? sym_location(p, sym_node(p, stack).location) : NULL;
	struct str name = l && l->lines_n ?
		sym_function_name(p, sym_function(p, l->lines[0].function)) :
		STR("");

	if (!name.len && l && l->mapping != SYM_NONE)
		name = sym_string(p, sym_mapping(p, l->mapping)->filename);
	json_key(&x->j, "function");
	json_str(&x->j, name);
}

static void api_write_link(
	struct link_view *x, const struct db_series *s, const struct db_row *row, size_t i)
{
	const struct pprof_link *span = &row->spans[row->span_of[i]];

	json_object(&x->j);
	json_key(&x->j, "time");
	json_double(&x->j, (double)(row->ts_ns / NS_PER_MS) / 1e3);
	json_key(&x->j, "metric");
	api_labels(&x->j, s->labels);
	api_write_id(x, "trace_id", span->trace_id, sizeof(span->trace_id));
	api_write_id(x, "span_id", span->span_id, sizeof(span->span_id));
	api_write_function(x, s->partition, row->stacks[i]);
	api_write_sample_labels(x, s->partition, row->label_sets[i]);
	api_write_values(x, s->partition, row, i);
	json_object_end(&x->j);
}

static void api_write_row(struct link_view *x, const struct db_series *s, const struct db_row *row)
{
	x->dropped += row->links_dropped;
	for (size_t i = 0; i < row->n && !x->full; i++) {
		const struct pprof_link *span = &row->spans[row->span_of[i]];

		if (!api_is_wanted(&x->trace, span->trace_id) || !api_is_wanted(&x->span, span->span_id) ||
			!api_samples_match(x, s, row->label_sets[i]))
			continue;
		x->full = x->found++ == x->v->limit || x->j.out->len > LINKS_BODY_MAX;
		if (!x->full)
			api_write_link(x, s, row, i);
	}
}

static enum err_code api_write_series(
	struct link_view *x, const struct db_series *s, struct err *err)
{
	const struct db_row *row;
	struct db_rows *rows;
	enum err_code rc;

	if ((rc = db_links_open(
			 x->v->q, s, INT64_MIN, INT64_MAX, LINKS_READ_MAX - x->read, &rows, err)))
		return rc;
	while (!x->full && !(rc = db_rows_next(rows, &row, err)))
		api_write_row(x, s, row);
	x->read += db_rows_read(rows);
	x->exhausted = x->read >= LINKS_READ_MAX;
	db_rows_close(rows);
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

static enum err_code api_links_write_all(struct link_view *x, struct err *err)
{
	const struct selector all = { 0 };
	struct type_pattern pattern;
	struct db_series *series;
	enum err_code rc;
	size_t n;
	bool has;

	if ((rc = view_resolve(x->v, x->v->matches_n ? &x->v->matches[0]->root->selector : &all, &x->m,
			 &x->n, &pattern, err)) ||
		(rc = db_select_kinds(
			 x->v->q, DB_PROFILES, x->m, x->n, &x->v->in->arena, &series, &n, err)))
		return rc;
	for (size_t i = 0; i < n && !rc && !x->full && !x->exhausted; i++) {
		rc = view_has_type(x->v, &series[i], &pattern, &x->scratch, &has, err);
		arena_reset(&x->scratch);
		if (!rc && has)
			rc = api_write_series(x, &series[i], err);
	}
	return rc;
}

static enum err_code api_answer(struct view *v, struct http_out *out, void *ctx, struct err *err)
{
	struct link_view x = { .v = v };
	enum err_code rc;

	(void)ctx;
	if (v->matches_n > 1)
		return err_set(err, ERR_INVALID, "more than one match[] parameter");
	if (v->limit > LINKS_LIMIT_MAX)
		return err_set(
			err, ERR_INVALID, "invalid parameter \"limit\": at most %u", LINKS_LIMIT_MAX);
	v->limit = v->limit ? v->limit : LINKS_LIMIT;
	if ((rc = api_read_id(v->in, "trace_id", 16, &x.trace, err)) ||
		(rc = api_read_id(v->in, "span_id", 8, &x.span, err)))
		return rc;
	arena_init(&x.scratch, v->in->arena.budget_bytes);
	api_begin(out, &x.j);
	json_array(&x.j);
	rc = api_links_write_all(&x, err);
	json_array_end(&x.j);
	if (x.exhausted)
		view_warn(v,
			"only the first rows were read, %u MiB: ask for fewer series or a shorter time",
			(unsigned)(LINKS_READ_MAX >> 20));
	if (x.dropped)
		view_warn(v, "%llu samples of these profiles had links that were not kept",
			(unsigned long long)x.dropped);
	if (x.full && x.found <= v->limit)
		view_warn(v, "the answer was cut at %u MiB", LINKS_BODY_MAX >> 20);
	view_end(&x.j, v, x.found);
	if (rc)
		buf_clear(&out->body);
	arena_release(&x.scratch);
	buf_release(&x.text);
	return rc;
}

void api_links(struct web *w, struct http_in *in, struct http_out *out)
{
	view_answer(w, in, out, NULL, api_answer);
}
