#include "cmd/epimetheus/config_file.h"

#include "base/log.h"

enum err_code config_file_load(
	const struct options *o, bool log, struct config **out, struct err *err)
{
	const struct config_reading how = { .ignore_foreign = o->ignore_foreign };
	struct yaml_problems problems;
	enum err_code rc;

	yaml_problems_init(&problems);
	rc = config_read_file(o->config_file, &how, &problems, out, err);
	for (size_t i = 0; !rc && log && i < problems.n; i++)
		log_warn("main", "configuration", LOG_S("warning", problems.v[i].text));
	rc = config_first_error(&problems, rc, err);
	yaml_problems_release(&problems);
	return rc;
}
