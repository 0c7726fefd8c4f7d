/* What is known of rules: on this server, or on the query node that evaluates them. */
#ifndef WEB_API_RULES_ASKED_H
#define WEB_API_RULES_ASKED_H

#include "promql/rules/report.h"

struct web;

/* Without rules it has no groups. May wait for the bucket. The caller releases out->rules. */
MUST_CHECK enum err_code rules_asked_report(
	struct web *w, struct arena *a, struct rules_report *out, struct err *err);

#endif
