#include "cmd/epimetheus/rules/rule_changes.h"

#include "base/log.h"
#include "cmd/epimetheus/rules/rule_files.h"
#include "promql/rules/manager.h"
#include "promql/rules/rules.h"
#include "scrape/config/config.h"

const char *rule_changes_why_not(const struct options *o, const struct config *c)
{
	if (o->mode == MODE_COMPACT)
		return "rules are not saved with --mode=compact: add the rule to rule_files of each query "
			   "node";
	if (rule_files_why_not(o))
		return "rules are not saved on a shard, as they run on query nodes: add the rule to "
			   "rule_files of each query node";
	return c && c->bucket.present ?
		"rules are not saved in a cluster, as several servers evaluate them: add the rule to "
		"rule_files of each" :
		NULL;
}

/* The rules of the saved file come last, so the second of two equal ones is of that file. */
static enum err_code rule_changes_check_duplicates(
	const struct rule_set *set, struct str path, struct str group, struct arena *a, struct err *err)
{
	struct rule_duplicate *v;
	struct buf text = { 0 };
	size_t n;
	enum err_code rc = rule_set_duplicates(set, a, &v, &n, err);

	for (size_t i = 0; i < n && !rc; i++) {
		const struct rule_group *g = v[i].again->group;

		if (!str_eq(g->file, path) || !str_eq(g->name, group))
			continue;
		rule_duplicate_print(&text, &v[i]);
		rc = err_set(err, ERR_EXISTS, STR_FMT, STR_ARG(buf_str(&text)));
	}
	buf_release(&text);
	return rc;
}

enum err_code rule_changes_make(
	const struct rule_changes *r, const struct saved_change *c, struct arena *a, struct err *err)
{
	const char *path = saved_rules_path(r->saved);
	struct rule_set *set = NULL;
	struct saved_next next;
	enum err_code rc;

	if ((rc = saved_rules_prepare(r->saved, c, a, &next, err)) ||
		(rc = rule_files_load(r->config, path, next.text, &set, err)))
		return rc;
	if (c->kind == SAVED_PUT)
		rc = rule_changes_check_duplicates(set, str_of(path), next.group, a, err);
	if (rc || (rc = saved_rules_commit(r->saved, &next, err)))
		goto end;
	log_info("rules", "saved rules changed", LOG_STR("change", next.version.change),
		LOG_STR("user", next.version.user), LOG_I("version", (int64_t)next.version.version));
	if ((rc = rule_manager_apply(r->manager, set, r->config->global.external_labels, err)))
		err_wrap(err, rc, "the change is saved, and does not run before the next reload");
end:
	rule_set_unref(set);
	return rc;
}
