#include "tsdb/symbols/profile_type.h"

void profile_type_print(struct buf *out, const struct profile_type *t)
{
	const struct str part[] = { t->name, t->sample_type, t->sample_unit, t->period_type,
		t->period_unit };

	for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
		if (i)
			buf_add_char(out, ':');
		buf_add_str(out, part[i]);
	}
	if (t->delta)
		buf_add_cstr(out, ":delta");
}
