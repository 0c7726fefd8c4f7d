/*
 * Comments of a YAML source, which its tree does not have: found again by the lines of nodes.
 * A line is a comment if it begins with '#'; a comment behind a value begins at " #" outside of
 * quotes. Each comment is given once. Lines of block scalars that look like comments are taken for
 * comments.
 */
#ifndef CMD_EPITOOL_CONVERT_COMMENTS_H
#define CMD_EPITOOL_CONVERT_COMMENTS_H

#include "cmd/epitool/convert/item.h"

struct source_line {
	struct str text;
	bool taken;
};

void comments_read(struct conversion *c); /* out of x->source */
/* Those above this line, blank lines between them or not; and the one behind its value. */
void comments_above(struct conversion *c, uint32_t line, struct item *to);
void comments_behind(struct conversion *c, uint32_t line, struct item *to);

#endif
