#include "web/rules/saved.h"

#include "base/clock.h"
#include "promql/rules/manager.h"
#include "promql/rules/saved/saved_rules.h"
#include "web/api/handlers.h"
#include "web/router/envelope.h"

/* ---- answers ---- */

static void rules_saved_add_text(struct json *j, const char *key, struct str s)
{
	json_key(j, key);
	json_str(j, s);
}

static void rules_saved_add_u64(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	json_u64(j, value);
}

/* Nothing, where nobody changed it yet. */
static void rules_saved_add_who(struct json *j, int64_t changed_ns, struct str user)
{
	struct buf text = { 0 };

	if (!changed_ns)
		return;
	time_print_rfc3339(&text, changed_ns);
	rules_saved_add_text(j, "changedAt", buf_str(&text));
	rules_saved_add_text(j, "changedBy", user);
	j->out->failed |= buf_failed(&text);
	buf_release(&text);
}

static void rules_saved_add_groups(struct json *j, const struct saved_version *v)
{
	json_key(j, "groups");
	json_array(j);
	for (size_t i = 0; i < v->groups_n; i++) {
		json_object(j);
		rules_saved_add_text(j, "name", v->groups[i].name);
		rules_saved_add_who(j, v->groups[i].changed_ns, v->groups[i].user);
		json_object_end(j);
	}
	json_array_end(j);
}

static void rules_saved_add_version(struct json *j, const struct saved_version *v)
{
	rules_saved_add_u64(j, "version", v->version);
	rules_saved_add_who(j, v->changed_ns, v->user);
	if (v->change.len)
		rules_saved_add_text(j, "change", v->change);
	rules_saved_add_groups(j, v);
}

/* Why nobody can save rules here; NULL: users can. */
static const char *rules_saved_why_not(const struct web *w)
{
	if (w->o.saved_rules_why_not)
		return w->o.saved_rules_why_not;
	if (!w->o.change_rules || !w->o.saved_rules)
		return "this server saves no rules";
	return w->o.enable_rules ? NULL :
							   "saving rules is disabled: start with --web.enable-rules, which "
							   "needs users in --web.config.file";
}

void rules_saved_get(struct web *w, struct http_in *in, struct http_out *out)
{
	const char *why = rules_saved_why_not(w);
	struct saved_reading r = { 0 };
	enum err_code rc;
	struct err err;
	struct json j;

	if (w->o.saved_rules && (rc = saved_rules_read(w->o.saved_rules, &in->arena, &r, &err))) {
		api_fail(out, rc, &err);
		return;
	}
	api_begin(out, &j);
	json_object(&j);
	json_key(&j, "enabled");
	json_bool(&j, !why);
	if (why)
		rules_saved_add_text(&j, "why", str_of(why));
	json_key(&j, "mayChange");
	json_bool(&j, !why && in->user.name.len && http_user_may(&in->user, NEEDS_ADMIN));
	if (w->o.saved_rules)
		rules_saved_add_text(&j, "file", str_of(saved_rules_path(w->o.saved_rules)));
	rules_saved_add_version(&j, &r.version);
	json_object_end(&j);
	api_end(&j, &r.warning, r.warning.len > 0, NULL, 0);
}

