#include "base/quote.h"
#include "cmd/epitool/convert/convert.h"

void convert_note_targets(struct conversion *c, struct item *job, uint32_t line, uint32_t column)
{
	const struct item *name = item_find(job, "job_name");

	for (const struct item *i = job->child; i; i = i->next)
		if (!i->left_out &&
			(str_is(i->key, "static_configs") || str_has_suffix(i->key, STR("_sd_configs"))))
			return;
	item_note(c, job, line, column, "job %s has no targets now: write where they are",
		QUOTED(name ? name->text : STR("")));
}
