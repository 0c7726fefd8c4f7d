#include "web/api/rules_asked.h"

#include "web/router/router.h"

enum err_code rules_asked_report(
	struct web *w, struct arena *a, struct rules_report *out, struct err *err)
{
	struct rule_manager *m;

	if (w->o.rules_report)
		return w->o.rules_report(w->o.ctx, a, out, err);
	*out = (struct rules_report){ .written_ns = 0 };
	m = w->o.rules ? w->o.rules(w->o.ctx) : NULL;
	return m ? rule_manager_snapshot(m, a, &out->rules, err) : ERR_OK;
}
