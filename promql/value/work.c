#include "promql/value/work.h"

#include <stdio.h>

enum err_code work_fault(const struct work *work, const struct expr *e, struct err *err,
	enum err_code code, const char *fmt, ...)
{
	char msg[900];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	return query_error_at(work->query->text, e->at, NULL, err, code, "%s", msg);
}

enum err_code work_nomem(const struct work *work, struct err *err)
{
	return arena_fail(work->arena, "query", err);
}

enum err_code work_info(const struct work *work, struct err *err, const char *fmt, ...)
{
	struct infos *infos = work->infos;
	char msg[400];
	struct str text = { msg, 0 };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	text.len = strlen(msg);
	for (size_t i = 0; i < infos->n; i++)
		if (str_eq(infos->v[i], text))
			return ERR_OK;
	if (infos->n == INFOS_MAX)
		return ERR_OK;
	if (!(text = str_dup(work->whole, text)).ptr)
		return arena_fail(work->whole, "query", err);
	infos->v[infos->n++] = text;
	return ERR_OK;
}

enum err_code work_check(const struct work *work, struct err *err)
{
	if (work->stop && atomic_load_explicit(work->stop, memory_order_relaxed))
		return err_set(err, ERR_CANCELED, "canceled");
	return ERR_OK;
}
