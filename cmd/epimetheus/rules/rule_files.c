#include "cmd/epimetheus/rules/rule_files.h"

#include "base/log.h"
#include "promql/rules/rules.h"
#include "promql/rules/saved/saved_rules.h"
#include "scrape/config/config.h"

enum err_code rule_files_load(const struct config *c, const char *saved_path, struct str saved,
	struct rule_set **out, struct err *err)
{
	const struct rules_load l = {
		.patterns = c->rule_files,
		.patterns_n = c->rule_files_n,
		.last_name = saved_path,
		.last = saved,
		.interval_ns = c->global.evaluation_interval_ns,
		.query_offset_ns = c->global.rule_query_offset_ns,
	};

	return rule_set_load(&l, out, err);
}

const char *rule_files_why_not(const struct options *o)
{
	if (o->mode == MODE_COMPACT)
		return "rules do not run with --mode=compact, but on query nodes";
	return o->shard_total > 1 || o->shard_join ?
		"rules do not run on one of several shards, but on query nodes" :
		NULL;
}

/* Rules that users saved once never keep the server or its rule files from running. */
static enum err_code rule_files_load_all(
	const struct config *c, struct saved_rules *saved, struct rule_set **out, struct err *err)
{
	struct saved_reading r;
	struct arena a;
	struct err why;
	enum err_code rc;

	arena_init(&a, 0);
	if ((rc = saved_rules_read(saved, &a, &r, err)))
		goto end;
	if (!rule_files_load(c, saved_rules_path(saved), r.text, out, &why)) {
		saved_rules_set_refused(saved, STR(""));
	} else if (!(rc = rule_files_load(c, NULL, STR(""), out, err))) {
		log_error("rules", "saved rules refused", LOG_E(&why));
		saved_rules_set_refused(saved, str_of(why.msg));
	}
end:
	arena_release(&a);
	return rc;
}

enum err_code rule_files_load_own(const struct options *o, const struct config *c,
	struct saved_rules *saved, struct rule_set **out, struct err *err)
{
	const struct rules_load none = { .interval_ns = c->global.evaluation_interval_ns };
	enum err_code rc = saved && !rule_files_why_not(o) ?
		rule_files_load_all(c, saved, out, err) :
		rule_files_load(c, NULL, STR(""), out, err);

	if (rc || !rule_files_why_not(o))
		return rc;
	if ((*out)->rules_n)
		log_warn("main", rule_files_why_not(o), LOG_I("rules", (int64_t)(*out)->rules_n),
			LOG_I("shards", o->shard.total));
	rule_set_unref(*out);
	*out = NULL;
	return rule_set_load(&none, out, err);
}
