#include "cmd/epimetheus/rules/rule_files.h"

#include "base/log.h"
#include "promql/rules/rules.h"
#include "scrape/config/config.h"

enum err_code rule_files_load(const struct config *c, struct rule_set **out, struct err *err)
{
	const struct rules_load l = {
		.patterns = c->rule_files,
		.patterns_n = c->rule_files_n,
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

enum err_code rule_files_load_own(
	const struct options *o, const struct config *c, struct rule_set **out, struct err *err)
{
	const struct rules_load none = { .interval_ns = c->global.evaluation_interval_ns };
	enum err_code rc = rule_files_load(c, out, err);

	if (rc || !rule_files_why_not(o))
		return rc;
	if ((*out)->rules_n)
		log_warn("main", rule_files_why_not(o), LOG_I("rules", (int64_t)(*out)->rules_n),
			LOG_I("shards", o->shard.total));
	rule_set_unref(*out);
	*out = NULL;
	return rule_set_load(&none, out, err);
}
