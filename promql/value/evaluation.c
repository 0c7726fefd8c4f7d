#include "promql/value/evaluation.h"

#include <stdio.h>

int64_t eval_shifted(const struct eval *ev, const struct time_shift *s, int64_t t_ns)
{
	int64_t t = s->at == AT_TIME ? s->at_ns :
		s->at == AT_START        ? ev->start_ns :
		s->at == AT_END          ? ev->end_ns :
								   t_ns;

	if (__builtin_sub_overflow(t, s->offset_ns, &t))
		return s->offset_ns > 0 ? INT64_MIN : INT64_MAX;
	return t;
}

enum err_code eval_fault(struct eval *ev, const struct expr *e, struct err *err, enum err_code code,
	const char *fmt, ...)
{
	char msg[900];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	return query_error_at(ev->query->text, e->at, NULL, err, code, "%s", msg);
}

enum err_code eval_nomem(struct eval *ev, struct err *err)
{
	return arena_fail(ev->arena, "query", err);
}

enum err_code eval_info(struct eval *ev, struct err *err, const char *fmt, ...)
{
	char msg[400];
	struct str text = { msg, 0 };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	text.len = strlen(msg);
	for (size_t i = 0; i < ev->infos_n; i++)
		if (str_eq(ev->infos[i], text))
			return ERR_OK;
	if (ev->infos_n == EVAL_INFOS_MAX)
		return ERR_OK;
	if (!ev->infos)
		ev->infos = arena_array(ev->whole, struct str, EVAL_INFOS_MAX);
	if (!ev->infos || !(text = str_dup(ev->whole, text)).ptr)
		return arena_fail(ev->whole, "query", err);
	ev->infos[ev->infos_n++] = text;
	return ERR_OK;
}

enum err_code eval_check(struct eval *ev, struct err *err)
{
	if (ev->stop && atomic_load_explicit(ev->stop, memory_order_relaxed))
		return err_set(err, ERR_CANCELED, "canceled");
	return ERR_OK;
}
