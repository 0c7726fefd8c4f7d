/*
 * An alert as JSON for Alertmanager's API: {annotations, endsAt, startsAt, generatorURL, labels}.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "promql/rules/notify/notifier_internal.h"

#define SCRATCH_BYTES_MAX (16u << 20)

static void alert_text_add_labels(struct json *j, const char *key, struct labels ls)
{
	json_key(j, key);
	labels_write_json(j, ls);
}

/* Milliseconds, as Alertmanager's own clients write them. */
static void alert_text_add_time(struct json *j, const char *key, int64_t ns)
{
	struct buf text = { 0 };

	time_print_rfc3339(&text, ns - (ns % NS_PER_MS + NS_PER_MS) % NS_PER_MS);
	json_key(j, key);
	json_str(j, buf_str(&text));
	if (buf_failed(&text))
		j->out->failed = true;
	buf_release(&text);
}

static void alert_text_print(struct buf *out, const struct notification *n, struct labels labels)
{
	struct json j;

	json_init(&j, out);
	json_object(&j);
	alert_text_add_labels(&j, "annotations", n->annotations);
	alert_text_add_time(&j, "endsAt", n->ends_ns);
	alert_text_add_time(&j, "startsAt", n->starts_ns);
	if (n->generator_url.len) {
		json_key(&j, "generatorURL");
		json_str(&j, n->generator_url);
	}
	alert_text_add_labels(&j, "labels", labels);
	json_object_end(&j);
}

static enum err_code alert_text_make_labels(struct arena *a, const struct notification *n,
	struct labels external, const struct relabel_rules *all, const struct relabel_rules *own,
	struct labels *out, bool *keep, struct err *err)
{
	struct labels_builder b;
	enum err_code rc;

	*keep = true;
	labels_builder_init(&b, a, n->labels);
	for (size_t i = 0; i < external.n; i++)
		if (!labels_get(n->labels, external.v[i].name).len)
			labels_builder_set(&b, external.v[i].name, external.v[i].value);
	if ((rc = relabel_apply(all, &b, keep, NULL, err)) || !*keep)
		return rc;
	if (own && ((rc = relabel_apply(own, &b, keep, NULL, err)) || !*keep))
		return rc;
	return labels_builder_build(&b, out, err);
}

enum err_code alert_text_make(const struct notification *n, struct labels external,
	const struct relabel_rules *all, const struct relabel_rules *own, struct alert_text **out,
	struct err *err)
{
	struct alert_text *t = NULL;
	struct buf json = { 0 };
	struct labels labels;
	struct arena a;
	enum err_code rc;
	bool keep;

	*out = NULL;
	arena_init(&a, SCRATCH_BYTES_MAX);
	if ((rc = alert_text_make_labels(&a, n, external, all, own, &labels, &keep, err)) || !keep)
		goto end;
	alert_text_print(&json, n, labels);
	if (!buf_failed(&json))
		t = malloc(sizeof(*t) + json.len);
	if (!t) {
		rc = err_nomem(err, "alert");
		goto end;
	}
	t->refs = 1;
	t->len = json.len;
	memcpy(t->bytes, json.ptr, json.len);
	*out = t;
end:
	buf_release(&json);
	arena_release(&a);
	return rc;
}

void alert_text_unref(struct alert_text *t)
{
	assert(!t || t->refs);
	if (t && --t->refs == 0)
		free(t);
}