void rules_saved_history(struct web *w, struct http_in *in, struct http_out *out)
{
	struct saved_version *v = NULL;
	enum err_code rc;
	struct err err;
	struct json j;
	size_t n = 0;

	if (w->o.saved_rules &&
		(rc = saved_rules_history(w->o.saved_rules, &in->arena, &v, &n, &err))) {
		api_fail(out, rc, &err);
		return;
	}
	api_begin(out, &j);
	json_object(&j);
	json_key(&j, "versions");
	json_array(&j);
	for (size_t i = 0; i < n; i++) {
		json_object(&j);
		rules_saved_add_version(&j, &v[i]);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	api_end(&j, NULL, 0, NULL, 0);
}

/* The groups that the manager has of the file, as /api/v1/rules shows them. */
static enum err_code rules_saved_add_running(
	struct web *w, struct json *j, struct arena *a, struct err *err)
{
	struct str file = str_of(saved_rules_path(w->o.saved_rules));
	struct rules_snapshot s;
	enum err_code rc = rule_manager_snapshot(w->o.rules(w->o.ctx), a, &s, err);

	if (rc)
		return rc;
	json_key(j, "groups");
	json_array(j);
	for (size_t i = 0; i < s.groups_n; i++)
		if (str_eq(s.groups[i].group->file, file))
			api_write_rule_group(j, &s.groups[i]);
	json_array_end(j);
	rules_snapshot_release(&s);
	return ERR_OK;
}

static enum err_code rules_saved_answer(
	struct web *w, struct http_in *in, struct http_out *out, struct err *err)
{
	struct saved_reading r;
	struct json j;
	enum err_code rc = saved_rules_read(w->o.saved_rules, &in->arena, &r, err);

	if (rc)
		return rc;
	api_begin(out, &j);
	json_object(&j);
	rules_saved_add_u64(&j, "version", r.version.version);
	rules_saved_add_text(&j, "change", r.version.change);
	if ((rc = rules_saved_add_running(w, &j, &in->arena, err))) {
		buf_clear(&out->body);
		return rc;
	}
	json_object_end(&j);
	api_end(&j, NULL, 0, NULL, 0);
	return ERR_OK;
}

/* ---- changes ---- */

/* False: *out says why not. */
static bool rules_saved_may_change(
	const struct web *w, const struct http_in *in, struct http_out *out)
{
	const char *why = rules_saved_why_not(w);

	if (why)
		api_error(out, 403, "unavailable", "%s", why);
	else if (!in->user.name.len) /* the file of users was changed after the start */
		api_error(out, 403, "forbidden",
			"rules are saved under a user's name: --web.config.file names no users now");
	return !why && in->user.name.len;
}

static void rules_saved_change(
	struct web *w, struct http_in *in, struct http_out *out, struct saved_change *c)
{
	enum err_code rc;
	struct err err;

	c->user = in->user.name;
	c->now_ns = clock_now_ns();
	if ((rc = w->o.change_rules(w->o.ctx, c, &in->arena, &err)) ||
		(rc = rules_saved_answer(w, in, out, &err)))
		api_fail(out, rc, &err);
}

bool rules_saved_admit(struct web *w, struct http_in *in, struct http_out *out)
{
	in->body_bytes_max = SAVED_BYTES_MAX;
	return rules_saved_may_change(w, in, out);
}

void rules_saved_post(struct web *w, struct http_in *in, struct http_out *out)
{
	struct saved_change c = { .kind = SAVED_PUT, .sent = in->body };
	enum err_code rc;
	struct err err;

	if (!rules_saved_may_change(w, in, out))
		return;
	if ((rc = api_bool(in, "replace", &c.replace, &err)))
		api_fail(out, rc, &err);
	else
		rules_saved_change(w, in, out, &c);
}

void rules_saved_delete(struct web *w, struct http_in *in, struct http_out *out)
{
	struct saved_change c = { .kind = SAVED_DELETE, .name = http_param(in, "group") };

	if (!rules_saved_may_change(w, in, out))
		return;
	if (!c.name.len)
		api_error(out, 400, "bad_data", "missing parameter \"group\"");
	else
		rules_saved_change(w, in, out, &c);
}

void rules_saved_undo(struct web *w, struct http_in *in, struct http_out *out)
{
	struct saved_change c = { .kind = SAVED_UNDO,
		.has_version = http_param(in, "version").len > 0 };
	enum err_code rc;
	struct err err;

	if (!rules_saved_may_change(w, in, out))
		return;
	if ((rc = api_uint(in, "version", &c.version, &err)))
		api_fail(out, rc, &err);
	else
		rules_saved_change(w, in, out, &c);
}
