#include "cmd/shared/config_check.h"

#include "cmd/shared/bucket_options.h"
#include "promql/syntax/type_names.h"

void config_check_names(const struct config *c, struct yaml_problems *problems)
{
	struct yaml_ctx ctx = { .problems = problems };
	const struct profile_config *p;
	struct type_pattern meant;

	for (size_t i = 0; i < c->scrape_n; i++)
		for (size_t k = 0; k < c->scrape[i].profiles_n; k++) {
			p = &c->scrape[i].profiles[k];
			if (!p->enabled || !p->at || !type_pattern_parse(p->name, &meant) ||
				str_eq(meant.name, p->name))
				continue;
			yaml_warn(&ctx, p->at,
				STR_FMT " is the short name of " STR_FMT " too: queries of " STR_FMT
						" mean both, {__name__=\"" STR_FMT "\"} means this profile alone",
				STR_ARG(p->name), STR_ARG(meant.name), STR_ARG(p->name), STR_ARG(p->name));
		}
}

enum err_code config_check_parsed(
	const struct config *c, struct yaml_problems *problems, struct err *err)
{
	enum err_code rc;

	config_check_names(c, problems);
	if ((rc = bucket_options_check(&c->bucket, err)))
		yaml_problems_add(problems, err);
	return rc;
}
