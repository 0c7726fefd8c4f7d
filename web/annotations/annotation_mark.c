#include "web/annotations/annotation_mark.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"

void annotation_marks_release(struct annotation_marks *m)
{
	free(m->v);
	*m = (struct annotation_marks){ 0 };
}

enum err_code annotation_marks_add(
	struct annotation_marks *m, struct annotation_mark mark, struct err *err)
{
	if (!array_room(&m->v, m->n, 1, &m->cap))
		return err_nomem(err, "annotations");
	m->v[m->n++] = mark;
	return ERR_OK;
}

static int annotation_mark_cmp(const void *left, const void *right)
{
	const struct annotation_mark *a = left, *b = right;
	int c;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	if ((c = labels_cmp(a->labels, b->labels)) || (c = str_cmp(a->label, b->label)) ||
		(c = str_cmp(a->from, b->from)) || (c = str_cmp(a->to, b->to)) ||
		(c = str_cmp(a->text, b->text)))
		return c;
	return (a->end_ns > b->end_ns) - (a->end_ns < b->end_ns);
}

void annotation_marks_sort(struct annotation_marks *m)
{
	size_t n = 0;

	if (m->n)
		qsort(m->v, m->n, sizeof(*m->v), annotation_mark_cmp);
	for (size_t i = 0; i < m->n; i++)
		if (!n || annotation_mark_cmp(&m->v[n - 1], &m->v[i]))
			m->v[n++] = m->v[i];
	m->n = n;
}

static void annotation_mark_pair(struct json *j, const char *key, struct str value)
{
	json_key(j, key);
	json_str(j, value);
}

static void annotation_mark_time(struct json *j, const char *key, int64_t ns)
{
	json_key(j, key);
	json_double(j, (double)(ns / NS_PER_MS) / 1e3);
}

void annotation_mark_write(struct json *j, const struct annotation_mark *m)
{
	struct buf text = { 0 };

	json_object(j);
	annotation_mark_time(j, "time", m->time_ns);
	if (m->end_ns)
		annotation_mark_time(j, "end", m->end_ns);
	json_key(j, "kind");
	json_cstr(j, m->label.len ? "version" : "posted");
	if (m->label.len) {
		annotation_mark_pair(j, "label", m->label);
		annotation_mark_pair(j, "from", m->from);
		annotation_mark_pair(j, "to", m->to);
		buf_printf(&text, STR_FMT " -> " STR_FMT, STR_ARG(m->from), STR_ARG(m->to));
		annotation_mark_pair(j, "text", buf_str(&text));
		j->out->failed |= buf_failed(&text);
		buf_release(&text);
	} else {
		annotation_mark_pair(j, "text", m->text);
	}
	json_key(j, "labels");
	labels_write_json(j, m->labels);
	json_object_end(j);
}

bool annotation_mark_labels(struct arena *a, struct labels of, struct labels *out)
{
	struct labels_builder b;

	labels_builder_init(&b, a, of);
	labels_builder_del(&b, STR(LABEL_NAME));
	if (labels_builder_build(&b, out, NULL))
		return false;
	*out = labels_dup(a, *out);
	return !out->n || out->v;
}

bool annotation_labels_fit(struct labels labels, const struct matcher *m, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct str value = labels_get(labels, m[i].name);
		bool counts = label_is_service(m[i].name) || !str_has_prefix(m[i].name, STR("__"));

		if (counts && value.len && !matcher_test(&m[i], value))
			return false;
	}
	return true;
}
