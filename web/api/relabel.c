/*
 * Why a target is scraped as it is, or dropped: applies the rules of its job to its discovered
 * labels. `steps` is Prometheus's answer; `profiles` has the result for each profile of the target.
 */
#include <jansson.h>

#include "base/hidden.h"
#include "base/quote.h"
#include "scrape/manager.h"
#include "scrape/targets/targets_explain.h"
#include "web/api/handlers.h"
#include "web/router/envelope.h"

#define LABELS_MAX 10000u

static enum err_code api_relabel_add_label(
	struct labels_builder *b, const char *name, const json_t *value, struct err *err)
{
	struct str n, v;

	if (!json_is_string(value))
		return err_set(err, ERR_INVALID, "error parsing labels: the value of %s is not a string",
			QUOTED(str_of(name)));
	n = str_dup(b->arena, str_of(name));
	v = str_dup(b->arena, (struct str){ json_string_value(value), json_string_length(value) });
	if (!n.ptr || !v.ptr)
		return arena_fail(b->arena, "labels", err);
	labels_builder_set(b, n, v);
	return ERR_OK;
}

/* {"name": "value"} */
static enum err_code api_parse_labels(
	struct arena *a, struct str text, struct labels *out, struct err *err)
{
	struct labels_builder b;
	json_error_t why;
	json_t *root = json_loadb(text.ptr, text.len, 0, &why);
	const char *name;
	json_t *value;
	enum err_code rc = ERR_OK;

	if (!root)
		return err_set(err, ERR_INVALID, "error parsing labels: %s", why.text);
	labels_builder_init(&b, a, (struct labels){ 0 });
	if (!json_is_object(root))
		rc = err_set(err, ERR_INVALID, "error parsing labels: not an object");
	else if (json_object_size(root) > LABELS_MAX)
		rc = err_set(err, ERR_INVALID, "error parsing labels: more than %u", LABELS_MAX);
	else
		json_object_foreach (root, name, value)
			if ((rc = api_relabel_add_label(&b, name, value, err)))
				break;
	json_decref(root);
	return rc ? rc : labels_builder_build(&b, out, err);
}

/* ---- the answer ---- */

static void api_relabel_write_text(struct json *j, const char *key, struct str value)
{
	if (!value.len)
		return;
	json_key(j, key);
	json_str(j, value);
}

/* With the field names of Prometheus's relabel.Config. */
static void api_write_rule(struct json *j, const struct relabel_rule *r, struct arena *a)
{
	struct str replacement = r->replacement;

	json_object(j);
	if (r->source_labels_n) {
		json_key(j, "sourceLabels");
		json_array(j);
		for (size_t i = 0; i < r->source_labels_n; i++)
			json_str(j, r->source_labels[i]);
		json_array_end(j);
	}
	api_relabel_write_text(j, "separator", r->separator);
	json_key(j, "regex");
	json_str(j, r->regex_text);
	if (r->modulus) {
		json_key(j, "modulus");
		json_u64(j, r->modulus);
	}
	api_relabel_write_text(j, "targetLabel", r->target_label);
	/* A value for a parameter, if it is no part of a label, is as secret as the parameter. */
	if (str_find(r->replacement, STR("$")) < 0)
		replacement = hidden_label(a, r->target_label, replacement);
	api_relabel_write_text(j, "replacement", replacement);
	json_key(j, "action");
	json_cstr(j, relabel_action_name(r->action));
	json_object_end(j);
}

static void api_relabel_write_profile(struct json *j, const struct explained_profile *p)
{
	json_object(j);
	json_key(j, "profile");
	json_str(j, p->profile);
	json_key(j, "keep");
	json_bool(j, p->end != EXPLAINED_DROPPED && p->end != EXPLAINED_ELSEWHERE);
	if (p->end == EXPLAINED_DROPPED) {
		json_key(j, "droppedBy");
		json_u64(j, p->dropped_by);
	} else if (p->end == EXPLAINED_REFUSED) {
		json_key(j, "error");
		json_str(j, p->error);
	} else if (p->end == EXPLAINED_ELSEWHERE) {
		if (p->shard >= 0) {
			json_key(j, "shard");
			json_i64(j, p->shard);
		}
		json_key(j, "reason");
		json_str(j, p->reason);
	} else {
		json_key(j, "labels");
		labels_write_json(j, p->labels);
		json_key(j, "scrapeUrl");
		json_str(j, p->url);
		if (p->unix_path.len) {
			json_key(j, "scrapeUnixSocket");
			json_str(j, p->unix_path);
		}
	}
	json_object_end(j);
}

static void api_write_explanation(
	struct http_out *out, const struct explanation *e, struct arena *a)
{
	struct json j;

	api_begin(out, &j);
	json_object(&j);
	json_key(&j, "steps");
	json_array(&j);
	for (size_t i = 0; i < e->steps_n; i++) {
		json_object(&j);
		json_key(&j, "rule");
		api_write_rule(&j, e->steps[i].rule, a);
		json_key(&j, "output");
		labels_write_json(&j, hidden_labels(a, e->steps[i].output));
		json_key(&j, "keep");
		json_bool(&j, e->steps[i].keep);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_key(&j, "profiles");
	json_array(&j);
	for (size_t i = 0; i < e->profiles_n; i++)
		api_relabel_write_profile(&j, &e->profiles[i]);
	json_array_end(&j);
	json_object_end(&j);
	api_end(&j, NULL, 0, NULL, 0);
}

static enum err_code api_explain(const struct config *c, struct shard shard, struct str pool,
	struct str labels_text, struct arena *a, struct explanation *out, struct err *err)
{
	struct labels labels;
	enum err_code rc;

	if (!pool.len)
		return err_set(err, ERR_INVALID, "no scrapePool parameter provided");
	if (!labels_text.len)
		return err_set(err, ERR_INVALID, "no labels parameter provided");
	if ((rc = api_parse_labels(a, labels_text, &labels, err)))
		return rc;
	for (size_t i = 0; c && i < c->scrape_n; i++)
		if (str_eq(c->scrape[i].job_name, pool))
			return targets_explain(&c->scrape[i], shard, labels, a, out, err);
	return err_set(
		err, ERR_INVALID, "error getting scrape config: scrape pool %s not found", QUOTED(pool));
}

void api_relabel_steps(struct web *w, struct http_in *in, struct http_out *out)
{
	struct config *c = w->o.config(w->o.ctx);
	struct shard shard = scrape_manager_shard(w->o.manager);
	struct explanation e;
	struct err err;
	enum err_code rc = api_explain(
		c, shard, http_param(in, "scrapePool"), http_param(in, "labels"), &in->arena, &e, &err);

	if (rc)
		api_fail(out, rc, &err);
	else
		api_write_explanation(out, &e, &in->arena);
	config_unref(c);
	shard_unref(&shard);
}
