#include "web/router/operation.h"

bool operation_has_param(const struct operation *op, struct str name)
{
	for (const struct operation_param *p = op ? op->params : NULL; p && p->name; p++) {
		if (p->flags & PARAM_IN_PATH)
			continue;
		if (p->flags & PARAM_PREFIX ? str_has_prefix(name, str_of(p->name)) : str_is(name, p->name))
			return true;
	}
	return false;
}
