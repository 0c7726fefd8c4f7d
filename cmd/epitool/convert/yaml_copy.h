/*
 * Copies of YAML: mappings of another program's configuration become ours field by field. What our
 * schema has is kept, with the user's comments; what its foreign tables have is left out with their
 * reason; and a rule of the program goes before both.
 */
#ifndef CMD_EPITOOL_CONVERT_YAML_COPY_H
#define CMD_EPITOOL_CONVERT_YAML_COPY_H

#include "cmd/epitool/convert/item.h"

struct copying {
	struct conversion *x;
	const char *program; /* "Prometheus" */
	bool kebab; /* keys are written a-b and become a_b, but for those of the user's own */
};

struct copy_rule {
	const char *key; /* as ours are written */
	/* converts n into `to`; NULL: it is left out */
	void (*convert)(const struct copying *c, struct item *to, const struct yaml_node *n);
	const char *why; /* it is left out */
};

/*
 * schema NULL: what has no rule is kept. rules end with a key NULL. A key without a value is as if
 * it were not there: nothing converts it, and copy_get does not find it.
 */
void copy_members(const struct copying *c, struct item *to, const struct yaml_node *mapping,
	const struct yaml_schema *schema, const struct copy_rule *rules);
/* A node with all that is below it, under its own key. */
struct item *copy_node(const struct copying *c, struct item *to, const struct yaml_node *n);
/* The node without what is below it, with its comments. */
struct item *copy_open(const struct copying *c, struct item *to, const struct yaml_node *n);
/* whole: what is left out is shown, not only why. */
void copy_leave_out(const struct copying *c, struct item *to, const struct yaml_node *n, bool whole,
	const char *fmt, ...) PRINTF_LIKE(5, 6);
/* The first member; NULL: there is none, or n is no mapping. */
const struct yaml_node *copy_mapping(const struct yaml_node *n);
bool copy_is_missing(const struct yaml_node *n); /* a key without a value */
struct str copy_key(const struct copying *c, const struct yaml_node *n); /* as ours is written */
const struct yaml_node *copy_get(
	const struct copying *c, const struct yaml_node *mapping, const char *key);

#endif
