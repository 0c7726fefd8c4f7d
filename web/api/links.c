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
static bool api_samples_match(struct link_view *l, const struct db_series *s, uint32_t set)
{
	const struct str prefix = STR("sample_");

	for (size_t i = 0; i < l->n; i++) {
		struct str key = l->m[i].name, own = key;

		if (labels_has(s->labels, key) || str_has_prefix(key, STR("__")))
			continue;
		buf_clear(&l->text);
		sym_label_value(s->partition, set, key, &l->text);
		if (str_has_prefix(key, prefix) && !l->text.len) {
			own = (struct str){ key.ptr + prefix.len, key.len - prefix.len };
			if (labels_has(s->labels, own))
				sym_label_value(s->partition, set, own, &l->text);
		}
		if (!matcher_test(&l->m[i], buf_str(&l->text)))
			return false;
	}
	return true;
}

static void api_write_id(struct link_view *l, const char *key, const unsigned char *id, size_t len)
{
	char hex[33];

	for (size_t i = 0; i < len; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	json_key(&l->j, key);
	json_cstr(&l->j, hex);
}

static void api_write_sample_labels(struct link_view *l, const struct partition *p, uint32_t id)
{
	struct sym_label_set set = sym_label_set(p, id);

	json_key(&l->j, "labels");
	json_object(&l->j);
	for (uint32_t i = 0; i < set.n; i++) {
		struct str key = sym_string(p, set.v[i].key);

		buf_clear(&l->text);
		sym_label_value(p, id, key, &l->text);
		json_key_str(&l->j, key);
		json_str(&l->j, buf_str(&l->text));
	}
	json_object_end(&l->j);
}

static void api_write_values(
	struct link_view *l, const struct partition *p, const struct db_row *row, size_t i)
{
	const struct sym_header *h = sym_header(p, row->header);

	json_key(&l->j, "values");
	json_object(&l->j);
	for (uint32_t c = 0; c < h->types_n; c++) {
		buf_clear(&l->text);
		buf_add_str(&l->text, sym_string(p, h->types[c].type));
		buf_add_char(&l->text, ':');
		buf_add_str(&l->text, sym_string(p, h->types[c].unit));
		json_key_str(&l->j, buf_str(&l->text));
		json_i64(&l->j, row->values[c * row->n + i]);
	}
	json_object_end(&l->j);
}

/* The innermost function of the stack; without a name, the binary's file. */
static void api_write_function(struct link_view *v, const struct partition *p, uint32_t stack)
{
	struct sym_location l = { .mapping = SYM_NONE };
	struct str name = STR("");

	if (stack)
		l = sym_location(p, sym_node(p, stack).location);
	if (l.lines_n)
		name = sym_function_name(p, sym_function(p, l.lines[0].function));
	if (!name.len && l.mapping != SYM_NONE)
		name = sym_string(p, sym_mapping(p, l.mapping)->filename);
	json_key(&v->j, "function");
	json_str(&v->j, name);
}

static void api_write_link(
	struct link_view *l, const struct db_series *s, const struct db_row *row, size_t i)
{
	const struct pprof_link *span = &row->spans[row->span_of[i]];

	json_object(&l->j);
	json_key(&l->j, "time");
	json_double(&l->j, (double)(row->ts_ns / NS_PER_MS) / 1e3);
	json_key(&l->j, "metric");
	labels_write_json(&l->j, s->labels);
	api_write_id(l, "trace_id", span->trace_id, sizeof(span->trace_id));
	api_write_id(l, "span_id", span->span_id, sizeof(span->span_id));
	api_write_function(l, s->partition, row->stacks[i]);
	api_write_sample_labels(l, s->partition, row->label_sets[i]);
	api_write_values(l, s->partition, row, i);
	json_object_end(&l->j);
}

static void api_write_row(struct link_view *l, const struct db_series *s, const struct db_row *row)
{
	l->dropped += row->links_dropped;
	for (size_t i = 0; i < row->n && !l->full; i++) {
		const struct pprof_link *span = &row->spans[row->span_of[i]];

		if (!api_is_wanted(&l->trace, span->trace_id) || !api_is_wanted(&l->span, span->span_id) ||
			!api_samples_match(l, s, row->label_sets[i]))
			continue;
		l->full = l->found++ == l->v->limit || l->j.out->len > LINKS_BODY_MAX;
		if (!l->full)
			api_write_link(l, s, row, i);
	}
}

static enum err_code api_write_series(
	struct link_view *l, const struct db_series *s, struct err *err)
{
	const struct db_row *row;
	struct db_rows *rows;
	enum err_code rc;

	if ((rc = db_links_open(
			 l->v->q, s, INT64_MIN, INT64_MAX, LINKS_READ_MAX - l->read, &rows, err)))
		return rc;
	while (!l->full && !(rc = db_rows_next(rows, &row, err)))
		api_write_row(l, s, row);
	l->read += db_rows_read(rows);
	l->exhausted = l->read >= LINKS_READ_MAX;
	db_rows_close(rows);
	return rc == ERR_NOT_FOUND ? ERR_OK : rc;
}

static enum err_code api_links_write_all(struct link_view *l, struct err *err)
{
	const struct selector all = { 0 };
	struct type_pattern pattern;
	struct db_series *series;
	enum err_code rc;
	size_t n;
	bool has;

	if ((rc = view_resolve(l->v, l->v->matches_n ? &l->v->matches[0]->root->selector : &all, &l->m,
			 &l->n, &pattern, err)) ||
		(rc = db_select_kinds(
			 l->v->q, DB_PROFILES, l->m, l->n, &l->v->in->arena, &series, &n, err)))
		return rc;
	for (size_t i = 0; i < n && !rc && !l->full && !l->exhausted; i++) {
		rc = view_has_type(l->v, &series[i], &pattern, &l->scratch, &has, err);
		arena_reset(&l->scratch);
		if (!rc && has)
			rc = api_write_series(l, &series[i], err);
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
			"only the first %u MiB of rows were read: query fewer series or a shorter time",
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
