#include "proto/annotation.h"

const enum value_kind annotation_kinds[1] = { KIND_DELTA };

bool annotation_is(struct labels labels)
{
	return str_is(labels_get(labels, STR(LABEL_NAME)), ANNOTATION_NAME);
}

enum err_code annotation_profile(struct arena *a, struct str text, int64_t time_ns, int64_t end_ns,
	struct pprof **out, struct err *err)
{
	static const int64_t one = 1;
	struct pprof_function function = { 0 };
	struct pprof_builder *b;
	struct pprof_line line = { 0 };
	struct pprof *p;
	enum err_code rc;
	uint32_t location;

	if ((rc = pprof_builder_open(a, &b, err)))
		return rc;
	pprof_builder_type(b, STR("events"), STR("count"));
	function.name = function.system_name = pprof_builder_string(b, text);
	function.filename = pprof_builder_string(b, STR(ANNOTATION_FILE));
	line.function = pprof_builder_function(b, &function);
	location = pprof_builder_location(
		b, (struct pprof_location){ .mapping = PPROF_NONE }, &line, 1);
	pprof_builder_sample(b, &location, 1, NULL, 0, &one);
	p = pprof_builder_profile(b);
	p->period_type.type = pprof_builder_string(b, STR("events"));
	p->period_type.unit = pprof_builder_string(b, STR("count"));
	p->period = 1;
	p->time_nanos = time_ns;
	p->duration_nanos = end_ns - time_ns;
	return pprof_builder_finish(b, out, err);
}
