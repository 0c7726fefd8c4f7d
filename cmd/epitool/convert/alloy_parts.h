/*
 * Parts of a conversion from Alloy: values and blocks as items (alloy_value.c), where the targets
 * of a pyroscope.scrape come from (alloy_targets.c). For alloy_convert.c.
 */
#ifndef CMD_EPITOOL_CONVERT_ALLOY_PARTS_H
#define CMD_EPITOOL_CONVERT_ALLOY_PARTS_H

#include "cmd/epitool/convert/alloy.h"
#include "cmd/epitool/convert/item.h"

#define ALLOY_ORIGINS_MAX 5000u /* of the targets of one component */
#define ALLOY_STEPS_MAX 10000000u /* while references are followed, in the whole file */

struct alloy_file {
	struct conversion *x;
	struct alloy_statement *statements;
	size_t *steps;
};

bool alloy_step(const struct alloy_file *f); /* false: there were too many */
/* "discovery.relabel.pods.output" -> its block; NULL: there is none. */
const struct alloy_statement *alloy_component(const struct alloy_file *f, struct str reference);
/* "discovery.relabel \"pods\"", for messages */
const char *alloy_title(struct conversion *c, const struct alloy_statement *block);

/* ---- values ---- */

/* false: it has parts whose value is not in the file. */
bool alloy_is_known(struct arena *a, const struct alloy_expr *e);
/* The value under that key; one that is not known is left out, with a note. */
struct item *alloy_add_value(
	struct conversion *c, struct item *to, struct str key, const struct alloy_expr *e);
/* Attributes and blocks below a block, under the names that ours have. */
void alloy_add_block(struct conversion *c, struct item *to, const struct alloy_statement *block);
void alloy_add_statement(
	struct conversion *c, struct item *to, const struct alloy_statement *statement);

/* ---- targets ---- */

/* discovery.relabel components that targets pass, the first of them first. */
struct alloy_chain {
	const struct alloy_statement *relabel;
	const struct alloy_chain *next;
};

struct alloy_origin {
	struct alloy_origin *next;
	const struct alloy_expr *target; /* an object that is written in the file; or ... */
	const struct alloy_statement *discovery; /* a component */
	const struct alloy_chain *chain;
	bool done;
};

/* Notes what cannot be followed, on `at`. */
struct alloy_origin *alloy_origins(
	const struct alloy_file *f, struct item *at, const struct alloy_expr *targets);
/* One group of origins with one chain: static_configs and discovery into a job. */
void alloy_add_origins(const struct alloy_file *f, struct item *job, struct alloy_origin *first);

#endif
